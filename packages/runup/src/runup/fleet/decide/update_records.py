"""The records of each cluster and of people's decisions in the journal of a fleet update, and their meaning. Pure.

A record is what this process knew last. The cluster's own state wins over it: an UpdateRunStatus of the record is the
input of `runup.rollout.decide.run_steps.decide`, which observes first.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec.structs import replace

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.error_types import InputError
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import (
    API_VERSION,
    Candidate,
    Control,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.fleet.decide.members import Member
from runup.fleet.decide.update_turns import ClusterProgress, Decisions, State
from runup.fleet.decide.update_turns import Control as FleetControl
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import CLOSED, UNKNOWN, Gate, Verdict
from runup.rollout.decide.gates.observed import Approval
from runup.rollout.decide.run_steps import FINISHED

NAME_LABEL = "kubernetes.io/metadata.name"
Kind = Literal["intent", "outcome", "approval", "control", "skip", "retry", "identity"]


class UpdateMember(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of the update, as chosen at the start. `uid` is that of namespace kube-system, empty if unknown."""

    name: str
    stage: int
    uid: str = ""
    context: str = ""
    kubeconfig: str = ""
    labels: dict[str, str] = {}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The newest knowledge about one cluster. `attempt` counts retries.

    `run` is the name of its UpdateRun where the component update-policy is installed; `permit_until` is that of the
    run, in the cluster's time. `checked` is when a preflight was requested last, `settled` when the cluster was done
    or skipped.
    """

    uid: str
    attempt: int = 0
    status: UpdateRunStatus = UpdateRunStatus()
    run: str = ""
    permit_until: datetime | None = None
    checked: datetime | None = None
    settled: datetime | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the journal: what was intended, done or decided. `cluster` is a name, empty for the whole update."""

    number: int
    at: datetime
    kind: Kind
    cluster: str = ""
    data: dict[str, str] = {}


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of people: by the entries of the journal, the newest counts."""

    decisions: Decisions = Decisions()
    skipped: frozenset[str] = frozenset()
    retries: Mapping[str, int] = {}


def requests_of(entries: Iterable[Entry], digest: str) -> Requests:
    """Returns what the entries ask for; `digest` is that of the target's image, to which approvals are bound."""
    control: FleetControl = "Run"
    approvals: dict[str, list[Approval]] = {}
    skipped: set[str] = set()
    retries: Counter[str] = Counter()
    for entry in entries:
        if entry.kind == "control":
            control = _CONTROLS[entry.data["control"]]
        elif entry.kind == "approval":
            end = entry.data.get("until")
            approval = Approval(
                gate=entry.data["gate"],
                approved_by=entry.data["by"],
                created=entry.at,
                not_after=datetime.fromisoformat(end) if end else None,
                image_digests=(digest,),
                reason=entry.data.get("reason", ""),
            )
            approvals.setdefault(entry.data["stage"], []).append(approval)
        elif entry.kind == "skip":
            skipped.add(entry.cluster)
        elif entry.kind == "retry":
            skipped.discard(entry.cluster)
            retries[entry.cluster] += 1
    return Requests(
        decisions=Decisions(control=control, approvals={name: tuple(each) for name, each in approvals.items()}),
        skipped=frozenset(skipped),
        retries=retries,
    )


_CONTROLS: dict[str, FleetControl] = {"Run": "Run", "Hold": "Hold", "Abort": "Abort"}


