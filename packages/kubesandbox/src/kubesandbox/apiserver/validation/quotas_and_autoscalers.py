"""Validation of ResourceQuotas, LimitRanges and HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubekit.lang.quantity import QuantityError, parse_quantity
from kubesandbox.apiserver.schema import Fault, FieldError, Verbatim, not_supported
from kubesandbox.apiserver.schema.go_json import go_json
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults

JSON = dict[str, Any]

# k8s.io/kubernetes/pkg/apis/core/helper: what a quota may count beside `count/...` and names with a domain.
_COUNTED = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers"}
)
_MEASURED = frozenset(
    {"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage"}
    | {"requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"}
)
_OF_PODS = frozenset({"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
# What a quota of a scope may count, of the resources above; of others it may count any.
_SCOPES = {
    **dict.fromkeys(("Terminating", "NotTerminating", "NotBestEffort"), _OF_PODS),
    **dict.fromkeys(("PriorityClass", "CrossNamespacePodAffinity"), _OF_PODS),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_WITHOUT_VALUES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_EXISTS_ALONE = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_LIMIT_TYPES = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_LONGEST_WINDOW_S = 3600
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")


def quota_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a ResourceQuota: names and amounts, and scopes, which stay."""
    spec = obj.get("spec") or {}
    for name, amount in sorted((spec.get("hard") or {}).items()):
        path = f"spec.hard[{name}]"
        if name not in _COUNTED | _MEASURED and "/" not in name and not name.startswith(("hugepages-", "requests.")):
            yield FieldError(Fault.INVALID, path, name, "must be a standard resource type or fully qualified")
            yield FieldError(Fault.INVALID, path, name, "must be a standard resource for quota")
        value = _amount(amount)
        if value is not None and value < 0:
            yield FieldError(Fault.INVALID, path, str(amount), NOT_NEGATIVE)
        if value is not None and name in _COUNTED and value % 1:
            yield FieldError(Fault.INVALID, path, str(amount), "must be an integer")
    scopes = spec.get("scopes")
    yield from _scope_faults(spec)
    yield from _selected_scope_faults(spec)
    if old is not None and (scopes or []) != ((old.get("spec") or {}).get("scopes") or []):
        yield FieldError(Fault.INVALID, "spec.scopes", scopes, "field is immutable")


def _scope_faults(spec: JSON) -> Faults:
    """Yields the faults of a quota's scopes: unknown ones, those of other resources, and opposites."""
    scopes = spec.get("scopes") or ()
    for scope in scopes:
        if scope not in _SCOPES:
            yield FieldError(Fault.INVALID, "spec.scopes", scopes, "unsupported scope")
        for _ in _beyond_scope(spec, scope):
            yield FieldError(Fault.INVALID, "spec.scopes", scopes, "unsupported scope applied to resource")
    for _ in _opposites(scopes):
        yield FieldError(Fault.INVALID, "spec.scopes", scopes, "conflicting scopes")


def _selected_scope_faults(spec: JSON) -> Faults:
    """Yields the faults of a quota's selector of scopes."""
    selector, path = spec.get("scopeSelector") or {}, "spec.scopeSelector.matchExpressions"
    expressions = selector.get("matchExpressions") or ()
    for each in expressions:
        scope, operator, values = each.get("scopeName") or "", each.get("operator") or "", each.get("values")
        if scope not in _SCOPES:
            yield FieldError(Fault.INVALID, f"{path}.scopeName", scope, "unsupported scope")
        for _ in _beyond_scope(spec, scope):
            shown = Verbatim(go_json({"MatchExpressions": [_as_go_has_it(one) for one in expressions]}))
            yield FieldError(Fault.INVALID, path, shown, "unsupported scope applied to resource")
        if scope in _WITHOUT_VALUES and operator != "Exists":
            yield FieldError(Fault.INVALID, f"{path}.operator", operator, _EXISTS_ALONE)
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield FieldError(Fault.REQUIRED, f"{path}.values", detail=why)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield FieldError(Fault.INVALID, f"{path}.values", values, why)
        else:
            yield FieldError(Fault.INVALID, f"{path}.operator", operator, "not a valid selector operator")
    for _ in _opposites([each.get("scopeName") for each in expressions]):
        # A real server shows the other field's scopes here.
        yield FieldError(Fault.INVALID, path, Verbatim(go_json(spec.get("scopes"))), "conflicting scopes")


