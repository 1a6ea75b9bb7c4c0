"""Runs one task for each dump on the workers of a Dask scheduler: beyond one machine another engine takes over.

The workers have runup and can read where the dumps are, an object store or a shared folder. Each task is sent to a
worker by name, so that one bad worker costs no other's answers: an answer that depends on the worker (another version,
a folder that it does not have, an error, an answer of another form) is tried on another worker, and a worker that is
refuted is not used any more. Each item has one result, however often it was tried (docs/decisions/0090).
"""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

from kubekit.error_types import Terminal
from runup import __version__
from runup.evaluation.workers import DependsOnWorker, Lost
from runup.extras import missing_package

T = TypeVar("T")
R = TypeVar("R")

# Seconds until the scheduler has answered, and a worker has joined it.
_CONNECT_S = 30
# Seconds in which a client may find its scheduler again.
_RECONNECT_S = 10
# Seconds after which the workers are looked at again.
_LOOK_S = 1.0
# On how many workers an item is tried: whose workers end, and who has an error of runup.
_MOST_ENDED, _MOST_ERRORS = 3, 2
# An item is also given to an idle worker if its own one has it this long, in seconds, or so many times the usual time.
_SLOW_S, _SLOW_TIMES = 5.0, 4.0


class NoEngine(Terminal):
    """The scheduler cannot be used; the text says why, and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="NoEngine")


class Answer(msgspec.Struct, frozen=True):
    """The answer of a worker for an item: a result, or an error; with `of_worker`, another worker may succeed."""

    result: Any = None
    why: str = ""
    of_worker: bool = False


class _Worker:
    """A worker of the scheduler. `running` has the items that it was given, and since when, in monotonic seconds.

    `is_ready`: it has runup, of this version. `doubts` are items that it could not answer, and perhaps another can.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.running: dict[int, float] = {}
        self.is_ready = False
        self.doubts: set[int] = set()


class DaskPool(Generic[T, R]):
    """The workers of a scheduler, which call `work`; a result of another type than `kind` is none.

    If none of them has ended a task for `limit_s` seconds, those that are left are lost. `notice` is called with a
    sentence for each worker that is not used any more, `under_way` each second with the items that workers have.
    """

    def __init__(
        self,
        work: Callable[[T], R],
        scheduler: str,
        limit_s: float,
        *,
        kind: type = object,
        notice: Callable[[str], None] = lambda _: None,
        under_way: Callable[[Sequence[int]], None] = lambda _: None,
    ) -> None:
        self._under_way = under_way
        self._work = work
        self._scheduler = scheduler
        self._limit_s = limit_s
        self._kind = kind
        self._notice = notice

    def run(self, items: Sequence[T]) -> Iterator[tuple[int, R | Lost]]:
        """Yields each item's index with its result or Lost, each index once, in the order in which they come.

        Raises NoEngine before the first if the scheduler does not answer, or has no worker that can be used.
        """
        with _connect(self._scheduler) as client:
            run: _Run[T, R] = _Run(client, self._work, items, kind=self._kind, notice=self._notice)
            try:
                yield from run.answers(self._scheduler, self._limit_s, self._under_way)
            finally:
                run.cancel()


