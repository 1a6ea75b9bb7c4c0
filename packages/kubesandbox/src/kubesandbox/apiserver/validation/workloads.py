"""Validation of workloads: Deployments and the like, Jobs, CronJobs, and PodDisruptionBudgets."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubesandbox.apiserver.schema import Fault, FieldError, Verbatim, not_supported
from kubesandbox.apiserver.schema.go_json import go_json
from kubesandbox.apiserver.validation.common import NOT_NEGATIVE, Faults, changed_paths, not_negative, selector_faults
from kubesandbox.apiserver.validation.pod_templates import pod_spec
from kubesandbox.apiserver.validation.schedules import schedule_fault

JSON = dict[str, Any]

# What may change of a StatefulSet's spec.
_STATEFUL_SET_CHANGES = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def deployment_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Deployment: replicas, selector, template and strategy."""
    yield from _workload_faults(obj, old, "deployment")
    spec = obj.get("spec") or {}
    yield from _strategy_faults(spec.get("strategy") or {}, "spec.strategy")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from not_negative(spec, "spec", "progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            yield FieldError(
                Fault.INVALID, "spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
            )


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
            yield FieldError(Fault.INVALID, path, Verbatim(go_json(shown)), why)
    else:
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield FieldError(
            Fault.INVALID, "spec.updateStrategy", Verbatim(go_json(shown)), "must be 'RollingUpdate' or 'OnDelete'"
        )
    if old is not None and _fixed_of_stateful_set(spec) != _fixed_of_stateful_set(old.get("spec") or {}):
        listed = ", ".join(f"'{name}'" for name in _STATEFUL_SET_CHANGES[:-1])
        why = f"updates to statefulset spec for fields other than {listed} and '{_STATEFUL_SET_CHANGES[-1]}'"
        yield FieldError(Fault.FORBIDDEN, "spec", detail=f"{why} are forbidden")


def _fixed_of_stateful_set(spec: JSON) -> JSON:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_SET_CHANGES}


def daemon_set(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a DaemonSet.

    They are those of its selector, its template, and a rolling update that sets both or neither of maxUnavailable and
    maxSurge.
    """
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
        yield FieldError(Fault.INVALID, f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not _int_or_percent_value(unavailable) and not _int_or_percent_value(surge):
        yield FieldError(Fault.REQUIRED, f"{path}.maxUnavailable", detail="cannot be 0 when maxSurge is 0")


def _workload_faults(obj: JSON, old: JSON | None, called: str) -> Faults:
    """Yields the faults that all workloads have in common; `called` is the kind's name in messages."""
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    yield from not_negative(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from _selector_faults(spec, called)
    if old is not None and spec.get("selector") != ((old.get("spec") or {}).get("selector")):
        yield FieldError(Fault.INVALID, "spec.selector", spec.get("selector"), "field is immutable")
    yield from pod_spec(template.get("spec") or {}, "spec.template.spec")
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield FieldError(Fault.FORBIDDEN, "spec.template.spec.activeDeadlineSeconds", detail=why)
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in {None, "Always"}:
        yield not_supported("spec.template.spec.restartPolicy", policy, ("Always",))


def _selector_faults(spec: JSON, called: str) -> Faults:
    """Yields the faults of a workload's selector, which must select its own pods."""
    selector = spec.get("selector")
    if selector is None:
        yield FieldError(Fault.REQUIRED, "spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield FieldError(Fault.INVALID, "spec.selector", selector, f"empty selector is invalid for {called}")
        return
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    # A null selector matches no labels, unlike an empty one.
    if selector is None or not codec.convert(LabelSelector, selector).matches(labels or {}):
        why = "`selector` does not match template `labels`"
        yield FieldError(Fault.INVALID, "spec.template.metadata.labels", labels, why)


def _strategy_faults(strategy: JSON, path: str) -> Faults:
    """Yields the faults of a Deployment's strategy."""
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield FieldError(Fault.FORBIDDEN, f"{path}.rollingUpdate", None, why)
    elif kind == "RollingUpdate":
        yield from _rolling_update_faults(rolling or {}, f"{path}.rollingUpdate")
    else:
        shown_strategy = Verbatim(go_json({"Type": kind, "RollingUpdate": rolling}))
        yield not_supported(path, shown_strategy, ("Recreate", "RollingUpdate"))


def _rolling_update_faults(rolling: JSON, path: str) -> Faults:
    """Yields the faults of maxUnavailable and maxSurge, which must not both be 0."""
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from _int_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from _int_or_percent(surge, f"{path}.maxSurge")
    if _int_or_percent_value(unavailable) == 0 and _int_or_percent_value(surge) == 0:
        yield FieldError(Fault.INVALID, f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    if isinstance(unavailable, str) and _int_or_percent_value(unavailable) > 100:
        yield FieldError(Fault.INVALID, f"{path}.maxUnavailable", unavailable, "must not be greater than 100%")


def _int_or_percent(value: Any, path: str) -> Faults:
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield FieldError(Fault.INVALID, path, value, _PERCENT_RULE)
    if isinstance(value, int) and value < 0:
        yield FieldError(Fault.INVALID, path, value, NOT_NEGATIVE)


def _int_or_percent_value(value: Any) -> int:
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return int(value)


def job_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Job: numbers, template, and changed immutable fields."""
    yield from job_spec(obj.get("spec") or {}, "spec")
    if old is not None:
        yield from changed_paths(obj, old, "spec.completions", "spec.selector", "spec.template", "spec.completionMode")


def job_spec(spec: JSON, path: str) -> Faults:
    """Yields the faults of the spec of a Job or of a CronJob's template."""
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from not_negative(spec, path, *numbers)
    template = (spec.get("template") or {}).get("spec") or {}
    yield from pod_spec(template, f"{path}.template.spec")
    policy = template.get("restartPolicy")
    policy_path = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        yield FieldError(Fault.REQUIRED, policy_path, None, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(policy_path, policy, ("OnFailure", "Never"))


def cron_job(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a CronJob: its schedule, the concurrency policy, and its Job."""
    spec = obj.get("spec") or {}
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield FieldError(Fault.REQUIRED, "spec.schedule")
    elif why := schedule_fault(schedule):
        yield FieldError(Fault.INVALID, "spec.schedule", schedule, why)
    zone = spec.get("timeZone")
    if zone and _has_zones() and not _is_zone(zone):
        yield FieldError(Fault.INVALID, "spec.timeZone", zone, f"unknown time zone {zone}")
    yield from not_negative(
        spec, "spec", "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
    )
    policy = spec.get("concurrencyPolicy") or ""
    if policy not in ("Allow", "Forbid", "Replace"):
        yield not_supported("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace"))
    yield from job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def _is_zone(name: str) -> bool:
    """Reports whether this machine knows the time zone."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


@cache
def _has_zones() -> bool:
    """Returns whether this machine has a database of time zones: without one none is known to be wrong."""
    return _is_zone("Europe/Prague")


def budget_faults(obj: JSON, _old: JSON | None) -> Faults:
    """Yields the faults of a PodDisruptionBudget: at most one of the two numbers."""
    spec = obj.get("spec") or {}
    for name in ("minAvailable", "maxUnavailable"):
        value = spec.get(name)
        yield from _int_or_percent(value, f"spec.{name}")
        if isinstance(value, str) and _int_or_percent_value(value) > 100:
            yield FieldError(Fault.INVALID, f"spec.{name}", value, "must not be greater than 100%")
    yield from selector_faults(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown_budget = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        why = "minAvailable and maxUnavailable cannot be both set"
        yield FieldError(Fault.INVALID, "spec", Verbatim(go_json(shown_budget)), why)
