"""Lists the requests of an update with their objects, as far as a snapshot has these: what admission policies see.

Each row of `update_writes` becomes requests. Objects are known about the platform's workloads, the pods of their
templates, Namespaces, CustomResourceDefinitions, nodes, and evictions. Requests for other objects have no object;
labels that a selector needs are then taken as absent, since the labels of a release's objects are the release's. Where
the release is known, its own objects are requests as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import astuple

from kubekit.api.core_v1 import Namespace, Node
from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.meta_v1 import Object
from kubekit.rules.policy_evaluation import Write
from runup.api.clusterversion_json import mapping
from runup.checks.catalogue.apis.shared.release_writes import ReleaseWrite, release_writes
from runup.checks.catalogue.apis.shared.webhooks import namespaces
from runup.checks.catalogue.shared.platform_workloads import WORKLOADS, platform_workloads, pod_of
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.built_in_groups import is_built_in
from runup.checks.decide.cluster_kinds import ClusterKind, is_openshifts
from runup.checks.decide.reads import as_dict
from runup.checks.writing import Context, Resource, Slim, Snapshot
from runup.rules import update_writes
from runup.rules.platform_namespaces import is_system

JSON = dict[str, Any]
Path = tuple[str, ...]


class User(NamedTuple):
    """A user of the API, as the server sees it."""

    name: str
    groups: tuple[str, ...]

    def to_dict(self) -> JSON:
        return {"username": self.name, "groups": [*self.groups, "system:authenticated"]}


def _account(namespace: str, name: str) -> User:
    prefix = "system:serviceaccount"
    return User(f"{prefix}:{namespace}:{name}", (f"{prefix}s", f"{prefix}s:{namespace}"))


def _kubelet(node: Node) -> User:
    return User(f"system:node:{node.metadata.name}", ("system:nodes",))


_RELEASE_OPERATOR = _account("openshift-cluster-version", "default")
_DRAINER = _account("openshift-machine-config-operator", "machine-config-controller")
_ADMINISTRATOR = User("kubernetes-admin", ("kubeadm:cluster-admins", "system:masters"))
_POD_MAKERS = {
    "Deployment": _account("kube-system", "replicaset-controller"),
    "DaemonSet": _account("kube-system", "daemon-set-controller"),
    "StatefulSet": _account("kube-system", "statefulset-controller"),
}
# Nodes and controllers; which of them sends a request is different for each resource.
_CONTROL_PLANE = (User("system:node:node", ("system:nodes",)), *_POD_MAKERS.values())


class _Kind(Resource, frozen=True):
    """The kind of a request's object, as policies see it; the version of a kind without a name is not known."""

    @property
    def resource(self) -> str:
        """The resource's full name."""
        return self.name


_POD_KIND = _Kind("", "v1", "Pod", "pods", namespaced=True)
_NODE_KIND = _Kind("", "v1", "Node", "nodes", namespaced=False)
_NAMESPACE_KIND = _Kind("", "v1", "Namespace", "namespaces", namespaced=False)
_DEFINITION_KIND = _Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
# What is known about the objects of a request, as prefixes of paths.
_METADATA: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    *(("metadata", name) for name in ("name", "namespace", "labels", "annotations", "ownerReferences", "finalizers")),
)
_OF_POD: tuple[Path, ...] = (*_METADATA[:2], *_METADATA[3:6], ("spec",))
_OF_NODE = (*_METADATA, ("spec", "unschedulable"), ("spec", "taints"))
_OF_LISTED_POD = _METADATA[:5]
_OF_DEFINITION = (*_METADATA, ("spec", "group"), ("spec", "names", "kind"), ("spec", "names", "plural"))
_OF_EVICTION: tuple[Path, ...] = (("apiVersion",), ("kind",), ("metadata",))
# The operator replaces the other fields.
_KEPT = _METADATA[:4]
_EVERYTHING: tuple[Path, ...] = ((),)
_NAMESPACE_ALONE: tuple[Path, ...] = (("metadata", "namespace"),)


class Request(NamedTuple):
    """A request of the update and its known properties.

    users: those of whom one sends it; known, known_old: prefixes of the paths of the object, and of the object before,
        whose values are known.
    """

    write: Write
    users: tuple[User, ...]
    known: tuple[Path, ...]
    known_old: tuple[Path, ...]

    def knows(self, path: Path) -> bool:
        """Returns whether the value at a path of an expression's variable is known."""
        root, below = path[0], path[1:]
        if root in ("object", "oldObject"):
            is_old = root == "oldObject"
            state, known = (self.write.old, self.known_old) if is_old else (self.write.obj, self.known)
            return state is None or any(below[: len(prefix)] == prefix for prefix in known)
        if root == "request":
            return below in _REQUEST_FIELDS or (bool(self.write.kind.kind) and below[:1] in _REQUEST_FIELDS_OF_KIND)
        if root == "namespaceObject":
            return not self.write.namespace or below[:2] in _METADATA
        # Other names are of variables, whose expressions are read as well, or of comprehensions.
        return root not in ("params", "authorizer")


