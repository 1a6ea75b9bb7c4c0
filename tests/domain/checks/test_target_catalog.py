"""Operators and the catalog that comes with the target: what a file-based catalog says, and what follows from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.factories import context

from runup.api.olm_v1alpha1 import Subscription
from runup.api.scheme import resource_of
from runup.domain.checks.catalogue.olm_target_catalog import TargetCatalog, with_catalogs
from runup.domain.checks.catalogue.presence import DEFINITIONS
from runup.domain.checks.engine import run_check
from runup.domain.checks.file_based_catalog import BadCatalog, Entry, Package, folders, parse
from runup.domain.checks.model import Snapshot
from runup.domain.checks.objects import snapshot_of

SUBSCRIPTION: dict[str, Any] = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "metadata": {"name": "logging", "namespace": "openshift-logging"},
    "spec": {"name": "cluster-logging", "channel": "stable-6", "source": "redhat-operators"},
    "status": {"installedCSV": "logging.v6.0.1", "currentCSV": "logging.v6.0.1"},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "subscriptions.operators.coreos.com"},
    "spec": {"group": "operators.coreos.com", "names": {"plural": "subscriptions", "kind": "Subscription"}},
}
PACKAGE = {"schema": "olm.package", "name": "cluster-logging", "defaultChannel": "stable-7"}


def channel(name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    """A channel of the package."""
    return {"schema": "olm.channel", "package": "cluster-logging", "name": name, "entries": list(entries)}


def catalog(*parts: dict[str, Any]) -> TargetCatalog:
    """What a catalog's file comes to."""
    data = "\n".join(json.dumps(part) for part in (PACKAGE, *parts)).encode()
    return TargetCatalog("registry.example/index:v5.2", parse({"configs/cluster-logging/catalog.json": data}))


def deprecations(**message: str) -> dict[str, Any]:
    """What the catalog says of the end of lives."""
    names = {"package": None, "channel": "stable-6", "bundle": "logging.v6.0.1"}
    entries = [
        {"reference": {"schema": f"olm.{what}"} | ({"name": names[what]} if names[what] else {}), "message": text}
        for what, text in message.items()
    ]
    return {"schema": "olm.deprecations", "package": "cluster-logging", "entries": entries}


HERE = {"name": "logging.v6.0.1"}
OTHER = TargetCatalog("registry.example/index:v5.2", {"other": Package("other")})


@pytest.mark.parametrize(
    ("found", "result", "words"),
    [
        pytest.param(catalog(channel("stable-6", HERE)), "Clear", "", id="the version itself is there"),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "replaces": "logging.v6.0.1"})),
            "Clear",
            "",
            id="the next replaces it",
        ),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "skips": ["logging.v6.0.0", "logging.v6.0.1"]})),
            "Clear",
            "",
            id="a later one skips it",
        ),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "skipRange": ">=6.0.0 <6.2.0"})),
            "Clear",
            "",
            id="a later one skips a range",
        ),
        pytest.param(
            catalog(channel("stable-6", {"name": "logging.v6.2.0", "replaces": "logging.v6.1.0"})),
            "Applies",
            "nothing in its channel stable-6 is or follows logging.v6.0.1",
            id="there is a gap",
        ),
        pytest.param(
            catalog(channel("stable-7", HERE)),
            "Applies",
            "it has no channel stable-6, but stable-7 (by default stable-7)",
            id="the channel is gone",
        ),
        pytest.param(OTHER, "Applies", "it has no package cluster-logging", id="the package is gone"),
        pytest.param(
            catalog(channel("stable-6", HERE), deprecations(channel="use stable-7", bundle="it is old")),
            "Applies",
            "at the end of its life in the catalog of 5.2: channel stable-6: use stable-7; bundle logging.v6.0.1: ",
            id="its channel and version are at their end",
        ),
        pytest.param(
            TargetCatalog("registry.example/index:v5.2", problem="no route to host"),
            "Unknown",
            "registry.example/index:v5.2: no route to host",
            id="the image cannot be read",
        ),
        pytest.param(None, "Unknown", "no image of redhat-operators for the target is named", id="no image is named"),
    ],
)
def test_an_operator_and_the_next_catalog(found: TargetCatalog | None, result: str, words: str) -> None:
    """Whether there is a way on; where the catalog is not known, it is not fine."""
    check = with_catalogs({"redhat-operators": found} if found else {})
    objects = [SUBSCRIPTION, DEFINITION]
    outcome = run_check(check, snapshot_of(check.reads, objects, lacking=lambda _read: ""), context())
    assert outcome.result == result, outcome
    assert words in " ".join(finding.message for finding in outcome.findings)


def test_an_empty_cluster_needs_no_catalog() -> None:
    """Nor does one without OLM; one whose Subscriptions may not be listed is Unknown."""
    check = with_catalogs({})
    assert run_check(check, snapshot_of(check.reads, [], lacking=lambda _read: ""), context()).result == "Clear"
    forbidden = Snapshot({DEFINITIONS: ()}, {resource_of(Subscription): "not allowed to list"})
    assert run_check(check, forbidden, context()).result == "Unknown"


YAML = b"""---
schema: olm.package
name: cluster-logging
defaultChannel: stable-6
---
schema: olm.channel
package: cluster-logging
name: stable-6
entries:
- name: logging.v6.0.1
  skips: [a, 7]
"""


def test_yaml_and_json_say_the_same() -> None:
    """As `opm` writes either; what is of no use here is left out."""
    expected = {
        "cluster-logging": Package("cluster-logging", "stable-6", {"stable-6": (Entry("logging.v6.0.1", "", ("a",)),)})
    }
    assert parse({"configs/cluster-logging/catalog.yaml": YAML, "configs/cluster-logging/README.md": b"{"}) == expected


@pytest.mark.parametrize(
    "data", [b"{", b"\xff", b"[" * 100_000, b"nonsense"], ids=["cut off", "no text", "deep", "words"]
)
def test_a_catalog_that_cannot_be_read_names_its_file(data: bytes) -> None:
    """Somebody else's image is data."""
    with pytest.raises(BadCatalog, match=r"configs/x/catalog\.json"):
        parse({"configs/x/catalog.json": data})


def test_only_what_is_installed_is_read() -> None:
    """An index of operators has a gigabyte."""
    assert folders(["b", "a", "b"]) == ("configs/a", "configs/b")
