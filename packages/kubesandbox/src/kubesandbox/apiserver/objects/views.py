"""Views of one stored object through different kinds: other versions, events.k8s.io's Events, autoscaling/v1.

Custom resources convert by changing apiVersion only (`conversion.strategy: None`). Events are stored as core/v1,
HorizontalPodAutoscalers as autoscaling/v2. autoscaling/v1 knows one target, the use of CPU; the others, the behaviour
and the conditions are annotations there, as in pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

import json
from typing import Any

from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

# core/v1 Event field -> events.k8s.io/v1 Event field
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_FIELDS_BACK = {new: old for old, new in _EVENT_FIELDS.items()}
_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR, _CONDITIONS, _CURRENT = (
    f"{_PREFIX}{name}" for name in ("metrics", "behavior", "conditions", "current-metrics")
)
# The use of CPU in percent that v1 aims at when nothing else is asked for (DefaultCPUUtilization).
_USUAL_PERCENT = 80


def from_stored(kind: Kind, obj: JSON) -> JSON:
    """Returns a stored object as `kind` serves it."""
    if obj.get("apiVersion") == kind.api_version:
        return obj
    if kind.group == "events.k8s.io":
        obj = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    if kind.api_version == "autoscaling/v1":
        obj = as_v1(obj)
    return {**obj, "apiVersion": kind.api_version}


def to_stored(kind: Kind, obj: JSON) -> JSON:
    """Returns an object of `kind` in its storage version."""
    if kind.group == "events.k8s.io":
        obj = {_EVENT_FIELDS_BACK.get(key, key): value for key, value in obj.items()}
        return {**obj, "apiVersion": "v1"}
    if kind.api_version == "autoscaling/v1":
        return {**from_v1(obj), "apiVersion": "autoscaling/v2"}
    return obj


def as_v1(obj: JSON) -> JSON:
    """Returns a stored object, of v2, as v1."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    conditions = status.pop("conditions", None)
    percents = [percent for metric in metrics if (percent := _cpu_percent(metric)) is not None]
    if percents:
        spec["targetCPUUtilizationPercentage"] = percents[0]
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and resource.get("current", {}).get("averageUtilization") is not None:
            status["currentCPUUtilizationPercentage"] = resource["current"]["averageUtilization"]
    other_metrics = [_metric_as_v1(metric) for metric in metrics if _cpu_percent(metric) is None]
    annotations_by_key = {
        _METRICS: other_metrics,
        _CURRENT: current,
        _BEHAVIOR: _capitalize_names(behavior),
        _CONDITIONS: conditions,
    }
    annotations = {key: json.dumps(value, separators=(",", ":")) for key, value in annotations_by_key.items() if value}
    return _with_annotations({**obj, "spec": spec, "status": status}, annotations)


def from_v1(obj: JSON) -> JSON:
    """Returns an object of v1 as v2, which is stored."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = obj["metadata"].get("annotations") or {}
    metrics = [_metric_from_v1(metric) for metric in _read_annotation(annotations, _METRICS)]
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None or not metrics:
        target = {"type": "Utilization", "averageUtilization": _USUAL_PERCENT if percent is None else percent}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    spec["metrics"] = metrics
    if behavior := _uncapitalize_names(_read_annotation(annotations, _BEHAVIOR)):
        spec["behavior"] = behavior
    status.pop("currentCPUUtilizationPercentage", None)
    for key, name in (("currentMetrics", _CURRENT), ("conditions", _CONDITIONS)):
        if values := _read_annotation(annotations, name):
            status[key] = values
    return _with_annotations({**obj, "spec": spec, "status": status}, {})


def _with_annotations(obj: JSON, added: JSON) -> JSON:
    """Returns the autoscaler with `added` in place of the annotations in which v1 keeps newer fields."""
    metadata = dict(obj["metadata"])
    annotation_keys = (_METRICS, _BEHAVIOR, _CONDITIONS, _CURRENT)
    kept_annotations = {
        key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key not in annotation_keys
    }
    if annotations := kept_annotations | added:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata}


def _read_annotation(annotations: JSON, name: str) -> Any:
    try:
        return json.loads(annotations.get(name) or "[]")
    except ValueError:  # the conversion ignores what it cannot read
        return []


def _cpu_percent(metric: JSON) -> int | None:
    """Returns the averageUtilization of a metric of CPU, None for any other metric."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = (resource.get("target") or {}).get("averageUtilization")
    return percent


def _metric_as_v1(metric: JSON) -> JSON:
    """Returns a metric of autoscaling/v2 in the form that annotations of autoscaling/v1 have."""
    kind = metric["type"]
    key = kind[0].lower() + kind[1:]
    source = metric.get(key) or {}
    target, about = source.get("target") or {}, source.get("metric") or {}
    average, value = target.get("averageValue"), target.get("value")
    if kind == "Pods":
        fields = {"metricName": about.get("name"), "targetAverageValue": average, "selector": about.get("selector")}
    elif kind == "Object":
        fields = {
            "target": source.get("describedObject"), "metricName": about.get("name"), "targetValue": value or "0",
            "selector": about.get("selector"), "averageValue": average,
        }  # fmt: skip
    elif kind == "External":
        fields = {
            "metricName": about.get("name"), "metricSelector": about.get("selector"), "targetValue": value,
            "targetAverageValue": average,
        }  # fmt: skip
    else:
        fields = {
            "name": source.get("name"), "targetAverageUtilization": target.get("averageUtilization"),
            "targetAverageValue": average, "container": source.get("container"),
        }  # fmt: skip
    return {"type": kind, key: {name: value for name, value in fields.items() if value is not None}}


def _metric_from_v1(metric: JSON) -> JSON:
    """Returns a metric of an annotation in the form of autoscaling/v2."""
    kind = metric["type"]
    key = kind[0].lower() + kind[1:]
    source = metric.get(key) or {}
    average = source.get("averageValue" if kind == "Object" else "targetAverageValue")
    percent, value = source.get("targetAverageUtilization"), source.get("targetValue")
    target: JSON = {"type": "Value", "value": value}
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
    elif average is not None:
        target = {"type": "AverageValue", "averageValue": average}
    fields = {"name": source.get("metricName"), "selector": source.get("metricSelector") or source.get("selector")}
    about = {name: value for name, value in fields.items() if value is not None}
    if kind in {"Resource", "ContainerResource"}:
        about = {name: source[name] for name in ("name", "container") if name in source}
        return {"type": kind, key: {**about, "target": target}}
    described = {"describedObject": source.get("target")} if kind == "Object" else {}
    return {"type": kind, key: {**described, "metric": about, "target": target}}


def _capitalize_names(value: Any) -> Any:
    """Returns a behaviour as its internal type is encoded, which the annotation holds: names begin with a capital."""
    if isinstance(value, list):
        return [_capitalize_names(item) for item in value]
    if isinstance(value, dict):
        renamed = {key[0].upper() + key[1:]: _capitalize_names(item) for key, item in value.items()}
        return {**renamed, "Tolerance": renamed.get("Tolerance")} if "Policies" in renamed else renamed
    return value


def _uncapitalize_names(value: Any) -> Any:
    """Returns the value with each field name's first letter in lower case, without empty fields."""
    if isinstance(value, list):
        return [_uncapitalize_names(item) for item in value]
    if isinstance(value, dict):
        return {key[0].lower() + key[1:]: _uncapitalize_names(item) for key, item in value.items() if item is not None}
    return value
