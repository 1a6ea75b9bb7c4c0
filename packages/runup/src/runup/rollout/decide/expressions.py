"""Evaluates the health expressions of a policy with the engine of PreflightChecks, in which true is a problem. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.error_types import InputError
from kubekit.lang.version import Version
from runup.api.update_policy_v1alpha1 import HealthExpression
from runup.checks.decide import declarative
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Context
from runup.checks.decide.snapshots import snapshot_of
from runup.rollout.decide.gates.observed import Health

FIELD = "spec.gates.health.expressions"
# An expression is not about an update, but the engine of checks wants one.
_ANY = Version("0.0.0")


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one read, or why they are not known; `absent`: the cluster has no such kind."""

    objects: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""
    absent: bool = False


# What was read for expressions, by the read.
Lists = Mapping[Resource, Listed]


@lru_cache(64)
def compile_expression(source: HealthExpression) -> Check:
    """Returns the check whose risk applies while the expression is false. Raises InputError."""
    given = codec.to_dict(source)
    spec = {
        "component": "update-policy",
        "reads": given["reads"],
        "for": source.for_,
        "expression": f"!({source.expression})",
        "risk": {"name": "Unhealthy", "message": source.message or f"{source.expression} is false"},
    }
    document = {"apiVersion": declarative.API_VERSION, "kind": declarative.KIND, "metadata": {"name": source.name}}
    file = f"{FIELD}[{source.name}]"
    try:
        # By itself first: in parentheses, `true) || (true` would be valid as well.
        declarative.declared_check({**document, "spec": {**spec, "expression": source.expression}}, file=file)
        return declarative.declared_check({**document, "spec": spec}, file=file)
    except declarative.DeclarativeError as error:
        raise InputError(str(error)) from error


def errors_of(expressions: Sequence[HealthExpression]) -> tuple[str, ...]:
    """Returns why expressions cannot be compiled."""
    errors = []
    for each in expressions:
        try:
            compile_expression(each)
        except InputError as error:
            errors.append(error.message)
    return tuple(errors)


def evaluate_expressions(expressions: Sequence[HealthExpression], lists: Lists, now: datetime) -> Health:
    """Returns the problems and what is unknown. An expression that fails, or that lacks its objects, is unknown."""
    problems: list[str] = []
    unknown: list[str] = []
    for source in expressions:
        try:
            check = compile_expression(source)
        except InputError as error:
            unknown.append(error.message)
            continue
        listed = {resource: lists.get(resource, Listed(problem="it was not read")) for resource in check.reads}
        if source.optional and any(each.absent for each in listed.values()):
            continue
        lacking = [f"{resource.name}: {each.problem}" for resource, each in listed.items() if each.problem]
        if lacking:
            unknown.append(f"{source.name}: {'; '.join(lacking)}")
            continue
        looped = {read.name: resource for read, resource in zip(source.reads, check.reads, strict=False)}.get(
            source.for_
        )
        empty = not listed[looped].objects if looped is not None else not any(each.objects for each in listed.values())
        if empty:
            if not source.optional:
                unknown.append(f"{source.name}: it found no objects")
            continue
        objects = [
            {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
            for resource, each in listed.items()
            for obj in each.objects
        ]
        outcome = run_check(check, snapshot_of(check.reads, objects), Context(_ANY, _ANY, now))
        text = "; ".join(finding.message.rstrip(".") for finding in outcome.findings)
        if outcome.result == "Unknown":
            unknown.append(f"{source.name}: {text}")
        elif outcome.result != "Clear":
            problems.append(f"{source.name}: {text}")
    return Health(problems=tuple(problems), unknown=tuple(unknown))
