"""The controller and the worker pools of a cluster: from the pause to the last pool. Numbers are those of the cases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from tests.rollout.control.policy_world import (
    CALENDARS,
    CORE,
    FOLDER,
    NEW,
    OLD,
    OPEN_GATES,
    OTHER,
    POLICIES,
    RUNS,
    World,
    conditions,
    world,
)
from tests.rollout.control.test_rights import KINDS

from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import timestamp
from runup.advice.decide.graph import parse_graph
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import PAUSED_BY
from runup.report.report import ReportedRisk

POOLS = resource_of(MachineConfigPool)
PAUSED = ReportedRisk(name="MachineConfigPoolPaused-worker", message="Pool worker is paused.")
POLICY: dict[str, Any] = {
    "calendars": ["nights"],
    "actuator": "ClusterVersion",
    "soak": "0s",
    "pools": {"when": "NextWindow"},
    "gates": OPEN_GATES,
}
WINDOW = {"opens": "0 22 * * *", "for": "2h"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests."""
    with world(tmp_path_factory.mktemp("pools") / "data") as found:
        yield found


def set_pool(found: World, name: str, *, updated: bool = True, **spec: Any) -> None:
    """Creates or changes a pool of three machines. Its operator has observed the newest generation."""
    found.create(POOLS, name, spec={"paused": False})
    if spec:
        found.client.send(calls.merge_patch(POOLS, name, {"spec": spec}))
    stored = found.client.send(calls.get_raw(POOLS, name))
    status = {
        "observedGeneration": stored["metadata"].get("generation", 0),
        "machineCount": 3,
        "configuration": {"name": "new" if updated else "old"},
        "conditions": conditions(found.since, Updated=str(updated), Degraded="False"),
    }
    found.client.send(calls.merge_patch(POOLS, name, {"spec": {"configuration": {"name": "new"}}}))
    stored = found.client.send(calls.get_raw(POOLS, name))
    status["observedGeneration"] = stored["metadata"].get("generation", 0)
    found.client.send(calls.replace(POOLS, {**stored, "status": status}, subresource="status"))


def pool_of(found: World, name: str = "worker") -> tuple[bool, str]:
    """Whether a pool is paused, and the run in its annotation."""
    stored = found.client.send(calls.get_raw(POOLS, name))
    return stored["spec"].get("paused", False), stored["metadata"].get("annotations", {}).get(PAUSED_BY, "")


def begin(found: World, **policy: Any) -> None:
    """A cluster whose time is in a window, with pools master, worker, and infra, which a person paused."""
    for each in found.client.send(calls.list_raw(POOLS)).items:
        found.client.send(calls.delete(POOLS, each["metadata"]["name"]))
    found.begin(**{**POLICY, **policy})
    found.create(CALENDARS, "nights", spec={"timeZone": "UTC", "windows": [WINDOW]})
    for name, paused in (("master", False), ("worker", False), ("infra", True)):
        set_pool(found, name, paused=paused)
    go_to(found, hour=22.5)


def grant(found: World) -> None:
    """Gives the controller the rights of `--with-pools`."""
    for body in yaml.safe_load_all((FOLDER / "09_pools.yaml").read_text(encoding="utf-8")):
        if body["kind"] in KINDS:
            found.client.send(calls.apply(KINDS[body["kind"]], body, field_manager="test"))


def go_to(found: World, *, hour: float, days: int = 0) -> None:
    """Sets the cluster's time to an hour of the day after tomorrow, or of a later day."""
    midnight = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
    found.ahead = midnight + timedelta(days=2 + days, hours=hour) - SystemClock().now()


def start(found: World) -> None:
    """Passes until the update has begun."""
    found.passes(2)
    found.report()
    found.passes(2)
    found.report(PAUSED)
    found.passes(3)


@pytest.mark.slow
def test_11_without_the_rights_nothing_starts(shared: World) -> None:
    """The gate and the policy name the flag that grants the rights; no pool is paused."""
    begin(shared)
    shared.passes(2)
    shared.report()
    shared.passes(2)
    assert (shared.reason(), pool_of(shared)) == ("RightsMissing", (False, ""))
    [ready] = [each for each in shared.policy().status.conditions if each.type == "Ready"]
    assert (ready.status, ready.reason, "--with-pools" in ready.message) == ("False", "RightsMissing", True)


@pytest.mark.slow
def test_11_14_27_pools_in_a_later_window(shared: World) -> None:
    """Worker is paused before the start and resumed in the next window without a freeze; infra stays paused."""
    begin(shared)
    grant(shared)
    shared.passes(2)
    assert shared.desired()["mode"] == "Preflight"
    shared.report()
    shared.passes()
    uid = shared.run().metadata.uid
    assert (shared.run().status.step, pool_of(shared)) == ("Preparing", (True, uid))
    assert [each.name for each in shared.run().status.paused_pools] == ["worker"]
    assert (pool_of(shared, "master"), pool_of(shared, "infra")) == ((False, ""), (True, ""))
    shared.passes()
    assert shared.reason() == "PreflightOld"
    shared.report(PAUSED)
    shared.passes(3)
    names = [{"name": PAUSED.name}]
    assert shared.desired() == {"version": "5.1.0", "image": NEW, "acceptRisks": names}
    shared.update("Partial")
    shared.passes()
    shared.update("Completed")
    set_pool(shared, "worker", updated=False)
    go_to(shared, hour=24.5)
    shared.passes(2)
    assert (shared.run().status.step, pool_of(shared)) == ("Pools", (True, uid))
    # The next night is frozen.
    go_to(shared, hour=22, days=1)
    day = timestamp(SystemClock().now() + shared.ahead)[:10]
    freeze = {"from": day, "to": f"{day}T23:00", "reason": "fair"}
    shared.client.send(calls.merge_patch(CALENDARS, "nights", {"spec": {"freezes": [freeze]}}))
    shared.passes(2)
    assert (shared.run().status.step, pool_of(shared)) == ("Pools", (True, uid))
    assert "Frozen" in {gate.reason for gate in shared.run().status.gates}
    go_to(shared, hour=23.5, days=1)
    shared.passes(2)
    assert pool_of(shared) == (False, "")
    set_pool(shared, "worker", updated=False)
    shared.passes()
    assert shared.run().status.step == "Pools"
    set_pool(shared, "worker")
    shared.passes(4)
    assert (shared.run().status.step, shared.reason("Done")) == ("Done", "Succeeded")
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    assert pool_of(shared, "infra") == (True, "")
    assert shared.run().status.decisions[-1].message == "Somebody else paused pool infra: not updated."


