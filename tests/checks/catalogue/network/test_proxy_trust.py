"""The authorities of a proxy: missing, over, or not readable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields
from tests.checks.catalogue.asking import BY_NAME, CONFIG, JSON, messages_of
from tests.factories import NOW, config_map_json, context

from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Context
from runup.checks.decide.snapshots import snapshot_of

CERTIFICATE = BY_NAME["CertificateAuthorityExpires"].example.partition("ca-bundle.crt: |\n")[2].replace("    ", "")


PROXY: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Proxy",
    "metadata": {"name": "cluster"},
    "spec": {"trustedCA": {"name": "trust"}},
}


TRUST = "The cluster trusts its proxy by ConfigMap openshift-config/trust, which "


def bundle(text: str, name: str = "trust") -> JSON:
    """The ConfigMap that the proxy names."""
    return config_map_json(name, CONFIG, **{"ca-bundle.crt": text})


# The certificate of the example ends with 2026-01-15.
AT_ITS_END = NOW.replace(day=16, hour=0)


BUNDLES: dict[str, tuple[list[JSON], Context, list[str]]] = {
    "it is not there": ([PROXY], context(), [f"{TRUST}is not there."]),
    "others are there": (
        [PROXY, bundle(CERTIFICATE, "a"), bundle(CERTIFICATE, "z")],
        context(),
        [f"{TRUST}is not there."],
    ),
    "it is valid": ([PROXY, bundle(CERTIFICATE)], with_fields(context(), now=NOW.replace(day=8)), []),
    "it ends within the week": (
        [PROXY, bundle(CERTIFICATE)],
        context(),
        [f"{TRUST}has no certificate that is valid for long: the last ends at 2026-01-16T00:00:00Z."],
    ),
    "it has no certificate": ([PROXY, bundle("")], context(), [f"{TRUST}has no certificate in ca-bundle.crt."]),
    "it ends now": (
        [PROXY, bundle(CERTIFICATE)],
        with_fields(context(), now=AT_ITS_END),
        [f"{TRUST}has no certificate that is valid: the last ended at 2026-01-16T00:00:00Z."],
    ),
    "it is valid for a moment": (
        [PROXY, bundle(CERTIFICATE)],
        with_fields(context(), now=AT_ITS_END.replace(day=15, hour=23)),
        [f"{TRUST}has no certificate that is valid for long: the last ends at 2026-01-16T00:00:00Z."],
    ),
    "no authority is named": ([{**PROXY, "spec": {}}], context(), []),
    "no authority is named, and another": (
        [{**PROXY, "spec": {}, "metadata": {"name": "a"}}, PROXY],
        context(),
        [f"{TRUST}is not there."],
    ),
}


@pytest.mark.parametrize(("objects", "to", "said"), BUNDLES.values(), ids=BUNDLES.keys())
def test_authorities_of_a_proxy(objects: list[JSON], to: Context, said: list[str]) -> None:
    """At least one certificate, and at least one that is valid."""
    assert messages_of("ProxyTrustBroken", *objects, to=to) == said


def test_a_bundle_that_cannot_be_read_is_told() -> None:
    """And one that may only not be in the list is not taken for missing."""
    (broken,) = messages_of(
        "ProxyTrustBroken", PROXY, bundle("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    )
    assert broken.startswith(f"{TRUST}has a ca-bundle.crt that cannot be read: ")
    check: Check = BY_NAME["ProxyTrustBroken"]
    seen = snapshot_of(check.reads, [PROXY])
    cut = {read: ("the rest was cut off",) for read in check.reads if read.kind == "ConfigMap"}
    outcome = run_check(check, replace(seen, incomplete=cut), context())
    assert outcome.result == "Unknown"
    assert "the rest was cut off" in outcome.findings[-1].message
