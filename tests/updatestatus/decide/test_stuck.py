"""States in which an update does not continue, and lookalikes in which it does."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.updatestatus.decide import builders as b

from kubekit.api.core_v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Event,
    Node,
    NodeSpec,
    ObjectReference,
    Pod,
    PodSpec,
    PodStatus,
    Taint,
)
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.api.workloads_v1 import Deployment, DeploymentSpec, Lease, LeaseSpec
from runup.api.config_v1 import ClusterOperator
from runup.api.config_v1 import ObjectReference as ObjectReferenceOfOperator
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigNode, MachineConfigNodeStatus, MachineConfigPool
from runup.api.platform_v1 import (
    CertificateSigningRequest,
    CSRSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeError,
)
from runup.rules.update_components import further_namespaces
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import HealthRow, Report, report_of_status
from runup.updatestatus.decide.snapshot import Snapshot

NOW = b.STARTED + b.minutes(300)
MCO = "openshift-machine-config-operator"
ON_ITS_WAY = {"desired": "new", "desiredDrain": "drain-new", "lastAppliedDrain": "drain-new"}


def ago(minutes: float) -> datetime:
    """A moment before the look."""
    return NOW - b.minutes(minutes)


def worker_pool(*conditions: Condition, began: float = 290, **spec: Any) -> MachineConfigPool:
    """The pool of workers, which has been updating since `began` minutes ago, with further conditions."""
    given = b.pool("worker")
    updating = Condition(type="Updating", status="True", last_transition_time=ago(began))
    status = replace(given.status, conditions=(updating, *conditions), machine_count=3)
    return replace(given, spec=replace(given.spec, **spec), status=status)


def moving(
    state: str = "Working", *, cordoned: float | None = 200, ready: Condition | None = None, name: str = "worker-0000"
) -> Node:
    """A worker that is being updated and was cordoned for it."""
    node = b.node(name, state=state, conditions=(ready or b.cond("Ready", "True", since=ago(999)),), **ON_ITS_WAY)
    taints = (
        (Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule", time_added=ago(cordoned)),)
        if cordoned is not None
        else ()
    )
    return replace(node, spec=NodeSpec(unschedulable=True, taints=taints))


def updating(**changes: Any) -> Snapshot:
    """The control plane is done, three workers must come, and a node came back a moment ago."""
    master = b.node(
        "master-0", "master", current="new", desired="new", conditions=(b.cond("Ready", "True", since=ago(1)),)
    )
    given: dict[str, Any] = {
        "cluster_version": b.version(
            (b.entry(b.NEW), b.entry(b.OLD, started=b.STARTED - b.minutes(9999))), progressing="False"
        ),
        "cluster_operators": (b.operator("machine-config", b.NEW),),
        "machine_config_pools": (b.pool("master"), worker_pool()),
        "nodes": (master, *(b.node(f"worker-{i:04}") for i in range(3))),
        "pending_pods": (),
        "draining_pods": (),
        "pod_disruption_budgets": (),
        "component_pods": (),
        "certificate_requests": (),
    }
    given |= changes
    if "nodes" in changes:
        given["nodes"] = (master, *changes["nodes"])
    return b.snapshot(**given)


def report(snapshot: Snapshot, now: datetime = NOW) -> Report:
    """What a single look reports."""
    return report_of_status(assess(snapshot, None, now, watched=False))


def rows(snapshot: Snapshot, now: datetime = NOW) -> list[HealthRow]:
    """What needs attention."""
    return list(report(snapshot, now).health)


def pod(
    name: str,
    namespace: str = MCO,
    *,
    node: str = "master-0",
    restarts: int = 0,
    state: ContainerState | None = None,
    last: ContainerState | None = None,
    phase: str = "Running",
    conditions: tuple[Condition, ...] = (),
    made: float = 9999,
) -> Pod:
    """A pod of a component."""
    status = ContainerStatus(
        name="c",
        restart_count=restarts,
        state=state or ContainerState(running=ContainerStateRunning(started_at=ago(9999))),
        last_state=last or ContainerState(),
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, creation_timestamp=ago(made)),
        spec=PodSpec(node_name=node),
        status=PodStatus(
            phase=phase, conditions=conditions or (b.cond("Ready", "True"),), container_statuses=(status,)
        ),
    )


def in_init(given: Pod) -> Pod:
    """The pod with its container as an init container."""
    statuses = given.status.container_statuses
    return replace(given, status=replace(given.status, init_container_statuses=statuses, container_statuses=()))


def waiting(reason: str) -> ContainerState:
    """The state of a container that waits."""
    return ContainerState(waiting=ContainerStateWaiting(reason=reason))


def ended(minutes_ago: float) -> ContainerState:
    """The state of a container that has ended."""
    return ContainerState(terminated=ContainerStateTerminated(exit_code=1, finished_at=ago(minutes_ago)))


def not_ready(minutes: float) -> tuple[Condition, ...]:
    """Conditions of a pod that has not been ready for so long."""
    return (b.cond("Ready", "False", "ContainersNotReady", since=ago(minutes)),)


def test_an_update_that_moves_needs_no_attention() -> None:
    """Nothing is reported of nodes that wait for their turn, and of one that was cordoned just now."""
    assert rows(updating()) == []
    assert rows(updating(nodes=(moving(cordoned=5), b.node("worker-0001")))) == []


DEGRADED = Condition(type="Degraded", status="True", last_transition_time=ago(90))


@pytest.mark.parametrize(
    "type_", ["RenderDegraded", "ImageBuildDegraded", "PinnedImageSetsDegraded", "SynchronizerDegraded", "BuildFailed"]
)
def test_a_condition_of_a_pool_that_is_degraded_stalls_the_update(type_: str) -> None:
    """Whatever its type; the finding names it with its reason, and since when."""
    condition = Condition(type=type_, status="True", reason="Why", message="words", last_transition_time=ago(80))
    [row] = rows(updating(machine_config_pools=(b.pool("master"), worker_pool(condition, DEGRADED))))
    assert (row.check, row.level, row.impact) == ("MachineConfigPoolDegraded", "Error", "Update Stalled")
    assert row.summary == f"Machine config pool worker is degraded: {type_} (Why)"
    assert row.description.startswith(f"{type_}: Why: words.")
    assert row.since == ago(80)


def test_a_pool_that_is_degraded_without_a_cause_is_reported() -> None:
    """Only the sum of the conditions is known."""
    [row] = rows(updating(machine_config_pools=(b.pool("master"), worker_pool(DEGRADED))))
    assert row.summary == "Machine config pool worker is degraded: Degraded"


def test_a_control_plane_pool_that_is_degraded_stalls_the_update_when_its_nodes_are_done() -> None:
    """The machine-config operator waits for that pool, and not for a pool of workers that is done."""
    master = replace(b.pool("master"), status=replace(b.pool("master").status, conditions=(DEGRADED,)))
    [row] = rows(updating(machine_config_pools=(master, worker_pool())))
    assert (row.check, row.summary) == (
        "MachineConfigPoolDegraded",
        "Machine config pool master is degraded: Degraded",
    )
    done = tuple(b.node(f"worker-{i:04}", current="new", desired="new") for i in range(3))
    infra = replace(b.pool("infra"), status=replace(b.pool("infra").status, conditions=(DEGRADED,)))
    given = updating(machine_config_pools=(b.pool("master"), infra, worker_pool()), nodes=done)
    assert [row.check for row in rows(given)] == []


def test_a_degraded_node_is_reported_once() -> None:
    """The pool's condition NodeDegraded says the same as the node."""
    conditions = (replace(DEGRADED, type="NodeDegraded"), DEGRADED)
    nodes = (b.node(desired="new", state="Degraded", reason="no space"), b.node("worker-0001"))
    snapshot = updating(machine_config_pools=(b.pool("master"), worker_pool(*conditions)), nodes=nodes)
    assert [row.check for row in rows(snapshot)] == ["NodeDegraded"]


