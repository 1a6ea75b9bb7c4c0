"""Renders `recommend -o json|yaml`: the same answer for programs (docs/spec/upgrade-output.schema.json). Pure."""

from __future__ import annotations

from typing import Any

from runup.advice.decide.alert_conditions import Check
from runup.api.clusterversion_json import Condition, Facts, Update, mapping
from runup.cli.advice.recommend.additions_to_oc import Extras
from runup.cli.advice.recommend.recommend_text import Advice, RecommendFlags
from runup.cli.advice.recommend.updates_by_minor import buckets, issue

JSON = dict[str, Any]


def as_data(
    facts: Facts, checks: tuple[Check, ...], problem: str, flags: RecommendFlags, advice: Advice, more: Extras
) -> JSON:
    """Returns everything that is printed, and the issues that decide the exit code."""
    offered = buckets(facts)
    updates = [update for minor in offered.by_minor.values() for update in minor]
    accepted = {row["name"] for row in more.acceptances if row["counts"]}
    return {
        "desired": mapping(mapping(facts.json, "status"), "desired"),
        "channel": facts.channel,
        "channels": list(facts.channels),
        "upstream": facts.upstream,
        "conditions": [_condition_data(condition) for condition in facts.conditions],
        "prechecks": [
            {
                **_condition_data(check.condition),
                "acceptName": check.name or None,
                "accepted": check.name in flags.accept,
            }
            for check in checks
        ],
        "precheckProblem": problem or None,
        "updates": [_update(update, accepted) for update in updates if flags.version in ("", update.release.version)],
        "issues": sorted(advice.issues),
        "unacceptedIssues": sorted(advice.issues - flags.accept),
        "preflights": more.preflights,
        "acceptances": more.acceptances,
        "error": advice.error or None,
    }


def _condition_data(condition: Condition) -> JSON:
    """Returns the condition without its transition time, which changes from run to run."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }


def _update(update: Update, accepted: set[str]) -> JSON:
    """Returns the entry of one update for `-o json`, with its risks and whether it is recommended."""
    verdict = issue(update)
    risks = [{"name": risk.name, "message": risk.message, "accepted": risk.name in accepted} for risk in update.risks]
    return {
        "version": update.release.version,
        "image": update.release.image,
        "url": update.release.url,
        "recommended": verdict.status if verdict else "True",
        "reason": verdict.reason if verdict else None,
        "message": verdict.message if verdict else None,
        "risks": risks,
    }
