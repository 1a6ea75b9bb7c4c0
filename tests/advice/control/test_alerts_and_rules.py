"""A real Prometheus with the managing operator: an alert is a risk while it fires, a rule while its query says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.clocks import Hurried
from tests.operator import operator_world
from tests.operator.operator_world import cluster, running
from tests.prometheus import needed, prometheus
from tests.servers import eventually

from kubekit.api.conditions import find
from runup.api.config_v1 import ClusterVersion, ConditionalUpdate

pytestmark = pytest.mark.slow

# A minute takes four seconds.
FASTER = 15
RULE = {
    "alert": "BadNews",
    "expr": "bad > 0",
    "labels": {"severity": "critical"},
    "annotations": {"summary": "The news is bad", "description": "Bad is {{ $value }}."},
}


def _conditional(version: ClusterVersion, name: str) -> ConditionalUpdate | None:
    return next((update for update in version.status.conditional_updates if update.release.version == name), None)


def _recommended(version: ClusterVersion, name: str) -> str:
    update = _conditional(version, name)
    condition = find(update.conditions, "Recommended") if update else None
    return condition.status if condition else ""


def _available(version: ClusterVersion) -> set[str]:
    return {release.version for release in version.status.available_updates or ()}


@needed
async def test_an_alert_comes_is_accepted_and_goes(tmp_path: Path) -> None:
    """It takes the target out of the recommended ones, acceptance brings it back, and so does the alert's end."""
    (tmp_path / "prometheus").mkdir()
    with prometheus(tmp_path / "prometheus", [RULE]) as real:
        real.series["bad"] = 0
        async with cluster(tmp_path) as (world, manager):
            made = manager(prometheus_url=real.url, clock=Hurried(FASTER), leader_elect=False)
            async with running(made):
                await world.until(lambda v: "5.0.3" in _available(v))

                real.series["bad"] = 7
                eventually(lambda: "BadNews" in real.firing(), "the alert fires")
                version = await world.until(lambda v: _recommended(v, "5.0.3") == "False")
                assert "5.0.3" not in _available(version)
                risk = next(risk for risk in version.status.conditional_update_risks if risk.name == "BadNews")
                applies = risk.conditions[0]
                assert (applies.status, applies.reason) == ("True", "Alert:firing")
                assert applies.message == (
                    "critical alert BadNews firing, suggesting significant cluster issues worth investigating. The "
                    "news is bad. The alert description is: Bad is 7. <alert does not have a runbook_url annotation>"
                )

                await world.ask({"acceptRisks": [{"name": "BadNews"}]})
                version = await world.until(lambda v: _recommended(v, "5.0.3") == "True")
                assert "5.0.3" in _available(version)

                real.series["bad"] = 0
                eventually(lambda: not real.firing(), "the alert is resolved")
                version = await world.until(lambda v: not v.status.conditional_update_risks)
                assert _conditional(version, "5.0.3") is None
                assert "5.0.3" in _available(version)


@needed
async def test_a_rule_follows_its_query(tmp_path: Path, monkeypatch: Any) -> None:
    """Absent is Unknown, 1 applies, 0 does not; each is seen without anybody asking."""
    risk = {
        "name": "SlowDisk",
        "message": "Disks are slow.",
        "url": "https://example.com/slow",
        "matchingRules": [{"type": "PromQL", "promql": {"promql": "max(slow)"}}],
    }
    graph = {
        **operator_world.GRAPH,
        "edges": [],
        "conditionalEdges": [{"edges": [{"from": "5.0.0", "to": "5.0.3"}], "risks": [risk]}],
    }
    monkeypatch.setattr(operator_world, "GRAPH", graph)
    (tmp_path / "prometheus").mkdir()
    with prometheus(tmp_path / "prometheus", []) as real:
        async with cluster(tmp_path) as (world, manager):
            made = manager(prometheus_url=real.url, clock=Hurried(FASTER), leader_elect=False)
            async with running(made):
                version = await world.until(
                    lambda v: any("is 0" in r.conditions[0].message for r in v.status.conditional_update_risks)
                )
                assert _recommended(version, "5.0.3") == "Unknown"
                real.series["slow"] = 1
                await world.until(lambda v: _recommended(v, "5.0.3") == "False")
                real.series["slow"] = 0
                version = await world.until(lambda v: _recommended(v, "5.0.3") == "True")
                assert "5.0.3" in _available(version)
