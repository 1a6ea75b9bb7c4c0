"""`--wait`: what a ClusterVersion says about a request, and how long what may heal, or answer again, is given."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.commands import cluster

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import Status
from kubekit.error_types import InputError
from kubekit.kube.api_errors import NotFound, Unreachable
from kubekit.kube.clock import ManualClock
from kubekit.kube.request import Request
from runup.cli.clusterversion import actions
from runup.cli.clusterversion.actions import UpgradeRequest as Asked
from runup.clusterversion.control import upgrade_wait as wait
from runup.clusterversion.control.upgrade_wait import State, evaluate_cluster, pod_state
from runup.clusterversion.decide.upgrade_target import Flags

SINCE = "2026-01-14T09:30:00Z"
ASKED = {"mode": "Preflight", "version": "5.2.0"}
IMAGE = "quay.io/ocp/release@sha256:" + "a" * 64


def seen(
    running: str = "",
    completed: str = "False",
    failed: str = "False",
    *,
    asked: dict[str, Any] | None = ASKED,
    observed: int = 2,
    message: str = "m",
) -> Any:
    """A ClusterVersion of generation 2, as the operator informed of it."""
    states = {"PreflightRunning": running, "PreflightCompleted": completed, "PreflightFailed": failed}
    shown = {"reason": "R", "message": message, "lastTransitionTime": SINCE}
    conditions = [{"type": type_, "status": status, **shown} for type_, status in states.items()] if running else []
    spec = {"desiredUpdate": asked} if asked else {}
    metadata = {"name": "version", "resourceVersion": "7", "generation": 2}
    return cluster(
        {"metadata": metadata, "spec": spec, "status": {"observedGeneration": observed, "conditions": conditions}}
    )


TAKING_UP = "waiting for the cluster-version operator to take up the request"
REPLACED = "the preflight of 5.2.0 was replaced: somebody "
EVALUATED: dict[str, tuple[Any, State, str]] = {
    "nothing is shown yet": (seen(), State.WAITING, TAKING_UP),
    "what is shown is of an earlier request": (seen("True", observed=1), State.WAITING, TAKING_UP),
    "it goes on": (seen("True"), State.GOING, "m"),
    "it is queued": (seen("False"), State.GOING, "m"),
    "a later request was seen, too": (seen("True", observed=3), State.GOING, "m"),
    "it has a result": (seen("True", "True"), State.DONE, "m"),
    "it failed, and is tried again": (seen("True", "False", "True"), State.HEALING, "R: m"),
    "it failed, and is not": (seen("False", "False", "True"), State.FAILED, "R: m"),
    "it failed after a result": (seen("False", "True", "True"), State.FAILED, "R: m"),
    "nothing is asked for": (seen("True", asked=None), State.REPLACED, f"{REPLACED}cleared the request"),
    "names of risks alone are": (
        seen("True", asked={"acceptRisks": [{"name": "A"}]}),
        State.REPLACED,
        f"{REPLACED}cleared the request",
    ),
    "an update is": (
        seen("True", asked={"version": "5.2.0"}),
        State.REPLACED,
        f"{REPLACED}now asks for an update to 5.2.0",
    ),
    "an update by image is": (
        seen("True", asked={"image": IMAGE}),
        State.REPLACED,
        f"{REPLACED}now asks for an update to {IMAGE}",
    ),
    "another preflight is": (
        seen("True", asked={**ASKED, "version": "5.1.0"}),
        State.REPLACED,
        f"{REPLACED}now asks for a preflight of 5.1.0",
    ),
    "a preflight of another image is": (
        seen("True", asked={**ASKED, "image": IMAGE}),
        State.REPLACED,
        f"{REPLACED}now asks for a preflight of 5.2.0",
    ),
}


@pytest.mark.parametrize("name", EVALUATED)
def test_what_a_cluster_version_says_of_a_request(name: str) -> None:
    """What the operator wrote before it saw the request says nothing of it."""
    document, state, line = EVALUATED[name]
    found = evaluate_cluster(document, ("5.2.0", ""), 2)
    assert (found.state, found.line) == (state, line)


def test_a_request_by_image_is_called_by_it() -> None:
    """It has no other name."""
    assert evaluate_cluster(seen("True", asked=None), ("", IMAGE), 2).line == (
        f"the preflight of {IMAGE} was replaced: somebody cleared the request"
    )


PODS: dict[str, tuple[dict[str, Any], str]] = {
    "running": ({"phase": "Running"}, "Running"),
    "nothing is known": ({}, "Pending"),
    "it was put on a node": (
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        "Pending",
    ),
    "no node takes it": (
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
        "Pending (Unschedulable: 0/3)",
    ),
    "no node took it": (
        {
            "phase": "Failed",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "R", "message": "m"}],
        },
        "Failed (R: m)",
    ),
}


@pytest.mark.parametrize("name", PODS)
def test_the_state_of_a_pod(name: str) -> None:
    """Its phase, and why it is on no node."""
    status, said = PODS[name]
    assert pod_state(codec.convert(Pod, {"metadata": {"name": "p"}, "status": status})) == said


AWAY = Unreachable("https://x", "x:1", "connection refused", refused=True)


class Playing:
    """A client whose watches are the steps of a play: seconds that use, and then what is seen, or an error."""

    def __init__(self, clock: ManualClock, *steps: tuple[float, Any]) -> None:
        self.clock = clock
        self.steps = list(steps)
        self.history: Any = NotFound(Status(code=404, message="no report"), Request(method="GET", path="/"))
        self.asked_for_history = 0

    def watch(self, kind: Any, **how: Any) -> Iterator[Any]:
        """The next step; the last one for ever."""
        seconds, step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        self.clock.jump(seconds)
        if isinstance(step, Exception):
            raise step
        if step is not None:
            yield SimpleNamespace(type="MODIFIED", object=step)

    def send(self, call: Any) -> Any:
        """The stored report; there is no Lease."""
        if "leases" in call.request.path:
            raise NotFound(Status(code=404, message="no lease"), call.request)
        self.asked_for_history += 1
        raise self.history

    def list_all(self, kind: Any, namespace: str) -> Any:
        """The pods of a namespace."""
        return self.pods, ""

    pods: tuple[Pod, ...] = ()


def played(client: Playing, timeout_s: float = 900.0) -> Any:
    """What waiting came to."""
    asked = seen("True", message="starting")
    request = Asked(flags=Flags())
    real: Any = client
    return actions.wait(real, asked, request, timeout_s=timeout_s, namespace="ns", clock=client.clock)


HEALING = seen("True", "False", "True", message="cannot be pulled")
HEALS: dict[str, tuple[list[tuple[float, Any]], float, bool]] = {
    "what may heal is given five seconds": ([(1, HEALING), (2, HEALING), (2, HEALING), (1, HEALING)], 6, True),
    "it is over as soon as it is for good": ([(1, HEALING), (2, seen("False", "False", "True"))], 3, True),
    "what healed and fails anew is given them anew": (
        [(1, HEALING), (4, seen("True")), (4, HEALING), (4, HEALING), (1, HEALING)],
        14,
        True,
    ),
    "what healed has its result": ([(1, HEALING), (4, seen("True", "True"))], 5, False),
    "without a change time goes by as well": ([(1, HEALING), (2, None)], 7, True),
}


@pytest.mark.parametrize("name", HEALS)
def test_how_long_a_failure_may_heal(name: str) -> None:
    """Five seconds without a break."""
    steps, seconds, failed = HEALS[name]
    clock = ManualClock()
    clock.jump(100)
    client = Playing(clock, *steps)
    client.history = NotFound(Status(code=404, message="no report"), Request(method="GET", path="/"))
    found = played(client)
    assert bool(found.failed) is failed
    # A report that is not there yet is looked for for two seconds more.
    assert clock.monotonic() - 100 == pytest.approx(seconds if failed else seconds + 2)
    assert client.asked_for_history == (1 if failed else 10)


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        pytest.param([(9.0, seen("True", message="4 of 7.")), (1.0, None)], "4 of 7", id="with what was going on last"),
        pytest.param([(10.0, None)], "starting", id="with what was going on at first"),
    ],
)
def test_time_that_is_up(steps: list[tuple[float, Any]], line: str) -> None:
    """To the second; the last look counts."""
    clock = ManualClock()
    with pytest.raises(InputError) as late:
        played(Playing(clock, *steps), timeout_s=10.0)
    assert clock.monotonic() == 10
    assert late.value.message == (
        f"timed out waiting for the preflight, which continues: {line}. See it with `runup upgrade`, end it with "
        "`runup upgrade --clear-preflight`."
    )


def test_a_result_at_the_last_moment_is_one() -> None:
    """The preflight has ended after the wait."""
    clock = ManualClock()
    assert played(Playing(clock, (10.0, seen("True", "True"))), timeout_s=10.0).completed


def test_how_long_a_server_may_be_away() -> None:
    """Two minutes since its last answer, and the question that is under way then."""
    clock = ManualClock()
    with pytest.raises(InputError, match="has not answered for 120 s"):
        played(Playing(clock, (50.0, None), (0.0, AWAY)))
    assert clock.monotonic() == 50 + 121


def test_a_request_that_nobody_takes_up(capfd: pytest.CaptureFixture[str]) -> None:
    """After seven seconds the operator's pods are reported, three at most, and whose they are."""

    def pod(name: str, app: str) -> Pod:
        metadata = {"name": name, "labels": {"k8s-app": app}}
        return codec.convert(Pod, {"metadata": metadata, "status": {"phase": "Running"}})

    clock = ManualClock()
    client = Playing(clock, (6.5, seen()), (0.5, seen()), (1.0, seen()))
    names = ("a", "b", "c", "d")
    client.pods = (pod("other", "dns"), *(pod(name, "cluster-version-operator") for name in names))
    with pytest.raises(InputError):
        played(client, timeout_s=9.0)
    assert capfd.readouterr().out.splitlines() == [
        "starting",
        TAKING_UP,
        "still not taken up after 7 s: a is Running, b is Running, c is Running; see `kubectl -n ns describe pods`",
    ]


