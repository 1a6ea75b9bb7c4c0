"""The state machine of an UpdateRun: from a run and what is observed, the next status and the next act. Pure.

Each pass derives its facts from the cluster, so that a process that was killed at any point continues
from the cluster: an intent without an effect is evaluated again, and an effect without a record is found. An update
that has begun is never stopped or undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find, with_condition
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import cut, printable, timestamp
from runup.advice.decide.update_in_progress import pending_update
from runup.api.config_v1 import ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import (
    Candidate,
    RunDecision,
    RunGate,
    RunIntent,
    Step,
    UpdateRun,
    UpdateRunStatus,
)
from runup.rollout.decide import pools as pool_rules
from runup.rollout.decide.durations import parse
from runup.rollout.decide.gates.gate import Gate, Verdict
from runup.rollout.decide.gates.observed import Health
from runup.rollout.decide.hops import Path, current_target, has_next, hops_of, needs_path, pools_may_wait
from runup.rollout.decide.pools import Pools

FINISHED: frozenset[Step] = frozenset({"Done", "Failed", "Superseded", "Aborted"})
# Before the start of a hop; BetweenHops is what Waiting is for hops after the first.
BEFORE_START: frozenset[Step] = frozenset({"Waiting", "BetweenHops", "Preparing", "Committing"})
UNHEALTHY_FOR = timedelta(minutes=30)
# How long the operator may refuse a release before the request is withdrawn.
REFUSED_FOR = timedelta(minutes=2)
# For how long pools stay paused for a start while a gate is not open.
CLOSED_FOR = timedelta(minutes=15)
# With these the controller writes nothing: a tool reads whether the gates are open.
PASSIVE = frozenset({"None", "Extension"})
MAX_DECISIONS = 50
MAX_TURNS = 16
MAX_MESSAGE = 1024
_ABORTED_LATE = "The update was complete before the run ended; nobody waited for the soak."
GATES_OPEN, PROGRESSING, FAILED, DONE = "GatesOpen", "Progressing", "Failed", "Done"
TARGET_WITHDRAWN = "TargetWithdrawn"
_WITHDRAWN = ("WithdrawnBefore", "WithdrawnDuring")

# `fence` changes ClusterVersion, so that a start which is still on its way is refused; `fence-pools` changes pools, so
# that a pause is. `forget` removes the accepted names of the run's own pauses. `pause`, `resume` and `fence-pools` are
# about the pools of the outcome, the others about ClusterVersion.
Act = Literal["", "preflight", "commit", "withdraw", "fence", "forget", "pause", "resume", "fence-pools"]


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a step: ClusterVersion, the gates, the health, a newer candidate, and who decides.

    `owns_request`: the server names this controller as the writer of `spec.desiredUpdate`; `decide` also counts what
    the run intended. `resumption` has the verdict on resuming each pool that the run keeps paused. `path` are the
    releases to update through, for a run that has to choose them. `nodes` have the kubelets that decide whether pools
    stay paused between hops. `used_up_turns` are turns that the run did not use in time.
    """

    cluster: ClusterVersion
    verdict: Verdict
    health: Health | str
    candidate: Candidate | None = None
    leader: str = ""
    owns_request: bool = False
    pools: Pools = ()
    resumption: Mapping[str, Verdict] = {}
    path: Path = Path()
    nodes: Sequence[Node] = ()
    used_up_turns: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The status to write first, and the act to carry out after it, with the names of the pools that it is about."""

    status: UpdateRunStatus
    act: Act = ""
    pools: tuple[str, ...] = ()


def decide(run: UpdateRun, situation: Situation, now: datetime) -> Outcome:
    """Returns the next status of a run, and the write to ClusterVersion that follows after it is stored."""
    status = run.status
    if status.step in FINISHED:
        return Outcome(status=status)
    status = replace(status, gates=_gates_of(situation.verdict))
    if is_intended(run, situation.cluster):
        situation = replace(situation, owns_request=True)
    if situation.used_up_turns and status.step == "Waiting":
        used_up = (*status.used_up_turns, *situation.used_up_turns)[-MAX_TURNS:]
        status = replace(_step(status, "Waiting", "TurnUsedUp", now), used_up_turns=used_up)
    if not status.from_:
        status = replace(status, from_=situation.cluster.status.desired.version)
    if needs_path(run) and situation.path.hops:
        # The gates of the first hop are evaluated in the next pass.
        outcome = Outcome(status=replace(status, hops=hops_of(situation.path)))
    elif status.step in BEFORE_START:
        outcome = _before_start(run, status, situation, now)
    elif status.step == "ControlPlane":
        outcome = _while_updating(run, status, situation, now)
    elif status.step == "Pools":
        outcome = _while_pools(run, status, situation, now)
    else:
        outcome = _while_soaking(run, status, situation, now)
    outcome = replace(outcome, status=_with_left_pools(run, outcome.status, situation.pools))
    return replace(outcome, status=_with_conditions(outcome.status, situation.verdict, now))


def _before_start(run: UpdateRun, status: UpdateRunStatus, situation: Situation, now: datetime) -> Outcome:
    """Decides while nothing has begun."""
    target, cluster, verdict = current_target(run), situation.cluster, situation.verdict
    begun = status.hop > 0
    if is_completed(cluster, target):
        # With an intent the update began and ended between two passes.
        if status.intent is None and not was_open(status) and not status.paused_pools and not begun:
            return Outcome(status=_step(status, "Done", "AlreadyThere", now))
        gated = status.intent is not None or was_open(status)
        return Outcome(status=_complete(run, _begin(status, now, gated=gated), situation, now))
    if is_updating_to(cluster, target):
        gated = status.intent is not None or (run.spec.actuator in PASSIVE and was_open(status))
        return Outcome(status=_begin(status, now, gated=gated))
    if is_requested(cluster, target) and situation.owns_request:
        if _is_refused(cluster, now):
            dropped = replace(status, intent=None)
            return Outcome(status=_step(dropped, _idle(status), "NotAccepted", now), act="withdraw")
        # An answer that came late may have lost its intent.
        return Outcome(status=_begin(status, now, gated=status.intent is not None))
    closed = {gate.reason for gate in verdict.gates if gate.state == "Closed"}
    newer, message = situation.candidate, ""
    end: tuple[Step, str] | None = None
    if is_aborted(run) or (run.spec.control == "Skip" and not begun):
        end = ("Aborted", "Aborted") if is_aborted(run) else ("Done", "Skipped")
    elif begun:
        # A path that has begun waits for a person: its pools are paused, and another path may not exist.
        end = None
    elif closed & {"TargetWithdrawn", "TargetBlocked"}:
        end = ("Superseded", "WithdrawnBefore")
    elif newer is not None and newer.version != run.spec.target.version:
        end, message = ("Superseded", "NewerRelease"), newer.version
    if end is None:
        return _evaluate(run, status, situation, now)
    # A run that has ended is not looked at again, so its check ends before, and so does what may be on its way.
    if situation.owns_request and _is_checked(cluster, target) and not message:
        return Outcome(status=status, act="withdraw")
    intent = status.intent
    if intent is not None and intent.cluster_version_resource_version == cluster.metadata.resource_version:
        return Outcome(status=status, act="fence")
    if begun:
        return Outcome(status=_step(replace(status, intent=None), *end, now))
    released = _release(run, status, situation.pools)
    if released is not None:
        return released
    return Outcome(status=_step(_without_pools(status), *end, now, message=message))


def _idle(status: UpdateRunStatus) -> Step:
    """Returns the step in which a run waits for the gates of its next hop."""
    return "BetweenHops" if status.hop else "Waiting"


def _release(run: UpdateRun, status: UpdateRunStatus, pools: Pools) -> Outcome | None:
    """Returns what remains to be done until no pool is paused by a run that has not begun; None if nothing does."""
    if not status.paused_pools:
        return None
    if isinstance(pools, str):
        return Outcome(status=status)
    if marked := pool_rules.marked_pools(run, pools):
        return Outcome(status=status, act="resume", pools=marked)
    if unsettled := pool_rules.unsettled_pools(run, pools):
        return Outcome(status=status, act="fence-pools", pools=unsettled)
    return None


def _without_pools(status: UpdateRunStatus) -> UpdateRunStatus:
    return replace(status, intent=None, paused_pools=(), closed_since=None)


def _evaluate(run: UpdateRun, status: UpdateRunStatus, situation: Situation, now: datetime) -> Outcome:
    """Decides on the gates: an intent is stored first, and carried out only on the version that it was made for."""
    cluster, verdict = situation.cluster, situation.verdict
    if run.spec.actuator in PASSIVE:
        return Outcome(status=status)
    if status.step == "Waiting" and status.paused_pools:
        return _release(run, status, situation.pools) or Outcome(status=_without_pools(status))
    version = cluster.metadata.resource_version
    preflight: Act = "preflight" if _needs_preflight(run, situation) else ""
    to_pause = pool_rules.pools_to_pause(run, situation.pools)
    if status.step == "Preparing":
        if _is_over(status, verdict, now):
            return Outcome(status=_step(replace(status, closed_since=None), _idle(status), verdict.reason, now))
        if to_pause:
            return _pause(status, to_pause, now)
        if not verdict.open:
            return Outcome(status=replace(status, closed_since=status.closed_since or now), act=preflight)
        status = replace(status, closed_since=None)
    if not verdict.open:
        if status.step == "Committing":
            before: Step = "Preparing" if status.paused_pools and not status.hop else _idle(status)
            return Outcome(status=_step(replace(status, intent=None), before, verdict.reason, now))
        return Outcome(status=status, act=preflight)
    if to_pause:
        return _pause(_step(replace(status, intent=None), "Preparing", "PausingPools", now), to_pause, now)
    if is_requested(cluster, current_target(run)):
        # Somebody else requested the same update: it is awaited, and the request is not written again.
        return Outcome(status=status)
    intent = status.intent
    if intent is not None and intent.cluster_version_resource_version == version and intent.leader == situation.leader:
        return Outcome(status=status, act="commit")
    new = RunIntent(
        image=current_target(run).image,
        cluster_version_resource_version=version,
        leader=situation.leader,
        decided_at=now,
    )
    evidence = {name: value for gate in verdict.gates for name, value in gate.evidence.items()}
    if status.step == "Committing":
        return Outcome(status=replace(status, intent=new))
    return Outcome(status=replace(_step(status, "Committing", "AllOpen", now, evidence=evidence), intent=new))


def _pause(status: UpdateRunStatus, pools: tuple[MachineConfigPool, ...], now: datetime) -> Outcome:
    """Lists the pools before they are paused, each with the version on which the pause is written."""
    names = tuple(pool.metadata.name for pool in pools)
    return Outcome(status=pool_rules.with_listed(status, pools, now), act="pause", pools=names)


def _is_over(status: UpdateRunStatus, verdict: Verdict, now: datetime) -> bool:
    """Reports whether the pools must not stay paused any longer for a start: the window is over, or another gate is."""
    if any(gate.name == "window" and gate.state != "Open" for gate in verdict.gates):
        return True
    return not verdict.open and status.closed_since is not None and now >= status.closed_since + CLOSED_FOR


def _needs_preflight(run: UpdateRun, situation: Situation) -> bool:
    """Reports whether to request a preflight of the target. A request of another client is never replaced."""
    if run.spec.control != "Run":
        return False
    cluster, target = situation.cluster, current_target(run)
    desired = cluster.spec.desired_update
    if desired is None or not (desired.version or desired.image):
        return True
    if desired.mode:
        return not is_same_image(desired.image, target.image) and situation.owns_request
    # The request of an update that is complete has no effect any more, and nothing else removes it.
    newest = cluster.status.history[0] if cluster.status.history else None
    is_complete = newest is not None and newest.state == "Completed"
    return is_complete and not pending_update(cluster)


def _while_updating(run: UpdateRun, status: UpdateRunStatus, situation: Situation, now: datetime) -> Outcome:
    """Decides while the control plane is updated. The update is observed, never stopped."""
    target, cluster = current_target(run), situation.cluster
    if is_completed(cluster, target):
        return Outcome(status=_complete(run, status, situation, now))
    is_pending = is_requested(cluster, target) and not is_updating_to(cluster, target)
    if is_pending and situation.owns_request and _is_refused(cluster, now):
        # The operator did not begin, so the run has not begun either.
        waiting = replace(status, intent=None)
        if not status.hop:
            waiting = replace(waiting, started=None, gated=False)
        return Outcome(status=_step(waiting, _idle(status), "NotAccepted", now), act="withdraw")
    newest = cluster.status.history[0] if cluster.status.history else None
    other = newest is not None and newest.state == "Partial" and not is_same_image(newest.image, target.image)
    if other and newest is not None:
        return Outcome(status=_step(status, "Superseded", "OtherUpdate", now, message=newest.version))
    begun = status.hops[status.hop].started if status.hops else status.started
    if begun is not None and now >= begun + parse(run.spec.deadline, "spec.deadline"):
        return Outcome(status=_step(status, "Failed", "ControlPlaneDeadline", now))
    if _is_withdrawn(cluster, target) and find(status.conditions, TARGET_WITHDRAWN) is None:
        return Outcome(status=_step(status, "ControlPlane", "WithdrawnDuring", now, message=target.version))
    return Outcome(status=status)


def _while_pools(run: UpdateRun, status: UpdateRunStatus, situation: Situation, now: datetime) -> Outcome:
    """Decides while worker pools are updated: the run's own ones are resumed one by one behind their gates."""
    pools = situation.pools
    if is_aborted(run):
        return Outcome(status=_step(status, "Aborted", "Aborted", now))
    if isinstance(pools, str):
        deadline = parse(run.spec.pools.deadline, "spec.pools.deadline")
        if status.completed is not None and now >= status.completed + deadline:
            return Outcome(status=_step(status, "Failed", "PoolsDeadline", now, message=pools))
        return Outcome(status=status)
    run = replace(run, status=status)
    status = pool_rules.after_control_plane(run, pools, now)
    run = replace(run, status=status)
    # A person who resumes a pool leaves the annotation.
    own = pool_rules.own_pauses(run, pools)
    if left := tuple(name for name in pool_rules.marked_pools(run, pools) if name not in own):
        return Outcome(status=status, act="resume", pools=left)
    behind = pool_rules.pools_behind(run, pools)
    if (failure := pool_rules.failure_of(run, behind, now)) is not None:
        return Outcome(status=_step(status, "Failed", failure[0], now, message=failure[1]))
    status = _with_overdue(run, status, pool_rules.overdue_pools(run, own, now), now)
    if behind:
        return Outcome(status=status)
    if has_next(status) and (not own or pools_may_wait(status, situation.nodes)):
        return Outcome(status=_next_hop(status, "PoolsUpdated", now))
    if not own:
        return Outcome(status=_step(status, "Soaking", "PoolsUpdated", now))
    if run.spec.pools.when == "Manual":
        return Outcome(status=status)
    names = pool_rules.next_pools(run, pools)
    verdicts = [(name, situation.resumption[name]) for name in names if name in situation.resumption]
    chosen = next(((name, verdict) for name, verdict in verdicts if verdict.open), None)
    # A resumption without an effect is decided again.
    for other in own:
        if chosen is None or other != chosen[0]:
            status = pool_rules.with_resumed(status, other, None)
    if chosen is not None:
        name, verdict = chosen
        entry = next(each for each in status.paused_pools if each.name == name)
        if entry.resumed is None:
            evidence = {"pool": name} | {key: text for gate in verdict.gates for key, text in gate.evidence.items()}
            status = _step(status, "Pools", "PoolResumed", now, message=f"Pool {name}.", evidence=evidence)
        resumed = pool_rules.with_resumed(status, name, entry.resumed or now)
        return Outcome(status=replace(resumed, gates=_gates_of(verdict)), act="resume", pools=(name,))
    return Outcome(status=replace(status, gates=_gates_of(verdicts[0][1])) if verdicts else status)


