"""Starts a container's process, writes its log, samples its memory and reports its exit; the same for all runners."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal as signals
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from kubekit.kube.clock import Clock, run_within
from kubesandbox.node.runner_interface import Launch, Runner
from kubesandbox.node.runners import descendants_of

log = structlog.get_logger("node")
# Limits of a log used as termination message (kubelet: 80 lines or 2048 bytes, whichever is less).
MESSAGE_LINES, MESSAGE_BYTES = 80, 2048
_SAMPLE_S = 0.1
_PAGE_BYTES = 4096
_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child between fork and exec must not take the loader's locks.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
# A line that is longer is written in parts, so that a container without line feeds costs no more memory than this.
_MAX_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit of a container; `code` is 128 + the signal's number if a signal ended it."""

    code: int
    out_of_memory: bool = False

    @property
    def reason(self) -> str:
        """The reason in the container's status, as the kubelet names it."""
        if self.out_of_memory:
            return "OOMKilled"
        return "Completed" if self.code == 0 else "Error"


class RunningContainer:
    """A container that has been started."""

    def __init__(
        self, runner: Runner, launch: Launch, *, process: asyncio.subprocess.Process, output: ContainerLog, clock: Clock
    ) -> None:
        self._runner, self._launch, self._process = runner, launch, process
        self._output, self._clock, self._over_limit = output, clock, False

    @property
    def pid(self) -> int:
        """The process id on the host: the container's first process, or the runner's program."""
        return self._process.pid

    async def wait(self) -> Exit:
        """Waits for its exit, enforcing the memory limit meanwhile if the runner does not."""
        sampler = None
        if self._launch.memory_bytes and not self._runner.limits_memory:

            async def watch_memory() -> None:
                while memory_of(self.pid) <= self._launch.memory_bytes:
                    await self._clock.sleep(_SAMPLE_S)
                self._over_limit = True
                await self._send_signal(signals.SIGKILL)

            sampler = asyncio.create_task(watch_memory())
        try:
            returned = await self._process.wait()
        finally:
            if sampler:
                sampler.cancel()
            self._output.close()
        over_limit = self._over_limit
        try:
            over_limit = over_limit or await asyncio.to_thread(self._runner.out_of_memory, self._launch)
            await asyncio.to_thread(self._runner.clean_up, self._launch)
        except (OSError, subprocess.SubprocessError) as error:
            # It has run and ended: to pass the error on would be to run it once more, whatever its restart policy.
            log.warning(
                "what a container left behind could not be removed", container=self._launch.id, error=str(error)
            )
        # A negative code is the number of the signal that ended the process (subprocess).
        return Exit(128 - returned if returned < 0 else returned, over_limit)

    async def stop(self, grace_s: float) -> None:
        """Sends SIGTERM, then SIGKILL after `grace_s` seconds; returns once the process has ended.

        `wait` must be running in another task.
        """
        if grace_s > 0 and self._process.returncode is None:
            await self._send_signal(signals.SIGTERM)
            with suppress(TimeoutError):
                await run_within(self._clock, grace_s, self._process.wait())
        if self._process.returncode is None:
            await self._send_signal(signals.SIGKILL)
            await self._process.wait()

    async def _send_signal(self, number: signals.Signals) -> None:
        await asyncio.to_thread(self._runner.signal, self._launch, self.pid, number)


async def start_container(runner: Runner, launch: Launch, log_file: Path, clock: Clock) -> RunningContainer:
    """Starts `launch`, its output appended to `log_file`. Raises OSError if it cannot be executed."""
    launch.work.mkdir(parents=True, exist_ok=True)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    command = await asyncio.to_thread(runner.command, launch)
    output = ContainerLog(log_file)
    try:
        standard_output, standard_error = output.writing_ends
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            env=dict(command.env),
            cwd=command.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=standard_output,
            stderr=standard_error,
            # The process leads its own group, which SIGKILL ends as a whole.
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    except BaseException:
        output.close()
        raise
    output.started()
    return RunningContainer(runner, launch, process=process, output=output, clock=clock)


def die_with_parent() -> None:
    """Makes the kernel kill this child when its parent dies, so that no pod outlives its agent (Linux only).

    Called in the child before exec.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signals.SIGKILL)


def memory_of(pid: int) -> int:
    """Returns the resident memory of a process and its descendants, in bytes; 0 for one that is gone."""
    total = 0
    for process_id in (pid, *descendants_of(pid)):
        with suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * _PAGE_BYTES
    return total


def termination_message(message_file: Path, log_file: Path, log_start: int, *, policy: str, exit_code: int) -> str:
    """Returns the container's termination message, or the end of its log if the policy says so and it failed.

    `log_start` is where this run's part of the log begins, in bytes.
    """
    message = _log_tail(message_file, 0)
    if message or policy != "FallbackToLogsOnError" or exit_code == 0:
        return message
    return _log_tail(log_file, log_start)


def _log_tail(path: Path, start: int) -> str:
    """Returns the last lines of a log from `start` (bytes) on, for a termination message."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(start, file.tell() - MESSAGE_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "".join(text.splitlines(keepends=True)[-MESSAGE_LINES:])


class ContainerLog:
    """The log of a running container: two pipes, read in the event loop, whose lines are appended to one file."""

    def __init__(self, file: Path) -> None:
        """Opens the log and both pipes. Raises OSError."""
        self._file = file.open("ab", buffering=0)
        self._streams: list[_Stream] = []
        try:
            self._streams += (_Stream(self._file), _Stream(self._file))
        except OSError:
            self.close()
            raise

    @property
    def writing_ends(self) -> tuple[int, int]:
        """The descriptors that the container gets as its standard output and standard error."""
        output, errors = self._streams
        return output.writing_end, errors.writing_end

    def started(self) -> None:
        """Starts to read; called once the container has the write ends of the pipes."""
        for stream in self._streams:
            stream.started()

    def close(self) -> None:
        """Writes the remaining data of the pipes and closes them; an orphaned process cannot write any more."""
        for stream in self._streams:
            stream.close()
        self._file.close()


class _Stream:
    """A pipe of the container (stdout or stderr), with the beginning of a line that has not ended yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line = b""
        self._reading_end, self.writing_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reading_end, False)

    def started(self) -> None:
        self._close_writing_end()
        asyncio.get_running_loop().add_reader(self._reading_end, self._read_once)

    def close(self) -> None:
        """Writes the remaining output up to a limit, because a process that is still running may write forever."""
        self._close_writing_end()
        for _ in range(_MAX_LINE_BYTES // _READ_BYTES):
            if self._reading_end < 0 or not self._read_once():
                break
        self._write_data(self._line)
        self._line = b""
        self._close_reading_end()

    def _read_once(self) -> bool:
        """Reads once; returns whether there may be more."""
        try:
            data = os.read(self._reading_end, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close_reading_end()
            return False
        lines, feed, last_line = (self._line + data).rpartition(b"\n")
        self._line = last_line
        self._write_data(lines + feed)
        if len(self._line) >= _MAX_LINE_BYTES:
            self._write_data(self._line)
            self._line = b""
        return True

    def _write_data(self, data: bytes) -> None:
        # A full disk costs lines of the log, as it does on a node, and not the container.
        with suppress(OSError):
            while data:
                data = data[self._file.write(data) or len(data) :]

    def _close_reading_end(self) -> None:
        if self._reading_end >= 0:
            asyncio.get_running_loop().remove_reader(self._reading_end)
            os.close(self._reading_end)
            self._reading_end = -1

    def _close_writing_end(self) -> None:
        if self.writing_end >= 0:
            os.close(self.writing_end)
            self.writing_end = -1
