"""Usage of a ResourceQuota by objects of every kind, and the admission of writes by the quotas of their namespace.

As pkg/quota/v1 of Kubernetes and k8s.io/component-helpers/resource count it: pods, Services and PersistentVolumeClaims
use more than their number. `QuotaAdmission` is the plugin ResourceQuota: it refuses a write, or charges `status.used`
of each quota that counts the object. As on a real server what is used is what the status says, which a controller
counts again when objects go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING
from typing import TYPE_CHECKING, Any, Protocol

from kubekit.kube.clock import Clock
from kubekit.lang.quantity import add_quantities, parse_quantity
from kubekit.rules.pod_requests import is_pod_level, qos_class, total_of_containers
from kubekit.rules.policy_evaluation import Write
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.query_parameters import WriteOptions
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Entry, Store

if TYPE_CHECKING:
    # It loads most of the API server, which a controller does not need.
    from kubesandbox.apiserver.objects.writing import Change

JSON = dict[str, Any]
Amounts = Mapping[str, str]


def add_amounts(first: Amounts, other: Amounts) -> dict[str, str]:
    """Returns the sums, each in the format of its first operand that is not zero."""
    return {
        name: add_quantities(first.get(name, "0"), other.get(name, "0"))
        for name in (*first, *(set(other) - set(first)))
    }


def growth(new: Amounts, old: Amounts) -> dict[str, str]:
    """Returns by how much `new` exceeds `old`, where it does."""
    return {
        name: add_quantities(amount, f"-{old.get(name, '0')}")
        for name, amount in new.items()
        if parse_quantity(amount) > parse_quantity(old.get(name, "0"))
    }


def larger_of_both(first: Amounts, other: Amounts) -> dict[str, str]:
    """Returns the larger amount of each name."""
    largest = {**first}
    for name, amount in other.items():
        if name not in largest or parse_quantity(amount) > parse_quantity(largest[name]):
            largest[name] = amount
    return largest


def select_names(amounts: Amounts, names: Collection[str]) -> dict[str, str]:
    """Returns the amounts of these names."""
    return {name: amount for name, amount in amounts.items() if name in names}


# -- Pods --------------------------------------------------------------------------------------------------------------

_POD_NAMES = frozenset(
    {"count/pods", "cpu", "memory", "ephemeral-storage", "pods"}
    | {f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")}
)
# A pod must state these where a quota has them. Kubernetes calls this a mistake, and added no others.
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"


def missing_resources(pod: JSON, names: Iterable[str]) -> str:
    """Returns which of `names` a pod must state and which containers do not, empty if none: `cpu for: a,b`."""
    spec = pod.get("spec") or {}
    # Resources of the pod replace those of its containers.
    if any(map(is_pod_level, (*_requests_or_limits(spec, "requests"), *_requests_or_limits(spec, "limits")))):
        return ""
    required, lacking = _REQUIRED.intersection(names), dict[str, set[str]]()
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        sides = (_requests_or_limits(container, side) for side in ("requests", "limits"))
        for name in required - _compute_resources(*sides).keys():
            lacking.setdefault(name, set()).add(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))


def _pod_in_scope(pod: JSON, scope: str, operator: str, values: Iterable[str]) -> bool:
    """Returns whether a pod is in a scope of a quota."""
    spec = pod.get("spec") or {}
    if scope in {"Terminating", "NotTerminating"}:
        return is_terminating(pod) == (scope == "Terminating")
    if scope in {"BestEffort", "NotBestEffort"}:
        return (qos_class(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        terms: list[JSON] = []
        for kind in ("podAffinity", "podAntiAffinity"):
            affinity = (spec.get("affinity") or {}).get(kind) or {}
            terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
            preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
            terms += [weighted.get("podAffinityTerm") or {} for weighted in preferred]
        return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)
    if scope != "PriorityClass":
        return False
    name = spec.get("priorityClassName") or ""
    if operator in {"In", "NotIn"}:
        return (name in values) == (operator == "In") if name else operator == "NotIn"
    return bool(name) == (operator == "Exists")


def is_terminating(pod: JSON) -> bool:
    """Returns whether a pod has a deadline, which is what quotas call terminating."""
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _compute_resources(requests: Amounts, limits: Amounts) -> dict[str, str]:
    """Returns requests and limits by the names that quotas have for them."""
    result = {"pods": "1"}
    for name, amount in requests.items():
        if name in _NATIVE or name.startswith(_HUGE_PAGES):
            result |= {name: amount, f"requests.{name}": amount}
        elif "/" in name:
            result[f"requests.{name}"] = amount
    return result | {f"limits.{name}": amount for name, amount in limits.items() if name in _NATIVE}


def _requests_or_limits(holder: Mapping[str, Any], side: str) -> dict[str, str]:
    amounts = (holder.get("resources") or {}).get(side) or {}
    return {name: str(amount) for name, amount in amounts.items()}


def _total_of_containers(spec: JSON, side: str) -> dict[str, str]:
    """Returns the requests or limits of a pod: of its containers together, or of the init container that needs most."""
    total = total_of_containers(
        [_requests_or_limits(container, side) for container in spec.get("containers") or ()],
        [
            (_requests_or_limits(container, side), container.get("restartPolicy") == "Always")
            for container in spec.get("initContainers") or ()
        ],
        _requests_or_limits(spec, side),
        add=add_amounts,
        larger=larger_of_both,
    )
    overhead = {name: str(amount) for name, amount in (spec.get("overhead") or {}).items()}
    # A limit that nobody set stays without one.
    return add_amounts(total, overhead if side == "requests" else {k: v for k, v in overhead.items() if k in total})


# -- All kinds ---------------------------------------------------------------------------------------------------------

PODS, SERVICES, CLAIMS = "pods", "services", "persistentvolumeclaims"
# The kinds of which more than the number counts.
DETAILED = (PODS, SERVICES, CLAIMS)
_BY_CLASS = ".storageclass.storage.k8s.io/"
_SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES = (CLAIMS, "requests.storage")
_BY_CLASS_NAMES = tuple(_BY_CLASS + name for name in _CLAIM_NAMES)
# The kinds that have a separate name besides `count/`.
_ALIASES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})


def resources_counting(resource: str, names: Iterable[str]) -> list[str]:
    """Returns which of a quota's resources count objects of a kind (`plural.group`)."""
    result = []
    for name in names:
        if resource == PODS:
            requested = name.removeprefix("requests.")
            # Extended resources have a domain, and no limit apart from their request.
            extended = name != requested and "/" in name and not requested.startswith("kubernetes.io/")
            counts = name in _POD_NAMES or extended or requested.startswith(_HUGE_PAGES)
        elif resource == SERVICES:
            counts = name in _SERVICE_NAMES
        else:
            counts = name == f"count/{resource}" or (name == resource and resource in _ALIASES)
            if resource == CLAIMS and not counts:
                counts = name.endswith(_BY_CLASS_NAMES) or name in _CLAIM_NAMES
        if counts:
            result.append(name)
    return result