def _with_overdue(run: UpdateRun, status: UpdateRunStatus, overdue: tuple[str, ...], now: datetime) -> UpdateRunStatus:
    """Returns the status with a decision about pools that have been paused for too long, once for each of them."""
    noted = {name for each in status.decisions if each.reason == "PausedTooLong" for name in each.evidence}
    if not (new := [name for name in overdue if name not in noted]):
        return status
    text = f"Paused for longer than {run.spec.pools.max_paused}: {', '.join(new)}. Give the calendar a longer window."
    return _step(status, status.step, "PausedTooLong", now, message=text, evidence=dict.fromkeys(new, "paused"))


def _with_left_pools(run: UpdateRun, status: UpdateRunStatus, pools: Pools) -> UpdateRunStatus:
    """Returns the status whose newest decision names the pools that stay paused, if the run has just ended.

    The run has also passed its pools when it begins to soak.
    """
    ended = status.step in FINISHED and run.status.step not in FINISHED and status.started is not None
    if not (ended or (status.step == "Soaking" and run.status.step != "Soaking")):
        return status
    text = pool_rules.left_text(replace(run, status=status), pools)
    if not text:
        return status
    last = status.decisions[-1]
    message = cut(" ".join(filter(None, (last.message, text))), MAX_MESSAGE)
    return replace(status, decisions=(*status.decisions[:-1], replace(last, message=message)))


