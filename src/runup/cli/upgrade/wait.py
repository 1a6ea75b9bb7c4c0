"""`--wait`: follow a preflight until it has a result, cannot have one, was replaced, or time is up.

`judge` is pure: one ClusterVersion in, what it means for this request out. The rest watches and prints. The preflight
goes on whatever happens here; leaving never cancels it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TextIO

from runup.api.config_v1 import ClusterVersion
from runup.api.core_v1 import Pod
from runup.cli import cluster as clusters
from runup.cli.errors import CommandError
from runup.cli.findings import Findings, of_target, wanted
from runup.cli.output import bare
from runup.domain.conditions import find
from runup.domain.preflight.conditions import COMPLETED, FAILED, RUNNING
from runup.kube.clock import Clock, SystemClock
from runup.kube.errors import Gone, KubeError, Transient
from runup.lang.printable import printable

if TYPE_CHECKING:
    from runup.cli.upgrade.request import Request
    from runup.kube.client_sync import SyncClient

# A failure that may heal (an image that cannot be pulled now, a report that is written anew) is given so long.
HEALING_S = 5.0
OPERATOR = "cluster-version-operator"
# Nobody has taken the request up for so long: perhaps nobody will. Changes are looked for every two seconds.
NOBODY_S = 7.0
_TICK_S = 2
_RETRY_S = 1.0
# A server that is restarted answers again within this time; one that stays away is an error.
AWAY_S = 120.0
# The report is stored a moment after the status; it adds remedies to the table.
_HISTORY_TRIES = 10
_HISTORY_PAUSE_S = 0.2


class State(Enum):
    """What a ClusterVersion says about our request."""

    WAITING = "not taken up yet"
    GOING = "going on"
    DONE = "completed"
    HEALING = "failed, but tried again by itself"
    FAILED = "failed for good"
    REPLACED = "somebody asked for something else"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The state, and one line about it."""

    state: State
    line: str


def judge(cluster: ClusterVersion, target: tuple[str, str], generation: int) -> Judgement:
    """What `cluster` says about the preflight of `target` (version, image) that was asked for at `generation`."""
    name = target[0] or target[1]
    if wanted(cluster) != target:
        return Judgement(State.REPLACED, f"the preflight of {name} was replaced: {_instead(cluster)}")
    conditions = cluster.status.conditions
    running, completed, failed = (find(conditions, type_) for type_ in (RUNNING, COMPLETED, FAILED))
    if cluster.status.observed_generation < generation or running is None:
        return Judgement(State.WAITING, "waiting for the cluster-version operator to take up the request")
    if failed and failed.status == "True":
        state = State.HEALING if running.status == "True" else State.FAILED
        return Judgement(state, f"{failed.reason}: {failed.message}")
    if completed and completed.status == "True":
        return Judgement(State.DONE, completed.message)
    return Judgement(State.GOING, running.message)


def _instead(cluster: ClusterVersion) -> str:
    desired = cluster.spec.desired_update
    if desired is None or not (desired.version or desired.image or desired.architecture):
        return "somebody cleared the request"
    what = "a preflight of" if desired.mode else "an update to"
    return f"somebody now asks for {what} {desired.version or desired.image}"


def wait(
    client: SyncClient,
    asked: ClusterVersion,
    request: Request,
    *,
    timeout_s: float,
    namespace: str,
    clock: Clock | None = None,
) -> Findings:
    """The preflight's findings once it has some, or why it has none; raises CommandError when replaced or late.

    Progress goes to stdout, or to stderr where stdout is for a program.
    """
    clock = clock or SystemClock()
    target = wanted(asked)
    assert target is not None
    try:
        with _shown(sys.stderr if request.output else sys.stdout) as show:
            cluster = _until_over(client, asked, target, show, clock, clock.monotonic() + timeout_s, namespace)
            return _findings(client, cluster, namespace, clock)
    except KeyboardInterrupt:
        sys.stderr.write(f"\nThe preflight of {target[0] or target[1]} goes on. {_LEFT}\n")
        raise


_LEFT = "See it with `runup upgrade`, end it with `runup upgrade --clear-preflight`."


