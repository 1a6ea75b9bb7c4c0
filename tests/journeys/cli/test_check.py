"""`runup check` as typed, on clusters with an open and with a closed gate."""

from __future__ import annotations

import json

import pytest
from tests.journeys.conftest import Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def _results(sandbox: Sandbox) -> tuple[int, dict[str, str], dict[str, str]]:
    done = sandbox.run("check", "-o", "json")
    rows = json.loads(done.out)["checks"]
    return done.code, {row["name"]: row["result"] for row in rows}, {row["name"]: row["message"] for row in rows}


@pytest.mark.xdist_group("clean")
def test_a_cluster_that_can_be_preflighted(clean: Sandbox) -> None:
    """Nothing is a problem, the registry answers, and nothing was changed."""
    before = clean.desired_update()
    code, results, _ = _results(clean)
    assert "problem" not in results.values()
    assert {results[name] for name in ("server", "cluster", "preflight field", "registry", "rights")} == {"ok"}
    assert code in (0, 3)
    assert clean.desired_update() == before


@pytest.mark.xdist_group("pruned")
def test_a_cluster_whose_gate_is_closed(pruned: Sandbox) -> None:
    """The field and the gate are problems, each with its reason."""
    code, results, messages = _results(pruned)
    assert code == 2
    assert results["preflight field"] == results["gate ClusterUpdatePreflight"] == "problem"
    assert "mode" in messages["preflight field"]
    assert "not enabled for version 4.22.0" in messages["gate ClusterUpdatePreflight"]
