"""`--wait`: follows a preflight until it has a result, cannot have one, is replaced, or time is up.

`evaluate_cluster` is pure: one ClusterVersion in, its meaning for this request out. The rest watches. The preflight
continues whatever happens here: leaving never cancels it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from kubekit.api.codec import DecodeError
from kubekit.api.conditions import find
from kubekit.api.core_v1 import Pod
from kubekit.error_types import InputError
from kubekit.kube.api_errors import Gone, KubeError, Transient, message_of
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock, SystemClock
from runup.advice.decide.preflight_reasons import IN_PROGRESS, INCOMPLETE, OUTDATED
from runup.api.config_v1 import ClusterVersion
from runup.preflight.control import cluster_records
from runup.preflight.decide.findings import Findings, Risk, findings_of_target, requested_preflight
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED, RUNNING
from runup.preflight.decide.preflight_state import Phase, phase_of
from runup.preflight.decide.stored_reports import History
from runup.process import clusterversion_client as clusters
from runup.process.messages import Say, err

# A failure that may heal (an image that cannot be pulled now, a report being rewritten) is reported after this time.
HEALING_S = 5.0
OPERATOR = "cluster-version-operator"
# A request not taken up after this time may have no operator. Changes are looked for every two seconds.
NO_OPERATOR_AFTER_S = 7.0
_TICK_S = 2
_RETRY_S = 1.0
# A server that is restarted answers again within this time; one that stays away is an error.
SERVER_AWAY_LIMIT_S = 120.0
# The report is stored a moment after the status; it adds remedies to the table.
_HISTORY_TRIES = 10
_HISTORY_PAUSE_S = 0.2


class State(Enum):
    """The state of our request according to ClusterVersion."""

    WAITING = "not taken up yet"
    GOING = "in progress"
    DONE = "completed"
    HEALING = "failed, but tried again by itself"
    FAILED = "failed for good"
    REPLACED = "somebody asked for something else"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The state, and one line about it."""

    state: State
    line: str


def evaluate_cluster(cluster: ClusterVersion, target: tuple[str, str], generation: int) -> Evaluation:
    """Returns the state of the preflight of `target` (version, image) that was requested at `generation`."""
    name = target[0] or target[1]
    if requested_preflight(cluster) != target:
        desired, other = cluster.spec.desired_update, "somebody cleared the request"
        if desired is not None and (desired.version or desired.image or desired.architecture):
            action = "a preflight of" if desired.mode else "an update to"
            other = f"somebody now asks for {action} {desired.version or desired.image}"
        return Evaluation(State.REPLACED, f"the preflight of {name} was replaced: {other}")
    # Conditions from before the operator saw the request are about another one
    # (docs/decisions/0017-what-the-wait-and-its-exit-code-mean.md).
    conditions = cluster.status.conditions if cluster.status.observed_generation >= generation else ()
    running, completed, failed = (find(conditions, type_) for type_ in (RUNNING, COMPLETED, FAILED))
    phase = phase_of(conditions)
    if phase is Phase.FAILED and failed is not None:
        state = State.HEALING if running is not None and running.status == "True" else State.FAILED
        return Evaluation(state, f"{failed.reason}: {failed.message}")
    if phase is Phase.LIVE and completed is not None:
        return Evaluation(State.DONE, completed.message)
    if running is not None:
        return Evaluation(State.GOING, running.message)
    return Evaluation(State.WAITING, "waiting for the cluster-version operator to take up the request")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a preflight: one line, the risks found so far, and the trouble in reading it, if any."""

    line: str
    risks: tuple[Risk, ...] = ()
    trouble: str = ""


LEFT = "See it with `runup upgrade`, end it with `runup upgrade --clear-preflight`."


def wait(
    client: SyncClient,
    requested: ClusterVersion,
    *,
    timeout_s: float,
    namespace: str,
    show: Callable[[Progress], None],
    say: Say,
    clock: Clock | None = None,
) -> Findings:
    """Returns the preflight's findings, or why it has none. Raises InputError if it is replaced or late."""
    clock = clock or SystemClock()
    target = requested_preflight(requested)
    assert target is not None
    deadline, nobody_at = clock.monotonic() + timeout_s, clock.monotonic() + NO_OPERATOR_AFTER_S
    failing_since: float | None = None
    latest, progress = requested, Progress("")
    try:
        for look in changes(client, requested, clock):
            if look.trouble is not None:
                trouble = (
                    f"The API server does not answer: {_first_line(look.trouble)}. It is asked again, for "
                    f"{SERVER_AWAY_LIMIT_S:.0f} s at most; the preflight continues."
                )
                progress = replace(progress, trouble=trouble)
                show(progress)
                continue
            latest = look.cluster or latest
            evaluation = evaluate_cluster(latest, target, requested.metadata.generation)
            if evaluation.state is State.REPLACED:
                raise InputError(evaluation.line)
            now = clock.monotonic()
            nobody = evaluation.state is State.WAITING and now >= nobody_at
            line = why_not_taken_up(client, namespace) if nobody else evaluation.line
            going = evaluation.state is State.GOING
            progress = Progress(line, risks_so_far(findings_of_target(latest, History(), *target)) if going else ())
            # The result begins with why it failed, and has all risks.
            if evaluation.state is not State.FAILED:
                show(progress)
            failing_since = (failing_since or now) if evaluation.state is State.HEALING else None
            if evaluation.state in (State.DONE, State.FAILED):
                break
            if failing_since is not None and now - failing_since >= HEALING_S:
                break
            if now >= deadline:
                raise InputError(f"timed out waiting for the preflight, which continues: {line.rstrip('.')}. {LEFT}")
        return _findings(client, latest, namespace=namespace, say=say, clock=clock)
    except Transient as error:
        text = f"the API server has not answered for {SERVER_AWAY_LIMIT_S:.0f} s: {message_of(error).strip()}"
        raise InputError(f"{text}\nThe preflight continues in the cluster. {LEFT}") from error


