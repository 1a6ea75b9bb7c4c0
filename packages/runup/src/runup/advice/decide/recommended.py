"""The `Recommended` condition: the combined verdict of one update's risks, without the accepted ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from msgspec import structs

from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.text import join_within
from runup.advice.decide import preflight_reasons
from runup.advice.decide.candidates import Candidate, JudgedRisk

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
        part = _part_of_risk(risk, accepted)
        if part is not None:
            status = max(total.status, part.status, key=lambda value: _RANK[value])
            total = _PartialCondition(status, _combined_reason(total.reason, part.reason), _messages(total, part))
    message = join_within(total.messages, "\n\n", _MAX_MESSAGE)
    return Condition(type=RECOMMENDED, status=total.status, reason=total.reason, message=message)


def _merge_alike(risks: Iterable[JudgedRisk], accepted: Collection[str]) -> Iterator[JudgedRisk]:
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


def _part_of_risk(risk: JudgedRisk, accepted: Collection[str]) -> _PartialCondition | None:
    """Returns one risk's contribution to the condition, None if the risk does not apply."""
    if risk.applies.status == "False":
        return None
    if risk.accepted(accepted):
        return _PartialCondition("True", ACCEPTED, (_ACCEPTED_TEXT,))
    if risk.applies.reason == preflight_reasons.REPAIRED:
        return _PartialCondition("True", REPAIRS, (_REPAIRS_TEXT,))
    if risk.applies.status == "True":
        # A risk's name may contain characters that a condition's reason must not have.
        reason = risk.name if _REASON.fullmatch(risk.name) else EXPOSED
        return _PartialCondition("False", reason, (f"{risk.risk.message} {risk.risk.url}",))
    return _PartialCondition("Unknown", risk.applies.reason or EVALUATION_FAILED, (risk.applies.message,))


def _combined_reason(old: str, new: str) -> str:
    """Returns the reason for two parts together: that of both, that of the graver part, or MultipleReasons."""
    if old == new or new == NOT_EXPOSED:
        return old
    if old in (NOT_EXPOSED, ACCEPTED) or (old == REPAIRS and new != ACCEPTED):
        return new
    if new in (ACCEPTED, REPAIRS):
        return old
    if {old, new} == {EVALUATION_FAILED, EXPOSED}:
        return EXPOSED
    return MULTIPLE


def _messages(old: _PartialCondition, new: _PartialCondition) -> tuple[str, ...]:
    if old.reason in (NOT_EXPOSED, ACCEPTED) or (old.reason == REPAIRS and new.reason != ACCEPTED):
        return new.messages
    return old.messages if new.reason in (ACCEPTED, REPAIRS) else (*old.messages, *new.messages)
