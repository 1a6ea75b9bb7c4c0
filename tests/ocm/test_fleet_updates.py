"""A fleet update on a real hub: Open Cluster Management's own placement and work managers hand out turns.

The clusters are API servers with real agents; the test is the controller in each of them. Numbers are of cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.controlplane.build import Unavailable
from tests.controlplane.rows import programs
from tests.documents import document
from tests.fleet.decide.fleet_updates import IMAGE, rollout, stage
from tests.ocm import programs as ocm
from tests.ocm.hub import CLUSTERS, Hub
from tests.servers import CRD, api_server, eventually

from kubekit.api.conditions import find
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManifestWork
from runup.api.update_policy_v1alpha1 import UpdateRun, UpdateTurn
from runup.fleet.control.hub_controller import FleetController
from runup.fleet.control.hub_fleets import FLEETS, read_hub
from runup.fleet.decide.hub_update.engine_objects import PLACEMENT, REPLICA_SET
from runup.fleet.decide.hub_update.observation import HubInputs
from runup.rollout.control.policy_objects import CLAIMS
from runup.rollout.decide.turns import CLAIM

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(2400), pytest.mark.xdist_group("ocm")]

JSON = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
NAMESPACE, NAMES = "runup-fleet", ("a", "b", "c")
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
GROUP = "cluster.open-cluster-management.io"
BINDINGS = Resource(
    group=GROUP, version="v1beta2", kind="ManagedClusterSetBinding", plural="managedclustersetbindings", namespaced=True
)
RUNS, TURNS = resource_of(UpdateRun), resource_of(UpdateTurn)


class Fleet:
    """The hub, and a client of each cluster."""

    def __init__(self, hub: Hub, clusters: dict[str, SyncClient]) -> None:
        self.hub = hub
        self.clusters = clusters

    def passes(self, number: int = 1, later: timedelta = timedelta()) -> None:
        """The controller of fleet updates makes passes."""

        async def make(client: SyncClient) -> None:
            def read() -> HubInputs:
                inputs = read_hub(client, NAMESPACE)
                return replace(inputs, now=inputs.now + later)

            async with Client(client.config) as writer:
                controller = FleetController(writer, SystemClock(), read)
                for _ in range(number):
                    await controller.make_pass()

        with self.hub.client as client:
            asyncio.run(make(client))

    def status(self) -> FleetUpdate:
        """The FleetUpdate as it is stored."""
        with self.hub.client as client:
            [found] = client.list_all(FleetUpdate, NAMESPACE)[0]
            return found

    def counts(self, **expected: int) -> bool:
        """Makes a pass, and compares counts of the first stage."""
        self.passes()
        found = self.status().status.stages[0]
        return all(getattr(found, state) == number for state, number in expected.items())

    def run(self, name: str) -> UpdateRun | None:
        """The run in a cluster."""
        return next(iter(self.clusters[name].list_all(UpdateRun)[0]), None)

    def with_turn(self) -> set[str]:
        """The clusters that have a turn."""
        return {name for name, client in self.clusters.items() if client.list_all(UpdateTurn)[0]}

    def begun(self) -> set[str]:
        """The clusters whose update is in progress."""
        runs = {name: self.run(name) for name in self.clusters}
        return {name for name, run in runs.items() if run is not None and run.status.step == "ControlPlane"}

    def set_run(self, name: str, step: str, reason: str) -> None:
        """The cluster's controller records a step of its run, and of its turn."""
        client, run = self.clusters[name], self.run(name)
        assert run is not None
        now = timestamp(client.now())
        rest = {"message": "", "lastTransitionTime": now}
        states = {
            "GatesOpen": ("True", "Latched") if step != "Waiting" else ("False", reason),
            "Done": ("True", reason) if step == "Done" else ("False", "NotYet"),
            "Failed": ("True", reason) if step == "Failed" else ("False", "AsExpected"),
        }
        conditions = [{"type": each, "status": s, "reason": r, **rest} for each, (s, r) in states.items()]
        begun = {"started": now, "gated": True} if step != "Waiting" else {}
        stored = client.send(calls.get_raw(RUNS, run.metadata.name))
        status = {"step": step, "conditions": conditions, **begun}
        client.send(calls.replace(RUNS, {**stored, "status": status}, subresource="status"))
        for turn in client.send(calls.list_raw(TURNS)).items:
            observed = [
                {**each, "observedGeneration": turn["metadata"]["generation"]}
                for each in conditions
                if each["type"] != "GatesOpen"
            ]
            client.send(calls.replace(TURNS, {**turn, "status": {"conditions": observed}}, subresource="status"))

    def claim(self, name: str) -> None:
        """The cluster asks for a turn."""
        run = self.run(name)
        assert run is not None
        body = {"metadata": {"name": CLAIM}, "spec": {"value": f"{run.metadata.name}.1"}}
        self.clusters[name].send(calls.apply(CLAIMS, body, field_manager="tests"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A hub of three clusters with a FleetUpdate, one cluster after another."""
    binaries = programs()
    try:
        program = ocm.build()
    except Unavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("fleet-updates")
    with ExitStack() as stack:
        hub = stack.enter_context(Hub(folder / "hub", binaries, program))
        clusters = {}
        for name in NAMES:
            kubeconfig = stack.enter_context(api_server(folder / name))
            clusters[name] = stack.enter_context(SyncClient(config.load(str(kubeconfig))))
            for plural in ("updateruns", "updateturns"):
                file = DEPLOY / "update-policy" / f"01_{plural}.crd.yaml"
                clusters[name].send(calls.create(CRD, document(file)))
            hub.join(name, kubeconfig)
        with hub.client as client:
            client.send(calls.create(CRD, document(DEPLOY / "fleet-update" / "01_fleetupdates.crd.yaml")))
            client.send(calls.apply(NAMESPACES, {"metadata": {"name": NAMESPACE}}, field_manager="tests"))
            binding = {"metadata": {"name": "global", "namespace": NAMESPACE}, "spec": {"clusterSet": "global"}}
            eventually(lambda: _applied(client, BINDINGS, binding), "the cluster set is bound")
            chosen = {"metadata": {"name": "canary", "namespace": NAMESPACE}, "spec": {"clusterSets": ["global"]}}
            _applied(client, PLACEMENT, chosen)
            spec = {"target": {"version": "5.1.0", "image": IMAGE}, "stages": [stage(rollout=rollout(1))]}
            body = {"metadata": {"name": "five-one", "namespace": NAMESPACE}, "spec": spec}
            eventually(lambda: _applied(client, FLEETS, body), "the FleetUpdate is stored")
        yield Fleet(hub, clusters)


def _applied(client: SyncClient, resource: Resource, body: JSON) -> bool:
    try:
        client.send(calls.apply(resource, body, field_manager="tests"))
    except NotFound:
        return False
    return True


def test_39_every_cluster_gets_its_run_and_none_that_is_not_ready_a_turn(fleet: Fleet) -> None:
    """The engine brings the run to all clusters at once; a Placement of claims gives no turn to a red cluster."""
    eventually(lambda: fleet.counts(clusters=3) and all(map(fleet.run, NAMES)), "every cluster has its run")
    for name in NAMES:
        fleet.set_run(name, "Waiting", "NoTurn" if name != "a" else "PreflightRisks")
    eventually(lambda: fleet.counts(ready=2, waiting=1), "the hub has the reports")
    assert fleet.with_turn() == set()
    # One claim after the other: each agent brings its cluster's claim to the hub in its own time.
    fleet.claim("b")
    eventually(lambda: fleet.with_turn() == {"b"}, "the first ready cluster has its turn, before the others")
    fleet.claim("c")


def test_38_never_more_than_the_concurrency(fleet: Fleet) -> None:
    """A fresh turn and a run in progress are progress to the engine; only Done gives the next cluster its turn."""
    fleet.set_run("b", "ControlPlane", "Started")
    eventually(lambda: fleet.counts(running=1), "the hub knows that the update has begun")

    def progress() -> list[str]:
        return [_state(work, "Progressing") for work in _turn_works(fleet, "b")]

    eventually(lambda: progress() == ["True"], "the turn is progress to the engine")
    # Longer than the agents and the managers need to look again.
    SystemClock().pause(15)
    fleet.passes(2)
    assert (fleet.with_turn(), fleet.begun()) == ({"b"}, {"b"})
    assert find(fleet.status().status.conditions, "Failed").status == "False"  # type: ignore[union-attr]
    fleet.set_run("b", "Done", "Succeeded")
    eventually(lambda: fleet.with_turn() == {"b", "c"}, "the next cluster has its turn")
    eventually(lambda: fleet.counts(done=1), "the hub knows that the first one is done")


def test_53_a_dead_hub_recreates_nothing(fleet: Fleet) -> None:
    """The controller was away for two hours: the permit in the clusters had ended, and their runs are the same."""
    before = {name: fleet.run(name) for name in NAMES}
    fleet.passes(2, later=timedelta(hours=2))

    def renewed() -> bool:
        runs = {name: fleet.run(name) for name in NAMES}
        return all(
            run is not None
            and old is not None
            and run.metadata.uid == old.metadata.uid
            and run.spec.permit_until is not None
            and old.spec.permit_until is not None
            and run.spec.permit_until > old.spec.permit_until
            for run, old in ((runs[name], before[name]) for name in NAMES)
        )

    eventually(renewed, "the same runs have a new permit")
    assert fleet.with_turn() == {"b", "c"}
    assert [_state(work, "Progressing") for work in _turn_works(fleet, "b")] == ["False"]


def test_54_an_unreachable_cluster_keeps_its_turn(fleet: Fleet) -> None:
    """The agent dies during the update: the hub takes nothing back, and learns the end when it returns."""
    fleet.set_run("c", "ControlPlane", "Started")
    eventually(lambda: fleet.counts(running=1), "the hub knows that the update has begun")
    fleet.hub.agents["c"].kill()
    with fleet.hub.client as client:
        patch = {"spec": {"taints": [{"key": f"{GROUP}/unreachable", "effect": "NoSelect", "timeAdded": None}]}}
        patch["spec"]["taints"][0]["timeAdded"] = timestamp(client.now())
        client.send(calls.merge_patch(CLUSTERS, "c", patch))
        # Longer than the placement manager needs to decide again.
        SystemClock().pause(10)
        fleet.passes()
    assert len(_turn_works(fleet, "c")) == 1
    fleet.set_run("c", "Done", "Succeeded")
    fleet.hub.agents["c"].start()
    eventually(lambda: fleet.counts(done=2), "its end is reported later")


def test_40_a_failure_ends_the_permits(fleet: Fleet) -> None:
    """The last cluster becomes ready, fails, and the permit ends in all clusters."""
    fleet.set_run("a", "Waiting", "NoTurn")
    fleet.claim("a")
    eventually(lambda: "a" in fleet.with_turn(), "the last cluster has its turn")
    fleet.set_run("a", "Failed", "ControlPlaneDeadline")

    def ended() -> bool:
        fleet.passes()
        failed = find(fleet.status().status.conditions, "Failed")
        run, now = fleet.run("b"), fleet.clusters["b"].now()
        is_over = run is not None and run.spec.permit_until is not None and run.spec.permit_until <= now
        return failed is not None and failed.reason == "FuseBlown" and is_over

    eventually(ended, "the permit is over in the clusters")
    assert [(each.kind, each.clusters) for each in fleet.status().status.troubles] == [
        ("Failed", ("canary/a: ControlPlaneDeadline",))
    ]


def test_56_a_failed_cluster_is_failed_for_the_engine(fleet: Fleet) -> None:
    """A failed run stays Progressing=True and is Degraded=True, which the engine needs to count a failure."""
    [work] = _turn_works(fleet, "a")
    eventually(lambda: _state(_turn_works(fleet, "a")[0], "Degraded") == "True", "the agent has evaluated its rules")
    assert _state(work, "Progressing") == "True"
    with fleet.hub.client as client:
        assert all(each["status"]["conditions"] for each in client.send(calls.list_raw(REPLICA_SET, NAMESPACE)).items)


def _turn_works(fleet: Fleet, name: str) -> list[ManifestWork]:
    with fleet.hub.client as client:
        works = client.list_all(ManifestWork, name)[0]
    return [work for work in works if work.metadata.labels.get("update.runup.dev/part") == "turns"]


def _state(work: ManifestWork, type_: str) -> str:
    condition = find(work.status.conditions, type_)
    return condition.status if condition is not None else ""
