"""What a process of the operator does at its beginning and its end, tried in this one."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.factories import cluster_version
from tests.kubekit.kube.apiscript import eventually, failure, scripted_api
from tests.operator.operator_world import OWN, payload

from kubekit.error_types import Terminal
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from runup.api.config_v1 import Release, SignatureStore
from runup.clusterversion.control.clusterversion import reflectors
from runup.clusterversion.decide.observed import OperatorFacts
from runup.operator.manager import Manager, Options, load_own_release, options_from_environment
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.process import shutdown
from runup.process.leader_election import cancel
from runup.process.shutdown import CutOff, run_until_told

PLACE = PodSettings(namespace="ns", node_name="node-1")


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The codes with which this process would have ended; its handlers of signals are put back."""
    codes: list[int] = []
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(shutdown, "GRACEFUL_STOP_S", 3600)
    monkeypatch.setattr(shutdown, "THREAD_JOIN_S", 0.05)
    yield codes
    for number, handler in kept.items():
        signal.signal(number, handler)


def over(codes: list[int]) -> list[int]:
    """The codes once no timer is left that would end the process."""
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer) and timer.function == codes.append:
            timer.join(90)
            assert not timer.is_alive(), "a timer that was to be called off still runs"
    return codes


def test_a_process_ends_within_five_seconds() -> None:
    """Four in which it may end in order, and one for its threads."""
    assert shutdown.GRACEFUL_STOP_S + shutdown.THREAD_JOIN_S == 5
    assert shutdown.THREAD_JOIN_S == 1


def test_of_several_ends_the_soonest_counts(exits: list[int]) -> None:
    """With the code of the first: why it ends does not change."""
    cut_off = CutOff()
    assert not cut_off.is_set
    cut_off.after(3600, 7)
    assert cut_off.is_set
    cut_off.after(0.01, 8)
    assert over(exits) == [7]


async def stopped(shown: asyncio.Event) -> None:
    """Work until it is asked to stop."""
    await shown.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(exits: list[int], number: int) -> None:
    """And ends it with 0 a little later, whatever its threads do."""

    async def story() -> None:
        shown = asyncio.Event()
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
        await run_until_told(stopped(shown), shown.set)

    asyncio.run(story())
    assert over(exits) == [0]


def test_a_second_signal_ends_it_at_once(exits: list[int]) -> None:
    """With 1: somebody is in a hurry."""

    async def story() -> None:
        shown = asyncio.Event()
        loop = asyncio.get_running_loop()
        for _ in range(2):
            loop.call_soon(signal.raise_signal, signal.SIGTERM)
        await run_until_told(stopped(shown), shown.set)

    asyncio.run(story())
    assert exits[0] == 1


