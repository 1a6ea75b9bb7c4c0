"""Which clusters and risks of a fleet fit a query, in which order and groups; nothing unknown is filtered away."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.fleet.decide.test_matrix import failed, findings_with, risk

from runup.checks import risk_pages
from runup.checks.areas import OTHER, area_of, areas
from runup.fleet.decide.selection import FleetRow, Selection, select, selection_of

RESULTS = [
    ("anchor", findings_with(risk("NodeCordoned", severity="info"))),
    ("buoy", findings_with(risk("AdminAck-x", severity="critical"), risk("NodeNotReady", "Unknown"))),
    ("cape", findings_with(risk("NodeCordoned", accepted=True), risk("Gone", "False"))),
    ("dock", failed("it is empty")),
    ("ebb", findings_with()),
]
LABELS = {"anchor": {"env": "test"}, "buoy": {"env": "production", "team": "sea"}, "cape": {"env": "production"}}


def rows(query: Mapping[str, str]) -> list[FleetRow]:
    """The rows of all groups."""
    selected = select(RESULTS, LABELS, selection_of(query, areas()), area_of)
    return [row for _, of_group in selected.groups for row in of_group]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param({}, "dock buoy anchor cape ebb", id="without a result first, then by severity"),
        pytest.param({"sort": "name"}, "anchor buoy cape dock ebb", id="by name"),
        pytest.param({"sort": "state"}, "dock anchor buoy cape ebb", id="by result"),
        pytest.param({"sort": "label"}, "dock ebb cape buoy anchor", id="by labels"),
        pytest.param({"sort": "area"}, "anchor buoy cape dock ebb", id="by area"),
        pytest.param({"severity": "critical"}, "dock buoy", id="critical only"),
        pytest.param({"severity": "warning"}, "dock buoy cape", id="warning or more"),
        pytest.param({"area": "nodes", "sort": "name"}, "anchor buoy cape dock", id="an area"),
        pytest.param({"area": "platform"}, "dock buoy", id="another area"),
        pytest.param({"state": "accepted"}, "dock cape", id="accepted"),
        pytest.param({"state": "unknown"}, "dock buoy", id="unknown"),
        pytest.param({"label": "env=production"}, "buoy cape", id="a label"),
        pytest.param({"label": "env!=production,team"}, "", id="no cluster has such labels"),
        pytest.param({"text": "CORDON"}, "anchor cape", id="a name of a risk"),
        pytest.param({"text": "team=sea"}, "buoy", id="a label as text"),
        pytest.param({"text": "dock"}, "dock", id="a cluster without a result by its name"),
        pytest.param({"severity": "grave", "sort": "name"}, "anchor buoy cape dock ebb", id="an unknown value"),
    ],
)
def test_selects_clusters(query: Mapping[str, str], names: str) -> None:
    """A cluster without a result is never left out for its risks, which nobody knows."""
    assert " ".join(row.name for row in rows(query)) == names


def test_keeps_the_result_of_a_cluster_whose_risks_are_left_out() -> None:
    """A filter narrows what is shown, and makes nothing fine."""
    (row,) = (row for row in rows({"state": "unknown"}) if row.name == "buoy")
    assert [risk.name for risk in row.risks] == ["NodeNotReady"]
    assert row.findings.result.word == "RisksApply"


def test_groups_by_label() -> None:
    """Clusters without the label have a group, too; columns are in the order of gravity."""
    selected = select(RESULTS, LABELS, Selection(group="env"), area_of)
    assert [(label, [row.name for row in of_group]) for label, of_group in selected.groups] == [
        ("env=production", ["buoy", "cape"]),
        ("env=test", ["anchor"]),
        ("no label env", ["dock", "ebb"]),
    ]
    assert selected.risks == ("AdminAck-x", "NodeNotReady", "NodeCordoned")
    assert (selected.omitted, selected.unevaluated) == (0, 1)


def test_names_what_it_ignores() -> None:
    """The problem lists the valid values."""
    assert selection_of({"severity": "grave", "other": "x"}, ()).problems == (
        "severity=grave is not known and was ignored; use one of critical, warning, info",
    )


def test_knows_the_area_of_each_documented_risk() -> None:
    """Risks about the preflight itself are in no area."""
    assert {name for name in risk_pages.names() if area_of(name) == OTHER} == {
        "AlertsUnknown", "PreflightCheckUnknown", "PreflightCheckUnusable", "PreflightInProgress",
        "PreflightIncomplete", "PreflightRisksOmitted", "SomeRisk", "UnnamedRisk", "UpdateRisksOmitted",
    }  # fmt: skip
    assert area_of("MachineConfigPoolPaused-worker") == "nodes"