def _while_soaking(run: UpdateRun, status: UpdateRunStatus, situation: Situation, now: datetime) -> Outcome:
    """Decides after the update: the cluster must be healthy for the whole soak. Unknown is not healthy."""
    health = situation.health
    if is_aborted(run):
        return Outcome(status=_step(status, "Aborted", "Aborted", now, message=_ABORTED_LATE))
    healthy = not isinstance(health, str) and not health.problems and not health.unknown
    if not healthy:
        since = status.unhealthy_since or now
        status = replace(status, healthy_since=None, unhealthy_since=since)
        if now >= since + UNHEALTHY_FOR:
            why = health if isinstance(health, str) else "; ".join((*health.problems, *health.unknown)[:5])
            return Outcome(status=_step(status, "Failed", "UnhealthyAfter", now, message=why))
        return Outcome(status=status)
    since = status.healthy_since or now
    status = replace(status, healthy_since=since, unhealthy_since=None)
    if now >= since + parse(run.spec.soak, "spec.soak"):
        desired = situation.cluster.spec.desired_update
        own = {pool_rules.risk_of(each.name) for each in status.paused_pools}
        own |= {each.name for each in run.spec.accept_risks}
        if situation.owns_request and desired is not None and own & set(desired.accepted_names):
            return Outcome(status=status, act="forget")
        return Outcome(status=_step(status, "Done", "Succeeded" if status.gated else "SucceededUngated", now))
    return Outcome(status=status)


