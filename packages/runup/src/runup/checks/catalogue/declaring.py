"""Declares the checks of the catalogue: a check's page is its module's docstring, and its example stands beside it.

A docstring's first paragraph says what is wrong; the others begin with `Applies when`, `Why it matters:`, `What to
do:`, `Accepting it` and `Source of the rule:`. `runup.checks.decide.check_page` makes the page from them and from what
the check reads. The oldest checks have pages in `docs/checks` that are written by hand: they are declared with
`BY_HAND` instead of the docstring, and have no example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from runup.checks.decide.cluster_kinds import Clusters, clusters_by_reads
from runup.checks.decide.model import Check, CheckFunction, Context, Finding
from runup.checks.decide.wording import could_not_tell_finding, minor_or_major
from runup.report.report import ReportedResource, Severity

# Passed instead of a docstring: the check's page, and those of its risks, are written by hand.
BY_HAND = ""
ALL, MINOR = "all", "minor and major updates"
_APPLIES_TO: dict[str, Callable[[Context], bool]] = {ALL: lambda _context: True, MINOR: minor_or_major}
# Passed as `unknown_risk`: what the check cannot tell is reported under the check's own name.
OWN_NAME = ""
# The rank of a check without one, behind all others.
LAST_RANK = 100_000


class CatalogueCheck(Check, frozen=True):
    """A check of the catalogue, made by `declared`.

    `rank` is its place in lists and reports: lower first, equal ones by name.
    """

    rank: int = LAST_RANK


def declared(
    about: str | None,
    name: str,
    component: str,
    reads: tuple[type[Object] | Resource, ...],
    run: CheckFunction,
    *,
    rank: int = LAST_RANK,
    severity: Severity = "warning",
    updates: str = ALL,
    applies_to: Callable[[Context], bool] | None = None,
    unknown_risk: str | None = None,
    example: str = "",
    clusters: Clusters | None = None,
) -> CatalogueCheck:
    """Returns the check whose page is `about`; what it cannot tell is the risk `<name>Unknown`, or `unknown_risk`.

    `applies_to` is for updates other than `ALL` and `MINOR`; `updates` then describes them in words. `clusters` are the
    kinds of cluster that the check is for, by default those that have all that it reads.
    """
    resources = tuple(kind if isinstance(kind, Resource) else resource_of(kind) for kind in reads)
    return CatalogueCheck(
        name,
        component,
        resources,
        run,
        applies_to or _APPLIES_TO[updates],
        # None means the usual name; an empty string is OWN_NAME.
        unknown_risk=f"{name}Unknown" if unknown_risk is None else unknown_risk,
        severity=severity,
        updates=updates,
        about=inspect.cleandoc(about or ""),
        example=example,
        clusters=clusters_by_reads(resources) if clusters is None else clusters,
        rank=rank,
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
    """Returns a finding about `objects`; `kind` is their kind if their type does not say it."""
    return Finding(
        name,
        message,
        reason=name.partition("-")[0],
        severity=severity,
        resources=tuple(refer(obj, kind) for obj in objects),
        remediation=fix,
    )


def unknown_finding(
    name: str, why: str, objects: Iterable[Object] = (), *, fix: str, kind: Resource | None = None
) -> Finding:
    """Returns an Unknown finding about `objects`, under the risk that stands for what check `name` cannot tell."""
    return could_not_tell_finding(name, why, fix, tuple(refer(obj, kind) for obj in objects))


def refer(obj: Object, kind: Resource | None = None) -> ReportedResource:
    """Returns the reference to an object that a finding is about."""
    resource = kind or resource_of(type(obj))
    metadata = obj.metadata
    return ReportedResource(group=resource.group, kind=resource.kind, namespace=metadata.namespace, name=metadata.name)


def namespaced_name(obj: Object) -> str:
    """Returns `namespace/name`, or the name alone if the object has no namespace."""
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
