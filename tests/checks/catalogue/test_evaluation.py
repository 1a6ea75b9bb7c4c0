"""What the checks make of a cluster's own words, its pools, etcd and budgets' pods; how grave it is, and what to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.checks.catalogue.rows import FORBIDDEN, PATCH, SKIP, Row, evaluate
from tests.factories import (
    NOW,
    SINCE,
    cluster_operator,
    cluster_version,
    condition,
    context,
    etcd,
    infrastructure,
    node,
    pdb,
    pod,
    pool,
    snapshot,
)

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import PlacedPod
from kubekit.api.workloads_v1 import PodDisruptionBudget
from runup.api.config_v1 import ClusterOperator, ClusterVersion, UpdateHistory
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.operator_v1 import Etcd
from runup.checks.catalogue.control_plane import etcd_members
from runup.checks.catalogue.nodes import kubelet_skew, node_health, node_pools, pool_health
from runup.checks.catalogue.platform import (
    cluster_version_health,
    operator_health,
    operator_upgradeable,
    update_in_progress,
)
from runup.checks.catalogue.workloads import budget_pods, drain_blocked
from runup.checks.decide import results
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Finding
from runup.rules import machine_config

VERSION, ETCD, POOLS, PODS = cluster_version_health.CHECK, etcd_members.CHECK, node_pools.CHECK, budget_pods.CHECK
NO_ETCD, BAD_ETCD = (Etcd,), ("EtcdMembersUnhealthy",)


def past(*entries: str) -> ClusterVersion:
    """A cluster whose history is this, newest first: `5.1.0` completed, `~5.1.0` partial, `~` without a version."""
    history = tuple(
        UpdateHistory(
            state="Partial" if text.startswith("~") else "Completed", started_time=SINCE, version=text.strip("~")
        )
        for text in entries
    )
    return cluster_version(entries[0].strip("~"), history=history)


def member_trouble(reason: str = "EtcdMembers_UnhealthyMembers", **statuses: Any) -> ClusterOperator:
    """The operator etcd, degraded."""
    return cluster_operator("etcd", **({"degraded": "True"} | statuses), reason=reason)


UNREADY = {"current_healthy": 0, "disruptions_allowed": 0}

ROWS = (
    # ClusterVersion itself
    Row("version: nothing wrong", VERSION, (cluster_version(),)),
    Row("version: Failing", VERSION, (cluster_version(failing="True"),), ("ClusterVersionFailing",)),
    Row(
        "version: Failing, before a patch",
        VERSION,
        (cluster_version(failing="True"),),
        ("ClusterVersionFailing",),
        PATCH,
    ),
    Row("version: not upgradeable", VERSION, (cluster_version(upgradeable="False"),), ("ClusterVersionUpgradeable",)),
    Row("version: a patch is not held back", VERSION, (cluster_version(upgradeable="False"),), (), PATCH),
    Row(
        "version: failing and not upgradeable",
        VERSION,
        (cluster_version(failing="True", upgradeable="False"),),
        ("ClusterVersionFailing", "ClusterVersionUpgradeable"),
    ),
    Row("version: upgradeable", VERSION, (cluster_version(upgradeable="True"),)),
    Row("version: Failing Unknown", VERSION, (cluster_version(failing="Unknown"),), ("ClusterVersionHealthUnknown?",)),
    Row("version: Failing not reported", VERSION, (cluster_version(failing=None),), ("ClusterVersionHealthUnknown?",)),
    Row(
        "version: Upgradeable Unknown",
        VERSION,
        (cluster_version(upgradeable="Unknown"),),
        ("ClusterVersionHealthUnknown?",),
    ),
    Row("version: empty cluster", VERSION, (), ("ClusterVersionHealthUnknown?",)),
    Row("version: not readable", VERSION, (), ("ClusterVersionHealthUnknown?",), unreadable=(ClusterVersion,)),
    # updates that were left half done
    Row("history: all completed", VERSION, (past("5.0.7", "5.0.0"),)),
    Row("history: the newest is under way, which is another check's", VERSION, (past("~5.0.7", "5.0.0"),)),
    Row(
        "history: left for the release before",
        VERSION,
        (past("5.0.0", "~5.1.0", "5.0.0"),),
        ("ClusterVersionPartialUpdate",),
    ),
    Row("history: a patch left", VERSION, (past("5.0.0", "~5.0.7", "5.0.0"),), ("ClusterVersionPartialUpdate",)),
    Row("history: on the way back", VERSION, (past("~5.0.0", "~5.1.0", "5.0.0"),), ("ClusterVersionPartialUpdate",)),
    Row("history: completed by a newer patch", VERSION, (past("5.1.2", "~5.1.0", "5.0.0"),)),
    Row("history: completed, then back", VERSION, (past("5.0.0", "5.1.2", "~5.1.0", "5.0.0"),)),
    Row("history: a newer patch on the way", VERSION, (past("~5.1.2", "~5.1.0", "5.0.0"),)),
    Row(
        "history: a minor passed and never completed",
        VERSION,
        (past("5.2.0", "~5.1.0", "5.0.0"),),
        ("ClusterVersionPartialUpdate",),
    ),
    Row("history: a minor completed earlier", VERSION, (past("~5.1.0", "~5.0.7", "5.0.0"),)),
    Row("history: never got as far as its payload", VERSION, (past("5.0.0", "~", "5.0.0"),)),
    # etcd
    Row("etcd: all members", ETCD, (etcd(), cluster_operator())),
    Row("etcd: one is unhealthy", ETCD, (etcd(degraded="True"),), ("EtcdMembersUnhealthy",)),
    Row("etcd: no quorum", ETCD, (etcd(available="False", degraded="True"),), ("EtcdMembersUnhealthy",)),
    Row("etcd: Unknown", ETCD, (etcd(degraded="Unknown"),), ("EtcdMembersUnhealthyUnknown?",)),
    Row("etcd: not reported", ETCD, (etcd(available=None),), ("EtcdMembersUnhealthyUnknown?",)),
    Row("etcd: no such kind, a healthy operator", ETCD, (cluster_operator(),), unreadable=NO_ETCD),
    Row("etcd: no object, a healthy operator", ETCD, (cluster_operator(),)),
    Row(
        "etcd: the operator names its members", ETCD, (member_trouble(),), ("EtcdMembersUnhealthy",), unreadable=NO_ETCD
    ),
    Row(
        "etcd: the operator names its members among others",
        ETCD,
        (member_trouble("EtcdEndpoints_Error::EtcdMembers_UnhealthyMembers::Node_Down"),),
        ("EtcdMembersUnhealthy",),
    ),
    Row(
        "etcd: the operator has another trouble",
        ETCD,
        (member_trouble("Nodes_Down"),),
        ("EtcdMembersUnhealthyUnknown?",),
    ),
    Row(
        "etcd: the operator does not know",
        ETCD,
        (cluster_operator(degraded="Unknown"),),
        ("EtcdMembersUnhealthyUnknown?",),
    ),
    Row("etcd: a hosted control plane has none", ETCD, (infrastructure("External"),), unreadable=NO_ETCD),
    Row("etcd: a member without a word of the others", ETCD, (etcd(available="False", degraded=None),), BAD_ETCD),
    Row("etcd: empty cluster", ETCD, (), ("EtcdMembersUnhealthyUnknown?",)),
    Row("etcd: nothing readable", ETCD, (), ("EtcdMembersUnhealthyUnknown?",), unreadable=(Etcd, ClusterOperator)),
    # nodes and pools
    Row("node pools: each in its own", POOLS, (node("m", role="master"), node(), pool("master"), pool())),
    Row("node pools: in none", POOLS, (node(role="gpu"), pool()), ("NodeInNoPool",)),
    Row(
        "node pools: in worker and a custom one",
        POOLS,
        (node(labels={"node-role.kubernetes.io/infra": ""}), pool(), pool("infra")),
    ),
    Row(
        "node pools: master goes before a custom one",
        POOLS,
        (node(role="master", labels={"node-role.kubernetes.io/infra": ""}), pool("master"), pool("infra")),
    ),
    Row(
        "node pools: in two custom ones",
        POOLS,
        (node(labels={"gpu": "", "infra": ""}), pool(), pool("gpu", selects="gpu"), pool("infra", selects="infra")),
        ("NodeInSeveralPools",),
    ),
    Row("node pools: a pool without a selector has no nodes", POOLS, (node(), pool(selects=None)), ("NodeInNoPool",)),
    Row("node pools: an empty selector has no nodes either", POOLS, (node(), pool(selects="{}")), ("NodeInNoPool",)),
    Row(
        "node pools: Windows is not its business",
        POOLS,
        (node(role="gpu", labels={"kubernetes.io/os": "windows"}), pool()),
    ),
    Row(
        "node pools: a hosted cluster has no pools",
        POOLS,
        (node(), infrastructure("External")),
        unreadable=(MachineConfigPool,),
    ),
    Row("node pools: empty cluster", POOLS, ()),
    Row("node pools: pools not readable", POOLS, (node(),), ("NodePoolsUnknown?",), unreadable=(MachineConfigPool,)),
    Row("node pools: nodes not readable", POOLS, (), ("NodePoolsUnknown?",), unreadable=(Node,)),
    # pods of budgets
    Row("budget pods: ready ones", PODS, (pdb(), pod())),
    Row("budget pods: all unready", PODS, (pdb(**UNREADY), pod()), ("PodDisruptionBudgetPodsUnready",)),
    Row("budget pods: unready ones may go", PODS, (pdb(**UNREADY, unhealthy="AlwaysAllow"), pod())),
    Row("budget pods: some are ready", PODS, (pdb(current_healthy=1, disruptions_allowed=0), pod())),
    Row("budget pods: none expected", PODS, (pdb(**UNREADY, expected_pods=0),)),
    Row(
        "budget pods: a status older than the spec is another check's",
        PODS,
        (pdb(**UNREADY, observed_generation=0), pod()),
    ),
    Row("budget pods: not started yet, so no budget is asked", PODS, (pdb(**UNREADY), pod(phase="Pending"))),
    Row("budget pods: not on a node", PODS, (pdb(**UNREADY), pod(on=""))),
    Row("budget pods: being deleted", PODS, (pdb(**UNREADY), pod(deleted=True))),
    Row("budget pods: of a DaemonSet, which a drain leaves", PODS, (pdb(**UNREADY), pod(owner="DaemonSet"))),
    Row("budget pods: of another namespace", PODS, (pdb(**UNREADY), pod(namespace="mall"))),
    Row("budget pods: two budgets on one", PODS, (pdb("a"), pdb("b"), pod()), ("PodDisruptionBudgetsOverlap",)),
    Row(
        "budget pods: an empty selector selects all",
        PODS,
        (pdb("a"), pdb("b", selects={}), pod()),
        ("PodDisruptionBudgetsOverlap",),
    ),
    Row(
        "budget pods: budgets side by side",
        PODS,
        (pdb("a"), pdb("b", selects={"app": "db"}), pod(), pod("db", labels={"app": "db"})),
    ),
    Row(
        "budget pods: one budget in each namespace", PODS, (pdb(), pdb(namespace="mall"), pod(), pod(namespace="mall"))
    ),
    Row("budget pods: two budgets, no pod", PODS, (pdb("a"), pdb("b"))),
    Row(
        "budget pods: a single node is not drained", PODS, (pdb("a"), pdb("b"), pod(), infrastructure("SingleReplica"))
    ),
    Row("budget pods: empty cluster", PODS, ()),
    Row("budget pods: not needed, so not missed", PODS, (pdb(),), unreadable=(PlacedPod,)),
    Row(
        "budget pods: pods not readable",
        PODS,
        (pdb(**UNREADY),),
        ("PodDisruptionBudgetPodsUnknown?",),
        unreadable=(PlacedPod,),
    ),
    Row(
        "budget pods: budgets not readable",
        PODS,
        (),
        ("PodDisruptionBudgetPodsUnknown?",),
        unreadable=(PodDisruptionBudget,),
    ),
    # one odd object among good ones
    Row(
        "budgets: one share that is none leaves the others answered",
        drain_blocked.CHECK,
        (pdb("a", max_unavailable="few", disruptions_allowed=0), pdb("b", max_unavailable=0, disruptions_allowed=0)),
        ("PodDisruptionBudgetBlocksDrain", "PodDisruptionBudgetBlocksDrainUnknown?"),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_risks(row: Row) -> None:
    """A check finds exactly the cluster's risks, and reports the rest as Unknown."""
    evaluate(row)


