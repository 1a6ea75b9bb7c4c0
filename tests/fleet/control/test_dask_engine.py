"""Dumps read by the workers of a real Dask scheduler: one that is killed loses nothing, and nothing counts twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.fleet.control import bad_worker, dask_work
from tests.servers import eventually

from runup.evaluation.dask_engine import DaskPool, NoEngine
from runup.evaluation.workers import Lost
from runup.fleet.control.fleet_members import NamedMembers, read_all
from runup.fleet.decide.members import Member

ROOT = Path(__file__).parents[3]
DEADLINE_S = 240


@dataclass
class Dask:
    """A scheduler with its workers, each a process."""

    address: str
    workers: list[subprocess.Popen[bytes]]
    scheduler: subprocess.Popen[bytes]


@contextmanager
def process(folder: Path, *words: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Dask, ended by force when the block is."""
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(map(str, [*ROOT.glob("packages/*/src"), ROOT])),
        "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "false",
        **variables,
    }
    with (folder / f"{words[0]}.log").open("ab") as log:
        made = subprocess.Popen(
            [sys.executable, "-m", *words], stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
        )
        try:
            yield made
        finally:
            made.kill()
            made.wait(DEADLINE_S)


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    """A scheduler and two workers."""
    with dask_with(tmp_path, ["", ""]) as made:
        yield made


@contextmanager
def dask_with(tmp_path: Path, ways: list[str]) -> Iterator[Dask]:
    """A scheduler with a worker for each way, which is bad in that way, or good."""
    pytest.importorskip("distributed", reason="needs distributed: pip install 'kube-runup[dask]'")
    file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        serving = stack.enter_context(process(tmp_path, *scheduler, "--scheduler-file", str(file)))
        eventually(file.exists, "the scheduler serves")
        address = eventually(lambda: _address_in(file), "the scheduler has written its address")
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        worker += ("--memory-limit", "0", "--preload", "tests.fleet.control.bad_worker")
        workers = [
            stack.enter_context(
                process(tmp_path, *worker, "--local-directory", str(tmp_path / f"worker-{number}"), BAD_WORKER=way)
            )
            for number, way in enumerate(ways)
        ]
        yield Dask(address, workers, serving)


def _address_in(file: Path) -> str:
    try:
        return str(json.loads(file.read_text())["address"])
    except (ValueError, KeyError):
        return ""


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(dask: Dask, tmp_path: Path) -> None:
    """Its task is done by the other one; each item has one result."""
    folder = tmp_path / "work"
    folder.mkdir()
    pool: DaskPool[tuple[str, int], int] = DaskPool(dask_work.square, dask.address, DEADLINE_S)

    def began() -> dict[int, set[int]]:
        """The processes that have begun each number."""
        found: dict[int, set[int]] = {}
        for file in folder.glob("began-*"):
            _, number, pid = file.name.split("-")
            found.setdefault(int(number), set()).add(int(pid))
        return found

    with ExitStack() as stack:
        # In a thread, so that a worker can be killed while all of it is under way.
        from concurrent.futures import ThreadPoolExecutor

        aside = stack.enter_context(ThreadPoolExecutor(1))
        running = aside.submit(lambda: list(pool.run([(str(folder), number) for number in range(12)])))
        pids = {each.pid for each in dask.workers}
        eventually(lambda: set().union(*began().values()) == pids if began() else False, "both workers have begun one")
        victim = dask.workers[0]
        (its,) = [number for number, who in began().items() if victim.pid in who]
        victim.send_signal(signal.SIGKILL)
        victim.wait(DEADLINE_S)
        (folder / "go").touch()
        found = running.result(DEADLINE_S)
    assert sorted(found) == [(number, number * number) for number in range(12)]
    assert began()[its] == pids


BAD = {
    "version": "it has runup 0.0.0, and this is ",
    "folder": "it cannot read ",
    "garbage": "it gave str for an answer",
    "other form": "it gave str for an answer",
    "killed": "has ended; others read its dumps",
    "slow": "",
}


