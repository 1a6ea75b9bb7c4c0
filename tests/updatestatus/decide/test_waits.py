"""Whom an update waits for: drains, operators, pods, releases (what users asked for beyond oc)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.updatestatus.decide import builders as b

from kubekit.api.core_v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    NodeSpec,
    Pod,
    PodSpec,
    PodStatus,
    Taint,
)
from kubekit.api.meta_v1 import Condition, LabelSelector, ObjectMeta, OwnerReference
from kubekit.api.workloads_v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from runup.api.config_v1 import Update
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.rules.machine_config import is_drain_wanted
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.memory import PreviousStatus
from runup.updatestatus.decide.nodes import Target, assess_pools
from runup.updatestatus.decide.read_status import HealthRow, report_of_status
from runup.updatestatus.decide.snapshot import Snapshot
from runup.updatestatus.decide.waiting import drain_findings, held_up_nodes

DRAINING = {"desired": "new", "state": "Working", "desiredDrain": "drain-new", "lastAppliedDrain": "uncordon-old"}
WEB = {"app": "web"}


def shop_pod(
    name: str = "web-1",
    namespace: str = "shop",
    *,
    node: str = "worker-0000",
    phase: str = "Running",
    waiting: str = "",
    owner: str = "ReplicaSet",
    created: datetime = b.STARTED,
    conditions: tuple[Condition, ...] = (b.cond("Ready", "True"),),
    ends: datetime | None = None,
    finalizers: tuple[str, ...] = (),
    **annotations: str,
) -> Pod:
    """A pod of the shop."""
    state = ContainerState(
        waiting=ContainerStateWaiting(reason=waiting, message=f"{waiting}: why") if waiting else None
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels=WEB,
            annotations=annotations,
            creation_timestamp=created,
            deletion_timestamp=ends,
            finalizers=finalizers,
            owner_references=(OwnerReference(kind=owner, name="web", controller=True),) if owner else (),
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(
            phase=phase, conditions=conditions, container_statuses=(ContainerStatus(name="c", state=state),)
        ),
    )


def budget(
    name: str = "web",
    namespace: str = "shop",
    *,
    selector: Any = WEB,
    generation: int = 1,
    policy: str = "",
    **status: Any,
) -> PodDisruptionBudget:
    """A budget that allows nothing at the moment."""
    given = {"observed_generation": 1, "current_healthy": 2, "desired_healthy": 2, "expected_pods": 2, **status}
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace, generation=generation),
        spec=PodDisruptionBudgetSpec(
            min_available=2,
            selector=None if selector is None else LabelSelector(match_labels=selector),
            unhealthy_pod_eviction_policy=policy,
        ),
        status=PodDisruptionBudgetStatus(**given),
    )


def draining(**changes: Any) -> Snapshot:
    """One of two workers is being drained."""
    return b.snapshot(
        **{
            "nodes": (b.node(**DRAINING), b.node("worker-0001")),
            "machine_config_pools": (b.pool("worker"),),
            "pending_pods": (),
            "draining_pods": (shop_pod(),),
            "pod_disruption_budgets": (budget(),),
            **changes,
        }
    )


def rows(snapshot: Snapshot, previous: UpdateStatusStatus | None = None, now: datetime = b.NOW) -> list[HealthRow]:
    """What needs attention."""
    return list(report_of_status(assess(snapshot, previous, now)).health)


def test_a_drain_that_a_budget_holds_up_names_node_pod_and_budget() -> None:
    """In the summary and as resources; a single look does not know since when."""
    [row] = rows(draining())
    assert (row.check, row.level, row.impact) == ("DrainBlocked", "Warning", "Update Speed")
    assert row.summary == (
        "Node worker-0000 cannot be drained: PodDisruptionBudget shop/web allows no eviction of pod shop/web-1"
    )
    assert (
        "pod shop/web-1 is covered by PodDisruptionBudget web (minAvailable 2, 2 of 2 pods healthy" in row.description
    )
    assert [(ref.resource, ref.name) for ref in row.resources] == [
        ("nodes", "worker-0000"),
        ("pods", "web-1"),
        ("poddisruptionbudgets", "web"),
    ]
    assert row.since is None
    assert row.reference.startswith("https://docs.runup.example/")


def test_whoever_watches_knows_since_when_a_drain_is_held_up() -> None:
    """From the first look on, through restarts; after ten minutes it is an error that stalls the update."""
    before = assess(draining(draining_pods=()), None, b.NOW)
    first = assess(draining(), before, b.NOW)
    [row] = report_of_status(first).health
    assert (row.since, row.level) == (b.NOW, "Warning")
    [row] = rows(draining(), first, b.NOW + b.minutes(10))
    assert (row.since, row.level) == (b.NOW, "Warning")
    [row] = rows(draining(), first, b.NOW + b.minutes(11))
    assert (row.since, row.level, row.impact) == (b.NOW, "Error", "Update Stalled")


def test_what_was_held_up_at_the_first_look_is_known_since_then() -> None:
    """Nobody knows since when it was before; the next look counts from the first one."""
    first = assess(draining(), None, b.NOW)
    [row] = rows(draining(), first, b.NOW + b.minutes(11))
    assert (row.since, row.level) == (b.NOW, "Error")


NODES = frozenset({"worker-0000"})


def since(status: UpdateStatusStatus) -> list[tuple[str, str, datetime | None]]:
    """Returns the reported start of the drains."""
    return [(row.check, row.level, row.since) for row in report_of_status(status).health]


def test_a_new_controller_keeps_what_it_has_not_looked_at_yet() -> None:
    """It lists pods a minute later: until then what was found stands, and ages; then it counts from the same time."""
    stuck = shop_pod("web-2", ends=b.NOW - b.minutes(9))
    before = assess(draining(draining_pods=()), None, b.NOW - b.minutes(9))
    first = assess(draining(draining_pods=(shop_pod(), stuck)), before, b.NOW)
    shown = [("DrainBlocked", "Warning", b.NOW - b.minutes(9)), ("PodStuckTerminating", "Error", b.NOW - b.minutes(9))]
    assert sorted(since(first)) == shown
    unread = draining(draining_pods=(), drains_read=frozenset())
    assert assess(unread, first, b.NOW + b.minutes(0.5)) == first
    later = assess(unread, first, b.NOW + b.minutes(2))
    assert min(since(later)) == ("DrainBlocked", "Error", b.NOW - b.minutes(9))
    assert since(assess(draining(drains_read=NODES), later, b.NOW + b.minutes(3))) == [
        ("DrainBlocked", "Error", b.NOW - b.minutes(9))
    ]
    # Once they were listed, what is not found is over; and a node that is not drained any more is not held up.
    assert since(assess(draining(draining_pods=(), drains_read=NODES), later, b.NOW + b.minutes(3))) == []
    assert since(assess(replace(unread, nodes=(b.node(),)), later, b.NOW + b.minutes(3))) == []
    assert held_up_nodes(later) == NODES
    assert held_up_nodes(None) == frozenset()


def test_a_pod_that_goes_does_not_make_the_drain_younger() -> None:
    """Another one holds it up a moment later; the node has been drained since before."""
    first = assess(draining(draining_pods=()), None, b.NOW)
    held = assess(draining(), first, b.NOW + b.minutes(2))
    gone = assess(draining(draining_pods=(shop_pod(ends=b.NOW + b.minutes(9)),)), held, b.NOW + b.minutes(9))
    assert since(gone) == []
    again = assess(draining(draining_pods=(shop_pod("web-3"),)), gone, b.NOW + b.minutes(11))
    assert since(again) == [("DrainBlocked", "Error", b.NOW)]


@pytest.mark.parametrize(("watched", "shown"), [(True, b.NOW), (False, None)], ids=["watched", "not watched"])
def test_what_began_since_an_old_report_began_at_no_known_time(watched: bool, shown: datetime | None) -> None:
    """Nobody was there to see it; what was known before keeps its time."""
    idle = assess(draining(nodes=(b.node(), b.node("worker-0001"))), None, b.NOW - b.minutes(60))
    assert since(assess(draining(), idle, b.NOW, watched=watched)) == [("DrainBlocked", "Warning", shown)]
    held = assess(draining(), idle, b.NOW - b.minutes(30))
    found = since(assess(draining(), held, b.NOW, watched=watched))
    assert found == [("DrainBlocked", "Error", b.NOW - b.minutes(30))]


@pytest.mark.parametrize(
    ("cordoned", "pool_began", "shown"),
    [
        pytest.param(12, 13, 12, id="for this update"),
        pytest.param(12, 12, 12, id="at once"),
        pytest.param(12, 11, None, id="before, by somebody else"),
        pytest.param(12, None, None, id="when the pool began is not known"),
        pytest.param(None, 13, None, id="the node was not tainted"),
    ],
)
def test_the_cluster_tells_when_a_drain_began(
    cordoned: float | None, pool_began: float | None, shown: float | None
) -> None:
    """By the time of the taint, so that a single look knows it too; minutes ago."""
    taints = [Taint(key="other", effect="NoSchedule", time_added=b.NOW - b.minutes(99))]
    taints += [Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")]
    if cordoned is not None:
        taints.append(replace(taints[1], time_added=b.NOW - b.minutes(cordoned)))
    node = replace(b.node(**DRAINING), spec=NodeSpec(unschedulable=True, taints=tuple(taints)))
    pool = b.pool("worker")
    conditions = (Condition(type="Updating", status="True", last_transition_time=b.NOW - b.minutes(pool_began or 0)),)
    status = replace(pool.status, conditions=conditions if pool_began is not None else ())
    given = draining(nodes=(node,), machine_config_pools=(replace(pool, status=status),))
    level = "Warning" if shown is None else "Error"
    assert since(assess(given, None, b.NOW)) == [
        ("DrainBlocked", level, None if shown is None else b.NOW - b.minutes(shown))
    ]
    resting = (Condition(type="Updating", status="False", last_transition_time=b.NOW - b.minutes(50)),)
    idle = replace(pool, status=replace(pool.status, conditions=resting))
    assert since(assess(replace(given, machine_config_pools=(idle,)), None, b.NOW))[0][2] is None


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"pod_disruption_budgets": (budget(disruptions_allowed=1),)}, id="an eviction is allowed"),
        pytest.param({"pod_disruption_budgets": (budget(selector={"app": "db"}),)}, id="it selects others"),
        pytest.param({"pod_disruption_budgets": (budget(selector=None),)}, id="it selects nothing"),
        pytest.param({"pod_disruption_budgets": (budget(namespace="other"),)}, id="it is of another namespace"),
        pytest.param({"draining_pods": (shop_pod(node="worker-0001"),)}, id="the pod is on another node"),
        pytest.param({"draining_pods": (shop_pod(phase="Succeeded"),)}, id="the pod has ended"),
        pytest.param({"draining_pods": (shop_pod(owner="DaemonSet"),)}, id="a DaemonSet's pod stays"),
        pytest.param({"draining_pods": (shop_pod(**{"kubernetes.io/config.mirror": "x"}),)}, id="a static pod stays"),
        pytest.param({"nodes": (b.node(),)}, id="the node is not drained"),
        pytest.param({"pod_disruption_budgets": None}, id="nobody asked for budgets"),
    ],
)
def test_what_holds_up_no_drain(changes: dict[str, Any]) -> None:
    """Nothing is said."""
    assert rows(draining(**changes)) == []


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        pytest.param(
            {"expected_pods": 0}, "2 of 0 pods healthy, 2 demanded)", id="it expects no pod, and allows nothing"
        ),
        pytest.param(
            {"generation": 2, "disruptions_allowed": 1}, "2 demanded, its status older than its spec)", id="out of date"
        ),
    ],
)
def test_reports_budgets_as_the_api_server_reads_them(limit: dict[str, Any], said: str) -> None:
    """The API server allows no disruption before the status is of the present spec."""
    [row] = rows(draining(pod_disruption_budgets=(budget(**limit),)))
    assert (row.check, "allows no eviction of pod shop/web-1" in row.summary) == ("DrainBlocked", True)
    assert said in row.description


NOT_READY = (b.cond("Ready", "False"),)


@pytest.mark.parametrize(
    ("given", "limit", "held"),
    [
        pytest.param(shop_pod(phase="Pending"), {}, False, id="one that has not started may go"),
        pytest.param(shop_pod(ends=b.NOW), {}, False, id="one that is shown to end is going"),
        pytest.param(
            shop_pod(conditions=NOT_READY), {"current_healthy": 1}, True, id="not ready, in a set that is not healthy"
        ),
        pytest.param(shop_pod(conditions=NOT_READY), {}, False, id="not ready, in a healthy set"),
        pytest.param(
            shop_pod(conditions=NOT_READY),
            {"current_healthy": 1, "policy": "AlwaysAllow"},
            False,
            id="not ready, and let go",
        ),
        pytest.param(
            shop_pod(conditions=NOT_READY), {"desired_healthy": 0}, True, id="nothing is demanded, nothing allowed"
        ),
        pytest.param(shop_pod(conditions=(b.cond("Ready", "True"),)), {"policy": "AlwaysAllow"}, True, id="ready"),
    ],
)
def test_pods_that_an_exhausted_budget_lets_go(given: Pod, limit: dict[str, Any], held: bool) -> None:
    """The API server's own exceptions."""
    found = rows(draining(draining_pods=(given,), pod_disruption_budgets=(budget(**limit),)))
    assert [row.check for row in found] == (["DrainBlocked"] if held else [])


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        pytest.param(
            (b.cond("DisruptionAllowed", "False"),),
            ", no eviction allowed since 2026-03-01T10:00:00Z)",
            id="since when",
        ),
        pytest.param((b.cond("DisruptionAllowed", "False", since=None),), "2 demanded)", id="since nobody knows when"),
        pytest.param((b.cond("DisruptionAllowed", "True"),), "2 demanded)", id="a condition that lags behind"),
        pytest.param((), "2 demanded)", id="no condition"),
    ],
)
def test_since_when_a_budget_allows_nothing(conditions: tuple[Any, ...], said: str) -> None:
    """As far as it says so itself."""
    [row] = rows(draining(pod_disruption_budgets=(budget(conditions=conditions),)))
    assert said in row.description
    assert ("no eviction allowed" in row.description) is ("no eviction" in said)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"min_available": None, "max_unavailable": 0}, "web (maxUnavailable 0, ", id="at most"),
        pytest.param(
            {"min_available": None, "max_unavailable": "0%"}, "web (maxUnavailable 0%, ", id="at most a share"
        ),
        pytest.param({"min_available": "100%"}, "web (minAvailable 100%, ", id="at least a share"),
    ],
)
def test_the_rule_of_a_budget_is_told(spec: dict[str, Any], said: str) -> None:
    """As it is written."""
    given = budget()
    [row] = rows(draining(pod_disruption_budgets=(replace(given, spec=replace(given.spec, **spec)),)))
    assert said in row.description


