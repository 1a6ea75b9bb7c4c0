"""Records the steps of long work while they run, so that a command can show how far it is.

A `step` is recorded where its work is done, and costs nothing unless a `Listener` was installed. The commands install
one on a terminal (`runup.cli.progress`); servers, tests and programs that call the Python API install none.
docs/decisions/0139 compares this with parameters for every reader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Step:
    """One step: what is done, how many parts of it are done, how many there are (None: unknown), and the current part.

    The work changes `done` and `detail`; a listener reads them whenever it draws.
    """

    what: str
    total: int | None = None
    done: int = 0
    detail: str = ""


class Listener(Protocol):
    """Shows steps. Its methods are called in the thread that does the work, and must not raise."""

    def begin(self, step: Step) -> None:
        """Shows `step` from now on."""

    def end(self, step: Step) -> None:
        """Stops showing `step`, which `begin` was called with."""


_listener: Listener | None = None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Installs `listener` for all steps of this process until the `with` statement is left."""
    global _listener
    before = _listener
    _listener = listener
    try:
        yield
    finally:
        _listener = before


def silence() -> None:
    """Removes the listener, until the `with` statement of `listening` is left."""
    global _listener
    _listener = None


@contextmanager
def step(what: str, total: int | None = None) -> Iterator[Step]:
    """Yields a step that is recorded until the `with` statement is left, also by an error."""
    current, listener = Step(what, total), _listener
    if listener is None:
        yield current
        return
    listener.begin(current)
    try:
        yield current
    finally:
        listener.end(current)


def each(items: Collection[T], what: str) -> Iterator[T]:
    """Yields the items one after the other as the parts of a step; an item counts as done when the next is wanted."""
    with step(what, len(items)) as current:
        for item in items:
            yield item
            current.done += 1
