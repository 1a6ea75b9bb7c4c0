"""Validation of Jobs and of the Job templates of CronJobs (k8s.io/kubernetes/pkg/apis/batch/validation)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema import field_errors as field
from kubesandbox.apiserver.schema import object_meta
from kubesandbox.apiserver.validation.common import Faults, changed_paths, not_negative, selector_faults, value_at
from kubesandbox.apiserver.validation.pods import pod_spec

JSON = dict[str, Any]

_INDEXED = "Indexed"
_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
            "backoffLimitPerIndex", "maxFailedIndexes")  # fmt: skip
# The labels of a Job's pods: the uid and the name of the Job, each with and without a prefix.
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_MOST_INDEXES, _MOST_INDEXES_OF_MANY, _MANY_COMPLETIONS = 100_000, 10_000, 100_000
_MOST_RULES, _MOST_EXIT_CODES, _LONGEST_MANAGER = 20, 255, 63
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")


def job_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a Job: numbers, policies, template, and changes of fields that stay as they are."""
    spec = obj.get("spec") or {}
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        yield from _generated_selector(obj)
    yield from (faults_of_spec := [*job_spec(spec, "spec"), *_selector(spec)])
    if _is_indexed(spec) and (completions := spec.get("completions") or 0) > 0:
        hostname = f"{meta(obj).get('name', '')}-{completions - 1}"
        if object_meta.dns1123_label_faults(hostname):
            why = f"will not able to create pod with invalid DNS label: {hostname}"
            yield field.invalid("metadata.name", meta(obj).get("name"), why)
    if old is None:
        return
    # Reported twice, as the strategy validates the new Job and then its update.
    yield from faults_of_spec
    old_spec = old.get("spec") or {}
    yield from _changed_completions(obj, old)
    yield from changed_paths(obj, old, "spec.selector")
    former = old_spec.get("template") or {}
    # Where its pods run may change of a suspended Job that was never started.
    if old_spec.get("suspend") and not (old.get("status") or {}).get("startTime"):
        former = _with_directives_of(spec.get("template") or {}, former)
    if spec.get("template") != former:
        yield field.invalid("spec.template", spec.get("template"), "field is immutable")
    fixed = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
    yield from changed_paths(obj, old, *(f"spec.{name}" for name in fixed))