def risks_so_far(findings: Findings) -> tuple[Risk, ...]:
    """Returns the risks that this preflight has found by now, without those that represent unfinished checks."""
    return tuple(
        risk
        for risk in findings.risks
        if risk.from_preflight
        and risk.applies != "False"
        and risk.reason != OUTDATED
        and risk.name not in (IN_PROGRESS, INCOMPLETE)
    )


def why_not_taken_up(client: SyncClient, namespace: str) -> str:
    """Returns one line on why a request may not be taken up: the operator's pods and their states."""
    text = f"still not taken up after {NO_OPERATOR_AFTER_S:.0f} s: "
    try:
        pods = client.list_all(Pod, namespace)[0]
    except (KubeError, DecodeError) as error:
        return f"{text}whether an operator runs in {namespace} is unknown ({error})"
    operator_pods = [pod for pod in pods if pod.metadata.labels.get("k8s-app") == OPERATOR]
    if not operator_pods:
        return f"{text}there is no pod of the cluster-version operator in namespace {namespace}"
    states = ", ".join(f"{pod.metadata.name} is {pod_state(pod)}" for pod in operator_pods[:3])
    return f"{text}{states}; see `kubectl -n {namespace} describe pods`"


def pod_state(pod: Pod) -> str:
    """Returns a pod's state, with the scheduler's message if it is not scheduled."""
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled and scheduled.status == "False":
        return f"{pod.status.phase or 'Pending'} ({scheduled.reason}: {scheduled.message})"
    return pod.status.phase or "Pending"


@dataclass(frozen=True, slots=True)
class Observation:
    """A look at the ClusterVersion: its new state, None if nothing is new; `trouble`: why it could not be read."""

    cluster: ClusterVersion | None = None
    trouble: Transient | None = None


def changes(client: SyncClient, start: ClusterVersion, clock: Clock) -> Iterator[Observation]:
    """Yields a look at every change, every few seconds without one, and while the server is away.

    Raises Transient after two minutes of that.
    """
    yield Observation(start)
    version: str | None = start.metadata.resource_version
    answered = clock.monotonic()
    while True:
        trouble = None
        fresh = version is None
        try:
            if version is None:
                latest = clusters.read(client)
                version = latest.metadata.resource_version
                yield Observation(latest)
            for event in client.watch(ClusterVersion, resource_version=version, timeout_seconds=_TICK_S):
                version = event.object.metadata.resource_version
                if event.type == "DELETED":
                    raise InputError("the ClusterVersion was deleted while its preflight was waited for")
                if event.type != "BOOKMARK":
                    yield Observation(event.object)
            answered = clock.monotonic()
        except Gone:
            # The watch's version expired (HTTP 410): read the object again and watch from there.
            version, answered = None, clock.monotonic()
            if fresh:
                clock.pause(_RETRY_S)
        except Transient as error:
            if clock.monotonic() - answered > SERVER_AWAY_LIMIT_S:
                raise
            trouble = error
            clock.pause(_RETRY_S)
        yield Observation(trouble=trouble)


def _first_line(error: Transient) -> str:
    return message_of(error).strip().partition("\n")[0].rstrip(".")


def _findings(client: SyncClient, cluster: ClusterVersion, namespace: str, say: Say, clock: Clock) -> Findings:
    """Returns the findings in ClusterVersion, with the report's details if it is stored within a few tries."""
    target = requested_preflight(cluster)
    assert target is not None
    findings = findings_of_target(cluster, History(), *target)
    for _ in range(_HISTORY_TRIES):
        try:
            accepted = cluster_records.read_accepted(client, cluster)
            findings = findings_of_target(
                cluster, cluster_records.read_history(client, namespace), *target, accepted=accepted
            )
        except Transient as error:
            trouble: Transient | None = error
        else:
            trouble = None
            if findings.checks or not findings.completed:
                break
        clock.pause(_HISTORY_PAUSE_S)
    if trouble is not None:
        say(err(f"warning: the report could not be read, so remedies are missing: {_first_line(trouble)}\n"))
    return findings
