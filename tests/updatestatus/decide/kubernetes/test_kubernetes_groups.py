"""How far groups of nodes are: their targets, the phases of their nodes, and how long the rest takes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.factories import config_map_json, iso
from tests.updatestatus.decide.kubernetes.rollouts import (
    NEW,
    NOW,
    OLD,
    ago,
    groups,
    machine,
    phases,
    read,
    report,
    server,
    some_pod,
)

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Node
from runup.api.rollouts_v1 import ClusterMachine, MachineDeployment, NodeClaim, Plan
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.read_status import Report

EKS_OLD, EKS_NEW = "v1.33.5-eks-113cf36", "v1.34.1-eks-a737599"
WEB = {"eks.amazonaws.com/nodegroup": "web"}
POOL = {"karpenter.sh/nodepool": "general"}
CAPI = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "md-0-x7k2p"}


def eks(name: str, version: str = EKS_OLD, **fields: Any) -> Node:
    """A node of the managed node group `web`."""
    return machine(name, version, labels=WEB, annotations={}, **fields)


def deployment(version: str = NEW, *, paused: bool = False) -> MachineDeployment:
    """The MachineDeployment md-0."""
    spec = {"paused": paused, "template": {"spec": {"version": version}}}
    made: MachineDeployment = read(MachineDeployment, "cluster.x-k8s.io/v1beta2", "md-0", "default", spec=spec)
    return made


def plan(version: str = "v1.34.2+k3s1", applying: tuple[str, ...] = (), concurrency: int = 1) -> Plan:
    """A Plan of the system-upgrade-controller for all nodes that are not of the control plane."""
    selector = {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}]}
    spec = {"concurrency": concurrency, "nodeSelector": selector, "version": version}
    status = {"applying": list(applying), "latestVersion": version}
    made: Plan = read(Plan, "upgrade.cattle.io/v1", "agent-plan", "system-upgrade", spec=spec, status=status)
    return made


def drifted(node: str) -> NodeClaim:
    """A NodeClaim that Karpenter is going to replace."""
    condition = {"type": "Drifted", "status": "True", "reason": "NodeClassDrift", "lastTransitionTime": iso(NOW)}
    made: NodeClaim = read(
        NodeClaim, "karpenter.sh/v1", f"{node}-claim", status={"nodeName": node, "conditions": [condition]}
    )
    return made


@pytest.mark.parametrize(
    ("shown", "updating", "wanted"),
    [
        pytest.param(lambda: report(machine("w", NEW)), False, {"workers": ("Completed", 1, 1)}, id="done"),
        pytest.param(
            lambda: report(machine("cp", NEW, role="control-plane", since=30), machine("w")),
            True,
            {"control-plane": ("Completed", 1, 1), "workers": ("Pending", 0, 1)},
            id="kubeadm: workers follow the control plane",
        ),
        pytest.param(
            lambda: report(machine("w-1", NEW, since=10), machine("w-2")),
            True,
            {"workers": ("Progressing", 1, 2)},
            id="kubeadm: one of two",
        ),
        pytest.param(
            lambda: report(machine("w-1", "v1.34.1", since=10)),
            True,
            {"workers": ("Pending", 0, 1)},
            id="kubeadm: a patch behind",
        ),
        pytest.param(
            lambda: report(eks("a"), eks("b"), answer="v1.34.3-eks-bbe087e"),
            False,
            {"web": ("Pending", 0, 2)},
            id="a node group that has not begun may stay",
        ),
        pytest.param(
            lambda: report(eks("a", made=5), eks("b", cordoned=5, made=5)),
            True,
            {"web": ("Progressing", 0, 2)},
            id="a node group that is new and drained",
        ),
        pytest.param(
            lambda: report(eks("a", EKS_NEW), answer="v1.34.3-eks-bbe087e"),
            False,
            {"web": ("Completed", 1, 1)},
            id="a service chooses the patch of its nodes",
        ),
        pytest.param(
            lambda: report(eks("a", EKS_NEW), eks("b", "v1.34.0-eks-1a2b3c4")),
            False,
            {"web": ("Completed", 2, 2)},
            id="patches in a node group that grew",
        ),
        pytest.param(
            lambda: report(eks("a", EKS_NEW, made=10, since=9), eks("b", cordoned=5)),
            True,
            {"web": ("Progressing", 1, 2)},
            id="a node group that is replaced",
        ),
        pytest.param(
            lambda: report(
                machine("w-1", annotations=CAPI),
                machine("w-2", NEW, since=5, annotations=CAPI),
                machine_deployments=(deployment(),),
            ),
            True,
            {"md-0": ("Progressing", 1, 2)},
            id="a MachineDeployment says the version",
        ),
        pytest.param(
            lambda: report(machine("w-1", annotations=CAPI), machine_deployments=(deployment(OLD),)),
            False,
            {"md-0": ("Completed", 1, 1)},
            id="a MachineDeployment that stays behind",
        ),
        pytest.param(
            lambda: report(machine("w-1", annotations=CAPI), machine_deployments=(deployment(paused=True),)),
            False,
            {"md-0": ("Stalled", 0, 1)},
            id="a MachineDeployment that is paused",
        ),
        pytest.param(
            lambda: report(
                machine("s", "v1.34.2+k3s1", role="control-plane", since=9, annotations={}),
                machine("a-1", "v1.33.5+k3s1", annotations={}),
                machine("a-2", "v1.33.5+k3s1", annotations={}),
                plans=(plan(applying=("a-1",)),),
            ),
            True,
            {"control-plane": ("Completed", 1, 1), "workers": ("Progressing", 0, 2)},
            id="k3s: a Plan works on the first agent",
        ),
        pytest.param(
            lambda: report(
                machine("n-1", EKS_NEW, labels=POOL, annotations={}),
                machine("n-2", EKS_NEW, labels=POOL, annotations={}),
                node_claims=(drifted("n-1"),),
            ),
            True,
            {"general": ("Progressing", 1, 2)},
            id="Karpenter: a node has drifted",
        ),
        pytest.param(
            lambda: report(machine("w", "")),
            True,
            {"workers": ("Unknown", 0, 1)},
            id="a kubelet that reports no version",
        ),
    ],
)
def test_assesses_a_group(shown: Any, updating: bool, wanted: dict[str, tuple[str, int, int]]) -> None:
    """Its assessment, the nodes that are updated, and all; and whether the cluster is updating."""
    answer: Report = shown()
    assert groups(answer) == wanted
    assert answer.is_updating is updating


@pytest.mark.parametrize(
    ("node", "pods", "phase"),
    [
        pytest.param(machine("w"), (), "Pending", id="not begun"),
        pytest.param(machine("w", cordoned=3), (some_pod(on="w"),), "Draining", id="cordoned with pods"),
        pytest.param(machine("w", cordoned=3), (), "Updating", id="drained"),
        pytest.param(machine("w", cordoned=3, ready="Unknown", since=1), (), "Updating", id="drained and away"),
        pytest.param(machine("w", ready="False", since=1), (), "Rebooting", id="away without a cordon"),
        pytest.param(machine("w", NEW, cordoned=5, since=1), (), "Updating", id="has it, and is still cordoned"),
        pytest.param(machine("w", NEW, ready="False", since=1), (), "Rebooting", id="has it, and is not ready"),
        pytest.param(machine("w", NEW, since=1), (), "Updated", id="done"),
        pytest.param(
            machine("w", taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]),
            (some_pod(on="w"),),
            "Draining",
            id="Karpenter drains without a cordon",
        ),
        pytest.param(
            machine("w", cordoned=3, taints=[{"key": "medik8s.io/drain", "effect": "NoSchedule"}]),
            (some_pod(on="w"),),
            "Pending",
            id="under maintenance",
        ),
    ],
)
def test_tells_what_a_node_is_doing(node: Node, pods: tuple[Any, ...], phase: str) -> None:
    """From its version, cordon and condition, in a group of which another node has yet to be updated."""
    shown = report(node, machine("other"), draining_pods=pods)
    assert phases(shown)["w"] == phase


def test_does_not_count_a_cordon_of_another_reason() -> None:
    """A node that was cordoned long after it was updated is not part of an update."""
    shown = report(machine("w", NEW, cordoned=60))
    assert (phases(shown), shown.is_updating) == ({"w": "Updated"}, False)


@pytest.mark.parametrize(
    ("fields", "servers", "completion"),
    [
        pytest.param({"answer": OLD}, [("kube-apiserver", OLD)], 100, id="only /version"),
        pytest.param(
            {"server_pods": (server("cp-1"), server("cp-2", OLD))}, [("cp-1", NEW), ("cp-2", OLD)], 50, id="images"
        ),
        pytest.param(
            {"server_pods": (server("cp-1"), server("cp-2", NEW)), "answers": {"kube-apiserver-cp-2": OLD}},
            [("cp-1", NEW), ("cp-2", OLD)],
            50,
            id="an answer comes before the image",
        ),
        pytest.param({"answer": "", "server_pods": Unreadable("no")}, [], 0, id="nothing"),
        pytest.param(
            {
                "server_pods": (server("cp-1", OLD),),
                "kubeadm_config": codec.convert(
                    ConfigMap,
                    config_map_json("kubeadm-config", ClusterConfiguration=f"kubernetesVersion: {NEW}\n"),
                ),
            },
            [("cp-1", OLD)],
            0,
            id="kubeadm's ConfigMap is ahead",
        ),
        pytest.param(
            {
                "server_pods": (server("cp-1", OLD),),
                "kubeadm_config": codec.convert(ConfigMap, config_map_json("kubeadm-config", ClusterConfiguration="{")),
            },
            [("cp-1", OLD)],
            100,
            id="kubeadm's ConfigMap is broken",
        ),
    ],
)
def test_names_each_api_server(fields: dict[str, Any], servers: list[tuple[str, str]], completion: int) -> None:
    """With its version, and how many of them have the newest."""
    insight = report(machine("w", OLD), **fields).kubernetes
    assert insight is not None
    assert [(each.name, each.version) for each in insight.api_servers] == servers
    assert insight.completion == completion


def test_the_servers_of_k3s_run_in_the_kubelet() -> None:
    """So they have its version."""
    shown = report(
        machine("s-1", "v1.34.2+k3s1", role="control-plane", annotations={}),
        machine("s-2", "v1.33.5+k3s1", role="control-plane", annotations={}),
    ).kubernetes
    assert shown is not None
    assert [(each.name, each.version) for each in shown.api_servers] == [
        ("s-1", "v1.34.2+k3s1"),
        ("s-2", "v1.33.5+k3s1"),
    ]


def test_estimates_by_the_nodes_so_far() -> None:
    """Nodes came back ten minutes apart, and two are left."""
    done = [machine(f"w-{number}", NEW, since=5 + 10 * number) for number in range(3)]
    shown = report(*done, machine("x-1"), machine("x-2"))
    assert shown.cluster_version is not None
    assert shown.cluster_version.estimated_completed_at == NOW + timedelta(minutes=20)
    assert shown.cluster_version.started_at == ago(25)
    rows = {row.name: row.estimate_text for pool in shown.pools for row in pool.rows}
    assert (rows["x-1"], rows["w-0"]) == ("+10m", "-")


@pytest.mark.parametrize("nodes", [(machine("w-1", NEW, since=5), machine("w-2")), (machine("w-1"), machine("w-2"))])
def test_does_not_estimate_from_one_node(nodes: tuple[Node, ...]) -> None:
    """One node that came back does not show how long a node takes."""
    shown = report(*nodes)
    assert shown.cluster_version is not None
    assert shown.cluster_version.estimated_completed_at is None


def test_gives_groups_names_that_the_api_accepts() -> None:
    """A label may have capitals and underscores, and be another group's name without them."""
    label = "eks.amazonaws.com/nodegroup"
    shown = report(*(machine(name, labels={label: name}, annotations={}) for name in ("Web_1", "web-1", "a.-b")))
    assert sorted(groups(shown)) == ["a.b", "web-1", "web-1-x"]


def test_a_machine_that_is_deleted_is_being_updated() -> None:
    """Cluster API deletes the Machine before it cordons the node."""
    gone = read(
        ClusterMachine,
        "cluster.x-k8s.io/v1beta2",
        "md-0-x7k2p-1",
        "default",
        metadata={"deletionTimestamp": iso(ago(1))},
        status={"nodeRef": {"name": "w-1"}},
    )
    shown = report(machine("w-1", annotations=CAPI), machines=(gone,), machine_deployments=(deployment(),))
    assert phases(shown) == {"w-1": "Updating"}