def verdict_of_begun(run: UpdateRun) -> Verdict | None:
    """Returns the verdict on a run that has begun or is finished, which its gates do not change; else None."""
    status, last = run.status, run.status.decisions[-1] if run.status.decisions else None
    if status.started is not None and status.step not in BEFORE_START:
        text = f"The update began at {timestamp(status.started)}; the run is {status.step}."
        return Verdict((Gate(name="run", state="Open", reason="Latched", message=text),), final=True)
    if status.step not in FINISHED:
        return None
    reason = last.reason if last is not None else status.step
    text = f"Run {run.metadata.name} is {status.step} ({reason}), so it starts nothing."
    return Verdict((Gate(name="run", state="Closed", reason=reason, message=text),), final=True)


def is_completed(cluster: ClusterVersion, target: Candidate) -> bool:
    """Reports whether the newest update is complete and of the target's image."""
    newest = cluster.status.history[0] if cluster.status.history else None
    return newest is not None and newest.state == "Completed" and is_same_image(newest.image, target.image)


def is_updating_to(cluster: ClusterVersion, target: Candidate) -> bool:
    """Reports whether an update to the target's image has begun."""
    newest = cluster.status.history[0] if cluster.status.history else None
    return newest is not None and newest.state == "Partial" and is_same_image(newest.image, target.image)


