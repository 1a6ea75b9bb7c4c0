"""A report names its cluster and the risks that are accepted, since it may be kept and read elsewhere."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.preflight.control.test_report_store import REPORT

from runup.advice.decide.acceptance import Acceptance
from runup.evaluation.evaluate import EvaluatedCluster
from runup.report.report import ReportedRisk, encode, read

UID = "6f2c1b0e-6f0b-4f0e-9c53-1b1f2f0a7c11"
RISKS = tuple(ReportedRisk(name=name, message="so", applies="True", url="https://e.example") for name in ("A", "B"))


@pytest.mark.parametrize(
    ("known_id", "accepted", "names"),
    [
        pytest.param(UID, ("B", "Gone"), ("B",), id="a risk of the report and another one"),
        pytest.param("", ("B",), ("B",), id="a cluster without a known ID"),
        pytest.param(UID, (), (), id="no acceptance"),
    ],
)
def test_records_accepted_risks(known_id: str, accepted: tuple[str, ...], names: tuple[str, ...]) -> None:
    """The kept form is that of 0.1.0, whose operator stores the same field."""
    report = replace(REPORT, risks=RISKS)
    records = {name: Acceptance(name=name) for name in accepted}
    evaluated = EvaluatedCluster(where="a", report=report, known_id=known_id, accepted=records).identified()
    assert evaluated.report is not None
    kept = read(encode(evaluated.report))
    assert (kept.accepted, kept.cluster_id) == (names, known_id)
