"""Releases compared, explained and tried on a cluster: each line, and how many of a long list are named."""

from __future__ import annotations

from typing import Any

import pytest

from runup.applying.control.dry_run import Comparison, Effect
from runup.cli.release import compare as comparison_text
from runup.cli.render.screen import Screen
from runup.release.control.live_cluster import ExplainedOnCluster
from runup.release.decide.difference import AccessChange, Difference, ManifestChange, NameChange
from runup.release.decide.inclusion import Filters
from runup.release.decide.inclusion_reasons import DescribedCluster, Explained, Ruling
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.object_diff import ABSENT, Change
from runup.release.decide.payload import Payload
from runup.release.decide.release_metadata import ImageReferences, ReleaseMetadata


def manifest(name: str, kind: str = "ConfigMap", namespace: str = "ns") -> Manifest:
    """An object of a release."""
    return Manifest.of(f"{name}.yaml", Identity("", kind, namespace, name), {"kind": kind})


def payload(version: str, *manifests: Manifest, checks: tuple[Manifest, ...] = ()) -> Payload:
    """A release."""
    return Payload(
        metadata=ReleaseMetadata(version=version),
        image_references=ImageReferences(version, {}),
        manifests=manifests,
        checks=checks,
    )


OLD, NEW = payload("5.0.0"), payload("5.2.0")
FIELD = Change("spec.a", 1, 2)
NOTHING = Difference(images=(), manifests=(), same=7, checks=(), gates=(), access=())
ALL = Difference(
    images=(NameChange("new", "", "q/n"), NameChange("gone", "q/g", ""), NameChange("moved", "a", "b")),
    manifests=(
        ManifestChange(object="ConfigMap ns/a", state="added", file="a.yaml"),
        ManifestChange(
            object="ConfigMap ns/b",
            state="changed",
            file="b.yaml",
            changes=(FIELD,) * 5,
            variant="TechPreviewNoUpgrade",
        ),
        ManifestChange(object="ConfigMap ns/c", state="removed", file="c.yaml"),
        ManifestChange(object="ConfigMap ns/d", state="deleted", file="d.yaml"),
        ManifestChange(object="ConfigMap ns/e", state="changed", file="e.yaml", changes=(FIELD,) * 4),
    ),
    same=1,
    checks=(ManifestChange(object="PreflightCheck etcd", state="added", file="check.yaml"),),
    gates=(NameChange("Gate", "Default", "Default,OKD"),),
    access=(AccessChange("ClusterRole a", ("get pods",), ("list pods", "watch pods")),),
)


def test_what_two_releases_differ_in() -> None:
    """Section by section; four fields of an object are named."""
    fields = ", ".join(["spec.a: 1 -> 2"] * 4)
    assert comparison_text.difference_text(OLD, NEW, ALL) == (
        "5.0.0 -> 5.2.0\n\n"
        "Images: 1 added, 1 changed, 1 removed\n"
        "  added     new     q/n\n"
        "  removed   gone    q/g\n"
        "  changed   moved   a -> b\n"
        "Manifests: 1 added, 2 changed, 1 removed, 1 deleted, 1 the same\n"
        "  added     ConfigMap ns/a                          a.yaml\n"
        f"  changed   ConfigMap ns/b (TechPreviewNoUpgrade)   {fields}, and 1 more\n"
        "  removed   ConfigMap ns/c                          nothing deletes it: clusters that have it keep it\n"
        "  deleted   ConfigMap ns/d                          the operator deletes it\n"
        f"  changed   ConfigMap ns/e                          {fields}\n"
        "Checks: 1 added\n"
        "  added   PreflightCheck etcd   check.yaml\n"
        "Feature gates: 1 changed\n"
        "  changed   Gate   Default -> Default,OKD\n"
        "Access: 1 role or binding changed\n"
        "  ClusterRole a\n"
        "    + get pods\n"
        "    - list pods\n"
        "    - watch pods\n"
    )