_REQUEST_FIELDS = frozenset(
    {
        *(("operation",), ("namespace",), ("subResource",), ("requestSubResource",), ("dryRun",)),
        *(("userInfo", "username"), ("userInfo", "groups")),
        *((field, part) for field in ("resource", "requestResource") for part in ("group", "resource")),
        *((field, "group") for field in ("kind", "requestKind")),
    }
)
_REQUEST_FIELDS_OF_KIND = frozenset((it,) for it in ("name", "kind", "requestKind", "resource", "requestResource"))


class Source(NamedTuple):
    """Requests of one operation on one resource, and the function that lists them. It raises Unreadable.

    denials_only: a policy that cannot be evaluated for them is not reported. Other requests have their objects, or the
        cluster's policies admitted the objects when they were created.
    """

    group: str
    resource: str
    operation: str
    requests: Callable[[], Iterator[Request]]
    denials_only: bool = False


class Requests:
    """The requests of an update of a cluster."""

    def __init__(self, snapshot: Snapshot, context: Context) -> None:
        self._snapshot = snapshot
        self._is_openshift = context.cluster is ClusterKind.OPENSHIFT
        # By group, plural, and operation.
        self._of_release: dict[tuple[str, str, str], list[ReleaseWrite]] = {}
        for each in release_writes(snapshot, context):
            for operation in each.operations:
                key = each.resource.group, each.resource.plural, operation
                self._of_release.setdefault(key, []).append(each)
        self._namespaces: dict[str, JSON] | None = None

    def namespaces(self) -> dict[str, JSON]:
        """Returns the namespaces by name, as expressions see them. Raises Unreadable."""
        if self._namespaces is None:
            objects = {each.metadata.name: each for each in self._snapshot.all(Namespace)}
            self._namespaces = {
                name: _whole("v1", "Namespace", objects.get(name), {"name": name, "labels": labels})
                for name, labels in namespaces(self._snapshot).items()
            }
        return self._namespaces

    def labels_of(self, name: str) -> Mapping[str, str] | None:
        """Returns the labels of a namespace, None for requests outside of namespaces. Raises Unreadable."""
        if not name:
            return None
        if known := self.namespaces().get(name):
            labels: dict[str, str] = known["metadata"]["labels"]
            return labels
        created = (each for each in self._of_release.get(("", "namespaces", "CREATE"), ()) if _name(each.obj) == name)
        return {"kubernetes.io/metadata.name": name} | next((each.labels for each in created), {})

    def sources(self) -> list[Source]:
        """Returns the requests by resource and operation; those with objects first."""
        known = [
            Source(*key, partial(self._release_writes, key[2], writes)) for key, writes in self._of_release.items()
        ]
        known += [
            Source("", "nodes", "UPDATE", self._cordons),
            Source("", "nodes", "CREATE", self._registrations),
            Source("", "nodes/status", "UPDATE", self._heartbeats),
            Source("", "pods/eviction", "CREATE", self._evictions),
            Source("", "pods", "CREATE", self._platform_pods),
            Source("", "pods", "DELETE", self._deletions),
        ]
        # Objects that the release adds are like those that are there.
        for operation in ("UPDATE", "CREATE"):
            known += [
                Source("", "namespaces", operation, partial(self._namespace_writes, operation)),
                Source(
                    "apiextensions.k8s.io",
                    "customresourcedefinitions",
                    operation,
                    partial(self._definition_writes, operation),
                ),
                *(
                    Source("apps", resource.plural, operation, partial(self._workload_writes, resource, operation))
                    for resource in WORKLOADS
                ),
            ]
        # Components write further objects of the release's kinds.
        covered = {each[:3] for each in known} - self._of_release.keys()
        rows = [(row, operation) for row in update_writes.WRITES for operation in row.operations]
        return known + [
            Source(
                row.group,
                row.resource,
                operation,
                partial(self._without_objects, row, operation),
                denials_only=(row.group, row.resource, operation) in covered or row.resource == "pods",
            )
            for row, operation in rows
            if self._is_openshift or is_built_in(row.group)
        ]

    def _release_writes(self, operation: str, writes: Sequence[ReleaseWrite]) -> Iterator[Request]:
        for each in writes:
            kind = _Kind(*astuple(each.resource))
            is_slim = each.resource.kind == _DEFINITION_KIND.kind
            known = _OF_DEFINITION if is_slim else _EVERYTHING
            users = (_RELEASE_OPERATOR if self._is_openshift else _ADMINISTRATOR,)
            yield _write(operation, kind, each.obj, users, known=known, known_old=_KEPT)

    def _senders(self, place: str) -> tuple[User, ...]:
        """Returns the users of whom one applies the platform's objects in a namespace: operators apply their own."""
        if not self._is_openshift:
            return _ADMINISTRATOR, _account("kube-system", "operator")
        return _RELEASE_OPERATOR, _account(place or "openshift-operator", "operator")

    def _drainers(self) -> tuple[User, ...]:
        return (_DRAINER,) if self._is_openshift else (_ADMINISTRATOR,)

    def _workload_writes(self, resource: Slim, operation: str) -> Iterator[Request]:
        kind = _Kind(resource.group, resource.version, resource.kind, resource.plural, namespaced=True)
        known = (*_METADATA, ("spec",))
        for obj in platform_workloads(self._snapshot, resource):
            users = self._senders(obj["metadata"]["namespace"])
            yield _write(operation, kind, obj, users, known=known, known_old=_METADATA)

    def _platform_pods(self) -> Iterator[Request]:
        for resource in WORKLOADS:
            for obj in platform_workloads(self._snapshot, resource):
                maker = _POD_MAKERS[resource.kind]
                yield _request("CREATE", _POD_KIND, pod_of(obj), (maker,), known=_OF_POD)

    def _namespace_writes(self, operation: str) -> Iterator[Request]:
        for name, obj in self.namespaces().items():
            if is_system(name):
                yield _write(operation, _NAMESPACE_KIND, obj, self._senders(""), known=_METADATA)

    def _definition_writes(self, operation: str) -> Iterator[Request]:
        for each in self._snapshot.all(CustomResourceDefinition):
            if is_openshifts(Resource(each.spec.group, "", "", "", namespaced=False)):
                obj = _whole("apiextensions.k8s.io/v1", "CustomResourceDefinition", each)
                yield _write(operation, _DEFINITION_KIND, obj, self._senders(""), known=_OF_DEFINITION)

    def _cordons(self) -> Iterator[Request]:
        for node in self._snapshot.all(Node):
            obj = _whole("v1", "Node", node)
            cordoned = {**obj, "spec": {**obj.get("spec", {}), "unschedulable": True}}
            yield _request("UPDATE", _NODE_KIND, cordoned, self._drainers(), known=_OF_NODE, old=obj)

    def _registrations(self) -> Iterator[Request]:
        for node in self._snapshot.all(Node):
            yield _write("CREATE", _NODE_KIND, _whole("v1", "Node", node), (_kubelet(node),), known=_OF_NODE)

    def _heartbeats(self) -> Iterator[Request]:
        for node in self._snapshot.all(Node):
            obj, users = _whole("v1", "Node", node), (_kubelet(node),)
            yield _write("UPDATE", _NODE_KIND, obj, users, known=_OF_NODE, subresource="status")

    def _evictions(self) -> Iterator[Request]:
        for pod in self._snapshot.listed(PODS):
            metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            users = self._drainers()
            yield _request("CREATE", _POD_KIND, eviction, users, known=_OF_EVICTION, subresource="eviction")

    def _deletions(self) -> Iterator[Request]:
        for pod in self._snapshot.listed(PODS):
            meta = pod.metadata
            metadata = {"name": meta.name, "namespace": meta.namespace, "labels": dict(meta.labels)}
            old = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            yield _write("DELETE", _POD_KIND, old, _CONTROL_PLANE, known=_OF_LISTED_POD)

    def _without_objects(self, row: update_writes.Write, operation: str) -> Iterator[Request]:
        """Yields a request without its object for each namespace of a row's place."""
        plural, _, subresource = row.resource.partition("/")
        kind = _Kind(row.group, "", "", plural, namespaced=row.namespaced)
        users: tuple[User, ...] = _CONTROL_PLANE
        for place in sorted(self.namespaces()) if row.namespaced else [""]:
            if row.place == "platform" and not is_system(place):
                continue
            if row.sender == "release":
                users = self._senders(place)
            obj: JSON = {"metadata": {"namespace": place} if place else {}}
            yield _write(operation, kind, obj, users, known=_NAMESPACE_ALONE, subresource=subresource)


