"""How a check of the catalogue is put together: its page is its module's docstring, its example stands beside it.

A docstring's first paragraph says what is wrong; the others begin with `Applies when`, `Why it matters`, `What to do`,
`Accepting it` and `Source of the rule`. Out of them and of what the check reads `domain.checks.pages` makes the page.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from runup.checks.decide.model import Applies, Check, CheckFunction, Finding
from runup.checks.decide.wording import minor_or_major
from runup.preflight.decide.report import ReportedResource, Severity

ALL, MINOR = "all", "minor and major updates"


def declared(
    about: str | None,
    name: str,
    component: str,
    reads: tuple[type[Object] | Resource, ...],
    run: CheckFunction,
    *,
    example: str,
    severity: Severity = "warning",
    updates: str = ALL,
) -> Check:
    """The check whose page is `about`; what it cannot tell is the risk `<name>Unknown`."""
    return Check(
        name,
        component,
        tuple(read if isinstance(read, Resource) else resource_of(read) for read in reads),
        run,
        minor_or_major if updates == MINOR else lambda _context: True,
        unknown_risk=f"{name}Unknown",
        severity=severity,
        updates=updates,
        about=inspect.cleandoc(about or ""),
        example=example,
    )


def risk(
    name: str,
    message: str,
    objects: Iterable[Object] = (),
    *,
    fix: str,
    severity: Severity = "warning",
    kind: Resource | None = None,
) -> Finding:
    """A finding about `objects`; `kind` says of what kind they are where their type does not."""
    return Finding(
        name,
        message,
        reason=name.partition("-")[0],
        severity=severity,
        resources=tuple(refer(obj, kind) for obj in objects),
        remediation=fix,
    )


def unsure(name: str, why: str, objects: Iterable[Object] = (), *, fix: str, kind: Resource | None = None) -> Finding:
    """What could not be told of `objects`, as the risk that stands for what the check `name` cannot tell."""
    return Finding(
        f"{name}Unknown",
        f"Whether {name} applies could not be told: {why.rstrip('.')}.",
        Applies.UNKNOWN,
        reason=f"{name}Unknown",
        resources=tuple(refer(obj, kind) for obj in objects),
        remediation=fix,
    )


def refer(obj: Object, kind: Resource | None = None) -> ReportedResource:
    """The object that a finding is about."""
    resource = kind or resource_of(type(obj))
    metadata = obj.metadata
    return ReportedResource(group=resource.group, kind=resource.kind, namespace=metadata.namespace, name=metadata.name)


def named(obj: Object) -> str:
    """`namespace/name`, or the name alone."""
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
