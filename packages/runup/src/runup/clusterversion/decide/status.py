"""Builds the desired `status`, and the one patch that turns the current status into it.

Only fields that this operator decides are compared and written. Everything else in a status (Failing, Available,
capabilities, texts of an imported cluster) stays as found.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import Conditions, find, with_condition
from kubekit.api.meta_v1 import Condition
from runup.advice.decide.candidates import Candidate, EvaluatedRisk, by_name, join, recommended_condition
from runup.api import config_v1

JSON = dict[str, Any]
_OMITTED_WHERE_EMPTY = ("conditionalUpdates", "conditionalUpdateRisks")


def with_updates(
    status: config_v1.ClusterVersionStatus,
    candidates: Sequence[Candidate],
    accepted: frozenset[str],
    *,
    publish_names: bool,
    now: datetime,
    past: Sequence[EvaluatedRisk] = (),
) -> config_v1.ClusterVersionStatus:
    """Returns `status` with the update lists that result from `candidates`.

    `past` are risks that no update carries: conditionalUpdateRisks keeps them for reference.
    `publish_names`: the API has riskNames, conditionalUpdateRisks and conditions of risks, all of them behind
    gate ClusterUpdateAcceptRisks.
    """
    # By image: several candidates may have one version.
    recommended = {candidate.release.image: recommended_condition(candidate, accepted) for candidate in candidates}
    # What nobody offers is never among the offers, whatever is accepted (docs/decisions/0075).
    available = tuple(c.release for c in candidates if c.offered and recommended[c.release.image].status == "True")
    writer = _Writer(status, publish_names, now)
    conditional = tuple(writer.conditional_update(c, recommended[c.release.image]) for c in candidates if c.risks)
    everywhere = {risk.name: risk for risk in by_name(candidates)}
    for risk in past:
        # The verdict is that of an update that carries the risk, if there is one.
        carried = everywhere.get(risk.name)
        everywhere[risk.name] = replace(join(carried, risk), applies=carried.applies) if carried else risk
    risks = tuple(writer.risk(everywhere[name]) for name in sorted(everywhere)) if publish_names else ()
    return replace(
        status,
        available_updates=available,
        conditional_updates=conditional,
        conditional_update_risks=risks,
    )


class _Writer:
    """A converter of candidates to wire types; verdicts that did not change keep their transition times."""

    def __init__(self, status: config_v1.ClusterVersionStatus, publish_names: bool, now: datetime) -> None:
        self._publish = publish_names
        self._now = now
        self._verdicts = {update.release.image: update.conditions for update in status.conditional_updates}
        # Conditions keep lastTransitionTime as long as their status stays, so the old ones are looked up.
        self._applies: dict[str, Conditions] = {}
        for update in status.conditional_updates:
            self._applies.update({risk.name: risk.conditions for risk in update.risks})
        self._applies.update({risk.name: risk.conditions for risk in status.conditional_update_risks})

    def conditional_update(self, candidate: Candidate, verdict: Condition) -> config_v1.ConditionalUpdate:
        """Returns the conditional update of a candidate, as status.conditionalUpdates has it."""
        conditions = self._verdicts.get(candidate.release.image, ())
        return config_v1.ConditionalUpdate(
            release=candidate.release,
            risks=tuple(self.risk(risk) for risk in candidate.risks),
            risk_names=tuple(risk.name for risk in candidate.risks) if self._publish else (),
            conditions=with_condition(conditions, verdict, now=self._now),
        )

    def risk(self, evaluated_risk: EvaluatedRisk) -> config_v1.ConditionalUpdateRisk:
        if not self._publish:
            return replace(evaluated_risk.risk, conditions=())
        conditions = self._applies.get(evaluated_risk.name, ())
        return replace(
            evaluated_risk.risk, conditions=with_condition(conditions, evaluated_risk.applies, now=self._now)
        )


def with_conditions(
    current: Conditions, new: Sequence[Condition], absent: Sequence[str], *, now: datetime
) -> Conditions:
    """Returns `current` with `new`, and without the types in `absent` that `new` does not contain."""
    new_types = {condition.type for condition in new}
    merged = tuple(c for c in current if c.type in new_types or c.type not in absent)
    for condition in new:
        merged = with_condition(merged, condition, now=now)
    return merged


def patch(
    old_status: config_v1.ClusterVersionStatus, new_status: config_v1.ClusterVersionStatus, *, fresh: bool
) -> tuple[JSON, tuple[str, ...]]:
    """Returns the patch from `old_status` to `new_status`: each changed field whole, and the names of removed ones.

    `fresh`: the object has no status yet, so that every field that the API requires is written.
    """
    changed: JSON = codec.to_dict(old_status) if fresh else {}
    if new_status.desired != old_status.desired or fresh:
        changed["desired"] = codec.to_dict(new_status.desired)
    if new_status.history != old_status.history:
        # The API requires these fields, whatever their value.
        changed["history"] = [
            {"completionTime": None, "image": entry.image, "verified": entry.verified} | codec.to_dict(entry)
            for entry in new_status.history
        ]
    if new_status.observed_generation != old_status.observed_generation or fresh:
        changed["observedGeneration"] = new_status.observed_generation
    if new_status.version_hash != old_status.version_hash or fresh:
        changed["versionHash"] = new_status.version_hash
    if new_status.capabilities != old_status.capabilities:
        changed["capabilities"] = codec.to_dict(new_status.capabilities)
    if new_status.conditions != old_status.conditions:
        changed["conditions"] = [codec.to_dict(condition) for condition in new_status.conditions]
    if new_status.available_updates != old_status.available_updates or fresh:
        changed["availableUpdates"] = (
            None
            if new_status.available_updates is None
            else [codec.to_dict(release) for release in new_status.available_updates]
        )
    if new_status.conditional_updates != old_status.conditional_updates:
        changed["conditionalUpdates"] = [
            codec.to_dict(update)
            | {
                "risks": [_risk(risk) for risk in update.risks],
                "conditions": [_condition(condition) for condition in update.conditions],
            }
            for update in new_status.conditional_updates
        ]
    if new_status.conditional_update_risks != old_status.conditional_update_risks:
        changed["conditionalUpdateRisks"] = [_risk(risk) for risk in new_status.conditional_update_risks]
    # The API omits these lists when they are empty; a patch has to remove them.
    removed = tuple(name for name in _OMITTED_WHERE_EMPTY if changed.get(name) == [])
    return {name: value for name, value in changed.items() if name not in removed}, removed


def changed_condition(old_conditions: Conditions, new_conditions: Conditions, type_: str) -> Condition | None:
    """Returns the condition of that type if its status or reason is new, else None."""
    before, after = find(old_conditions, type_), find(new_conditions, type_)
    if after is None:
        return None
    same = before is not None and (before.status, before.reason) == (after.status, after.reason)
    return None if same else after


def _risk(risk: config_v1.ConditionalUpdateRisk) -> JSON:
    obj = codec.to_dict(risk)
    if risk.conditions:
        obj["conditions"] = [_condition(condition) for condition in risk.conditions]
    return obj


def _condition(condition: Condition) -> JSON:
    """Returns a `metav1.Condition`, whose message is required even if it is empty."""
    return {"message": "", **codec.to_dict(condition)}
