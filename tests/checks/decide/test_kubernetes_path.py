"""From one minor version of Kubernetes to another: which versions, in which steps, and which risks each step meets."""

from __future__ import annotations

import sys

import pytest
from msgspec.structs import replace
from tests.factories import context, node, snapshot

from kubekit.error_types import Terminal
from kubekit.lang import yaml
from kubekit.rules.version_skew import allowed_skew, is_kubernetes, version_of
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.kubernetes_path import (
    ATTACHED_BY_CONTROL_PLANE,
    contexts_on_the_way,
    steps,
    update_of_kubernetes,
    with_findings_on_the_way,
)
from runup.checks.decide.model import Applies, Check, Context, Finding
from runup.checks.decide.snapshots import snapshot_of
from runup.report.report import ReportedResource

CHECK = Check(name="A", component="a", reads=(), run=lambda _snapshot, _context: ())
POD, CRD = ReportedResource(kind="Pod", name="p"), ReportedResource(kind="CustomResourceDefinition", name="c")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.34.2", "1.34.2"),
        ("1.36", "1.36.0"),
        ("v1.31.4-eks-9bbb7d2", "1.31.4"),
        ("v1.33.5-gke.1080000", "1.33.5"),
        ("v1.34.2+k3s1", "1.34.2"),
        ("v1.32.0-alpha.1.100+abc", "1.32.0"),
        ("soon", None),
        ("", None),
        ("1.", None),
        ("1.36x", None),
        ("v1.034.1", None),
    ],
)
def test_versions(text: str, version: str | None) -> None:
    """A suffix of a distribution is no pre-release, which would be older."""
    assert (str(found) if (found := version_of(text)) else None) == version


@pytest.mark.parametrize(
    ("running", "source", "target", "expected"),
    [
        pytest.param("v1.34.2+k3s1", "", "", ("1.34.2", "1.35.0"), id="the next minor by default"),
        pytest.param("v1.34.2", "", "1.36", ("1.34.2", "1.36.0"), id="a minor"),
        pytest.param("v1.34.2", "", "v1.34.5", ("1.34.2", "1.34.5"), id="a patch"),
        pytest.param("v1.34.2", "", "1.33", ("1.34.2", "1.33.0"), id="back to the minor before"),
        pytest.param("v1.34.2", "1.33.1", "1.34", ("1.33.1", "1.34.0"), id="another source"),
    ],
)
def test_source_and_target(running: str, source: str, target: str, expected: tuple[str, str]) -> None:
    """The version on the command line counts, otherwise the server's."""
    update = update_of_kubernetes(running, source, target)
    assert (str(update.source), str(update.target)) == expected


@pytest.mark.parametrize(
    ("running", "target", "words"),
    [
        pytest.param("v1.34.2", "1.34", "is at 1.34.2 already", id="the minor that runs"),
        pytest.param("v1.34.2", "1.34.2", "is at 1.34.2 already", id="the version that runs"),
        pytest.param("v1.34.2", "1.32", "the only way back is to the minor version before", id="two back"),
        pytest.param("v1.34.2", "1.34.1", "the only way back is to the minor version before", id="an earlier patch"),
        pytest.param("v1.34.2", "5.1.0", "no ClusterVersion", id="a release of OpenShift"),
        pytest.param("v1.34.2", "next", "give it with --to", id="no version"),
        pytest.param("v1.34.2", "1.036", "give it with --to", id="a leading zero"),
        pytest.param("v1.34.2", "1.99", "more than 20 minor versions", id="too far"),
        pytest.param(
            "",
            "1.36",
            "the source version of Kubernetes is not known; give it with --from",
            id="nobody knows what runs",
        ),
    ],
)
def test_what_leads_nowhere(running: str, target: str, words: str) -> None:
    """With the way out."""
    with pytest.raises(Terminal, match=words):
        update_of_kubernetes(running, "", target)


def test_whose_versions_they_are() -> None:
    """OpenShift's have begun with 3 and above."""
    assert [is_kubernetes(text) for text in ("1.36", "v1.36.2", "4.16.0", "")] == [True, True, False, False]


def test_how_far_kubelets_may_be_behind() -> None:
    """Three since 1.25, two before (https://kubernetes.io/releases/version-skew-policy/#kubelet)."""
    assert [allowed_skew(minor) for minor in (24, 25, 34)] == [2, 3, 3]


def update(source: str, target: str) -> Context:
    """The context of an update of Kubernetes."""
    return replace(context(source, target, target), cluster=ClusterKind.KUBERNETES)


def plan(source: str, target: str, *kubelets: str) -> list[str]:
    """The steps in words."""
    nodes = [node(f"n{number}", kubelet=kubelet) for number, kubelet in enumerate(kubelets)]
    return [f"{each.part} {each.version}" for each in steps(snapshot(*nodes), update(source, target), ())]


