"""Phrases what findings say: short lists, causes and times, references to objects, severities.

The cause comes before the time, so that a message which a table cuts still names the cause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from kubekit.api.meta_v1 import Condition, Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.text import shorten
from kubekit.lang.version import is_minor_or_major
from runup.checks.decide.model import Applies, Context, Finding
from runup.report.report import ReportedResource, Severity

# How many names a message lists at most; all of them are in the finding's resources.
MAX_NAMED = 5
# How many characters of another component's message are quoted, so that what follows is still read.
LONGEST_CAUSE = 600
# Reasons that explain nothing: operators set them whatever the condition's status, and the cluster-version operator
# sets them where the message has the reasons (pkg/risk/upgradeable).
NO_REASONS = frozenset({"", "AsExpected", "MultipleReasons", "RiskNameNotCompatibleWithReasonProperty"})

# How long a state must last for its highest severity. The cluster-version operator's own alerts wait as long before
# they fire: ClusterOperatorDown (critical) 10 minutes, ClusterOperatorDegraded 30 minutes
# (install/0000_90_cluster-version-operator_02_servicemonitor.yaml).
DOWN_PATIENCE = timedelta(minutes=10)
DEGRADED_PATIENCE = timedelta(minutes=30)


def names(items: Sequence[str], limit: int = MAX_NAMED) -> str:
    """Returns the items in words: `a`, `a and b`, `a, b and c`, or `a, b, c and 17 more`."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def count(number: int, noun: str) -> str:
    """Returns the number with its noun: `1 node`, `2 nodes`, `2 NetworkPolicies`, `2 StorageClasses`."""
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}es" if noun.endswith(("s", "ch", "x")) else f"{number} {noun}s"


def since_text(time: datetime | None) -> str:
    """Returns `since 2026-01-14T09:30:00Z`, or an empty string if the time is not known."""
    return f"since {time:%Y-%m-%dT%H:%M:%SZ}" if time else ""


def since_suffix(time: datetime | None) -> str:
    """Returns ` (since 2026-01-14T09:30:00Z)`, or an empty string if the time is not known."""
    return f" ({since_text(time)})" if time else ""


def cause(condition: Condition) -> str:
    """Returns `Reason: message` of an unhealthy condition, as far as it has them, without a full stop at the end."""
    reason = "" if condition.reason in NO_REASONS else condition.reason
    # A message may have several lines, a finding has one.
    message = without_structs(" ".join(condition.message.split()))
    text = ": ".join(part for part in (reason, message) if part).rstrip(".")
    return shorten(text, LONGEST_CAUSE, mark=" ...", at_word=True)


def without_structs(text: str) -> str:
    """Returns the text with each printed Go value (`{Name:etcd-0 ID:12 ...}`, also in a list) as `[...]`.

    Operators print them with `%+v`. Cut in the middle they say nothing, and what comes after them would be lost.
    """
    pieces, place = [], 0
    for start in _STRUCT.finditer(text):
        if start.start() < place:
            continue
        pieces.append(text[place : start.start()])
        place = _end_of_bracket(text, start.start())
        pieces.append("[...]")
    return "".join((*pieces, text[place:]))


# The beginning of a printed Go struct, of a pointer to one, or of a list of them; JSON has quotes there.
_STRUCT = re.compile(r"\[?&?\{[A-Za-z]\w*:")


def _end_of_bracket(text: str, start: int) -> int:
    """Returns the index after the bracket that closes the one at `start`.

    Returns the text's length if the text was cut off before that bracket.
    """
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "[{") - (text[place] in "]}")
        if not depth and text[place] in "]}":
            return place + 1
    return len(text)


def condition_text(condition: Condition) -> str:
    """Returns `: Reason: message (since ...).` of a condition, as far as it has them."""
    why = cause(condition)
    return f"{': ' if why else ''}{why}{since_suffix(condition.last_transition_time)}."


def severity_after(
    since: datetime | None, now: datetime, patience: timedelta, before: Severity, after: Severity
) -> Severity:
    """Returns `after` if the state has lasted for `patience` or its beginning is not known, else `before`."""
    return after if since is None or now - since >= patience else before


def refer(obj: Object, kind: Resource | None = None) -> ReportedResource:
    """Returns the reference to an object that a finding is about; `kind` is its kind if its type does not say it."""
    kind, metadata = kind or resource_of(type(obj)), obj.metadata
    return ReportedResource(group=kind.group, kind=kind.kind, namespace=metadata.namespace, name=metadata.name)


def could_not_tell_finding(name: str, why: str, fix: str, resources: tuple[ReportedResource, ...] = ()) -> Finding:
    """Returns the Unknown finding under the risk that stands for what check `name` cannot tell."""
    return Finding(
        name=f"{name}Unknown",
        message=f"Whether {name} applies could not be told: {why.rstrip('.')}.",
        applies=Applies.UNKNOWN,
        reason=f"{name}Unknown",
        resources=resources,
        remediation=fix,
    )


def minor_or_major(context: Context) -> bool:
    """Returns whether the update leaves the minor version: checks of such updates alone are skipped for a patch."""
    return is_minor_or_major(context.source, context.target)
