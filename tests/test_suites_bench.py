"""How the outcomes of other projects' tests are read and counted."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from bench.suites.__main__ import as_text, counted
from bench.suites.obtain import Unavailable, source_distribution
from bench.suites.run import FAILED, PASSED, SKIPPED, Outcome, ginkgo_outcomes, go_outcomes, junit_outcomes
from bench.suites.table import PythonSuite


def test_reads_the_report_of_ginkgo() -> None:
    """A failure of a node around the specs counts; one that passes does not."""
    failure = {"Message": "\x1b[31mExpected\x1b[0m\n  <int>: 1"}
    specs = [
        {"ContainerHierarchyTexts": ["Client"], "LeafNodeType": "It", "LeafNodeText": "gets", "State": "passed"},
        {"ContainerHierarchyTexts": ["Client"], "LeafNodeType": "It", "LeafNodeText": "lists", "State": "timedout",
         "Failure": failure},
        {"ContainerHierarchyTexts": None, "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "failed",
         "Failure": {"Message": "no server"}},
        {"ContainerHierarchyTexts": None, "LeafNodeType": "AfterSuite", "LeafNodeText": "", "State": "passed"},
        {"ContainerHierarchyTexts": [], "LeafNodeType": "It", "LeafNodeText": "waits", "State": "pending"},
    ]  # fmt: skip
    assert list(ginkgo_outcomes([{"SpecReports": specs}, {"SpecReports": None}], "client")) == [
        Outcome("client Client gets", PASSED),
        Outcome("client Client lists", FAILED, "Expected\n<int>: 1"),
        Outcome("client", FAILED, "no server"),
        Outcome("client waits", SKIPPED),
    ]


def test_reads_the_events_of_go() -> None:
    """A test with subtests is counted by them."""
    events: list[dict[str, object]] = [
        {"Action": "run", "Test": "TestApply"},
        {"Action": "output", "Test": "TestApply/twice", "Output": "    apply.go:1: changed\n"},
        {"Action": "fail", "Test": "TestApply/twice"},
        {"Action": "pass", "Test": "TestApply/once"},
        {"Action": "fail", "Test": "TestApply"},
        {"Action": "fail"},
    ]
    assert list(go_outcomes(events, "ssa")) == [
        Outcome("ssa TestApply/twice", FAILED, "apply.go:1: changed"),
        Outcome("ssa TestApply/once", PASSED),
    ]


def test_reads_a_junit_report() -> None:
    cases = '<a><s><testcase classname="m" name="a"/><testcase classname="m" name="b"><error message="no"/></testcase>'
    report = ElementTree.fromstring(f'{cases}<testcase classname="m" name="c"><skipped/></testcase></s></a>')
    assert list(junit_outcomes(report)) == [
        Outcome("m a", PASSED),
        Outcome("m b", FAILED, "no"),
        Outcome("m c", SKIPPED),
    ]


def test_a_suite_without_tests_fails() -> None:
    """For example, a source distribution that has its tests no longer."""
    assert counted([], {})["failed"] == {"": "no test ran"}


def test_separates_explained_failures() -> None:
    outcomes = [Outcome("a", PASSED), Outcome("runs a pod", FAILED, "timeout"), Outcome("b", FAILED, "409")]
    result = {"version": "v1"} | counted(outcomes, {"pod": "needs containers that run"})
    assert result == {
        "version": "v1", "passed": 1, "skipped": 0, "explained": {"runs a pod": "needs containers that run"},
        "failed": {"b": "409"},
    }  # fmt: skip
    assert as_text("kopf", result).splitlines() == [
        "kopf v1: 1 of 3 passed, 0 skipped",
        "  explained: runs a pod: needs containers that run",
        "  failed: b: 409",
    ]


def test_a_distribution_without_its_tests_is_unavailable(tmp_path: Path) -> None:
    """pytest would only report that no test ran, as for lightkube 1.0.1."""
    (tmp_path / "src" / "lightkube-1").mkdir(parents=True)
    suite = PythonSuite(version="1", tests=("e2e-tests",))
    with pytest.raises(Unavailable, match="the source distribution has no e2e-tests"):
        source_distribution("lightkube", suite, tmp_path)
