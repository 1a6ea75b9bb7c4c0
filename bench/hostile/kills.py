"""`python -m bench.hostile.kills COUNT SEED`: kill -9 at random moments of preflights and updates; for the bench.

One sandbox goes round and round: a preflight of a patch, its risks accepted, the update requested, applied, completed,
and the way back. In each of these stages the operator, the target or the node with everything on it is killed once.
Then the cluster has to come to where it would have come, and the API server is asked for the truth of all that was
written (`bench.hostile.truth`). JSON on stdout, progress on stderr.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import structlog
from tests.journeys import ending
from tests.journeys.cluster.test_killed_processes import NAMESPACE, OPERATOR, TARGET, kill, processes
from tests.journeys.conftest import RUNUP, Sandbox
from tests.servers import eventually

import runup.sandbox
from bench.hostile.truth import Placed, Revision, Write, problems
from bench.releases_world import events
from kubekit.api.conditions import find
from kubekit.api.whole_v1 import WholeDeployment
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.list_pages import WatchEvent
from runup.api.config_v1 import ClusterVersion

BEFORE, AFTER = "5.0.0", "5.0.1"
NODE = ("runup.sandbox.processes.cluster_process",)
VICTIMS = {"operator": OPERATOR, "target": TARGET, "node": NODE}
RISKS = frozenset({"MachineConfigPoolPaused-infra", "NodeCordoned"})
# What of another scenario finds these.
IN_THE_WAY = ("infra-pool.yaml", "cordoned-node.yaml")
RELEASE_FLAG = "--release="
# A guard against waiting for ever: an update takes ten seconds on an idle machine.
LONGEST_S = 240.0
SCENARIO = f"""\
title: A patch and the way back
summary: A healthy cluster with a paused pool and a cordoned node, and one patch.
base: common
components: true
cluster:
  version: {BEFORE}
  channel: stable-5.0
  gates: [ClusterUpdatePreflight, ClusterUpdateAcceptRisks, UpdateStatus]
releases:
- {{version: {BEFORE}, kubernetes: 1.35.2}}
- {{version: {AFTER}, kubernetes: 1.35.3}}
graph:
  edges:
  - [{BEFORE}, {AFTER}]
"""


@dataclass(frozen=True)
class Stage:
    """A step of the way: the command that begins it, who may be killed and how many seconds after, and its end."""

    name: str
    words: tuple[str, ...]
    victims: tuple[str, ...]
    within_s: float
    reached: Callable[[ClusterVersion], bool]


def _newest(version: ClusterVersion) -> tuple[str, str]:
    entry = version.status.history[0]
    return entry.version, entry.state


def _risks(version: ClusterVersion) -> set[str]:
    return set(Revision.of(version, AFTER).risks)


def _checked(version: ClusterVersion) -> bool:
    completed = find(version.status.conditions, "PreflightCompleted")
    return bool(completed and completed.status == "True") and _risks(version) >= RISKS


def _accepted(version: ClusterVersion) -> bool:
    update = version.spec.desired_update
    return _risks(version) >= RISKS and update is not None and {each.name for each in update.accept_risks} >= RISKS


ANY, RUNNING = ("operator", "target", "node"), ("operator", "node")
STAGES = (
    Stage("preflighting", ("upgrade", "--preflight", f"--to={AFTER}"), ANY, 5, _checked),
    Stage("accepting", ("upgrade", "accept", ",".join(sorted(RISKS))), ANY, 2, _accepted),
    Stage("update requested", ("upgrade", f"--to={AFTER}"), RUNNING, 3, lambda v: _newest(v)[0] == AFTER),
    Stage("applying", (), RUNNING, 12, lambda v: _newest(v) == (AFTER, "Completed")),
    Stage("completed", (), RUNNING, 3, lambda v: _newest(v) == (AFTER, "Completed")),
    Stage("way back", ("upgrade", "rollback"), RUNNING, 12, lambda v: _newest(v) == (BEFORE, "Completed")),
)


@dataclass
class Record:
    """All that the API server has kept since the beginning."""

    sandbox: Sandbox
    revisions: list[Revision] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    read: int = 0
    since: dict[type[Any], str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Take what is there now."""
        client = self.sandbox.client
        for kind in (ClusterVersion, WholeDeployment):
            found, self.since[kind] = client.list_all(kind)
            for each in found:
                self._take(each)

    def new_problems(self) -> list[str]:
        """Returns what is wrong in all that has come since it was asked last."""
        for kind in (ClusterVersion, WholeDeployment):
            for event in self._changes(kind):
                self.since[kind] = event.object.metadata.resource_version
                if event.type in ("ADDED", "MODIFIED"):
                    self._take(event.object)
        log = self.sandbox.data / "audit.log"
        end = log.stat().st_size
        taken = map(Write.of, events(log, self.read))
        self.writes += [write for write in taken if write is not None]
        self.read = end
        found = [each for each in problems(self.revisions, self.placed, self.writes, RISKS) if each not in self.known]
        self.known.update(found)
        return found

    def _changes(self, kind: type[Any]) -> Iterator[WatchEvent[Any]]:
        return self.sandbox.client.watch(kind, resource_version=self.since[kind], timeout_seconds=1)

    def _take(self, obj: ClusterVersion | WholeDeployment) -> None:
        number, name = int(obj.metadata.resource_version), f"{obj.metadata.namespace}/{obj.metadata.name}"
        if isinstance(obj, ClusterVersion):
            self.revisions.append(Revision.of(obj, AFTER))
        elif version := _release(obj):
            self.placed.append(Placed(number, name, version))


