"""Where pods may run, and what is reported where they may not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import node_json
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


def whole_node(name: str = "n", **fields: Any) -> WholeNode:
    """`node_json`, decoded."""
    return codec.convert(WholeNode, node_json(name, **fields))


def unscheduled_pod(**spec: Any) -> WholePod:
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
        pytest.param({}, whole_node(), "", id="anything fits anywhere"),
        pytest.param({"nodeSelector": {"zone": "a"}}, whole_node(labels={"zone": "a"}), "", id="its label"),
        pytest.param({"nodeSelector": {"zone": "a"}}, whole_node(labels={"zone": "b"}), OTHER, id="another label"),
        pytest.param({}, whole_node(unschedulable=True), "were unschedulable", id="a cordoned node"),
        pytest.param({}, whole_node(taints=[TAINT]), "had untolerated taint {k: v}", id="a taint"),
        pytest.param({}, whole_node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), "", id="a taint that only asks"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, whole_node(unschedulable=True, taints=[TAINT]), "",
            id="everything is tolerated",
        ),
        pytest.param({"tolerations": [{"key": "k", "value": "v"}]}, whole_node(taints=[TAINT]), "", id="is tolerated"),
        pytest.param(
            {"tolerations": [{"key": "k", "value": "w"}]}, whole_node(taints=[TAINT]), "had untolerated taint {k: v}",
            id="another value is tolerated",
        ),
        pytest.param(
            affinity(matchExpressions=requirement("zone", "In", "a", "b")), whole_node(labels={"zone": "b"}), "",
            id="one of its labels",
        ),
        pytest.param(
            affinity(matchFields=requirement("metadata.name", "In", "m")), whole_node("n"), OTHER, id="a node by name"
        ),
        pytest.param(affinity(), whole_node(), OTHER, id="a term without requirements"),
    ],
)  # fmt: skip
def test_where_a_pod_fits(spec: JSON, on: WholeNode, why: str) -> None:
    """Selector, affinity, taints and cordon count."""
    assert why_not(unscheduled_pod(**spec), on) == why


def test_what_is_told() -> None:
    """Every reason with its number of nodes."""
    nodes = [whole_node("a", unschedulable=True), whole_node("b", taints=[TAINT]), whole_node("c"), whole_node("d")]
    found = why_no_node_fits(unscheduled_pod(nodeSelector={"zone": "a"}), nodes)
    expected = f"1 node(s) had untolerated taint {{k: v}}, 1 node(s) were unschedulable, 2 node(s) {OTHER}."
    assert found == f"0/4 nodes are available: {expected}"
    assert why_no_node_fits(unscheduled_pod(), []) == "no nodes available to schedule pods"


@pytest.mark.slow
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
