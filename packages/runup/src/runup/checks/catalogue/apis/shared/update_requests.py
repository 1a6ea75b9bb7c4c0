"""The requests of an update as admission policies see them: with their objects, as far as a snapshot has these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.extension_v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubekit.api.meta_v1 import Object
from kubekit.rules import policy_evaluation
from runup.checks.catalogue.apis.shared.webhooks import namespaces
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.reads import UNSET, as_dict, shape
from runup.checks.writing import Resource, Slim, Snapshot, resource_of
from runup.rules import update_writes
from runup.rules.platform_namespaces import is_system

JSON = dict[str, Any]
_ACCOUNT = "system:serviceaccount"
# More nodes than that are not evaluated one by one.
_MAX_NODES = 500


def _whole(resource: Resource) -> Slim:
    """Returns the read of a kind that keeps `spec`, of workloads only in the platform's namespaces."""
    return Slim(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        namespaced=resource.namespaced,
        type=shape(("spec",)),
        keep=_without_users,
    )


def _without_users(obj: Any) -> Any:
    namespace = obj.metadata.namespace
    return obj if not namespace or is_system(namespace) else Object(metadata=obj.metadata)


POLICIES = _whole(resource_of(ValidatingAdmissionPolicy))
BINDINGS = _whole(resource_of(ValidatingAdmissionPolicyBinding))
WORKLOADS = tuple(
    _whole(Resource(group="apps", version="v1", kind=kind, plural=plural, namespaced=True))
    for kind, plural in (("Deployment", "deployments"), ("DaemonSet", "daemonsets"))
)


class _User(NamedTuple):
    """A service account of the platform as the user of a request."""

    namespace: str
    name: str

    def to_dict(self) -> JSON:
        groups = [f"{_ACCOUNT}s", f"{_ACCOUNT}s:{self.namespace}", "system:authenticated"]
        return {"username": f"{_ACCOUNT}:{self.namespace}:{self.name}", "groups": groups}


class _Kind(NamedTuple):
    """The kind of a request's object."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_OPERATOR = _User("openshift-cluster-version", "default")
_DRAINER = _User("openshift-machine-config-operator", "machine-config-controller")
_CONTROLLER = _User("kube-system", "replicaset-controller")
_NAMESPACE_KIND = _Kind("", "v1", "Namespace", "namespaces", namespaced=False)
_NODE_KIND = _Kind("", "v1", "Node", "nodes", namespaced=False)
_POD_KIND = _Kind("", "v1", "Pod", "pods", namespaced=True)


class Requests:
    """The requests of an update as far as the snapshot has their objects."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._namespaces: dict[str, JSON] | None = None

    def namespaces(self) -> dict[str, JSON]:
        """Returns the namespaces by name, as expressions see them. Raises Unreadable."""
        if self._namespaces is None:
            objects = {each.metadata.name: as_dict(each) for each in self._snapshot.all(Namespace)}
            self._namespaces = {
                name: {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    **objects.get(name, {}),
                    "metadata": {"name": name, **objects.get(name, {}).get("metadata", {}), "labels": labels},
                }
                for name, labels in namespaces(self._snapshot).items()
            }
        return self._namespaces

    def labels_of(self, name: str) -> dict[str, str] | None:
        """Returns the labels of a namespace, None for requests outside of namespaces. Raises Unreadable."""
        if not name:
            return None
        known = self.namespaces().get(name)
        labels: dict[str, str] = known["metadata"]["labels"] if known else {"kubernetes.io/metadata.name": name}
        return labels

    def known(self) -> Iterator[policy_evaluation.Write]:
        """Yields the requests whose objects are known. Raises Unreadable."""
        for resource in WORKLOADS:
            kind = _Kind(resource.group, resource.version, resource.kind, resource.plural, namespaced=True)
            for workload in self._snapshot.listed(resource):
                if getattr(workload, "field_0", UNSET) is UNSET or not is_system(workload.metadata.namespace):
                    continue
                obj = {"apiVersion": "apps/v1", "kind": resource.kind, **as_dict(workload)}
                yield _request("UPDATE", kind, obj, _OPERATOR, old=obj)
                yield _request("CREATE", _POD_KIND, _pod_of(obj), _CONTROLLER)
        for name, obj in self.namespaces().items():
            if is_system(name):
                yield _request("UPDATE", _NAMESPACE_KIND, obj, _OPERATOR, old=obj)
        for node in self._snapshot.all(Node)[:_MAX_NODES]:
            obj = {"apiVersion": "v1", "kind": "Node", "spec": {}, **as_dict(node)}
            cordoned = {**obj, "spec": {**obj["spec"], "unschedulable": True}}
            yield _request("UPDATE", _NODE_KIND, cordoned, _DRAINER, old=obj)
        seen = set[str]()
        for pod in self._snapshot.listed(PODS):
            if pod.metadata.namespace not in seen:
                seen.add(pod.metadata.namespace)
                metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
                yield _request("CREATE", _POD_KIND, eviction, _DRAINER, subresource="eviction")

    def of_resource(self, write: update_writes.Write) -> Iterator[policy_evaluation.Write]:
        """Yields requests of one row of the table without their objects, for each namespace of its place.

        Raises Unreadable.
        """
        plural, _, subresource = write.resource.partition("/")
        kind = _Kind(write.group, "v1", "", plural, namespaced=write.namespaced)
        places = [""] if not write.namespaced else sorted(self.namespaces())
        for place in places:
            if write.place != "platform" or is_system(place):
                for operation in write.operations:
                    yield policy_evaluation.Write(
                        operation=operation,
                        kind=kind,
                        namespace=place,
                        name="",
                        user=_OPERATOR,
                        subresource=subresource,
                    )


def _pod_of(workload: JSON) -> JSON:
    """Returns the pod that a workload's controller creates, as far as its template says."""
    template = (workload.get("spec") or {}).get("template") or {}
    metadata = {**(template.get("metadata") or {}), "namespace": workload["metadata"]["namespace"]}
    metadata["name"] = f"{workload['metadata']['name']}-x"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _request(
    operation: str, kind: _Kind, obj: JSON, user: _User, *, old: JSON | None = None, subresource: str = ""
) -> policy_evaluation.Write:
    metadata = obj["metadata"]
    return policy_evaluation.Write(
        operation=operation,
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        user=user,
        obj=obj,
        old=old,
        subresource=subresource,
    )
