"""`python -m bench faults`: what a preflight shows during and after each fault, and what the fault leaves behind.

In each row of `ROWS` a real operator and a real target share a clock that is moved. A preflight is live; then the fault
begins, a node is cordoned, and the fault ends. Three questions are answered: for how many seconds ClusterVersion showed
a result that was observed half a minute after the change and lacks it, how many seconds of quiet it took until the
change was shown, and which objects are left after the request was cleared that are not left without a fault. Rows of
`STORIES` need processes, disks or nodes: each is a test with the same three questions. Random kills come last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import structlog
from aiohttp import web
from tests.clusterversion.control.test_long_trouble import pass_time, run_target
from tests.operator.operator_world import NAMESPACE, Cluster, cluster

from bench.hostile.every_part import ROOT
from bench.hostile.faulty_api import (
    Fault,
    FaultyApi,
    broken_off,
    cut_watch,
    expired_page,
    expired_watch,
    faulty_api,
    pass_on,
    server_error,
    silent,
    too_many,
    truncated,
    unavailable,
)
from kubekit.api.conditions import status_of
from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.clock import Clock, ManualClock, ShiftedClock, SystemClock
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import findings_of_target
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED
from runup.preflight.decide.preflight_state import Phase
from runup.process.leader_election import LeaseLost, cancel

NODES, MAPS = resource_of(Node), resource_of(ConfigMap)
_HISTORY = calls.get(ConfigMap, stored_reports.NAME, NAMESPACE)
# The change as a risk, and what is shown while it cannot be determined.
TARGET, RISK, UNKNOWN = "5.2.0", "NodeCordoned", "NodeCordonedUnknown"
# A lease that was lost lasts 137 s after the next process has seen it first.
BEGIN_S, PATIENCE_S, RESTART_S = 120, 240, 10
# A target reports at least every 30 s, and the operator takes a report at most every ten.
SHOWN_AFTER_S = 60
HOURS = timedelta(hours=5)
# The third failure of a watch in a row counts; what is read until then has the time of its report.
NOTICED_AFTER = timedelta(seconds=30)


class Scene(NamedTuple):
    """A cluster, the way to its API server, the clock of all that runs, and what gives the way its next certificate.

    `rotate(True)` gives it one of an authority that no client knows.
    """

    world: Cluster
    api: FaultyApi
    clock: ManualClock
    rotate: Callable[[bool], None]


Trouble = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fault: what requests and watches meet for `seconds`, or how far clocks are ahead.

    `fills_disk`: the disk of reports is full meanwhile. `rotates`: the API server has another certificate of the same
    authority afterwards. `foreign`: it has one of another authority meanwhile. `false_s`: how long a result may be
    shown that lacks the change.
    """

    name: str
    seconds: int = 60
    requests: Callable[[Scene], Fault] | None = None
    watches: Callable[[Scene], Fault] | None = None
    operator_ahead: timedelta = timedelta()
    target_ahead: timedelta = timedelta()
    operators: int = 1
    rotates: bool = False
    foreign: bool = False
    fills_disk: bool = False
    false_s: int = SHOWN_AFTER_S


def same(fault: Fault) -> Callable[[Scene], Fault]:
    """Returns what makes `fault`, whatever the scene."""
    return lambda _: fault