def findings_of(check: Check, *objects: Object) -> tuple[Finding, ...]:
    """What a check finds before a minor update."""
    return run_check(check, snapshot(*objects), SKIP).findings


def minutes(number: float) -> Any:
    """So many minutes before NOW."""
    return NOW - timedelta(minutes=number)


@pytest.mark.parametrize(
    ("check", "make", "patience", "young", "old"),
    [
        (operator_health.CHECK, lambda t: cluster_operator(available="False", since=t), 10, "warning", "critical"),
        (operator_health.CHECK, lambda t: cluster_operator(degraded="True", since=t), 30, "info", "warning"),
        (VERSION, lambda t: cluster_version(failing="True", since=t), 30, "warning", "critical"),
        (pool_health.CHECK, lambda t: pool(Degraded="True", since=t), 30, "warning", "critical"),
        (ETCD, lambda t: etcd(degraded="True", since=t), 10, "warning", "critical"),
    ],
    ids=["an operator is down", "an operator is degraded", "the release fails", "a pool is degraded", "etcd members"],
)
def test_how_grave_it_is_counts_how_long_it_lasts(check: Check, make: Any, patience: int, young: str, old: str) -> None:
    """A fresh condition is not critical, nor one from a clock ahead of ours; an unknown time is no excuse."""
    ages = {-5: young, 0: young, patience - 0.1: young, patience: old, patience * 100: old}
    assert {age: findings_of(check, make(minutes(age)))[0].severity for age in ages} == ages
    assert findings_of(check, make(None))[0].severity == old


