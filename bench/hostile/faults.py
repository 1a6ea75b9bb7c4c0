"""`python -m bench.hostile.faults SECONDS SEED`: an API server that misbehaves for so long, then quiet; for the bench.

Operator and target are the real ones and share a clock that is moved, so that minutes take seconds. What was asked for
in the midst of it must be done within a minute after it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import structlog
from tests.clusterversion.control.test_long_trouble import PATIENCE_S, pass_time, run_target, settled
from tests.operator.operator_world import cluster

from bench.hostile.faulty_api import faulty_api
from bench.hostile.images import peak_kib
from kubekit.kube import config
from kubekit.kube.clock import ManualClock, SystemClock
from runup.process.leader_election import cancel


async def trouble(seconds: int, seed: int, folder: Path) -> dict[str, Any]:
    """What the proxy did, by kind of fault, and what came of all of it: `survived as due`, `wrong` or `crashed`."""
    clock = ManualClock(SystemClock().now())
    started, quiet, outcome, said = time.perf_counter(), 0, "wrong", ""
    async with cluster(folder) as (world, make), faulty_api(config.load(str(world.kubeconfig)), seed) as api:
        api.storm()
        tasks = [asyncio.create_task(make(through=api.config, clock=clock).run())]
        tasks.append(asyncio.create_task(run_target(world, api, clock)))
        try:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            await pass_time(clock, api, seconds)
            faults = {name: number for name, number in api.counted.items() if not name.endswith("pass_on")}
            api.calm()
            while quiet < PATIENCE_S and not await settled(world):
                await pass_time(clock, api, 1)
                quiet += 1
            outcome = "survived as due" if await settled(world) else "wrong"
            ended = [task.exception() for task in tasks if task.done() and not task.cancelled()]
            if ended:
                outcome, said = "crashed", repr(ended[0])
        finally:
            await cancel(tasks)
    return {
        "kinds": {name: {outcome: number} for name, number in sorted(faults.items())},
        "worst": {"what": f"{quiet} s of quiet until all was done", "seconds": round(time.perf_counter() - started, 1)},
        "wrong": [said or "not done a minute after it"] if outcome != "survived as due" else [],
        "peak_mib": round(peak_kib() / 1024, 1),
    }


def main() -> None:
    """Print what came of it."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(trouble(int(sys.argv[1]), int(sys.argv[2]), Path(folder)))))


if __name__ == "__main__":
    main()