@pytest.mark.slow
@pytest.mark.parametrize(("way", "says"), BAD.items(), ids=list(BAD))
def test_one_bad_worker_costs_nothing(way: str, says: str, tmp_path: Path) -> None:
    """Of four: its items are read by the others, and it is named once."""
    notices: list[str] = []
    with dask_with(tmp_path, ["", way, "", ""]) as made:
        from distributed import Client

        with Client(made.address, set_as_default=False) as client:
            client.wait_for_workers(4, timeout=DEADLINE_S)
        began = time.monotonic()
        pool: DaskPool[tuple[str, int], int] = DaskPool(
            bad_worker.read, made.address, DEADLINE_S, kind=int, notice=notices.append
        )
        found = list(pool.run([(str(tmp_path), number) for number in range(80)]))
    assert sorted(found) == [(number, number * number) for number in range(80)]
    assert time.monotonic() - began < bad_worker.SLOW_S
    assert [says in notice for notice in notices] == ([True] if says else [])


@pytest.mark.slow
def test_what_no_worker_can_read_is_about_the_dump(tmp_path: Path) -> None:
    """Every worker is used on, and each item is lost with its reason."""
    notices: list[str] = []
    with dask_with(tmp_path, ["folder", "folder"]) as made:
        pool: DaskPool[tuple[str, int], int] = DaskPool(
            bad_worker.read, made.address, DEADLINE_S, kind=int, notice=notices.append
        )
        found = list(pool.run([(str(tmp_path), number) for number in range(5)]))
    assert sorted(found) == [(number, Lost(f"cannot read {tmp_path}")) for number in range(5)]
    assert notices == []


@pytest.mark.slow
def test_no_worker_of_this_version(tmp_path: Path) -> None:
    """It is an error before the first item."""
    with dask_with(tmp_path, ["version"]) as made:
        pool: DaskPool[tuple[str, int], int] = DaskPool(bad_worker.read, made.address, DEADLINE_S)
        with pytest.raises(NoEngine, match=r"no worker can be used: tcp://\S+ has runup 0\.0\.0, and this is"):
            list(pool.run([(str(tmp_path), 1)]))


@pytest.mark.slow
def test_a_scheduler_that_is_lost(dask: Dask, tmp_path: Path) -> None:
    """Each item that is left has the same sentence as its result."""
    from concurrent.futures import ThreadPoolExecutor

    pool: DaskPool[tuple[str, int], int] = DaskPool(dask_work.square, dask.address, DEADLINE_S)
    with ThreadPoolExecutor(1) as aside:
        running = aside.submit(lambda: list(pool.run([(str(tmp_path), number) for number in range(6)])))
        eventually(lambda: list(tmp_path.glob("began-*")), "a worker has begun")
        dask.scheduler.kill()
        found = running.result(DEADLINE_S)
    sentence = f"the scheduler {dask.address} cannot be reached any more; start it again and rerun the command"
    assert sorted(found) == [(number, Lost(sentence)) for number in range(6)]


