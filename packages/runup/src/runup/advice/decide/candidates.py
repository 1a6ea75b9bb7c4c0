"""The releases to which the cluster could update, with evaluated risks: shared by advice, preflight and acceptance.

A candidate without risks is an available update, one with risks is a conditional update. Its `Recommended` condition
combines the verdicts of the risks that are not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import structs
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.text import join_within
from kubekit.lang.version import Version, parse
from runup.advice.decide import graph, preflight_reasons, promql
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule, Release

ALWAYS = (MatchingRule(type="Always"),)
# The API's limit (docs/reference/upstream.md 10.3).
MAX_RISKS_AN_UPDATE = 200
_ORDER_OF_VERDICTS = {"False": 0, "Unknown": 1, "True": 2}


class EvaluatedRisk(msgspec.Struct, frozen=True, kw_only=True):
    """A risk, and whether it applies here. `from_preflight`: a preflight found it, or it represents such risks.

    `holds_up` is False if the risk only informs: no update waits for it (docs/decisions/0072 D21, D24). `stands_for`:
    the number of risks that this one represents, if it replaces those for which there was no room; 0: not known.
    `acceptable` is False if acceptance does not lift it, because the update has a separate guard that does not ask
    what is accepted (docs/decisions/0075). `until`: the time until which an update waits for what is not known yet.
    """

    risk: ConditionalUpdateRisk
    applies: Condition
    from_preflight: bool = False
    holds_up: bool = True
    stands_for: int = 1
    acceptable: bool = True
    until: datetime | None = None

    @property
    def name(self) -> str:
        """The name that administrators accept."""
        return self.risk.name

    def accepted(self, names: Collection[str]) -> bool:
        """Returns whether the acceptance of `names` lifts this risk."""
        return self.acceptable and self.name in names


class Candidate(msgspec.Struct, frozen=True):
    """A release and the risks of updating to it."""

    release: Release
    risks: tuple[EvaluatedRisk, ...] = ()
    # Whether the update service offers the hop from the current release, with or without risks.
    offered: bool = True


def from_advice(advice: graph.Advice, prometheus: promql.PrometheusState, now: datetime) -> tuple[Candidate, ...]:
    """Returns the service's offers, newest first, with their rules evaluated."""
    plain = [Candidate(release) for release in advice.updates]
    conditional = [
        Candidate(
            update.release,
            tuple(
                EvaluatedRisk(risk=risk, applies=promql.evaluate_rules(risk, prometheus, now)) for risk in update.risks
            ),
        )
        for update in advice.conditional
    ]
    return newest_first([*plain, *conditional])


