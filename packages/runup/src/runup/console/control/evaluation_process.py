"""Runs the console's work on clusters in a separate process, which forks the workers.

In: rounds, each a name and the members to work on. Out: for each member its result, as it comes. The web server has
threads and connections, and a process with threads must not be forked: so the pool's processes are children of this
one, which was forked before the server began. If it dies, the next round raises, and says so.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from kubekit.error_types import Terminal
from runup.evaluation.workers import Lost, Pool, Retried, workers_for
from runup.fleet.decide.members import Member
from runup.process.ending_signals import ignore_terminal_signals

_END_S = 5.0


class MemberResult(msgspec.Struct, frozen=True):
    """The result of one member: `value` is what the work returned, `size` its bytes; without one, `why`."""

    name: str
    value: Any = None
    size: int = 0
    why: str = ""


class _RoundRequest(msgspec.Struct, frozen=True):
    """Members to work on, by the work of this name; `number` marks its answers."""

    number: int
    work: str
    members: tuple[Member, ...]


class _End(msgspec.Struct, frozen=True):
    """The end of a round; `why` if it failed as a whole."""

    why: str = ""


class _Gone(msgspec.Struct, frozen=True):
    """The process has ended."""


class EvaluationProcess:
    """A process that does `works` (by name) on members, `parallel` at a time (0: by kind), each within `limit_s`.

    Its results go to the event loop that first runs a round.
    """

    def __init__(
        self, works: Mapping[str, Callable[[Member], Any]], *, parallel: int = 0, limit_s: float = 0.0
    ) -> None:
        # Only Linux can fork safely whatever libraries are loaded; elsewhere the process begins again.
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._pipe, process_end = context.Pipe()
        args = (process_end, self._pipe, dict(works), parallel, limit_s)
        # Not a daemon: those may not have children, and this one's are the workers.
        self._process = context.Process(target=_serve, args=args, daemon=False)
        self._process.start()
        process_end.close()
        self._one_round = asyncio.Lock()
        self._rounds = 0
        self._messages: asyncio.Queue[tuple[int, Any]] | None = None

    @property
    def pid(self) -> int | None:
        """The process's ID."""
        pid: int | None = self._process.pid
        return pid

    async def run(self, work: str, members: Sequence[Member]) -> AsyncIterator[MemberResult]:
        """Yields the result of each member as it comes. Raises Terminal if the process has ended."""
        async with self._one_round:
            self._rounds += 1
            number, messages = self._rounds, self._received()
            with suppress(OSError):
                # Sent in a thread: a pipe that is full would hold up the event loop.
                await asyncio.to_thread(self._pipe.send, _RoundRequest(number, work, tuple(members)))
            while True:
                of_round, message = await messages.get()
                if isinstance(message, _Gone):
                    messages.put_nowait((0, message))
                    raise Terminal(
                        "the process that evaluates the clusters has ended; start the console again",
                        reason="EvaluationEnded",
                    )
                # What is left of a round that nobody waited for to its end is passed over.
                if of_round != number:
                    continue
                if isinstance(message, _End):
                    break
                yield message
            if message.why:
                raise Terminal(f"the clusters could not be evaluated: {message.why}", reason="JudgingFailed")

    def _received(self) -> asyncio.Queue[tuple[int, Any]]:
        """Returns the queue of messages; the first time it starts the thread that reads them."""
        if self._messages is None:
            self._messages = asyncio.Queue()
            args = (self._pipe, asyncio.get_running_loop(), self._messages)
            threading.Thread(target=_read, args=args, daemon=True, name="evaluation-results").start()
        return self._messages

    def close(self) -> None:
        """Ends the process and its workers."""
        with suppress(OSError):
            if self._process.pid is not None and self._process.is_alive():
                os.kill(self._process.pid, signal.SIGTERM)
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(_END_S)
        with suppress(OSError):
            self._pipe.close()


def _read(pipe: Connection, loop: asyncio.AbstractEventLoop, into: asyncio.Queue[tuple[int, Any]]) -> None:
    """Runs in a thread: hands each message to the event loop, which has ended where RuntimeError is raised."""
    with suppress(RuntimeError):
        try:
            while True:
                loop.call_soon_threadsafe(into.put_nowait, pipe.recv())
        except (EOFError, OSError, TypeError):  # TypeError: the pipe was closed while it was read
            loop.call_soon_threadsafe(into.put_nowait, (0, _Gone()))


def _serve(
    pipe: Connection, inherited: Connection, works: Mapping[str, Callable[[Member], Any]], parallel: int, limit_s: float
) -> None:
    """Runs in the process: one round after the other, until the pipe is closed or SIGTERM comes."""

    def stop(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    ignore_terminal_signals()
    signal.signal(signal.SIGTERM, stop)
    inherited.close()
    try:
        while True:
            _do_round(pipe, pipe.recv(), works=works, parallel=parallel, limit_s=limit_s)
    except (EOFError, OSError, SystemExit):
        pass
    # What the fork copied (buffers, exit handlers) is the parent's to finish.
    os._exit(0)


def _do_round(
    pipe: Connection, round_: _RoundRequest, works: Mapping[str, Callable[[Member], Any]], parallel: int, limit_s: float
) -> None:
    """Does the work on each member of a round, and sends each result and the end of the round."""
    number = round_.number
    # Dumps and kept reports, which cost processor time, and live clusters, which cost waiting.
    local = [member for member in round_.members if member.dump or not (member.context or member.kubeconfig)]
    live = [member for member in round_.members if member not in local]
    try:
        for members in filter(None, (local, live)):
            size = min(workers_for(parallel, live=members is live), len(members))
            pool: Pool[Member, Any] = Pool(works[round_.work], size, limit_s)
            for index, answer in pool.run(members):
                name = members[index].name
                if isinstance(answer, Lost):
                    sys.stderr.write(answer.bug)
                    sys.stderr.flush()
                    pipe.send((number, MemberResult(name, why=answer.why)))
                elif not isinstance(answer, Retried):
                    pipe.send((number, MemberResult(name, answer, len(pickle.dumps(answer)))))
    except (EOFError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 (told to who waits for the round)
        pipe.send((number, _End(f"{type(error).__name__}: {error}")))
        return
    pipe.send((number, _End()))
