"""Validation of workloads: Deployments and the like, CronJobs, disruption budgets and autoscalers."""

from __future__ import annotations

import dataclasses
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubekit.lang.gotext import parse_duration
from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver import kubernetes_version
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults, not_negative, selector_faults
from kubesandbox.apiserver.validation.jobs import job_spec
from kubesandbox.apiserver.validation.pods import pod_spec

JSON = dict[str, Any]

# What may change of a StatefulSet's spec.
_STATEFUL_SET_CHANGES = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def deployment_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Deployment: replicas, selector, template and strategy."""
    yield from _workload_faults(obj, old, "deployment")
    spec = obj.get("spec") or {}
    strategy = spec.get("strategy") or {}
    kind, rolling, path = strategy.get("type") or "", strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            yield field.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif kind == "RollingUpdate":
        unavailable, surge = (rolling or {}).get("maxUnavailable", 0), (rolling or {}).get("maxSurge", 0)
        yield from _int_or_percent(unavailable, f"{path}.maxUnavailable")
        yield from _int_or_percent(surge, f"{path}.maxSurge")
        if _int_or_percent_value(unavailable) == 0 and _int_or_percent_value(surge) == 0:
            yield field.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        if isinstance(unavailable, str) and _int_or_percent_value(unavailable) > 100:
            yield field.invalid(f"{path}.maxUnavailable", unavailable, "must not be greater than 100%")
    else:
        shown_strategy = field.Verbatim(field.go_json({"Type": kind, "RollingUpdate": rolling}))
        yield field.not_supported("spec.strategy", shown_strategy, ("Recreate", "RollingUpdate"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from not_negative(spec, "spec", "progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            yield field.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def replica_set(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a ReplicaSet: replicas, selector and template."""
    yield from _workload_faults(obj, old, "deployment")


