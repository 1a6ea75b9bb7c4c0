"""`status` as it should be, and the one patch that makes it so.

Only fields that this operator decides are compared and written; what else a status holds (Failing, Available,
capabilities, an imported cluster's own words) stays as found.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import Conditions, find, with_condition
from kubekit.api.meta_v1 import Condition
from runup.advice.decide.candidates import Candidate, JudgedRisk, by_name
from runup.advice.decide.recommended import recommended
from runup.api.config_v1 import (
    ClusterVersionStatus,
    ConditionalUpdate,
    ConditionalUpdateRisk,
    Release,
    UpdateHistory,
)

JSON = dict[str, Any]
_OMITTED_WHERE_EMPTY = ("conditionalUpdates", "conditionalUpdateRisks")


def with_updates(
    status: ClusterVersionStatus,
    candidates: Sequence[Candidate],
    accepted: frozenset[str],
    *,
    publish_names: bool,
    now: datetime,
) -> ClusterVersionStatus:
    """`status` with the update lists that `candidates` come to.

    `publish_names`: the API has riskNames, conditionalUpdateRisks and conditions of risks, all of them behind
    gate ClusterUpdateAcceptRisks.
    """
    judged = {candidate.release.image: recommended(candidate, accepted) for candidate in candidates}
    available = tuple(c.release for c in candidates if judged[c.release.image].status == "True")
    writer = _Writer(status, publish_names, now)
    conditional = tuple(writer.update(c, judged[c.release.image]) for c in candidates if c.risks)
    risks = tuple(writer.risk(risk) for risk in by_name(candidates)) if publish_names else ()
    return replace(
        status,
        available_updates=available,
        conditional_updates=conditional,
        conditional_update_risks=risks,
    )


class _Writer:
    """Candidates -> wire types, with the times of verdicts that did not change carried over."""

    def __init__(self, status: ClusterVersionStatus, publish_names: bool, now: datetime) -> None:
        self._publish = publish_names
        self._now = now
        self._verdicts = {update.release.image: update.conditions for update in status.conditional_updates}
        self._applies: dict[str, Conditions] = {}
        for update in status.conditional_updates:
            self._applies.update({risk.name: risk.conditions for risk in update.risks})
        self._applies.update({risk.name: risk.conditions for risk in status.conditional_update_risks})

    def update(self, candidate: Candidate, verdict: Condition) -> ConditionalUpdate:
        found = self._verdicts.get(candidate.release.image, ())
        return ConditionalUpdate(
            release=candidate.release,
            risks=tuple(self.risk(risk) for risk in candidate.risks),
            risk_names=tuple(risk.name for risk in candidate.risks) if self._publish else (),
            conditions=with_condition(found, verdict, now=self._now),
        )

    def risk(self, judged: JudgedRisk) -> ConditionalUpdateRisk:
        if not self._publish:
            return replace(judged.risk, conditions=())
        found = self._applies.get(judged.name, ())
        return replace(judged.risk, conditions=with_condition(found, judged.applies, now=self._now))


def with_conditions(
    current: Conditions, new: Sequence[Condition], absent: Sequence[str], *, now: datetime
) -> Conditions:
    """`current` with `new`, and without the types in `absent` that `new` does not bring."""
    brought = {condition.type for condition in new}
    kept = tuple(c for c in current if c.type in brought or c.type not in absent)
    for condition in new:
        kept = with_condition(kept, condition, now=now)
    return kept


def patch(found: ClusterVersionStatus, wanted: ClusterVersionStatus, *, fresh: bool) -> tuple[JSON, tuple[str, ...]]:
    """What makes `wanted` of `found`: the fields that change, each whole, and the names of those that go.

    `fresh`: the object has no status yet, so that every field that the API requires is written.
    """
    changed: JSON = codec.to_dict(found) if fresh else {}
    if wanted.desired != found.desired or fresh:
        changed["desired"] = codec.to_dict(wanted.desired)
    if wanted.history != found.history:
        changed["history"] = [_history(entry) for entry in wanted.history]
    if wanted.observed_generation != found.observed_generation or fresh:
        changed["observedGeneration"] = wanted.observed_generation
    if wanted.version_hash != found.version_hash or fresh:
        changed["versionHash"] = wanted.version_hash
    if wanted.capabilities != found.capabilities:
        changed["capabilities"] = codec.to_dict(wanted.capabilities)
    if wanted.conditions != found.conditions:
        changed["conditions"] = [codec.to_dict(condition) for condition in wanted.conditions]
    if wanted.available_updates != found.available_updates or fresh:
        changed["availableUpdates"] = _releases(wanted.available_updates)
    if wanted.conditional_updates != found.conditional_updates:
        changed["conditionalUpdates"] = [_conditional(update) for update in wanted.conditional_updates]
    if wanted.conditional_update_risks != found.conditional_update_risks:
        changed["conditionalUpdateRisks"] = [_risk(risk) for risk in wanted.conditional_update_risks]
    gone = tuple(name for name in _OMITTED_WHERE_EMPTY if changed.get(name) == [])
    return {name: value for name, value in changed.items() if name not in gone}, gone


def changed_condition(found: Conditions, wanted: Conditions, type_: str) -> Condition | None:
    """The condition of that type if its status or reason is new."""
    before, after = find(found, type_), find(wanted, type_)
    if after is None:
        return None
    same = before is not None and (before.status, before.reason) == (after.status, after.reason)
    return None if same else after


def _releases(releases: tuple[Release, ...] | None) -> list[JSON] | None:
    """Null means "not known", as opposed to none."""
    return None if releases is None else [codec.to_dict(release) for release in releases]


def _history(entry: UpdateHistory) -> JSON:
    """With the fields that the API requires, whatever their value."""
    required: JSON = {"completionTime": None, "image": entry.image, "verified": entry.verified}
    return required | codec.to_dict(entry)


def _conditional(update: ConditionalUpdate) -> JSON:
    obj = codec.to_dict(update)
    obj["risks"] = [_risk(risk) for risk in update.risks]
    obj["conditions"] = [_condition(condition) for condition in update.conditions]
    return obj


def _risk(risk: ConditionalUpdateRisk) -> JSON:
    obj = codec.to_dict(risk)
    if risk.conditions:
        obj["conditions"] = [_condition(condition) for condition in risk.conditions]
    return obj


def _condition(condition: Condition) -> JSON:
    """`metav1.Condition`, whose message is required even where it is empty."""
    return {"message": "", **codec.to_dict(condition)}