def test_two_releases_that_do_not_differ() -> None:
    """A line a section."""
    assert comparison_text.difference_text(OLD, NEW, NOTHING) == (
        "5.0.0 -> 5.2.0\n\nImages: no change\nManifests: no change, 7 the same\nChecks: no change\n"
        "Feature gates: no change\nAccess: no roles and bindings changed\n"
    )


def test_the_difference_for_programs() -> None:
    """Every value; what is absent has no key."""
    data = comparison_text.difference_data(OLD, NEW, ALL)
    assert (data["from"], data["to"], data["same"]) == ("5.0.0", "5.2.0", 1)
    assert data["images"][0] == {"name": "new", "state": "added", "from": "", "to": "q/n"}
    assert data["manifests"][1]["changes"] == [{"path": "spec.a", "from": 1, "to": 2}] * 5
    assert {key: data["manifests"][1][key] for key in ("object", "variant", "state", "file")} == {
        "object": "ConfigMap ns/b",
        "variant": "TechPreviewNoUpgrade",
        "state": "changed",
        "file": "b.yaml",
    }
    assert [each["object"] for each in data["checks"]] == ["PreflightCheck etcd"]
    assert [each["name"] for each in data["featureGates"]] == ["Gate"]
    assert data["access"] == [
        {"object": "ClusterRole a", "granted": ["get pods"], "taken": ["list pods", "watch pods"]}
    ]
    come = ManifestChange(
        object="a", state="changed", file="f", changes=(Change("p", ABSENT, None), Change("q", 0, ABSENT))
    )
    found = comparison_text.difference_data(
        OLD, NEW, Difference(images=(), manifests=(come,), same=0, checks=(), gates=(), access=())
    )
    assert found["manifests"][0]["changes"] == [{"path": "p", "to": None}, {"path": "q", "from": 0}]


EFFECTS = (
    Effect(object="a", file="f.yaml", state="created"),
    Effect(object="b", file="f.yaml", state="changed", changes=(FIELD,)),
    Effect(object="c", file="f.yaml", state="deleted"),
    Effect(object="d", file="f.yaml", state="left", why="nothing deletes it"),
    Effect(object="e", file="f.yaml", state="refused", changes=(FIELD,), why="immutable"),
    Effect(object="f", file="f.yaml", state="unknown", why="forbidden"),
    Effect(object="g", file="f.yaml", state="same"),
    Effect(object="h", file="f.yaml", state="same"),
)


def test_what_an_update_would_do() -> None:
    """To each object; what stays the same is counted only."""
    assert comparison_text.effects_text(NEW, EFFECTS) == (
        "The update to 5.2.0 would: 1 created, 1 changed, 1 deleted, 1 left behind, 1 refused, 1 unknown, 2 same\n"
        "create    a\n"
        "change    b   spec.a: 1 -> 2\n"
        "delete    c\n"
        "leave     d   nothing deletes it\n"
        "REFUSED   e   immutable\n"
        "UNKNOWN   f   forbidden\n"
    )
    assert comparison_text.effects_text(NEW, EFFECTS[6:]) == "The update to 5.2.0 would: 2 same\n"
    assert comparison_text.effects_text(NEW, ()) == "The update to 5.2.0 would: change nothing\n"
    data = comparison_text.effects_data(
        Comparison(release=NEW, digest="sha256:1", effects=EFFECTS[1:2], notes=("note",))
    )
    assert data == {
        "to": "5.2.0",
        "digest": "sha256:1",
        "objects": [
            {
                "object": "b",
                "file": "f.yaml",
                "state": "changed",
                "changes": [{"path": "spec.a", "from": 1, "to": 2}],
                "why": "",
            }
        ],
        "notes": ["note"],
    }


RULES = ("feature set", "feature gates", "major version", "profile", "capabilities", "overrides", "another")
FILTERS = Filters(feature_set="TechPreviewNoUpgrade", gates=frozenset({"B", "A"}), major=5, profile="single-node")


def explained(answer: Any, *rulings: Ruling) -> Explained:
    """A manifest, and by which rules."""
    return Explained(manifest("a"), answer, rulings)