ANNOTATED = {
    "hand": {},
    "drain": {machine_config.DESIRED_DRAIN: "drain-1", machine_config.APPLIED_DRAIN: "drain-1"},
    "reboot": {machine_config.STATE: "Rebooting"},
    "release": {machine_config.DESIRED_DRAIN: "uncordon-1", machine_config.APPLIED_DRAIN: "drain-1"},
    "overtaken": {machine_config.DESIRED_DRAIN: "uncordon-1", machine_config.APPLIED_DRAIN: "uncordon-2"},
    "released": {machine_config.DESIRED_DRAIN: "uncordon-1", machine_config.APPLIED_DRAIN: "uncordon-1"},
    "stuck": {machine_config.STATE: "Degraded", machine_config.DESIRED_DRAIN: "drain-1"},
}


def test_a_node_that_the_machine_config_operator_cordoned_is_not_to_be_uncordoned() -> None:
    """Each node is listed under the remedy that fits it, however many others there are."""
    many = [node(f"a{number}", unschedulable=True) for number in range(9)]
    nodes = [node(name, unschedulable=True, annotations=annotations) for name, annotations in ANNOTATED.items()]
    by_hand, stuck, going = findings_of(node_health.CHECK, *many, *nodes)
    assert by_hand.remediation.startswith("Release a0, a1, a2, a3, a4 and 6 more with `oc adm uncordon NAME`")
    assert {item.name for item in by_hand.resources} == {"hand", "released", *(each.metadata.name for each in many)}
    assert stuck.remediation.startswith("Do not uncordon stuck: repair")
    assert going.remediation.startswith(
        "Do not uncordon drain, overtaken, reboot and release: the machine-config operator does"
    )


