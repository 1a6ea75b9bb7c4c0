"""Tests the findings of the built-in checks: present, absent and unknown."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.rows import MINOR, PATCH, SKIP, Row, evaluate
from tests.factories import (
    SINCE,
    cluster_operator,
    cluster_version,
    condition,
    context,
    feature_gate,
    infrastructure,
    network,
    node,
    pdb,
    pool,
    snapshot,
)

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import RESOURCES
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.lang.version import Version
from kubesandbox.apiserver.served_kinds import BUILTIN
from runup.api.cluster_settings_v1 import FeatureGate, Network
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Infrastructure, UpdateHistory
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.network import dual_stack
from runup.checks.catalogue.nodes import kubelet_skew, node_health, pool_health, pool_paused
from runup.checks.catalogue.platform import feature_set, operator_health, operator_upgradeable, update_in_progress
from runup.checks.catalogue.workloads import drain_blocked
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check
from runup.report.report import NAME

DUAL = network(pods=("10.128.0.0/14", "fd01::/48"), services=("172.30.0.0/16", "fd02::/112"))


def _partial() -> ClusterVersion:
    started = UpdateHistory(state="Partial", started_time=SINCE, version="5.0.9", image="quay.io/x@sha256:1")
    return cluster_version("5.0.9", progressing="False", history=(started,))


ROWS = (
    # dual-stack networking
    Row("dual stack: one family is clear", dual_stack.CHECK, (network(),)),
    Row("dual stack: one family, IPv6", dual_stack.CHECK, (network(pods=("fd01::/48",), services=("fd02::/112",)),)),
    Row("dual stack: two ranges of one family", dual_stack.CHECK, (network(pods=("10.0.0.0/14", "10.4.0.0/14")),)),
    Row("dual stack: both families apply", dual_stack.CHECK, (DUAL,), ("DualStackIncompatible",)),
    Row(
        "dual stack: service network alone",
        dual_stack.CHECK,
        (network(services=("172.30.0.0/16", "fd02::/112")),),
        ("DualStackIncompatible",),
    ),
    Row(
        "dual stack: a later target applies too",
        dual_stack.CHECK,
        (DUAL,),
        ("DualStackIncompatible",),
        context("5.1.3", "5.3.0"),
    ),
    Row(
        "dual stack: a candidate of 5.2 applies",
        dual_stack.CHECK,
        (DUAL,),
        ("DualStackIncompatible",),
        context("5.0.0", "5.2.0-rc.1"),
    ),
    Row("dual stack: 5.1 takes it", dual_stack.CHECK, (DUAL,), (), MINOR),
    Row(
        "dual stack: a cluster that is at 5.2 already runs it", dual_stack.CHECK, (DUAL,), (), context("5.2.0", "5.2.1")
    ),
    Row(
        "dual stack: a range that is none",
        dual_stack.CHECK,
        (network(pods=("10.128/14x",)),),
        ("DualStackIncompatible?",),
    ),
    Row(
        "dual stack: no ranges at all", dual_stack.CHECK, (network(pods=(), services=()),), ("DualStackIncompatible?",)
    ),
    Row("dual stack: no Network object", dual_stack.CHECK, (), ("DualStackIncompatible?",)),
    Row("dual stack: not readable", dual_stack.CHECK, (), ("DualStackIncompatible?",), unreadable=(Network,)),
    # operators that are not upgradeable
    Row("upgradeable: healthy", operator_upgradeable.CHECK, (cluster_operator(),)),
    Row("upgradeable: not reported means yes", operator_upgradeable.CHECK, (cluster_operator(upgradeable=None),)),
    Row(
        "upgradeable: each operator under its own name",
        operator_upgradeable.CHECK,
        (
            cluster_operator("etcd", upgradeable="False"),
            cluster_operator("dns"),
            cluster_operator("olm.v1", upgradeable="False"),
        ),
        ("ClusterOperatorUpgradeable-etcd", "ClusterOperatorUpgradeable-olm.v1"),
    ),
    Row(
        "upgradeable: Unknown is not fine",
        operator_upgradeable.CHECK,
        (cluster_operator(upgradeable="Unknown"),),
        ("ClusterOperatorUpgradeable-etcd?",),
    ),
    Row(
        "upgradeable: a patch is not held back",
        operator_upgradeable.CHECK,
        (cluster_operator(upgradeable="False"),),
        (),
        PATCH,
    ),
    Row("upgradeable: empty cluster", operator_upgradeable.CHECK, ()),
    Row(
        "upgradeable: not readable",
        operator_upgradeable.CHECK,
        (),
        ("ClusterOperatorUpgradeableUnknown?",),
        unreadable=(ClusterOperator,),
    ),
    # operators that are broken
    Row("operators: healthy", operator_health.CHECK, (cluster_operator(),)),
    Row("operators: progressing is not broken", operator_health.CHECK, (cluster_operator(progressing="True"),)),
    Row(
        "operators: degraded",
        operator_health.CHECK,
        (cluster_operator(degraded="True"),),
        ("ClusterOperatorDegraded-etcd",),
    ),
    Row(
        "operators: not available, and degraded",
        operator_health.CHECK,
        (cluster_operator(available="False", degraded="True"),),
        ("ClusterOperatorNotAvailable-etcd", "ClusterOperatorDegraded-etcd"),
    ),
    Row(
        "operators: also before a patch",
        operator_health.CHECK,
        (cluster_operator(available="False"),),
        ("ClusterOperatorNotAvailable-etcd",),
        PATCH,
    ),
    Row(
        "operators: Unknown stays unknown",
        operator_health.CHECK,
        (cluster_operator(available="Unknown", degraded="Unknown"),),
        ("ClusterOperatorNotAvailable-etcd?", "ClusterOperatorDegraded-etcd?"),
    ),
    Row(
        "operators: one that reports nothing",
        operator_health.CHECK,
        (ClusterOperator(),),
        ("ClusterOperatorNotAvailable-?", "ClusterOperatorDegraded-?"),
    ),
    Row("operators: empty cluster", operator_health.CHECK, ()),
    Row(
        "operators: not readable",
        operator_health.CHECK,
        (),
        ("ClusterOperatorHealthUnknown?",),
        unreadable=(ClusterOperator,),
    ),
    # an update in progress
    Row("updating: at rest", update_in_progress.CHECK, (cluster_version(),)),
    Row(
        "updating: Progressing",
        update_in_progress.CHECK,
        (cluster_version(progressing="True"),),
        ("ClusterVersionUpdating",),
    ),
    Row(
        "updating: an update that was never finished",
        update_in_progress.CHECK,
        (_partial(),),
        ("ClusterVersionUpdating",),
    ),
    Row(
        "updating: a patch is told as well", update_in_progress.CHECK, (_partial(),), ("ClusterVersionUpdating",), PATCH
    ),
    Row(
        "updating: Progressing not reported",
        update_in_progress.CHECK,
        (cluster_version(progressing=None),),
        ("ClusterVersionUpdating?",),
    ),
    Row(
        "updating: Progressing Unknown",
        update_in_progress.CHECK,
        (cluster_version(progressing="Unknown"),),
        ("ClusterVersionUpdating?",),
    ),
    Row(
        "updating: no history yet",
        update_in_progress.CHECK,
        (cluster_version(history=()),),
        ("ClusterVersionUpdating?",),
    ),
    Row("updating: empty cluster", update_in_progress.CHECK, (), ("ClusterVersionUpdating?",)),
    Row(
        "updating: not readable",
        update_in_progress.CHECK,
        (),
        ("ClusterVersionUpdating?",),
        unreadable=(ClusterVersion,),
    ),
    # paused pools
    Row("paused: running pools", pool_paused.CHECK, (pool("master"), pool())),
    Row(
        "paused: a paused pool",
        pool_paused.CHECK,
        (pool("master"), pool(paused=True)),
        ("MachineConfigPoolPaused-worker",),
    ),
    Row("paused: without machines it holds nothing back", pool_paused.CHECK, (pool(paused=True, machines=0),)),
    Row(
        "paused: also before a patch",
        pool_paused.CHECK,
        (pool(paused=True),),
        ("MachineConfigPoolPaused-worker",),
        PATCH,
    ),
    Row("paused: empty cluster", pool_paused.CHECK, ()),
    Row(
        "paused: not readable",
        pool_paused.CHECK,
        (),
        ("MachineConfigPoolPausedUnknown?",),
        unreadable=(MachineConfigPool,),
    ),
    Row(
        "paused: neither pools nor topology readable",
        pool_paused.CHECK,
        (),
        ("MachineConfigPoolPausedUnknown?",),
        unreadable=(MachineConfigPool, Infrastructure),
    ),
    Row(
        "paused: a hosted cluster has no pools",
        pool_paused.CHECK,
        (infrastructure("External"),),
        unreadable=(MachineConfigPool,),
    ),
    # pools that are degraded or behind
    Row("pools: up to date", pool_health.CHECK, (pool("master"), pool())),
    Row(
        "pools: degraded",
        pool_health.CHECK,
        (pool(Degraded="True", NodeDegraded="True", degraded=1),),
        ("MachineConfigPoolDegraded-worker",),
    ),
    Row(
        "pools: degraded machines before the condition follows",
        pool_health.CHECK,
        (pool(degraded=1),),
        ("MachineConfigPoolDegraded-worker",),
    ),
    Row(
        "pools: nothing can be rendered, without machines",
        pool_health.CHECK,
        (pool(machines=0, RenderDegraded="True", Degraded="True"),),
        ("MachineConfigPoolDegraded-worker",),
    ),
    Row(
        "pools: updating",
        pool_health.CHECK,
        (pool(updated=1, Updating="True", Updated="False"),),
        ("MachineConfigPoolUpdating-worker",),
    ),
    Row(
        "pools: behind before the conditions follow",
        pool_health.CHECK,
        (pool(rendered="2"),),
        ("MachineConfigPoolUpdating-worker",),
    ),
    Row(
        "pools: paused and behind does not move",
        pool_health.CHECK,
        (pool(paused=True, updated=0, rendered="2", Updated="False"),),
    ),
    Row(
        "pools: paused, but still moving",
        pool_health.CHECK,
        (pool(paused=True, updated=2, rendered="2", Updated="False", Updating="True"),),
        ("MachineConfigPoolUpdating-worker",),
    ),
    Row(
        "pools: one without machines or conditions",
        pool_health.CHECK,
        (
            pool(
                machines=0,
                rendered="2",
                RenderDegraded=None,
                NodeDegraded=None,
                Degraded=None,
                Updated=None,
                Updating=None,
            ),
        ),
    ),
    Row(
        "pools: without machines, behind a new configuration",
        pool_health.CHECK,
        (pool(machines=0, rendered="2", Updated="False", Updating="True"),),
    ),
    Row(
        "pools: machines, but no conditions",
        pool_health.CHECK,
        (pool(RenderDegraded=None, NodeDegraded=None, Degraded=None, Updated=None, Updating=None),),
        ("MachineConfigPoolDegraded-worker?", "MachineConfigPoolUpdating-worker?"),
    ),
    Row(
        "pools: conditions Unknown",
        pool_health.CHECK,
        (pool(Degraded="Unknown", Updating="Unknown"),),
        ("MachineConfigPoolDegraded-worker?", "MachineConfigPoolUpdating-worker?"),
    ),
    Row("pools: empty cluster", pool_health.CHECK, ()),
    Row(
        "pools: a hosted cluster has none",
        pool_health.CHECK,
        (infrastructure("External"),),
        unreadable=(MachineConfigPool,),
    ),
    Row(
        "pools: not readable",
        pool_health.CHECK,
        (infrastructure(),),
        ("MachineConfigPoolHealthUnknown?",),
        unreadable=(MachineConfigPool,),
    ),
    # nodes
    Row("nodes: ready", node_health.CHECK, (node(), node("worker-1"))),
    Row("nodes: not ready", node_health.CHECK, (node(), node("worker-1", ready="False")), ("NodeNotReady",)),
    Row("nodes: a kubelet that fell silent", node_health.CHECK, (node(ready="Unknown"),), ("NodeNotReady",)),
    Row("nodes: one that never reported", node_health.CHECK, (node(ready=None),), ("NodeHealthUnknown?",)),
    Row(
        "nodes: one silent, one broken",
        node_health.CHECK,
        (node(ready=None), node("worker-1", ready="False")),
        ("NodeNotReady", "NodeHealthUnknown?"),
    ),
    Row("nodes: cordoned", node_health.CHECK, (node(unschedulable=True),), ("NodeCordoned",)),
    Row(
        "nodes: cordoned and not ready",
        node_health.CHECK,
        (node(unschedulable=True, ready="False"),),
        ("NodeNotReady", "NodeCordoned"),
    ),
    Row("nodes: empty cluster", node_health.CHECK, ()),
    Row("nodes: not readable", node_health.CHECK, (), ("NodeHealthUnknown?",), unreadable=(Node,)),
    # kubelet skew
    Row("skew: 5.2 takes three minor versions", kubelet_skew.CHECK, (node(kubelet="v1.35.9+abc"),)),
    Row("skew: but not four", kubelet_skew.CHECK, (node(kubelet="v1.34.0"), node("w1")), ("KubeletSkew",)),
    Row("skew: 5.1 takes two", kubelet_skew.CHECK, (node(kubelet="v1.35.0"),), (), MINOR),
    Row("skew: 5.1 does not take three", kubelet_skew.CHECK, (node(kubelet="v1.34.0"),), ("KubeletSkew",), MINOR),
    Row("skew: newer than the target's API server", kubelet_skew.CHECK, (node(kubelet="v1.39.0"),), ("KubeletSkew",)),
    Row("skew: a version that is none", kubelet_skew.CHECK, (node(kubelet="latest"),), ("KubeletSkewUnknown?",)),
    Row("skew: no version reported", kubelet_skew.CHECK, (node(kubelet=""),), ("KubeletSkewUnknown?",)),
    Row("skew: another Kubernetes altogether", kubelet_skew.CHECK, (node(kubelet="v2.0.0"),), ("KubeletSkewUnknown?",)),
    Row(
        "skew: too old and unknown",
        kubelet_skew.CHECK,
        (node(kubelet=""), node("w1", kubelet="v1.30.1")),
        ("KubeletSkew", "KubeletSkewUnknown?"),
    ),
    Row(
        "skew: the release does not say",
        kubelet_skew.CHECK,
        (node(),),
        ("KubeletSkewUnknown?",),
        context(kubernetes=""),
    ),
    Row("skew: empty cluster", kubelet_skew.CHECK, (), (), context(kubernetes="")),
    Row("skew: not readable", kubelet_skew.CHECK, (), ("KubeletSkewUnknown?",), unreadable=(Node,)),
    # budgets that block a drain
    Row("budgets: one that allows a pod", drain_blocked.CHECK, (pdb(),)),
    Row("budgets: nothing allowed just now", drain_blocked.CHECK, (pdb(disruptions_allowed=0, current_healthy=2),)),
    Row(
        "budgets: maxUnavailable 0",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0, desired_healthy=3),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: maxUnavailable 0%",
        drain_blocked.CHECK,
        (pdb(max_unavailable="0%", disruptions_allowed=0, desired_healthy=3),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: maxUnavailable 1% is one pod, rounded up",
        drain_blocked.CHECK,
        (pdb(max_unavailable="1%", disruptions_allowed=0, current_healthy=2),),
    ),
    Row(
        "budgets: minAvailable of all pods",
        drain_blocked.CHECK,
        (pdb(min_available=3, disruptions_allowed=0, desired_healthy=3),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: minAvailable of more than there are",
        drain_blocked.CHECK,
        (pdb(min_available=5, disruptions_allowed=0, desired_healthy=5),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: minAvailable 100%",
        drain_blocked.CHECK,
        (pdb(min_available="100%", disruptions_allowed=0, desired_healthy=3),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: minAvailable 67% of three is three, rounded up",
        drain_blocked.CHECK,
        (pdb(min_available="67%", disruptions_allowed=0, desired_healthy=3),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: minAvailable 66% of three is two",
        drain_blocked.CHECK,
        (pdb(min_available="66%", disruptions_allowed=0, current_healthy=2),),
    ),
    Row(
        "budgets: one pod, one needed",
        drain_blocked.CHECK,
        (pdb(min_available=1, disruptions_allowed=0, current_healthy=1, expected_pods=1),),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: selects no pods",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0, current_healthy=0, expected_pods=0),),
    ),
    Row(
        "budgets: none of its pods is healthy",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0, current_healthy=0),),
    ),
    Row(
        "budgets: a spec without either field", drain_blocked.CHECK, (pdb(max_unavailable=None, disruptions_allowed=0),)
    ),
    Row(
        "budgets: a status that is older than the spec",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0, observed_generation=0),),
        ("PodDisruptionBudgetBlocksDrainUnknown?",),
    ),
    Row(
        "budgets: a status that could not be computed",
        drain_blocked.CHECK,
        (
            pdb(
                disruptions_allowed=0,
                expected_pods=0,
                conditions=(condition("DisruptionAllowed", "False", "SyncFailed", "no controller found"),),
            ),
        ),
        ("PodDisruptionBudgetBlocksDrainUnknown?",),
    ),
    Row(
        "budgets: a share that is none",
        drain_blocked.CHECK,
        (pdb(max_unavailable="few", disruptions_allowed=0),),
        ("PodDisruptionBudgetBlocksDrainUnknown?",),
    ),
    Row(
        "budgets: a single node is not drained",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0), infrastructure("SingleReplica")),
    ),
    Row(
        "budgets: a hosted cluster drains its nodes",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0), infrastructure("External")),
        ("PodDisruptionBudgetBlocksDrain",),
    ),
    Row(
        "budgets: topology not readable",
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0),),
        ("PodDisruptionBudgetBlocksDrain",),
        unreadable=(Infrastructure,),
    ),
    Row("budgets: empty cluster", drain_blocked.CHECK, ()),
    Row(
        "budgets: not readable",
        drain_blocked.CHECK,
        (),
        ("PodDisruptionBudgetBlocksDrainUnknown?",),
        unreadable=(PodDisruptionBudget,),
    ),
    # feature sets
    Row("feature set: default", feature_set.CHECK, (feature_gate(),)),
    Row(
        "feature set: tech preview",
        feature_set.CHECK,
        (feature_gate("TechPreviewNoUpgrade"),),
        ("FeatureSetForbidsUpdates",),
    ),
    Row(
        "feature set: dev preview",
        feature_set.CHECK,
        (feature_gate("DevPreviewNoUpgrade"),),
        ("FeatureSetForbidsUpdates",),
    ),
    Row(
        "feature set: custom, to the next minor",
        feature_set.CHECK,
        (feature_gate("CustomNoUpgrade"),),
        ("FeatureSetForbidsUpdates",),
        MINOR,
    ),
    Row("feature set: a patch is allowed", feature_set.CHECK, (feature_gate("TechPreviewNoUpgrade"),), (), PATCH),
    Row(
        "feature set: one that we do not know",
        feature_set.CHECK,
        (feature_gate("NightOwl"),),
        ("FeatureSetForbidsUpdates?",),
    ),
    Row("feature set: no object means default", feature_set.CHECK, ()),
    Row("feature set: not readable", feature_set.CHECK, (), ("FeatureSetForbidsUpdates?",), unreadable=(FeatureGate,)),
)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_risks(row: Row) -> None:
    """A check finds exactly the cluster's risks, and reports the rest as Unknown."""
    evaluate(row)