class _Run(Generic[T, R]):
    """The items of one run and the workers that have them.

    `_doubts` has for each item the workers whose answer depends on them, and what they said; `_ended` and `_errors`
    count workers that ended with an item, and errors of runup. `_unused` are the addresses of bad workers.
    """

    def __init__(
        self, client: Any, work: Callable[[T], R], items: Sequence[T], *, kind: type, notice: Callable[[str], None]
    ) -> None:
        self._client, self._work, self._items, self._kind, self._notice = client, work, items, kind, notice
        self._waiting = deque(range(len(items)))
        self._open = set(self._waiting)
        self._workers: dict[str, _Worker] = {}
        self._unused: dict[str, str] = {}
        self._futures: dict[tuple[str, int | None], Any] = {}
        self._events: queue.SimpleQueue[tuple[str, int | None]] = queue.SimpleQueue()
        self._doubts: dict[int, dict[str, str]] = {}
        self._ended: dict[int, int] = {}
        self._errors: dict[int, int] = {}
        self._usual_s = 0.0

    def answers(
        self, scheduler: str, limit_s: float, under_way: Callable[[Sequence[int]], None]
    ) -> Iterator[tuple[int, R | Lost]]:
        """Yields the answers, as `DaskPool.run` does."""
        looked_s, answered_s, has_answers = 0.0, time.monotonic(), False
        while self._open:
            now_s = time.monotonic()
            if not self._is_connected():
                why = f"the scheduler {scheduler} cannot be reached any more; start it again and rerun the command"
                yield from self._lose_all(why)
                return
            if now_s - looked_s >= _LOOK_S:
                looked_s = now_s
                yield from self._look_at_workers()
                if not self._workers and self._unused:
                    whys = "; ".join(f"{address} {why}" for address, why in list(self._unused.items())[:3])
                    why = f"no worker can be used: {whys}"
                    if not has_answers:
                        raise NoEngine(f"--scheduler {scheduler}: {why}")
                    yield from self._lose_all(why)
                    return
            if now_s - answered_s >= limit_s:
                problem = f"no dump was read for {limit_s:g} s; give it more with --timeout, or look at the workers"
                yield from self._lose_all(problem)
                return
            self._hand_out()
            running = {index for worker in self._workers.values() for index in worker.running}
            under_way(sorted(running & self._open))
            try:
                address, index = self._events.get(timeout=min(_LOOK_S, limit_s))
            except queue.Empty:
                continue
            for found in self._take(address, index):
                answered_s, has_answers = time.monotonic(), True
                yield found

    def _is_connected(self) -> bool:
        """Reports whether the scheduler is there; after a short interruption, every open item waits again."""
        if self._client.status == "running":
            return True
        until_s = time.monotonic() + _RECONNECT_S
        while self._client.status == "connecting" and time.monotonic() < until_s:
            time.sleep(0.1)
        self._workers.clear()
        self._futures.clear()
        self._waiting = deque(sorted(self._open))
        return bool(self._client.status == "running")

    def cancel(self) -> None:
        """Cancels the tasks that are left."""
        with suppress(Exception):
            self._client.cancel(list(self._futures.values()), force=True)

    def _submit(self, address: str, index: int | None, function: Callable[..., Any], *arguments: Any) -> None:
        key = (address, index)
        future = self._client.submit(function, *arguments, workers=[address], pure=False)
        self._futures[key] = future
        future.add_done_callback(lambda _: self._events.put(key))

    def _lose_all(self, why: str) -> Iterator[tuple[int, R | Lost]]:
        for index in sorted(self._open):
            yield index, Lost(why)
        self._open.clear()

    def _look_at_workers(self) -> Iterator[tuple[int, R | Lost]]:
        """Asks new workers for their version, and gives the items of those that have left to others."""
        try:
            there = self._client.scheduler_info()["workers"]
        except Exception:  # noqa: BLE001 (of whatever transport; the status of the client says more)
            return
        for address in [address for address in self._workers if address not in there]:
            worker = self._workers.pop(address)
            self._futures.pop((address, None), None)
            self._notice(f"worker {address} has ended; others read its dumps")
            for index in worker.running:
                self._futures.pop((address, index), None)
                self._ended[index] = self._ended.get(index, 0) + 1
                if index not in self._open or self._is_running(index):
                    continue
                if self._ended[index] >= _MOST_ENDED:
                    self._open.discard(index)
                    yield index, Lost(f"{_MOST_ENDED} workers ended while they read it, as when memory runs out")
                else:
                    self._waiting.appendleft(index)
        for address, worker_info in there.items():
            if address not in self._workers and address not in self._unused:
                # One item more than it has threads, so that it need not wait for the next.
                self._workers[address] = _Worker(int(worker_info.get("nthreads") or 1) + 1)
                self._submit(address, None, version_of_worker)

    def _is_running(self, index: int) -> bool:
        return any(index in worker.running for worker in self._workers.values())

    def _hand_out(self) -> None:
        """Gives waiting items to workers that have room, and late ones to a second worker that has nothing else."""
        ready = {name: worker for name, worker in self._workers.items() if worker.is_ready}
        for address, worker in ready.items():
            # A worker is not asked again what it could not answer; until another one has, it gets nothing new.
            kept = []
            while self._waiting and len(worker.running) < worker.slots:
                index = self._waiting.popleft()
                doubters = self._doubts.get(index, {})
                if address in doubters or (worker.doubts and not doubters):
                    kept.append(index)
                    if worker.doubts and not doubters:
                        break  # items in doubt come first
                else:
                    self._give(address, worker, index)
            self._waiting.extendleft(reversed(kept))
        idle = [(name, worker) for name, worker in ready.items() if not worker.running and not worker.doubts]
        if self._waiting or not idle:
            self._settle_doubts()
            return
        late_s = time.monotonic() - max(_SLOW_S, _SLOW_TIMES * self._usual_s)
        late = sorted({(since, index) for worker in self._workers.values() for index, since in worker.running.items()})
        for since, index in late:
            holders = [worker for worker in self._workers.values() if index in worker.running]
            if idle and since <= late_s and index in self._open and len(holders) == 1:
                self._give(*idle.pop(), index)

    def _give(self, address: str, worker: _Worker, index: int) -> None:
        worker.running[index] = time.monotonic()
        self._submit(address, index, call_in_worker, (self._work, self._items[index], __version__))

    def _settle_doubts(self) -> None:
        """Ends doubts that no other worker can refute, for every one has them: they are about the item."""
        for index in list(self._waiting):
            doubts = self._doubts.get(index, {})
            if doubts and all(address in doubts for address in self._workers):
                self._waiting.remove(index)
                for worker in self._workers.values():
                    worker.doubts.discard(index)
                self._events.put(("", index))

    def _take(self, address: str, index: int | None) -> Iterator[tuple[int, R | Lost]]:
        """Yields the answer of a task that has ended, if it is one."""
        if index is not None and not address:
            if index in self._open:
                self._open.discard(index)
                yield index, Lost(next(iter(self._doubts[index].values())))
            return
        future = self._futures.pop((address, index), None)
        worker = self._workers.get(address)
        if future is None or worker is None:
            return
        if index is None:
            self._take_version(address, worker, future)
            return
        since = worker.running.pop(index, None)
        if index not in self._open:
            return
        if future.status == "cancelled":
            if not self._is_running(index) and index not in self._waiting:
                self._waiting.appendleft(index)
            return
        answer = _answer_of(future)
        result = answer.result
        if not answer.why and not isinstance(result, self._kind):
            answer = Answer(why=f"gave {type(result).__name__} for an answer", of_worker=True)
        if answer.of_worker:
            self._doubts.setdefault(index, {})[address] = answer.why
            if len(self._workers) == 1:
                self._open.discard(index)
                yield index, Lost(answer.why)
                return
            worker.doubts.add(index)
            self._waiting.appendleft(index)
            return
        if answer.why and self._errors.get(index, 0) + 1 < min(_MOST_ERRORS, len(self._workers)):
            self._errors[index] = self._errors.get(index, 0) + 1
            self._doubts.setdefault(index, {})[address] = answer.why
            self._waiting.appendleft(index)
            return
        if since is not None:
            took_s = time.monotonic() - since
            self._usual_s = 0.9 * self._usual_s + 0.1 * took_s if self._usual_s else took_s
        self._open.discard(index)
        if not answer.why:
            for other, why in self._doubts.pop(index, {}).items():
                if other in self._workers and index in self._workers[other].doubts:
                    self._leave_out(other, why)
        yield index, Lost(answer.why) if answer.why else result

    def _take_version(self, address: str, worker: _Worker, future: Any) -> None:
        try:
            version = future.result(timeout=_CONNECT_S)
        except Exception as error:  # noqa: BLE001 (of a worker that has no runup, or one that cannot be imported)
            self._leave_out(address, f"does not have runup: {type(error).__name__}: {' '.join(str(error).split())}")
            return
        if version == __version__:
            worker.is_ready = True
        else:
            self._leave_out(address, f"has runup {version}, and this is {__version__}: they must be the same")

    def _leave_out(self, address: str, why: str) -> None:
        """Stops to use a worker, gives its items to others, and names it."""
        self._unused[address] = why
        worker = self._workers.pop(address)
        for index in worker.running:
            self._futures.pop((address, index), None)
            if index in self._open and not self._is_running(index):
                self._waiting.appendleft(index)
        self._notice(f"worker {address} is not used: it {why}")