def _whole(api_version: str, kind: str, obj: Object | None, metadata: JSON | None = None) -> JSON:
    """Returns an object as expressions see it."""
    known = as_dict(obj) if obj is not None else {}
    whole_metadata = {**known.get("metadata", {}), **(metadata or {})}
    return {"spec": {}, **known, "apiVersion": api_version, "kind": kind, "metadata": whole_metadata}


def _name(obj: JSON) -> str:
    return str(mapping(obj, "metadata").get("name", ""))


def _write(
    operation: str,
    kind: _Kind,
    obj: JSON,
    users: tuple[User, ...],
    *,
    known: tuple[Path, ...],
    known_old: tuple[Path, ...] | None = None,
    subresource: str = "",
) -> Request:
    """Returns the request for an object that it does not change, as far as `known_old` says."""
    new, old = obj if operation != "DELETE" else None, obj if operation != "CREATE" else None
    request = _request(operation, kind, new, users, known=known, old=old, subresource=subresource)
    return request if known_old is None or old is None else request._replace(known_old=known_old)


def _request(
    operation: str,
    kind: _Kind,
    obj: JSON | None,
    users: tuple[User, ...],
    *,
    known: tuple[Path, ...],
    old: JSON | None = None,
    subresource: str = "",
) -> Request:
    metadata = mapping(obj or old or {}, "metadata")
    write = Write(
        operation=operation,
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        user=users[0],
        obj=obj,
        old=old,
        subresource=subresource,
    )
    return Request(write, users, known, known)