def _is_withdrawn(cluster: ClusterVersion, target: Candidate) -> bool:
    """Reports whether the update service answers that it does not know the release that is being installed."""
    retrieved = find(cluster.status.conditions, "RetrievedUpdates")
    is_gone = retrieved is not None and retrieved.status == "False" and retrieved.reason == "VersionNotFound"
    return is_gone and cluster.status.desired.version == target.version


def is_requested(cluster: ClusterVersion, target: Candidate) -> bool:
    """Reports whether ClusterVersion requests an update (not a preflight) to the target's image."""
    desired = cluster.spec.desired_update
    return desired is not None and not desired.mode and is_same_image(desired.image, target.image)


def is_intended(run: UpdateRun, cluster: ClusterVersion) -> bool:
    """Reports whether ClusterVersion requests the update that the run was about to request: it is the run's own.

    The server records a new field manager only for fields that change. After another client's preflight of the same
    image, the start changes the mode alone, and the other client is still named as the writer of the image.
    https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
    """
    return run.status.intent is not None and is_requested(cluster, current_target(run))


def is_aborted(run: UpdateRun) -> bool:
    """Reports whether somebody ended the run: by `spec.control`, or by deleting it."""
    return run.spec.control == "Abort" or run.metadata.deletion_timestamp is not None