def test_a_cluster_version_that_is_deleted() -> None:
    """Nobody would ever answer."""
    client = Playing(ManualClock(), (0.0, None))
    real: Any = client

    def gone(*_: Any, **__: Any) -> Iterator[Any]:
        yield SimpleNamespace(type="DELETED", object=seen())

    client.watch = gone  # type: ignore[method-assign]
    with pytest.raises(InputError, match="the ClusterVersion was deleted while its preflight was waited for"):
        list(wait.changes(real, seen(), client.clock))


def test_a_bookmark_is_no_change() -> None:
    """It only says up to where there was none."""
    client = Playing(ManualClock(), (0.0, None))
    real: Any = client
    versions: list[str] = []

    def marked(*_: Any, resource_version: str, **__: Any) -> Iterator[Any]:
        versions.append(resource_version)
        newer = seen()
        newer = codec.convert(type(newer), {"metadata": {"name": "version", "resourceVersion": str(len(versions))}})
        yield SimpleNamespace(type="BOOKMARK", object=newer)

    client.watch = marked  # type: ignore[method-assign]
    looks = wait.changes(real, seen(), client.clock)
    assert [next(looks).cluster is None for _ in range(4)] == [False, True, True, True]
    assert versions == ["7", "1", "2"]


@pytest.mark.parametrize("why", [AWAY, codec.DecodeError("Pod ns/a cannot be read")], ids=["away", "odd"])
def test_pods_that_cannot_be_listed(why: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    """It is unknown whether an operator runs, which does not mean that none runs."""
    clock = ManualClock()
    client = Playing(clock, (8.0, seen()))

    def refused(*_: Any) -> Any:
        raise why

    client.list_all = refused  # type: ignore[method-assign]
    with pytest.raises(InputError):
        played(client, timeout_s=8.0)
    assert capfd.readouterr().out.splitlines()[-1] == (
        f"still not taken up after 7 s: whether an operator runs in ns is unknown ({why})"
    )


def test_whoever_leaves_is_told_what_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    """And the interrupt continues to anybody who ends the program."""

    class Interrupted(Playing):
        def watch(self, kind: Any, **how: Any) -> Iterator[Any]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        played(Interrupted(ManualClock(), (0.0, None)))
    assert capfd.readouterr().err == (
        "\nThe preflight of 5.2.0 continues. See it with `runup upgrade`, end it with "
        "`runup upgrade --clear-preflight`.\n"
    )
