"""Phrases what findings say: short lists, references to objects, and what a check could not tell."""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.version import is_minor_or_major
from runup.checks.decide.model import Applies, Context, Finding
from runup.report.report import ReportedResource

# How many names a message lists at most; all of them are in the finding's resources.
MAX_NAMED = 5


def names(items: Sequence[str], limit: int = MAX_NAMED) -> str:
    """Returns the items in words: `a`, `a and b`, `a, b and c`, or `a, b, c and 17 more`."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def refer(obj: Object, kind: Resource | None = None) -> ReportedResource:
    """Returns the reference to an object that a finding is about; `kind` is its kind if its type does not say it."""
    kind, metadata = kind or resource_of(type(obj)), obj.metadata
    return ReportedResource(group=kind.group, kind=kind.kind, namespace=metadata.namespace, name=metadata.name)


def could_not_tell_finding(name: str, why: str, fix: str, resources: tuple[ReportedResource, ...] = ()) -> Finding:
    """Returns the Unknown finding under the risk that represents what check `name` cannot tell."""
    return Finding(
        name=f"{name}Unknown",
        message=f"Whether {name} applies is unknown: {why.rstrip('.')}.",
        applies=Applies.UNKNOWN,
        reason=f"{name}Unknown",
        resources=resources,
        remediation=fix,
    )


def minor_or_major(context: Context) -> bool:
    """Returns whether the update changes the minor version; checks for such updates are skipped for a patch."""
    return is_minor_or_major(context.source, context.target)
