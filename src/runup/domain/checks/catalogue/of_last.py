"""What was made of a long list is kept as long as the list is the same one, what was made of an object likewise.

A snapshot's lists are made anew only when something of their kind changed, and then the objects that did not change are
the same ones. Adding up hundreds of thousands of pods again because a node changed would be most of what a change
costs, and matching thousands of nodes with their pools because one of them did most of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")
A = TypeVar("A")


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


def of_each(make: Callable[[K, A], T]) -> Callable[[tuple[K, ...], A], list[T]]:
    """`make` of each item, which must only read them, remembering what it made of the very same ones the last time.

    That is as long as what all are looked at with is equal.
    """
    kept: list[tuple[tuple[K, ...], A, list[T]]] = []

    def made(items: tuple[K, ...], looked_at_with: A) -> list[T]:
        last = kept[-1:]
        if last and last[0][1] == looked_at_with:
            found = _again(items, last[0][0], last[0][2], lambda item: make(item, looked_at_with))
        else:
            found = [make(item, looked_at_with) for item in items]
        kept[:] = [(items, looked_at_with, found)]
        return found

    return made


def _again(items: tuple[K, ...], before: tuple[K, ...], found: list[T], make: Callable[[K], T]) -> list[T]:
    if len(items) == len(before):
        # Mostly one has changed in its place.
        return [
            result if same else make(item)
            for item, same, result in zip(items, map(is_, items, before), found, strict=True)
        ]
    # Nothing else has the id of an object that is kept.
    known = {id(item): (result,) for item, result in zip(before, found, strict=True)}
    return [old[0] if (old := known.get(id(item))) else make(item) for item in items]


def of_groups(make: Callable[[list[K]], T]) -> Callable[[Mapping[str, list[K]]], dict[str, T]]:
    """`make` of each group, remembering what it made of a group of the very same name and objects the last time."""
    kept: list[tuple[Mapping[str, list[K]], dict[str, T]]] = []

    def made(groups: Mapping[str, list[K]]) -> dict[str, T]:
        last = kept[-1:]
        known, results = last[0] if last else ({}, {})
        if known is groups:
            return results
        # Lists are compared object by object, and an object with itself at once.
        found = {
            name: results[name] if name in known and known[name] == group else make(group)
            for name, group in groups.items()
        }
        kept[:] = [(groups, found)]
        return found

    return made
