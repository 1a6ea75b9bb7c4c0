"""Exports the names for writing a check of the catalogue, from here and from the modules of `decide`.

Most checks need one import. A check that needs more names than a line has room for imports some from where they are
defined.

A check's page is its module's docstring, and the module has its example. A docstring's first paragraph says what is
wrong; the others begin with `Applies when`, `Why it matters:`, `Remedy:`, `Accepting it` and `Source of the rule:`.
`runup.checks.decide.check_page` makes the page from them and from what the check reads. The oldest checks have pages in
`docs/reference/checks` that are written by hand: they are declared with `by_hand=True`, and have no example.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from kubekit.api.meta_v1 import Condition, Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.text import count, shorten
from runup.checks.decide.cluster_kinds import BOTH, KUBERNETES, OPENSHIFT, Clusters, clusters_by_reads
from runup.checks.decide.model import DEFINITIONS, Applies, Check, CheckFunction, Context, Finding, Snapshot, Unreadable
from runup.checks.decide.reads import Slim, slim_metadata
from runup.checks.decide.wording import could_not_tell_finding, minor_or_major, names, refer
from runup.report.report import Severity

__all__ = [
    "DEFINITIONS",
    "DEGRADED_PATIENCE",
    "DOWN_PATIENCE",
    "LONGEST_CAUSE",
    "MINOR",
    "NO_REASONS",
    "OWN_NAME",
    "Applies",
    "Context",
    "Finding",
    "Findings",
    "Resource",
    "Slim",
    "Snapshot",
    "Unreadable",
    "cause",
    "condition_text",
    "count",
    "declared",
    "full_name",
    "minor_or_major",
    "names",
    "names_of",
    "refer",
    "resource_of",
    "risk",
    "severity_after",
    "since_suffix",
    "since_text",
    "slim_metadata",
    "unknown",
    "yield_from_all",
]

T = TypeVar("T")
Findings = Iterator[Finding]
_CLUSTERS: dict[str | None, Clusters] = {"both": BOTH, "Kubernetes": KUBERNETES, "OpenShift": OPENSHIFT}
ALL, MINOR = "all", "minor and major updates"
_APPLIES_TO: dict[str, Callable[[Context], bool]] = {ALL: lambda _context: True, MINOR: minor_or_major}
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
    name: str,
    component: str,
    *,
    reads: tuple[type[Object] | Resource, ...],
    rank: int = LAST_RANK,
    severity: Severity = "warning",
    updates: str = ALL,
    applies_to: Callable[[Context], bool] | None = None,
    unknown_risk: str | None = None,
    clusters: Literal["both", "Kubernetes", "OpenShift"] | None = None,
    by_hand: bool = False,
    query: str = "",
) -> CatalogueCheck:
    """Returns the check that `run` implements; its module's docstring is its page, and EXAMPLE there its example.

    If it cannot tell, the risk is `<name>Unknown`, or `unknown_risk`. `applies_to` is for updates other than `ALL` and
    `MINOR`; `updates` then describes them in words. `clusters` are the kinds of cluster that the check is for, by
    default those that have all that it reads. `by_hand` means that the pages of the check and of its
    risks are written by hand. `query` is a PromQL query whose answer `run` needs.
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
        clusters=_CLUSTERS.get(clusters) or clusters_by_reads(resources),
        rank=rank,
        query=query,
    )


def risk(
    name: str,
    message: str,
    objects: Iterable[Object] = (),
    *,
    fix: str,
    severity: Severity = "warning",
    kind: Resource | None = None,
    reason: str | None = None,
    applies: Applies = Applies.YES,
) -> Finding:
    """Returns a finding about `objects`; `kind` is their kind if their type does not say it.

    Its reason is by default the name of the risk, without what follows a hyphen.
    """
    return Finding(
        name=name,
        message=message,
        applies=applies,
        reason=name.partition("-")[0] if reason is None else reason,
        severity=severity,
        resources=tuple(refer(obj, kind) for obj in objects),
        remediation=fix,
    )


def unknown(name: str, why: str, objects: Iterable[Object] = (), *, fix: str, kind: Resource | None = None) -> Finding:
    """Returns an Unknown finding about `objects`, under the risk that represents what check `name` cannot tell."""
    return could_not_tell_finding(name, why, fix, tuple(refer(obj, kind) for obj in objects))


def full_name(obj: Object) -> str:
    """Returns `namespace/name`, or the name alone if the object has no namespace."""
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def names_of(objects: Sequence[Object]) -> str:
    """Returns the names of the objects in words, with their namespaces: `a/b, c/d and 17 more`."""
    return names([full_name(obj) for obj in objects])


def since_text(time: datetime | None) -> str:
    """Returns `since 2026-01-14T09:30:00Z`, or an empty string if the time is not known."""
    return f"since {time:%Y-%m-%dT%H:%M:%SZ}" if time else ""


def since_suffix(time: datetime | None) -> str:
    """Returns ` (since 2026-01-14T09:30:00Z)`, or an empty string if the time is not known."""
    return f" ({since_text(time)})" if time else ""


def cause(condition: Condition) -> str:
    """Returns `Reason: message` of an unhealthy condition, as far as it has them, without a full stop at the end.

    The cause comes before the time, so that a message which a table cuts still names the cause.
    """
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


def yield_from_all(*parts: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Yields the findings of all parts. One that raises Unreadable does not stop the others; it is raised at the end.

    What is known about one kind can show a risk where another kind could not be read.
    """
    lacking: Unreadable | None = None
    for part in parts:
        try:
            yield from part()
        except Unreadable as error:
            lacking = lacking or error
    if lacking is not None:
        raise lacking
