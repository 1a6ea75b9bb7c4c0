"""The status of a hosted cluster: its control plane, its pools with their Machines, and what they wait for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.factories import obj, pod_json
from tests.updatestatus.decide.hosted import hosted_objects as h
from tests.updatestatus.decide.test_stuck import pod, waiting

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.api.rollouts_v1 import ClusterMachine
from runup.api.update_v1alpha1 import Insight
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.decode import decode
from runup.updatestatus.decide.hosted.pools import is_paused
from runup.updatestatus.decide.hosted.snapshot import HostedSnapshot
from runup.updatestatus.decide.memory import insights_of


def insights(given: HostedSnapshot) -> list[Insight]:
    """All insights of a single look."""
    return list(insights_of(assess(given, None, h.NOW, watched=False)))


def test_an_update_of_both_sides() -> None:
    """The control plane and a pool of new Machines are under way, and nothing needs attention."""
    report = h.report(h.snapshot())
    assert report.is_updating
    assert report.hosted is not None
    assert (report.hosted.assessment, report.hosted.completion) == ("Progressing", 50)
    assert report.target_text == f"{h.NEW} (from {h.OLD})"
    [pool] = report.pools
    assert (pool.name, pool.assessment, pool.done, pool.counts.total) == ("prod-a", "Progressing", 1, 3)
    assert {row.name: (row.phase, row.version) for row in pool.rows} == {
        "a-1": ("Updated", h.NEW),
        "a-2": ("Draining", h.OLD),
        "a-3": ("Pending", h.OLD),
    }
    assert report.health == ()


def test_a_finished_update() -> None:
    """The control plane has completed its release, and all Machines have it."""
    machines = tuple(h.machine(name, h.NEW) for name in ("a-1", "a-2", "a-3"))
    report = h.report(
        h.snapshot(h.hosted(state="Completed", started=60), pools=(h.pool(version=h.NEW),), machines=machines)
    )
    assert not report.is_updating
    assert report.hosted is not None
    assert (report.hosted.assessment, report.hosted.completion) == ("Completed", 100)
    assert [pool.assessment for pool in report.pools] == ["Completed"]


def test_insights_have_types_and_say_on_which_side_their_objects_are() -> None:
    """HyperShift's objects are on the management cluster, nodes and operators on the hosted one."""
    from tests.updatestatus.decide import builders as b

    found = insights(h.snapshot(operators=(b.operator("dns", h.NEW),)))
    sides = {insight.type: insight for insight in found}
    assert set(sides) == {"HostedCluster", "ClusterOperator", "NodePool", "Machine"}
    hosted, operator, pool = sides["HostedCluster"], sides["ClusterOperator"], sides["NodePool"]
    assert hosted.hosted_cluster is not None
    assert operator.cluster_operator is not None
    assert pool.node_pool is not None
    assert (hosted.hosted_cluster.resource.cluster, hosted.hosted_cluster.resource.resource) == (
        "Management",
        "hostedclusters",
    )
    assert operator.cluster_operator.resource.cluster == "Hosted"
    assert (pool.node_pool.upgrade_type, pool.node_pool.resource.namespace) == ("Replace", "clusters")
    machine = next(insight.machine for insight in found if insight.machine and insight.machine.name == "a-1")
    assert (machine.resource.cluster, machine.resource.namespace) == ("Management", "clusters-prod")
    assert machine.node_resource is not None
    assert (machine.node_resource.cluster, machine.node_resource.name) == ("Hosted", "node-a-1")


def test_the_status_survives_json() -> None:
    """A reader of the object sees what the writer saw."""
    status = assess(h.snapshot(), None, h.NOW, watched=False)
    assert decode({"status": codec.to_dict(status)}) == (status, ())


def test_a_second_look_changes_nothing() -> None:
    """The times of the first one are kept."""
    first = assess(h.snapshot(), None, h.NOW)
    assert assess(h.snapshot(), first, h.NOW + timedelta(seconds=20)) == first


@pytest.mark.parametrize(
    ("behind", "level", "assessment"),
    [
        pytest.param("4.18.20", "Info", "Excluded", id="one minor version behind"),
        pytest.param("4.17.3", "Info", "Excluded", id="two"),
        pytest.param("4.16.9", "Warning", "Excluded", id="three, which is too many"),
        pytest.param("4.19.5", None, "Completed", id="none"),
    ],
)
def test_a_pool_that_nobody_asked_to_update(behind: str, level: str | None, assessment: str) -> None:
    """It is no trouble, and the cluster is not updating because of it."""
    machines = tuple(h.machine(name, behind) for name in ("a-1", "a-2"))
    report = h.report(
        h.snapshot(
            h.hosted(state="Completed", started=60),
            pools=(h.pool(asked=behind, version=behind),),
            machines=machines,
        )
    )
    assert [row.level for row in report.health] == ([level] if level else [])
    assert [pool.assessment for pool in report.pools] == [assessment]
    assert not report.is_updating
    if level:
        assert report.health[0].summary.startswith(
            f"Node pool prod-a stays at {behind}: nobody has asked it to update to 4.19.5"
        )


