"""Runs one piece of work for each cluster in worker processes, so that a crash loses only that cluster's result.

In: a function, its items (one for each cluster), and the number of workers. Out: for each item its result, or `Lost`
with the reason.

A worker does one item at a time. If it is killed or runs out of memory, the item is tried once more in a new process,
and then reported as lost. A worker that has grown large ends after its item and is replaced, so that the memory for one
dump is not kept while the next is read. What a worker unpacks is in a separate temporary folder, which is removed
with it, however it ends.

On Linux workers are forked and share the modules that are imported already; no thread may run in this process then.
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

from kubekit.lang.files import remove_tree
from runup.process.ending_signals import ending_signals, ignore_terminal_signals

T = TypeVar("T")
R = TypeVar("R")

# A worker that has grown by more than this, in MiB, ends after its item. With two workers, and what both share, a fleet
# of usual dumps stays below 1 GiB.
_LARGE_MIB = 320
# A live cluster waits for its answers most of the time; more at once would not be faster on a laptop.
_LIVE_AT_ONCE = 8
# How often an item is tried in all, if its worker is killed or runs out of memory.
_MAX_TRIES = 2
# Seconds after which `under_way` is called again.
_TICK_S = 1.0
# Seconds to wait for a worker to exit: before it is killed, if it is ending by itself, and after it was killed.
_EXIT_TIMEOUT_S = 5.0


def workers_for(parallel: int | None, *, live: bool) -> int:
    """Returns how many clusters are read at once: `parallel`, or without it as many as their kind allows.

    Dumps cost processor time, live clusters waiting.
    """
    if parallel:
        return parallel
    if live:
        return _LIVE_AT_ONCE
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def run_here(work: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R]]:
    """Yields each item's index with its result, one after the other in this process, where a debugger can stop it.

    Nothing limits the time that an item takes, and an error of ours is raised.
    """
    yield from ((index, work(item)) for index, item in enumerate(items))


class Lost(msgspec.Struct, frozen=True):
    """An item without a result, and why; `bug` is the traceback if runup itself failed, else ""."""

    why: str
    bug: str = ""


class DependsOnWorker(Exception):
    """An item cannot be read here, and perhaps by another worker; the text says why."""


class Retried(msgspec.Struct, frozen=True):
    """An item that is tried once more, and why."""

    why: str


class _Answer(msgspec.Struct, frozen=True):
    """The message of a worker about an item: its result, or `lost`.

    `again`: another try may help. `is_last`: the worker takes no further item.
    """

    result: Any
    lost: Lost | None = None
    again: bool = False
    is_last: bool = False


class _Worker(Generic[T]):
    """A worker process.

    `pipe` sends it items and receives its answers, `scratch` is its folder for temporary files. `work_index` is the
    index of the item that it has now, None if it is idle; `started_s` is when it got that, in monotonic seconds.
    """

    def __init__(self, process: BaseProcess, pipe: Connection, scratch: Path) -> None:
        self.process = process
        self.pipe = pipe
        self.scratch = scratch
        self.work_index: int | None = None
        self.started_s = 0.0

    def stop_process(self, patience_s: float = 0.0) -> None:
        """Kills the process, after `patience_s` seconds in which it may end by itself, and removes its folder."""
        if patience_s:
            self.process.join(patience_s)
        self.process.kill()
        self.process.join(_EXIT_TIMEOUT_S)
        self.pipe.close()
        remove_tree(self.scratch)


class Pool(Generic[T, R]):
    """At most `size` worker processes that call `work`; each item may take `limit_s` seconds (0: any number).

    `under_way` is called at least once a second with the indexes of the items that workers have.
    """

    def __init__(
        self,
        work: Callable[[T], R],
        size: int,
        limit_s: float = 0.0,
        *,
        under_way: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        self._work = work
        self._under_way = under_way
        self._size = max(size, 1)
        self._limit_s = limit_s
        # Only Linux can fork safely whatever libraries are loaded; elsewhere the processes begin again.
        self._context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._workers: list[_Worker[T]] = []

    def run(self, items: Sequence[T]) -> Iterator[tuple[int, R | Lost | Retried]]:
        """Yields each item's index with its result or Lost, in the order in which they come.

        Before a second try Retried is yielded, too. Every worker has ended when this generator has.
        """
        waiting = deque(range(len(items)))
        tries = [0] * len(items)
        try:
            while waiting or any(worker.work_index is not None for worker in self._workers):
                self._hand_out(items, waiting, tries)
                if self._under_way is not None:
                    indexes = (worker.work_index for worker in self._workers)
                    self._under_way([index for index in indexes if index is not None])
                for worker in self._wait_for_workers():
                    index = worker.work_index
                    assert index is not None
                    answer = self._answer_of(worker)
                    if answer.lost and answer.again and tries[index] < _MAX_TRIES:
                        waiting.appendleft(index)
                        yield index, Retried(answer.lost.why)
                    else:
                        yield index, answer.lost or answer.result
        finally:
            # A signal here would leave the folders of those that are not stopped yet.
            with _block_signals():
                for worker in self._workers:
                    worker.stop_process()
                self._workers.clear()

    def _hand_out(self, items: Sequence[T], waiting: deque[int], tries: list[int]) -> None:
        """Sends waiting items to idle workers and starts more workers up to the pool's size; counts the tries."""
        idle = [worker for worker in self._workers if worker.work_index is None]
        while waiting and (idle or len(self._workers) < self._size):
            if idle:
                worker = idle.pop()
            else:
                # A signal during the fork would be lost, or leave a worker that nobody ends.
                with _block_signals():
                    worker = self._start_worker()
            index = waiting.popleft()
            worker.work_index, worker.started_s = index, time.monotonic()
            tries[index] += 1
            # A worker that died while it was idle is noticed where its answer is read.
            with suppress(OSError):
                worker.pipe.send(items[index])

    def _start_worker(self) -> _Worker[T]:
        own_end, worker_end = self._context.Pipe()
        other_pipes = [worker.pipe for worker in self._workers]
        scratch = Path(tempfile.mkdtemp(prefix="runup-fleet-"))
        args = (worker_end, [*other_pipes, own_end], self._work, str(scratch))
        process = self._context.Process(target=_serve, args=args, daemon=True)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        process.start()
        worker_end.close()
        worker: _Worker[T] = _Worker(process, own_end, scratch)
        self._workers.append(worker)
        return worker

    def _wait_for_workers(self) -> list[_Worker[T]]:
        """Waits until a worker has answered, ended, or exceeded the time limit, and returns those that have."""
        busy = [worker for worker in self._workers if worker.work_index is not None]
        wait_s = None
        if self._limit_s:
            wait_s = max(min(worker.started_s for worker in busy) + self._limit_s - time.monotonic(), 0.0)
        if self._under_way is not None:
            wait_s = _TICK_S if wait_s is None else min(wait_s, _TICK_S)
        answered = set(wait([worker.pipe for worker in busy], wait_s))
        late_since_s = time.monotonic() - self._limit_s if self._limit_s else 0.0
        return [
            worker for worker in busy if worker.pipe in answered or (late_since_s and worker.started_s <= late_since_s)
        ]

    def _answer_of(self, worker: _Worker[T]) -> _Answer:
        """Returns the answer of a worker, or why it has none; one that has ended or took too long is removed."""
        try:
            if not worker.pipe.poll():
                self._remove_worker(worker)
                return _Answer(None, Lost(f"it took longer than {self._limit_s:g} s; give it more with --timeout"))
            answer: _Answer = worker.pipe.recv()
        except (EOFError, OSError):
            # The process is ending; its exit code says why.
            self._remove_worker(worker, _EXIT_TIMEOUT_S)
            code = worker.process.exitcode
            why = f"the process that read it ended by itself (exit code {code})"
            with suppress(ValueError):
                # Negative for a signal.
                signal_name = signal.Signals(-(code or 0)).name
                hint = ", as the kernel does when memory runs out" if code == -signal.SIGKILL else ""
                why = f"the process that read it was ended by {signal_name}{hint}"
            return _Answer(None, Lost(why), again=True)
        worker.work_index = None
        if answer.is_last:
            self._remove_worker(worker, _EXIT_TIMEOUT_S)
        return answer

    def _remove_worker(self, worker: _Worker[T], patience_s: float = 0.0) -> None:
        with _block_signals():
            worker.stop_process(patience_s)
            self._workers.remove(worker)


