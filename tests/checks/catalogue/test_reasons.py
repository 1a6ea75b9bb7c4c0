"""The reason of a finding: in one word, why. In ClusterVersion it is the condition's, and logs are searched for it."""

from __future__ import annotations

import pytest
from tests.factories import (
    SINCE,
    cluster_operator,
    cluster_version,
    context,
    etcd,
    infrastructure,
    network,
    node,
    pdb,
    pod,
    pool,
    snapshot,
)

from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import PlacedPod
from runup.api.config_v1 import UpdateHistory
from runup.checks.catalogue.control_plane import etcd_members
from runup.checks.catalogue.network import dual_stack
from runup.checks.catalogue.nodes import node_pools, pool_health, pool_paused
from runup.checks.catalogue.platform import (
    cluster_version_health,
    operator_health,
    operator_upgradeable,
    update_in_progress,
)
from runup.checks.catalogue.workloads import budget_pods, drain_blocked
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check

UNREADY = {"current_healthy": 0, "disruptions_allowed": 0}
LEFT = tuple(
    UpdateHistory(state=state, started_time=SINCE, version=version)
    for state, version in (("Completed", "5.0.0"), ("Partial", "5.1.0"), ("Completed", "5.0.0"))
)
DUAL = network(pods=("10.128.0.0/14", "fd01::/48"), services=("172.30.0.0/16", "fd02::/112"))
UPDATING = pool(updated=1, Updating="True", Updated="False")
BUDGETS, VERSION, DRAIN = budget_pods.CHECK, cluster_version_health.CHECK, drain_blocked.CHECK


@pytest.mark.parametrize(
    ("check", "objects", "reasons"),
    [
        pytest.param(BUDGETS, (pdb(**UNREADY), pod()), {"NoPodReady"}, id="no pod of a budget is ready"),
        pytest.param(BUDGETS, (pdb("a"), pdb("b"), pod()), {"SeveralBudgets"}, id="two budgets on a pod"),
        pytest.param(VERSION, (), {"ClusterVersionMissing"}, id="no ClusterVersion"),
        pytest.param(VERSION, (cluster_version(failing="Unknown"),), {"ConditionUnknown"}, id="Failing is Unknown"),
        pytest.param(VERSION, (cluster_version(history=LEFT),), {"PartialUpdate"}, id="an update that was left"),
        pytest.param(
            DRAIN, (pdb(max_unavailable=0, disruptions_allowed=0),), {"NoDisruptionsAllowed"}, id="no disruption"
        ),
        pytest.param(
            DRAIN,
            (pdb(max_unavailable="few", disruptions_allowed=0),),
            {"BudgetStatusUnknown"},
            id="a budget that cannot be read",
        ),
        pytest.param(dual_stack.CHECK, (DUAL,), {"DualStackNetworking"}, id="two families"),
        pytest.param(
            dual_stack.CHECK,
            (network(pods=("10.128.0.0/14", "fd01::/48"), services=("172.30.0.0/16x",)),),
            {"DualStackNetworking"},
            id="two families, and a range that is none",
        ),
        pytest.param(dual_stack.CHECK, (), {"NetworkUnknown"}, id="no Network"),
        pytest.param(etcd_members.CHECK, (etcd(degraded="True"),), {"EtcdMembers"}, id="a member is unhealthy"),
        pytest.param(etcd_members.CHECK, (), {"EtcdMembersUnknown"}, id="no etcd"),
        pytest.param(node_pools.CHECK, (node(role="gpu"), pool()), {"NodeInNoPool"}, id="a node without a pool"),
        pytest.param(
            operator_health.CHECK,
            (cluster_operator(available=None),),
            {"AvailableMissing"},
            id="an operator that does not say whether it is available",
        ),
        pytest.param(
            operator_health.CHECK, (cluster_operator(degraded="True", reason="Own"),), {"Own"}, id="an operator's own"
        ),
        pytest.param(
            operator_upgradeable.CHECK,
            (cluster_operator(upgradeable="False", reason="Own"),),
            {"Own"},
            id="an operator's own for no update",
        ),
        pytest.param(pool_health.CHECK, (pool(degraded=1),), {"PoolDegraded"}, id="a degraded pool"),
        pytest.param(pool_health.CHECK, (UPDATING,), {"PoolUpdating"}, id="a pool that is being updated"),
        pytest.param(pool_paused.CHECK, (pool(paused=True),), {"PoolPaused"}, id="a paused pool"),
        pytest.param(update_in_progress.CHECK, (), {"ClusterVersionMissing"}, id="no ClusterVersion to update"),
        pytest.param(
            update_in_progress.CHECK, (cluster_version(progressing="True"),), {"UpdateInProgress"}, id="an update runs"
        ),
        pytest.param(
            update_in_progress.CHECK,
            (cluster_version(progressing=None),),
            {"ProgressUnknown"},
            id="Progressing is not said",
        ),
    ],
)
def test_why(check: Check, objects: tuple[Object, ...], reasons: set[str]) -> None:
    """One word for each cause."""
    found = run_check(check, snapshot(*objects), context()).findings
    assert {finding.reason for finding in found} == reasons


def test_why_pods_cannot_be_told() -> None:
    """They could not be listed."""
    found = run_check(BUDGETS, snapshot(pdb(**UNREADY), infrastructure(), unreadable={PlacedPod: "no"}), context())
    assert [finding.reason for finding in found.findings] == ["PodsUnknown"]
