"""Checks a FleetUpdate that is carried out without a hub, and reads its amounts. Pure.

Each mistake has one error, which names the field and the way out. Unknown fields are errors of the types
(`runup.api.fleet_update_v1alpha1`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from kubekit.error_types import InputError
from kubekit.lang import version
from kubekit.lang.oc_pull_spec import pull_spec
from runup.api.clusterversion_json import JSON, mapping, mappings
from runup.api.fleet_update_v1alpha1 import FleetUpdate, Stage, StageGate, StageSelector
from runup.rollout.decide.durations import parse
from runup.rollout.decide.expressions import errors_of

MAX_STAGES = 16
_PERCENT = re.compile(r"([0-9]{1,3})%", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)
# It is also the name of the journal's file.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_PROGRESSIVE = "Progressive"
# The fields of Open Cluster Management's RolloutStrategy that only its engine carries out
# (open-cluster-management-io/api, cluster/v1alpha1/types_rolloutstrategy.go).
_TYPES = ("All", _PROGRESSIVE)
# The operators of a label selector, and whether they need values.
_OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
# What a gate of a stage needs besides its type.
_NEEDS = {"Approval": "name", "Soak": "for", "Calendar": "name", "NotBefore": "at"}


def refuse_empty_labels(obj: JSON) -> None:
    """Raises InputError for a label of a selector without a value, which would be ignored and select every cluster."""
    for stage in mappings(mapping(obj, "spec"), "stages"):
        for label, value in mapping(mapping(stage, "selector"), "matchLabels").items():
            if value is None:
                way_out = f"for every value of it use matchExpressions: [{{key: {label}, operator: Exists}}]"
                raise InputError(f"spec.stages[{stage.get('name')}].selector: label {label} has no value: {way_out}")


def check(update: FleetUpdate, calendars: frozenset[str]) -> None:
    """Raises InputError for the first mistake. `calendars` are the names of the UpdateCalendars in the same file."""
    spec = update.spec
    if not _NAME.fullmatch(update.metadata.name):
        raise InputError(f"metadata.name {update.metadata.name!r} must be a name such as spring or 5.1")
    _check_target(spec.target.version, spec.target.image)
    if not spec.stages:
        raise InputError("spec.stages must have at least one stage, for example {name: all}")
    if len(spec.stages) > MAX_STAGES:
        raise InputError(f"spec.stages must have at most {MAX_STAGES} stages; it has {len(spec.stages)}")
    for name, number in Counter(stage.name for stage in spec.stages).items():
        if not name:
            raise InputError("spec.stages: every stage must have a name")
        if number > 1:
            raise InputError(f"spec.stages: {number} stages are called {name}; give each a different name")
    for index, stage in enumerate(spec.stages):
        _check_stage(stage, f"spec.stages[{stage.name}]", calendars, is_first=index == 0)
    labels = Counter(mutex.label for mutex in spec.mutexes)
    for label, number in labels.items():
        if not label:
            raise InputError("spec.mutexes: every mutex must have a label")
        if number > 1:
            raise InputError(f"spec.mutexes: label {label} is named {number} times; name it once")
    _check_amount(spec.max_failures, "spec.maxFailures")
    for text, field in (
        (spec.permit_for, "spec.permitFor"),
        (spec.policy.soak, "spec.policy.soak"),
        (spec.policy.deadline, "spec.policy.deadline"),
        (spec.policy.gates.preflight.max_age, "spec.policy.gates.preflight.maxAge"),
        (spec.policy.gates.health.settle, "spec.policy.gates.health.settle"),
        (spec.policy.gates.alerts.for_, "spec.policy.gates.alerts.for"),
    ):
        parse(text, field)
    if errors := errors_of(spec.policy.gates.health.expressions):
        raise InputError(f"spec.policy.gates.health: {'; '.join(errors)}")
    if spec.policy.gates.approvals:
        way_out = "use a gate {type: Approval} in before or after of a stage"
        raise InputError(f"spec.policy.gates.approvals needs an UpdateRun for each approval: {way_out}")
    if spec.policy.actuator != "ClusterVersion":
        way_out = "an UpdatePolicy with actuator None opens gates for other tools"
        raise InputError(f"spec.policy.actuator must be ClusterVersion, because runup starts the updates: {way_out}")
    if spec.control != "Run":
        way_out = "`runup fleet update hold` and `abort` record it in the journal"
        raise InputError(f"spec.control {spec.control} has an effect on a hub only: {way_out}")


def _check_target(wanted: str, image: str) -> None:
    if version.parse(wanted) is None:
        raise InputError(f"spec.target.version {wanted!r} must be a semantic version such as 5.1.0")
    try:
        spec = pull_spec(image)
    except ValueError as error:
        raise InputError(f"spec.target.image {image!r} must be a pull spec with a digest: {error}") from error
    if not spec.digest or spec.tag:
        way_out = "a tag may lead to another image on each cluster; `runup release info` prints the digest"
        raise InputError(
            f"spec.target.image {image!r} must name the image by digest (@sha256:...), not by tag: {way_out}"
        )


def _check_stage(stage: Stage, field: str, calendars: frozenset[str], *, is_first: bool) -> None:
    if stage.placement_ref is not None:
        raise InputError(f"{field}.placementRef needs a hub; without one give {field}.selector")
    if stage.selector is not None:
        _check_selector(stage.selector, f"{field}.selector.matchExpressions")
    rollout = dict(stage.rollout)
    type_ = rollout.pop("type", _PROGRESSIVE)
    settings = rollout.pop("progressive", {}) if type_ == _PROGRESSIVE else {}
    if type_ not in _TYPES or rollout or not isinstance(settings, dict):
        raise InputError(
            f"{field}.rollout must be {{type: All}} or {{type: Progressive, progressive: {{maxConcurrency: N}}}}"
        )
    if other := sorted(set(settings) - {"maxConcurrency"}):
        where = "spec.maxFailures, spec.policy.soak and spec.policy.deadline count here"
        raise InputError(f"{field}.rollout.progressive.{other[0]} has an effect on a hub only: {where}")
    amount = f"{field}.rollout.progressive.maxConcurrency"
    if "maxConcurrency" in settings:
        _check_amount(settings["maxConcurrency"], amount)
        if str(settings["maxConcurrency"]) in ("0", "0%"):
            raise InputError(f"{amount} must be at least 1, or no cluster of the stage would start")
    _check_amount(stage.min_done, f"{field}.minDone")
    for gate in stage.before:
        _check_gate(gate, f"{field}.before", calendars)
        if is_first and gate.type == "Soak":
            raise InputError(f"{field}.before: the first stage has no stage before it whose soak could be waited for")
    for gate in stage.after:
        _check_gate(gate, f"{field}.after", calendars)
    names = Counter(gate.name for gate in (*stage.before, *stage.after) if gate.type == "Approval")
    for name, number in names.items():
        if number > 1:
            raise InputError(f"{field}: {number} approvals are called {name}; give each a different name")


def _check_selector(selector: StageSelector, field: str) -> None:
    """Refuses what the API server refuses, because it would select other clusters than those that were meant.

    The rules are those of k8s.io/apimachinery, pkg/apis/meta/v1/validation, ValidateLabelSelectorRequirement.
    """
    for requirement in selector.match_expressions:
        operator = requirement.operator
        if not requirement.key:
            raise InputError(f"{field}: every requirement must have a key, the name of a label")
        if operator not in _OPERATORS:
            raise InputError(
                f"{field}: operator {operator!r} of label {requirement.key} must be one of {', '.join(_OPERATORS)}"
            )
        if _OPERATORS[operator] != bool(requirement.values):
            text = "must have at least one value" if _OPERATORS[operator] else "must not have values"
            raise InputError(f"{field}: label {requirement.key} with operator {operator} {text}")


def _check_gate(gate: StageGate, field: str, calendars: frozenset[str]) -> None:
    given = {"name": gate.name, "for": gate.for_, "at": gate.at}
    needed = _NEEDS[gate.type]
    if not given[needed]:
        raise InputError(f"{field}: a gate of type {gate.type} must have `{needed}`")
    if extra := [name for name, value in given.items() if value and name != needed]:
        raise InputError(f"{field}: a gate of type {gate.type} has no `{extra[0]}`")
    if gate.for_:
        parse(gate.for_, f"{field}.for")
    if gate.type == "Approval":
        parse(gate.expires, f"{field}.expires")
        if gate.count < 1:
            raise InputError(f"{field}.count of approval {gate.name} must be at least 1")
    if gate.type == "Calendar" and gate.name not in calendars:
        raise InputError(f"{field}: the file has no UpdateCalendar {gate.name}; add it as a further document")
    if gate.at is not None and gate.at.tzinfo is None:
        raise InputError(f"{field}.at must be a time with an offset, such as 2026-12-24T22:00:00Z")


def _check_amount(value: Any, field: str) -> None:
    """Raises InputError if `value` is neither a number nor a percentage."""
    text = str(value)
    percent = _PERCENT.fullmatch(text)
    valid = int(percent[1]) <= 100 if percent else bool(_NUMBER.fullmatch(text))
    if not valid or isinstance(value, bool):
        raise InputError(f"{field} {text!r} must be a number such as 3, or a percentage from 0% to 100%")


def amount(value: Any, total: int, rounded: Callable[[float], int]) -> int:
    """Returns how many of `total` a checked amount is; a percentage is rounded by `rounded`."""
    text = str(value)
    return rounded(total * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def max_concurrency(stage: Stage, clusters: int) -> int:
    """Returns how many clusters of a stage are updated at once: without a value one."""
    if stage.rollout.get("type", _PROGRESSIVE) == "All":
        return clusters
    return max(amount(stage.rollout.get("progressive", {}).get("maxConcurrency", 1), clusters, math.ceil), 1)


def min_done(stage: Stage, clusters: int) -> int:
    """Returns how many clusters of a stage must be done or skipped before the next stage."""
    return min(amount(stage.min_done, clusters, math.ceil), clusters)


def max_failures(update: FleetUpdate, clusters: int) -> int:
    """Returns how many failures are allowed. Raises InputError if that is not less than the number of clusters."""
    allowed = amount(update.spec.max_failures, clusters, math.floor)
    if clusters and allowed >= clusters:
        raise InputError(
            f"spec.maxFailures {update.spec.max_failures} would let all {clusters} clusters fail; "
            f"it must be at most {clusters - 1}"
        )
    return allowed
