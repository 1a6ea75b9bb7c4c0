"""The preflight of a hosted cluster says what only its management cluster knows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.test_alerts_of_dumps import CLUSTER

from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "hosted"),
    [
        pytest.param({"controlPlaneTopology": "External"}, True, id="hosted"),
        pytest.param({"controlPlaneTopology": "HighlyAvailable"}, False, id="ordinary"),
        pytest.param({"controlPlaneTopology": 3}, False, id="not decodable"),
        pytest.param(None, False, id="no Infrastructure"),
    ],
)
def test_warns_about_what_is_on_the_management_cluster(tmp_path: Path, status: Any, hosted: bool) -> None:
    """The note names the command that reports it there."""
    (tmp_path / "version.json").write_text(json.dumps(CLUSTER))
    if status is not None:
        found = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Infrastructure",
            "metadata": {"name": "cluster"},
            "status": status,
        }
        (tmp_path / "infrastructure.json").write_text(json.dumps(found))
    notes = evaluate_dump(tmp_path, RequestedUpdate(target="5.1.0"), NOW).notes
    assert any("`runup upgrade status --hosted-clusters` reports them there" in note for note in notes) is hosted