def stateful_set(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a StatefulSet: replicas, selector, template, roll-outs, and all that may not change."""
    yield from _workload_faults(obj, None, "statefulset")
    spec = obj.get("spec") or {}
    yield from not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        yield from not_negative(rolling or {}, "spec.updateStrategy.rollingUpdate", "partition")
    elif kind == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
            path, why = "spec.updateStrategy.rollingUpdate", "only allowed for updateStrategy 'RollingUpdate'"
            yield field.invalid(path, field.Verbatim(field.go_json(shown)), why)
    else:
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield field.invalid(
            "spec.updateStrategy", field.Verbatim(field.go_json(shown)), "must be 'RollingUpdate' or 'OnDelete'"
        )
    if old is not None and _fixed_of_stateful_set(spec) != _fixed_of_stateful_set(old.get("spec") or {}):
        listed = ", ".join(f"'{name}'" for name in _STATEFUL_SET_CHANGES[:-1])
        why = f"updates to statefulset spec for fields other than {listed} and '{_STATEFUL_SET_CHANGES[-1]}'"
        yield field.forbidden("spec", f"{why} are forbidden")


def _fixed_of_stateful_set(spec: JSON) -> JSON:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_SET_CHANGES}


def daemon_set(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a DaemonSet: selector, template, and exactly one of maxUnavailable and maxSurge."""
    yield from _workload_faults(obj, old, "daemonset")
    strategy = (obj.get("spec") or {}).get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") != "RollingUpdate" or rolling is None:
        return
    path = "spec.updateStrategy.rollingUpdate"
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from _int_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from _int_or_percent(surge, f"{path}.maxSurge")
    if _int_or_percent_value(unavailable) and _int_or_percent_value(surge):
        yield field.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not _int_or_percent_value(unavailable) and not _int_or_percent_value(surge):
        yield field.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _workload_faults(obj: JSON, old: JSON | None, called: str) -> Faults:
    """Yields the faults that all workloads have in common; `called` is the kind's name in messages."""
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    yield from not_negative(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit")
    selector, labels = spec.get("selector"), (template.get("metadata") or {}).get("labels")
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield field.invalid("spec.selector", selector, f"empty selector is invalid for {called}")
    else:
        if selector is None:
            yield field.required("spec.selector")
        # A null selector matches no labels, unlike an empty one.
        if selector is None or not codec.convert(LabelSelector, selector).matches(labels or {}):
            yield field.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if old is not None and selector != ((old.get("spec") or {}).get("selector")):
        yield field.invalid("spec.selector", selector, "field is immutable")
    yield from pod_spec(template.get("spec") or {}, "spec.template.spec")
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield field.forbidden("spec.template.spec.activeDeadlineSeconds", why)
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in {None, "Always"}:
        yield field.not_supported("spec.template.spec.restartPolicy", policy, ("Always",))


def _int_or_percent(value: Any, path: str) -> Faults:
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield field.invalid(path, value, _PERCENT_RULE)
    if isinstance(value, int) and value < 0:
        yield field.invalid(path, value, NOT_NEGATIVE)


def _int_or_percent_value(value: Any) -> int:
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return int(value)


def cron_job(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a CronJob: its schedule, the concurrency policy, and its Job."""
    spec = obj.get("spec") or {}
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield field.required("spec.schedule")
    elif why := schedule_fault(schedule):
        yield field.invalid("spec.schedule", schedule, why)
    zone = spec.get("timeZone")
    if zone and _is_zone("Europe/Prague") and not _is_zone(zone):
        yield field.invalid("spec.timeZone", zone, f"unknown time zone {zone}")
    yield from not_negative(
        spec, "spec", "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
    )
    policy = spec.get("concurrencyPolicy") or ""
    yield from field.one_of("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace"))
    yield from job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def _is_zone(name: str) -> bool:
    """Reports whether this machine knows the time zone."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def budget_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a PodDisruptionBudget: at most one of the two numbers."""
    spec = obj.get("spec") or {}
    for name in ("minAvailable", "maxUnavailable"):
        value = spec.get(name)
        yield from _int_or_percent(value, f"spec.{name}")
        if isinstance(value, str) and _int_or_percent_value(value) > 100:
            yield field.invalid(f"spec.{name}", value, "must not be greater than 100%")
    yield from selector_faults(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        yield from field.one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown_budget = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield field.invalid(
            "spec", field.Verbatim(field.go_json(shown_budget)), "minAvailable and maxUnavailable cannot be both set"
        )


# -- HorizontalPodAutoscalers ------------------------------------------------------------------------------------------

_LONGEST_WINDOW_S = 3600
_NO_GROUP = "apiVersion must specify API group"
# In the order in which a real server looks for them.
_METRIC_SOURCES = ("object", "external", "pods", "resource", "containerResource")
_TWO_SHARES = "may not set both a target raw value and a target utilization"
_NO_SHARE = "must set either a target raw value or a target utilization"
_TWO_VALUES = "may not set both a target value for metric and a per-pod target"
# By source: the amounts of which its target needs one, what is reported without them, and with two, if it may not.
_AMOUNTS = {
    "object": (("value", "averageValue"), "must set either a target value or averageValue", ""),
    "external": (
        ("value", "averageValue"),
        "must set either a target value for metric or a per-pod target",
        _TWO_VALUES,
    ),
    "pods": (("averageValue",), "must specify a positive target averageValue", ""),
    "resource": (("averageValue", "averageUtilization"), _NO_SHARE, _TWO_SHARES),
    "containerResource": (("averageValue", "averageUtilization"), _NO_SHARE, _TWO_SHARES),
}
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")


def _reference_faults(reference: JSON, path: str) -> Faults:
    """Yields the faults of a reference to another object (ValidateCrossVersionObjectReference)."""
    for name in ("kind", "name"):
        value = reference.get(name) or ""
        if not value:
            yield field.required(f"{path}.{name}")
        for why in object_meta.path_segment_faults(value):
            yield field.invalid(f"{path}.{name}", value, why)


def _metric_faults(metric: JSON, path: str) -> Faults:
    """Yields the faults of a metric: it must have the source of its type, and no other (validateMetricSpec)."""
    kind = metric.get("type") or ""
    expected = next((name for name in _METRIC_SOURCES if kind and name.lower() == kind.lower()), "")
    if not kind:
        yield field.required(f"{path}.type", "must specify a metric source type")
    if not expected:
        yield field.not_supported(f"{path}.type", kind, _METRIC_TYPES)
    given = [name for name in _METRIC_SOURCES if metric.get(name) is not None]
    if given:
        yield from _source_faults(given[0], metric[given[0]], f"{path}.{given[0]}")
    if expected and expected not in given:
        yield field.required(f"{path}.{expected}", "must populate information for the given metric source")
    if not expected:
        yield field.not_supported(f"{path}.type", kind, _METRIC_TYPES)
    if len(given) != 1:
        for name in given:
            if name != expected:
                yield field.forbidden(f"{path}.{name}", "must populate the given metric source only")


def _source_faults(name: str, source: JSON, path: str) -> Faults:
    """Yields the faults of a metric's source: what it measures, and the target value."""
    if name == "object":
        yield from _reference_faults(source.get("describedObject") or {}, f"{path}.describedObject")
    if name in ("object", "external", "pods"):
        metric = (source.get("metric") or {}).get("name") or ""
        if not metric:
            yield field.required(f"{path}.metric.name", "must specify a metric name")
        for why in object_meta.path_segment_faults(metric):
            yield field.invalid(f"{path}.metric.name", metric, why)
    elif not source.get("name"):
        yield field.required(f"{path}.name", "must specify a resource name")
    if name == "containerResource" and not source.get("container"):
        yield field.required(f"{path}.container", "must specify a container")
    target, at = source.get("target") or {}, f"{path}.target"
    kind = target.get("type") or ""
    if not kind:
        yield field.required(f"{at}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield field.invalid(f"{at}.type", kind, "must be either Utilization, Value, or AverageValue")
    for key in ("value", "averageValue"):
        if (amount := target.get(key)) is not None and parse_quantity(str(amount)) <= 0:
            yield field.invalid(f"{at}.{key}", str(amount), "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield field.invalid(f"{at}.averageUtilization", share, "must be greater than 0")
    yield from _amount_faults(name, target, at)


def _amount_faults(name: str, target: JSON, at: str) -> Faults:
    """Yields a fault if a target lacks the amount that its source needs, or has two."""
    needed, why, both = _AMOUNTS[name]
    given = [key for key in needed if target.get(key) is not None]
    if not given:
        yield field.required(f"{at}.{needed[-1]}", why)
    elif both and len(given) == 2:
        yield field.forbidden(f"{at}.{needed[0]}", both)


def autoscaler_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a HorizontalPodAutoscaler: numbers of replicas, its target, and metrics."""
    spec = obj.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    had_none = ((old or {}).get("spec") or {}).get("minReplicas") == 0
    lowest = 0 if had_none or kubernetes_version.enabled("HPAScaleToZero") else 1
    if least is not None and least < lowest:
        yield field.invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
    if most < 1:
        yield field.invalid("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        yield field.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target, former = spec.get("scaleTargetRef") or {}, ((old or {}).get("spec") or {}).get("scaleTargetRef") or {}
    yield from _reference_faults(target, "spec.scaleTargetRef")
    # An unchanged reference may stay, and the one scalable kind of the core group has no group (strategy.go).
    version = target.get("apiVersion") or ""
    unchanged = old is not None and all(target.get(key) == former.get(key) for key in ("apiVersion", "kind"))
    if not unchanged and not version.rpartition("/")[0] and target.get("kind") != "ReplicationController":
        yield field.invalid("spec.scaleTargetRef.apiVersion", version, _NO_GROUP)
    for name, direction in (spec.get("behavior") or {}).items():
        window = (direction or {}).get("stabilizationWindowSeconds")
        if window is not None and not 0 <= window <= _LONGEST_WINDOW_S:
            limit = f"less than or equal to {_LONGEST_WINDOW_S}" if window > 0 else "greater than or equal to zero"
            why = f"must be {limit}"
            yield field.invalid(f"spec.behavior.{name}.stabilizationWindowSeconds", window, why)
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        yield from _metric_faults(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield field.forbidden("spec.metrics", why)


# -- Schedules of CronJobs, in the words of github.com/robfig/cron, by which kube-apiserver parses them ----------------

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Bounds:
    least: int
    most: int
    names: Mapping[str, int] = dataclasses.field(default_factory=dict)


_BOUNDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def schedule_fault(schedule: str) -> str:
    """Returns why a schedule cannot be read, or ""."""
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        duration = schedule.removeprefix("@every ")
        if duration == schedule and schedule not in _DESCRIPTORS:
            return f"unrecognized descriptor: {schedule}"
        if duration != schedule and parse_duration(duration) is None:
            return f'failed to parse duration {schedule}: time: invalid duration "{duration}"'
        return ""
    fields = schedule.split()
    if len(fields) != len(_BOUNDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for text, bounds in zip(fields, _BOUNDS, strict=True):
            for part in filter(None, text.split(",")):
                _check_range(part, bounds)
    except ValueError as error:
        return str(error)
    return ""


def _check_range(text: str, bounds: _Bounds) -> None:
    """Raises ValueError unless `text` is a number, a range or `*`, with a step or without."""
    numbers, *steps = text.split("/")
    low, *high = numbers.split("-")
    if low in ("*", "?"):
        start, end = bounds.least, bounds.most
    else:
        start = end = _number(low, bounds.names)
        if len(high) > 1:
            raise ValueError(f"too many hyphens: {text}")
        if high:
            end = _number(high[0], bounds.names)
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not high:
        # A number with a step means from there to the end.
        end = bounds.most
    if start < bounds.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.least}): {text}")
    if end > bounds.most:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.most}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, names: Mapping[str, int]) -> int:
    """Returns the number that `text` is or names; raises ValueError in the words of Go's strconv."""
    if text.lower() in names:
        return names[text.lower()]
    digits = text[1:] if text.startswith(("+", "-")) else text
    failed = f'failed to parse int from {text}: strconv.Atoi: parsing "{text}"'
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{failed}: invalid syntax")
    # int refuses some thousands of digits with a separate error.
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST:
        raise ValueError(f"{failed}: value out of range")
    if text.startswith("-") and digits != "0":
        raise ValueError(f"negative number (-{digits}) not allowed: {text}")
    return int(digits)
