"""A cluster that somebody describes by flags: what is no word of a cluster is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.error_types import Terminal
from runup.api.config_v1 import ComponentOverride
from runup.release.decide.inclusion import DEFAULT_PROFILE, Excluded, Filters, include
from runup.release.decide.listing import Row, filters_data, filters_of, notes, overrides_in, rows
from runup.release.decide.manifest import Identity, Manifest, parse_manifests
from runup.release.decide.payload import Payload, Skipped
from runup.release.decide.release_metadata import ImageReferences, ReleaseMetadata


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"feature_set": "Odd"}, "Odd", id="a feature set"),
        pytest.param({"capabilities": ["Console", "Odd"]}, "Odd", id="a capability among others"),
        pytest.param({"profile": ""}, f"the profile is empty; the usual one is {DEFAULT_PROFILE}", id="no profile"),
        pytest.param({"major": -1}, "major version -1 is below 0", id="a version below all"),
    ],
)
def test_what_nobody_knows_is_refused(changes: dict[str, Any], said: str) -> None:
    """Rather than taken for a cluster that gets less."""
    with pytest.raises(Terminal, match=said):
        filters_of(**{"major": 5, **changes})


def test_what_is_described_is_what_decides() -> None:
    """The default feature set is written as none; capabilities that nobody names do not filter."""
    found = filters_of(major=0, feature_set="Default", gates=["A"], capabilities=["Console"])
    assert (found.feature_set, found.gates, found.major, found.profile) == ("", {"A"}, 0, DEFAULT_PROFILE)
    assert filters_of(major=5, feature_set="TechPreviewNoUpgrade").feature_set == "TechPreviewNoUpgrade"


INCLUDE = "include.release.openshift.io/"


def manifest(file: str, name: str, **annotations: str) -> Manifest:
    """A ConfigMap of a release."""
    made = {"metadata": {"annotations": annotations}}
    return Manifest.of(file, Identity("", "ConfigMap", "n", name), made)


def payload(*manifests: Manifest, checks: tuple[Manifest, ...] = (), skipped: tuple[Skipped, ...] = ()) -> Payload:
    """Release 5.2.0."""
    return Payload(
        metadata=ReleaseMetadata(version="5.2.0"),
        image_references=ImageReferences("5.2.0", {}),
        manifests=manifests,
        checks=checks,
        skipped=skipped,
    )


MINE, OTHER = {f"{INCLUDE}mine": "true"}, {f"{INCLUDE}other": "true"}


def test_who_gets_what() -> None:
    """In the order in which it is applied, checks after manifests, and then what nobody gets, with its reason."""
    found = payload(
        manifest("a.yaml", "a", **MINE),
        manifest("b.yaml", "b", **OTHER),
        checks=(manifest("c.yaml", "c", **MINE),),
        skipped=(Skipped("d.yaml", "d.yaml, line 2: no", broken=True), Skipped("e.yaml", "its template is odd")),
    )
    assert rows(found, Filters(profile="mine")) == (
        Row(object="ConfigMap n/a", file="a.yaml", included=True, reason="", state="in"),
        Row(object="ConfigMap n/b", file="b.yaml", included=False, reason=f"{INCLUDE}mine unset", state="out"),
        Row(object="ConfigMap n/c", file="c.yaml", included=True, reason="", state="in"),
        Row(object="", file="d.yaml", included=False, reason="line 2: no", state="refused"),
        Row(object="", file="e.yaml", included=False, reason="its template is odd", state="skipped"),
    )


GATE = {"release.openshift.io/feature-gate": "A,-B"}
NOTES: dict[str, tuple[Payload, Filters, tuple[str, ...]]] = {
    "all of it is known": (
        payload(manifest("a", "a", **MINE, **GATE)),
        Filters(profile="mine", gates=frozenset("AB"), major=5),
        (),
    ),
    "a profile that is of none": (
        payload(manifest("a", "a", **MINE), checks=(manifest("b", "b", **OTHER),)),
        Filters(profile="odd"),
        ("no manifest is for profile odd; there are mine, other",),
    ),
    "a profile that sorts first": (
        payload(manifest("a", "a", **MINE)),
        Filters(profile="a"),
        ("no manifest is for profile a; there are mine",),
    ),
    "a profile, of a release that has none": (payload(manifest("a", "a")), Filters(profile="odd"), ()),
    "no profile": (payload(manifest("a", "a", **MINE)), Filters(), ()),
    "gates that are of none": (
        payload(manifest("a", "a", **GATE)),
        Filters(gates=frozenset({"X", "A", "0"})),
        ("no manifest names gate 0; there are A, B", "no manifest names gate X; there are A, B"),
    ),
    "a gate, of a release that names none": (
        payload(manifest("a", "a")),
        Filters(gates=frozenset("X")),
        ("no manifest names gate X; none is named",),
    ),
    **{
        f"major version {major}": (
            payload(),
            Filters(major=major),
            (f"the release is 5.2.0; manifests are filtered as of major version {major}",),
        )
        for major in (4, 6)
    },
}


@pytest.mark.parametrize(("found", "filters", "shown"), NOTES.values(), ids=NOTES.keys())
def test_what_of_a_description_nothing_knows(found: Payload, filters: Filters, shown: tuple[str, ...]) -> None:
    """Likely a word that was typed wrong, with those that there are."""
    assert notes(found, filters) == shown


def test_a_description_as_data() -> None:
    """With the default set by its name; capabilities are null where they do not filter."""
    override = ComponentOverride(kind="Deployment", name="x", unmanaged=True)
    whole = filters_data(filters_of(major=5, gates="BA", capabilities=["Console", "Build"], overrides=(override,)))
    assert whole == {
        "featureSet": "Default",
        "gates": ["A", "B"],
        "profile": DEFAULT_PROFILE,
        "major": 5,
        "capabilities": ["Build", "Console"],
        "overrides": [{"kind": "Deployment", "name": "x", "unmanaged": True}],
    }
    assert filters_data(filters_of(major=5, feature_set="OKD"))["featureSet"] == "OKD"
    assert filters_data(filters_of(major=5))["capabilities"] is None


X = ComponentOverride(kind="Deployment", group="apps", namespace="ns", name="x", unmanaged=True)
LISTED = "[{kind: Deployment, group: apps, namespace: ns, name: x, unmanaged: true}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(LISTED, (X,), id="a list"),
        pytest.param(f"overrides: {LISTED}", (X,), id="an object with a list"),
        pytest.param(f"kind: ClusterVersion\nspec: {{overrides: {LISTED}}}", (X,), id="a ClusterVersion"),
        pytest.param("kind: ClusterVersion\nspec: {channel: a}", (), id="a ClusterVersion without any"),
        pytest.param("kind: ClusterVersion", (), id="a ClusterVersion without a spec"),
        pytest.param("[]", (), id="none"),
    ],
)
def test_overrides_in_a_file(text: str, expected: tuple[ComponentOverride, ...]) -> None:
    """In each form in which somebody has them."""
    assert overrides_in(text.encode(), "f") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[", "f, line ", id="no YAML"),
        pytest.param("a: b", "f: expected a ClusterVersion, or a list of overrides", id="an object without a list"),
        pytest.param("kind: Other\nspec: {overrides: []}", "f: expected a ClusterVersion", id="another kind"),
        pytest.param("kind: ClusterVersion\nspec: {overrides: a}", "f: expected a ClusterVersion", id="no list"),
        pytest.param("just words", "f: expected a ClusterVersion", id="words"),
        pytest.param(f"{LISTED[:-1]}, 3]", "f: override 2: ", id="an entry that is none"),
        pytest.param(
            "[{kind: a, name: b, zz: 1, odd: 2}]", "f: override 1: has an unknown field 'odd'", id="odd fields"
        ),
        pytest.param("[{kind: a}]", "f: override 1: has no name", id="no name"),
        pytest.param("[{name: a}]", "f: override 1: has no kind", id="no kind"),
    ],
)
def test_overrides_that_are_none(text: str, said: str) -> None:
    """The file is named, and which of them."""
    with pytest.raises(Terminal) as refused:
        overrides_in(text.encode(), "f")
    assert refused.value.message.startswith(said)
    assert refused.value.reason == "BadCluster"


def test_words_that_nobody_knows_are_all_told() -> None:
    """With those that are known."""
    with pytest.raises(Terminal, match=r"^unknown capabilities Odd, Other; known are baremetal, Console, "):
        filters_of(major=5, capabilities=["Other", "Console", "Odd"])


def test_a_gated_capability_is_unrecognized_without_its_gate() -> None:
    """As in the Go operator, which knows ClusterAPI only with one of its gates."""
    (manifest,), _ = parse_manifests(
        "a.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {capability.openshift.io/name: ClusterAPI, "
        "include.release.openshift.io/self-managed-high-availability: 'true'}}}",
    )
    closed = filters_of(major=5, capabilities=["ClusterAPI"])
    assert include(manifest, closed) == Excluded("unrecognized capability names: ClusterAPI")
    opened = filters_of(major=5, gates=["ClusterAPIMachineManagement"], capabilities=["ClusterAPI"])
    assert not isinstance(include(manifest, opened), Excluded)
