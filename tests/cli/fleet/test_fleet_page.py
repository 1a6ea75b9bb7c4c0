"""The page of a large fleet: the worst clusters, so that a browser can show it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from kubekit.api.meta_v1 import Condition
from runup.cli.fleet.render import fleet_page
from runup.evaluation.results import ClusterResult
from runup.fleet.decide.matrix import matrix
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def result(number: int) -> ClusterResult:
    """Returns a result: the last clusters could not be evaluated, a risk of those before them applies."""
    kind = FAILED if number >= 1400 else COMPLETED
    done = Condition(type=kind, status="True", reason="R", message="it is empty")
    risk = Risk(name="Ack", applies="True", accepted=False, message="m", url="", severity="warning")
    risks = (risk,) if 1000 <= number < 1400 else ()
    findings = Findings(source="1", target="2", conditions=(done,), risks=risks)
    return ClusterResult(name=f"c{number:04}", findings=findings)


@pytest.mark.parametrize(("clusters", "first"), [(1000, "c0000"), (1500, "c1400")])
def test_a_large_fleet_shows_its_worst_clusters(clusters: int, first: str) -> None:
    """And says where the others are; a smaller one shows all, by name."""
    results = [result(number) for number in range(clusters)]
    page = str(fleet_page.page(matrix((each.name, each.findings) for each in results), results, NOON))
    table = page[page.index("Every cluster, and what it came to") :].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">(c\d+)</th>', table)
    assert (rows[0], len(rows)) == (first, 1000)
    assert ("The table has the 1000 worst clusters" in page) is (clusters > 1000)
    assert ("c1000, c1001" in page) is (clusters > 1000)
    assert ("and 200 more" in page) is (clusters > 1000)