@pytest.mark.parametrize(
    ("allowed", "cordoned", "summary"),
    [
        pytest.param(
            1,
            ["worker-0001"],
            "Machine config pool worker does not update its nodes: "
            "node worker-0001 uses up maxUnavailable 1 (cordoned); `oc adm uncordon worker-0001`",
            id="one of one",
        ),
        pytest.param(
            2,
            ["worker-0001", "worker-0002"],
            "Machine config pool worker does not update its nodes: "
            "2 nodes use up maxUnavailable 2; `oc adm uncordon worker-0001 worker-0002`",
            id="two of two",
        ),
        pytest.param(2, ["worker-0001"], "", id="one of two leaves a place"),
    ],
)
def test_cordoned_nodes_use_up_the_places_of_a_pool(allowed: int, cordoned: list[str], summary: str) -> None:
    """The finding names them and the command that releases them."""
    nodes = [b.node(f"worker-{i:04}") for i in range(3)]
    nodes = [replace(node, spec=NodeSpec(unschedulable=node.metadata.name in cordoned)) for node in nodes]
    found = rows(
        updating(nodes=tuple(nodes), machine_config_pools=(b.pool("master"), worker_pool(max_unavailable=allowed)))
    )
    assert [row.summary for row in found] == ([summary] if summary else [])
    if summary:
        assert f"`oc adm uncordon {' '.join(cordoned)}`" in found[0].description
        assert found[0].impact == "Update Stalled"


