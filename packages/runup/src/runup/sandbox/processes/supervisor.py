"""Keeps a sandbox's two processes alive and ends them in order: `python -m runup.sandbox.processes.supervisor --data
DIR`.

A process that dies is restarted, at once the first time and with growing delays if it keeps dying; acknowledged writes
are in the store. The API server ends last, so that the others can finish their requests.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from kubekit.error_types import Terminal
from kubekit.kube.clock import CLOCK_OFFSET_VARIABLE, Clock, SystemClock
from kubekit.lang.files import Lossy
from kubesandbox.node.container_process import die_with_parent
from kubesandbox.node.pod_volumes import write_atomically
from kubesandbox.sandbox_error import SandboxError
from runup.sandbox.setup import settings

# A process that lived this long is healthy; it is restarted without a delay.
_WELL_S = 10.0
_LONGEST_PAUSE_S = 10.0
# Time for a process to end after SIGTERM, before it is killed.
_GRACE_S = 20.0


class Child:
    """A child process: its command, its log, its restarts."""

    def __init__(self, name: str, argv: list[str], log: Path, clock: Clock) -> None:
        self.name = name
        self._argv = argv
        self._log = log
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None

    async def keep_running(self) -> None:
        """Starts the process again and again until cancelled, then ends it."""
        pause = 0.0
        try:
            while True:
                started = self._clock.monotonic()
                self._log.parent.mkdir(parents=True, exist_ok=True)
                with self._log.open("ab") as output:
                    self._process = await asyncio.create_subprocess_exec(
                        *self._argv,
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=output,
                        stderr=asyncio.subprocess.STDOUT,
                        preexec_fn=die_with_parent,
                    )
                assert self._process is not None
                code = await self._process.wait()
                lifetime_s = self._clock.monotonic() - started
                pause = 0.0 if lifetime_s > _WELL_S else min(max(pause * 2, 0.1), _LONGEST_PAUSE_S)
                self._note(f"{self.name} ended with {code} after {lifetime_s:.1f} s; starting it again in {pause:g} s")
                await self._clock.sleep(pause)
        finally:
            await asyncio.shield(self._end_process())

    async def _end_process(self) -> None:
        """Ends the process: by SIGTERM, and by SIGKILL if it still runs after `_GRACE_S` seconds."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _GRACE_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    def _note(self, text: str) -> None:
        log = Lossy(sys.stderr)
        log.write(f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {text}\n")
        log.flush()


async def supervise(data: Path, clock: Clock) -> None:
    """Runs both processes until SIGTERM or SIGINT; raises SandboxError."""
    sandbox_settings = settings.load(data)
    if sandbox_settings is None:
        raise SandboxError(f"{data} does not contain a sandbox")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if sandbox_settings.clock_offset_s:
        os.environ[CLOCK_OFFSET_VARIABLE] = str(sandbox_settings.clock_offset_s)
    python = [sys.executable, "-m"]
    server = ["kubesandbox.apiserver", "--data", str(data), "--port", str(sandbox_settings.api_port)]
    logs = data / "logs"
    write_atomically(data / settings.PID, str(os.getpid()).encode())
    api = asyncio.create_task(Child("apiserver", python + server, logs / "apiserver.log", clock).keep_running())
    cluster_argv = [*python, "runup.sandbox.processes.cluster_process", "--data", str(data)]
    cluster = asyncio.create_task(Child("cluster", cluster_argv, logs / "cluster.log", clock).keep_running())
    try:
        await stop.wait()
    finally:
        for task in (cluster, api):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        (data / settings.PID).unlink(missing_ok=True)


def main() -> None:
    """Runs the process; exits 1 with one line if it cannot run."""
    parser = argparse.ArgumentParser(prog="runup.sandbox.processes.supervisor", description="Keeps a sandbox running.")
    parser.add_argument("--data", type=Path, required=True, help="the sandbox's folder")
    arguments = parser.parse_args()
    try:
        asyncio.run(supervise(arguments.data.resolve(), SystemClock()))
    except (Terminal, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