def test_control_plane_nodes_come_before_the_cut() -> None:
    """The one that matters is named, whatever its name: in the message, and in the resources of a report."""
    workers = [node(f"a{number}", ready="False") for number in range(400)]
    seen = snapshot(*workers, node("z", role="master", ready="False"))
    outcome = run_check(node_health.CHECK, seen, SKIP)
    assert outcome.findings[0].message.startswith("401 nodes (z, a0, a1, a10, a100 and 396 more) are not ready")
    (risk,) = results.risks([outcome])
    assert [item.name for item in risk.resources[:2]] == ["z", "a0"]


@pytest.mark.parametrize(
    ("check", "objects", "remediation"),
    [
        (
            pool_health.CHECK,
            (pool(updated=1, rendered="2", Updating="True", Updated="False", degraded=1, Degraded="True"),),
            "It does not finish while it is degraded: repair what `oc describe mcp worker` names.",
        ),
        (
            pool_health.CHECK,
            (pool(updated=1, rendered="2", Updating="True", Updated="False"),),
            "Wait until `oc get mcp worker` says UPDATED=True.",
        ),
        (
            kubelet_skew.CHECK,
            (node(kubelet="v1.30.0"),),
            "Update these nodes first (resume a paused pool and let it finish), or choose a target in between.",
        ),
        (
            kubelet_skew.CHECK,
            (node(kubelet="v1.39.0"),),
            "A kubelet is never taken back: choose a target whose Kubernetes is as new, or replace these nodes.",
        ),
        (
            kubelet_skew.CHECK,
            (node(kubelet=""),),
            "See with `oc get node NAME -o yaml` what the kubelet reports as its version, and whether it runs.",
        ),
        (
            operator_upgradeable.CHECK,
            (cluster_operator(upgradeable="False", reason="Old", message="Migrate it."),),
            "Do what its message asks for; `oc describe clusteroperator etcd` shows the newest.",
        ),
        (
            operator_upgradeable.CHECK,
            (cluster_operator(upgradeable="False", message=""),),
            "It does not say why: see its other conditions (`oc describe clusteroperator etcd`) and its pods' logs.",
        ),
        (
            update_in_progress.CHECK,
            (cluster_version(progressing="True", failing="True"),),
            "Find the cause with `oc adm upgrade status`; the update does not continue by itself.",
        ),
    ],
    ids=[
        "a degraded pool does not finish first",
        "a pool that moves does",
        "old kubelets are updated",
        "new ones cannot be taken back",
        "of unknown ones the version is asked",
        "an operator that says what it wants",
        "an operator that does not",
        "an update that fails does not go on",
    ],
)
def test_remedies_fit_the_object(check: Check, objects: tuple[Object, ...], remediation: str) -> None:
    """The remedy can be carried out, and helps."""
    assert remediation in [finding.remediation for finding in findings_of(check, *objects)]