async def wrong_type(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """A page with code 200, such as that of a proxy that wants a login."""
    return web.Response(text="<html>please log in</html>", content_type="text/html")


async def refused_token(_request: web.BaseRequest, _api: FaultyApi) -> web.StreamResponse:
    """401: the token has expired and was not renewed yet."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401, "reason": "Unauthorized"}
    return web.json_response(status, status=401)


def slow(scene: Scene) -> Fault:
    """Returns a fault that sends half of an answer, and the rest 20 s of the clock later."""

    async def slowly(request: web.BaseRequest, api: FaultyApi) -> web.StreamResponse:
        async with api.asked(request) as answer:
            body = await answer.read()
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
            # Time must pass for this request to be answered.
            api.in_flight -= 1
            try:
                await scene.clock.sleep(20)
            finally:
                api.in_flight += 1
            await response.write(body[len(body) // 2 :])
            await response.write_eof()
        return response

    return slowly


ROWS = (
    Row(name="none, to compare with"),
    Row(name="connections reset in the middle of lists and watches", requests=same(truncated), watches=same(cut_watch)),
    Row(name="429 with Retry-After", requests=same(too_many), watches=same(too_many)),
    Row(name="410 for pages and watches", requests=same(expired_page), watches=same(expired_watch)),
    Row(name="500 for five minutes", seconds=300, requests=same(server_error), watches=same(server_error)),
    Row(name="no answer for five minutes", seconds=300, requests=same(broken_off), watches=same(broken_off)),
    Row(name="slow bodies", requests=slow),
    Row(name="503 as a page", requests=same(unavailable), watches=same(unavailable)),
    Row(name="200 as a page", requests=same(wrong_type), watches=same(wrong_type)),
    # A watch without a word is given up after 300 s. The time of the result that is shown is older for most of it.
    Row(
        name="watches that say nothing, for ten minutes",
        seconds=600,
        watches=lambda scene: silent(scene.clock),
        false_s=240,
    ),
    Row(name="a token that has expired, and is renewed", requests=same(refused_token), watches=same(refused_token)),
    Row(
        name="a certificate that is rotated",
        seconds=20,
        requests=same(broken_off),
        watches=same(broken_off),
        rotates=True,
    ),
    # Connections that were open before it are broken; no new one is made.
    Row(
        name="a certificate of another authority for five minutes",
        seconds=300,
        requests=same(broken_off),
        watches=same(broken_off),
        foreign=True,
    ),
    Row(name="the operator's clock five hours ahead", operator_ahead=HOURS),
    Row(name="the operator's clock five hours behind", operator_ahead=-HOURS),
    Row(name="the target's clock five hours ahead", target_ahead=HOURS),
    Row(name="the target's clock five hours behind", target_ahead=-HOURS),
    Row(name="both clocks five hours from each other", operator_ahead=HOURS, target_ahead=-HOURS),
    Row(name="two operators at once", operators=2),
    Row(name="a full disk for reports", seconds=120, fills_disk=True),
)
# Faults that need processes, a disk or a node. Each test checks the state, its end, and what is left.
STORIES = {
    "a full disk for the sandbox's store": "journeys/sandbox/test_full_disk.py::test_a_disk_that_is_full_for_a_while",
    "a node that dies with the target on it": "journeys/cluster/test_killed_processes.py"
    "::test_the_final_status_is_what_it_would_have_been -k agent",
    "an operator that is suspended until another leads": "operator/test_killed_operator.py"
    "::test_who_was_suspended_writes_nothing_when_it_goes_on",
    "a leader that hangs": "process/test_lease_alarm.py",
    "a target that is killed for its memory": "journeys/cli/test_bad_targets.py::test_a_target_that -k memory",
    "an operator that has no memory left": "operator/test_killed_operator.py"
    "::test_an_operator_without_memory_ends_and_the_next_one_shows_the_change",
    "a console that has no memory left": "cli/console/test_serve_command.py::test_a_console_without_memory_ends",
    "tokens that are rotated and revoked": "operator/test_rotated_tokens.py::test_the_managing_operator_goes_on",
    "a lease that is stolen, and clocks that are set": "clusterversion/control/test_two_operators.py",
}
IN_A_NAMESPACE = ("unshare", "--map-root-user", "--mount")


@dataclass
class Outcome:
    """What came of a fault."""

    fault: str
    # Seconds for which a result was shown that was observed after the change and lacks it.
    false_s: int = 0
    # Seconds of quiet until the change was shown; None if it never was.
    shown_s: int | None = None
    # Objects that are left although nothing is requested any more.
    left: list[str] = field(default_factory=list)
    # Processes that ended, and were started again.
    restarts: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    # The test that shows it, of a story.
    test: str = ""


async def outcome_of(row: Row, folder: Path, normal: Sequence[str]) -> Outcome:
    """Returns what comes of one fault; `normal` is what is left without one."""
    clock, outcome, started = ManualClock(SystemClock().now()), Outcome(row.name), time.perf_counter()
    ca, tls = new_ca(SystemClock().now()), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def rotate(foreign: bool) -> None:
        pair = issue_server(new_ca(SystemClock().now()) if foreign else ca, SystemClock().now())
        (folder / "pair").write_bytes(pair.cert + pair.key)
        tls.load_cert_chain(folder / "pair")

    rotate(False)
    async with (
        cluster(folder) as (world, make),
        faulty_api(config.load(str(world.kubeconfig)), tls=tls, ca_data=ca.cert) as api,
    ):
        scene = Scene(world, api, clock, rotate)
        if row.fills_disk:
            await asyncio.to_thread(mount, world.reports)
        await world.client.send(calls.create(NODES, {"metadata": {"name": "worker-0"}}))

        async def run_operator() -> None:
            await make(through=api.config, clock=shifted(clock, row.operator_ahead)).run()

        async def follow() -> None:
            await run_target(world, api, shifted(clock, row.target_ahead))

        programs = [*[run_operator] * row.operators, follow]
        tasks = [asyncio.create_task(supervised(program, clock, outcome)) for program in programs]
        try:
            await world.ask({"mode": "Preflight", "version": TARGET})
            if await quiet_until(scene, lambda: is_live(world), BEGIN_S) is None:
                outcome.wrong.append("the preflight was not live before the fault")
                return outcome
            await suffer(row, scene, outcome)
            outcome.shown_s = await quiet_until(scene, lambda: is_shown(world), PATIENCE_S)
            if outcome.shown_s is None:
                outcome.wrong.append("the change was not shown after the fault")
            await world.ask(None)
            if await quiet_until(scene, lambda: is_cleared(world), PATIENCE_S) is None:
                outcome.wrong.append("the preflight was not removed")
            outcome.left = sorted(set(await objects(world)) - set(normal))
        finally:
            await cancel(tasks)
        outcome.wrong += [repr(task.exception()) for task in tasks if task.done() and not task.cancelled()]
    if outcome.false_s > row.false_s:
        outcome.wrong.append(f"a result without the change was shown for {outcome.false_s} s, {row.false_s} s at most")
    outcome.seconds = round(time.perf_counter() - started, 1)
    return outcome


def shifted(clock: ManualClock, ahead: timedelta) -> Clock:
    """Returns `clock`, whose wall-clock time is ahead by so much."""
    return ShiftedClock(clock, ahead) if ahead else clock


async def supervised(run: Callable[[], Awaitable[None]], clock: Clock, outcome: Outcome) -> None:
    """Runs a program, and runs it again after its lease was lost, as a node does."""
    while True:
        try:
            await run()
            return
        except LeaseLost:
            outcome.restarts += 1
            await clock.sleep(RESTART_S)


async def suffer(row: Row, scene: Scene, outcome: Outcome) -> None:
    """Lets the fault last, and the cluster change in the midst of it."""
    world, api, clock, rotate = scene
    if row.rotates or row.foreign:
        rotate(row.foreign)
    if row.fills_disk:
        fill(world.reports)
    if row.requests or row.watches:
        api.away()
        api.share = 1.0 if row.requests else 0.0
        api.faults = (row.requests(scene),) if row.requests else ()
        api.watches = (row.watches(scene) if row.watches else pass_on,)
    await pass_time(clock, api, 10)
    await world.client.send(calls.merge_patch(NODES, "worker-0", {"spec": {"unschedulable": True}}))
    changed_at = clock.now() + row.operator_ahead + NOTICED_AFTER
    for _ in range(max(row.seconds - 10, SHOWN_AFTER_S) // 5):
        await pass_time(clock, api, 5)
        outcome.false_s += 5 * await is_false(world, changed_at)
    if row.foreign:
        rotate(False)
    api.calm()
    (world.reports / "fill").unlink(missing_ok=True)


def mount(folder: Path) -> None:
    """Puts a small disk in place of a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leaves no room on the disk of a folder."""
    with (folder / "fill").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


async def is_false(world: Cluster, changed_at: datetime) -> bool:
    """Reports whether a live result is shown that was observed after the change, and neither has it nor doubts it."""
    try:
        record = await world.client.send(_HISTORY)
    except NotFound:
        return False
    found = findings_of_target(await world.version(), stored_reports.read(record), TARGET)
    is_newer = found.observed is not None and found.observed > changed_at
    return found.phase is Phase.LIVE and is_newer and not any(risk.name in (RISK, UNKNOWN) for risk in found.risks)


async def is_live(world: Cluster) -> bool:
    """Reports whether ClusterVersion shows a preflight that is complete and has not failed."""
    conditions = (await world.version()).status.conditions
    return status_of(conditions, COMPLETED) == "True" and status_of(conditions, FAILED) == "False"


async def is_shown(world: Cluster) -> bool:
    """Reports whether ClusterVersion shows the change, in a preflight that is live."""
    risks = {risk.name for risk in (await world.version()).status.conditional_update_risks}
    return RISK in risks and await is_live(world)


async def is_cleared(world: Cluster) -> bool:
    """Reports whether neither a Deployment nor a condition is left of the preflight."""
    conditions = (await world.version()).status.conditions
    return await world.deployment() is None and not any(each.type.startswith("Preflight") for each in conditions)


async def quiet_until(scene: Scene, holds: Callable[[], Awaitable[bool]], most_s: int) -> int | None:
    """Returns after how many seconds of the clock it holds; None if it does not within `most_s`."""
    for waited in range(most_s):
        if await holds():
            return waited
        await pass_time(scene.clock, scene.api, 1)
    return None


async def objects(world: Cluster) -> list[str]:
    """Returns the names of what is in the operator's namespace."""
    names = []
    for kind in (Deployment, ConfigMap, Pod):
        found, _ = await world.client.list_all(kind, NAMESPACE)
        names += [f"{kind.__name__} {each.metadata.name}" for each in found]
    return names


def outcomes_of_rows(names: Sequence[str]) -> Iterator[Outcome]:
    """Yields what comes of the rows of these names, after the first, which has no fault."""
    normal: list[str] = []
    for row in ROWS:
        if row is not ROWS[0] and row.name not in names:
            continue
        if row.fills_disk and os.environ.get(_INSIDE) != row.name:
            outcome = in_a_namespace(row)
        else:
            with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
                outcome = asyncio.run(outcome_of(row, Path(folder), normal))
        if row is ROWS[0]:
            normal, outcome.left = outcome.left, []
        yield outcome


_INSIDE = "BENCH_FAULTS_INSIDE"


def in_a_namespace(row: Row) -> Outcome:
    """Returns what comes of a row in a process that may mount a disk."""
    done = subprocess.run(
        [*IN_A_NAMESPACE, sys.executable, "-m", "bench", "faults", "--only", row.name],
        env=os.environ | {_INSIDE: row.name},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=False,
    )
    try:
        return Outcome(**json.loads(done.stdout)["outcomes"][-1])
    except (ValueError, LookupError):
        return Outcome(row.name, wrong=[f"not tried: `{' '.join(IN_A_NAMESPACE)}` ended with {done.returncode}"])


def outcome_of_story(name: str) -> Outcome:
    """Returns whether the test of a story passed."""
    started = time.perf_counter()
    words = ("-q", "-p", "no:cacheprovider", *f"tests/{STORIES[name]}".split())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    seconds = round(time.perf_counter() - started, 1)
    return Outcome(name, test=STORIES[name], seconds=seconds, wrong=[done.stdout[-500:]] if done.returncode else [])


def outcome_of_kills(count: int, seed: int) -> Outcome:
    """Returns what comes of random kills of operators, targets and nodes."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench.hostile.kills", str(count), str(seed)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    seconds = round(time.perf_counter() - started, 1)
    return Outcome(f"{count} random kills, seed {seed}", test="", seconds=seconds, wrong=found["wrong"])


def table(outcomes: Sequence[Outcome]) -> str:
    """Returns the table of docs/explanation/security.md."""
    lines = ["| fault | shown meanwhile | shown after it | left behind | restarts |", "|---|---|---|---|---|"]
    for each in outcomes:
        verdict = "**wrong**: " + "; ".join(each.wrong).replace("\n", " ") if each.wrong else ""
        if each.shown_s is None:
            tested = f"as `tests/{each.test.split()[0]}` requires" if each.test else "as it must be, each time"
            cells = [verdict or tested, "the same", "nothing", "" if each.test else "-"]
        else:
            meanwhile = f"the change is missing for {each.false_s} s" if each.false_s else "nothing false"
            cells = [
                verdict or meanwhile,
                f"{each.shown_s} s later",
                ", ".join(each.left) or "nothing",
                str(each.restarts),
            ]
        lines.append(f"| {' | '.join((each.fault, *cells))} |")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Prints what came of all of them: JSON on stdout, or the table of docs/explanation/security.md."""
    names = [row.name for row in ROWS[1:]] + list(STORIES)
    parser = argparse.ArgumentParser(prog="python -m bench faults", description="What each fault comes to.")
    parser.add_argument("--only", action="append", metavar="FAULT", help=", ".join(names))
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="random kills, too: 50 take half an hour")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which kills")
    parser.add_argument(
        "--table", action="store_true", help="print the table of docs/explanation/security.md instead of JSON"
    )
    flags = parser.parse_args(argv)
    chosen = flags.only or names
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"no fault {', '.join(unknown)}")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    outcomes = []
    kills = [outcome_of_kills(flags.kills, flags.seed)] if flags.kills else []
    for outcome in chain(outcomes_of_rows(chosen), map(outcome_of_story, filter(STORIES.get, chosen)), kills):
        print(f"{outcome.fault}: {outcome.wrong or 'survived'}, {outcome.seconds} s", file=sys.stderr, flush=True)
        outcomes.append(outcome)
    wrong = [each.fault for each in outcomes if each.wrong]
    found = {"outcomes": [asdict(each) for each in outcomes], "wrong": wrong}
    print(table(outcomes) if flags.table else json.dumps(found, indent=2))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
