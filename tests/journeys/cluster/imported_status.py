"""What UpdateStatus has of an imported cluster, for a reader who may read nothing else, at the time of oc's cases.

It is 368975 ns after the newest transition of ClusterVersion and the operators; the importer shows the controller the
same.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.journeys.conftest import Sandbox
from tests.servers import eventually

from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import NAME, UpdateStatus

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "oc-status"
READER = "reader-of-update-status"
NODES = resource_of(Node)
MC = "machineconfiguration.openshift.io"
NUDGE = "only for this test"
RBAC = "rbac.authorization.k8s.io"


def oc_now(case: str) -> str:
    """What oc takes for the time of a case."""
    times = [
        condition["lastTransitionTime"]
        for part in ("cv", "co")
        for document in yaml.load_all((CORPUS / f"{case}-{part}.yaml").read_text(), Loader=yaml.BaseLoader)
        for obj in document.get("items", [document])
        for condition in obj.get("status", {}).get("conditions", ())
    ]
    return f"{max(times).removesuffix('Z')}.000368975Z"


def settle(sandbox: Sandbox) -> None:
    """Wait until operator and controller have said what they make of the cluster, the controller of all of it."""
    eventually(lambda: _written(sandbox), "the first UpdateStatus")
    eventually(lambda: _operator_wrote(sandbox), "the operator's first word")
    _pass_once(sandbox)


def _written(sandbox: Sandbox) -> bool:
    try:
        return sandbox.client.send(calls.get(UpdateStatus, NAME)).status is not None
    except NotFound:
        return False


def _operator_wrote(sandbox: Sandbox) -> bool:
    """Removes the operator's own writes from the comparison."""
    found = sandbox.client.send(calls.get_raw(resource_of(ClusterVersion), "version"))
    return any(entry["manager"] == "cluster-version-operator" for entry in found["metadata"]["managedFields"])


def _pass_once(sandbox: Sandbox) -> None:
    """Make the controller look once more, by something that is there for a moment only."""
    nodes = sandbox.client.send(calls.list_raw(NODES)).items
    name = nodes[0]["metadata"]["name"]
    before = {key: nodes[0]["metadata"]["annotations"].get(key) for key in (f"{MC}/state", f"{MC}/reason")}
    for patch, there in (({f"{MC}/state": "Degraded", f"{MC}/reason": NUDGE}, True), (before, False)):
        sandbox.client.send(calls.merge_patch(NODES, name, {"metadata": {"annotations": patch}}))
        eventually(lambda there=there: (NUDGE in _text(sandbox)) is there, "the controller's look", 90)


def _text(sandbox: Sandbox) -> str:
    return str(sandbox.client.send(calls.get_raw(resource_of(UpdateStatus), NAME)))


def reader(sandbox: Sandbox) -> Path:
    """The kubeconfig of a user who may read UpdateStatus alone."""
    for kind, plural, body in (
        (
            "ClusterRole",
            "clusterroles",
            {"rules": [{"apiGroups": ["update.openshift.io"], "resources": ["updatestatuses"], "verbs": ["get"]}]},
        ),
        (
            "ClusterRoleBinding",
            "clusterrolebindings",
            {
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": READER},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": READER}],
            },
        ),
    ):
        obj = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": READER}, **body}
        sandbox.client.send(
            calls.create(Resource(group=RBAC, version="v1", kind=kind, plural=plural, namespaced=False), obj)
        )
    config = yaml.safe_load(sandbox.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = READER
    file = sandbox.data / "reader.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
