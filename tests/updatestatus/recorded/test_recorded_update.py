"""A rolling update of three real nodes, replayed: `upgrade status` reports what the API server answered at each step.

`tests/realcluster/update_record.py` made the record on a kube-apiserver, kubelets and kube-proxies of Kubernetes 1.34,
of which the kubelets before the update were linked as v1.33.8. The facts of each step were read without runup's rules.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runup.updatestatus.control import status_files
from runup.updatestatus.decide.read_status import Report

JSON = dict[str, Any]
STEPS: list[JSON] = json.loads(Path(__file__).with_name("rolling-update.json").read_text())
NEWER = "v1.34.4"
LATER = datetime(2027, 1, 1, tzinfo=UTC)
BY_STEP = pytest.mark.parametrize("step", STEPS, ids=[step["step"] for step in STEPS])


def replayed(step: JSON, folder: Path) -> Report:
    """The report about the dump of a step, at the dump's own time."""
    for name, content in step["files"].items():
        (folder / name).write_text(json.dumps(content))
    return status_files.dump(str(folder), LATER, None).report()


def test_the_record_has_every_phase_of_an_update() -> None:
    """Otherwise the other tests would show nothing."""
    facts = [
        (each["kubelet"], each["ready"], bool(each["cordoned"])) for step in STEPS for each in step["nodes"].values()
    ]
    assert {
        ("v1.33.8", "True", True),
        ("v1.33.8", "Unknown", True),
        (NEWER, "True", True),
        (NEWER, "True", False),
    } <= set(facts)
    assert any(step["refused"] for step in STEPS)


@BY_STEP
def test_versions_and_counts_are_those_of_the_api(step: JSON, tmp_path: Path) -> None:
    """Each node has its kubelet's version; a node counts as done once it has it and takes pods again."""
    report = replayed(step, tmp_path)
    rows = {row.name: row for pool in report.pools for row in pool.rows}
    assert {name: row.version for name, row in rows.items()} == {
        name: each["kubelet"] for name, each in step["nodes"].items()
    }
    cordoned = {name for name, node in _nodes(step).items() if node["spec"].get("unschedulable")}
    done = {name for name, each in step["nodes"].items() if each["kubelet"] == NEWER} - cordoned
    assert {name for name, row in rows.items() if row.phase == "Updated"} == done
    assert {name for name, row in rows.items() if row.phase in ("Draining", "Updating")} == cordoned
    assert sum(pool.done for pool in report.pools) == len(done)
    assert report.is_updating == (len(done) < len(step["nodes"]))


@BY_STEP
def test_nothing_but_the_budget_needs_attention(step: JSON, tmp_path: Path) -> None:
    """The refused eviction is reported since the cordon, and no step of a healthy update raises an alarm."""
    report = replayed(step, tmp_path)
    found = [row for row in report.health if row.level != "Info"]
    assert [row.check for row in found] == ["DrainBlocked"] * bool(step["refused"])
    for row in found:
        [cordoned] = [each["cordoned"] for each in step["nodes"].values() if each["cordoned"]]
        assert row.since == datetime.fromisoformat(cordoned)
        assert all(f"shop/{pod}" in row.summary for pod in step["refused"])


def _nodes(step: JSON) -> dict[str, JSON]:
    return {node["metadata"]["name"]: node for node in step["files"]["nodes.json"]["items"]}