@contextmanager
def _block_signals() -> Iterator[None]:
    """Holds back the signals that end a command until the `with` statement is left."""
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _serve(pipe: Connection, inherited: Sequence[Connection], work: Callable[[T], R], scratch: str) -> None:
    """Runs in the worker: does one item after the other until the pipe is closed, which is when its parent ends.

    `inherited` are the parent's ends of pipes that a fork copies.
    """
    held_back = ending_signals()
    ignore_terminal_signals()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, held_back)
    tempfile.tempdir = scratch
    for inherited_pipe in inherited:
        # An open copy here would keep the pipe of another worker, or this one's own, from ever being closed.
        inherited_pipe.close()
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
        if answer.is_last:
            break
    # The parent may have been killed, and then does not remove it.
    remove_tree(Path(scratch))
    # At once, where `return` would wait for threads that an item has left running (multiprocessing ends a process so).
    os._exit(0)


def _answer_with_limits(work: Callable[[T], R], item: T, at_fork_mib: int) -> _Answer:
    """Returns the result of `work`, or why it is missing; `at_fork_mib` is the memory that the worker began with."""
    try:
        result = work(item)
    except MemoryError:
        return _Answer(None, Lost("reading it takes more memory than there is"), again=True, is_last=True)
    except Exception as error:  # noqa: BLE001 (one cluster's failure must not become another's)
        import traceback

        return _Answer(None, Lost(f"runup itself failed: {type(error).__name__}: {error}", traceback.format_exc()))
    return _Answer(result, is_last=_peak_mib() - at_fork_mib > _LARGE_MIB)


def _peak_mib() -> int:
    """Returns the most memory that this process has had; a forked one begins with what its parent had then."""
    # Linux counts in KiB, others in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1024 * 1024)
