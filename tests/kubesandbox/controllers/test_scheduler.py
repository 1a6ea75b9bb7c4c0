"""Where pods may run, and what is told where they may not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubesandbox.controllers.conftest import Cluster

from kubekit.api import codec
from kubekit.api.whole_v1 import WholeNode, WholePod
from kubekit.kube import calls
from kubesandbox.cluster import NODES
from kubesandbox.controllers.owned_pods import PODS
from kubesandbox.controllers.scheduler import why_no_node_fits, why_not

JSON = dict[str, Any]
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
OTHER = "didn't match Pod's node affinity/selector"


def node(name: str = "n", labels: JSON | None = None, **spec: Any) -> WholeNode:
    """A node."""
    return codec.convert(WholeNode, {"metadata": {"name": name, "labels": labels or {}}, "spec": spec})


def pod(**spec: Any) -> WholePod:
    """A pod without a node."""
    return codec.convert(WholePod, {"metadata": {"name": "p"}, "spec": spec})


def affinity(**term: Any) -> JSON:
    """A required node affinity of one term."""
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def requirement(key: str, operator: str, *values: str) -> list[JSON]:
    """Of labels or fields."""
    return [{"key": key, "operator": operator, "values": list(values)}]


@pytest.mark.parametrize(
    ("spec", "on", "why"),
    [
        pytest.param({}, node(), "", id="anything fits anywhere"),
        pytest.param({"nodeSelector": {"zone": "a"}}, node(labels={"zone": "a"}), "", id="its label"),
        pytest.param({"nodeSelector": {"zone": "a"}}, node(labels={"zone": "b"}), OTHER, id="another label"),
        pytest.param({}, node(unschedulable=True), "were unschedulable", id="a cordoned node"),
        pytest.param({}, node(taints=[TAINT]), "had untolerated taint {k: v}", id="a taint"),
        pytest.param({}, node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), "", id="a taint that only asks"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, node(unschedulable=True, taints=[TAINT]), "",
            id="everything is tolerated",
        ),
        pytest.param({"tolerations": [{"key": "k", "value": "v"}]}, node(taints=[TAINT]), "", id="this is tolerated"),
        pytest.param(
            {"tolerations": [{"key": "k", "value": "w"}]}, node(taints=[TAINT]), "had untolerated taint {k: v}",
            id="another value is tolerated",
        ),
        pytest.param(
            affinity(matchExpressions=requirement("zone", "In", "a", "b")), node(labels={"zone": "b"}), "",
            id="one of its labels",
        ),
        pytest.param(
            affinity(matchFields=requirement("metadata.name", "In", "m")), node("n"), OTHER, id="a node by name"
        ),
        pytest.param(affinity(), node(), OTHER, id="a term without requirements"),
    ],
)  # fmt: skip
def test_where_a_pod_fits(spec: JSON, on: WholeNode, why: str) -> None:
    """Selector, affinity, taints and cordon count."""
    assert why_not(pod(**spec), on) == why


def test_what_is_told() -> None:
    """Every reason with its number of nodes."""
    nodes = [node("a", unschedulable=True), node("b", taints=[TAINT]), node("c"), node("d")]
    found = why_no_node_fits(pod(nodeSelector={"zone": "a"}), nodes)
    expected = f"1 node(s) had untolerated taint {{k: v}}, 1 node(s) were unschedulable, 2 node(s) {OTHER}."
    assert found == f"0/4 nodes are available: {expected}"
    assert why_no_node_fits(pod(), []) == "no nodes available to schedule pods"


async def test_a_pod_waits_until_a_node_fits(cluster_with_node: Cluster) -> None:
    """It says for what, and runs when the node has it."""
    cluster = cluster_with_node
    spec = {"containers": [{"name": "c", "image": "example.com/web:1"}], "nodeSelector": {"zone": "a"}}
    await cluster.create("waiting", resource=PODS, spec=spec)
    found = await cluster.until(lambda found: found and found["status"].get("conditions"), "waiting", PODS)
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["message"] == f"0/1 nodes are available: 1 node(s) {OTHER}."
    labels = {"metadata": {"labels": {"zone": "a"}}}
    await cluster.client.send(calls.merge_patch(NODES, "node-0", labels))
    await cluster.until(lambda found: found and found["status"]["phase"] == "Running", "waiting", PODS)