def test_a_pod_of_two_budgets_is_never_evicted() -> None:
    """Even if both allow it: the API server refuses to choose."""
    two = (budget("a", disruptions_allowed=1), budget("b", disruptions_allowed=1))
    [row] = rows(draining(pod_disruption_budgets=two))
    assert row.summary == (
        "Node worker-0000 cannot be drained: 2 PodDisruptionBudgets cover pod shop/web-1, and no pod is evicted that "
        "more than one covers"
    )
    two = (budget("a"), budget("b", disruptions_allowed=1))
    [row] = rows(draining(pod_disruption_budgets=two))
    assert row.summary.endswith(": 2 PodDisruptionBudgets allow no eviction of pod shop/web-1")


@pytest.mark.parametrize(
    ("finalizers", "why"),
    [
        ((), "See on the node whether its container or a volume hangs."),
        (("example.com/backup",), "It has finalizers that somebody has to remove: example.com/backup."),
    ],
)
def test_a_pod_that_does_not_end(finalizers: tuple[str, ...], why: str) -> None:
    """Five minutes after its grace period."""
    stuck = draining(draining_pods=(shop_pod(ends=b.STARTED, finalizers=finalizers),))
    assert rows(stuck, now=b.STARTED + b.minutes(5)) == []
    [row] = rows(stuck, now=b.STARTED + b.minutes(6))
    assert (row.check, row.level, row.since) == ("PodStuckTerminating", "Error", b.STARTED)
    assert row.summary == "Node worker-0000 cannot be drained: pod shop/web-1 does not end"
    assert row.description.endswith(why)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("worker", ("WorkerPool", "worker"), id="of a worker"),
        pytest.param("master", ("ControlPlane", ""), id="of the control plane"),
    ],
)
def test_whose_node_a_pod_does_not_leave(name: str, shown: tuple[str, str]) -> None:
    """The control plane's are reported there, all others with their pool."""
    node = b.node(role=name, **DRAINING)
    found = draining(nodes=(node,), machine_config_pools=(b.pool(name),), draining_pods=(shop_pod(ends=b.STARTED),))
    [pool] = assess_pools(
        found.machine_config_pools, found.nodes, {f"{name}-old": b.OLD, f"{name}-new": b.NEW}, Target(b.NEW)
    )
    assert pool.draining == 1
    [finding] = drain_findings(
        [pool], found.draining_pods, budgets=(), memory=PreviousStatus(None, b.NOW), now=b.STARTED + b.minutes(6)
    )
    assert (finding.scope, finding.pool) == shown


