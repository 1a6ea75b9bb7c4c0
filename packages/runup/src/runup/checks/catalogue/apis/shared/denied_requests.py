"""Evaluates admission policies for the requests of an update, with their objects as far as a snapshot has these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubekit.api.core_v1 import Namespace, Node
from kubekit.rules import policy_evaluation
from runup.checks.catalogue.apis.shared.webhooks import namespaces
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.reads import UNSET, as_dict
from runup.checks.writing import Resource, Slim, Snapshot, Unreadable
from runup.rules import update_writes
from runup.rules.platform_namespaces import is_system

JSON = dict[str, Any]
_ACCOUNT = "system:serviceaccount"
# More nodes than that are not evaluated one by one.
_MAX_NODES = 500


class _User(NamedTuple):
    """A service account of the platform as the user of a request."""

    namespace: str
    name: str

    def to_dict(self) -> JSON:
        groups = [f"{_ACCOUNT}s", f"{_ACCOUNT}s:{self.namespace}", "system:authenticated"]
        return {"username": f"{_ACCOUNT}:{self.namespace}:{self.name}", "groups": groups}


class _Kind(Resource, frozen=True):
    """The kind of a request's object, as policies see it."""

    @property
    def resource(self) -> str:
        """The resource's full name."""
        return self.name


_OPERATOR = _User("openshift-cluster-version", "default")
_DRAINER = _User("openshift-machine-config-operator", "machine-config-controller")
_CONTROLLER = _User("kube-system", "replicaset-controller")
_NAMESPACE_KIND = _Kind("", "v1", "Namespace", "namespaces", namespaced=False)
_NODE_KIND = _Kind("", "v1", "Node", "nodes", namespaced=False)
_POD_KIND = _Kind("", "v1", "Pod", "pods", namespaced=True)


class Requests:
    """The requests of an update as far as the snapshot has their objects."""

    def __init__(self, snapshot: Snapshot, workloads: Sequence[Slim]) -> None:
        self._snapshot, self._workloads = snapshot, workloads
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
        for resource in self._workloads:
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


_OBJECT = re.compile(r"\b(object|oldObject|params|authorizer)\b")


class Evaluated(NamedTuple):
    """The requests that a policy denies, with its message, and those for which it could not be evaluated."""

    denied: dict[str, str]
    open: list[str]

    def leave_open(self, request: policy_evaluation.Write) -> None:
        """Adds a request for which the policy could not be evaluated."""
        if _words(request) not in self.open:
            self.open.append(_words(request))


def denied_requests(policy: JSON, bindings: Sequence[JSON], requests: Requests) -> Evaluated:
    """Returns which requests of the update the policy denies through one of its bindings."""
    spec = policy.get("spec") or {}
    reads_objects = any(map(_OBJECT.search, _expressions(spec)))
    result = Evaluated({}, [])
    # Without selectors: for most resources this decides, without the labels of each namespace.
    criteria = spec.get("matchConstraints") or {}
    rules = {key: value for key, value in criteria.items() if not key.endswith("Selector")}
    rows = {(write.group, write.resource): write for write in update_writes.WRITES}
    try:
        for request in requests.known():
            rows.pop((request.kind.group, _resource(request)), None)
            if _is_matched(spec, bindings, request, requests):
                _evaluate_request(policy, request, requests, result)
        for row in rows.values():
            for request in requests.of_resource(row):
                if not policy_evaluation.matches_criteria(rules, request, None):
                    continue
                if not _is_matched(spec, bindings, request, requests):
                    continue
                if reads_objects:
                    result.leave_open(request)
                else:
                    _evaluate_request(policy, request, requests, result)
                break
    except Unreadable as error:
        result.open.append(str(error))
    return result


def _is_matched(spec: JSON, bindings: Sequence[JSON], request: policy_evaluation.Write, requests: Requests) -> bool:
    """Returns whether the policy's criteria and those of one of its bindings select a request."""
    labels = requests.labels_of(request.namespace)
    return policy_evaluation.matches_criteria(spec.get("matchConstraints") or {}, request, labels) and any(
        policy_evaluation.matches_criteria(binding.get("matchResources") or {}, request, labels) for binding in bindings
    )


def _evaluate_request(policy: JSON, request: policy_evaluation.Write, requests: Requests, result: Evaluated) -> None:
    """Adds a request to those that the policy denies, or to those for which it cannot be evaluated."""
    spec = policy.get("spec") or {}
    if spec.get("paramKind") or any(map(policy_evaluation.AUTHORIZER.search, _expressions(spec))):
        result.leave_open(request)
        return
    namespace = requests.namespaces().get(request.namespace) if request.namespace else None
    outcome = policy_evaluation.Evaluation(policy, request, None, namespace).outcome()
    for decision in outcome.decisions:
        # Not all fields of the objects are known, so that an error may be ours.
        if decision.denied and "resulted in error" in decision.message:
            result.leave_open(request)
        elif decision.denied:
            result.denied.setdefault(_words(request), decision.message)


def _resource(request: policy_evaluation.Write) -> str:
    return f"{request.kind.plural}/{request.subresource}" if request.subresource else request.kind.plural


def _words(request: policy_evaluation.Write) -> str:
    return f"{request.operation} of {_resource(request)}"


def _expressions(spec: Mapping[str, Any]) -> list[str]:
    """Returns the expressions that decide: of validations, match conditions and variables."""
    lists = (spec.get("validations"), spec.get("matchConditions"), spec.get("variables"))
    return [str(each.get("expression", "")) for listed in lists for each in listed or ()]