MESSAGES: tuple[tuple[Check, tuple[Object, ...], str], ...] = (
    (
        operator_upgradeable.CHECK,
        (cluster_operator(upgradeable="False", message=""),),
        "Cluster operator etcd is not upgradeable (since 2026-01-14T09:30:00Z).",
    ),
    (
        operator_upgradeable.CHECK,
        (cluster_operator(upgradeable="False", message="cluster operator is not upgradable"),),
        "Cluster operator etcd is not upgradeable: cluster operator is not upgradable (since 2026-01-14T09:30:00Z).",
    ),
    (
        VERSION,
        (cluster_version(failing="True"),),
        "The cluster-version operator fails to apply the cluster's release: UpdatePayloadFailed: cannot apply it "
        "(since 2026-01-14T09:30:00Z).",
    ),
    (
        VERSION,
        (past("5.0.0", "~5.1.0", "5.0.0"),),
        "An update was begun and left before the end: 5.1.0 (since 2026-01-14T09:30:00Z). Parts of the cluster may be "
        "of that release still.",
    ),
    (
        update_in_progress.CHECK,
        (cluster_version(progressing="True", history=past("~5.0.9").status.history),),
        "The update to 5.0.9 is not finished: Cluster version is 5.0.0 (it has been running since "
        "2026-01-14T09:30:00Z).",
    ),
    (
        operator_upgradeable.CHECK,
        (cluster_operator(upgradeable="False", reason="MultipleReasons", message="Migrate it, or drop it"),),
        "Cluster operator etcd is not upgradeable: Migrate it, or drop it (since 2026-01-14T09:30:00Z).",
    ),
    (
        POOLS,
        (node(role="gpu"), pool()),
        "1 node (worker-0) is in no machine config pool: an update leaves it at the release that it runs.",
    ),
    (
        PODS,
        (pdb(**UNREADY, conditions=(condition("DisruptionAllowed", "False"),)), pod()),
        "No pod of 1 PodDisruptionBudget is ready, so none can be evicted and its nodes cannot be drained: shop/web "
        "(3 pods) (since 2026-01-14T09:30:00Z).",
    ),
    (
        PODS,
        (pdb("a"), pdb("b"), pod(), pod("web-2")),
        "2 pods are under more than one PodDisruptionBudget, and no such pod can be evicted: shop/a and shop/b "
        "(2 pods).",
    ),
    (
        ETCD,
        (etcd(degraded="True"),),
        "Not every member of etcd is healthy: Members: EtcdMembersDegraded (since 2026-01-14T09:30:00Z).",
    ),
)