def test_many_pods_are_counted_in_the_summary() -> None:
    """And the first are named in the description."""
    many = tuple(shop_pod(f"web-{i:02}") for i in range(20))
    [row] = rows(draining(draining_pods=many))
    assert row.summary.endswith("PodDisruptionBudget shop/web allows no eviction of 20 pods")
    assert "web-11 is covered" in row.description
    assert ", and 8 more. Run more" in row.description
    assert len(row.resources) == 16


@pytest.mark.parametrize(
    ("notes", "wanted"),
    [
        ({"desiredDrain": "drain-a", "lastAppliedDrain": "uncordon-b"}, True),
        ({"desiredDrain": "drain-a"}, True),
        ({"desiredDrain": "drain-a", "lastAppliedDrain": "drain-a"}, False),
        ({"desiredDrain": "uncordon-a", "lastAppliedDrain": "drain-a"}, False),
        ({}, False),
    ],
)
def test_whose_pods_are_worth_reading(notes: dict[str, str], wanted: bool) -> None:
    """Those of nodes whose drain is asked for and not finished."""
    assert is_drain_wanted(b.node(**notes)) is wanted


WAITING = "Working towards 4.14.1: 1 of 9 done (1% complete), waiting on etcd"


def awaiting(operator: Any, message: str = WAITING, failing: Any = "False") -> Snapshot:
    """An update that waits for etcd."""
    progressing = b.cond("Progressing", "True", "ClusterOperatorUpdating", message)
    return b.snapshot(
        cluster_version=b.version(progressing=progressing, failing=failing),
        cluster_operators=(operator, b.operator("network")),
        pending_pods=(),
    )


