"""Drives a fleet update from this process: reads the clusters, decides who has a turn, and carries the acts out.

A pass reads every cluster first, and each cluster's state wins over the journal. An act has its intent in the journal
before and its outcome after it; an intent without an outcome is settled by the next reading (docs/decisions/0138).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from kubekit.error_types import InputError
from kubekit.kube.clock import Clock
from kubekit.lang.text import timestamp
from runup.api.update_policy_v1alpha1 import Control, UpdateRun, UpdateRunStatus
from runup.evaluation.workers import Lost, Pool, Retried, workers_for
from runup.fleet.control.update_clusters import Reading, observe_cluster, read, send, stored_run
from runup.fleet.control.update_journal import Journal, Start, create
from runup.fleet.decide.update_records import (
    Record,
    Requests,
    UpdateMember,
    may_check,
    members_of,
    open_intents,
    progress_of,
    requests_of,
    retried,
    run_of,
    settled,
)
from runup.fleet.decide.update_turns import ClusterProgress, Turns, decide_turns
from runup.rollout.control.fleet_files import FleetFile
from runup.rollout.decide import calendar
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import CLOSED, OPEN, Gate, Verdict
from runup.rollout.decide.gates.observed import Observed
from runup.rollout.decide.run_steps import BEFORE_START, FINISHED, Act, Situation, decide

if TYPE_CHECKING:
    from runup.fleet.decide.members import Member
    from runup.process.connection import Connection

# A cluster that takes longer counts as unreachable.
READ_LIMIT_S = 120.0
# A start that was refused is not sent again for this long.
REFUSED_FOR = timedelta(minutes=5)
NO_TURN = Gate(name="turn", state=CLOSED, reason="NoTurn", message="The cluster has no turn.")


class SurveyedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster in a survey. `verdict` is that on its own gates, None if it could not be read."""

    member: UpdateMember
    record: Record
    progress: ClusterProgress
    reading: Reading
    run: UpdateRun
    verdict: Verdict | None = None
    observed: Observed | None = None


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The whole update at one time."""

    start: Start
    clusters: tuple[SurveyedCluster, ...]
    turns: Turns
    requests: Requests


def read_clusters(
    start: Start, connection: Connection, members: Sequence[UpdateMember] | None = None
) -> dict[str, Reading]:
    """Returns each cluster as it is now, by name; a few are read at once, each in a separate process."""
    chosen = start.members if members is None else members
    work = partial(read, update=start.update, calendars=start.calendars, connection=connection)
    if len(chosen) == 1:
        return {chosen[0].name: work(chosen[0])}
    found: dict[str, Reading] = {}
    for index, answer in Pool(work, min(workers_for(None, live=True), len(chosen)), READ_LIMIT_S).run(chosen):
        name = chosen[index].name
        if isinstance(answer, Lost):
            found[name] = Reading(name=name, problem=answer.why)
        elif not isinstance(answer, Retried):
            found[name] = answer
    return found


def survey_of(
    start: Start,
    readings: Mapping[str, Reading],
    records: Mapping[str, Record],
    requests: Requests,
    *,
    clock: Clock,
    refusals: Mapping[str, Gate] | None = None,
) -> Survey:
    """Returns the survey of clusters that were read. Nothing is read or written."""
    now = clock.now()
    found = []
    for member in start.members:
        reading = readings[member.name]
        uid = member.uid or reading.uid
        record = retried(records.get(uid, Record(uid=uid)), requests.retries.get(member.name, 0))
        found.append(
            _surveyed(
                start,
                member,
                reading,
                record,
                requests=requests,
                clock=clock,
                refusal=(refusals or {}).get(member.name),
            )
        )
    calendars = {each.metadata.name: calendar.read(each) for each in start.calendars}
    turns = decide_turns(start.update, [each.progress for each in found], requests.decisions, calendars, now=now)
    return Survey(start=start, clusters=tuple(found), turns=turns, requests=requests)


def _surveyed(
    start: Start,
    member: UpdateMember,
    reading: Reading,
    record: Record,
    *,
    requests: Requests,
    clock: Clock,
    refusal: Gate | None,
) -> SurveyedCluster:
    """Returns one cluster with what its own state shows, which wins over the record."""
    is_skipped = member.name in requests.skipped
    control: Control = "Abort" if requests.decisions.control == "Abort" else "Skip" if is_skipped else "Run"
    run = run_of(start.update, record, control=control)
    observed: Observed | None = None
    verdict: Verdict | None = None
    if reading.inputs is not None:
        if reading.has_runs:
            stored = stored_run(reading, run)
            run = stored or run
            status = stored.status if stored is not None else UpdateRunStatus()
            permit = stored.spec.permit_until if stored is not None else None
            name = stored.metadata.name if stored is not None else ""
            record = replace(record, status=status, permit_until=permit, run=name)
        observed, verdict = observe_cluster(reading, run)
        if refusal is not None:
            verdict = _with_refusal(verdict, refusal)
        if not reading.has_runs:
            record = replace(record, status=_observed_status(run, reading, observed, verdict))
            run = replace(run, status=record.status)
    progress = progress_of(
        start.update,
        member,
        record,
        verdict,
        problem=reading.problem,
        skipped=is_skipped,
        now=clock.now(),
        cluster_now=reading.read_at,
    )
    return SurveyedCluster(
        member=member,
        record=settled(record, progress, clock.now()),
        progress=progress,
        reading=reading,
        run=run,
        verdict=verdict,
        observed=observed,
    )


def _with_refusal(verdict: Verdict, refusal: Gate) -> Verdict:
    """Returns the verdict with a request that was refused lately: of a start, or of a preflight that is missing."""
    if refusal.name != "preflight":
        return Verdict((*verdict.gates, refusal))
    return Verdict(
        tuple(
            replace(gate, message=f"{gate.message} {refusal.message}")
            if gate.name == refusal.name and gate.state != OPEN
            else gate
            for gate in verdict.gates
        )
    )


def _observed_status(run: UpdateRun, reading: Reading, observed: Observed, verdict: Verdict) -> UpdateRunStatus:
    """Returns the status of a run as the cluster shows it: what began or ended, without starting or ending anything."""
    if run.status.step in FINISHED:
        return run.status
    outcome = decide(run, _situation(reading, observed, Verdict((*verdict.gates, NO_TURN))), _now(reading))
    ends_before_start = outcome.status.started is None and outcome.status.step != "Done"
    is_skip = outcome.status.step == "Done" and outcome.status.decisions[-1].reason == "Skipped"
    if outcome.status.step in BEFORE_START or ends_before_start or is_skip:
        return replace(run.status, from_=outcome.status.from_)
    return outcome.status


def _situation(reading: Reading, observed: Observed, verdict: Verdict, leader: str = "") -> Situation:
    assert reading.inputs is not None
    cluster = reading.inputs.objects.cluster
    return Situation(
        cluster=cluster,
        verdict=verdict,
        health=observed.health,
        leader=leader,
        owns_request=reading.inputs.owns_request,
        pools=reading.inputs.objects.known_pools,
        nodes=reading.inputs.objects.nodes,
    )


def _now(reading: Reading) -> datetime:
    assert reading.inputs is not None
    return reading.inputs.now


def survey_file(
    file: FleetFile, members: Sequence[Member], connection: Connection, clock: Clock
) -> tuple[Survey, tuple[str, ...]]:
    """Returns the survey of an update that has not begun, and the clusters that no stage selects. Writes nothing.

    Raises InputError for two clusters that are one.
    """
    chosen, left_out = members_of(file.update, members)
    start = Start(update=file.update, calendars=file.calendars, members=chosen)
    readings = read_clusters(start, connection)
    identified = tuple(replace(each, uid=readings[each.name].uid) for each in chosen)
    names: dict[str, str] = {}
    for each in identified:
        if each.uid and each.uid in names:
            way_out = "a cluster counts once, so give it once"
            raise InputError(f"{names[each.uid]} and {each.name} are one cluster ({each.uid}): {way_out}")
        names[each.uid] = each.name
    start = replace(start, members=identified)
    return survey_of(start, readings, {}, Requests(), clock=clock), left_out


def begin(path: Path, survey: Survey) -> None:
    """Creates the journal of a surveyed update. Raises BadJournal."""
    create(path, survey.start)


class Driver:
    """Reads and drives the update of an open journal."""

    def __init__(self, journal: Journal, connection: Connection, clock: Clock) -> None:
        self._journal = journal
        self._connection = connection
        self._clock = clock
        self._leader = uuid4().hex[:12]
        self._refusals: dict[str, Gate] = {}

    def survey(self) -> Survey:
        """Returns the update as it is now. Nothing is written."""
        entries = self._journal.entries()
        start = self._identified(self._journal.start)
        requests = requests_of(entries, _digest(start))
        found = read_clusters(start, self._connection)
        readings = {name: self._checked(name, each, start) for name, each in found.items()}
        now = self._clock.now()
        self._refusals = {name: gate for name, gate in self._refusals.items() if gate.until and now < gate.until}
        return survey_of(start, readings, self._journal.records(), requests, clock=self._clock, refusals=self._refusals)

    def _identified(self, start: Start) -> Start:
        """Returns the start with the UIDs of clusters that could not be read then."""
        uids = {entry.cluster: entry.data["uid"] for entry in self._journal.entries() if entry.kind == "identity"}
        members = tuple(replace(each, uid=each.uid or uids.get(each.name, "")) for each in start.members)
        return replace(start, members=members)

    def _checked(self, name: str, reading: Reading, start: Start) -> Reading:
        """Returns the reading, or why it is not of the cluster that was started with."""
        if not reading.uid:
            return reading
        member = next(each for each in start.members if each.name == name)
        if member.uid and member.uid != reading.uid:
            return Reading(name=name, problem=f"the context leads to another cluster ({reading.uid}) than at the start")
        if other := next((each.name for each in start.members if each.uid == reading.uid and each.name != name), ""):
            return Reading(name=name, problem=f"it is the same cluster as {other}, which counts once")
        return reading

    def make_pass(self) -> tuple[Survey, bool]:
        """Reads the clusters and carries out what is due; returns the survey and whether anything was done."""
        survey = self.survey()
        before, intents = self._journal.records(), open_intents(self._journal.entries())
        unidentified = {each.name for each in self._identified(self._journal.start).members if not each.uid}
        acted = False
        for each in survey.clusters:
            name, uid, now = each.member.name, each.reading.uid, self._clock.now()
            if not uid:
                continue
            if name in unidentified:
                self._journal.add("identity", now, name, {"uid": uid})
            if (intent := intents.get(name)) is not None:
                data = {"intent": str(intent.number), "result": "Observed", "message": each.record.status.step}
                self._journal.add("outcome", now, name, data)
            known = before.get(uid, Record(uid=uid))
            if known != each.record:
                self._journal.keep(each.record)
                acted = acted or known.status.step != each.record.status.step
        for each in survey.clusters:
            if each.reading.inputs is not None:
                step = self._advance_run if each.reading.has_runs else self._advance
                acted = step(each, survey) or acted
        return survey, acted

    def _advance(self, cluster: SurveyedCluster, survey: Survey) -> bool:
        """Advances a cluster without the component: its run is kept in the journal only."""
        status = cluster.record.status
        name, turns = cluster.member.name, survey.turns
        if status.step in FINISHED:
            return False
        if status.started is not None:
            # Observed already; only a request that the operator refuses is withdrawn.
            return self._decide(cluster, NO_TURN, survey)
        if name not in turns.granted:
            return self._decide(cluster, turns.refused.get(name, NO_TURN), survey)
        changed = self._decide(cluster, None, survey, commits=False)
        if self._journal.records()[cluster.record.uid].status.step != "Committing":
            return changed
        # Read again, so that the start is evaluated on what the cluster is right before it.
        self._start(cluster.member, survey)
        return True

    def _start(self, member: UpdateMember, survey: Survey) -> None:
        """Carries out the intended start of a cluster, unless a person has held the update meanwhile."""
        requests = requests_of(self._journal.entries(), _digest(survey.start))
        reading = read_clusters(survey.start, self._connection, [member])[member.name]
        reading = self._checked(member.name, reading, survey.start)
        if reading.inputs is None or requests.decisions.control != "Run" or member.name in requests.skipped:
            return
        for _ in range(2):
            # The first round may renew the intent for a newer version of ClusterVersion, the second one carries it out.
            record = self._journal.records()[reading.uid]
            fresh = _surveyed(survey.start, member, reading, record, requests=requests, clock=self._clock, refusal=None)
            turn = None if fresh.record.status.started is None else NO_TURN
            if self._decide(fresh, turn, survey) or record.status.step != "Committing":
                return

    def _decide(self, cluster: SurveyedCluster, turn: Gate | None, survey: Survey, *, commits: bool = True) -> bool:
        """Stores the next status of a run, and then carries out its act; returns whether anything was done.

        Without `commits` a start is left for later.
        """
        assert cluster.verdict is not None and cluster.observed is not None
        gates = cluster.verdict.gates if turn is None else (*cluster.verdict.gates, turn)
        run = replace(cluster.run, status=cluster.record.status)
        now = _now(cluster.reading)
        outcome = decide(run, _situation(cluster.reading, cluster.observed, Verdict(gates), leader=self._leader), now)
        act: str = self._allowed(outcome.act, cluster, survey)
        if act == "commit" and not commits:
            return False
        status = outcome.status
        if status.step == "Superseded" and status.started is None:
            # A release that is not offered (yet) closes the gate; a person decides whether to skip the cluster.
            status, act = cluster.record.status, ""
        record = replace(cluster.record, status=status)
        if record != cluster.record:
            self._journal.keep(record)
        if act:
            self._act(act, cluster, replace(run, status=status), record)
        return bool(act) or status.step != cluster.record.status.step

    def _allowed(self, act: Act, cluster: SurveyedCluster, survey: Survey) -> Act:
        """Returns the act, or none for a preflight that is not needed or whose stage has not come."""
        if act != "preflight":
            return act
        assert cluster.verdict is not None
        has_come = not survey.turns.stages[cluster.member.stage].closed
        runs = survey.requests.decisions.control == "Run" and survey.turns.outcome != "Failed"
        return act if has_come and runs and may_check(cluster.record, cluster.verdict, self._clock.now()) else ""

    def _act(
        self,
        act: str,
        cluster: SurveyedCluster,
        run: UpdateRun,
        record: Record,
        *,
        permit_until: datetime | None = None,
    ) -> None:
        """Carries out one act between its intent and its outcome."""
        assert cluster.reading.inputs is not None
        version = cluster.reading.inputs.objects.cluster.metadata.resource_version
        name, now = cluster.member.name, self._clock.now()
        if act == "preflight":
            record = replace(record, checked=now)
        data = {"act": act, "image": run.spec.target.image, "resourceVersion": version}
        if permit_until is not None:
            data["permitUntil"] = timestamp(permit_until)
        number = self._journal.add("intent", now, name, data, record=record)
        acted = send(act, cluster.member, cluster.reading, run, connection=self._connection, permit_until=permit_until)
        outcome = {"intent": str(number), "result": acted.result, "message": acted.message}
        if acted.result == "Lost":
            # The intent stays open: the next reading settles it.
            return
        self._journal.add("outcome", self._clock.now(), name, outcome)
        if acted.result == "Refused":
            end, gate = self._clock.now() + REFUSED_FOR, "preflight" if act == "preflight" else "request"
            message = acted.message.strip()
            self._refusals[name] = Gate(name=gate, state=CLOSED, reason="Refused", message=message, until=end)

    def _advance_run(self, cluster: SurveyedCluster, survey: Survey) -> bool:
        """Advances a cluster with the component: its UpdateRun is created, permitted, or ended."""
        assert cluster.reading.inputs is not None and cluster.verdict is not None
        record, turns, now = cluster.record, survey.turns, _now(cluster.reading)
        status, run = record.status, cluster.run
        has_come = not turns.stages[cluster.member.stage].closed
        wanted = survey.requests.decisions.control
        act, until = "", None
        if not record.run:
            may_create = has_come and wanted == "Run" and turns.outcome != "Failed"
            if may_create and cluster.progress.state in ("waiting", "ready"):
                act, until = "create", now
        elif status.step in FINISHED:
            return False
        elif wanted == "Abort" and run.spec.control != "Abort":
            act = "Abort"
        elif cluster.member.name in survey.requests.skipped and run.spec.control != "Skip" and status.started is None:
            act = "Skip"
        elif status.started is None:
            permit_for = parse(survey.start.update.spec.permit_for, "spec.permitFor")
            left = (record.permit_until or now) - now
            if cluster.member.name in turns.granted:
                if cluster.verdict.open and left < permit_for / 2:
                    act, until = "permit", now + permit_for
            elif left > timedelta():
                act, until = "revoke", now
        if not act:
            return False
        self._act(act, cluster, run, record, permit_until=until)
        return True


def _digest(start: Start) -> str:
    return start.update.spec.target.image.partition("@")[2]


def drive(driver: Driver, clock: Clock, show: Callable[[Survey], None], *, once: bool, interval_s: float) -> Survey:
    """Makes passes until the update is over; with `once` until nothing is left to do now. Returns the last survey."""
    while True:
        survey, acted = driver.make_pass()
        show(survey)
        if survey.turns.over and not acted:
            return survey
        if once and not acted:
            return survey
        clock.pause(0.2 if acted else interval_s)