MESSAGES = (
    (dual_stack.CHECK, (DUAL,), "Cluster uses dual-stack networking configuration incompatible with 5.2.0."),
    (
        operator_upgradeable.CHECK,
        (cluster_operator(upgradeable="False", reason="Old", message="Migrate it.\nSoon."),),
        "Cluster operator etcd is not upgradeable: Old: Migrate it. Soon (since 2026-01-14T09:30:00Z).",
    ),
    (
        operator_health.CHECK,
        (cluster_operator(degraded="True", reason="", message=""),),
        "Cluster operator etcd is degraded (since 2026-01-14T09:30:00Z).",
    ),
    (
        update_in_progress.CHECK,
        (_partial(),),
        "The update to 5.0.9 is not finished (it has been running since 2026-01-14T09:30:00Z).",
    ),
    (
        pool_paused.CHECK,
        (pool(paused=True, updated=1, rendered="2"),),
        "Machine config pool worker is paused: its 3 machines will not be updated to 5.2.0. "
        "Already behind its newest configuration: 2 of 3 machines.",
    ),
    (
        pool_health.CHECK,
        (pool(updated=1, rendered="2", Updating="True", Updated="False"),),
        "Machine config pool worker is being updated, 2 of 3 machines still to come: Updating of worker "
        "(since 2026-01-14T09:30:00Z).",
    ),
    (
        node_health.CHECK,
        tuple(node(f"n{index}", ready="False") for index in range(7)),
        "7 nodes (n0, n1, n2, n3, n4 and 2 more) are not ready: KubeletReady (since 2026-01-14T09:30:00Z).",
    ),
    (
        node_health.CHECK,
        (node("a", unschedulable=True),),
        "1 node (a) is cordoned: nothing can be scheduled there when other nodes are drained.",
    ),
    (
        kubelet_skew.CHECK,
        (node("a", kubelet="v1.34.2"), node("b", kubelet="v1.33.0")),
        "The kubelets of 2 nodes (a and b) are too old for the API server of 5.2.0 (Kubernetes 1.38.1), which takes "
        "kubelets up to 3 minor versions behind: v1.33.0 and v1.34.2.",
    ),
    (
        drain_blocked.CHECK,
        (pdb(max_unavailable=0, disruptions_allowed=0),),
        "1 PodDisruptionBudget never allows an eviction, so the nodes of its pods cannot be drained: "
        "shop/web (maxUnavailable 0 of 3 pods).",
    ),
)