def newest_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Returns the candidates with the newest version first; those without a semantic version come last."""
    return tuple(sorted(candidates, key=_version_order, reverse=True))


def add_risks(candidate: Candidate, risks: Iterable[EvaluatedRisk]) -> Candidate:
    """Returns `candidate` with `risks` added, sorted by name.

    Risks of the same name are joined, and the worse verdict wins.
    """
    by_name = {risk.name: risk for risk in candidate.risks}
    for risk in risks:
        by_name[risk.name] = join(by_name[risk.name], risk) if risk.name in by_name else risk
    return replace(candidate, risks=tuple(by_name[name] for name in sorted(by_name)))


def join(first: EvaluatedRisk, second: EvaluatedRisk) -> EvaluatedRisk:
    """Returns one risk for two of the same name: their messages line by line, and the worse of the two verdicts."""
    lines = dict.fromkeys([*first.risk.message.split("\n"), *second.risk.message.split("\n")])
    worse = second if _severity_rank(second) > _severity_rank(first) else first
    risk = ConditionalUpdateRisk(
        name=first.name,
        message="\n".join(lines),
        url=first.risk.url,
        matching_rules=first.risk.matching_rules or ALWAYS,
    )
    return EvaluatedRisk(
        risk=risk,
        applies=worse.applies,
        from_preflight=first.from_preflight and second.from_preflight,
        holds_up=any(risk.holds_up for risk in (first, second) if risk.applies.status != "False"),
        acceptable=all(risk.acceptable for risk in (first, second) if risk.applies.status != "False"),
    )


def _severity_rank(risk: EvaluatedRisk) -> tuple[int, bool]:
    # Of two that apply, the one that acceptance does not lift decides what is reported.
    return _ORDER_OF_VERDICTS[risk.applies.status], not risk.acceptable


def only_holding_risks(candidate: Candidate) -> Candidate:
    """Returns `candidate` with only the risks that hold up an update to it."""
    return replace(candidate, risks=tuple(risk for risk in candidate.risks if risk.holds_up))


def by_name(candidates: Iterable[Candidate]) -> tuple[EvaluatedRisk, ...]:
    """Returns every risk once, by name: the same name for two targets is one entry with a line for each."""
    joined: dict[str, EvaluatedRisk] = {}
    for candidate in candidates:
        for risk in candidate.risks:
            joined[risk.name] = join(joined[risk.name], risk) if risk.name in joined else risk
    return tuple(joined[name] for name in sorted(joined))


def _version_order(candidate: Candidate) -> tuple[bool, Version]:
    version = parse(candidate.release.version)
    return version is not None, version or Version("0.0.0")


RECOMMENDED = "Recommended"
NOT_EXPOSED = "NotExposedToRisks"
ACCEPTED = "AllExposedRisksAccepted"
EXPOSED = "ExposedToRisks"
EVALUATION_FAILED = "EvaluationFailed"
MULTIPLE = "MultipleReasons"
REPAIRS = "RepairsFailure"
_NOT_EXPOSED_TEXT = "The update is recommended, because none of the conditional update risks apply to this cluster."
_ACCEPTED_TEXT = (
    "The update is recommended, because either risk does not apply to this cluster or it is accepted by cluster admins."
)
_REPAIRS_TEXT = (
    "The update is recommended, because the risks that apply describe the failure that it may repair, do not apply to "
    "this cluster, or are accepted by cluster admins."
)
# The pattern of `reason` in metav1.Condition (k8s.io/apimachinery, pkg/apis/meta/v1).
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
# False is worse than Unknown, and Unknown worse than True.
_RANK: dict[ConditionStatus, int] = {"True": 0, "Unknown": 1, "False": 2}


# The API's limit for a condition's message.
_MAX_MESSAGE = 32768
# Reasons whose message is one for every risk of a preflight.
_ALIKE = (preflight_reasons.OUTDATED, preflight_reasons.STALE)


class _PartialCondition(NamedTuple):
    status: ConditionStatus
    reason: str
    messages: tuple[str, ...]


def recommended_condition(candidate: Candidate, accepted: Collection[str]) -> Condition:
    """Returns the condition, without a time. `accepted` is empty if the feature gate for accepting risks is off."""
    total = _PartialCondition("True", NOT_EXPOSED, (_NOT_EXPOSED_TEXT,))
    for risk in _merge_alike(candidate.risks, accepted):
        if risk.applies.status == "False":
            continue
        if risk.accepted(accepted):
            part = _PartialCondition("True", ACCEPTED, (_ACCEPTED_TEXT,))
        elif risk.applies.reason == preflight_reasons.REPAIRED:
            part = _PartialCondition("True", REPAIRS, (_REPAIRS_TEXT,))
        elif risk.applies.status == "True":
            # A risk's name may contain characters that a condition's reason must not have.
            reason = risk.name if _REASON.fullmatch(risk.name) else EXPOSED
            part = _PartialCondition("False", reason, (f"{risk.risk.message} {risk.risk.url}",))
        else:
            part = _PartialCondition("Unknown", risk.applies.reason or EVALUATION_FAILED, (risk.applies.message,))
        status = max(total.status, part.status, key=lambda value: _RANK[value])
        if total.reason in (NOT_EXPOSED, ACCEPTED) or (total.reason == REPAIRS and part.reason != ACCEPTED):
            messages = part.messages
        else:
            messages = total.messages + (part.messages if part.reason not in (ACCEPTED, REPAIRS) else ())
        total = _PartialCondition(status, _combined_reason(total.reason, part.reason), messages)
    message = join_within(total.messages, "\n\n", _MAX_MESSAGE)
    return Condition(type=RECOMMENDED, status=total.status, reason=total.reason, message=message)


def _merge_alike(risks: Iterable[EvaluatedRisk], accepted: Collection[str]) -> Iterator[EvaluatedRisk]:
    """Yields `risks` with those of one ended or silent preflight as one, whose message has their names."""
    names: dict[str, list[str]] = {}
    alike = [risk for risk in risks if risk.applies.reason in _ALIKE and not risk.accepted(accepted)]
    for risk in alike:
        names.setdefault(risk.applies.message, []).append(risk.name)
    for risk in risks:
        same = names.get(risk.applies.message, []) if risk in alike else [risk.name]
        if risk in alike and risk.name == same[0]:
            message = f"{', '.join(same)}: {risk.applies.message}"
            yield structs.replace(risk, applies=structs.replace(risk.applies, message=message))
        elif risk not in alike:
            yield risk


def unaccepted_names(candidate: Candidate, accepted: Collection[str]) -> tuple[str, ...]:
    """Returns the names of the risks that block the update, sorted: they may apply and are not accepted.

    Risks that acceptance does not lift are not among them: the update's own guards decide about those.
    """
    risks = (risk for risk in candidate.risks if risk.holds_up and risk.applies.status != "False")
    return tuple(sorted(risk.name for risk in risks if risk.acceptable and risk.name not in accepted))


def not_acceptable(candidate: Candidate) -> tuple[str, ...]:
    """Returns the names of the risks that may apply and that acceptance does not lift, sorted."""
    return tuple(
        sorted(risk.name for risk in candidate.risks if not risk.acceptable and risk.applies.status != "False")
    )


def _combined_reason(old: str, new: str) -> str:
    """Returns the common reason of two parts, the reason of the more severe part, or MultipleReasons."""
    if old == new or new == NOT_EXPOSED:
        return old
    if old in (NOT_EXPOSED, ACCEPTED) or (old == REPAIRS and new != ACCEPTED):
        return new
    if new in (ACCEPTED, REPAIRS):
        return old
    if {old, new} == {EVALUATION_FAILED, EXPOSED}:
        return EXPOSED
    return MULTIPLE