@pytest.mark.parametrize("change", [{"paused": True}, {"configuration": b.pool(target="old").spec.configuration}])
def test_a_pool_without_work_is_not_blocked(change: dict[str, Any]) -> None:
    """It is paused, or has no new configuration yet."""
    nodes = (replace(b.node(), spec=NodeSpec(unschedulable=True)), b.node("worker-0001"))
    checks = [
        row.check for row in rows(updating(nodes=nodes, machine_config_pools=(b.pool("master"), worker_pool(**change))))
    ]
    assert "MachineConfigPoolBlocked" not in checks


UNKNOWN = "NodeStatusUnknown"


@pytest.mark.parametrize(
    ("state", "away", "level"),
    [
        pytest.param("Rebooting", 10, None, id="as long as firmware may take"),
        pytest.param("Rebooting", 20, "Warning", id="late"),
        pytest.param("Rebooting", 60, "Error", id="much too late"),
        pytest.param("Working", 60, "Error", id="lost before its reboot"),
    ],
)
def test_a_node_that_does_not_come_back(state: str, away: float, level: str | None) -> None:
    """The finding says since when its kubelet is silent, and names its certificate requests that wait."""
    node = moving(state, ready=b.cond("Ready", "Unknown", UNKNOWN, "Kubelet stopped.", since=ago(away)))
    request = CertificateSigningRequest(
        metadata=ObjectMeta(name="csr-1", creation_timestamp=ago(50)),
        spec=CSRSpec(signer_name="kubernetes.io/kubelet-serving", username="system:node:worker-0000"),
    )
    found = rows(updating(nodes=(node, b.node("worker-0001"))))
    assert [(row.check, row.level, row.since) for row in found] == (
        [("NodeNotBack", level, ago(away))] if level else []
    )
    if level:
        found = rows(updating(nodes=(node, b.node("worker-0001")), certificate_requests=(request,)))
        assert {row.check for row in found} == {"NodeNotBack", "CertificateRequestsPending"}
        assert any("`oc adm certificate approve csr-1`" in row.description for row in found)


def test_a_node_that_is_away_since_an_unknown_time() -> None:
    """Its cordon shows how long its update takes."""
    gone = b.cond("Ready", "Unknown", UNKNOWN, "Kubelet stopped.", since=None)
    found = rows(updating(nodes=(moving("Rebooting", ready=gone, cordoned=100), b.node("worker-0001"))))
    assert [(row.check, row.level, row.since) for row in found] == [("NodeNotBack", "Error", ago(100))]


