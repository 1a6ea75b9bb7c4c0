"""Tests the comment on a pull request: risks that are new, grown, gone or unknown since a baseline."""

from __future__ import annotations

from typing import Any

from tests.cli.preflight.render.samples import risk

from kubekit.api.meta_v1 import Condition
from runup.advice.decide.acceptance import Growth
from runup.cli.preflight.render.report_changes import markdown
from runup.evaluation.baseline import Since
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED

DONE = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")
PAUSED_IS_GONE = Since(gone=("Paused-x",))
LOST = Condition(type=FAILED, status="True", reason="NotJudged", message="refused")


def cluster_result(name: str, *risks: Risk, since: Since | None = None, **more: Any) -> ClusterResult:
    """A cluster's result."""
    findings = Findings(source="4.15.0", target="4.16.0", conditions=(DONE,), risks=risks, **more)
    return ClusterResult(name=name, findings=findings, since=since or Since())


def test_what_is_new_what_has_grown_and_what_is_gone() -> None:
    """The gravest first, with the clusters; what is accepted comes with its reason, and a name is no markup."""
    known = {"accepted": True, "because": "known: it is in the baseline last.json"}
    grown = Growth(added=("Node n2",), more=3, accepted_for=1, baseline="last.json")
    results = [
        cluster_result("a", risk("Skew", "1 node is old."), risk("Ack", "so", **known), since=PAUSED_IS_GONE),
        cluster_result(
            "b_*<b>",
            risk("Skew", "2 nodes are old.", grown=grown),
            risk("Lost", "so", "critical", fix="Add one."),
            since=PAUSED_IS_GONE,
        ),
        cluster_result("c", risk("NetUnknown", "?", applies="Unknown"), risk("Ack", "so", accepted=True)),
    ]
    assert markdown(results, "last.json").splitlines() == [
        "## Preflight of 4.16.0: 3 new, 1 grown, 1 gone",
        "",
        "Since last.json, for 3 clusters.",
        "",
        "- [ ] new: **Lost** (critical): 1 of 3: b\\_\\*\\<b\\>",
        "  so",
        "  Fix: Add one.",
        "- [ ] new: **Skew** (warning): 1 of 3: a",
        "  1 node is old.",
        "- [ ] grown: **Skew** (warning): 1 of 3: b\\_\\*\\<b\\>",
        "  b\\_\\*\\<b\\>: now also Node n2, 3 more",
        "  2 nodes are old.",
        "- [ ] new: **NetUnknown** is unknown: 1 of 3: c",
        "- [x] gone: Paused-x: 2 of 3: a, b\\_\\*\\<b\\>",
        "- [x] accepted: Ack: 2 of 3: a, c (known: it is in the baseline last.json)",
    ]


def test_what_could_not_be_told_is_not_gone() -> None:
    """And nothing is gone of a cluster that was not evaluated."""
    results = [
        cluster_result("a", since=Since(untold=("Paused-x",))),
        cluster_result("b", since=Since(untold=("Paused-x",))),
        ClusterResult(name="c", findings=Findings(source="", target="", conditions=(LOST,))),
    ]
    assert markdown(results, "f").splitlines() == [
        "## Preflight of 4.16.0: 0 new, 0 gone, 1 could not be evaluated",
        "",
        "Since f, for 3 clusters.",
        "",
        "- [ ] not reported this time, so perhaps not gone: Paused-x: 2 of 3: a, b",
        "- [ ] could not be evaluated: **c**: refused",
    ]


def test_one_cluster() -> None:
    """It is not named on each line."""
    text = markdown([cluster_result("today", risk("Skew", "so."), since=Since(gone=("Ack",)))], "f")
    assert text.splitlines()[4:] == ["- [ ] new: **Skew** (warning)", "  so.", "- [x] gone: Ack"]