def busy(name: str = "etcd") -> Any:
    """An operator that has progressed since the update began."""
    return b.operator(name, progressing=b.cond("Progressing", "True", "NodeInstaller", "1 node is at revision 8"))


@pytest.mark.parametrize(("minutes", "said"), [(30, 0), (31, 1)])
def test_an_operator_that_the_update_waits_for(minutes: int, said: int) -> None:
    """With its own reason, message and age, once it takes longer than usual."""
    found = rows(awaiting(busy()), now=b.STARTED + b.minutes(minutes))
    assert len(found) == said
    for row in found:
        assert row.summary == ("The update has waited for Cluster Operator etcd for over 30 minutes (NodeInstaller)")
        assert row.description == "etcd: 1 node is at revision 8"
        assert (row.level, row.impact, row.since) == ("Warning", "Update Speed", b.STARTED)


def test_machine_config_may_take_longer() -> None:
    """It updates the control plane's nodes one by one."""
    snapshot = awaiting(busy("machine-config"), WAITING.replace("etcd", "machine-config"))
    checks = [[row.check for row in rows(snapshot, now=b.STARTED + b.minutes(after))] for after in (30, 90, 91)]
    assert checks == [[], ["UpdateMakesNoProgress"], ["UpdateWaitsForOperator"]]