@pytest.mark.parametrize(
    ("state", "cordoned", "level"),
    [
        pytest.param("Working", 40, None, id="in time"),
        pytest.param("Working", 50, "Warning", id="late"),
        pytest.param("Working", 100, "Error", id="hung"),
        pytest.param("Rebooting", 100, "Error", id="does not reboot"),
    ],
)
def test_a_node_that_stays_in_a_phase(state: str, cordoned: float, level: str | None) -> None:
    """It counts from its cordon, though the pool's condition is younger."""
    node = moving(state, cordoned=cordoned)
    snapshot = updating(
        nodes=(node, b.node("worker-0001")), machine_config_pools=(b.pool("master"), worker_pool(began=20))
    )
    assert [(row.check, row.level) for row in rows(snapshot)] == ([("NodeUpdateLate", level)] if level else [])


def test_the_steps_of_a_node_tell_when_its_phase_began() -> None:
    """A MachineConfigNode dates each step; the one that is under way is named."""

    def with_step(minutes: float) -> Snapshot:
        step = b.cond("AppliedFilesAndOS", "Unknown", "Updating", "Rebasing", since=ago(minutes))
        steps = MachineConfigNode(
            metadata=ObjectMeta(name="worker-0000"), status=MachineConfigNodeStatus(conditions=(step,))
        )
        return updating(nodes=(moving(), b.node("worker-0001")), machine_config_nodes=(steps,))

    assert rows(with_step(10)) == []
    [row] = rows(with_step(120))
    assert (row.check, row.level, row.since) == ("NodeUpdateLate", "Error", ago(120))
    assert "Its step AppliedFilesAndOS is under way: Rebasing." in row.description


def test_a_pool_whose_earlier_nodes_were_slow_gets_more_time() -> None:
    """Two nodes came back 60 minutes after one another, so that the next one may take twice as long."""
    earlier = [
        b.node(f"worker-000{i}", current="new", desired="new", conditions=(b.cond("Ready", "True", since=ago(back)),))
        for i, back in ((1, 200), (2, 140))
    ]
    for cordoned, expected in ((110, []), (130, ["Warning"])):
        found = rows(updating(nodes=(moving(cordoned=cordoned), *earlier)))
        assert [row.level for row in found if row.check == "NodeUpdateLate"] == expected


def test_a_node_under_pressure_while_it_is_updated() -> None:
    """oc reports it only of nodes that are not being updated."""
    ready = b.cond("Ready", "True", since=ago(999))
    node = replace(moving(cordoned=5), status=b.node(conditions=(ready, b.cond("DiskPressure", "True"))).status)
    [row] = rows(updating(nodes=(node, b.node("worker-0001"))))
    assert (row.check, row.summary) == (
        "NodeUnderPressure",
        "Node worker-0000 reports DiskPressure while it is updated",
    )


def test_a_configuration_that_does_not_exist() -> None:
    """The daemon cannot fetch it; a list that is known in part proves nothing."""
    nodes = (b.node(desired="gone"), b.node("worker-0001"))
    [row] = rows(updating(nodes=nodes))
    assert row.summary == "Node worker-0000 cannot be updated: MachineConfig worker-gone does not exist"
    found = rows(replace(updating(nodes=nodes), incomplete={"machine_configs": "so it is"}))
    assert [row.check for row in found] == ["InputIncomplete"]


CONTROLLER = "machine-config-controller-5f-abcde"


