"""The comment on a pull request: what is new and what is gone since a baseline, and what nobody can tell."""

from __future__ import annotations

from typing import Any

from tests.cli.preflight.render.samples import risk

from kubekit.api.meta_v1 import Condition
from runup.cli.preflight.render.report_changes import markdown
from runup.evaluation.baseline import Baseline
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED
from runup.report.report import ReportedCheck

DONE = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")
LOST = Condition(type=FAILED, status="True", reason="NotJudged", message="refused")


def cluster_result(name: str, *risks: Risk, **more: Any) -> ClusterResult:
    """A cluster's result."""
    return ClusterResult(
        name=name, findings=Findings(source="4.15.0", target="4.16.0", conditions=(DONE,), risks=risks, **more)
    )


def test_what_is_new_and_what_is_gone() -> None:
    """The gravest first, with the clusters; what is known or accepted is left out, and a name is no markup."""
    results = [
        cluster_result("a", risk("Skew", "1 node is old."), risk("Ack", "so", accepted=True)),
        cluster_result("b_*<b>", risk("Skew", "2 nodes are old."), risk("Lost", "so", "critical", fix="Add one.")),
        cluster_result("c", risk("NetUnknown", "?", applies="Unknown")),
    ]
    known = Baseline("last.json", {"a": {"Ack": "True", "Paused-x": "True"}, "b_*<b>": {"Paused-x": "True"}, "c": {}})
    assert markdown(results, known).splitlines() == [
        "## Preflight of 4.16.0: 3 new, 1 gone",
        "",
        "Since last.json, for 3 clusters.",
        "",
        "- [ ] new: **Lost** (critical): 1 of 3: b\\_\\*\\<b\\>",
        "  so",
        "  Fix: Add one.",
        "- [ ] new: **Skew** (warning): 2 of 3: a, b\\_\\*\\<b\\>",
        "  a: 1 node is old.",
        "- [ ] new: **NetUnknown** could not be told: 1 of 3: c",
        "- [x] gone: Paused-x: 2 of 3: a, b\\_\\*\\<b\\>",
    ]


def test_what_could_not_be_told_is_not_gone() -> None:
    """By the risk that says so, by the check's own result; and nothing is gone of a cluster that was not judged."""
    known = Baseline("f", {name: {"Paused-x": "True", "Old": "False"} for name in "abc"})
    results = [
        cluster_result("a", risk("PausedUnknown", "?", applies="Unknown", accepted=True)),
        cluster_result("b", checks=(ReportedCheck(name="Paused", result="Unknown"),)),
        ClusterResult(name="c", findings=Findings(source="", target="", conditions=(LOST,))),
    ]
    assert markdown(results, known).splitlines() == [
        "## Preflight of 4.16.0: 0 new, 0 gone, 1 could not be judged",
        "",
        "Since f, for 3 clusters.",
        "",
        "- [ ] not told this time, so perhaps not gone: Paused-x: 2 of 3: a, b",
        "- [ ] could not be judged: **c**: refused",
    ]


def test_one_cluster_under_another_name() -> None:
    """As a dump has a new name each day; it is not named on each line."""
    text = markdown([cluster_result("today", risk("Skew", "so."))], Baseline("f", {"yesterday": {"Ack": "True"}}))
    assert text.splitlines()[4:] == ["- [ ] new: **Skew** (warning)", "  so.", "- [x] gone: Ack"]