def test_whoever_watches_knows_since_when_an_idle_operator_is_waited_for() -> None:
    """It says nothing of its own; the first look at the message counts, and is carried on."""
    first = assess(awaiting(b.operator("etcd")), None, b.NOW)
    later = assess(awaiting(b.operator("etcd")), first, b.NOW + b.minutes(31))
    [row] = report_of_status(later).health
    assert row.since == b.NOW
    assert row.description == "etcd: It does not say why."


def test_a_cluster_version_that_fails_says_so_itself() -> None:
    """Then the operator is not reported twice."""
    snapshot = awaiting(busy(), failing=b.cond("Failing", "Unknown", "SlowClusterOperator", "slow"))
    assert [row.check for row in rows(snapshot, now=b.STARTED + b.minutes(45))] == ["ClusterVersionFailing"]


def test_the_awaited_operators_are_in_the_object_from_the_start() -> None:
    """For programs and pages, long before they are worth a warning; one that is updated is waited for no more."""
    insight = report_of_status(assess(awaiting(busy()), None, b.NOW)).cluster_version
    assert insight is not None
    assert [(wait.name, wait.since, wait.reason) for wait in insight.waiting_for] == [
        ("etcd", b.STARTED, "NodeInstaller")
    ]
    insight = report_of_status(assess(awaiting(b.operator("etcd", b.NEW)), None, b.NOW)).cluster_version
    assert insight is not None
    assert insight.waiting_for == ()