def _as_go_has_it(expression: JSON) -> JSON:
    names = (("ScopeName", "scopeName", ""), ("Operator", "operator", ""), ("Values", "values", None))
    return {shown: expression.get(name, default) for shown, name, default in names}


def _beyond_scope(spec: JSON, scope: str) -> list[str]:
    """Returns which of a quota's resources a scope, if there is such a one, cannot be applied to."""
    standard = (_COUNTED | _MEASURED) & set(spec.get("hard") or ())
    return sorted(standard - _SCOPES[scope]) if scope in _SCOPES else []


def _opposites(scopes: Sequence[str | None]) -> list[set[str]]:
    return [pair for pair in _OPPOSITES if pair <= set(scopes)]


def _amount(text: Any) -> Any:
    try:
        return parse_quantity(str(text))
    except QuantityError:
        return None


def limit_range(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a LimitRange: types, each once, and amounts that fit each other."""
    seen: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", str(limit.get("type") or "")
        if kind not in _LIMIT_TYPES and "/" not in kind:
            yield FieldError(Fault.INVALID, f"{path}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield FieldError(Fault.DUPLICATE, f"{path}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if limit.get(name):
                    why = f"may not be specified when `type` is '{kind}'"
                    yield FieldError(Fault.FORBIDDEN, f"{path}.{name}", detail=why)
        yield from _amount_faults(limit, path)


def _amount_faults(limit: JSON, path: str) -> Faults:
    """Yields a fault for each amount that is beyond another one of the same resource."""
    parts: dict[str, Mapping[str, Any]] = {
        name: limit.get(name) or {} for name in ("min", "max", "default", "defaultRequest")
    }
    words = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
    # Which is named, with which value it is shown, and the pair that must be in order.
    rules = (
        ("min", "min", "min", "max"),
        ("defaultRequest", "defaultRequest", "min", "defaultRequest"),
        ("defaultRequest", "defaultRequest", "defaultRequest", "max"),
        ("defaultRequest", "defaultRequest", "defaultRequest", "default"),
        ("default", "min", "min", "default"),
        ("default", "max", "default", "max"),
    )
    for resource in sorted(set[str]().union(*parts.values())):
        for named, shown, lesser, greater in rules:
            less, more = (
                _amount(parts[name][resource]) if resource in parts[name] else None for name in (lesser, greater)
            )
            if less is not None and more is not None and less > more:
                why = (
                    f"{words[lesser]} value {parts[lesser][resource]} is greater than {words[greater]} value "
                    f"{parts[greater][resource]}"
                )
                where = f"{path}.{named}[{resource}]"
                yield FieldError(Fault.INVALID, where, str(parts[shown][resource]), why)


def autoscaler_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a HorizontalPodAutoscaler: numbers of replicas, its target, and metrics."""
    spec = obj.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        yield FieldError(Fault.INVALID, "spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield FieldError(Fault.INVALID, "spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        yield FieldError(Fault.INVALID, "spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        value = target.get(name) or ""
        if not value:
            yield FieldError(Fault.REQUIRED, f"spec.scaleTargetRef.{name}")
        elif "/" in value:
            yield FieldError(Fault.INVALID, f"spec.scaleTargetRef.{name}", value, "may not contain '/'")
    for name, direction in (spec.get("behavior") or {}).items():
        window = (direction or {}).get("stabilizationWindowSeconds")
        if window is not None and not 0 <= window <= _LONGEST_WINDOW_S:
            why = (
                f"must be less than or equal to {_LONGEST_WINDOW_S}"
                if window > 0
                else "must be greater than or equal to zero"
            )
            yield FieldError(Fault.INVALID, f"spec.behavior.{name}.stabilizationWindowSeconds", window, why)
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        yield from _metric_faults(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield FieldError(Fault.FORBIDDEN, "spec.metrics", detail=why)


def _metric_faults(metric: JSON, path: str) -> Faults:
    """Yields the faults of one metric: an unknown type, or a utilization below 1 %."""
    kind = metric.get("type") or ""
    if kind not in _METRIC_TYPES:
        yield not_supported(f"{path}.type", kind, _METRIC_TYPES)
        return
    target = (metric.get("resource") or {}).get("target") or {}
    share = target.get("averageUtilization")
    if kind == "Resource" and share is not None and share < 1:
        yield FieldError(Fault.INVALID, f"{path}.resource.target.averageUtilization", share, "must be greater than 0")