@pytest.mark.parametrize(("check", "objects", "message"), MESSAGES, ids=[message[:50] for _, _, message in MESSAGES])
def test_messages(check: Check, objects: tuple[Object, ...], message: str) -> None:
    """A message says what, where, since when and how many."""
    (finding,) = run_check(check, snapshot(*objects), SKIP).findings
    assert message == finding.message


@pytest.mark.parametrize(
    ("version", "limit"),
    [("4.22.0", 2), ("4.23.0", 1), ("4.24.0", 2), ("5.0.0", 1), ("5.1.0", 2), ("5.2.0", 3), ("5.3.0", 1)],
)
def test_allowed_kubelet_skew(version: str, limit: int) -> None:
    """The limits are those that cluster-kube-apiserver-operator's own tests list."""
    assert limit == kubelet_skew.allowed_skew(Version(version))


def test_every_check_has_a_name_that_can_stand_for_it() -> None:
    """The risk of a check without a result can be accepted by name, and names are unique."""
    names = [check.unknown_risk or check.name for check in CHECKS]
    assert len(set(names)) == len(names) == len(CHECKS)
    assert len(CHECKS) >= 45
    assert all(NAME.fullmatch(name) for name in names)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_every_check_declares_what_it_reads(check: Check) -> None:
    """A kind that a check looks at but does not name would be Unknown on every cluster."""
    only_declared = {resource: objects for resource, objects in snapshot().objects.items() if resource in check.reads}
    outcome = run_check(check, type(snapshot())(only_declared), SKIP)
    assert "must name it in `reads`" not in outcome.message


def test_what_checks_read_is_namespaced_where_the_kind_is() -> None:
    """A list under the wrong path is a 404, which looks like a kind that the cluster lacks."""
    known = {(kind.group, kind.plural): kind.namespaced for kind in (*BUILTIN, *RESOURCES.values())}
    reads = {read for check in CHECKS for read in check.reads}
    assert len(reads) >= 100
    assert [read for read in reads if known.get((read.group, read.plural), read.namespaced) != read.namespaced] == []