PLATFORM = "openshift-etcd"


def pending(*pods: Pod) -> Snapshot:
    """A cluster in which these pods are pending."""
    return b.snapshot(pending_pods=pods)


def test_pods_that_do_not_start() -> None:
    """Grouped by owner and reason; a reason that does not pass by itself is an error."""
    stuck = [shop_pod(f"etcd-{i}", PLATFORM, phase="Pending", waiting="ImagePullBackOff") for i in range(3)]
    [row] = rows(pending(*stuck), now=b.STARTED + b.minutes(11))
    assert row.summary == f"3 pods of ReplicaSet {PLATFORM}/web have not started (ImagePullBackOff)"
    assert (row.level, row.impact, row.since) == ("Error", "Update Stalled", b.STARTED)
    assert row.description == "On worker-0000. ImagePullBackOff: why"
    [row] = rows(
        pending(shop_pod("etcd-1", PLATFORM, phase="Pending", waiting="ContainerCreating", owner="")),
        now=b.STARTED + b.minutes(11),
    )
    assert row.summary == f"Pod {PLATFORM}/etcd-1 has not started (ContainerCreating)"
    assert (row.level, row.impact) == ("Warning", "Update Speed")


def test_a_pod_that_fits_on_no_node() -> None:
    """The scheduler's words."""
    unscheduled = b.cond("PodScheduled", "False", "Unschedulable", "0/6 nodes are available")
    [row] = rows(
        pending(shop_pod("a", PLATFORM, phase="Pending", node="", conditions=(unscheduled,))),
        now=b.STARTED + b.minutes(11),
    )
    assert row.summary == f"Pod {PLATFORM}/a has not started (Unschedulable)"
    assert row.description == "On no node yet. 0/6 nodes are available"


