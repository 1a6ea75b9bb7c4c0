"""LimitRanges: the requests and limits that they give to new pods, and the bounds in which pods and claims must stay.

As k8s.io/kubernetes/plugin/pkg/admission/limitranger has it, messages included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from kubekit.lang.quantity import add_quantities, parse_quantity
from kubekit.rules.pod_requests import total_of_containers
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Store

Amounts = Mapping[str, str]
_ANNOTATION = "kubernetes.io/limit-ranger"
_KINDS = {"pods", "persistentvolumeclaims"}


def set_defaults(store: Store, kind: Kind, obj: JSON) -> None:
    """LimitRanger: gives a new pod's containers the requests and limits that they leave out."""
    if kind.resource != "pods":
        return
    for limits in _limits_of(store, obj):
        defaults: dict[str, JSON] = {"requests": {}, "limits": {}}
        for limit in limits:
            if limit.get("type") == "Container":
                defaults["requests"] |= limit.get("defaultRequest") or {}
                defaults["limits"] |= limit.get("default") or {}
        notes = [
            note
            for part, label in (("containers", "container"), ("initContainers", "init container"))
            for container in obj["spec"].get(part) or ()
            for note in _completed(container, defaults, label)
        ]
        if notes:
            annotations = meta(obj).get("annotations") or {}
            meta(obj)["annotations"] = {**annotations, _ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _completed(container: JSON, defaults: Mapping[str, JSON], label: str) -> Iterator[str]:
    """Adds the defaults to a container; yields what was added, requests first."""
    for side in ("requests", "limits"):
        resources = container.get("resources") or {}
        missing = {key: value for key, value in defaults[side].items() if key not in (resources.get(side) or {})}
        if missing:
            container["resources"] = {**resources, side: {**(resources.get(side) or {}), **missing}}
            yield f"{', '.join(sorted(missing))} {side[:-1]} for {label} {container['name']}"


def check_bounds(store: Store, kind: Kind, obj: JSON, old: JSON | None) -> None:
    """LimitRanger: refuses a pod, or a claim, outside the bounds of its namespace (403)."""
    if kind.resource not in _KINDS or (
        old is not None and (kind.resource == "pods" or meta(old).get("deletionTimestamp"))
    ):
        return
    for limits in _limits_of(store, obj):
        faults = list(dict.fromkeys(fault for limit in limits for fault in _faults(kind, limit, obj)))
        if faults:
            text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            raise status_errors.forbidden(kind.plural, kind.group, meta(obj).get("name", ""), text)


def _limits_of(store: Store, obj: JSON) -> Iterator[list[JSON]]:
    for entry in store.items("limitranges", meta(obj).get("namespace", "")):
        yield (entry.load().get("spec") or {}).get("limits") or []


def _faults(kind: Kind, limit: JSON, obj: JSON) -> Iterator[str]:
    """Yields what of an object is out of the bounds of one limit."""
    type_, spec = limit.get("type", ""), obj.get("spec") or {}
    if kind.resource == "persistentvolumeclaims":
        if type_ == "PersistentVolumeClaim":
            requests = _side(spec, "requests")
            for name, bound in (limit.get("min") or {}).items():
                yield from _below(type_, name, bound, requests=requests, limits={})
            for name, bound in (limit.get("max") or {}).items():
                yield from _above(type_, name, bound, amounts=requests, side="request")
        return
    pairs: Iterable[tuple[dict[str, str], dict[str, str]]] = ()
    if type_ == "Container":
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        pairs = [(_side(container, "requests"), _side(container, "limits")) for container in containers]
    elif type_ == "Pod":
        pairs = [(_total(spec, "requests"), _total(spec, "limits"))]
    for requests, limits in pairs:
        for name, bound in (limit.get("min") or {}).items():
            yield from _below(type_, name, bound, requests=requests, limits=limits)
        for name, bound in (limit.get("max") or {}).items():
            yield from _above(type_, name, bound, amounts=limits, side="limit")
            if name in limits and _number(limits[name]) <= _number(bound) and name in requests:
                yield from _above(type_, name, bound, amounts=requests, side="request")
        for name, bound in (limit.get("maxLimitRequestRatio") or {}).items():
            yield from _ratio(type_, name, bound, requests=requests, limits=limits)


def _below(type_: str, name: str, bound: str, *, requests: Amounts, limits: Amounts) -> Iterator[str]:
    about = f"minimum {name} usage per {type_} is {bound}"
    if name not in requests:
        yield f"{about}.  No request is specified"
    elif _number(requests[name]) < _number(bound):
        yield f"{about}, but request is {requests[name]}"
    elif name in limits and _number(limits[name]) < _number(bound):
        yield f"{about}, but limit is {limits[name]}"


def _above(type_: str, name: str, bound: str, *, amounts: Amounts, side: str) -> Iterator[str]:
    about = f"maximum {name} usage per {type_} is {bound}"
    if name not in amounts:
        yield f"{about}.  No {side} is specified"
    elif _number(amounts[name]) > _number(bound):
        yield f"{about}, but {side} is {amounts[name]}"


def _ratio(type_: str, name: str, bound: str, *, requests: Amounts, limits: Amounts) -> Iterator[str]:
    about = f"{name} max limit to request ratio per {type_} is {bound}"
    if not _number(requests.get(name, "0")):
        yield f"{about}, but no request is specified or request is 0"
    elif not _number(limits.get(name, "0")):
        yield f"{about}, but no limit is specified or limit is 0"
    elif (ratio := _number(limits[name]) / _number(requests[name])) > _number(bound):
        yield f"{about}, but provided ratio is {ratio:.6f}"


def _number(amount: str) -> Decimal:
    return parse_quantity(amount)


def _side(holder: JSON, side: str) -> dict[str, str]:
    return {name: str(amount) for name, amount in ((holder.get("resources") or {}).get(side) or {}).items()}


def _total(spec: JSON, side: str) -> dict[str, str]:
    """Returns the requests or limits of a whole pod."""
    return total_of_containers(
        [_side(container, side) for container in spec.get("containers") or ()],
        [(_side(each, side), each.get("restartPolicy") == "Always") for each in spec.get("initContainers") or ()],
        _side(spec, side),
        add=lambda a, b: {**a, **{name: add_quantities(a.get(name, "0"), amount) for name, amount in b.items()}},
        larger=lambda a, b: {**a, **{k: v for k, v in b.items() if k not in a or _number(v) > _number(a[k])}},
    )
