"""Pools as an object reports them: the rows of their nodes, and counts where nobody counted."""

from __future__ import annotations

from typing import Any

import pytest

from runup.updatestatus.decide.read_status import PoolReport, report

JSON = dict[str, Any]
TIME = "2026-03-01T10:00:00Z"
TOP = {"total": 0, "updated": 0, "available": 0, "progressing": 0, "outdated": 0, "draining": 0, "excluded": 0}


def conditions_json(**conditions: tuple[str, str]) -> list[JSON]:
    """Conditions, each with its status and reason."""
    return [
        {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": TIME}
        for kind, (status, reason) in conditions.items()
    ]


def node_insight(name: str, **conditions: tuple[str, str]) -> JSON:
    """The insight of a node."""
    ref = {"group": "", "resource": "nodes", "name": name}
    pool = {"group": "machineconfiguration.openshift.io", "resource": "machineconfigpools", "name": "worker"}
    found = {"name": name, "resource": ref, "poolResource": pool, "scopeType": "WorkerPool"}
    return {
        "uid": f"node-{name}",
        "acquiredAt": TIME,
        "type": "Node",
        "node": found | {"version": "4.14.1", "conditions": conditions_json(**conditions)},
    }


def read(*nodes: JSON, omitted: int = 0, updating: str = "") -> tuple[PoolReport, bool]:
    """The pool of these nodes, and whether the cluster is being updated."""
    pool = {
        "name": "worker",
        "resource": {"group": "machineconfiguration.openshift.io", "resource": "machineconfigpools", "name": "worker"},
        "informers": [{"name": "i", "insights": [*nodes]}],
        "omitted": {"nodes": omitted},
    }
    layer = {"conditions": conditions_json(Updating=(updating, "R"))} if updating else {}
    found = report({"status": {"workerPools": [pool], "controlPlane": {"informers": [], **layer}}})
    return found.worker_pools[0], found.is_updating


COMPLETED, PENDING, PAUSED = ("False", "Completed"), ("False", "Pending"), ("False", "Paused")
DRAINING, REBOOTING, UPDATING = ("True", "Draining"), ("True", "Rebooting"), ("True", "Updating")
DONE, TO_COME = node_insight("done", Updating=COMPLETED), node_insight("later", Updating=PENDING)


@pytest.mark.parametrize(
    ("conditions", "assessment", "phase"),
    [
        pytest.param({"Updating": COMPLETED}, "Completed", "Updated", id="completed"),
        pytest.param({"Updating": PENDING}, "Outdated", "Pending", id="to come"),
        pytest.param({"Updating": PAUSED}, "Excluded", "Paused", id="paused"),
        pytest.param({"Updating": DRAINING}, "Progressing", "Draining", id="drained"),
        pytest.param({"Updating": ("False", "New")}, "Unknown", "New", id="a reason nobody knows"),
        pytest.param({"Updating": ("False", "")}, "Unknown", "Unknown", id="no reason"),
        pytest.param({}, "Unknown", "Unknown", id="nothing"),
        pytest.param({"Updating": PENDING, "Available": ("False", "R")}, "Unavailable", "Pending", id="unavailable"),
        pytest.param({"Updating": DRAINING, "Available": ("False", "R")}, "Progressing", "Draining", id="rebooting"),
        pytest.param({"Updating": DRAINING, "Available": ("True", "R")}, "Progressing", "Draining", id="available"),
        pytest.param({"Updating": PENDING, "Degraded": ("True", "R")}, "Degraded", "Pending", id="degraded"),
        pytest.param({"Updating": PENDING, "Degraded": ("False", "R")}, "Outdated", "Pending", id="not degraded"),
        pytest.param(
            {"Updating": PENDING, "Degraded": ("True", "R"), "Available": ("False", "R")},
            "Degraded",
            "Pending",
            id="degraded and unavailable",
        ),
    ],
)
def test_a_node_as_a_row(conditions: dict[str, tuple[str, str]], assessment: str, phase: str) -> None:
    """By its conditions, the worst of them first."""
    (row,) = read(node_insight("a", **conditions))[0].rows
    assert (row.assessment, row.phase) == (assessment, phase)


def counts(**changes: int) -> dict[str, int]:
    """Counts that are nought except for these."""
    return TOP | {"degraded": 0} | changes


@pytest.mark.parametrize(
    ("nodes", "omitted", "assessment", "counted"),
    [
        pytest.param([DONE], 0, "Completed", counts(total=1, updated=1, available=1), id="one, done"),
        pytest.param([TO_COME], 0, "Pending", counts(total=1, outdated=1, available=1), id="one, to come"),
        pytest.param(
            [DONE, TO_COME], 0, "Progressing", counts(total=2, updated=1, outdated=1, available=2), id="one of two done"
        ),
        pytest.param(
            [node_insight("a", Updating=DRAINING), TO_COME],
            0,
            "Progressing",
            counts(total=2, outdated=2, available=2, progressing=1, draining=1),
            id="one on its way",
        ),
        pytest.param(
            [node_insight("a", Updating=REBOOTING), node_insight("b", Updating=UPDATING)],
            0,
            "Progressing",
            counts(total=2, outdated=2, available=2, progressing=2),
            id="both on their way",
        ),
        pytest.param(
            [DONE, node_insight("a", Updating=PAUSED)],
            0,
            "Excluded",
            counts(total=2, updated=1, outdated=1, available=2, excluded=1),
            id="one paused",
        ),
        pytest.param(
            [DONE, node_insight("a", Updating=PAUSED), node_insight("b", Updating=DRAINING, Degraded=("True", "R"))],
            0,
            "Degraded",
            counts(total=3, updated=1, outdated=2, available=3, excluded=1, degraded=1, draining=1),
            id="one degraded",
        ),
        pytest.param(
            [DONE, node_insight("a", Updating=COMPLETED, Degraded=("True", "R"), Available=("False", "R"))],
            0,
            "Completed",
            counts(total=2, updated=2, available=1, degraded=1),
            id="degraded afterwards",
        ),
        pytest.param(
            [DONE],
            3,
            "Progressing",
            counts(total=4, updated=1, available=1, outdated=3),
            id="and three that nobody counted",
        ),
        pytest.param([], 2, "Pending", counts(total=2, outdated=2), id="two that nobody counted"),
    ],
)
def test_what_is_counted_where_nobody_counted(
    nodes: list[JSON], omitted: int, assessment: str, counted: dict[str, int]
) -> None:
    """The rows, and as outdated those that have none."""
    found, _ = read(*nodes, omitted=omitted)
    assert (found.assessment, {name: getattr(found.counts, name) for name in counted}) == (assessment, counted)


@pytest.mark.parametrize(
    ("nodes", "updating", "expected"),
    [
        pytest.param([DONE], "", False, id="nothing said, and all is done"),
        pytest.param([DONE], "False", False, id="the control plane is not, and all is done"),
        pytest.param([DONE], "True", True, id="the control plane is"),
        pytest.param([DONE, TO_COME], "False", True, id="a node is to come"),
    ],
)
def test_whether_the_cluster_is_being_updated(nodes: list[JSON], updating: str, expected: bool) -> None:
    """Its control plane or its workers."""
    assert read(*nodes, updating=updating)[1] is expected