@pytest.mark.parametrize(
    ("message", "annotations", "done"),
    [
        pytest.param("Updating version in progress. Target version: 4.19.5", {}, 0, id="nothing is known"),
        pytest.param(
            "Updating version in progress. Target version: 4.19.5. Total Nodes: 3. Upgraded: 2", {}, 2, id="counted"
        ),
        pytest.param(
            "Updating version in progress. Target version: 4.19.5",
            {"hypershift.openshift.io/release-version": h.NEW},
            3,
            id="the upgrader marked each Machine",
        ),
    ],
)
def test_a_pool_that_is_updated_in_place(message: str, annotations: dict[str, str], done: int) -> None:
    """The `spec.version` of its Machines stays as it was made, and proves nothing."""
    machines = tuple(h.machine(name, h.OLD, **annotations) for name in ("a-1", "a-2", "a-3"))
    pool = h.pool(h.said("UpdatingVersion", message=message), how="InPlace")
    [found] = h.report(h.snapshot(pools=(pool,), machines=machines)).pools
    assert (found.done, found.counts.total) == (done, 3)


def test_a_release_that_the_hosted_cluster_does_not_list() -> None:
    """The pool's message names its version."""
    pool = h.pool(h.updating("4.18.25"), asked="4.18.25")
    [found] = h.report(h.snapshot(pools=(pool,), machines=(h.machine("a-1", "4.18.25"), h.machine("a-2")))).pools
    assert found.done == 1


REPLACED = ("prod-a", "Node pool prod-a cannot be updated: ")


@pytest.mark.parametrize(
    ("fields", "check", "summary"),
    [
        pytest.param(
            {"cluster": h.hosted(h.said("ValidReleaseImage", "False", "InvalidImage", "unsupported"))},
            "HostedClusterCannotUpdate",
            "HostedCluster prod cannot be updated: ValidReleaseImage is False (InvalidImage)",
            id="the image of the control plane is not valid",
        ),
        pytest.param(
            {"cluster": h.hosted(h.said("EtcdAvailable", "False", "EtcdWaitingForQuorum", "1 of 3", since=8))},
            "HostedClusterCannotUpdate",
            "HostedCluster prod cannot be updated: EtcdAvailable is False (EtcdWaitingForQuorum)",
            id="etcd has no quorum",
        ),
        pytest.param(
            {"cluster": h.hosted(h.said("ClusterVersionReleaseAccepted", "False", "RetrievePayload", "no image"))},
            "ReleaseNotLoaded",
            "The requested release was not accepted (RetrievePayload)",
            id="the release is refused",
        ),
        pytest.param(
            {"cluster": h.hosted(h.said("ClusterVersionFailing", "True", "UpdatePayloadFailed", "no"))},
            "ClusterVersionFailing",
            "Cluster Version prod is failing to proceed with the update (UpdatePayloadFailed)",
            id="the operator fails",
        ),
        pytest.param(
            {"cluster": h.hosted(pausedUntil="true")},
            "HostedClusterPaused",
            "HostedCluster prod is paused until true",
            id="the cluster is paused",
        ),
        pytest.param(
            {"pools": (h.pool(h.updating(), pausedUntil="2027-01-01T00:00:00Z"),)},
            "NodePoolPaused",
            "The update of node pool prod-a is paused until 2027-01-01T00:00:00Z",
            id="a pool is paused",
        ),
        pytest.param(
            {"pools": (h.pool(h.updating(), h.said("ValidPlatformImage", "False", "ValidationFailed", "no AMI")),)},
            "NodePoolCannotUpdate",
            "Node pool prod-a cannot be updated: ValidPlatformImage is False (ValidationFailed)",
            id="a pool has no image",
        ),
        pytest.param(
            {"pools": (h.pool(h.said("UpdatingVersion", "False", "InplaceUpgradeFailed", "node x"), how="InPlace"),)},
            "NodePoolCannotUpdate",
            "Node pool prod-a cannot be updated: UpdatingVersion is False (InplaceUpgradeFailed)",
            id="a node is degraded in place",
        ),
        pytest.param(
            {
                "machines": (
                    h.machine(
                        "a-2", h.OLD, h.said("DrainingSucceeded", "False", "DrainingFailed", "budget db"), deleted=40
                    ),
                )
            },
            "MachineNotReplaced",
            "Machine a-2 of node node-a-2 is not deleted (DrainingFailed: budget db)",
            id="a Machine is not drained",
        ),
        pytest.param(
            {"machines": (h.machine("a-4", h.NEW, phase="Provisioning", made=40),)},
            "MachineNotReplaced",
            "Machine a-4 has no node yet",
            id="a new Machine does not come",
        ),
        pytest.param(
            {
                "components": (
                    h.component(
                        "etcd",
                        h.OLD,
                        h.said("Available"),
                        h.said("RolloutComplete", "False", "WaitingForDependencies", since=45),
                    ),
                )
            },
            "ComponentCannotAct",
            "Component etcd of the control plane is not rolled out to 4.19.5 (WaitingForDependencies)",
            id="a component does not come",
        ),
    ],
)
def test_states_in_which_an_update_is_stuck(fields: dict[str, Any], check: str, summary: str) -> None:
    """The finding stalls the update, and nothing else is reported."""
    found = h.report(h.snapshot(**fields)).health
    assert [(row.check, row.summary, row.impact) for row in found] == [(check, summary, "Update Stalled")]


