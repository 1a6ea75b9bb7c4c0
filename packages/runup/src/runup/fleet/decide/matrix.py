"""Lays the findings of many clusters side by side: each risk with its clusters, and clusters with the same risks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from runup.preflight.decide.findings import Findings, Result, Risk
from runup.report.report import severity_rank


class RiskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A risk of some clusters: the names of those where it applies, is unknown, and is accepted.

    `informs` are those where it describes a failure that the update may repair, `refuses` those of `applies` where the
    update is refused, accepted or not. The texts are those of its gravest finding. `because` are the reasons for
    which it is accepted; `grown` has the clusters in which it covers more than before, each with a text.
    """

    name: str
    severity: str
    message: str
    fix: str
    applies: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    informs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    grown: tuple[tuple[str, str], ...] = ()

    @property
    def order(self) -> tuple[bool, bool, int, int, str]:
        """The sort key: what applies somewhere first, the gravest on top, then the most clusters."""
        count = len(self.applies) or len(self.unknown)
        return not self.applies, not self.unknown, severity_rank(self.severity), -count, self.name

    def mark(self, cluster: str) -> str:
        """Returns the state in one cluster: `refuses`, `applies`, `unknown`, `accepted`, `informs` or nothing."""
        for state in ("refuses", "applies", "unknown", "accepted", "informs"):
            if cluster in getattr(self, state):
                return state
        return ""


class Group(msgspec.Struct, frozen=True):
    """The clusters in which the same risks are open."""

    clusters: tuple[str, ...]
    applies: tuple[str, ...]
    unknown: tuple[str, ...]
    result: Result


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a fleet. `clusters` are all names, `results` what they come to, `failed` why there is no result.

    Groups have the clusters that were evaluated, the largest group first.
    """

    clusters: tuple[str, ...]
    results: Mapping[str, Result]
    rows: tuple[RiskRow, ...]
    groups: tuple[Group, ...]
    failed: tuple[tuple[str, str], ...]

    def number(self, counted: Result) -> int:
        """Returns the number of clusters with this result, or another one with the same code."""
        return sum(result.code == counted.code for result in self.results.values())

    @property
    def judged(self) -> tuple[str, ...]:
        """The clusters that have a result."""
        return tuple(name for name, result in self.results.items() if result.code != Result.COULD_NOT_RUN.code)

    @property
    def accepting(self) -> int:
        """The number of clusters with nothing in the way only because risks are accepted."""
        accepted = {cluster for row in self.rows for cluster in row.accepted}
        return sum(self.results[cluster] is Result.CLEAR for cluster in accepted)


def matrix(results: Sequence[tuple[str, Findings]]) -> Matrix:
    """Returns the matrix of the clusters' findings, in the order in which the clusters are given."""
    result_by_cluster = {name: findings.result for name, findings in results}
    failed = tuple(
        (name, found.failed.message if found.failed else "it has no result yet")
        for name, found in results
        if found.result.code == Result.COULD_NOT_RUN.code
    )
    judged = [(name, found) for name, found in results if found.result.code != Result.COULD_NOT_RUN.code]
    by_name: dict[str, list[tuple[str, Risk]]] = defaultdict(list)
    for cluster, findings in judged:
        for risk in (*findings.guard_risks, *findings.risks):
            if risk.applies != "False":
                by_name[risk.name].append((cluster, risk))
    rows = []
    for name, pairs in by_name.items():
        gravest = min((risk for _, risk in pairs), key=lambda risk: (not risk.open, severity_rank(risk.severity)))
        states: dict[str, list[str]] = defaultdict(list)
        for cluster, risk in pairs:
            state = "applies" if risk.applies == "True" else "unknown"
            states["accepted" if risk.accepted else "informs" if risk.informs else state].append(cluster)
            if risk.refuses:
                states["refuses"].append(cluster)
        clusters = {state: tuple(names) for state, names in states.items()}
        rows.append(
            RiskRow(
                name=name,
                severity=gravest.severity,
                message=gravest.message,
                fix=gravest.fix,
                because=tuple(dict.fromkeys(risk.because for _, risk in pairs if risk.accepted and risk.because)),
                grown=tuple((cluster, risk.grown_text) for cluster, risk in pairs if risk.grown),
                **clusters,
            )
        )
    by_risks: dict[tuple[tuple[str, ...], tuple[str, ...], Result], list[str]] = defaultdict(list)
    for cluster, findings in judged:
        open_risks = [risk for risk in (*findings.guard_risks, *findings.risks) if risk.open]
        applies = tuple(sorted(risk.name for risk in open_risks if risk.applies == "True"))
        unknown = tuple(sorted(risk.name for risk in open_risks if risk.applies == "Unknown"))
        by_risks[applies, unknown, findings.result].append(cluster)
    groups = (
        Group(tuple(clusters), applies, unknown, result) for (applies, unknown, result), clusters in by_risks.items()
    )
    return Matrix(
        clusters=tuple(result_by_cluster),
        results=result_by_cluster,
        rows=tuple(sorted(rows, key=lambda row: row.order)),
        groups=tuple(sorted(groups, key=lambda group: (-len(group.clusters), group.clusters))),
        failed=failed,
    )


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def group_alike(items: Iterable[T], key: Callable[[T], K]) -> tuple[tuple[K, tuple[T, ...]], ...]:
    """Returns the items by their key, the largest group first; groups of one size as they come."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return tuple(sorted(((shared, tuple(group)) for shared, group in groups.items()), key=lambda pair: -len(pair[1])))
