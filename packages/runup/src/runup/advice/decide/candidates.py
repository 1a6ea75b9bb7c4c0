"""The releases to which the cluster could update, with evaluated risks: shared by advice, preflight and acceptance.

A candidate without risks is an available update, one with risks is a conditional update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version, parse
from runup.advice.decide import matching_rules
from runup.advice.decide.graph import Advice
from runup.advice.decide.promql import PrometheusState
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule, Release

ALWAYS = (MatchingRule(type="Always"),)
# The API's limit (docs/upstream-behaviour.md 10.3).
MAX_RISKS_AN_UPDATE = 200
_ORDER_OF_VERDICTS = {"False": 0, "Unknown": 1, "True": 2}


class JudgedRisk(msgspec.Struct, frozen=True):
    """A risk, and whether it applies here. `from_preflight`: a preflight found it, or it stands for such risks.

    `holds_up` is False if the risk only informs: no update waits for it (docs/decisions/0072 D21, D24). `stands_for`:
    the number of risks that this one represents, if it replaces those for which there was no room; 0: not known.
    `acceptable` is False if acceptance does not lift it, because the update has a guard of its own that does not ask
    what is accepted (docs/decisions/0075).
    """

    risk: ConditionalUpdateRisk
    applies: Condition
    from_preflight: bool = False
    holds_up: bool = True
    stands_for: int = 1
    acceptable: bool = True

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
    risks: tuple[JudgedRisk, ...] = ()
    # Whether the update service offers the hop from the current release, with or without risks.
    offered: bool = True


def from_advice(advice: Advice, prometheus: PrometheusState, now: datetime) -> tuple[Candidate, ...]:
    """Returns the service's offers, newest first, with their rules evaluated."""
    plain = [Candidate(release) for release in advice.updates]
    conditional = [
        Candidate(
            update.release,
            tuple(JudgedRisk(risk, matching_rules.evaluate_rules(risk, prometheus, now)) for risk in update.risks),
        )
        for update in advice.conditional
    ]
    return newest_first([*plain, *conditional])


def newest_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Returns the candidates with the newest version first; those without a semantic version come last."""
    return tuple(sorted(candidates, key=_version_order, reverse=True))


def add_risks(candidate: Candidate, risks: Iterable[JudgedRisk]) -> Candidate:
    """Returns `candidate` with `risks` added, sorted by name.

    Risks of the same name are joined, and the worse verdict wins.
    """
    by_name = {risk.name: risk for risk in candidate.risks}
    for risk in risks:
        by_name[risk.name] = join(by_name[risk.name], risk) if risk.name in by_name else risk
    return replace(candidate, risks=tuple(by_name[name] for name in sorted(by_name)))


def join(first: JudgedRisk, second: JudgedRisk) -> JudgedRisk:
    """Returns one risk for two of the same name: their messages line by line, and the worse of the two verdicts."""
    lines = dict.fromkeys([*first.risk.message.split("\n"), *second.risk.message.split("\n")])
    worse = second if _severity_rank(second) > _severity_rank(first) else first
    risk = ConditionalUpdateRisk(
        name=first.name,
        message="\n".join(lines),
        url=first.risk.url,
        matching_rules=first.risk.matching_rules or ALWAYS,
    )
    return JudgedRisk(
        risk,
        worse.applies,
        from_preflight=first.from_preflight and second.from_preflight,
        holds_up=any(risk.holds_up for risk in (first, second) if risk.applies.status != "False"),
        acceptable=all(risk.acceptable for risk in (first, second) if risk.applies.status != "False"),
    )


def _severity_rank(risk: JudgedRisk) -> tuple[int, bool]:
    # Of two that apply, the one that acceptance does not lift decides what is told.
    return _ORDER_OF_VERDICTS[risk.applies.status], not risk.acceptable


def only_holding_risks(candidate: Candidate) -> Candidate:
    """Returns `candidate` with only the risks that hold up an update to it."""
    return replace(candidate, risks=tuple(risk for risk in candidate.risks if risk.holds_up))


def by_name(candidates: Iterable[Candidate]) -> tuple[JudgedRisk, ...]:
    """Returns every risk once, by name: the same name for two targets is one entry with a line for each."""
    joined: dict[str, JudgedRisk] = {}
    for candidate in candidates:
        for risk in candidate.risks:
            joined[risk.name] = join(joined[risk.name], risk) if risk.name in joined else risk
    return tuple(joined[name] for name in sorted(joined))


def _version_order(candidate: Candidate) -> tuple[bool, Version]:
    version = parse(candidate.release.version)
    return version is not None, version or Version("0.0.0")