class Lines:
    """The lines that are printed while clusters are read."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def count_one(self) -> None:
        """Counts nothing."""

    def show_under_way(self, names: Sequence[str]) -> None:
        """Shows nothing."""

    def print_line(self, line: str) -> None:
        """Keeps the line."""
        self.lines.append(line)

    def clear_line(self) -> None:
        """Clears nothing."""


def _fail(_member: Member) -> str:
    os._exit(7)


def test_a_reason_of_many_clusters_is_printed_once() -> None:
    """With how many more there are."""
    progress = Lines()
    members = [Member(name=f"c{number}", dump="d") for number in range(4)]
    found = read_all(members, _fail, lambda _, why: why, NamedMembers(parallel=1), progress=progress)
    why = "the process that read it ended by itself (exit code 7)"
    assert found == [why] * 4
    lost = [line for line in progress.lines if "tried once more" not in line]
    assert lost == [f"c0: {why}", f"and 3 more clusters: {why}"]


def test_a_certificate_that_is_not_configured() -> None:
    """The settings that lack are named."""
    # Its import fills the configuration.
    pytest.importorskip("distributed", reason="needs distributed: pip install 'kube-runup[dask]'")
    from dask import config as dask_config

    with dask_config.set({"distributed.comm.tls.ca-file": "ca.pem"}), pytest.raises(NoEngine) as raised:
        list(DaskPool(dask_work.broken, "tls://127.0.0.1:1", 1.0).run([1]))
    assert raised.value.message == (
        "--scheduler tls://127.0.0.1:1: the configuration of Dask lacks distributed.comm.tls.client.cert, "
        "distributed.comm.tls.client.key, each the path of a PEM file; set them in ~/.config/dask/*.yaml or as "
        "variables such as DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"
    )


@pytest.mark.slow
def test_an_error_costs_its_item_alone(dask: Dask) -> None:
    """It is reported by name."""
    found = dict(DaskPool(dask_work.broken, dask.address, DEADLINE_S).run(range(4)))
    assert (found[0], found[2]) == (0, 2)
    assert found[1] == Lost("its task failed: RuntimeError: 1 is odd")


@pytest.mark.slow
def test_a_fleet_is_the_same_as_here(dask: Dask, run: Run, tmp_path: Path) -> None:
    """The whole command, of dumps that the workers can read, too."""
    for name in ("orchard", "meadow"):
        shutil.copytree(ROOT / "examples" / "plain-kubernetes", tmp_path / "dumps" / name)
    release = ROOT / "examples" / "rehearsal" / "release"
    words = ("fleet", "preflight", "--dumps", tmp_path / "dumps", "--release-dir", release, "-o", "json")
    here = run(*words)
    there = run(*words, "--engine", "dask", "--scheduler", dask.address)
    assert (there.code, there.err) == (here.code, here.err)
    documents = [json.loads(ran.out) for ran in (here, there)]
    risks = [
        {one["cluster"]: [risk["name"] for risk in one["risks"]] for one in document["clusters"]}
        for document in documents
    ]
    assert risks[0] == risks[1]
    assert len(risks[0]) == 2


def test_a_scheduler_that_does_not_answer() -> None:
    """One sentence, with the way out."""
    pytest.importorskip("distributed", reason="needs distributed: pip install 'kube-runup[dask]'")
    pool: DaskPool[int, int] = DaskPool(dask_work.broken, "carrier://127.0.0.1:1", 1.0)
    with pytest.raises(NoEngine, match=r"--scheduler carrier://127.0.0.1:1: does not answer .*; give the address that"):
        list(pool.run([1]))


def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported how one is started."""
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install 'kube-runup[dask]'")
    wait_for_workers = distributed.Client.wait_for_workers
    # The wait alone is short: a client may take long to connect on a busy machine.
    monkeypatch.setattr(
        distributed.Client, "wait_for_workers", lambda client, number, timeout: wait_for_workers(client, number, 0.01)
    )
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with pytest.raises(NoEngine) as raised:
            list(DaskPool(dask_work.broken, address, 1.0).run([1]))
    assert raised.value.message == (
        f"--scheduler {address}: no worker has joined it; start some where the dumps are: dask worker {address}"
    )


def test_workers_in_one_process() -> None:
    """An error and what no worker can read cost their items alone; who gives another type is not used any more."""
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install 'kube-runup[dask]'")
    notices: list[str] = []
    dask_work.GARBLED.clear()
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        pool: DaskPool[int, int] = DaskPool(dask_work.various, address, DEADLINE_S, kind=int, notice=notices.append)
        found = list(pool.run(range(6)))
        lost = {1: Lost("its task failed: RuntimeError: 1 is odd"), 2: Lost("cannot read 2")}
        assert sorted(found, key=lambda each: each[0]) == [(number, lost.get(number, number)) for number in range(6)]
        assert notices == [f"worker {dask_work.GARBLED[0]} is not used: it gave str for an answer"]
        try:
            late = list(DaskPool(dask_work.blocked, address, 1.1).run([7]))
        finally:
            dask_work.LET_GO.set()
    why = "no dump was read for 1.1 s; give it more with --timeout, or look at the workers"
    assert late == [(0, Lost(why))]


def test_without_its_package(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported how it is installed."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    shutil.copytree(ROOT / "examples" / "plain-kubernetes", tmp_path / "dumps" / "orchard")
    words = ("fleet", "preflight", "--dumps", tmp_path / "dumps")
    ran = run(*words, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert (
        "error: --engine dask: package distributed is not installed; install it: pip install 'kube-runup[dask]'"
        in ran.err
    )


@pytest.mark.parametrize("words", [("--engine", "dask"), ("--scheduler", "tcp://127.0.0.1:1")])
def test_one_without_the_other(run: Run, words: tuple[str, ...]) -> None:
    """Both are named."""
    ran = run("fleet", "preflight", "--dumps", "nowhere", *words)
    assert ran.code == 1
    assert "--engine dask and --scheduler tcp://HOST:PORT need each other" in ran.err
