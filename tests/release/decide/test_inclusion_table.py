"""Which manifests a cluster gets: the rows that the Go operator's own tests and code settle, one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runup.api.config_v1 import ComponentOverride
from runup.release.decide.capabilities import Capabilities
from runup.release.decide.inclusion import Excluded, Filters, Included, include
from runup.release.decide.manifest import Manifest, parse_manifests

P = "include.release.openshift.io/self-managed-high-availability"
SET = "release.openshift.io/feature-set"
GATE = "release.openshift.io/feature-gate"
MAJOR = "release.openshift.io/major-version"
CAPS = "capability.openshift.io/name"
EXCLUDE = "exclude.release.openshift.io/internal-openshift-hosted"
PROFILE = "self-managed-high-availability"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def manifest(annotations: dict[str, str] | None, api: tuple[str, str] = ("apps/v1", "Deployment")) -> Manifest:
    """A manifest with these annotations."""
    metadata: dict[str, Any] = {"name": "a"} | ({} if annotations is None else {"annotations": annotations})
    document = {"apiVersion": api[0], "kind": api[1], "metadata": metadata}
    found, errors = parse_manifests("a.yaml", json.dumps(document))
    assert not errors
    return found[0]


def gates(*names: str) -> Filters:
    """A cluster with these gates."""
    return Filters(profile=PROFILE, gates=frozenset(names))


def feature_set(name: str) -> Filters:
    """A cluster of this feature set."""
    return Filters(profile=PROFILE, feature_set=name)


def caps(known: set[str], enabled: set[str], *, unknown: bool = False) -> Filters:
    """A cluster with these capabilities."""
    chosen = Capabilities(frozenset(known), frozenset(enabled))
    return Filters(profile=PROFILE, capabilities=chosen, unknown_capabilities_allowed=unknown)


def major(number: int) -> Filters:
    """A cluster of this major version."""
    return Filters(profile=PROFILE, major=number)


def override(name: str, *, unmanaged: bool) -> Filters:
    """A cluster with one override."""
    return Filters(
        profile=PROFILE,
        overrides=(ComponentOverride(group="apps", kind="Deployment", name=name, unmanaged=unmanaged),),
    )


TECH = "TechPreviewNoUpgrade"
ROWS = [
    pytest.param(manifest(None), Filters(), False, id="1 no annotations, even with every filter off"),
    pytest.param(manifest({}), Filters(profile=PROFILE), False, id="2 an empty map"),
    pytest.param(manifest({P: "true"}), Filters(profile="single-node"), False, id="3 another profile"),
    pytest.param(manifest({P: "true"}), Filters(), True, id="4 no profile filter"),
    pytest.param(manifest({P: "True"}), Filters(profile=PROFILE), False, id="5 an unrecognized value"),
    pytest.param(
        manifest({P: "true", EXCLUDE: "true"}),
        Filters(profile=PROFILE, exclude_identifier="internal-openshift-hosted"),
        False,
        id="6 excluded by identifier",
    ),
    pytest.param(
        manifest({P: "true", EXCLUDE: "false"}),
        Filters(profile=PROFILE, exclude_identifier="internal-openshift-hosted"),
        True,
        id="7 not excluded by another value",
    ),
    pytest.param(manifest({P: "true"}), feature_set(""), True, id="8 no feature set, default cluster"),
    pytest.param(manifest({P: "true"}), feature_set(TECH), True, id="8 no feature set, tech preview cluster"),
    pytest.param(manifest({P: "true", SET: TECH}), feature_set(""), False, id="9 tech preview on default"),
    pytest.param(manifest({P: "true", SET: TECH}), feature_set(TECH), True, id="10 tech preview on tech preview"),
    pytest.param(manifest({P: "true", SET: "Other"}), feature_set(""), False, id="11 an unknown set"),
    pytest.param(manifest({P: "true", SET: f"Default,{TECH}"}), feature_set(""), True, id="12 two sets, default"),
    pytest.param(
        manifest({P: "true", SET: f"Default,{TECH}"}), feature_set("DevPreviewNoUpgrade"), False, id="12 two sets, dev"
    ),
    pytest.param(manifest({P: "true", SET: f"Default, {TECH}"}), feature_set(TECH), False, id="13 a blank"),
    pytest.param(manifest({P: "true", SET: "Default,Other"}), feature_set(""), False, id="14 unknown beats a match"),
    pytest.param(manifest({P: "true", GATE: "A"}), gates("A"), True, id="15 a gate that is on"),
    pytest.param(manifest({P: "true", GATE: "A"}), gates(), False, id="15 a gate that is off"),
    pytest.param(manifest({P: "true", GATE: "-A"}), gates(), True, id="16 a gate that must be off, is off"),
    pytest.param(manifest({P: "true", GATE: "-A"}), gates("A"), False, id="16 a gate that must be off, is on"),
    pytest.param(manifest({P: "true", GATE: "A,-B,C"}), gates("A", "C"), True, id="17 three gates"),
    pytest.param(manifest({P: "true", GATE: "A,-B,C"}), gates("A", "B", "C"), False, id="17 three gates, one wrong"),
    pytest.param(manifest({P: "true", GATE: ","}), gates(), True, id="18 empty items"),
    pytest.param(
        manifest({P: "true", GATE: "A", SET: "Default"}),
        Filters(profile=PROFILE, feature_set="", gates=frozenset({"A"})),
        False,
        id="19 feature set and gate together",
    ),
    pytest.param(manifest({P: "true", MAJOR: "5"}), major(5), False, id="20 major version on a Deployment"),
    pytest.param(manifest({P: "true", MAJOR: "5"}, CRD), major(4), False, id="21 another major version"),
    pytest.param(manifest({P: "true", MAJOR: "5"}, CRD), major(5), True, id="21 this major version"),
    pytest.param(manifest({P: "true", MAJOR: "-4"}, CRD), major(4), False, id="22 not this major version"),
    pytest.param(manifest({P: "true", MAJOR: "-4"}, CRD), major(5), True, id="22 not the other major version"),
    pytest.param(manifest({P: "true", MAJOR: "4,-4"}, CRD), major(4), False, id="23 overlap"),
    pytest.param(manifest({P: "true", CAPS: "cap1"}), Filters(profile=PROFILE), True, id="24 no capability filter"),
    pytest.param(manifest({P: "true", CAPS: "cap1"}), caps({"cap1"}, set()), False, id="25 known, not enabled"),
    pytest.param(
        manifest({P: "true", CAPS: "cap1+cap2"}), caps({"cap1"}, {"cap1"}), False, id="26 an unknown capability"
    ),
    pytest.param(
        manifest({P: "true", CAPS: "cap1+cap2"}),
        caps({"cap1"}, {"cap1"}, unknown=True),
        False,
        id="27 unknown allowed, but disabled",
    ),
    pytest.param(manifest({P: "true", CAPS: "cap1"}), caps({"cap1"}, {"cap1"}), True, id="28 all enabled"),
    pytest.param(manifest({P: "true"}), override("a", unmanaged=True), False, id="29 overridden"),
    pytest.param(manifest({P: "true"}), override("b", unmanaged=True), True, id="30 another object's override"),
    pytest.param(manifest({P: "true"}), override("a", unmanaged=False), True, id="30 managed after all"),
]


@pytest.mark.parametrize(("subject", "filters", "included"), ROWS)
def test_a_row_of_the_table(subject: Manifest, filters: Filters, included: bool) -> None:
    """In or out, with a reason for out."""
    decision = include(subject, filters)
    assert isinstance(decision, Included if included else Excluded)
    if isinstance(decision, Excluded):
        assert decision.reason


@pytest.mark.parametrize(
    ("subject", "filters", "reason"),
    [
        (manifest({P: "true", GATE: "A"}), gates(), "feature gate A is required but not enabled"),
        (manifest({P: "true", GATE: "-A"}), gates("A"), "A is enabled but manifest requires it to be disabled"),
        (manifest({P: "true", CAPS: "cap1"}), caps({"cap1"}, set()), "disabled capabilities: cap1"),
        (manifest({P: "true", CAPS: "cap1+cap2"}), caps({"cap1"}, set()), "unrecognized capability names: cap2"),
        (manifest({P: "true"}), override("a", unmanaged=True), "overridden"),
    ],
)  # fmt: skip
def test_the_reason_is_the_go_operators(subject: Manifest, filters: Filters, reason: str) -> None:
    """The words that administrators search for."""
    decision = include(subject, filters)
    assert isinstance(decision, Excluded)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(
            "five",
            'invalid included major version "five" in annotation: strconv.ParseUint: parsing "five": invalid syntax',
            id="a word",
        ),
        pytest.param(
            "-five",
            'invalid excluded major version "five" in annotation: strconv.ParseUint: parsing "five": invalid syntax',
            id="a word that is excluded",
        ),
        pytest.param(
            "-",
            'invalid excluded major version "" in annotation: strconv.ParseUint: parsing "": invalid syntax',
            id="nothing that is excluded",
        ),
        pytest.param("18446744073709551615,5", None, id="as large as may be"),
        pytest.param(
            "18446744073709551616",
            'invalid included major version "18446744073709551616" in annotation: '
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
            id="one larger",
        ),
        pytest.param("0000000000000000000000000000005", None, id="many noughts"),
        pytest.param("0,5", None, id="nought"),
        pytest.param("4,5,-5,-4", "inclusion and exclusion requirements overlap: [4 5]", id="overlap"),
    ],
)
def test_what_is_no_major_version(value: str, said: str | None) -> None:
    """In the words of whoever reads it in Go."""
    decision = include(manifest({P: "true", MAJOR: value}, CRD), major(5))
    assert (decision.reason if isinstance(decision, Excluded) else None) == said


def test_a_number_of_thousands_of_digits_is_out_of_range() -> None:
    """And no crash."""
    decision = include(manifest({P: "true", MAJOR: "9" * 5000}, CRD), major(5))
    assert isinstance(decision, Excluded)
    assert decision.reason.endswith('9": value out of range')
