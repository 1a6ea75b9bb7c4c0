"""ClusterVersion's status made to fit its schema: the one place that cuts, and counts what it left out.

A status that the API server refuses is a status that says nothing, now and after every restart. So nothing here relies
on inputs being small: reports, the update service, operators and spec are other people's.

Two steps, since an administrator accepts what is shown: `candidates` makes names, releases and the number of risks fit
before anything is decided on them, `status` cuts texts when all is decided. Both change nothing that fits already.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition
from kubekit.lang.cut import cut, stored_bytes
from kubekit.lang.formats import is_uri
from kubekit.lang.printable import is_hazardous, printable
from runup.advice.decide import origin
from runup.advice.decide.candidates import ALWAYS, MAX_RISKS_AN_UPDATE, Candidate, JudgedRisk, add_risks
from runup.api.config_v1 import (
    ClusterVersionStatus,
    ConditionalUpdate,
    ConditionalUpdateRisk,
    MatchingRule,
    Release,
    UpdateHistory,
)
from runup.preflight.decide import results
from runup.preflight.decide.report import MAX_NAME
from runup.release.decide import documentation

# The schema's own limits; a test reads them out of the definition that our releases carry.
MAX_RISKS = 500
MAX_UPDATES = 500
MAX_MESSAGE = 32768
MAX_REASON = 1024
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
# An object has to fit into one request to etcd, 1.5 MiB: lists, history, conditions, and what the server keeps of who
# owns which field, which is some 600 bytes a risk.
MAX_LISTS = 512 * 1024
MAX_HISTORY = 128 * 1024
MAX_CONDITION = 16 * 1024
MAX_TAKEN = 8 * 1024
# Bytes of a text in the update lists: the first that makes them fit.
TEXTS = (MAX_MESSAGE, 8192, 2048, 512, 256)
# Risks an update, where there are too many in all.
_RISKS = (MAX_RISKS_AN_UPDATE, 100, 50, 20, 10, 5, 2)
_MAX_URL = 4096
_MAX_QUERY = 2048
_MAX_RULES = 4
_MAX_CHANNELS = 200
_NAMES_SHOWN = 10
_OVERHEAD = 600
_IMAGE = re.compile(r"[!-~]{1,1024}")
_WORST = {"True": 0, "Unknown": 1, "False": 2}
# What stands for the preflight itself is shown before what it found.
_FIRST = (origin.IN_PROGRESS, origin.INCOMPLETE, origin.NOT_OFFERED)


def candidates(found: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """`found` (newest first) as ClusterVersion can carry them.

    What nobody could update to (no image, an image that is no pull spec) is left out. An update with too many risks
    keeps the gravest and one that stands for the others; where all updates together are too many, the oldest that no
    preflight has checked are left out.
    """
    kept = [_named(candidate) for candidate in found if _usable(candidate.release)]
    for limit in _RISKS:
        fitting = [_limited(candidate, limit) for candidate in kept]
        if _fit(fitting):
            return tuple(fitting)
    while not _fit(fitting):
        fitting = _without_oldest(fitting)
    return tuple(fitting)


def release(found: Release) -> Release:
    """`found` as the API takes it: one known architecture, every channel once, a link that can be read."""
    readable = not is_hazardous(found.url) and stored_bytes(found.url) <= _MAX_URL
    channels = dict.fromkeys(cut(printable(channel), MAX_NAME) for channel in found.channels)
    return replace(
        found,
        url=found.url if readable else "",
        architecture=found.architecture if found.architecture == "Multi" else "",
        channels=tuple(channels)[:_MAX_CHANNELS],
    )


def status(found: ClusterVersionStatus) -> ClusterVersionStatus:
    """`found` with every text printable, and as long as there is room for."""
    said = {condition.type: _condition(condition) for condition in reversed(found.conditions)}
    fitting = replace(
        found,
        desired=release(found.desired),
        conditions=tuple(said[type_] for type_ in dict.fromkeys(c.type for c in found.conditions)),
        history=_history(found.history),
    )
    for limit in TEXTS:
        lists = _lists(fitting, limit)
        if _stored((lists.conditional_updates, lists.conditional_update_risks)) <= MAX_LISTS:
            break
    return lists


def left_out(condition: Condition | None, number: int) -> Condition | None:
    """RetrievedUpdates, which also says how many updates are not listed."""
    if condition is None or not number:
        return condition
    text = f"{number} {'update is' if number == 1 else 'updates are'} not listed: the status has no room for more."
    return replace(condition, message=f"{condition.message} {text}".strip())


def _usable(found: Release) -> bool:
    return bool(_IMAGE.fullmatch(found.image)) and bool(found.version) and len(found.version) <= MAX_NAME


def _named(candidate: Candidate) -> Candidate:
    """With names, links and rules that the API takes; names that become the same are one risk."""
    risks = [_judged(risk) for risk in candidate.risks]
    told = replace(candidate, release=release(candidate.release), risks=tuple(risks))
    unique = len({risk.name for risk in risks}) == len(risks)
    return told if unique else add_risks(replace(told, risks=()), risks)


def _judged(found: JudgedRisk) -> JudgedRisk:
    risk = found.risk
    name = _name(risk.name)
    link = is_uri(risk.url) and not is_hazardous(risk.url) and stored_bytes(risk.url) <= _MAX_URL
    fitting = replace(
        risk,
        name=name,
        message=printable(risk.message) if risk.message.strip() else f"Nothing is said about risk {name}.",
        # A name that anybody chose is no part of an address yet.
        url=risk.url if link else documentation.page(quote(name)),
        matching_rules=_rules(risk.matching_rules),
    )
    return replace(found, risk=fitting, applies=_condition(found.applies, MAX_MESSAGE))


def _name(name: str) -> str:
    """`name`, or as much of it as fits with what keeps it apart from another that begins alike."""
    shown = printable(name).replace("\n", "\\n") or "UnnamedRisk"
    if len(shown) <= MAX_NAME:
        return shown
    return f"{shown[:200]}...{hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def _rules(rules: Sequence[MatchingRule]) -> tuple[MatchingRule, ...]:
    """A query that is too long to be kept would be another one when cut: the risk applies always then."""
    if not rules or any(rule.promql and stored_bytes(rule.promql.promql) > _MAX_QUERY for rule in rules):
        return ALWAYS
    return tuple(_rule(rule) for rule in rules[:_MAX_RULES])


def _rule(rule: MatchingRule) -> MatchingRule:
    if rule.promql is None:
        return rule
    # In a query an escape within quotes means what the character did, and line ends are all alike.
    query = printable(rule.promql.promql.replace("\r\n", "\n").replace("\r", "\n"))
    return replace(rule, promql=replace(rule.promql, promql=query))


def _limited(candidate: Candidate, limit: int) -> Candidate:
    if len(candidate.risks) <= limit:
        return candidate
    ordered = sorted(candidate.risks, key=_weight)
    kept, others = ordered[: limit - 1], ordered[limit - 1 :]
    rest = _standing_for(candidate, others)
    return replace(candidate, risks=tuple(sorted([*kept, rest], key=lambda risk: risk.name)))


def _weight(risk: JudgedRisk) -> tuple[bool, bool, bool, int, str]:
    first, worst = risk.name not in _FIRST, _WORST[risk.applies.status]
    return risk.name in results.OMISSIONS, first, not risk.holds_up, worst, risk.name


def _standing_for(candidate: Candidate, others: Sequence[JudgedRisk]) -> JudgedRisk:
    """The one risk that counts what an update cannot carry, those included that its report had no room for."""
    earlier = [risk for risk in others if risk.name in results.OMISSIONS]
    named = [risk for risk in others if risk not in earlier]
    count = len(named) + sum(risk.stands_for for risk in earlier)
    more = "more than " if any(not risk.stands_for for risk in earlier) else ""
    names = ", ".join(risk.name for risk in named[:_NAMES_SHOWN])
    names += f" and {count - len(named[:_NAMES_SHOWN])} more" if count > _NAMES_SHOWN else ""
    worst = min((risk.applies.status for risk in others), key=lambda found: _WORST[found])
    from_preflight = any(risk.from_preflight for risk in candidate.risks)
    text = f"{more}{count} more risks were found than an update can carry: {names}."
    omitted = results.omitted(candidate.release.version, text, worst, from_preflight=from_preflight)
    # Where all of them only inform, so does what stands for them (decision 24).
    holds_up = any(risk.holds_up for risk in others)
    return replace(omitted, stands_for=0 if more else count, holds_up=holds_up)


def _fit(found: Sequence[Candidate]) -> bool:
    """What fits in bytes fits in number, too: an update with its risk takes 3 KiB, each further risk 2 KiB."""
    return sum(map(_bytes, found)) <= MAX_LISTS


def _bytes(candidate: Candidate) -> int:
    """What a candidate takes at most once its texts are as short as they get; its risks stand in two lists."""
    told = _stored(candidate.release) + _OVERHEAD + TEXTS[-1] * bool(candidate.risks)
    return told + 2 * sum(_risk_bytes(risk.risk) for risk in candidate.risks)


def _risk_bytes(risk: ConditionalUpdateRisk) -> int:
    texts = [risk.name, risk.url, *(rule.promql.promql for rule in risk.matching_rules if rule.promql)]
    return sum(map(stored_bytes, texts)) + 2 * TEXTS[-1] + _OVERHEAD


def _without_oldest(found: Sequence[Candidate]) -> list[Candidate]:
    """A tenth less, of those that no preflight has checked."""
    idle = [i for i, candidate in enumerate(found) if not any(risk.from_preflight for risk in candidate.risks)]
    number = max(len(idle) // 10, 1)
    going = set(idle[-number:] if idle else range(len(found) - 1, len(found)))
    return [candidate for i, candidate in enumerate(found) if i not in going]


def _lists(found: ClusterVersionStatus, limit: int) -> ClusterVersionStatus:
    updates = tuple(_update(update, limit) for update in found.conditional_updates)
    risks = tuple(_risk(risk, limit) for risk in found.conditional_update_risks)
    return replace(found, conditional_updates=updates, conditional_update_risks=risks)


def _update(update: ConditionalUpdate, limit: int) -> ConditionalUpdate:
    risks = tuple(_risk(risk, limit) for risk in update.risks)
    return replace(update, risks=risks, conditions=_verdicts(update.conditions, limit))


def _risk(risk: ConditionalUpdateRisk, limit: int) -> ConditionalUpdateRisk:
    message = cut(printable(risk.message), limit)
    return replace(risk, message=message, conditions=_verdicts(risk.conditions, limit))


def _verdicts(conditions: Sequence[Condition], limit: int) -> tuple[Condition, ...]:
    """As `metav1.Condition` has them, whose reason is a word."""
    return tuple(_verdict(_condition(condition, limit)) for condition in conditions)


def _verdict(condition: Condition) -> Condition:
    fits = len(condition.reason) <= MAX_REASON and REASON.fullmatch(condition.reason)
    return condition if fits else replace(condition, reason="ReasonNotReadable")


def _condition(condition: Condition, limit: int = MAX_CONDITION) -> Condition:
    reason, message = printable(condition.reason), cut(printable(condition.message), limit)
    if (reason, message) == (condition.reason, condition.message) and len(reason) <= MAX_REASON:
        return condition
    return replace(condition, reason=cut(reason, MAX_REASON), message=message)


def _history(entries: Sequence[UpdateHistory]) -> tuple[UpdateHistory, ...]:
    """With what was said of taken risks cut, that of the oldest most: there are a hundred entries."""
    fitting = [_taken(entry, MAX_TAKEN) for entry in entries]
    for index in reversed(range(1, len(fitting))):
        if _stored(fitting) <= MAX_HISTORY:
            break
        fitting[index] = _taken(fitting[index], TEXTS[-1])
    return tuple(fitting)


def _taken(entry: UpdateHistory, limit: int) -> UpdateHistory:
    text = cut(printable(entry.accepted_risks), limit)
    return entry if text == entry.accepted_risks else replace(entry, accepted_risks=text)


def _stored(obj: Any) -> int:
    """Bytes of `obj` as the API server stores it: Go writes `<`, `>` and `&` as six."""
    data = codec.encode(obj)
    return len(data) + 5 * sum(data.count(char) for char in (b"<", b">", b"&"))
