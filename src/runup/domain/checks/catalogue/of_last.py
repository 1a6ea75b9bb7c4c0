"""What was made of a long list is kept as long as the list is the same one.

A snapshot's lists are made anew only when something of their kind changed. Adding up hundreds of thousands of pods
again because a node changed would be most of what a change costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def of_last(make: Callable[[tuple[K, ...]], T]) -> Callable[[tuple[K, ...]], T]:
    """`make`, which must only read its argument, remembering what it made of the very same tuple the last time."""
    kept: list[tuple[tuple[K, ...], T]] = []

    def made(items: tuple[K, ...]) -> T:
        # One look: another thread may take it away in between.
        last = kept[-1:]
        if last and last[0][0] is items:
            return last[0][1]
        found = make(items)
        kept[:] = [(items, found)]
        return found

    return made