def _connect(scheduler: str) -> Any:
    """Returns a client of the scheduler, which has workers. Raises NoEngine."""
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise NoEngine(f"--engine dask: {missing_package('distributed', 'dask')}") from error
    # A lost scheduler is reported once, by us.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    for name in ("client", "core", "comm"):
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    if scheduler.startswith("tls://"):
        keys = ("comm.tls.ca-file", "comm.tls.client.cert", "comm.tls.client.key")
        if missing := [f"distributed.{key}" for key in keys if not dask.config.get(f"distributed.{key}", None)]:
            example = f"DASK_{missing[0].upper().replace('.', '__').replace('-', '_')}"
            raise NoEngine(
                f"--scheduler {scheduler}: the configuration of Dask lacks {', '.join(missing)}, each the path of a "
                f"PEM file; set them in ~/.config/dask/*.yaml or as variables such as {example}"
            )
    hint = "give the address that `dask scheduler` prints, such as tcp://HOST:8786"
    try:
        client = Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        problem = " ".join(str(error).split())
        raise NoEngine(f"--scheduler {scheduler}: does not answer ({problem}); {hint}") from error
    try:
        client.wait_for_workers(1, timeout=_CONNECT_S)
    except TimeoutError as error:
        client.close()
        way_out = f"start some where the dumps are: dask worker {scheduler}"
        raise NoEngine(f"--scheduler {scheduler}: no worker has joined it; {way_out}") from error
    return client


