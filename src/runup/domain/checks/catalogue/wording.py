"""How findings are put into words: lists that stay short, when something began, which object is meant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from runup.api.meta_v1 import Condition, Object
from runup.api.scheme import resource_of
from runup.domain.checks.model import Context
from runup.domain.preflight.report import ReportedResource
from runup.domain.version import is_minor_or_major

# Names in a message; all of them are in the finding's resources.
NAMED = 5


def names(items: Sequence[str], limit: int = NAMED) -> str:
    """`a`, `a and b`, `a, b and c`, or `a, b, c and 17 more`."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def count(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def at(time: datetime | None) -> str:
    """` since 2026-01-14T09:30:00Z`, or nothing where the time is not known."""
    return f" since {time:%Y-%m-%dT%H:%M:%SZ}" if time else ""


def since(condition: Condition) -> str:
    """When the condition came to its status, as `at` writes it."""
    return at(condition.last_transition_time)


def because(condition: Condition) -> str:
    """`: Reason: message.` of a condition, as far as it has them, else a full stop."""
    text = ": ".join(part for part in (condition.reason, " ".join(condition.message.split())) if part)
    return f": {text.rstrip('.')}." if text else "."


def resource(obj: Object) -> ReportedResource:
    """The object that a finding is about."""
    kind = resource_of(type(obj))
    return ReportedResource(group=kind.group, kind=kind.kind, namespace=obj.metadata.namespace, name=obj.metadata.name)


def minor_or_major(context: Context) -> bool:
    """Whether the update leaves the minor version: what only concerns such updates is not asked for a patch."""
    return is_minor_or_major(context.source, context.target)