@pytest.mark.parametrize(
    ("given", "minutes"),
    [
        pytest.param(shop_pod("a", PLATFORM, phase="Pending"), 10, id="for ten minutes only"),
        pytest.param(shop_pod("a", "shop", phase="Pending"), 60, id="of a user's namespace"),
        pytest.param(shop_pod("a", PLATFORM, phase="Running"), 60, id="running"),
        pytest.param(
            shop_pod("a", PLATFORM, phase="Pending", created=b.STARTED - b.minutes(1)), 60, id="before the update"
        ),
    ],
)
def test_pods_that_are_nobodys_concern(given: Pod, minutes: float) -> None:
    """They are not reported."""
    found = rows(pending(given), now=b.STARTED + b.minutes(minutes))
    assert [row.check for row in found] == ["UpdateMakesNoProgress"] * (minutes > 30)


def accepted(status: Any, desired: Any = None) -> Snapshot:
    """A ClusterVersion that does or does not accept a release."""
    from msgspec.structs import replace

    cluster = b.version(others=(b.cond("ReleaseAccepted", status, "RetrievePayload", "no such image"),))
    return b.snapshot(
        cluster_version=replace(cluster, spec=replace(cluster.spec, desired_update=desired)), pending_pods=()
    )


def test_a_release_that_cannot_be_fetched() -> None:
    """The update does not even begin, and ClusterVersion says why."""
    [row] = rows(accepted("False", Update(version="4.14.2")))
    assert row.summary == "The requested release 4.14.2 was not accepted (RetrievePayload)"
    assert (row.level, row.impact, row.description, row.since) == (
        "Error",
        "Update Stalled",
        "no such image",
        b.STARTED,
    )
    [row] = rows(accepted("Unknown"))
    assert row.summary == "The requested release is not accepted yet (RetrievePayload)"
    assert row.level == "Warning"
    assert rows(accepted("True")) == []


FETCHER = "version-4.14.2-abcde"


def version_pod(status: PodStatus, created: float = 1, name: str = FETCHER) -> Pod:
    """A pod that copies the files of a release to a node."""
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace="openshift-cluster-version", creation_timestamp=b.STARTED - b.minutes(created)
        ),
        status=status,
    )


def container_state(**state: Any) -> PodStatus:
    """The status of a pod whose first init container is in this state."""
    return PodStatus(
        phase="Pending", init_container_statuses=(ContainerStatus(name="cleanup", state=ContainerState(**state)),)
    )


