"""What an update of a cluster without a ClusterVersion waits for, and what it does not get over: cause and remedy."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import JSON, iso, pdb, pod_json
from tests.updatestatus.decide.kubernetes.rollouts import (
    NEW,
    NOW,
    OLD,
    ago,
    checks,
    groups,
    machine,
    read,
    report,
    server,
    some_pod,
)

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.api.workloads_v1 import DaemonSet, Job
from runup.api.platform_v1 import CertificateSigningRequest
from runup.api.rollouts_v1 import ClusterMachine, MachineDeployment, NodeClaim, NodePool, Plan
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.kubernetes.snapshot import KubernetesSnapshot
from runup.updatestatus.decide.read_status import Report, report_of_status

POOL = {"karpenter.sh/nodepool": "general"}
CAPI = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "md-0-x7k2p"}
MARKED = {**CAPI, "cluster.x-k8s.io/machine": "md-0-x7k2p-1"}
MD = read(
    MachineDeployment, "cluster.x-k8s.io/v1beta2", "md-0", "default", spec={"template": {"spec": {"version": NEW}}}
)


def condition(type_: str, status: str, reason: str = "", message: str = "", since: float = 40) -> JSON:
    """A condition since so many minutes."""
    return {
        "type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": iso(ago(since)),
    }  # fmt: skip


def claim(*conditions: JSON, node: str = "n-1", made: float = 40) -> NodeClaim:
    """A NodeClaim of the NodePool general."""
    metadata = {"labels": POOL, "creationTimestamp": iso(ago(made))}
    status = {"nodeName": node, "conditions": list(conditions)}
    made_claim: NodeClaim = read(NodeClaim, "karpenter.sh/v1", "general-4xk", metadata=metadata, status=status)
    return made_claim


def capi_machine(phase: str = "Running", *conditions: JSON, **metadata: Any) -> ClusterMachine:
    """A Machine of the MachineDeployment md-0, on node w-1."""
    labels = {"cluster.x-k8s.io/deployment-name": "md-0"}
    made: ClusterMachine = read(
        ClusterMachine,
        "cluster.x-k8s.io/v1beta2",
        "md-0-x7k2p-1",
        "default",
        metadata={"labels": labels, **metadata},
        status={"phase": phase, "nodeRef": {"name": "w-1"}, "conditions": list(conditions)},
    )
    # Its type in the API is Machine.
    return made


def job(**status: Any) -> Job:
    """The Job by which a Plan updates node a-1."""
    labels = {"upgrade.cattle.io/plan": "agent-plan", "upgrade.cattle.io/node": "a-1"}
    metadata = {"labels": labels, "uid": "uid-job"}
    made: Job = read(Job, "batch/v1", "apply-agent-plan-on-a-1", "system-upgrade", metadata=metadata, status=status)
    return made


def job_pod() -> Pod:
    """A pod of that Job whose image cannot be pulled."""
    waiting = {"name": "upgrade", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "uid-job", "controller": True}]
    metadata = {"ownerReferences": owners, "creationTimestamp": iso(ago(20))}
    status = {"containerStatuses": [waiting]}
    return codec.convert(
        Pod, pod_json("apply-1", "system-upgrade", on="a-1", phase="Pending", metadata=metadata, status=status)
    )


def k3s(**fields: Any) -> Report:
    """A server that is updated and an agent that a Plan works on."""
    plan = read(
        Plan,
        "upgrade.cattle.io/v1",
        "agent-plan",
        "system-upgrade",
        spec={"version": "v1.34.2+k3s1", "nodeSelector": {"matchLabels": {"k3s": "agent"}}},
        status={"applying": ["a-1"]},
    )
    return report(
        machine("s-1", "v1.34.2+k3s1", role="control-plane", since=30, annotations={}),
        machine("a-1", "v1.33.5+k3s1", labels={"k3s": "agent"}, annotations={}, cordoned=20),
        **{"plans": (plan,), **fields},
    )


BLOCKED = pdb(disruptions_allowed=0, current_healthy=2, desired_healthy=2)
READY = {"status": {"conditions": [condition("Ready", "True")]}}


@pytest.mark.parametrize(
    ("shown", "check", "summary", "remedy"),
    [
        pytest.param(
            lambda: report(
                machine("w-1", cordoned=20),
                draining_pods=(some_pod(on="w-1", **READY),),
                pod_disruption_budgets=(BLOCKED,),
            ),
            "DrainBlocked",
            "Node w-1 cannot be drained: PodDisruptionBudget shop/web allows no eviction of pod shop/web-1",
            "The drain waits until these pods may be evicted",
            id="a budget",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", cordoned=20),
                draining_pods=(
                    some_pod(on="w-1", metadata={"deletionTimestamp": iso(ago(10)), "finalizers": ["x.example/y"]}),
                ),
            ),
            "PodStuckTerminating",
            "Node w-1 cannot be drained: pod shop/web-1 does not end",
            "It has finalizers that somebody has to remove: x.example/y",
            id="a finalizer",
        ),
        pytest.param(
            lambda: report(machine("w-1", cordoned=40, ready="Unknown", since=30)),
            "NodeNotBack",
            "Node w-1 is not ready in phase Updating of its update (KubeletReady: kubelet is posting ready status)",
            "`kubectl describe node w-1`",
            id="a node that does not come back",
        ),
        pytest.param(
            lambda: report(machine("w-1", cordoned=70), draining_pods=(some_pod(on="w-1"),)),
            "NodeUpdateLate",
            "Node w-1 has been in phase Draining for longer than usual",
            "See `kubectl describe node w-1`, and the log of the kubelet on the node.",
            id="a node that is late",
        ),
        pytest.param(
            lambda: report(machine("w-1", NEW, cordoned=30, since=15), machine("w-2")),
            "NodeStillCordoned",
            f"Node w-1 has been updated to {NEW} and is still cordoned",
            "`kubectl uncordon w-1`",
            id="a node that nobody released",
        ),
        pytest.param(
            lambda: report(machine("w-1", NEW, since=100), machine("w-2"), server_pods=(server("cp", since=200),)),
            "UpdateMakesNoProgress",
            "Nothing has moved since 2026-03-01T10:20:00Z",
            "The next node is w-2 of group workers. This is how its nodes are updated: kubectl drain NODE, kubeadm",
            id="nobody goes on",
        ),
        pytest.param(
            lambda: report(machine("w-1"), server_pods=(server("cp-1", since=40), server("cp-2", OLD, since=9999))),
            "APIServersDiffer",
            f"1 API server of 2 has yet to be updated to {NEW}: cp-2",
            "kubeadm upgrade node on its other nodes",
            id="API servers that differ",
        ),
        pytest.param(
            lambda: report(machine("w-1", "v1.30.9"), machine("w-2", "v1.31.0")),
            "KubeletSkew",
            f"The kubelet of node w-1 is too old for an API server at {NEW}",
            "Update these nodes before the control plane goes any further.",
            id="a kubelet that is too old",
        ),
        pytest.param(
            lambda: report(machine("w-1", "v1.35.0")),
            "KubeletSkew",
            f"The kubelet of node w-1 is newer than an API server at {NEW}",
            "Update the API servers",
            id="a kubelet that is newer",
        ),
        pytest.param(
            lambda: report(
                machine("i-1", "v1.33.5-eks-113cf36", labels={"eks.amazonaws.com/nodegroup": "web"}, annotations={})
            ),
            "NodeGroupWaits",
            "Group web has not begun: 1 node waits at v1.33.5-eks-113cf36 for v1.34",
            "aws eks update-nodegroup-version --cluster-name CLUSTER --nodegroup-name web",
            id="a group that waits",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", NEW),
                proxies=(
                    read(
                        DaemonSet,
                        "apps/v1",
                        "kube-proxy",
                        "kube-system",
                        spec={"template": {"spec": {"containers": [{"image": "registry.k8s.io/kube-proxy:v1.33.5"}]}}},
                    ),
                ),
            ),
            "KubeProxyOutdated",
            f"kube-proxy v1.33.5 is older than the control plane at {NEW}",
            "Update it to the version of the nodes.",
            id="kube-proxy stayed behind",
        ),
        pytest.param(
            lambda: k3s(jobs=(job(failed=1),), job_pods=(job_pod(),)),
            "UpgradeJobFailed",
            "Plan agent-plan cannot update node a-1: its Job apply-agent-plan-on-a-1 waits for pod apply-1, which is "
            "in ImagePullBackOff",
            "`kubectl logs -n system-upgrade job/apply-agent-plan-on-a-1 --all-containers`",
            id="a Plan's Job that cannot start",
        ),
        pytest.param(
            lambda: k3s(jobs=(job(conditions=[condition("Failed", "True", "DeadlineExceeded", "too long")]),)),
            "UpgradeJobFailed",
            "Plan agent-plan cannot update node a-1: its Job apply-agent-plan-on-a-1 has failed (DeadlineExceeded: too "
            "long)",
            "delete the Job to have it run again",
            id="a Plan's Job that failed",
        ),
        pytest.param(
            lambda: k3s(
                plans=(
                    read(
                        Plan,
                        "upgrade.cattle.io/v1",
                        "p",
                        "system-upgrade",
                        spec={"channel": "https://update.k3s.io/x"},
                        status={"conditions": [condition("LatestResolved", "False", "Error", "404")]},
                    ),
                )
            ),
            "PlanNotResolved",
            "Plan p has no version to update to (Error)",
            "404 Give it `spec.version`, or fix its channel https://update.k3s.io/x.",
            id="a Plan without a version",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", annotations=MARKED, cordoned=30),
                machine_deployments=(MD,),
                machines=(
                    capi_machine(
                        "Deleting",
                        condition("Deleting", "True", "DrainingNode", "Drain not completed yet: * Pod shop/web-1"),
                        deletionTimestamp=iso(ago(31)),
                    ),
                ),
            ),
            "MachineNotReplaced",
            "Machine md-0-x7k2p-1 of node w-1 is not deleted (DrainingNode: Drain not completed yet: * Pod shop/web-1)",
            "`kubectl describe machines.cluster.x-k8s.io -n default md-0-x7k2p-1`",
            id="Cluster API: a machine that stays",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", annotations=MARKED),
                machine_deployments=(MD,),
                machines=(
                    capi_machine(
                        "Provisioning",
                        condition("Ready", "False", "NotReady", "quota exceeded"),
                        creationTimestamp=iso(ago(60)),
                    ),
                ),
            ),
            "MachineNotReplaced",
            "Machine md-0-x7k2p-1 of node w-1 has no node yet (NotReady: quota exceeded)",
            "The next machine is replaced when this one is ready or gone.",
            id="Cluster API: a machine that is not made",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", annotations=MARKED),
                machine_deployments=(
                    read(
                        MachineDeployment,
                        "cluster.x-k8s.io/v1beta2",
                        "md-0",
                        spec={"paused": True, "template": {"spec": {"version": NEW}}},
                    ),
                ),
            ),
            "NodeGroupPaused",
            "The update of group md-0 is paused, with 1 node to update",
            "set its `spec.paused` to false",
            id="Cluster API: paused",
        ),
        pytest.param(
            lambda: report(
                machine("n-1", NEW, labels=POOL, annotations={}),
                node_claims=(claim(condition("Launched", "False", "LaunchFailed", "insufficient capacity"), node=""),),
            ),
            "NodeClaimNotReady",
            "NodeClaim general-4xk has no ready node: it is not launched",
            "Launched (LaunchFailed: insufficient capacity)",
            id="Karpenter: no capacity",
        ),
        pytest.param(
            lambda: report(
                machine("n-1", NEW, labels=POOL, annotations={}),
                node_claims=(claim(condition("Drifted", "True", "AMIDrift")),),
                node_pools=(
                    read(
                        NodePool,
                        "karpenter.sh/v1",
                        "general",
                        spec={"disruption": {"budgets": [{"nodes": "0"}]}},
                    ),
                ),
            ),
            "DriftHeldUp",
            "Karpenter does not replace node n-1: the NodePool's disruption budget allows 0 nodes",
            "Raise `nodes` of `spec.disruption.budgets`",
            id="Karpenter: a budget of 0",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", cordoned=20),
                certificate_requests=(
                    read(
                        CertificateSigningRequest,
                        "certificates.k8s.io/v1",
                        "csr-1",
                        metadata={"creationTimestamp": iso(ago(30))},
                        spec={"signerName": "kubernetes.io/kubelet-serving", "username": "system:node:w-1"},
                    ),
                ),
            ),
            "CertificateRequestsPending",
            "1 certificate request of kubelets waits for an answer",
            "`kubectl certificate approve NAME`",
            id="a certificate request",
        ),
    ],
)
def test_reports_cause_and_remedy(shown: Any, check: str, summary: str, remedy: str) -> None:
    """Each finding says what is stuck and what helps, in the words of kubectl."""
    answer: Report = shown()
    rows = {row.check: row for row in answer.health}
    assert check in rows, checks(answer)
    assert rows[check].summary == summary
    assert remedy in rows[check].description
    assert "`oc " not in rows[check].description


@pytest.mark.parametrize(
    ("shown", "quiet"),
    [
        pytest.param(lambda: report(machine("w-1", NEW)), set(), id="all is done"),
        pytest.param(
            lambda: report(
                machine("w-1", NEW, since=5), machine("w-2", cordoned=3), draining_pods=(some_pod(on="w-2"),)
            ),
            set(),
            id="one after the other",
        ),
        pytest.param(
            lambda: report(machine("w-1", NEW, cordoned=4, since=2), machine("w-2")), set(), id="about to be released"
        ),
        pytest.param(
            lambda: report(
                machine("n-1", NEW, labels=POOL, annotations={}, since=9),
                node_claims=(claim(condition("Drifted", "True", "AMIDrift", since=5)),),
            ),
            set(),
            id="drift that begins",
        ),
        pytest.param(lambda: k3s(jobs=(job(active=1),)), set(), id="a Plan's Job that runs"),
        pytest.param(
            lambda: report(
                machine("cp-1", NEW, role="control-plane", since=5),
                machine("cp-2", OLD, role="control-plane"),
                server_pods=(server("cp-1", since=8), server("cp-2", OLD, since=9999)),
            ),
            {"APIServersDiffer"},
            id="the kubelet follows the API server of its node",
        ),
    ],
)
def test_stays_quiet_while_an_update_goes_well(shown: Any, quiet: set[str]) -> None:
    """Nothing is reported about an update that moves."""
    answer: Report = shown()
    assert set(checks(answer)) == quiet


def test_a_stuck_group_is_stalled_and_not_the_others() -> None:
    """The assessment of a group is that of its own findings."""
    shown = report(
        machine("cp", NEW, role="control-plane", since=50),
        machine("w-1", cordoned=30),
        draining_pods=(some_pod(on="w-1", **READY),),
        pod_disruption_budgets=(BLOCKED,),
    )
    assert groups(shown) == {"control-plane": ("Completed", 1, 1), "workers": ("Stalled", 0, 1)}


@pytest.mark.parametrize(
    ("fields", "nodes", "unknown"),
    [
        pytest.param({"nodes": Unreadable("forbidden")}, (), {"Nodes"}, id="nodes"),
        pytest.param({"plans": Unreadable("no")}, (machine("w", NEW),), set(), id="no node of a Plan"),
        pytest.param(
            {"plans": Unreadable("no")},
            (machine("w", NEW, labels={"plan.upgrade.cattle.io/agent-plan": "abc"}),),
            {"Plans of the system-upgrade-controller"},
            id="a node of a Plan",
        ),
        pytest.param(
            {"machines": Unreadable("no")}, (machine("w", NEW, annotations=MARKED),), {"Machines"}, id="Cluster API"
        ),
        pytest.param({"answer": ""}, (machine("w", NEW),), {"The version of the API server"}, id="the version"),
    ],
)
def test_reports_what_is_not_known(fields: dict[str, Any], nodes: tuple[Any, ...], unknown: set[str]) -> None:
    """An input that could not be read is Unknown where the nodes show that it matters."""
    snapshot = KubernetesSnapshot(**{"nodes": nodes, "answer": NEW, **fields})
    shown = report_of_status(assess(snapshot, None, NOW, max_bytes=None))
    rows = [row for row in shown.health if row.level == "Unknown"]
    assert {row.summary.partition(" could not")[0].partition(" is not known")[0] for row in rows} == unknown


def test_keeps_times_over_passes() -> None:
    """The start of the update and of each state are those of the first pass, and equal input gives an equal object."""
    nodes = (machine("w-1", NEW, since=10), machine("w-2", cordoned=5))
    snapshot = KubernetesSnapshot(nodes=nodes, answer=NEW)
    first = assess(snapshot, None, NOW)
    assert assess(snapshot, first, ago(-1)) == first
    done = KubernetesSnapshot(nodes=(nodes[0], machine("w-2", NEW, since=-20)), answer=NEW)
    last = report_of_status(assess(done, first, ago(-30)))
    assert last.cluster_version is not None
    assert (last.is_updating, last.cluster_version.started_at) == (False, ago(10))
    assert last.cluster_version.completed_at == ago(-30)
    assert last.target_text == f"{NEW} (from {OLD})"
