"""The releases that an update could go to, risks judged: the value that advice, preflight and acceptance share.

A candidate without risks is an available update; with risks it is a conditional one. Nothing else tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version, is_minor_or_major, parse
from runup.advice.decide import rules
from runup.advice.decide.graph import Advice
from runup.advice.decide.promql import Known
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule, Release

ALWAYS = (MatchingRule(type="Always"),)
# What the API takes (cvo-behaviour 10.3).
MAX_RISKS_AN_UPDATE = 200
_WORST = {"False": 0, "Unknown": 1, "True": 2}


class JudgedRisk(msgspec.Struct, frozen=True):
    """A risk, and whether it applies here. `from_preflight` marks what a preflight found or stands for one.

    `holds_up` is False where the risk only informs: no update waits for it (decisions D21, D24). `stands_for`: how many
    risks this one is, where it stands for those that there was no room for; 0: not known.
    """

    risk: ConditionalUpdateRisk
    applies: Condition
    from_preflight: bool = False
    holds_up: bool = True
    stands_for: int = 1

    @property
    def name(self) -> str:
        """The name that administrators accept."""
        return self.risk.name


class Candidate(msgspec.Struct, frozen=True):
    """A release and the risks of going there."""

    release: Release
    risks: tuple[JudgedRisk, ...] = ()
    # Whether the update service offers the hop from the current release, with or without risks.
    offered: bool = True


def from_advice(advice: Advice, known: Known, now: datetime) -> tuple[Candidate, ...]:
    """The service's offers, newest first, rules evaluated."""
    plain = [Candidate(release) for release in advice.updates]
    conditional = [
        Candidate(update.release, tuple(JudgedRisk(risk, rules.applies(risk, known, now)) for risk in update.risks))
        for update in advice.conditional
    ]
    return ordered([*plain, *conditional])


def ordered(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Newest version first; what has no semantic version comes last."""
    return tuple(sorted(candidates, key=_version_order, reverse=True))


def add_risks(candidate: Candidate, risks: Iterable[JudgedRisk]) -> Candidate:
    """`candidate` with `risks` too, sorted by name; a name that is there already is joined, the worse verdict wins."""
    by_name = {risk.name: risk for risk in candidate.risks}
    for risk in risks:
        by_name[risk.name] = join(by_name[risk.name], risk) if risk.name in by_name else risk
    return replace(candidate, risks=tuple(by_name[name] for name in sorted(by_name)))


def join(first: JudgedRisk, second: JudgedRisk) -> JudgedRisk:
    """One risk out of two of the same name: messages line by line, the worse of the two verdicts."""
    lines = dict.fromkeys([*first.risk.message.split("\n"), *second.risk.message.split("\n")])
    worse = second if _WORST[second.applies.status] > _WORST[first.applies.status] else first
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
        holds_up=any(one.holds_up for one in (first, second) if one.applies.status != "False"),
    )


def holding(candidate: Candidate) -> Candidate:
    """`candidate` with the risks that an update to it waits for."""
    return replace(candidate, risks=tuple(risk for risk in candidate.risks if risk.holds_up))


def leaves_minor(candidate: Candidate, current: str) -> bool:
    """Whether going there leaves the minor version upwards; a version that cannot be read counts as leaving it."""
    here, there = parse(current), parse(candidate.release.version)
    return here is None or there is None or is_minor_or_major(here, there)


def by_name(candidates: Iterable[Candidate]) -> tuple[JudgedRisk, ...]:
    """Every risk once, by name: the same name for two targets is one entry with a line for each."""
    found: dict[str, JudgedRisk] = {}
    for candidate in candidates:
        for risk in candidate.risks:
            found[risk.name] = join(found[risk.name], risk) if risk.name in found else risk
    return tuple(found[name] for name in sorted(found))


def _version_order(candidate: Candidate) -> tuple[bool, Version]:
    version = parse(candidate.release.version)
    return version is not None, version or Version("0.0.0")
