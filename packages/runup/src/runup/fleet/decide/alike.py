"""Puts clusters together that have the same answer. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def group_alike(items: Iterable[T], key: Callable[[T], K]) -> tuple[tuple[K, tuple[T, ...]], ...]:
    """Returns the items by their key, the largest group first; groups of one size as they come."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return tuple(sorted(((shared, tuple(group)) for shared, group in groups.items()), key=lambda pair: -len(pair[1])))