def version_of_worker() -> str:
    """Returns the version of runup; runs in a worker."""
    return __version__


def call_in_worker(task: tuple[Callable[[Any], Any], Any, str]) -> Answer:
    """Returns the answer for one item; runs in a worker."""
    work, item, version = task
    if version != __version__:
        why = f"its worker has runup {__version__}, and this is {version}: they must be the same"
        return Answer(why=why, of_worker=True)
    try:
        return Answer(work(item))
    except MemoryError:
        return Answer(why="reading it takes more memory than its worker has")
    except DependsOnWorker as error:
        return Answer(why=str(error), of_worker=True)


def _answer_of(future: Any) -> Answer:
    """Returns the answer of a task that has ended; an error is one, too."""
    try:
        answer = future.result(timeout=_CONNECT_S)
    except BaseException as error:
        # An error of a worker that has another runup, or of runup itself.
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        return Answer(why=f"its task failed: {type(error).__name__}: {' '.join(str(error).split())[:500]}")
    if not isinstance(answer, Answer):
        return Answer(why=f"gave {type(answer).__name__} for an answer", of_worker=True)
    return answer


def result_of(future: Any) -> Any:
    """Returns the result of a task that has ended, or Lost with the reason."""
    answer = _answer_of(future)
    return Lost(answer.why) if answer.why else answer.result