def _until_over(
    client: SyncClient,
    asked: ClusterVersion,
    target: tuple[str, str],
    show: Callable[[str], None],
    clock: Clock,
    deadline: float,
    namespace: str,
) -> ClusterVersion:
    failing_since: float | None = None
    nobody_at = clock.monotonic() + NOBODY_S
    latest = asked
    for cluster in changes(client, asked, clock):
        latest = cluster or latest
        found = judge(latest, target, asked.metadata.generation)
        if found.state is State.REPLACED:
            raise CommandError(found.line)
        now = clock.monotonic()
        line = nobody(client, namespace) if found.state is State.WAITING and now >= nobody_at else found.line
        # The result begins with why it failed.
        if found.state is not State.FAILED:
            show(line)
        failing_since = (failing_since or now) if found.state is State.HEALING else None
        if found.state in (State.DONE, State.FAILED):
            return latest
        if failing_since is not None and now - failing_since >= HEALING_S:
            return latest
        if now >= deadline:
            raise CommandError(f"timed out waiting for the preflight, which goes on: {line.rstrip('.')}. {_LEFT}")
    raise AssertionError("the stream of changes does not end")


def nobody(client: SyncClient, namespace: str) -> str:
    """Why it may be that a request is not taken up: what there is of an operator, in one line."""
    text = f"still not taken up after {NOBODY_S:.0f} s: "
    try:
        pods = client.list_all(Pod, namespace)[0]
    except KubeError as error:
        return f"{text}whether an operator runs in {namespace} could not be told ({error})"
    ours = [pod for pod in pods if pod.metadata.labels.get("k8s-app") == OPERATOR]
    if not ours:
        return f"{text}there is no pod of the cluster-version operator in namespace {namespace}"
    states = ", ".join(f"{pod.metadata.name} is {pod_state(pod)}" for pod in ours[:3])
    return f"{text}{states}; see `kubectl -n {namespace} describe pods`"


def pod_state(pod: Pod) -> str:
    """A pod's state, with the words of whoever keeps it from running."""
    scheduled = find(pod.status.conditions, "PodScheduled")
    if scheduled and scheduled.status == "False":
        return f"{pod.status.phase or 'Pending'} ({scheduled.reason}: {scheduled.message})"
    return pod.status.phase or "Pending"


def changes(client: SyncClient, start: ClusterVersion, clock: Clock) -> Iterator[ClusterVersion | None]:
    """The ClusterVersion after every change, and None every few seconds without one or while the server is away."""
    yield start
    version = start.metadata.resource_version
    answered = clock.monotonic()
    while True:
        try:
            for event in client.watch(ClusterVersion, resource_version=version, timeout_seconds=_TICK_S):
                version = event.object.metadata.resource_version
                if event.type == "DELETED":
                    raise CommandError("the ClusterVersion was deleted while its preflight was waited for")
                if event.type != "BOOKMARK":
                    yield event.object
            answered = clock.monotonic()
        except Gone:
            latest = clusters.read(client)
            version = latest.metadata.resource_version
            yield latest
        except Transient:
            if clock.monotonic() - answered > AWAY_S:
                raise
            clock.pause(_RETRY_S)
        yield None


def _findings(client: SyncClient, cluster: ClusterVersion, namespace: str, clock: Clock) -> Findings:
    target = wanted(cluster)
    assert target is not None
    found = of_target(cluster, clusters.read_history(client, namespace), *target)
    for _ in range(_HISTORY_TRIES):
        if found.checks or not found.completed:
            break
        clock.pause(_HISTORY_PAUSE_S)
        found = of_target(cluster, clusters.read_history(client, namespace), *target)
    return found


@contextmanager
def _shown(stream: TextIO) -> Iterator[Callable[[str], None]]:
    """A function that shows one line: in place on a terminal, each new one below the last elsewhere."""
    if not stream.isatty():
        seen: list[str] = []

        def plain(line: str) -> None:
            if line not in seen[-1:]:
                seen.append(line)
                stream.write(f"{line}\n")
                stream.flush()

        yield plain
        return
    from rich.console import Console
    from rich.text import Text

    with Console(file=bare(stream)).status("asking for the preflight") as status:
        yield lambda line: status.update(Text(printable(line)))