def test_why_a_cluster_gets_a_manifest() -> None:
    """Every rule that was asked, and what of the cluster it was asked about."""
    found = explained("in", *(Ruling(rule, "passes") for rule in RULES))
    assert comparison_text.explained_text(NEW, DescribedCluster(FILTERS, {}), [found]) == (
        "ConfigMap ns/a of 5.2.0: in\n"
        "  file: a.yaml\n"
        "  feature set     passes   the cluster's is TechPreviewNoUpgrade\n"
        "  feature gates   passes   enabled are A, B\n"
        "  major version   passes   the release's is 5\n"
        "  profile         passes   the cluster's is single-node\n"
        "  capabilities    passes   all that it names are enabled\n"
        "  overrides       passes   none is unmanaged for it\n"
        "  another         passes\n"
    )
    plain = comparison_text.explained_text(NEW, DescribedCluster(Filters(), {}), [explained("in", *found.rulings[:2])])
    assert "feature set     passes   the cluster's is Default\n" in plain
    assert "feature gates   passes   enabled are none\n" in plain


def test_why_a_cluster_does_not_get_a_manifest() -> None:
    """The rule that decided is on top; one that was not asked about the cluster says nothing of it."""
    out = explained("out", Ruling("profile", "fails", "not for this one"), Ruling("overrides", "fails"))
    unknown = explained("unknown", Ruling("feature gates", "unknown", "forbidden"))
    assert comparison_text.explained_text(NEW, DescribedCluster(FILTERS, {}), [out, unknown]) == (
        "ConfigMap ns/a of 5.2.0: out, by profile\n"
        "  file: a.yaml\n"
        "  profile     fails   not for this one\n"
        "  overrides   fails\n"
        "\n"
        "ConfigMap ns/a of 5.2.0: unknown, by feature gates\n"
        "  file: a.yaml\n"
        "  feature gates   unknown   forbidden\n"
    )
    data = comparison_text.explained_data(
        ExplainedOnCluster(
            release=NEW,
            image="image",
            digest="sha256:1",
            cluster=DescribedCluster(FILTERS, {"feature gates": "forbidden"}),
            manifests=(out,),
        )
    )
    assert (data["version"], data["digest"], data["unreadable"]) == (
        "5.2.0",
        "sha256:1",
        {"feature gates": "forbidden"},
    )
    assert data["manifests"] == [
        {
            "object": "ConfigMap ns/a",
            "file": "a.yaml",
            "answer": "out",
            "rules": [
                {"rule": "profile", "verdict": "fails", "why": "not for this one"},
                {"rule": "overrides", "verdict": "fails", "why": ""},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("name", "namespace", "said"),
    [
        pytest.param(
            "x",
            "ns",
            "5.2.0 (q/i) has no Secret x in namespace ns; `runup release manifests` lists what it has",
            id="nothing like it",
        ),
        pytest.param(
            "a",
            "",
            "5.2.0 (q/i) has no Secret a; it has ConfigMap ns/a, ConfigMap ns1/a, ConfigMap ns2/a, ConfigMap ns3/a",
            id="four of that name at most",
        ),
        pytest.param("etcd", "", "5.2.0 (q/i) has no Secret etcd; it has PreflightCheck etcd", id="a check"),
    ],
)  # fmt: skip
def test_a_manifest_that_a_release_has_not(name: str, namespace: str, said: str) -> None:
    """Those that may be meant are named."""
    held = [manifest("a"), *(manifest("a", namespace=f"ns{place}") for place in range(1, 5))]
    found = payload("5.2.0", *held, checks=(manifest("etcd", "PreflightCheck", ""),))
    assert comparison_text.no_such(found, "Secret", name=name, namespace=namespace, image="q/i") == said


def test_rows_of_a_section_are_indented_as_one() -> None:
    """By two blanks where one of them is."""
    assert comparison_text.table([("  a", "b", "c"), ("d", "e", "")]) == "  a   b   c\n  d   e\n"
    assert comparison_text.table([("a", "b", "c")]) == "a   b   c\n"
    assert comparison_text.table([]) == ""
    lines = comparison_text.table([("a", "b", " ".join("w" * 60))], Screen(60, 24)).splitlines()
    assert lines[0] == f"a  b  {' '.join('w' * 27)}"
