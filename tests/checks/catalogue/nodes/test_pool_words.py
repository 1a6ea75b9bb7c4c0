"""Pools on their way, and pools that are degraded: what is said about each, and how it is distinguished."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import context

from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of

JSON = dict[str, Any]
(CHECK,) = (check for check in CHECKS if check.name == "MachineConfigPoolHealth")
SINCE = "2026-01-01T00:00:00Z"
MOVING = "MachineConfigPoolUpdating-a"
GOOD = {"Updated": "True", "Updating": "False", "Degraded": "False"}


def pool_findings(
    conditions: dict[str, str], *, wanted: str = "new", has: str = "new", paused: bool = False, **counts: int
) -> list[tuple[str, str]]:
    """Names and messages of what is found of a pool of three machines."""
    said = [
        {"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": SINCE}
        for kind, status in conditions.items()
    ]
    pool: JSON = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "a"},
        "spec": {"configuration": {"name": wanted}, "paused": paused},
        "status": {
            "configuration": {"name": has},
            "machineCount": 3,
            "updatedMachineCount": 3,
            "conditions": said,
            **counts,
        },
    }
    found = run_check(CHECK, snapshot_of(CHECK.reads, [pool]), context()).findings
    return [(each.name, each.message.removeprefix("Machine config pool a ").partition(" (since")[0]) for each in found]


@pytest.mark.parametrize(
    ("conditions", "more", "said"),
    [
        pytest.param(GOOD, {}, [], id="as it should be"),
        pytest.param(GOOD, {"machineCount": 0, "wanted": "x"}, [], id="without machines"),
        pytest.param(
            GOOD,
            {"updatedMachineCount": 1},
            [(MOVING, "is behind its newest configuration, 2 of 3 machines still to come.")],
            id="behind",
        ),
        pytest.param(
            GOOD,
            {"wanted": "x"},
            [(MOVING, "is behind its newest configuration, some of 3 machines still to come.")],
            id="behind by name alone",
        ),
        pytest.param(GOOD, {"wanted": ""}, [], id="a configuration without a name"),
        pytest.param(GOOD, {"updatedMachineCount": 4}, [], id="more updated than there are"),
        pytest.param(
            GOOD | {"Updated": "False"}, {}, [(MOVING, "is behind its newest configuration.")], id="says so itself"
        ),
        pytest.param(
            GOOD | {"Updating": "True"}, {}, [(MOVING, "is being updated: R: m")], id="moving, and all have it"
        ),
        pytest.param(
            GOOD | {"Updating": "True"},
            {"updatedMachineCount": 2},
            [(MOVING, "is being updated, 1 of 3 machines still to come: R: m")],
            id="moving",
        ),
        pytest.param(GOOD | {"Updated": "False"}, {"paused": True}, [], id="paused and behind"),
        pytest.param(
            GOOD | {"Updating": "True"}, {"paused": True}, [(MOVING, "is being updated: R: m")], id="paused and moving"
        ),
        pytest.param(
            {"Degraded": "False"},
            {},
            [(MOVING, "does not report whether it is being updated.")],
            id="nothing said of updating",
        ),
        pytest.param(
            {"Degraded": "False", "Updated": "False"},
            {},
            [(MOVING, "is behind its newest configuration.")],
            id="behind, and nothing said of updating",
        ),
        pytest.param(
            GOOD | {"Updating": "Unknown"}, {}, [(MOVING, "reports Updating=Unknown: R: m")], id="updating is unknown"
        ),
        pytest.param(
            {"Updating": "False"},
            {},
            [("MachineConfigPoolDegraded-a", "does not report whether it is degraded.")],
            id="nothing said of degraded",
        ),
        pytest.param({"Updating": "False"}, {"machineCount": 0}, [], id="nothing said, of no machines"),
        pytest.param(
            GOOD | {"Degraded": "Unknown"},
            {},
            [("MachineConfigPoolDegraded-a", "reports Degraded=Unknown: R: m")],
            id="degraded is unknown",
        ),
        pytest.param(
            GOOD,
            {"degradedMachineCount": 1},
            [("MachineConfigPoolDegraded-a", "has degraded machines (1 of 3 machines).")],
            id="degraded by the count alone",
        ),
        pytest.param(
            GOOD | {"Degraded": "True"},
            {"degradedMachineCount": 2},
            [("MachineConfigPoolDegraded-a", "is degraded (2 of 3 machines): R: m")],
            id="degraded, with a count",
        ),
        pytest.param(
            GOOD | {"NodeDegraded": "True"}, {}, [("MachineConfigPoolDegraded-a", "is degraded: R: m")], id="its nodes"
        ),
    ],
)
def test_what_is_said_of_a_pool(conditions: dict[str, str], more: JSON, said: list[tuple[str, str]]) -> None:
    """Whether it moves, is behind, is degraded, or does not say."""
    assert pool_findings(conditions, **more) == said


def test_a_pool_that_is_degraded_in_two_ways() -> None:
    """A node's cause does not hide that the configuration cannot be rendered; the sum of both is no cause."""
    said = {
        "NodeDegraded": "Node n is reporting: x",
        "RenderDegraded": "Failed to render configuration for pool a: y",
        "Degraded": "both",
    }
    pool: JSON = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "a"},
        "status": {
            "machineCount": 1,
            "degradedMachineCount": 1,
            "updatedMachineCount": 1,
            "conditions": [{"type": each, "status": "True", "message": text} for each, text in said.items()]
            + [{"type": "Updating", "status": "False"}],
        },
    }
    (found,) = run_check(CHECK, snapshot_of(CHECK.reads, [pool]), context()).findings
    assert found.message == (
        "Machine config pool a is degraded (1 of 1 machine): Node n is reporting: x. "
        "RenderDegraded: Failed to render configuration for pool a: y."
    )