def open_intents(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Returns the newest intent of each cluster that has no outcome: only the cluster shows what came of it."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind == "intent":
            found[entry.cluster] = entry
        elif entry.kind == "outcome":
            found.pop(entry.cluster, None)
    return found


def members_of(update: FleetUpdate, members: Sequence[Member]) -> tuple[tuple[UpdateMember, ...], tuple[str, ...]]:
    """Returns the clusters of the stages, and the names of those that no stage selects.

    A cluster has the label kubernetes.io/metadata.name besides those of the inventory. Raises InputError for a dump,
    an empty stage, or a cluster in two stages.
    """
    chosen: list[UpdateMember] = []
    left_out: list[str] = []
    for member in members:
        if member.dump or member.has_travelled:
            raise InputError(
                f"{member.name} is read from {member.place}, and an update needs a live cluster: give a context"
            )
        labels = {**member.labels, NAME_LABEL: member.name}
        stages = [
            index
            for index, stage in enumerate(update.spec.stages)
            if stage.selector is None or stage.selector.matches(labels)
        ]
        if len(stages) > 1:
            first, second = (update.spec.stages[index].name for index in stages[:2])
            way_out = f"let the selector of {second} leave it out, for example with operator NotIn"
            raise InputError(
                f"{update.metadata.name}: cluster {member.name} is in stages {first} and {second}: {way_out}"
            )
        if not stages:
            left_out.append(member.name)
            continue
        chosen.append(
            UpdateMember(
                name=member.name,
                stage=stages[0],
                context=member.context,
                kubeconfig=member.kubeconfig,
                labels=labels,
            )
        )
    for index, stage in enumerate(update.spec.stages):
        if not any(each.stage == index for each in chosen):
            keys = ", ".join(sorted({key for member in members for key in member.labels} | {NAME_LABEL}))
            raise InputError(
                f"{update.metadata.name}: spec.stages[{stage.name}]: the selector fits no cluster; "
                f"the labels that there are: {keys}"
            )
    return tuple(chosen), tuple(left_out)


def run_of(update: FleetUpdate, record: Record, *, control: Control = "Run", requested_by: str = "") -> UpdateRun:
    """Returns the UpdateRun of a cluster: it is created where the component is installed, and else kept here only."""
    spec = update.spec
    key = f"{update.metadata.name} {spec.target.image} {record.attempt}"
    suffix = hashlib.sha256(key.encode()).hexdigest()[:6]
    return UpdateRun(
        api_version=API_VERSION,
        kind="UpdateRun",
        metadata=ObjectMeta(name=f"{spec.target.version.lower().replace('+', '-')}-{suffix}", uid=record.uid),
        spec=UpdateRunSpec(
            target=Candidate(version=spec.target.version, image=spec.target.image),
            requested_by=requested_by,
            control=control,
            block_versions=spec.policy.block_versions,
            gates=spec.policy.gates,
            calendars=spec.policy.calendars,
            soak=spec.policy.soak,
            deadline=spec.policy.deadline,
            actuator=spec.policy.actuator,
        ),
        status=record.status,
    )


def progress_of(
    update: FleetUpdate,
    member: UpdateMember,
    record: Record,
    verdict: Verdict | None,
    *,
    problem: str = "",
    skipped: bool = False,
    now: datetime,
    cluster_now: datetime | None = None,
) -> ClusterProgress:
    """Returns the progress of a cluster. `verdict` is that on its own gates, None if the cluster was not read.

    `problem` says why it was not. `now` is this machine's time, `cluster_now` the cluster's.
    """
    status = record.status
    state, gate = _state(record, verdict, problem, skipped=skipped)
    permitted = record.permit_until is not None and (cluster_now or now) < record.permit_until
    deadline = parse(update.spec.policy.deadline, "deadline") + parse(update.spec.policy.soak, "soak")
    began = status.started or (status.intent.decided_at if status.intent is not None else None)
    return ClusterProgress(
        name=member.name,
        stage=member.stage,
        labels=member.labels,
        state=state,
        begun=status.step not in ("Waiting", *FINISHED) or (permitted and status.step == "Waiting"),
        started=status.started is not None and status.step not in FINISHED,
        settled=record.settled,
        overdue=bool(problem) and began is not None and status.step not in FINISHED and now >= began + deadline,
        gate=gate,
    )


def _state(record: Record, verdict: Verdict | None, problem: str, *, skipped: bool) -> tuple[State, Gate | None]:
    """Returns the state of a cluster and the gate that explains it."""
    status = record.status
    reason = status.decisions[-1].reason if status.decisions else status.step
    message = status.decisions[-1].message if status.decisions else ""
    why = Gate(name="run", state=CLOSED, reason=reason, message=message)
    if status.step == "Done":
        return ("skipped" if reason == "Skipped" else "done"), why
    if status.step == "Aborted":
        return "skipped", why
    if skipped and (status.started is None or status.step in FINISHED):
        return "skipped", Gate(name="run", state=CLOSED, reason="Skipped", message="A person skipped the cluster.")
    if status.step in ("Failed", "Superseded"):
        return "failed", why
    if problem:
        return "unknown", Gate(name="cluster", state=UNKNOWN, reason="Unreachable", message=problem)
    if status.step != "Waiting":
        since = f" since {timestamp(status.started)}" if status.started else ""
        return "running", Gate(name="run", state=CLOSED, reason=status.step, message=f"{status.step}{since}.")
    if verdict is not None and verdict.open:
        return "ready", None
    return "waiting", verdict.closed_by if verdict is not None else None


# How long after a request of a preflight the next one may follow.
PREFLIGHT_EVERY = timedelta(hours=1)


def may_check(record: Record, verdict: Verdict, now: datetime) -> bool:
    """Reports whether to request a preflight now: only the preflight is missing or old, and none was requested lately.

    docs/reference/update-policy.md: at most one an hour for each run.
    """
    gate = next((each for each in verdict.gates if each.name == "preflight"), None)
    if gate is None or gate.reason not in ("PreflightMissing", "PreflightOld", "PreflightOtherRelease"):
        return False
    return record.checked is None or now >= record.checked + PREFLIGHT_EVERY


def refuse_decision(kind: Kind, name: str, clusters: Mapping[str, ClusterProgress]) -> None:
    """Raises InputError for a cluster that cannot be retried or skipped."""
    progress = clusters.get(name)
    if progress is None:
        raise InputError(f"the update has no cluster {name}; it has {', '.join(clusters)}")
    if kind == "retry" and progress.state not in ("failed", "skipped"):
        raise InputError(f"cluster {name} is {progress.state}: only a cluster that failed or was skipped is retried")
    if kind == "skip" and (progress.started or progress.state == "done"):
        word = "is done" if progress.state == "done" else "has begun its update, which continues"
        raise InputError(f"cluster {name} {word}, so it cannot be skipped")


def retried(record: Record, retries: int) -> Record:
    """Returns the record of a cluster that a person retried: a new run, with its gates from the beginning."""
    return record if retries <= record.attempt else Record(uid=record.uid, attempt=retries)


def settled(record: Record, progress: ClusterProgress, now: datetime) -> Record:
    """Returns the record with the time at which the cluster was done or skipped; none for one that is not."""
    if progress.state not in ("done", "skipped"):
        return replace(record, settled=None)
    return record if record.settled is not None else replace(record, settled=now)
