"""How findings are put into words: lists that stay short, why and since when, which object is meant, how grave it is.

The cause comes before the time: a table that cuts a message must still say what to do something about.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubekit.api.meta_v1 import Condition, Object
from kubekit.api.scheme import resource_of
from kubekit.lang.version import is_minor_or_major
from runup.checks.decide.model import Context
from runup.preflight.decide.report import ReportedResource, Severity

# Names in a message; all of them are in the finding's resources.
NAMED = 5
# Characters of another component's words in a message, so that what comes after them is still read.
LONGEST_CAUSE = 600
# Reasons that are none: what operators say whatever the condition's status, and what the cluster-version operator says
# where the message has the reasons (pkg/risk/upgradeable).
NO_REASONS = frozenset({"", "AsExpected", "MultipleReasons", "RiskNameNotCompatibleWithReasonProperty"})

# How long a state must last to be as grave as it can be. The cluster-version operator's own alerts wait as long before
# they fire: ClusterOperatorDown (critical) 10 minutes, ClusterOperatorDegraded 30 minutes
# (install/0000_90_cluster-version-operator_02_servicemonitor.yaml).
DOWN_PATIENCE = timedelta(minutes=10)
DEGRADED_PATIENCE = timedelta(minutes=30)


def names(items: Sequence[str], limit: int = NAMED) -> str:
    """`a`, `a and b`, `a, b and c`, or `a, b, c and 17 more`."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def count(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def at(time: datetime | None) -> str:
    """`since 2026-01-14T09:30:00Z`, or nothing where the time is not known."""
    return f"since {time:%Y-%m-%dT%H:%M:%SZ}" if time else ""


def dated(time: datetime | None) -> str:
    """` (since 2026-01-14T09:30:00Z)`, or nothing where the time is not known."""
    return f" ({at(time)})" if time else ""


def cause(condition: Condition) -> str:
    """`Reason: message` of a condition that is not as it should be, as far as it says why; no full stop at its end."""
    reason = "" if condition.reason in NO_REASONS else condition.reason
    text = ": ".join(part for part in (reason, " ".join(condition.message.split())) if part).rstrip(".")
    return text if len(text) <= LONGEST_CAUSE else text[: LONGEST_CAUSE - 4] + " ..."


def said(condition: Condition) -> str:
    """`: Reason: message (since ...).` of a condition, as far as it has them."""
    why = cause(condition)
    return f"{': ' if why else ''}{why}{dated(condition.last_transition_time)}."


def graver(since: datetime | None, now: datetime, patience: timedelta, before: Severity, after: Severity) -> Severity:
    """`after` once the state has lasted for `patience`, or if nobody knows since when it lasts; else `before`."""
    return after if since is None or now - since >= patience else before


def resource(obj: Object) -> ReportedResource:
    """The object that a finding is about."""
    kind = resource_of(type(obj))
    return ReportedResource(group=kind.group, kind=kind.kind, namespace=obj.metadata.namespace, name=obj.metadata.name)


def minor_or_major(context: Context) -> bool:
    """Whether the update leaves the minor version: what only concerns such updates is not asked for a patch."""
    return is_minor_or_major(context.source, context.target)