NO_IMAGE = container_state(waiting=ContainerStateWaiting(reason="ErrImagePull", message="manifest unknown"))
CRASHED = container_state(terminated=ContainerStateTerminated(exit_code=1, reason="Error", message="no space left"))
UNSCHEDULED = PodStatus(
    phase="Pending", conditions=(b.cond("PodScheduled", "False", "Unschedulable", "0/3 nodes", since=b.STARTED),)
)


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        pytest.param([version_pod(NO_IMAGE)], "cannot start (ErrImagePull: manifest unknown)", id="no image"),
        pytest.param([version_pod(replace(CRASHED, phase="Failed"))], "failed (exit code 1)", id="its program failed"),
        pytest.param(
            [version_pod(PodStatus(phase="Failed", reason="DeadlineExceeded", message="was active too long"))],
            "failed (DeadlineExceeded; was active too long)",
            id="deadline",
        ),
        pytest.param(
            [version_pod(UNSCHEDULED)], "is not scheduled (Unschedulable: 0/3 nodes)", id="it fits on no node"
        ),
        pytest.param([version_pod(NO_IMAGE), version_pod(PodStatus(phase="Running"), created=0)], "", id="newest runs"),
        pytest.param([version_pod(PodStatus(phase="Succeeded"))], "", id="done"),
        pytest.param([version_pod(NO_IMAGE, name="verify-x")], "", id="another pod"),
        pytest.param([], "", id="none"),
    ],
)
def test_the_pod_that_fetches_a_release_fails(pods: list[Pod], why: str) -> None:
    """The pod shows it before ClusterVersion does, and is named."""
    [row] = rows(replace(accepted("Unknown"), component_pods=tuple(pods)), now=b.STARTED + b.minutes(20))
    expected = "The requested release is not accepted yet (RetrievePayload)"
    assert row.summary == expected + (f": pod {FETCHER} {why}" if why else "")
    assert row.level == ("Error" if why else "Warning")
    assert [ref.name for ref in row.resources] == ["version", *([FETCHER] if why else [])]


def test_files_of_examples_are_read_by_ocs_rules_alone() -> None:
    """They know no pods, and oc would not say any of this."""
    assert rows(b.snapshot(cluster_version=accepted("False").cluster_version)) == []


def test_pods_with_a_long_grace_period_hold_a_drain_up() -> None:
    """The finding says until when at the latest, and that they may be deleted; short periods are not reported."""
    day = shop_pod("batch-0", ends=b.NOW + b.minutes(19 * 60))
    day = replace(day, metadata=replace(day.metadata, deletion_grace_period_seconds=24 * 3600))
    short = shop_pod("web-1", ends=b.NOW + b.minutes(5))
    [row] = rows(draining(draining_pods=(day, short), pod_disruption_budgets=()))
    assert (row.check, row.level, row.since) == ("PodEndsLate", "Error", b.NOW - b.minutes(5 * 60))
    assert row.summary == (
        "The drain of node worker-0000 waits for pod shop/batch-0, until 2026-03-02T05:04:00Z at the latest; "
        "it may be deleted"
    )
    assert "by its grace period of 86400 s" in row.description
    assert "`oc delete pod NAME -n NAMESPACE --grace-period=0 --force`" in row.description


def test_a_pod_that_ends_late_holds_a_drain_up_if_nobody_knows_since_when() -> None:
    """The time that remains is longer than a drain takes."""
    day = shop_pod("batch-0", ends=b.NOW + b.minutes(19 * 60))
    given = draining(draining_pods=(day,), pod_disruption_budgets=())
    unknown = replace(given, nodes=tuple(replace(node, spec=replace(node.spec, taints=())) for node in given.nodes))
    row = next(row for row in rows(unknown) if row.check == "PodEndsLate")
    assert (row.level, row.impact) == ("Error", "Update Stalled")


def test_a_budget_that_is_not_computed_says_why() -> None:
    """Its condition's reason and message; the remedy is another one."""
    failed = b.cond("DisruptionAllowed", "False", "SyncFailed", "no scale subresource")
    [row] = rows(draining(pod_disruption_budgets=(budget(conditions=(failed,)),)))
    assert row.summary.endswith("allows no eviction of pod shop/web-1 (not computed: SyncFailed)")
    assert "not computed: SyncFailed: no scale subresource" in row.description
    assert "a number as minAvailable" in row.description


def test_pods_that_a_budget_counts_on_and_that_do_not_start_are_named() -> None:
    """The replacement of an evicted pod fits nowhere."""
    unschedulable = b.cond("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")
    replacement = shop_pod("web-2", node="", phase="Pending", conditions=(unschedulable,))
    [row] = rows(draining(pending_pods=(replacement,)))
    assert "do not start: pod shop/web-2 (Unschedulable: 0/3 nodes are available)." in row.description
