"""The alerts that a must-gather has: risks of the update, and Unknown where they were not collected."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate

JSON = dict[str, Any]
CLUSTER = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version"},
    "spec": {"clusterID": "0"},
    "status": {
        "desired": {"version": "5.0.0"},
        "history": [{"state": "Completed", "version": "5.0.0", "startedTime": "2026-10-01T00:00:00Z", "image": "i"}],
    },
}
NOW = datetime(2026, 11, 30, tzinfo=UTC)
PLACE = "monitoring/prometheus"
BAD = {"labels": {"alertname": "Bad", "severity": "critical"}, "annotations": {"summary": "Bad."}, "state": "firing"}
NODE = {"labels": {"alertname": "KubeNodeNotReady", "severity": "warning"}, "annotations": {}, "state": "firing"}
MINOR = {"labels": {"alertname": "Other", "severity": "warning"}, "annotations": {}, "state": "firing"}


def must_gather(folder: Path, files: JSON, *, is_tree: bool = True) -> Path:
    """A must-gather with a ClusterVersion and these files of Prometheus; or a folder of objects."""
    tree = folder / "must-gather.local" / "image"
    place = tree / "cluster-scoped-resources/config.openshift.io/clusterversions" if is_tree else tree
    place.mkdir(parents=True)
    (place / "version.yaml").write_text(json.dumps(CLUSTER))
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def alerts(*listed: JSON) -> JSON:
    """Prometheus' answer to `/api/v1/alerts`."""
    return {"status": "success", "data": {"alerts": [*listed]}}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({f"{PLACE}/alerts.json": alerts(BAD, NODE, MINOR)}, {"Bad", "KubeNodeNotReady"}, id="alerts"),
        pytest.param(
            {f"{PLACE}/rules.json": {"data": {"groups": [{"rules": [{"alerts": [BAD]}]}]}}}, {"Bad"}, id="rules"
        ),
        pytest.param({f"{PLACE}/alerts.json": alerts({**BAD, "state": "pending"})}, set(), id="pending"),
        pytest.param({f"{PLACE}/alerts.json": alerts()}, set(), id="none fires"),
        pytest.param({}, {"AlertsUnknown"}, id="not collected"),
        pytest.param({f"{PLACE}/alerts.json": "nonsense"}, {"AlertsUnknown"}, id="not JSON"),
    ],
)
def test_alerts_of_a_must_gather(files: JSON, expected: set[str], tmp_path: Path) -> None:
    evaluated = evaluate_dump(must_gather(tmp_path / "mg", files), RequestedUpdate(target="5.2.0"), NOW)
    assert evaluated.report is not None
    found = {risk.name for risk in evaluated.report.risks}
    assert found & {"Bad", "KubeNodeNotReady", "Other", "AlertsUnknown"} == expected


def test_other_dumps_are_not_expected_to_have_alerts(tmp_path: Path) -> None:
    folder = must_gather(tmp_path / "mg", {}, is_tree=False)
    evaluated = evaluate_dump(folder / "must-gather.local" / "image", RequestedUpdate(target="5.2.0"), NOW)
    assert evaluated.report is not None
    assert "AlertsUnknown" not in {risk.name for risk in evaluated.report.risks}