def _is_checked(cluster: ClusterVersion, target: Candidate) -> bool:
    """Reports whether ClusterVersion requests a preflight of the target's image."""
    desired = cluster.spec.desired_update
    return desired is not None and bool(desired.mode) and is_same_image(desired.image, target.image)


def was_open(status: UpdateRunStatus) -> bool:
    """Reports whether all gates were open in the pass before."""
    condition = find(status.conditions, GATES_OPEN)
    return condition is not None and condition.status == "True"


def _is_refused(cluster: ClusterVersion, now: datetime) -> bool:
    """Reports whether the operator has refused the requested release for some time."""
    accepted = find(cluster.status.conditions, "ReleaseAccepted")
    since = accepted.last_transition_time if accepted is not None else None
    return accepted is not None and accepted.status == "False" and since is not None and now >= since + REFUSED_FOR


def _begin(status: UpdateRunStatus, now: datetime, *, gated: bool) -> UpdateRunStatus:
    begun = _step(status, "ControlPlane", "Started" if gated else "StartedUngated", now)
    gated = gated and (status.gated or not status.hop)
    return replace(_with_hop(begun, started=now), started=status.started or now, gated=gated)


def _with_hop(status: UpdateRunStatus, **times: datetime) -> UpdateRunStatus:
    """Returns the status with times of the current hop; unchanged without a path."""
    hops = tuple(replace(each, **times) if place == status.hop else each for place, each in enumerate(status.hops))
    return replace(status, hops=hops)