@pytest.mark.parametrize(
    ("source", "target", "kubelets", "expected"),
    [
        pytest.param("1.34.2", "1.35.0", ("v1.34.2",), ["control plane 1.35", "nodes 1.35"], id="one minor"),
        pytest.param("1.34.2", "1.34.5", ("v1.34.2",), ["control plane 1.34", "nodes 1.34"], id="a patch"),
        pytest.param(
            "1.34.2",
            "1.37.0",
            ("v1.34.2", "v1.34.0"),
            ["control plane 1.35", "control plane 1.36", "control plane 1.37", "nodes 1.37"],
            id="three minors: kubelets stay behind",
        ),
        pytest.param(
            "1.34.2",
            "1.36.0",
            ("v1.32.2", "v1.34.0"),
            ["control plane 1.35", "nodes 1.35", "control plane 1.36", "nodes 1.36"],
            id="an old kubelet goes before the step that would leave it too far behind",
        ),
        pytest.param(
            "1.34.2",
            "1.35.0",
            ("v1.31.2",),
            ["nodes 1.34", "control plane 1.35", "nodes 1.35"],
            id="as old as it may be",
        ),
        pytest.param(
            "1.25.1",
            "1.27.0",
            ("v1.24.9",),
            ["control plane 1.26", "nodes 1.26", "control plane 1.27", "nodes 1.27"],
            id="a kubelet of before 1.25",
        ),
        pytest.param("1.34.2", "1.33.0", ("v1.34.2",), ["nodes 1.33", "control plane 1.33"], id="the way back"),
        pytest.param("1.34.2", "1.35.0", (), ["control plane 1.35", "nodes 1.35"], id="no node says what it runs"),
    ],
)
def test_steps(source: str, target: str, kubelets: tuple[str, ...], expected: list[str]) -> None:
    """The control plane one minor at a time, kubelets up to three behind."""
    assert plan(source, target, *kubelets) == expected


def outcome(*findings: Finding) -> CheckOutcome:
    """What a check found."""
    return CheckOutcome(check=CHECK, result="Applies", findings=findings)


def test_each_risk_is_at_the_step_that_meets_it_first() -> None:
    """Findings about nodes belong to the next node update; old kubelets to the step that refuses them."""
    stored = Finding(name="Stored", message="m", resources=(CRD,))
    later = Finding(name="Later", message="m", resources=(CRD,))
    drain = Finding(name="Drain", message="m", resources=(POD,))
    skew = Finding(name="KubeletSkew", message="m", resources=(ReportedResource(kind="Node", name="n"),))
    whole = update("1.34.2", "1.36.0")
    (between,) = contexts_on_the_way(whole)
    assert (str(between.target), between.target_kubernetes) == ("1.35.0", "1.35.0")
    planned = steps(
        snapshot(node("n", kubelet="v1.32.1")),
        whole,
        (outcome(stored, later, drain, skew),),
        [(between, (outcome(stored, drain),))],
    )
    assert [(each.part, each.version, each.risks) for each in planned] == [
        ("control plane", "1.35", ("Stored",)),
        ("nodes", "1.35", ("Drain",)),
        ("control plane", "1.36", ("KubeletSkew", "Later")),
        ("nodes", "1.36", ()),
    ]


def test_what_only_a_step_in_between_meets_is_reported() -> None:
    """The plan is shown even if the last step is Unknown; findings that only concern the target are left out."""
    whole = update("1.34.2", "1.36.0")
    (between,) = contexts_on_the_way(whole)
    unknown = Finding(name="AUnknown", message="m", applies=Applies.UNKNOWN)
    earlier = [(between, (outcome(Finding(name="A", message="m")),))]
    extended = with_findings_on_the_way((replace(outcome(unknown), result="Unknown"),), earlier)
    assert [(each.result, [found.name for found in each.findings]) for each in extended] == [
        ("Applies", ["AUnknown", "A"])
    ]
    planned = steps(snapshot(), whole, extended, earlier)
    assert [each.risks for each in planned] == [("A",), ("AUnknown",), ()]
    ended = replace(CHECK, name="TargetSupportEnded")
    of_end = CheckOutcome(check=ended, result="Applies", findings=(Finding(name="TargetSupportEnded", message="m"),))
    last = CheckOutcome(check=ended, result="Clear")
    assert with_findings_on_the_way((last,), [(between, (of_end,))]) == (last,)


def test_volumes_that_the_control_plane_attaches_are_at_its_step() -> None:
    """Volumes that only the kubelet mounts are at the step of the nodes."""
    whole = update("1.34.2", "1.35.0")
    volume = ReportedResource(kind="PersistentVolume", name="v")
    of_nodes = Finding(name="Mounted", message="m", resources=(volume,))
    attached = Finding(name="Attached", message="m", resources=(volume,), reason=ATTACHED_BY_CONTROL_PLANE)
    planned = steps(snapshot(), whole, (outcome(of_nodes, attached),))
    assert [each.risks for each in planned] == [("Attached",), ("Mounted",)]


OF_KUBERNETES = [
    check
    for check in CHECKS
    if check.applies_to(update("1.34.2", "1.35.0")) and hasattr(sys.modules[check.run.__module__], "EXAMPLE")
]


@pytest.mark.parametrize("check", OF_KUBERNETES, ids=lambda check: check.name)
def test_no_finding_of_a_step_is_lost(check: Check) -> None:
    """Each check, with the objects of its example, on every step of ways over four minor versions."""
    known = snapshot_of(check.reads, yaml.load_all(sys.modules[check.run.__module__].EXAMPLE))
    for source in range(23, 37):
        whole = update(f"1.{source}.1", f"1.{source + 4}.0")
        earlier = [(step, (run_check(check, known, step),)) for step in contexts_on_the_way(whole)]
        (last,) = with_findings_on_the_way((run_check(check, known, whole),), earlier)
        planned = steps(known, whole, (last,), earlier)
        assert {name for each in planned for name in each.risks} == {finding.name for finding in last.findings}
        if check.name in {"RollbackNotServed", "TargetSupportEnded"}:
            continue
        for step, (alone,) in earlier:
            for finding in alone.findings:
                (met,) = [each for each in planned if finding.name in each.risks]
                minor = int(met.version.partition(".")[2])
                assert met.part == "nodes" or minor <= step.target.minor, (step.target, finding)
