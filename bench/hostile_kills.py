"""`python -m bench.hostile_kills COUNT SEED`: kill -9 of the operator's process at random moments; for the bench.

After each kill the next process has to end where the killed one would have: the preflight that was asked for is
completed with what its target found, the one that was cleared is gone, and the process ends in order when told to.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import structlog
from tests.operator.operator_world import Cluster, cluster
from tests.operator.test_killed_operator import process, run_out

from kubekit.api.conditions import find

RISK = "PoolPaused"
# From before the process has read anything to after it has nothing left to do.
LONGEST_S = 4.0


async def kills(count: int, seed: int, folder: Path) -> dict[str, Any]:
    """Every kill in a cluster of its own; counted by what the operator was told before it."""
    drawn = random.Random(seed)
    counted: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    worst = {"what": "", "seconds": 0.0}
    peak = 0.0
    for number in range(count):
        cleared = bool(number % 2)
        kind = "killed after a preflight was cleared" if cleared else "killed while a preflight began"
        delay = drawn.uniform(0, LONGEST_S)
        started, outcome = time.perf_counter(), "recovered as due"
        try:
            peak = max(peak, await _one(_made(folder / str(number)), cleared=cleared, delay=delay))
        except (AssertionError, TimeoutError) as error:
            outcome = "wrong"
            wrong.append(f"{kind}, {delay:.2f} s: {error}"[:500])
        spent = round(time.perf_counter() - started - delay, 1)
        if spent > worst["seconds"]:
            worst = {"what": f"{kind}, after {delay:.2f} s", "seconds": spent}
        counted.setdefault(kind, Counter())[outcome] += 1
    return {"kinds": {k: dict(v) for k, v in counted.items()}, "worst": worst, "wrong": wrong, "peak_mib": peak}


async def _one(folder: Path, *, cleared: bool, delay: float) -> float:
    """One kill; the most memory, in MiB, that an operator's process had."""
    async with cluster(folder) as (world, _):
        async with process(world, folder) as first:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            if cleared:
                world.report(await world.started("5.2.0"), RISK)
                await world.condition("PreflightCompleted", "True")
                await world.ask(None)
            await asyncio.sleep(delay)
            assert first.returncode is None, "the operator ended before it was killed"
            peak = _peak_mib(first.pid)
        await run_out(world)
        async with process(world, folder) as second:
            if cleared:
                # It takes the next request, too: only then is it known to be at work.
                await _gone(world)
                await world.ask({"mode": "Preflight", "version": "5.2.0"})
            await _completed(world)
            peak = max(peak, _peak_mib(second.pid))
            second.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(second.wait(), 10) == 0, "it did not end in order"
    return peak


async def _completed(world: Cluster) -> None:
    world.report(await world.started("5.2.0"), RISK)
    version = await world.condition("PreflightCompleted", "True", "RisksFound")
    assert RISK in {risk.name for risk in version.status.conditional_update_risks}


async def _gone(world: Cluster) -> None:
    await world.gone()
    await world.until(lambda v: find(v.status.conditions, "PreflightRunning") is None)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _peak_mib(pid: int) -> float:
    """VmHWM: the process's own, not that of who started it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next((round(int(s.split()[1]) / 1024, 1) for s in status.splitlines() if s.startswith("VmHWM:")), 0.0)


def main() -> None:
    """Print what came of all of them."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(kills(int(sys.argv[1]), int(sys.argv[2]), Path(folder)))))


if __name__ == "__main__":
    main()