@pytest.mark.parametrize(("check", "objects", "message"), MESSAGES, ids=[message[:50] for _, _, message in MESSAGES])
def test_messages(check: Check, objects: tuple[Object, ...], message: str) -> None:
    """The cause before the time, so that a table which cuts the message still says it."""
    (finding,) = findings_of(check, *objects)
    assert finding.message == message


UNTOLD_ETCD: tuple[tuple[tuple[Object, ...], dict[str, Any], str], ...] = (
    ((), {}, "unknown: the cluster has no Etcd named cluster, and no ClusterOperator etcd."),
    ((), {"unreadable": {Etcd: FORBIDDEN}}, f"{FORBIDDEN}, and no ClusterOperator etcd."),
    (
        (cluster_operator("etcd", available="Unknown"),),
        {},
        "unknown: the cluster has no Etcd named cluster, and its operator, which is not healthy, does not say",
    ),
    (
        (etcd(available=None),),
        {},
        "unknown: Etcd cluster does not report EtcdMembersAvailable and EtcdMembersDegraded.",
    ),
)


@pytest.mark.parametrize(("objects", "lacking", "words"), UNTOLD_ETCD, ids=[words[:60] for _, _, words in UNTOLD_ETCD])
def test_why_nothing_can_be_told_of_etcd(objects: tuple[Object, ...], lacking: dict[str, Any], words: str) -> None:
    """Returns the missing names."""
    (finding,) = run_check(ETCD, snapshot(*objects, **lacking), context()).findings
    assert (finding.name, finding.applies.value) == ("EtcdMembersUnhealthyUnknown", "Unknown")
    assert words in finding.message


def test_the_cause_is_cut_and_the_time_is_not() -> None:
    """Another component's words may be 32 KiB long."""
    (finding,) = findings_of(operator_health.CHECK, cluster_operator(degraded="True", message="x" * 32_768))
    assert len(finding.message) < 800
    assert finding.message.endswith("x ... (since 2026-01-14T09:30:00Z).")


def test_what_could_not_be_told_is_a_finding_apart_from_what_is_true() -> None:
    """Accepting one does not accept the other."""
    nodes = (node("a", kubelet=""), node("b", kubelet="v1.30.0"), node("c", ready=None), node("d", ready="False"))
    assert [f.name for f in findings_of(kubelet_skew.CHECK, *nodes)] == ["KubeletSkew", "KubeletSkewUnknown"]
    assert [f.name for f in findings_of(node_health.CHECK, *nodes)] == ["NodeNotReady", "NodeHealthUnknown"]


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        pytest.param({"undecoded": {MachineConfigPool: "gpu"}}, "MachineConfigPool gpu cannot be read: it is odd",
                     id="a pool that could not be read"),
        pytest.param({"incomplete": {MachineConfigPool: "some are lost"}}, "MachineConfigPool: some are lost",
                     id="pools that were not listed"),
    ],
)  # fmt: skip
def test_a_pool_that_is_not_known_puts_no_node_into_none(lacking: dict[str, Any], said: str) -> None:
    """Its nodes may be those; that the pool is not known is said."""
    outcome = run_check(POOLS, snapshot(node(role="gpu"), pool(), **lacking), context())
    assert [(f.name, f.applies.value) for f in outcome.findings] == [("NodePoolsUnknown", "Unknown")]
    assert said in outcome.findings[0].message