@pytest.mark.slow
def test_32_abort_before_and_after_the_start(shared: World) -> None:
    """Before the start own pools are resumed and the check is cleared; after it, the run says how to resume them."""
    begin(shared)
    grant(shared)
    shared.passes(2)
    shared.report()
    shared.passes()
    assert pool_of(shared)[0]
    abort = {"spec": {"control": "Abort"}}
    shared.client.send(calls.merge_patch(RUNS, shared.run().metadata.name, abort))
    shared.passes(3)
    assert (shared.run().status.step, pool_of(shared), shared.desired()) == ("Aborted", (False, ""), {})
    begin(shared)
    start(shared)
    assert shared.run().status.step == "ControlPlane"
    shared.client.send(calls.merge_patch(RUNS, shared.run().metadata.name, abort))
    shared.update("Partial")
    shared.passes()
    assert shared.run().status.step == "ControlPlane"
    shared.update("Completed")
    set_pool(shared, "worker", updated=False)
    shared.passes(2)
    assert (shared.run().status.step, pool_of(shared)[0]) == ("Aborted", True)
    assert "This run leaves pool worker paused: `oc patch mcp NAME" in shared.run().status.decisions[-1].message


@pytest.mark.slow
def test_26_31_a_path_of_two_hops(shared: World) -> None:
    """Pools stay paused between the hops, behind a red report and a pause of the policy, and are resumed once."""
    target = {"follow": "Exact", "version": "5.2.0", "maxHops": 2}
    begin(shared, target=target)
    grant(shared)
    for name in [each["metadata"]["name"] for each in shared.client.send(calls.list_raw(CORE["Node"])).items]:
        node = shared.client.send(calls.get_raw(CORE["Node"], name))
        node["status"]["nodeInfo"] = {"kubeletVersion": "v1.33.1"}
        shared.client.send(calls.replace(CORE["Node"], node, subresource="status"))
    shared.passes(2)
    [candidate] = [each for each in shared.policy().status.conditions if each.type == "Candidate"]
    assert (candidate.status, candidate.reason) == ("Unknown", "GraphNotAnswering")
    versions = (("5.0.3", OLD), ("5.1.0", NEW), ("5.2.0", OTHER))
    nodes = [{"version": version, "payload": image} for version, image in versions]
    shared.graph = parse_graph(json.dumps({"nodes": nodes, "edges": [[0, 1], [1, 2]]}).encode())
    shared.passes(4)
    assert [each.version for each in shared.run().status.hops] == ["5.1.0", "5.2.0"]
    assert shared.desired() == {"version": "5.1.0", "image": NEW, "mode": "Preflight"}
    start(shared)
    assert (shared.run().status.step, shared.desired()["version"]) == ("ControlPlane", "5.1.0")
    shared.update("Partial")
    shared.update("Completed")
    set_pool(shared, "worker", updated=False)
    red = ReportedRisk(name="NodeCordoned", message="Node a is cordoned.")
    shared.passes(2)
    assert (shared.run().status.step, shared.desired()["mode"]) == ("BetweenHops", "Preflight")
    shared.report(PAUSED, red, image=OTHER, version="5.2.0", source="5.1.0")
    go_to(shared, hour=23, days=3)
    shared.report(PAUSED, red, image=OTHER, version="5.2.0", source="5.1.0")
    shared.passes(3)
    assert (shared.run().status.step, shared.reason(), pool_of(shared)[0]) == ("BetweenHops", "PreflightRisks", True)
    shared.client.send(calls.merge_patch(POLICIES, "cluster", {"spec": {"paused": True}}))
    shared.report(PAUSED, image=OTHER, version="5.2.0", source="5.1.0")
    shared.passes(3)
    assert (shared.run().status.step, shared.reason(), pool_of(shared)[0]) == ("BetweenHops", "Held", True)
    shared.client.send(calls.merge_patch(POLICIES, "cluster", {"spec": {"paused": False}}))
    shared.passes(3)
    names = [{"name": PAUSED.name}]
    assert shared.desired() == {"version": "5.2.0", "image": OTHER, "acceptRisks": names}
    shared.update("Partial", OTHER, "5.2.0")
    shared.passes()
    shared.update("Completed", OTHER, "5.2.0")
    set_pool(shared, "worker", updated=False)
    go_to(shared, hour=22.2, days=4)
    shared.passes(3)
    assert (shared.run().status.step, pool_of(shared)) == ("Pools", (False, ""))
    set_pool(shared, "worker")
    shared.passes(4)
    assert (shared.run().status.step, shared.reason("Done")) == ("Done", "Succeeded")
    assert [each.reason for each in shared.run().status.decisions].count("PoolResumed") == 1
