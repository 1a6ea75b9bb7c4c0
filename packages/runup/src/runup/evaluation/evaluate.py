"""Evaluates the facts about a cluster for one update, and returns one report. Pure.

Every form of a preflight calls `evaluate`: of a dump, a live cluster, manifests, a fleet, the target's process. The
checks, their names and the report are the same everywhere (docs/decisions/0072 D13).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from runup.advice.decide.acceptance import Accepted
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.kubernetes_path import contexts_on_the_way, steps, with_findings_on_the_way
from runup.checks.decide.model import Check, Context, Snapshot
from runup.checks.decide.results import completed_report, progress_text, running_report
from runup.evaluation.request import Request
from runup.facts.facts import Facts
from runup.report.report import ID, Report

LIVE = "the cluster"
"""The name of a single live cluster."""

OutcomeOf = Callable[[Check, Snapshot, Context], CheckOutcome | None]


class EvaluatedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one cluster: its report, or `problem`, the reason why it is missing.

    `where` names the cluster or dump. `cluster` is its ClusterVersion, if it has one, `accepted` the accepted names
    that count. `notes` are warnings about the dump. `lacking` are the kinds that an Unknown check reads and that the
    dump does not have in full, `collect` is the command that collects a dump with them. `manifests` says what was read
    instead of a cluster. `failed_at` is the time of a dump that has no report.
    `known_id` is the cluster's ID where `cluster` does not
    tell it: of Kubernetes alone the uid of its namespace kube-system.
    """

    where: str
    report: Report | None = None
    cluster: ClusterVersion | None = None
    accepted: Accepted = {}
    problem: str = ""
    notes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    collect: str = ""
    of_dump: bool = False
    manifests: str = ""
    known_id: str = ""
    failed_at: datetime | None = None

    @property
    def cluster_id(self) -> str:
        """The ID by which the cluster is known under any name; empty if it has none that is known."""
        return self.cluster.spec.cluster_id if self.cluster is not None else self.known_id

    def identified(self) -> EvaluatedCluster:
        """Returns the result with the cluster's ID and the accepted risks in its report.

        The report may be kept, and read where the cluster is not.
        """
        if self.report is None:
            return self
        cluster_id = self.cluster_id if ID.fullmatch(self.cluster_id) else self.report.cluster_id
        # As the managing operator stores them: names of risks that the report has.
        accepted = tuple(risk.name for risk in self.report.risks if risk.name in self.accepted)
        return replace(self, report=replace(self.report, cluster_id=cluster_id, accepted=accepted))


def evaluate(
    facts: Facts,
    request: Request,
    checks: Sequence[Check],
    now: datetime,
    *,
    outcome_of: OutcomeOf = run_check,
    others: Sequence[CheckOutcome] = (),
    awaited: Collection[str] = (),
    finished: datetime | None = None,
) -> Report:
    """Returns the report on `facts`: that of a whole evaluation, or of a running one while something is `awaited`.

    `outcome_of` runs one check, or returns its outcome if the caller has run it; None leaves the check out of the
    report. `others` are outcomes of checks that are not in `checks`. `finished` is when the last check ended, by
    default `now`.
    """
    context = request.context(facts, now)
    snapshot = request.visible(facts.snapshot, checks)
    outcomes = [*_outcomes(checks, snapshot, context, outcome_of), *others]
    header = request.header(now)
    if request.kind is ClusterKind.KUBERNETES and request.source != request.target:
        earlier = [
            (on_the_way, _outcomes(checks, snapshot, on_the_way, outcome_of))
            for on_the_way in contexts_on_the_way(context)
        ]
        outcomes = [*with_findings_on_the_way(outcomes, earlier)]
        header = replace(header, steps=steps(snapshot, context, outcomes, earlier))
    if awaited:
        return running_report(header, outcomes, now, progress_text(len(outcomes), len(checks), tuple(awaited)))
    return completed_report(header, outcomes, finished or now)


def _outcomes(
    checks: Sequence[Check], snapshot: Snapshot, context: Context, outcome_of: OutcomeOf
) -> list[CheckOutcome]:
    return [outcome for check in checks if (outcome := outcome_of(check, snapshot, context)) is not None]
