"""A condition is a value; these functions change the set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition, ConditionStatus

Conditions = tuple[Condition, ...]


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The first condition of this type, as every client of ClusterVersion reads it."""
    # Asked of thousands of nodes: a loop takes a third of what `next` of a generator does.
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def status_of(conditions: Iterable[Condition], type_: str) -> ConditionStatus | None:
    """The status of the first condition of this type, or None where there is none."""
    found = find(conditions, type_)
    return found.status if found else None


def with_condition(current: Conditions, new: Condition, *, now: datetime) -> Conditions:
    """`current` with `new` in the place of its namesake, else at the end.

    lastTransitionTime moves only when the status does; reason and message change freely.
    """
    old = find(current, new.type)
    since = old.last_transition_time if old and old.status == new.status and old.last_transition_time else now
    new = replace(new, last_transition_time=since)
    if old is None:
        return (*current, new)
    return tuple(new if condition is old else condition for condition in current)


def without_condition(current: Conditions, *types: str) -> Conditions:
    """`current` without the conditions of these types."""
    return tuple(condition for condition in current if condition.type not in types)