@pytest.mark.parametrize(
    ("failing", "why"),
    [
        pytest.param(
            pod(CONTROLLER, restarts=88, state=waiting("CrashLoopBackOff"), conditions=not_ready(60)),
            f"pod {CONTROLLER} is in CrashLoopBackOff, 88 restarts",
            id="backing off",
        ),
        pytest.param(
            pod(CONTROLLER, restarts=12, last=ended(4)),
            f"pod {CONTROLLER} restarts again and again, 12 times so far",
            id="running between two restarts",
        ),
        pytest.param(
            pod(CONTROLLER, state=waiting("ImagePullBackOff"), phase="Pending", conditions=not_ready(60)),
            f"pod {CONTROLLER} is in ImagePullBackOff",
            id="without its image",
        ),
        pytest.param(
            pod(CONTROLLER, conditions=not_ready(60)),
            f"pod {CONTROLLER} is not ready (ContainersNotReady)",
            id="not ready",
        ),
        pytest.param(
            pod(
                CONTROLLER,
                phase="Pending",
                conditions=(b.cond("PodScheduled", "False", "Unschedulable", "0/6 nodes", since=ago(60)),),
            ),
            f"pod {CONTROLLER} is not scheduled (Unschedulable: 0/6 nodes)",
            id="not scheduled",
        ),
        pytest.param(
            in_init(pod(CONTROLLER, made=4, restarts=6, state=waiting("CrashLoopBackOff"), phase="Pending")),
            f"pod {CONTROLLER} is in CrashLoopBackOff, 6 restarts",
            id="a new pod whose init container backs off",
        ),
    ],
)
def test_a_component_that_cannot_act(failing: Pod, why: str) -> None:
    """The finding says what does not happen without it."""
    [row] = rows(updating(component_pods=(failing,)))
    assert (row.check, row.level, row.impact) == ("ComponentCannotAct", "Error", "Update Stalled")
    assert row.summary == (f"machine-config-controller cannot act, so no node is given its new configuration: {why}")


@pytest.mark.parametrize(
    "healthy",
    [
        pytest.param(pod(CONTROLLER), id="ready"),
        pytest.param(pod(CONTROLLER, conditions=not_ready(3)), id="not ready for minutes"),
        pytest.param(pod(CONTROLLER, restarts=12, last=ended(400)), id="restarted long ago"),
        pytest.param(pod(CONTROLLER, phase="Failed", conditions=not_ready(60)), id="ended and replaced"),
        pytest.param(pod("etcd-guard-master-0", "openshift-etcd", conditions=not_ready(60)), id="a guard"),
        pytest.param(pod("web-1", "shop", restarts=88, state=waiting("CrashLoopBackOff")), id="of a user"),
        pytest.param(
            pod("dns-1", "openshift-dns", restarts=3, state=waiting("CrashLoopBackOff"), last=ended(1)),
            id="of another operator, after a few restarts",
        ),
        pytest.param(pod("dns-1", "openshift-dns", conditions=not_ready(60)), id="of another operator, not ready"),
    ],
)
def test_pods_that_hold_no_update_up(healthy: Pod) -> None:
    """They are not reported."""
    assert rows(updating(component_pods=(healthy,))) == []


def test_a_pod_of_another_operator_that_restarts_again_and_again() -> None:
    """It is a warning, unless its node is being updated: there pods restart until all that they need is back."""
    looping = pod("dns-1", "openshift-dns", node="worker-0000", restarts=9, state=waiting("CrashLoopBackOff"))
    other = replace(looping, metadata=replace(looping.metadata, name="dns-2"), spec=PodSpec(node_name="worker-0001"))
    [row] = rows(updating(component_pods=(looping,)))
    assert (row.check, row.level) == ("PlatformPodFailing", "Warning")
    assert row.summary == "Pod openshift-dns/dns-1 is in CrashLoopBackOff, 9 restarts"
    nodes = (moving(cordoned=20), *(b.node(f"worker-{number:04}") for number in (1, 2)))
    [row] = rows(updating(component_pods=(looping, other), nodes=nodes))
    assert row.summary == "Pod openshift-dns/dns-2 is in CrashLoopBackOff, 9 restarts"


def test_a_degraded_node_whose_daemon_gives_no_reason_is_reported() -> None:
    """Without a description `oc` prints nothing, and the update would look well."""
    nodes = (b.node("worker-0000", state="Degraded", desired="new"), *(b.node(f"worker-{i:04}") for i in (1, 2)))
    assert [row.summary for row in rows(updating(nodes=nodes))] == ["Node worker-0000 is degraded"]
    assert rows(updating(nodes=nodes, pending_pods=None)) == []


