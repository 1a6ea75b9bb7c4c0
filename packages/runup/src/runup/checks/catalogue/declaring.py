"""Declares the checks of the catalogue: a check's page is its module's docstring, and its example stands beside it.

A docstring's first paragraph says what is wrong; the others begin with `Applies when`, `Why it matters:`, `What to
do:`, `Accepting it` and `Source of the rule:`. `runup.checks.decide.check_page` makes the page from them and from what
the check reads. The oldest checks have pages in `docs/checks` that are written by hand: they are declared with
`by_hand=True`, and have no example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from runup.checks.decide.cluster_kinds import Clusters, clusters_by_reads
from runup.checks.decide.model import Check, CheckFunction, Context, Finding
from runup.checks.decide.wording import could_not_tell_finding, minor_or_major
from runup.report.report import ReportedResource, Severity

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
    run: CheckFunction,
    *,
    name: str,
    component: str,
    reads: tuple[type[Object] | Resource, ...],
    rank: int = LAST_RANK,
    severity: Severity = "warning",
    updates: str = ALL,
    applies_to: Callable[[Context], bool] | None = None,
    unknown_risk: str | None = None,
    clusters: Clusters | None = None,
    by_hand: bool = False,
) -> CatalogueCheck:
    """Returns the check that `run` implements; its module's docstring is its page, and EXAMPLE there its example.

    If it cannot tell, the risk is `<name>Unknown`, or `unknown_risk`. `applies_to` is for updates other than `ALL` and
    `MINOR`; `updates` then describes them in words. `clusters` are the kinds of cluster that the check is for, by
    default those that have all that it reads. `by_hand` means that the pages of the check and of its
    risks are written by hand.
    """
    resources = tuple(kind if isinstance(kind, Resource) else resource_of(kind) for kind in reads)
    module = run.__globals__
    return CatalogueCheck(
        name=name,
        component=component,
        reads=resources,
        run=run,
        applies_to=applies_to or _APPLIES_TO[updates],
        # None means the usual name; an empty string is OWN_NAME.
        unknown_risk=f"{name}Unknown" if unknown_risk is None else unknown_risk,
        severity=severity,
        updates=updates,
        about="" if by_hand else inspect.cleandoc(module["__doc__"] or ""),
        example=module.get("EXAMPLE", ""),
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
        name=name,
        message=message,
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


# The folder of the catalogue or of an area for modules that checks share; they declare no check.
SHARED = "shared"


class BadCatalogue(Exception):
    """Error raised if a module of the catalogue does not have the form of the others; the text says what to do."""


def find_checks(package: str, path: Iterable[str]) -> tuple[CatalogueCheck, ...]:
    """Returns the check of every module in the area folders of `package`, by rank, then by name.

    `path` is the package's `__path__`. Raises BadCatalogue for a module without a check and for a name that is taken.
    """
    declared = {module: _check_of(module) for module in _modules(package, path)}
    # Reports, pages and acceptances refer to checks and risks by name.
    files_by_name: dict[str, str] = {}
    for module, check in declared.items():
        for name in {check.name, check.unknown_risk} - {""}:
            if name in files_by_name:
                raise BadCatalogue(f"{module} and {files_by_name[name]} both declare {name}")
            files_by_name[name] = module
    return tuple(sorted(declared.values(), key=lambda check: (check.rank, check.name)))


def _modules(package: str, path: Iterable[str]) -> Iterator[str]:
    """Yields the names of the modules in the area folders, without the shared ones. Raises BadCatalogue."""
    for area in iter_modules(path):
        if not area.ispkg or area.name == SHARED:
            continue
        name = f"{package}.{area.name}"
        for module in iter_modules(import_module(name).__path__):
            if not module.ispkg:
                yield f"{name}.{module.name}"
            elif module.name != SHARED:
                raise BadCatalogue(f"{name}.{module.name}: an area has no other folder than {SHARED}")


def _check_of(module: str) -> CatalogueCheck:
    """Imports a module and returns its check. Raises BadCatalogue."""
    check = getattr(import_module(module), "CHECK", None)
    if check is None:
        area = module.rpartition(".")[0]
        raise BadCatalogue(f"{module} declares no CHECK; if it is there to help others, move it to {area}.{SHARED}")
    if not isinstance(check, CatalogueCheck):
        raise BadCatalogue(f"{module}: CHECK is a {type(check).__name__}; make it with catalogue.declaring.declared")
    return check
