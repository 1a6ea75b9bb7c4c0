"""The state of each cluster in the console, and its limits. Pure.

In: one `Evaluation` after the other, with its size. Out: a `Board`, which is frozen, so that a page that is being made
never sees half of a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import is_to_come
from runup.api.config_v1 import ConditionalUpdate, Release
from runup.fleet.decide.members import Member
from runup.fleet.decide.trend import ReportStep
from runup.preflight.decide.findings import Findings
from runup.preflight.decide.preflight_conditions import FAILED
from runup.preflight.decide.preflight_state import Phase

# Reports by size, in bytes as they are sent between processes: of one cluster, and of all of them together.
MAX_OF_ONE = 16 * 1024 * 1024
MAX_OF_ALL = 512 * 1024 * 1024


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """The updates that a ClusterVersion offers: from the release `origin`, in `channel`, which is one of `channels`.

    `upstream` is the update service that it names, empty for the default one.
    """

    origin: str = ""
    channel: str = ""
    available: tuple[Release, ...] = ()
    conditional: tuple[ConditionalUpdate, ...] = ()
    channels: tuple[str, ...] = ()
    upstream: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """An object that risks are about: its YAML, or why it is not shown."""

    name: str
    risks: tuple[str, ...]
    yaml: str = ""
    why: str = ""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one cluster's preflight, with what its pages show next to it.

    `steps` are of its kept reports, if the console reads a store; `history_notes` say which of them are not there.
    """

    findings: Findings
    notes: tuple[str, ...] = ()
    collect: str = ""
    offered: Offered | None = None
    evidence: tuple[Evidence, ...] = ()
    steps: tuple[ReportStep, ...] = ()
    history_notes: tuple[str, ...] = ()


class BoardEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster on the board: the newest evaluation, when it was made, and the last one with a result before it.

    `size` and `good_size` are what the two take, in bytes. A cluster that was not evaluated yet has no `evaluated`.
    """

    member: Member
    evaluated: Evaluation | None = None
    at: datetime | None = None
    last_good: Findings | None = None
    size: int = 0
    good_size: int = 0


class Board(msgspec.Struct, frozen=True):
    """The clusters by name. `version` counts the changes. `kept` says that clusters are read from kept reports."""

    entries: Mapping[str, BoardEntry] = {}
    version: int = 0
    kept: bool = False
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes that all evaluations take."""
        return sum(entry.size + entry.good_size for entry in self.entries.values())


def failed_findings(problem: str) -> Findings:
    """Returns the findings of a cluster that could not be evaluated."""
    condition = Condition(type=FAILED, status="True", reason="NotJudged", message=problem)
    return Findings(source="", target="", conditions=(condition,))


def unknown_evaluation(problem: str) -> Evaluation:
    """Returns the evaluation of a cluster of which no report can be read, for the reason `problem`."""
    return Evaluation(findings=failed_findings(problem), history_notes=(problem,))


def with_members(board: Board, members: Iterable[Member], notes: Iterable[str] = ()) -> Board:
    """Returns the board with exactly these clusters, and keeps their state."""
    ordered = sorted(members, key=lambda member: member.name)
    entries = {member.name: board.entries.get(member.name, BoardEntry(member=member)) for member in ordered}
    return replace(board, entries=entries, version=board.version + 1, notes=tuple(dict.fromkeys(notes)))


def with_evaluation(
    board: Board, name: str, evaluated: Evaluation, size: int, now: datetime, *, most: int = MAX_OF_ALL
) -> Board:
    """Returns the board with a new evaluation of a cluster; `size` is what it takes.

    An evaluation for which there is no room is replaced by the reason: an absent result is never a good one. A cluster
    that is no longer named stays away. What was found before a failure is kept only where there is room for it, too.
    """
    previous_entry = board.entries.get(name)
    if previous_entry is None:
        return board
    others_size = board.size - previous_entry.size - previous_entry.good_size
    if size > MAX_OF_ONE or others_size + size > most:
        # The evaluation without what it can do without, and says so.
        notes = evaluated.notes + (
            ("there is no room for the objects that the risks name",) if evaluated.evidence else ()
        )
        history_notes = evaluated.history_notes
        if len(evaluated.steps) > 1:
            history_notes += (f"there is no room for {len(evaluated.steps)} reports: only the newest is shown",)
        evaluated, size = (
            replace(evaluated, notes=notes, evidence=(), steps=evaluated.steps[-1:], history_notes=history_notes),
            _size_without_evidence(evaluated, size),
        )
    if size > MAX_OF_ONE or others_size + size > most:
        text = (
            f"its report takes {size // 1024} KiB, and the console keeps {MAX_OF_ONE // 1024} KiB of one cluster and "
            f"{most // 1024} KiB of all; look at it with `runup preflight run`, or serve fewer clusters"
        )
        evaluated, size = unknown_evaluation(text), 0
    last_good, good_size = _last_good(previous_entry)
    if evaluated.findings.completed or others_size + size + good_size > most:
        last_good, good_size = None, 0
    entry = BoardEntry(
        member=previous_entry.member, evaluated=evaluated, at=now, last_good=last_good, size=size, good_size=good_size
    )
    return replace(board, entries={**board.entries, name: entry}, version=board.version + 1)


def _last_good(entry: BoardEntry) -> tuple[Findings | None, int]:
    """Returns the last findings of a preflight that was completed, and what they take at most."""
    if entry.evaluated and entry.evaluated.findings.completed:
        return entry.evaluated.findings, _size_without_evidence(entry.evaluated, entry.size)
    return entry.last_good, entry.good_size


def _size_without_evidence(evaluated: Evaluation, size: int) -> int:
    return max(0, size - sum(len(evidence.yaml.encode()) for evidence in evaluated.evidence))


def findings_now(board: Board, name: str, now: datetime, max_age: timedelta) -> Findings:
    """Returns the current findings of a cluster. A result that is older than `max_age` is unknown.

    A dump is of one moment and does not become older by being looked at.
    """
    entry = board.entries[name]
    if entry.evaluated is None:
        return Findings(source="", target="")
    findings = entry.evaluated.findings
    if findings.completed and not findings.of_dump and is_old(findings, now, max_age):
        return replace(findings, phase=Phase.OUTDATED)
    return findings


def is_old(findings: Findings, now: datetime, max_age: timedelta) -> bool:
    """Reports whether the findings are older than `max_age`; of an unknown age, or of a time to come, counts as old."""
    return findings.observed is None or now - findings.observed > max_age or is_to_come(findings.observed, now)