def _release(deployment: WholeDeployment) -> str:
    """The release that a component's Deployment is of, by its own flag."""
    containers = deployment.spec.template["spec"]["containers"]
    flags = [flag for each in containers for flag in each.get("args") or () if flag.startswith(RELEASE_FLAG)]
    return flags[0].removeprefix(RELEASE_FLAG) if flags else ""


def kills(count: int, seed: int, folder: Path) -> dict[str, Any]:
    """All of them in one cluster; counted by stage and victim."""
    drawn = random.Random(seed)
    counted: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    worst = {"what": "", "seconds": 0.0}
    peak = 0.0
    with _sandbox(folder) as sandbox:
        record = Record(sandbox)
        record.begin()
        for number, stage in zip(range(count), cycle(STAGES), strict=False):
            victim, delay = drawn.choice(stage.victims), drawn.uniform(0, stage.within_s)
            what = f"{victim} killed {delay:.2f} s into {stage.name}"
            peak = max([peak, *map(_peak_mib, processes(sandbox, *OPERATOR))])
            started = time.perf_counter()
            found = _killed_once(sandbox, record, stage=stage, victim=victim, delay=delay)
            spent = round(time.perf_counter() - started - delay, 1)
            if spent > worst["seconds"]:
                worst = {"what": what, "seconds": spent}
            counted.setdefault(f"{stage.name}: {victim}", Counter())["wrong" if found else "recovered as due"] += 1
            wrong += [f"{number}: {what}: {each}"[:500] for each in found]
            print(f"{number + 1}/{count} {what}: {found or 'recovered as due'}, {spent} s", file=sys.stderr, flush=True)
        told = {"revisions": len(record.revisions), "writes": len(record.writes), "placed": len(record.placed)}
    kinds = {kind: dict(each) for kind, each in sorted(counted.items())}
    return {"kinds": kinds, "worst": worst, "wrong": wrong, "peak_mib": peak, "judged": told}


def _killed_once(sandbox: Sandbox, record: Record, stage: Stage, victim: str, delay: float) -> list[str]:
    """One kill; returns what was wrong after it."""
    found = []
    try:
        if stage.name == STAGES[0].name:
            sandbox.patch()
        held = _holder(sandbox)
        with _typed(sandbox, stage.words) as command:
            time.sleep(delay)
            kill(sandbox, *VICTIMS[victim])
        if command is not None and command.returncode:
            found.append(f"`runup {' '.join(stage.words)}` ended with {command.returncode}")
        if victim != "target":
            eventually(lambda: _holder(sandbox) not in {"", held}, "another operator leads", LONGEST_S)
        eventually(lambda: stage.reached(sandbox.cluster_version()), f"the end of {stage.name}", LONGEST_S)
        eventually(lambda: len(processes(sandbox, *OPERATOR)) == 1, "that one operator runs", LONGEST_S)
    except AssertionError as error:
        found.append(str(error))
    return found + record.new_problems()


def _holder(sandbox: Sandbox) -> str:
    """Who holds the lease, a process; nobody before the first operator of all."""
    try:
        return sandbox.client.send(calls.get(Lease, "version", NAMESPACE)).spec.holder_identity
    except NotFound:
        return ""


@contextmanager
def _typed(sandbox: Sandbox, words: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes] | None]:
    """The command while it runs, ended before it is over; None where nothing is typed."""
    if not words:
        yield None
        return
    process = subprocess.Popen([*RUNUP, *words], env=sandbox.environment(), stdout=subprocess.DEVNULL)
    yield process
    process.wait(LONGEST_S)


@contextmanager
def _sandbox(folder: Path) -> Iterator[Sandbox]:
    scenario = folder / "scenario"
    (scenario / "cluster").mkdir(parents=True)
    for name in IN_THE_WAY:
        shutil.copy(
            Path(runup.sandbox.__path__[0]) / "scenario/bundled/skip-level/cluster" / name, scenario / "cluster"
        )
    (scenario / "scenario.yaml").write_text(SCENARIO)
    data = folder / "data"
    # As processes of this machine, which can be told apart and killed.
    words = ["sandbox", "start", "--scenario", str(scenario), "--data", str(data), "--runner", "process"]
    try:
        subprocess.run([*RUNUP, *words], stdout=subprocess.DEVNULL, check=True)
        yield Sandbox(data)
    finally:
        ending.end(data)
        ending.wait()


def _peak_mib(pid: int) -> float:
    """VmHWM: the process's own, not that of who started it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0  # it has ended since
    return next((round(int(s.split()[1]) / 1024, 1) for s in status.splitlines() if s.startswith("VmHWM:")), 0.0)


def main() -> None:
    """Print what came of all of them."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        print(json.dumps(kills(int(sys.argv[1]), int(sys.argv[2]), Path(folder))))


if __name__ == "__main__":
    main()