def usage_of_object(resource: str, obj: JSON, now: datetime) -> dict[str, str]:
    """Returns the usage of an object; a pod that has ended or is long past its deletion only counts as an object."""
    if resource == PODS:
        used, metadata, spec = {"count/pods": "1"}, obj["metadata"], obj.get("spec") or {}
        if (obj.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            return used
        deleted, grace_s = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
        if deleted and grace_s is not None and now > datetime.fromisoformat(deleted) + timedelta(seconds=grace_s):
            return used
        return {
            **used,
            **_compute_resources(_total_of_containers(spec, "requests"), _total_of_containers(spec, "limits")),
        }
    spec = obj.get("spec") or {}
    used = {f"count/{resource}": "1"}
    if resource == SERVICES:
        ports, kind = spec.get("ports") or (), spec.get("type")
        node_ports = len(ports) if kind in {"NodePort", "LoadBalancer"} else 0
        if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(bool(port.get("nodePort")) for port in ports)
        balancers = str(int(kind == "LoadBalancer"))
        used |= {"services": "1", "services.nodeports": str(node_ports), "services.loadbalancers": balancers}
    if resource == CLAIMS:
        annotations = obj["metadata"].get("annotations") or {}
        storage_class = annotations.get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName") or ""
        amounts = {CLAIMS: "1"}
        if storage := ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
            # A quota counts whole bytes.
            value = parse_quantity(str(storage))
            whole = value.to_integral_value(ROUND_CEILING)
            amounts["requests.storage"] = str(storage) if value == whole else f"{whole:f}"
        by_class = {f"{storage_class}{_BY_CLASS}{name}": amount for name, amount in amounts.items()}
        used |= amounts | (by_class if storage_class else {})
    return {**used, resource: "1"} if resource in _ALIASES else used


def is_about(quota: JSON, resource: str, obj: JSON) -> bool:
    """Returns whether a quota is about an object: each of its scopes is one of the object."""
    spec = quota["spec"]
    expressions = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    expressions += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return not expressions or (
        resource == PODS
        and all(_pod_in_scope(obj, e["scopeName"], e.get("operator", ""), e.get("values") or ()) for e in expressions)
    )


def used_of_quota(quota: JSON, objects: Iterable[tuple[str, JSON]], now: datetime) -> dict[str, str]:
    """Returns `status.used` of a quota: what `objects` (with their kinds) use of its limits together."""
    hard = quota["spec"].get("hard") or {}
    used: dict[str, str] = {}
    for resource, obj in objects:
        names = resources_counting(resource, hard)
        if names and is_about(quota, resource, obj):
            used = add_amounts(used, select_names(usage_of_object(resource, obj, now), names))
    return {name: used.get(name, "0") for name in hard}


def counted_kinds(hard: Amounts) -> set[str]:
    """Returns the kinds whose objects a quota's limits count, by the names of the limits."""
    kinds = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
    return kinds | {kind for kind in (*DETAILED, *_ALIASES) if resources_counting(kind, hard)}


QUOTAS = "resourcequotas"
_OWN = WriteOptions(manager="kube-apiserver", validation="Ignore")


class Changing(Protocol):
    """The part of the server that changes an object."""

    async def __call__(self, kind: Kind, target: Target, compute: Change, options: WriteOptions) -> Entry:
        """Reads an object, computes its new state and stores it; again after a conflict. Raises ApiError."""
        ...


class QuotaAdmission:
    """The quotas of a server, as one instance. `kind` is the kind ResourceQuota."""

    def __init__(self, store: Store, kind: Kind, change: Changing, clock: Clock) -> None:
        self._store, self._kind, self._change, self._clock = store, kind, change, clock

    async def admit(self, write: Write) -> None:
        """Charges the quotas of a write's namespace, or raises ApiError 403. A dry run charges nothing."""
        if not write.namespace or not _may_grow(write):
            return
        quotas = [entry.load() for entry in self._store.items(QUOTAS, write.namespace)]
        # All of them are asked before the first is charged.
        charged = [quota for quota in quotas if self._used_after(quota, write) is not None]
        if write.dry_run:
            return
        for quota in charged:
            name = quota["metadata"]["name"]
            target = Target(
                verb="update", version="v1", namespace=write.namespace, resource=QUOTAS,
                subresource="status", name=name,
            )  # fmt: skip
            await self._change(self._kind, target, lambda old: self._charge_quota(old, write), _OWN)

    def _charge_quota(self, quota: JSON, write: Write) -> JSON:
        used = self._used_after(quota, write)
        return quota if used is None else {**quota, "status": {**quota["status"], "used": used}}

    def _used_after(self, quota: JSON, write: Write) -> dict[str, str] | None:
        """Returns the usage of a quota after a write, or None if it does not change. Raises ApiError 403."""
        obj, resource = write.obj, write.kind.resource
        assert obj is not None
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        names = resources_counting(resource, hard)
        if not names or not is_about(quota, resource, obj):
            return None
        name = quota["metadata"]["name"]
        if resource == PODS and (lacking := missing_resources(obj, names)):
            raise _forbidden_error(write, f"failed quota: {name}: must specify {lacking}")
        if not used.keys() >= set(names):
            raise _forbidden_error(write, f"status unknown for quota: {name}, resources: {','.join(sorted(names))}")
        now = self._clock.now()
        needs = usage_of_object(resource, obj, now)
        if write.old is not None and is_about(quota, resource, write.old):
            needs = growth(needs, usage_of_object(resource, write.old, now))
        requested = {name: amount for name, amount in select_names(needs, names).items() if parse_quantity(amount) > 0}
        if not requested:
            return None
        after = add_amounts(used, requested)
        exceeded = sorted(key for key in requested if parse_quantity(after[key]) > parse_quantity(hard[key]))
        if exceeded:
            shown = ", ".join(
                f"{word}: {','.join(f'{key}={part[key]}' for key in exceeded if key in part)}"
                for word, part in (("requested", requested), ("used", used), ("limited", hard))
            )
            raise _forbidden_error(write, f"exceeded quota: {name}, {shown}")
        return after


def _may_grow(write: Write) -> bool:
    """Returns whether a write may use more of a quota than before."""
    if write.operation == "CREATE":
        return not write.subresource
    resource, old, new = write.kind.resource, write.old, write.obj
    if resource == PODS and old is not None and new is not None:
        changed = is_terminating(old) != is_terminating(new)
        return write.subresource == "resize" or (not write.subresource and changed)
    return resource in (SERVICES, CLAIMS) and not write.subresource


def _forbidden_error(write: Write, why: str) -> status_errors.ApiError:
    return status_errors.forbidden(write.kind.plural, write.kind.group, write.name, why)
