"""Caches what was computed from a long list, or from each of its objects, for as long as these stay the same.

A snapshot's lists are rebuilt only if something of their kind changed, and objects that did not change stay the same
ones. To add up hundreds of thousands of pods again because a node, or one of the pods, changed would be most of the
cost of a change; to match thousands of nodes with their pools because one of them changed would be most of the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")
A = TypeVar("A")


# Compared by identity (`is`): a comparison by value would look at every field of every object.
def cache_last(make: Callable[[tuple[K, ...]], T]) -> Callable[[tuple[K, ...]], T]:
    """Returns `make` with a cache of its last result for the very same tuple; `make` must only read its argument."""
    last_results: list[tuple[tuple[K, ...], T]] = []

    def made(items: tuple[K, ...]) -> T:
        """Returns the result of `make`, computed again only for another tuple of items."""
        # Read once: another thread may replace it in between.
        last = last_results[-1:]
        if last and last[0][0] is items:
            return last[0][1]
        result = make(items)
        last_results[:] = [(items, result)]
        return result

    return made


def cache_each(make: Callable[[K, A], T]) -> Callable[[tuple[K, ...], A], list[T]]:
    """Returns a function that applies `make` to each item, with a cache of the last results for the very same items.

    `make` must only read them. The cache is valid as long as the second argument of all of them is equal.
    """
    last_results: list[tuple[tuple[K, ...], A, list[T]]] = []

    def made(items: tuple[K, ...], looked_at_with: A) -> list[T]:
        """Returns a result for each item; computes those alone that changed, unless `looked_at_with` did."""
        last = last_results[-1:]
        before, earlier = (last[0][0], last[0][2]) if last and last[0][1] == looked_at_with else ((), [])
        if len(items) == len(before):
            # The usual case: a single item changed, in its place.
            results = [
                result if same else make(item, looked_at_with)
                for item, same, result in zip(items, map(is_, items, before), earlier, strict=True)
            ]
        else:
            # Ids are unique here, because the objects of `before` are still referenced.
            by_id = {id(item): (result,) for item, result in zip(before, earlier, strict=True)}
            results = [cached[0] if (cached := by_id.get(id(item))) else make(item, looked_at_with) for item in items]
        last_results[:] = [(items, looked_at_with, results)]
        return results

    return made


def cached_grouping(*keys: Callable[[K], str]) -> Callable[[tuple[K, ...]], tuple[Mapping[str, list[K]], ...]]:
    """Returns a function that groups the items by each of the keys, unordered, with a cache of the last list's groups.

    Groups that gained and lost no item are the same objects as before.
    """
    last_groups: list[tuple[tuple[K, ...], tuple[Mapping[str, list[K]], ...]]] = []

    def made(items: tuple[K, ...]) -> tuple[Mapping[str, list[K]], ...]:
        """Returns the items by each key; updates the groups of items that came or went."""
        last = last_groups[-1:]
        if last and last[0][0] is items:
            return last[0][1]
        before, groups = last[0] if last else ((), ({},) * len(keys))
        removed, new = _removed_and_added(before, items)
        regrouped = tuple(_regroup_changed(old, removed, new, key) for old, key in zip(groups, keys, strict=True))
        last_groups[:] = [(items, regrouped)]
        return regrouped

    return made


def _removed_and_added(before: tuple[K, ...], items: tuple[K, ...]) -> tuple[list[K], list[K]]:
    """Returns the items that are gone, and those that are new.

    Usually both lists share all but a few items with their beginning and end, so only what is between is compared.
    """
    start = _common_prefix_length(map(is_, before, items))
    # At most what remains of the shorter list, so that beginning and end do not overlap.
    end = min(_common_prefix_length(map(is_, reversed(before), reversed(items))), min(len(before), len(items)) - start)
    old, new = before[start : len(before) - end], items[start : len(items) - end]
    if not old:
        return [], list(new)
    of_old, of_new = set(map(id, old)), set(map(id, new))
    return [item for item in old if id(item) not in of_new], [item for item in new if id(item) not in of_old]


def _common_prefix_length(same: Iterable[bool]) -> int:
    """Returns how many come before the first that differs.

    It counts in C (`bytes.find`), because there are hundreds of thousands.
    """
    flags = bytes(same)
    first = flags.find(0)
    return len(flags) if first < 0 else first


def _regroup_changed(
    groups: Mapping[str, list[K]], removed: Iterable[K], new: Iterable[K], key: Callable[[K], str]
) -> Mapping[str, list[K]]:
    """Returns the groups without the items that are gone and with the new ones; empty groups are dropped."""
    regrouped, gone_ids = dict(groups), set(map(id, removed))
    for name in {key(item) for item in removed}:
        regrouped[name] = [item for item in regrouped[name] if id(item) not in gone_ids]
    added: dict[str, list[K]] = defaultdict(list)
    for item in new:
        added[key(item)].append(item)
    for name, items in added.items():
        regrouped[name] = [*regrouped.get(name, ()), *items]
    return {name: items for name, items in regrouped.items() if items}


def cache_groups(make: Callable[[list[K]], T]) -> Callable[[Mapping[str, list[K]]], dict[str, T]]:
    """Returns a function that applies `make` to each group, with a cache of the last results.

    A result is reused for a group of the very same name and objects.
    """
    last_results: list[tuple[Mapping[str, list[K]], dict[str, T]]] = []

    def made(groups: Mapping[str, list[K]]) -> dict[str, T]:
        """Returns a result for each group; computes those alone whose members changed."""
        last = last_results[-1:]
        earlier_groups, results = last[0] if last else ({}, {})
        if earlier_groups is groups:
            return results
        # Lists are compared object by object, and an object with itself at once.
        updated = {
            name: results[name] if (old := earlier_groups.get(name)) is group or old == group else make(group)
            for name, group in groups.items()
        }
        last_results[:] = [(groups, updated)]
        return updated

    return made
