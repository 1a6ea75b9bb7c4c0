"""What was made of a long list is kept as long as the list is the same one, what was made of an object likewise.

A snapshot's lists are made anew only when something of their kind changed, and then the objects that did not change are
the same ones. Adding up hundreds of thousands of pods again because a node, or one of them, changed would be most of
what a change costs, and matching thousands of nodes with their pools because one of them did most of the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
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


def grouped(*keys: Callable[[K], str]) -> Callable[[tuple[K, ...]], tuple[Mapping[str, list[K]], ...]]:
    """The items by each of the keys, in groups of no order, remembering those of the last list.

    The groups of which no item came or went are the same objects as before.
    """
    kept: list[tuple[tuple[K, ...], tuple[Mapping[str, list[K]], ...]]] = []

    def made(items: tuple[K, ...]) -> tuple[Mapping[str, list[K]], ...]:
        last = kept[-1:]
        if last and last[0][0] is items:
            return last[0][1]
        before, groups = last[0] if last else ((), ({},) * len(keys))
        gone, new = _difference(before, items)
        found = tuple(_regrouped(old, gone, new, key) for old, key in zip(groups, keys, strict=True))
        kept[:] = [(items, found)]
        return found

    return made


def _difference(before: tuple[K, ...], items: tuple[K, ...]) -> tuple[list[K], list[K]]:
    """What is there no more, and what is new; mostly both have all but a few items in their beginning and end."""
    start = _alike(map(is_, before, items))
    # What is left of the shorter one: the beginning is nobody's end.
    end = min(_alike(map(is_, reversed(before), reversed(items))), min(len(before), len(items)) - start)
    old, new = before[start : len(before) - end], items[start : len(items) - end]
    if not old:
        return [], list(new)
    of_old, of_new = set(map(id, old)), set(map(id, new))
    return [item for item in old if id(item) not in of_new], [item for item in new if id(item) not in of_old]


def _alike(same: Iterable[bool]) -> int:
    """How many come before the first that is not the same; in C, for there are hundreds of thousands."""
    told = bytes(same)
    first = told.find(0)
    return len(told) if first < 0 else first


def _regrouped(
    groups: Mapping[str, list[K]], gone: Iterable[K], new: Iterable[K], key: Callable[[K], str]
) -> Mapping[str, list[K]]:
    found, lost = dict(groups), set(map(id, gone))
    for name in {key(item) for item in gone}:
        found[name] = [item for item in found[name] if id(item) not in lost]
    added: dict[str, list[K]] = defaultdict(list)
    for item in new:
        added[key(item)].append(item)
    for name, items in added.items():
        found[name] = [*found.get(name, ()), *items]
    return {name: items for name, items in found.items() if items}


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
            name: results[name] if (old := known.get(name)) is group or old == group else make(group)
            for name, group in groups.items()
        }
        kept[:] = [(groups, found)]
        return found

    return made
