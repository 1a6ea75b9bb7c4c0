"""Lays the findings of many clusters side by side: each risk with its clusters, and clusters with the same risks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
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
    def evaluated(self) -> tuple[str, ...]:
        """The clusters that have a result."""
        return tuple(name for name, result in self.results.items() if result.code != Result.COULD_NOT_RUN.code)

    @property
    def accepting(self) -> int:
        """The number of clusters with nothing in the way only because risks are accepted."""
        accepted = {cluster for row in self.rows for cluster in row.accepted}
        return sum(self.results[cluster] is Result.CLEAR for cluster in accepted)


def matrix(results: Iterable[tuple[str, Findings]]) -> Matrix:
    """Returns the matrix of the clusters' findings, in the order in which the clusters are given.

    The findings are iterated once, and only what the matrix shows of them is kept.
    """
    result_by_cluster: dict[str, Result] = {}
    failed: list[tuple[str, str]] = []
    drafts: dict[str, _RowDraft] = {}
    by_risks: dict[tuple[tuple[str, ...], tuple[str, ...], Result], list[str]] = defaultdict(list)
    for cluster, findings in results:
        result_by_cluster[cluster] = findings.result
        if findings.result.code == Result.COULD_NOT_RUN.code:
            failed.append((cluster, findings.failed.message if findings.failed else "it has no result yet"))
            continue
        risks = (*findings.guard_risks, *findings.risks)
        for risk in risks:
            if risk.applies != "False":
                drafts.setdefault(risk.name, _RowDraft(risk)).add(cluster, risk)
        open_risks = [risk for risk in risks if risk.open]
        applies = tuple(sorted(risk.name for risk in open_risks if risk.applies == "True"))
        unknown = tuple(sorted(risk.name for risk in open_risks if risk.applies == "Unknown"))
        by_risks[applies, unknown, findings.result].append(cluster)
    groups = (
        Group(tuple(clusters), applies, unknown, result) for (applies, unknown, result), clusters in by_risks.items()
    )
    return Matrix(
        clusters=tuple(result_by_cluster),
        results=result_by_cluster,
        rows=tuple(sorted((draft.row() for draft in drafts.values()), key=lambda row: row.order)),
        groups=tuple(sorted(groups, key=lambda group: (-len(group.clusters), group.clusters))),
        failed=tuple(failed),
    )


class _RowDraft:
    """A row of the matrix while clusters are added to it."""

    def __init__(self, risk: Risk) -> None:
        self._gravest = risk
        self._clusters: dict[str, list[str]] = defaultdict(list)
        self._because: dict[str, None] = {}
        self._grown: list[tuple[str, str]] = []

    def add(self, cluster: str, risk: Risk) -> None:
        """Adds a cluster that has the risk."""
        if _gravity(risk) < _gravity(self._gravest):
            self._gravest = risk
        state = "applies" if risk.applies == "True" else "unknown"
        self._clusters["accepted" if risk.accepted else "informs" if risk.informs else state].append(cluster)
        if risk.refuses:
            self._clusters["refuses"].append(cluster)
        if risk.accepted and risk.because:
            self._because[risk.because] = None
        if risk.grown:
            self._grown.append((cluster, risk.grown_text))

    def row(self) -> RiskRow:
        """Returns the row of all clusters that were added."""
        return RiskRow(
            name=self._gravest.name,
            severity=self._gravest.severity,
            message=self._gravest.message,
            fix=self._gravest.fix,
            because=tuple(self._because),
            grown=tuple(self._grown),
            **{state: tuple(names) for state, names in self._clusters.items()},
        )


def _gravity(risk: Risk) -> tuple[bool, int]:
    """Returns the sort key of a risk's findings in several clusters: open ones first, the gravest on top."""
    return not risk.open, severity_rank(risk.severity)


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def group_alike(items: Iterable[T], key: Callable[[T], K]) -> tuple[tuple[K, tuple[T, ...]], ...]:
    """Returns the items by their key, the largest group first; groups of one size as they come."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return tuple(sorted(((shared, tuple(group)) for shared, group in groups.items()), key=lambda pair: -len(pair[1])))