def _complete(run: UpdateRun, status: UpdateRunStatus, situation: Situation, now: datetime) -> UpdateRunStatus:
    """Returns the status after the control plane is complete: pools or another hop follow, unless none is left."""
    completed = replace(_with_hop(status, completed=now), completed=now, healthy_since=None, unhealthy_since=None)
    if is_aborted(run):
        return _step(completed, "Aborted", "Aborted", now, message=_ABORTED_LATE)
    pools = situation.pools
    seen = replace(run, status=completed)
    if isinstance(pools, str) or pool_rules.pools_behind(seen, pools):
        return _step(completed, "Pools", "Completed", now)
    own = pool_rules.marked_pools(seen, pools)
    if has_next(completed) and (not own or pools_may_wait(completed, situation.nodes)):
        return _next_hop(completed, "Completed", now)
    return _step(completed, "Pools" if own else "Soaking", "Completed", now)


def _next_hop(status: UpdateRunStatus, reason: str, now: datetime) -> UpdateRunStatus:
    """Returns the status that waits for the gates of the next hop."""
    following = replace(status, hop=status.hop + 1, intent=None, closed_since=None)
    return _step(following, "BetweenHops", reason, now, message=f"Next: {status.hops[status.hop + 1].version}.")


def _step(
    status: UpdateRunStatus,
    step: Step,
    reason: str,
    now: datetime,
    *,
    message: str = "",
    evidence: dict[str, str] | None = None,
) -> UpdateRunStatus:
    """Returns the status in `step`, with the decision recorded."""
    text = cut(printable(message), MAX_MESSAGE)
    decision = RunDecision(at=now, step=step, reason=reason, message=text, evidence=evidence or {})
    return replace(status, step=step, decisions=(*status.decisions, decision)[-MAX_DECISIONS:])


def _gates_of(verdict: Verdict) -> tuple[RunGate, ...]:
    return tuple(map(_gate_of, verdict.gates[:32]))


def _gate_of(gate: Gate) -> RunGate:
    return RunGate(
        name=cut(printable(gate.name), 300),
        state=gate.state,
        reason=gate.reason,
        message=cut(printable(gate.message), MAX_MESSAGE),
        until=gate.until,
        evidence={key: cut(printable(value), MAX_MESSAGE) for key, value in gate.evidence.items()},
    )


def _with_conditions(status: UpdateRunStatus, verdict: Verdict, now: datetime) -> UpdateRunStatus:
    """Returns the status with its four conditions."""
    step, last = status.step, status.decisions[-1] if status.decisions else None
    reason = last.reason if last is not None else ""
    begun = status.started is not None and status.step not in BEFORE_START
    gates: tuple[ConditionStatus, str, str] = ("False", verdict.reason, "")
    if begun:
        # Tools that ask again for each node must not stop in the middle of an update.
        gates = ("True", "Latched", "")
    elif step in FINISHED:
        gates = ("False", reason, "")
    elif verdict.open:
        gates = ("True", "AllOpen", "")
    elif verdict.closed_by is not None:
        gates = ("False", verdict.reason, cut(printable(verdict.closed_by.message), MAX_MESSAGE))
    progress = step if step in ("ControlPlane", "Pools", "Soaking") else "BetweenHops" if status.hop else None
    progress = None if step in FINISHED else progress
    idle = "Finished" if step in FINISHED else "NotStarted"
    outcome = reason if step == "Done" else step if step in FINISHED else "NotYet"
    wanted: tuple[tuple[str, tuple[ConditionStatus, str, str]], ...] = (
        (GATES_OPEN, gates),
        (PROGRESSING, ("True", progress, "") if progress else ("False", idle, "")),
        (FAILED, ("True", reason, last.message if last else "") if step == "Failed" else ("False", "AsExpected", "")),
        (DONE, ("True" if step == "Done" else "False", outcome, "")),
    )
    if reason in _WITHDRAWN:
        wanted = (*wanted, (TARGET_WITHDRAWN, ("True", reason, last.message if last else "")))
    conditions = status.conditions
    for type_, (state, why, message) in wanted:
        conditions = with_condition(
            conditions, Condition(type=type_, status=state, reason=why, message=message), now=now
        )
    return replace(status, conditions=conditions)