def job_spec(spec: JSON, path: str) -> Faults:
    """Yields the faults of the spec of a Job or of a CronJob's template."""
    yield from not_negative(spec, path, *_NUMBERS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield field.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if (manager := spec.get("managedBy")) is not None:
        if "/" not in manager.strip("/"):
            yield field.invalid(f"{path}.managedBy", manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        if len(manager) > _LONGEST_MANAGER:
            why = f"may not be more than {_LONGEST_MANAGER} bytes"
            yield field.FieldError(field.Fault.TOO_LONG, f"{path}.managedBy", None, why)
    if (mode := spec.get("completionMode")) is not None:
        yield from field.one_of(f"{path}.completionMode", mode, (_INDEXED, "NonIndexed"))
    if _is_indexed(spec):
        yield from _indexed(spec, path)
    else:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(name) is not None:
                yield field.invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    if (policy := spec.get("podFailurePolicy")) is not None:
        yield from _failure_policy(spec, policy.get("rules") or (), f"{path}.podFailurePolicy.rules")
    if (policy := spec.get("successPolicy")) is not None and _is_indexed(spec):
        yield from _success_policy(spec, policy.get("rules") or (), f"{path}.successPolicy.rules")
    if (replacement := spec.get("podReplacementPolicy")) is not None:
        supported = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
        yield from field.one_of(f"{path}.podReplacementPolicy", replacement, supported)
    yield from pod_spec((spec.get("template") or {}).get("spec") or {}, f"{path}.template.spec")
    yield from _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _is_indexed(spec: JSON) -> bool:
    return spec.get("completionMode") == _INDEXED


def _restart_policy(spec: JSON, path: str) -> Faults:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy in ("", "Always"):
        yield field.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield field.not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield field.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _generated_selector(obj: JSON) -> Faults:
    """Yields what a template and a selector lack of the labels that the server generates."""
    spec, metadata = obj["spec"], meta(obj)
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    labels = value_at(spec, "template.metadata.labels") or {}
    values = {_UID_LABELS[0]: uid, _NAME_LABELS[0]: name, _UID_LABELS[1]: uid, _NAME_LABELS[1]: name}
    path = "spec.template.metadata.labels"
    for key, value in values.items():
        if key not in labels:
            yield field.required(f"{path}[{key}]", f"must be '{value}'")
        elif labels[key] != value:
            yield field.invalid(f"{path}[{key}]", labels, f"must be '{value}'")
    if not codec.convert(LabelSelector, spec["selector"]).matches(values):
        yield field.invalid("spec.selector", spec["selector"], "`selector` not auto-generated")


def _selector(spec: JSON) -> Faults:
    selector, labels = spec.get("selector"), value_at(spec, "template.metadata.labels")
    if selector is None:
        yield field.required("spec.selector")
        return
    yield from selector_faults(selector, "spec.selector")
    if not codec.convert(LabelSelector, selector).matches(labels or {}):
        yield field.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _changed_completions(obj: JSON, old: JSON) -> Faults:
    """Yields a fault of changed completions, which change in indexed Jobs alone, and together with parallelism."""
    spec = obj.get("spec") or {}
    if not _is_indexed(spec):
        yield from changed_paths(obj, old, "spec.completions")
        return
    completions, former = spec.get("completions"), (old.get("spec") or {}).get("completions")
    if completions is not None and completions not in (former, spec.get("parallelism")):
        yield field.invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")


def _with_directives_of(template: JSON, old: JSON) -> JSON:
    """Returns the old template with the labels, annotations and scheduling directives of the new one."""
    result: JSON = copy_json(old)
    for new_part, old_part, names in (
        (template.get("metadata") or {}, result.setdefault("metadata", {}), ("labels", "annotations")),
        (
            template.get("spec") or {},
            result.setdefault("spec", {}),
            ("nodeSelector", "tolerations", "schedulingGates"),
        ),
    ):
        for name in names:
            _take(new_part, old_part, name)
    new_spec, old_spec = template.get("spec") or {}, result["spec"]
    # Of affinity, only that to nodes may change.
    affinity = old_spec.setdefault("affinity", {})
    _take(new_spec.get("affinity") or {}, affinity, "nodeAffinity")
    if not affinity and "affinity" not in new_spec:
        del old_spec["affinity"]
    return result


def _take(source: JSON, target: JSON, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _indexed(spec: JSON, path: str) -> Faults:
    """Yields the faults of an indexed Job's numbers."""
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield field.required(f"{path}.completions", "when completion mode is Indexed")
    if (parallelism or 0) > _MOST_INDEXES:
        why = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
        yield field.invalid(f"{path}.parallelism", parallelism, why)
    if completions is not None and failed is not None and failed > completions:
        yield field.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if (failed or 0) > _MOST_INDEXES:
        yield field.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MOST_INDEXES}")
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            why = f"must be specified when completions is above {_MANY_COMPLETIONS}"
            yield field.required(f"{path}.maxFailedIndexes", why)
        for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
            if (value or 0) > _MOST_INDEXES_OF_MANY:
                why = (
                    f"must be less than or equal to {_MOST_INDEXES_OF_MANY} when completions are above "
                    f"{_MANY_COMPLETIONS} and used with backoff limit per index"
                )
                yield field.invalid(f"{path}.{name}", value, why)


def _failure_policy(spec: JSON, rules: Sequence[JSON], path: str) -> Faults:
    """Yields the faults of the rules of a pod failure policy."""
    if len(rules) > _MOST_RULES:
        yield field.FieldError(field.Fault.TOO_MANY, path, len(rules), f"must have at most {_MOST_RULES} items")
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {c.get("name") for part in ("containers", "initContainers") for c in pod.get(part) or ()}
    for index, rule in enumerate(rules):
        at, action = f"{path}[{index}]", rule.get("action") or ""
        if not action:
            yield field.required(f"{at}.action", f"valid values: {_quoted_list(_ACTIONS)}")
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield field.invalid(f"{at}.action", action, "requires the backoffLimitPerIndex to be set")
        else:
            yield from field.one_of(f"{at}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            yield from _exit_codes(codes, f"{at}.onExitCodes", names)
        for number, pattern in enumerate(conditions):
            where, status = f"{at}.onPodConditions[{number}]", pattern.get("status") or ""
            for why in object_meta.qualified_name(pattern.get("type") or ""):
                yield field.invalid(f"{where}.type", pattern.get("type") or "", why)
            if not status:
                yield field.required(f"{where}.status", f"valid values: {_quoted_list(_STATUSES)}")
            else:
                yield from field.one_of(f"{where}.status", status, _STATUSES)
        if codes is not None and conditions:
            why = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield field.FieldError(field.Fault.INVALID, at, field.OMITTED, why)
        if codes is None and not conditions:
            why = "specifying one of OnExitCodes and OnPodConditions is required"
            yield field.FieldError(field.Fault.INVALID, at, field.OMITTED, why)


def _exit_codes(requirement: JSON, path: str, names: set[Any]) -> Faults:
    """Yields the faults of exit codes: sorted, each once, and no 0 among those that fail."""
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if not operator:
        yield field.required(f"{path}.operator", f"valid values: {_quoted_list(('In', 'NotIn'))}")
    else:
        yield from field.one_of(f"{path}.operator", operator, ("In", "NotIn"))
    if (name := requirement.get("containerName")) is not None and name not in names:
        why = "must be one of the container or initContainer names in the pod template"
        yield field.invalid(f"{path}.containerName", name, why)
    if not values:
        yield field.invalid(f"{path}.values", requirement.get("values"), "at least one value is required")
    elif len(values) > _MOST_EXIT_CODES:
        why = f"must have at most {_MOST_EXIT_CODES} items"
        yield field.FieldError(field.Fault.TOO_MANY, f"{path}.values", len(values), why)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield field.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield field.duplicate(f"{path}.values[{index}]", value)
    if any(after < before for before, after in pairwise(values)):
        yield field.invalid(f"{path}.values", values, "must be ordered")


def _success_policy(spec: JSON, rules: Sequence[JSON], path: str) -> Faults:
    """Yields the faults of the rules of a success policy; the syntax of `succeededIndexes` is not validated."""
    if not rules:
        yield field.required(path, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > _MOST_RULES:
        yield field.FieldError(field.Fault.TOO_MANY, path, len(rules), f"must have at most {_MOST_RULES} items")
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        at, count = f"{path}[{index}]", rule.get("succeededCount")
        if count is None and rule.get("succeededIndexes") is None:
            yield field.required(at, "at least one of succeededCount or succeededIndexes must be specified")
        if count is None:
            continue
        yield from not_negative(rule, at, "succeededCount")
        if count > completions:
            why = f"must be less than or equal to {completions} (the number of specified completions)"
            yield field.invalid(f"{at}.succeededCount", count, why)


def _quoted_list(words: Sequence[str]) -> str:
    """Returns a list of words as Go's %q prints it."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
