"""The results of a fleet wait in a file: each comes back at its index, whatever the order in which they arrived."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import Terminal
from runup.evaluation.results import ClusterResult
from runup.fleet.control.result_spool import ResultSpool
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED


def result(name: str) -> ClusterResult:
    """Returns a result with a risk whose message may be any text."""
    done = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")
    risk = Risk(name="Ack", applies="True", accepted=False, message="\0\udcff\u2028" * 100, url="")
    return ClusterResult(name=name, findings=Findings(source="1", target="2", conditions=(done,), risks=(risk,)))


def test_returns_results_in_the_order_of_their_indexes() -> None:
    """Also when one is read while others are still to come."""
    spool = ResultSpool(3)
    for index in (2, 0, 1):
        spool.put(index, result(f"c{index}"))
        assert spool[index] == result(f"c{index}")
    assert list(spool) == spool[:] == [result(f"c{index}") for index in range(3)]


def test_names_the_temporary_folder_that_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable that names another one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(Terminal, match=r"temporary folder .*/none: No such file or directory; set TMPDIR"):
        ResultSpool(1)
