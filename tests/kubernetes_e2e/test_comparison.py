"""How the outcomes of Kubernetes' end-to-end tests on two servers become a report."""

from __future__ import annotations

from typing import Any

from bench.real.kubernetes_e2e import REAL, SANDBOX, Outcome, compared, outcome_of

GOOD, BAD = Outcome(True, "", 1.0), Outcome(False, "gone", 2.0)


def test_what_the_real_server_passes_is_expected() -> None:
    """A test that fails on both, or runs on the sandbox alone, shows no gap of the sandbox."""
    real = {"both": GOOD, "lost": GOOD, "hopeless": BAD}
    report = compared({REAL: real, SANDBOX: {"both": GOOD, "lost": BAD, "hopeless": BAD, "more": BAD}})
    assert report == {
        "tests": 3,
        "pass on kube-apiserver": 2,
        "pass on kubesandbox": 1,
        "fail on the sandbox alone": {"lost": "gone"},
        "fail on kube-apiserver": ["hopeless"],
        "seconds": {REAL: 4, SANDBOX: 7},
    }


def test_without_the_real_server_all_are_expected() -> None:
    """Each failure is reported."""
    report = compared({SANDBOX: {"a": GOOD, "b": BAD}})
    assert (report["pass on kubesandbox"], report["fail on the sandbox alone"]) == (1, {"b": "gone"})


def test_nothing_ran_on_the_real_server() -> None:
    """Then nothing is expected of the sandbox; alone it is reported as well."""
    report = compared({REAL: {}, SANDBOX: {"a": GOOD, "b": BAD}})
    assert (report["tests"], report["fail on the sandbox alone"]) == (0, {})
    assert compared({REAL: {}})["tests"] == 0


def test_a_failure_is_told_by_its_first_lines() -> None:
    """As ginkgo reports it, in nanoseconds."""
    lines = "\n\n".join(f"line {at}" for at in range(9))
    spec: dict[str, Any] = {"State": "failed", "RunTime": 1_500_000_000, "Failure": {"Message": lines}}
    found = outcome_of(spec)
    assert (found.passed, found.seconds) == (False, 1.5)
    assert found.message.splitlines() == [f"line {at}" for at in range(6)]
    assert outcome_of({"State": "passed", "RunTime": 0}) == Outcome(True, "", 0.0)