def test_namespaces_of_operators_that_need_attention() -> None:
    """Those that are not well come first; operators that are done, and namespaces of users, are left out."""

    def operator(name: str, version: str, *namespaces: str, **conditions: Condition) -> ClusterOperator:
        found = b.operator(name, version, **conditions)
        related = tuple(ObjectReferenceOfOperator(resource="namespaces", name=each) for each in namespaces)
        return replace(found, status=replace(found.status, related_objects=related))

    degraded = b.cond("Degraded", "True", "Why")
    operators = (
        operator("dns", b.OLD, "openshift-dns", "shop"),
        operator("console", b.NEW, "openshift-console"),
        operator("ingress", b.NEW, "openshift-ingress", "openshift-etcd", degraded=degraded),
        *(operator(f"z{number:02}", b.OLD, f"openshift-z{number:02}") for number in range(20)),
    )
    found = further_namespaces(operators, b.NEW)
    assert found[:3] == ("openshift-ingress", "openshift-dns", "openshift-z00")
    assert len(found) == 12


def test_one_of_three_members_is_a_warning() -> None:
    """The others can act."""
    pods = [pod(f"etcd-master-{i}", "openshift-etcd", conditions=not_ready(60) if i == 1 else ()) for i in range(3)]
    found = rows(updating(component_pods=tuple(pods)))
    assert [(row.level, row.summary) for row in found] == [
        ("Warning", "etcd runs in part: pod etcd-master-1 is not ready (ContainersNotReady)")
    ]


def test_etcd_without_a_quorum_stalls_the_update() -> None:
    """Two of three members cannot act, so the third one cannot, either."""
    pods = [pod(f"etcd-master-{i}", "openshift-etcd", conditions=not_ready(60) if i else ()) for i in range(3)]
    [row] = rows(updating(component_pods=tuple(pods)))
    assert (row.level, row.impact) == ("Error", "Update Stalled")
    assert row.summary.startswith("etcd cannot act, so the API stores nothing: pod etcd-master-1 is not ready")


def test_a_component_that_nobody_runs_or_leads() -> None:
    """It is scaled to none, or its lease is not renewed."""
    meta = ObjectMeta(name="machine-config-operator", namespace=MCO)
    scaled = Deployment(metadata=meta, spec=DeploymentSpec(replicas=0))
    [row] = rows(updating(component_deployments=(scaled,)))
    assert row.summary.endswith("Deployment machine-config-operator is scaled to 0 replicas")

    unseen = Deployment(metadata=replace(meta, creation_timestamp=ago(60)), spec=DeploymentSpec(replicas=1))
    [row] = rows(updating(component_deployments=(unseen,)))
    assert row.summary.endswith("Deployment machine-config-operator has no pod")

    def led(minutes: float) -> Snapshot:
        spec = LeaseSpec(holder_identity="pod-1", lease_duration_seconds=137, renew_time=ago(minutes))
        lease = Lease(metadata=ObjectMeta(name="version", namespace="openshift-cluster-version"), spec=spec)
        return updating(leases=(lease,))

    assert rows(led(4)) == []
    [row] = rows(led(22))
    assert row.since == ago(22)
    assert "cluster-version-operator cannot act, so no component is updated: it has no leader" in row.summary


def test_a_daemon_that_cannot_act_on_a_node() -> None:
    """It stalls the node that is being updated; the daemon of a node that is done does not matter."""
    daemon = pod("machine-config-daemon-x", node="worker-0000", restarts=9, state=waiting("CrashLoopBackOff"))
    found = rows(updating(nodes=(moving(cordoned=5), b.node("worker-0001")), draining_pods=(daemon,)))
    assert [(row.check, row.level) for row in found] == [("MachineConfigDaemonCannotAct", "Error")]
    elsewhere = replace(daemon, spec=PodSpec(node_name="master-0"))
    assert rows(updating(component_pods=(elsewhere,))) == []


def test_an_operator_that_does_not_report() -> None:
    """Its condition Available is missing or Unknown."""
    for available in (None, "Unknown"):
        operators = (b.operator("machine-config", b.NEW), b.operator("etcd", b.NEW, available=available))
        assert [row.check for row in rows(updating(cluster_operators=operators))] == ["ClusterOperatorSilent"]


