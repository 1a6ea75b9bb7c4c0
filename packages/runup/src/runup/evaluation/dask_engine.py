"""Runs one task for each dump on the workers of a Dask scheduler: beyond one machine another engine takes over.

The workers have runup and can read where the dumps are, an object store or a shared folder. Dask moves the task of a
worker that ends to another one, and gives up one that ended several workers; here each item has one result, however
often it was tried (docs/decisions/0090).
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from kubekit.error_types import Terminal
from runup import __version__
from runup.evaluation.workers import Lost
from runup.extras import missing_package

T = TypeVar("T")
R = TypeVar("R")

# Seconds until the scheduler has answered, and a worker has joined it.
_CONNECT_S = 30
# How often a task is tried again that raised an error, which ours do for bugs alone.
_RETRIES = 1


class NoEngine(Terminal):
    """The scheduler cannot be used; the text says why, and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="NoEngine")


class Answer(msgspec.Struct, frozen=True):
    """What a worker made of an item: a result, or why there is none."""

    result: Any = None
    why: str = ""


class DaskPool(Generic[T, R]):
    """The workers of a scheduler, which call `work`.

    If none of them has ended a task for `limit_s` seconds, those that are left are lost.
    """

    def __init__(self, work: Callable[[T], R], scheduler: str, limit_s: float) -> None:
        self._work = work
        self._scheduler = scheduler
        self._limit_s = limit_s

    def run(self, items: Sequence[T]) -> Iterator[tuple[int, R | Lost]]:
        """Yields each item's index with its result or Lost, each index once, in the order in which they come.

        Raises NoEngine before the first if the scheduler does not answer, or has no worker.
        """
        with _connect(self._scheduler) as client:
            ended: queue.SimpleQueue[int] = queue.SimpleQueue()
            futures = client.map(
                call_in_worker,
                [(self._work, item, __version__) for item in items],
                pure=False,
                retries=_RETRIES,
                batch_size=100,
            )
            for index, future in enumerate(futures):
                future.add_done_callback(lambda _, index=index: ended.put(index))
            waiting = set(range(len(futures)))
            try:
                while waiting:
                    index = ended.get(timeout=self._limit_s)
                    waiting.discard(index)
                    yield index, result_of(futures[index])
            except queue.Empty:
                problem = (
                    f"no dump was read for {self._limit_s:g} s; give it more with --timeout, or look at the workers"
                )
                for index in sorted(waiting):
                    yield index, Lost(problem)
            finally:
                client.cancel(futures, force=True)


def _connect(scheduler: str) -> Any:
    """Returns a client of the scheduler, which has workers. Raises NoEngine."""
    try:
        from distributed import Client
    except ImportError as error:
        raise NoEngine(f"--engine dask: {missing_package('distributed', 'dask')}") from error
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


def call_in_worker(task: tuple[Callable[[Any], Any], Any, str]) -> Answer:
    """Returns the answer for one item; runs in a worker."""
    work, item, version = task
    if version != __version__:
        return Answer(why=f"its worker has runup {__version__}, and this is {version}: they must be the same")
    try:
        return Answer(work(item))
    except MemoryError:
        return Answer(why="reading it takes more memory than its worker has")


def result_of(future: Any) -> Any:
    """Returns the result of a task that has ended, or Lost with the reason."""
    try:
        answer = future.result(timeout=_CONNECT_S)
    except BaseException as error:
        # KilledWorker, an error of a worker that has another runup, or of runup itself.
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        return Lost(f"its task failed: {type(error).__name__}: {' '.join(str(error).split())[:500]}")
    return Lost(answer.why) if answer.why else answer.result