def test_a_pod_of_the_control_plane_fails() -> None:
    """It is named; the control plane may still work."""
    broken = pod("etcd-0", "clusters-prod", restarts=9, state=waiting("CrashLoopBackOff"))
    [row] = h.report(h.snapshot(pods=(broken,))).health
    assert row.summary == "The control plane runs in part: pod etcd-0 is in CrashLoopBackOff, 9 restarts"


def test_nothing_moves() -> None:
    """A lack of progress is found, whichever component is to blame."""
    machines = tuple(h.machine(name) for name in ("a-1", "a-2"))
    pool = h.pool(h.updating(since=50))
    found = h.report(h.snapshot(h.hosted(started=50), pools=(pool,), machines=machines, components=())).health
    assert [row.summary for row in found] == ["Nothing has moved since 2026-03-01T11:10:00Z"]


def test_what_could_not_be_read_is_unknown() -> None:
    """Neither the pools nor the components count as fine."""
    report = h.report(h.snapshot(pools=Unreadable("forbidden"), components=Unreadable("forbidden")))
    assert {row.summary for row in report.health} == {
        "NodePools could not be read, so their state is unknown",
        "ControlPlaneComponents could not be read, so their state is unknown",
    }
    assert report.updating is not None
    assert report.updating.status == "Unknown"


def test_pools_of_another_cluster_are_left_out() -> None:
    """They name another cluster."""
    assert h.report(h.snapshot(pools=(h.pool(cluster="test"),))).pools == ()


@pytest.mark.parametrize(
    ("until", "paused"),
    [
        ("", False),
        ("true", True),
        ("True", True),
        ("false", False),
        ("2026-03-01T13:00:00Z", True),
        ("2026-03-01T11:00:00Z", False),
        ("soon", False),
    ],
)
def test_until_when_an_object_is_paused(until: str, paused: bool) -> None:
    """A date or a boolean, as the API has it."""
    assert is_paused(until, h.NOW) is paused


@pytest.mark.parametrize(
    ("how", "machines", "blocked"),
    [
        pytest.param("Replace", h.MACHINES, True, id="the Machine is being deleted"),
        pytest.param("InPlace", (h.machine("a-2"),), True, id="a cordoned node of a pool that is updated in place"),
        pytest.param("Replace", (h.machine("a-2"),), False, id="somebody cordoned a node whose Machine stays"),
    ],
)
def test_a_drain_on_the_hosted_side(how: str, machines: tuple[ClusterMachine, ...], *, blocked: bool) -> None:
    """The budget that blocks it is named, and its objects are on the hosted side."""
    labels = {"app": "web"}
    evicted = h.decoded(Pod, pod_json("web-0", on="node-a-2", labels=labels, status={"conditions": [h.said("Ready")]}))
    status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    budget = h.decoded(
        PodDisruptionBudget,
        obj(
            "policy/v1", "PodDisruptionBudget", "web", "shop",
            spec={"minAvailable": 1, "selector": {"matchLabels": labels}}, status=status,
        ),
    )  # fmt: skip
    report = h.report(
        h.snapshot(
            pools=(h.pool(h.updating(), how=how),),
            machines=machines,
            operators=(),
            nodes=(),
            draining_pods=(evicted,),
            budgets=(budget,),
            drains_read=frozenset({"node-a-2"}),
        )
    )
    found = [row for row in report.health if row.check == "DrainBlocked"]
    assert bool(found) is blocked
    for row in found:
        assert row.summary.startswith(
            "Node node-a-2 cannot be drained: PodDisruptionBudget shop/web allows no eviction of pod"
        )
        assert {ref.cluster for ref in row.resources} == {"Hosted"}