def test_nothing_that_moves_is_reported_whichever_component_is_to_blame() -> None:
    """It is stalled for every reader; a finding that names the cause takes its place."""
    still = updating(machine_config_pools=(b.pool("master"), worker_pool(began=299)))
    nodes = tuple(
        replace(each, status=b.node(conditions=(b.cond("Ready", "True", since=ago(999)),)).status)
        for each in still.nodes
        if isinstance(still.nodes, tuple)
    )
    found = rows(replace(still, nodes=nodes))
    assert [(row.check, row.level, row.impact) for row in found] == [
        ("UpdateMakesNoProgress", "Error", "Update Stalled")
    ]
    failing = pod(CONTROLLER, restarts=88, state=waiting("CrashLoopBackOff"))
    found = rows(replace(still, nodes=nodes, component_pods=(failing,)))
    assert [row.check for row in found] == ["ComponentCannotAct"]


def test_a_stalled_assessment_is_never_alone() -> None:
    """An operator moves now and then, but the control plane is overdue."""
    operators = (b.operator("etcd", progressing=b.cond("Progressing", "True", since=ago(1))), b.operator("network"))
    snapshot = updating(cluster_version=b.version(), cluster_operators=operators, nodes=())
    assert report(snapshot).cluster_version.assessment == "Stalled"  # type: ignore[union-attr]
    assert {row.impact for row in rows(snapshot)} == {"Update Stalled"}


def test_the_example_files_of_oc_are_assessed_by_its_rules_alone() -> None:
    """They have no pods."""
    snapshot = updating(machine_config_pools=(b.pool("master"), worker_pool(DEGRADED)))
    assert rows(replace(snapshot, pending_pods=None)) == []


def without_release(*names: str, made: datetime | None = None) -> tuple[MachineConfig, ...]:
    """MachineConfigs that do not name their release."""
    return tuple(MachineConfig(metadata=ObjectMeta(name=name, creation_timestamp=made)) for name in names)


@pytest.mark.parametrize(
    ("operator_at", "made", "done"),
    [
        pytest.param(b.NEW, None, 1, id="the operator has the target's version"),
        pytest.param(b.OLD, b.STARTED + b.minutes(1), 1, id="rendered during the update"),
        pytest.param(b.OLD, b.STARTED - b.minutes(1), 0, id="rendered before it"),
    ],
)
def test_configurations_that_do_not_name_their_release(operator_at: str, made: datetime | None, done: int) -> None:
    """Completion is derived from the operator, the history and the time of the configuration."""
    snapshot = updating(
        cluster_version=b.version(),
        cluster_operators=(b.operator("machine-config", operator_at),),
        machine_config_pools=(b.pool("master"), worker_pool()),
        machine_configs=without_release("worker-old", "worker-new", made=made),
        nodes=(b.node(current="new", desired="new"), b.node("worker-0001")),
    )
    [pool] = report(snapshot).worker_pools
    assert (pool.done, pool.counts.total) == (done, 2)
    completed = replace(snapshot, cluster_version=updating().cluster_version)
    assert report(completed).worker_pools[0].done == 1


def test_an_old_cluster_that_is_done_is_not_updating() -> None:
    """All its nodes have the configuration of their pool, which does not name a release."""
    nodes = tuple(b.node(f"worker-{i}", current="new", desired="new") for i in range(3))
    snapshot = updating(machine_configs=without_release("worker-new", "master-new"), nodes=nodes)
    assert not report(snapshot).is_updating


def test_a_node_whose_daemon_has_not_begun_is_not_completed() -> None:
    """It should have the new configuration and still has the old version; oc calls it Updated."""
    nodes = tuple(b.node(f"worker-{i}", desired="new") for i in range(3))
    [pool] = report(updating(nodes=nodes)).worker_pools
    assert (pool.done, pool.completion) == (0, 0)
    assert {(row.assessment, row.phase, row.version) for row in pool.rows} == {("Progressing", "Updating", b.OLD)}
    [pool] = report(replace(updating(nodes=nodes), pending_pods=None)).worker_pools
    assert pool.completion == 100


