"""Nodes and pools that a controller holds: the remedy ends its request, and does not undo its work."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import BY_NAME, JSON
from tests.factories import context, node_json, pool_json

from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodemaintenances.nodemaintenance.medik8s.io"},
    "spec": {
        "group": "nodemaintenance.medik8s.io",
        "names": {"kind": "NodeMaintenance", "plural": "nodemaintenances"},
        "versions": [{"name": "v1beta1", "served": True, "storage": True}],
    },
}


def maintenance(name: str, node: str) -> JSON:
    """A NodeMaintenance of a node."""
    metadata = {"apiVersion": "nodemaintenance.medik8s.io/v1beta1", "kind": "NodeMaintenance"}
    return {**metadata, "metadata": {"name": name}, "spec": {"nodeName": node}}


def taint(key: str) -> dict[str, Any]:
    """Arguments of a cordoned node that has this taint."""
    return {"taints": [{"key": key, "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("mark", "text", "remedy"),
    [
        pytest.param({}, "is cordoned:", "Release worker-0 with `oc adm uncordon NAME`", id="no controller"),
        pytest.param(
            taint("medik8s.io/drain"), "by the node maintenance operator", "nodemaintenance disk", id="request"
        ),
        pytest.param(
            taint("kubevirt.io/drain"), "by the node maintenance operator", "nodemaintenance disk", id="older"
        ),
        pytest.param(taint("ToBeDeletedByClusterAutoscaler"), "by the cluster autoscaler", "Wait", id="autoscaler"),
        pytest.param(taint("karpenter.sh/disrupted"), "by Karpenter", "Wait until Karpenter", id="Karpenter"),
        pytest.param(taint("medik8s.io/remediation"), "by a remediation operator", "Repair the node", id="remediation"),
        pytest.param(
            taint("aws-node-termination-handler/spot-itn"), "by the AWS node termination handler", "Wait", id="spot"
        ),
        pytest.param(
            {"annotations": {"weave.works/kured-reboot-in-progress": "2026-01-14T08:00:00Z"}},
            "by kured",
            "uncordons the node",
            id="restart",
        ),
    ],
)
def test_remedy_respects_who_cordoned(mark: dict[str, Any], text: str, remedy: str) -> None:
    check = BY_NAME["NodeHealth"]
    objects = [node_json(unschedulable=True, **mark), maintenance("disk", "worker-0"), maintenance("b", "worker-1")]
    (finding,) = run_check(check, snapshot_of(check.reads, [*objects, DEFINITION]), context()).findings
    assert finding.name == "NodeCordoned"
    assert text in finding.message
    assert remedy in finding.remediation
    assert mark == {} or "adm uncordon" not in finding.remediation


def test_a_maintenance_that_cannot_be_read_is_still_the_owner() -> None:
    """The taint shows the operator; only the name of its request is missing."""
    check = BY_NAME["NodeHealth"]
    lacking = snapshot_of(
        check.reads,
        [node_json(unschedulable=True, **taint("medik8s.io/drain"))],
        lacking=lambda read: "" if read.kind == "Node" else "forbidden",
    )
    (finding,) = run_check(check, lacking, context()).findings
    assert "`oc get nodemaintenance` lists them by node" in finding.remediation


@pytest.mark.parametrize(
    ("annotations", "remedy"),
    [
        ({"sriovnetwork.openshift.io/state": "Paused"}, "SR-IOV network operator"),
        ({"sriovnetwork.openshift.io/state": "Idle"}, '{"spec":{"paused":false}}'),
        ({"update.runup.dev/paused-by": "u"}, "`oc get updateruns` shows its step"),
    ],
)
def test_remedy_respects_who_paused(annotations: dict[str, str], remedy: str) -> None:
    check = BY_NAME["MachineConfigPoolPaused"]
    pool = pool_json(spec={"paused": True})
    pool["metadata"]["annotations"] = annotations
    (finding,) = run_check(check, snapshot_of(check.reads, [pool]), context()).findings
    assert remedy in finding.remediation