def test_what_does_not_end_in_order_is_cut_off(exits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """With 0 where it was asked to, with 1 where it ends for a separate reason."""
    monkeypatch.setattr(shutdown, "GRACEFUL_STOP_S", 0.05)

    async def story(of_its_own: bool) -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        if of_its_own:
            loop.call_soon(stopping.set)
        else:
            loop.call_soon(signal.raise_signal, signal.SIGTERM)

        async def hangs() -> None:
            while not exits:  # noqa: ASYNC110 -- what a thread notes is no event
                await asyncio.sleep(0.005)

        await run_until_told(hangs(), lambda: None, stopping)

    for of_its_own, code in ((False, 0), (True, 1)):
        exits.clear()
        asyncio.run(story(of_its_own))
        assert over(exits)[0] == code


def test_a_signal_gives_no_more_time_to_what_ends_already(exits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is lost has to be out of use, whoever else wants the process to end."""
    monkeypatch.setattr(shutdown, "GRACEFUL_STOP_S", 0.2)

    async def story() -> None:
        stopping = asyncio.Event()
        stopping.set()

        async def hangs() -> None:
            await asyncio.sleep(0.01)
            monkeypatch.setattr(shutdown, "GRACEFUL_STOP_S", 3600)
            signal.raise_signal(signal.SIGTERM)
            while not exits:  # noqa: ASYNC110 -- what a thread notes is no event
                await asyncio.sleep(0.005)

        await asyncio.wait_for(run_until_told(hangs(), lambda: None, stopping), 60)

    asyncio.run(story())
    assert over(exits)[0] == 1


def test_work_that_fails_ends_with_1(exits: list[int]) -> None:
    """And its error is raised."""

    async def fails() -> None:
        raise ValueError("it broke")

    async def story() -> None:
        await run_until_told(fails(), lambda: None)

    with pytest.raises(ValueError, match="it broke"):
        asyncio.run(story())
    assert over(exits) == [1]


@pytest.mark.parametrize(
    ("environ", "changes"),
    [
        pytest.param({}, {}, id="it says nothing"),
        pytest.param({"PAYLOAD_OVERRIDE": "", "CLUSTER_PROFILE": "", "EXCLUDE_MANIFESTS": ""}, {}, id="it is empty"),
        pytest.param({"PAYLOAD_OVERRIDE": "/elsewhere"}, {"payload": Path("/elsewhere")}, id="where the files are"),
        pytest.param({"CLUSTER_PROFILE": "p"}, {"profile": "p"}, id="the profile"),
        pytest.param({"EXCLUDE_MANIFESTS": "x"}, {"exclude": "x"}, id="what is left out"),
    ],
)
def test_what_the_environment_says(environ: dict[str, str], changes: dict[str, Any]) -> None:
    """Above the flags; nothing of it where it is empty."""
    options = Options(release_image=OWN, pod_settings=PLACE, payload=Path("/here"), profile="q", exclude="y")
    found = options_from_environment(options, environ)
    shown = {"payload": found.payload, "profile": found.profile, "exclude": found.exclude}
    assert shown == {"payload": Path("/here"), "profile": "q", "exclude": "y"} | changes
    assert found.pod_settings.profile == changes.get("profile", ""), "a target chooses as its operator does"


def test_its_own_release(tmp_path: Path) -> None:
    """Out of the files of its image; without any it is nothing to begin with."""
    folder = payload(tmp_path / "payload")
    release, own = load_own_release(Options(release_image=OWN, pod_settings=PLACE, payload=folder))
    assert (release.version, release.image) == ("5.0.0", OWN)
    assert own.verifier(None) is not None
    with pytest.raises(Terminal, match="no release payload in"):
        load_own_release(Options(release_image=OWN, pod_settings=PLACE, payload=tmp_path / "elsewhere"))


def test_an_odd_verification_config_map_is_told(tmp_path: Path) -> None:
    """A key of it that says nothing is a line of the log."""
    folder = payload(tmp_path / "payload")
    path = folder / "manifests" / "0000_00_verification.yaml"
    path.write_text(path.read_text().replace("store-test:", "store-test: x\n  odd-key:"))
    with capture_logs() as logs:
        load_own_release(Options(release_image=OWN, pod_settings=PLACE, payload=folder))
    assert [line["event"] for line in logs] == ["the verification ConfigMap of this release cannot be used"] * len(logs)
    assert logs


@pytest.mark.parametrize("applies", [True, False])
async def test_an_operator_that_is_stopped_leaves_nothing_behind(tmp_path: Path, applies: bool) -> None:
    """It says that it starts, and of which release it is; what follows the cluster ends with it."""
    options = Options(
        release_image=OWN,
        pod_settings=PLACE,
        payload=payload(tmp_path / "payload"),
        report_folder=tmp_path,
        leader_elect=False,
        applies=applies,
    )
    manager = Manager(ClusterConfig(server="http://127.0.0.1:9"), options, clock=ManualClock())
    before = asyncio.all_tasks()
    with capture_logs() as logs:
        running = asyncio.create_task(manager.run())
        await eventually(lambda: manager.caches.pods.error is not None)
        manager.stop()
        await asyncio.wait_for(running, 90)
    assert asyncio.all_tasks() == before
    assert [(line["version"], line["image"], line["namespace"]) for line in logs if line["event"] == "starting"] == [
        ("5.0.0", OWN, "ns")
    ]
    assert manager.caches.not_ready().startswith("ClusterVersion is not listed yet: ")


def test_which_signature_stores_an_administrator_has_named(tmp_path: Path) -> None:
    """As ClusterVersion says; none where it says nothing, or is not there."""
    options = Options(release_image=OWN, pod_settings=PLACE, payload=tmp_path)
    manager = Manager(ClusterConfig(server="http://127.0.0.1:9"), options)
    assert manager.custom_stores() is None
    stores = (SignatureStore(url="https://store.example"),)
    version = cluster_version()
    for named in (None, (), stores):
        spec = replace(version.spec, signature_stores=named)
        metadata = replace(version.metadata, name="version")
        manager.caches.versions.put(replace(version, metadata=metadata, spec=spec))
        assert manager.custom_stores() == named


async def test_a_kind_that_a_release_brings_is_looked_for_at_once(tmp_path: Path) -> None:
    """By whoever follows it; a kind that nobody follows is nobody's."""
    options = Options(release_image=OWN, pod_settings=PLACE, payload=tmp_path)
    clock = ManualClock()
    manager = Manager(ClusterConfig(server="http://127.0.0.1:9"), options, clock=clock)
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(failure(403, "Forbidden"))
        following = reflectors(client, manager.caches, "ns", clock)
        facts = OperatorFacts(release=Release(version="5.0.0", image=OWN), place=PLACE)
        worker = manager.applier(client, facts, lambda: None, following)
        running = [asyncio.create_task(each.run()) for each in following]
        await eventually(lambda: len(clock.sleeping) == len(following))
        worker.served("example.org", "Widget")
        worker.served("config.openshift.io", "ClusterOperator")
        await api.until_requests(len(following) + 1)
        await eventually(lambda: len(clock.sleeping) == len(following))
        again = [target.partition("?")[0].rpartition("/")[2] for target in api.targets[len(following) :]]
        await cancel(running)
    assert again == ["clusteroperators"]
    assert manager.metrics.cluster.failed_attempts is worker.failed_attempts