def test_volumes_that_are_not_detached() -> None:
    """Their pods wait elsewhere."""
    attachment = VolumeAttachment(
        metadata=ObjectMeta(name="csi-1", deletion_timestamp=ago(30)),
        spec=VolumeAttachmentSpec(
            node_name="worker-0000", source=VolumeAttachmentSource(persistent_volume_name="pv-1")
        ),
        status=VolumeAttachmentStatus(attached=True, detach_error=VolumeError(time=ago(1), message="in use")),
    )
    [row] = rows(updating(volume_attachments=(attachment,)))
    assert (row.check, row.since) == ("VolumeAttachmentStuck", ago(30))
    assert row.description.startswith("pv-1 is not detached from node worker-0000: in use.")


DENIED = 'admission webhook "v.example.com" denied the request: no'
REFUSED = "Writes of the update are refused: webhook v.example.com denies requests"


def event(message: str, *, seen: float = 5, namespace: str = "openshift-dns", reason: str = "FailedCreate") -> Event:
    """A controller could not create a pod, first an hour ago."""
    return Event(
        metadata=ObjectMeta(name="e", namespace=namespace),
        involved_object=ObjectReference(kind="ReplicaSet", namespace=namespace, name="dns-5f"),
        reason=reason,
        message=f"Error creating: {message}",
        first_timestamp=ago(60),
        last_timestamp=ago(seen),
    )


@pytest.mark.parametrize(
    ("changes", "about"),
    [
        pytest.param(
            {
                "cluster_version": b.version(
                    (b.entry(b.NEW, "Partial"), b.entry(b.OLD)),
                    failing=b.cond("Failing", "True", "UpdatePayloadFailed", DENIED, since=ago(60)),
                )
            },
            "ClusterVersion version",
            id="of ClusterVersion",
        ),
        pytest.param(
            {
                "cluster_operators": (
                    b.operator("machine-config", b.NEW),
                    b.operator("dns", b.NEW, degraded=b.cond("Degraded", "True", "Sync", DENIED, since=ago(60))),
                )
            },
            "ClusterOperator dns",
            id="of an operator",
        ),
        pytest.param(
            {
                "machine_config_pools": (
                    b.pool("master"),
                    worker_pool(
                        Condition(type="RenderDegraded", status="True", message=DENIED, last_transition_time=ago(60))
                    ),
                )
            },
            "MachineConfigPool worker",
            id="of a pool",
        ),
        pytest.param({"events": (event(DENIED),)}, "ReplicaSet openshift-dns/dns-5f", id="of an event"),
        pytest.param({"events": (event(DENIED, seen=40),)}, None, id="of an old event"),
        pytest.param({"events": (event(DENIED, namespace="shop"),)}, None, id="of an event about a user's pod"),
        pytest.param({"events": (event("no space"),)}, None, id="of an event about something else"),
        pytest.param({"events": (event(DENIED, reason="Pulled"),)}, None, id="of an event about an image"),
    ],
)
def test_a_webhook_that_refuses_writes_of_the_update(changes: dict[str, Any], about: str | None) -> None:
    """It is named wherever a component of the update quotes it."""
    found = [row for row in rows(updating(**changes)) if row.check == "UpdateWriteRefused"]
    assert [(row.level, row.summary, row.since) for row in found] == (
        [("Error", f"{REFUSED} ({about})", ago(60))] if about else []
    )


def test_a_webhook_that_refuses_several_writes_is_reported_once() -> None:
    """The finding names the first object and the number of others."""
    operator = b.operator("dns", b.NEW, degraded=b.cond("Degraded", "True", "Sync", DENIED, since=ago(5)))
    [row] = [
        row
        for row in rows(updating(cluster_operators=(operator,), events=(event(DENIED),)))
        if row.check == "UpdateWriteRefused"
    ]
    assert row.summary == f"{REFUSED} (ClusterOperator dns and 1 other object)"
    assert [ref.name for ref in row.resources] == ["dns", "dns-5f"]
