"""Does one piece of work per cluster in processes of their own, so that a cluster which kills one costs itself alone.

A process reads one cluster at a time and sends back a small value. Where it is killed, or runs out of memory, its
cluster is tried once more in a new process, and then told as lost. A process that has grown large ends after its
cluster, and another one takes its place: what one dump took is not kept while the next is read.

What a process unpacks is in a folder of its own, which goes with it, however it ends.

The processes are forked, so that they share what is imported already: no thread may run here at that time.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from kubekit.lang.removal import remove_tree

T = TypeVar("T")
R = TypeVar("R")

# A process that has grown by more than this, MiB, ends after its cluster. With two of them, and what both share, a
# fleet of usual dumps stays below 1 GiB.
_LARGE_MIB = 320
_TRIES = 2
_END_S = 5.0


class Lost(msgspec.Struct, frozen=True):
    """A piece of work without a result, and why; `bug` is the traceback where runup itself failed."""

    why: str
    bug: str = ""


class Retried(msgspec.Struct, frozen=True):
    """A piece of work that is tried once more, and why."""

    why: str


class _Answer(msgspec.Struct, frozen=True):
    """What a process sends: its result, or why there is none, and whether another try may help.

    `ends`: the process takes no further work.
    """

    result: Any
    lost: Lost | None = None
    again: bool = False
    ends: bool = False


class _Worker(Generic[T]):
    """A process with the pipe to it, its folder for what it unpacks, and the index of the work that it has, if any."""

    def __init__(self, process: BaseProcess, pipe: Connection, scratch: Path) -> None:
        self.process = process
        self.pipe = pipe
        self.scratch = scratch
        self.index: int | None = None
        self.started = 0.0

    def stop_process(self, patience_s: float = 0.0) -> None:
        """Ends the process: at once, or if it is about to end by itself, after that."""
        if patience_s:
            self.process.join(patience_s)
        self.process.kill()
        self.process.join(_END_S)
        self.pipe.close()
        remove_tree(self.scratch)


class Pool(Generic[T, R]):
    """At most `size` processes that do `work`; each piece may take `limit_s` seconds (0: any number)."""

    def __init__(self, work: Callable[[T], R], size: int, limit_s: float = 0.0) -> None:
        self._work = work
        self._size = max(size, 1)
        self._limit_s = limit_s
        # Only Linux can fork safely whatever libraries are loaded; elsewhere the processes begin anew.
        self._context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._workers: list[_Worker[T]] = []

    def run(self, items: Sequence[T]) -> Iterator[tuple[int, R | Lost | Retried]]:
        """Yields each item's index with its result, as they come; before a second try also Retried."""
        waiting = deque(range(len(items)))
        tries = [0] * len(items)
        try:
            while waiting or any(worker.index is not None for worker in self._workers):
                self._hand_out(items, waiting, tries)
                for worker in self._wait_for_workers():
                    index = worker.index
                    assert index is not None
                    answer = self._answer_of(worker)
                    if answer.lost and answer.again and tries[index] < _TRIES:
                        waiting.appendleft(index)
                        yield index, Retried(answer.lost.why)
                    else:
                        yield index, answer.lost or answer.result
        finally:
            for worker in self._workers:
                worker.stop_process()
            self._workers.clear()

    def _hand_out(self, items: Sequence[T], waiting: deque[int], tries: list[int]) -> None:
        free = [worker for worker in self._workers if worker.index is None]
        while waiting and (free or len(self._workers) < self._size):
            if free:
                worker = free.pop()
            else:
                # An interruption would be swallowed while a process is forked, or leave one that nobody ends.
                with _uninterrupted():
                    worker = self._start_worker()
            index = waiting.popleft()
            worker.index, worker.started = index, time.monotonic()
            tries[index] += 1
            # A process that died while it had nothing to do is noticed where its answer is read.
            with suppress(OSError):
                worker.pipe.send(items[index])

    def _start_worker(self) -> _Worker[T]:
        ours, theirs = self._context.Pipe()
        others = [worker.pipe for worker in self._workers]
        scratch = Path(tempfile.mkdtemp(prefix="runup-fleet-"))
        args = (theirs, [*others, ours], self._work, str(scratch))
        process = self._context.Process(target=_serve, args=args, daemon=True)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        process.start()
        theirs.close()
        worker: _Worker[T] = _Worker(process, ours, scratch)
        self._workers.append(worker)
        return worker

    def _wait_for_workers(self) -> list[_Worker[T]]:
        """Waits until a process has answered, ended, or taken too long, and returns those."""
        busy = [worker for worker in self._workers if worker.index is not None]
        left = None
        if self._limit_s:
            left = max(min(worker.started for worker in busy) + self._limit_s - time.monotonic(), 0.0)
        answered = set(wait([worker.pipe for worker in busy], left))
        late = time.monotonic() - self._limit_s if self._limit_s else 0.0
        return [worker for worker in busy if worker.pipe in answered or (late and worker.started <= late)]

    def _answer_of(self, worker: _Worker[T]) -> _Answer:
        """Returns the answer of a process, or why it has none; one that ended or hangs is removed."""
        try:
            if not worker.pipe.poll():
                self._remove_worker(worker)
                return _Answer(None, Lost(f"it took longer than {self._limit_s:g} s; give it more with --timeout"))
            answer: _Answer = worker.pipe.recv()
        except (EOFError, OSError):
            # The process is ending, and its exit code says what of.
            self._remove_worker(worker, _END_S)
            return _Answer(None, Lost(_exit_cause(worker.process.exitcode)), again=True)
        worker.index = None
        if answer.ends:
            self._remove_worker(worker, _END_S)
        return answer

    def _remove_worker(self, worker: _Worker[T], patience_s: float = 0.0) -> None:
        worker.stop_process(patience_s)
        self._workers.remove(worker)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Keeps Ctrl-C and SIGTERM waiting meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_cause(code: int | None) -> str:
    """Returns what ended a process, in words."""
    if code is not None and code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            hint = ", as the kernel does when memory runs out" if -code == signal.SIGKILL else ""
            return f"the process that read it was ended by {name}{hint}"
    return f"the process that read it ended by itself (exit code {code})"


def _serve(pipe: Connection, inherited: Sequence[Connection], work: Callable[[T], R], scratch: str) -> None:
    """Does one piece of work after the other, until the pipe is closed: then whoever asked has ended."""
    # Ctrl-C reaches every process of the terminal; the one that prints decides what becomes of the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    tempfile.tempdir = scratch
    for each in inherited:
        # Else the pipe of another process, or this one's own, would never come to its end.
        each.close()
    at_fork_mib = _peak_mib()
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            break
        answer = _answer_with_limits(work, item, at_fork_mib)
        try:
            pipe.send(answer)
        except OSError:
            break
        if answer.ends:
            break
    # Whoever asked may have been killed, and then removes nothing.
    remove_tree(Path(scratch))
    os._exit(0)


def _answer_with_limits(work: Callable[[T], R], item: T, at_fork_mib: int) -> _Answer:
    try:
        result = work(item)
    except MemoryError:
        return _Answer(None, Lost("reading it takes more memory than there is"), again=True, ends=True)
    except Exception as error:  # noqa: BLE001 (one cluster's failure must not become another's)
        import traceback

        return _Answer(None, Lost(f"runup itself failed: {type(error).__name__}: {error}", traceback.format_exc()))
    return _Answer(result, ends=_peak_mib() - at_fork_mib > _LARGE_MIB)


def _peak_mib() -> int:
    """Returns the most memory that this process has had; a forked one begins with what its parent had then."""
    # Linux counts in KiB, others in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1024 * 1024)
