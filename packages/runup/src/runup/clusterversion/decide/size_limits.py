"""Makes ClusterVersion's status fit its schema: truncates, and counts what it leaves out.

If the API server rejects a status, nothing is reported, now and after every restart. So no input is assumed to be
small: reports, the update service, operators and the spec are outside our control.

There are two steps, since an administrator accepts what is shown: `candidates` makes names, releases and the number of
risks fit before anything is decided on them; `status` truncates texts after all decisions. Both leave unchanged what
fits already.
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
from kubekit.lang.formats import is_uri
from kubekit.lang.text import cut, is_hazardous, printable, stored_bytes
from runup.advice.decide import preflight_reasons
from runup.advice.decide.candidates import ALWAYS, MAX_RISKS_AN_UPDATE, Candidate, EvaluatedRisk, add_risks
from runup.api import config_v1
from runup.preflight.decide import published_risks
from runup.report import documentation, report

# Limits of the CRD's schema; a test compares them with the definition that our releases carry.
MAX_RISKS = 500
MAX_UPDATES = 500
MAX_MESSAGE = 32768
MAX_REASON = 1024
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
# An object has to fit into one request to etcd, 1.5 MiB: lists, history, conditions, and `managedFields`, which take
# some 600 bytes a risk.
MAX_LISTS = 512 * 1024
MAX_HISTORY = 128 * 1024
MAX_CONDITION = 16 * 1024
# In bytes, of `acceptedRisks` in one entry of the history.
MAX_ACCEPTED_RISKS = 8 * 1024
# Limits, in bytes, of a text in the update lists: the first that makes the lists fit is used.
TEXT_LIMITS = (MAX_MESSAGE, 8192, 2048, 512, 256)
# Limits of risks an update, tried in this order while there are too many risks in all.
_RISK_LIMITS = (MAX_RISKS_AN_UPDATE, 100, 50, 20, 10, 5, 2)
_MAX_URL = 4096
_MAX_QUERY = 2048
_MAX_RULES = 4
_MAX_CHANNELS = 200
_NAMES_SHOWN = 10
_OVERHEAD_BYTES = 600
_IMAGE = re.compile(r"[!-~]{1,1024}")
_ORDER_OF_VERDICTS = {"True": 0, "Unknown": 1, "False": 2}
# Risks that represent the preflight itself are listed before its findings.
_KEPT_FIRST = (preflight_reasons.IN_PROGRESS, preflight_reasons.INCOMPLETE, preflight_reasons.NOT_OFFERED)


def candidates(candidates_given: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Returns the candidates in `candidates_given` (newest first) that ClusterVersion can carry.

    Releases that cannot be updated to (no image, an image that is not a pull spec) are left out. An update with too
    many risks keeps the gravest and one that represents the others. If all updates together are too many, the oldest
    that no preflight has checked are left out.
    """
    usable = []
    for candidate in candidates_given:
        if not _IMAGE.fullmatch(candidate.release.image) or not 0 < len(candidate.release.version) <= report.MAX_NAME:
            continue
        risks = [_valid_risk(risk) for risk in candidate.risks]
        renamed = replace(candidate, release=release(candidate.release), risks=tuple(risks))
        # Risks of equal names are merged.
        unique = len({risk.name for risk in risks}) == len(risks)
        usable.append(renamed if unique else add_risks(replace(renamed, risks=()), risks))
    # Fewer risks an update first: leaving out whole updates is the last resort.
    for limit in _RISK_LIMITS:
        fitting = [_limit_risks(candidate, limit) for candidate in usable]
        if _fits_in_bytes(fitting):
            return tuple(fitting)
    # Each turn drops at least one update, so that this ends.
    while not _fits_in_bytes(fitting):
        unchecked = [
            i for i, candidate in enumerate(fitting) if not any(risk.from_preflight for risk in candidate.risks)
        ]
        number = max(len(unchecked) // 10, 1)
        dropped = set(unchecked[-number:] if unchecked else range(len(fitting) - 1, len(fitting)))
        fitting = [candidate for i, candidate in enumerate(fitting) if i not in dropped]
    return tuple(fitting)


def past_risks(past: Iterable[EvaluatedRisk], others: Sequence[Candidate]) -> tuple[EvaluatedRisk, ...]:
    """Returns the first risk of each name of `past` for which the candidates `others` leave room."""
    names = {risk.name for candidate in others for risk in candidate.risks}
    kept: dict[str, EvaluatedRisk] = {}
    room_bytes = MAX_LISTS - sum(map(candidate_bytes, others))
    for risk in map(_valid_risk, past):
        room_bytes -= 0 if risk.name in kept else _risk_bytes(risk.risk)
        if room_bytes < 0 or len(names | kept.keys()) >= MAX_RISKS:
            break
        kept.setdefault(risk.name, risk)
    return tuple(kept.values())


def release(release_given: config_v1.Release) -> config_v1.Release:
    """Returns `release_given` as the API accepts it: a known architecture, no duplicate channels, a safe URL."""
    readable = not is_hazardous(release_given.url) and stored_bytes(release_given.url) <= _MAX_URL
    channels = dict.fromkeys(cut(printable(channel), report.MAX_NAME) for channel in release_given.channels)
    return replace(
        release_given,
        url=release_given.url if readable else "",
        architecture=release_given.architecture if release_given.architecture == "Multi" else "",
        channels=tuple(channels)[:_MAX_CHANNELS],
    )


def status(status_given: config_v1.ClusterVersionStatus) -> config_v1.ClusterVersionStatus:
    """Returns `status_given` with every text printable, truncated to the room there is."""
    # The API's list is a map by type: of two conditions of one type the first stays, as `find` reads it.
    by_type = {condition.type: _condition(condition) for condition in reversed(status_given.conditions)}
    fitting = replace(
        status_given,
        desired=release(status_given.desired),
        conditions=tuple(by_type[type_] for type_ in dict.fromkeys(c.type for c in status_given.conditions)),
        history=_history(status_given.history),
    )
    for limit in TEXT_LIMITS:
        updates = tuple(
            replace(
                update,
                risks=tuple(_risk(risk, limit) for risk in update.risks),
                conditions=_verdicts(update.conditions, limit),
            )
            for update in fitting.conditional_updates
        )
        risks = tuple(_risk(risk, limit) for risk in fitting.conditional_update_risks)
        lists = replace(fitting, conditional_updates=updates, conditional_update_risks=risks)
        if _stored_size((lists.conditional_updates, lists.conditional_update_risks)) <= MAX_LISTS:
            break
    return lists


def left_out(condition: Condition | None, number: int) -> Condition | None:
    """Returns RetrievedUpdates with the number of updates that are not listed added to its message."""
    if condition is None or not number:
        return condition
    text = f"{number} {'update is' if number == 1 else 'updates are'} not listed: the status has no room for more."
    return replace(condition, message=f"{condition.message} {text}".strip())


def _valid_risk(evaluated_risk: EvaluatedRisk) -> EvaluatedRisk:
    """Returns the risk with a name, link, message and rules that the API accepts."""
    risk = evaluated_risk.risk
    name = printable(risk.name).replace("\n", "\\n") or "UnnamedRisk"
    if len(name) > report.MAX_NAME:
        # The digest keeps it apart from names that begin alike.
        name = f"{name[:200]}...{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    link = is_uri(risk.url) and not is_hazardous(risk.url) and stored_bytes(risk.url) <= _MAX_URL
    queries = [rule.promql.promql for rule in risk.matching_rules if rule.promql]
    rules: list[config_v1.MatchingRule] = []
    # A truncated query would be another query.
    if all(stored_bytes(query) <= _MAX_QUERY for query in queries):
        for rule in risk.matching_rules[:_MAX_RULES]:
            if rule.promql is not None:
                # Escapes keep a query's meaning: in quotes they are the same character; line ends are all whitespace.
                query = printable(rule.promql.promql.replace("\r\n", "\n").replace("\r", "\n"))
                rule = replace(rule, promql=replace(rule.promql, promql=query))
            rules.append(rule)
    fitting = replace(
        risk,
        name=name,
        message=printable(risk.message) if risk.message.strip() else f"Nothing is said about risk {name}.",
        # The name comes from other people: it is quoted before it becomes part of a URL.
        url=risk.url if link else documentation.page(quote(name)),
        matching_rules=tuple(rules) or ALWAYS,
    )
    return replace(evaluated_risk, risk=fitting, applies=_condition(evaluated_risk.applies, MAX_MESSAGE))


def _limit_risks(candidate: Candidate, limit: int) -> Candidate:
    """Returns the candidate with at most `limit` risks; one represents the others."""
    if len(candidate.risks) <= limit:
        return candidate
    # What is cut must not make an update look safer (docs/decisions/0027-what-is-written-fits.md).
    ordered = sorted(candidate.risks, key=_weight)
    kept_risks, omitted_risks = ordered[: limit - 1], ordered[limit - 1 :]
    # The count includes the risks that the report itself left out.
    omissions = [risk for risk in omitted_risks if risk.name in published_risks.OMISSIONS]
    named_risks = [risk for risk in omitted_risks if risk not in omissions]
    count = len(named_risks) + sum(risk.stands_for for risk in omissions)
    more = "more than " if any(not risk.stands_for for risk in omissions) else ""
    names = ", ".join(risk.name for risk in named_risks[:_NAMES_SHOWN])
    names += f" and {count - len(named_risks[:_NAMES_SHOWN])} more" if count > _NAMES_SHOWN else ""
    worst = min(
        (risk.applies.status for risk in omitted_risks), key=lambda applies_status: _ORDER_OF_VERDICTS[applies_status]
    )
    from_preflight = any(risk.from_preflight for risk in candidate.risks)
    text = f"{more}{count} more risks were found than an update can carry: {names}."
    omitted = published_risks.omitted_risks(candidate.release.version, text, worst, from_preflight=from_preflight)
    # If none of them holds up an update, neither does the risk that represents them (docs/decisions/0024).
    holds_up = any(risk.holds_up for risk in omitted_risks)
    # Nor does acceptance lift it if it does not lift one of them.
    acceptable = all(risk.acceptable for risk in omitted_risks if risk.applies.status != "False")
    substitute = replace(omitted, stands_for=0 if more else count, holds_up=holds_up, acceptable=acceptable)
    return replace(candidate, risks=tuple(sorted([*kept_risks, substitute], key=lambda risk: risk.name)))


def _weight(risk: EvaluatedRisk) -> tuple[bool, bool, bool, int, str]:
    # What acceptance does not lift must be seen: whoever accepts all that is shown counts on the update.
    decides = risk.name in _KEPT_FIRST or not (risk.acceptable or risk.applies.status == "False")
    first, worst = not decides, _ORDER_OF_VERDICTS[risk.applies.status]
    return risk.name in published_risks.OMISSIONS, first, not risk.holds_up, worst, risk.name


def _fits_in_bytes(candidates_given: Sequence[Candidate]) -> bool:
    """Returns whether candidates fit in bytes, and so in number: 3 KiB an update with a risk, 2 KiB a further risk."""
    return sum(map(candidate_bytes, candidates_given)) <= MAX_LISTS


def candidate_bytes(candidate: Candidate) -> int:
    """Returns the most bytes a candidate takes once its texts are at their shortest; its risks are in two lists."""
    release_bytes = _stored_size(candidate.release) + _OVERHEAD_BYTES + TEXT_LIMITS[-1] * bool(candidate.risks)
    return release_bytes + 2 * sum(_risk_bytes(risk.risk) for risk in candidate.risks)


def _risk_bytes(risk: config_v1.ConditionalUpdateRisk) -> int:
    texts = [risk.name, risk.url, *(rule.promql.promql for rule in risk.matching_rules if rule.promql)]
    return sum(map(stored_bytes, texts)) + 2 * TEXT_LIMITS[-1] + _OVERHEAD_BYTES


def _risk(risk: config_v1.ConditionalUpdateRisk, limit: int) -> config_v1.ConditionalUpdateRisk:
    message = cut(printable(risk.message), limit)
    return replace(risk, message=message, conditions=_verdicts(risk.conditions, limit))


def _verdicts(conditions: Sequence[Condition], limit: int) -> tuple[Condition, ...]:
    """Returns the conditions with limited texts and reasons that `metav1.Condition` allows."""
    fitting = (_condition(condition, limit) for condition in conditions)
    return tuple(
        condition
        if len(condition.reason) <= MAX_REASON and REASON.fullmatch(condition.reason)
        else replace(condition, reason="ReasonNotReadable")
        for condition in fitting
    )


def _condition(condition: Condition, limit: int = MAX_CONDITION) -> Condition:
    reason, message = printable(condition.reason), cut(printable(condition.message), limit)
    if (reason, message) == (condition.reason, condition.message) and len(reason) <= MAX_REASON:
        return condition
    return replace(condition, reason=cut(reason, MAX_REASON), message=message)


def _history(entries: Sequence[config_v1.UpdateHistory]) -> tuple[config_v1.UpdateHistory, ...]:
    """Returns the entries with texts on accepted risks truncated, the oldest most: there are up to 100 entries."""
    fitting = [_cut_accepted_risks(entry, MAX_ACCEPTED_RISKS) for entry in entries]
    for index in reversed(range(1, len(fitting))):
        if _stored_size(fitting) <= MAX_HISTORY:
            break
        fitting[index] = _cut_accepted_risks(fitting[index], TEXT_LIMITS[-1])
    return tuple(fitting)


def _cut_accepted_risks(entry: config_v1.UpdateHistory, limit: int) -> config_v1.UpdateHistory:
    text = cut(printable(entry.accepted_risks), limit)
    return entry if text == entry.accepted_risks else replace(entry, accepted_risks=text)


def _stored_size(obj: Any) -> int:
    """Returns the bytes of `obj` as the API server stores it: Go's encoder writes `<`, `>` and `&` as six bytes."""
    data = codec.encode(obj)
    return len(data) + 5 * sum(data.count(char) for char in (b"<", b">", b"&"))
