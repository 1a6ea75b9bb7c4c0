"""Computes the changes since an earlier report: new risks, and known risks with further objects. Pure.

Baselines, acceptances, schedules and histories all compare by these functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from runup.report.report import ReportedResource

# What a check could not tell is known only as that: that the risk applies is new.
_KNOWN = {"True": ("True", "Unknown"), "Unknown": ("Unknown",)}


class ComparedRisk(Protocol):
    """A risk as far as it is compared, such as one of a report."""

    @property
    def name(self) -> str:
        """The risk's name."""

    @property
    def applies(self) -> str:
        """`True`, `Unknown` or `False`."""

    @property
    def resources(self) -> tuple[ReportedResource, ...]:
        """The objects that the risk is about."""

    @property
    def resources_omitted(self) -> int:
        """The number of further objects, for which the list has no room."""


class Objects(NamedTuple):
    """The objects of a risk, as people write them; `omitted` counts those that are not named."""

    names: Collection[str]
    omitted: int = 0

    @property
    def total(self) -> int:
        """The number of objects, named or not."""
        return len(self.names) + self.omitted


class Change(msgspec.Struct, frozen=True):
    """The objects that a risk has on one side only; `whole`: the risk itself is not known on the other.

    `more` counts such objects that cannot be named.
    """

    risk: str
    objects: tuple[str, ...]
    whole: bool
    more: int = 0


def objects_of(risk: ComparedRisk) -> Objects:
    """Returns the objects of a risk."""
    return Objects(tuple(item.text for item in risk.resources), risk.resources_omitted)


def added(before: Objects, now: Objects) -> tuple[tuple[str, ...], int]:
    """Returns the objects that were added, sorted, and how many more were that cannot be named.

    Where an object may or may not have been there, it does not count: `before` omits some, or `now` omits one of them.
    """
    if before.omitted:
        return (), max(now.total - before.total, 0)
    names_before, names_now = set(before.names), set(now.names)
    return tuple(sorted(names_now - names_before)), max(now.omitted - len(names_before - names_now), 0)


def is_known(before: ComparedRisk | None, now: ComparedRisk) -> bool:
    """Reports whether an earlier report has the risk `now`, whatever objects it is about."""
    return before is not None and now.applies in _KNOWN.get(before.applies, ())


def changes(now: Iterable[ComparedRisk], before: Mapping[str, ComparedRisk]) -> tuple[Change, ...]:
    """Returns what the risks `now` have that those `before` (by name) do not: new risks, and grown ones, by name."""
    found = []
    for risk in sorted(now, key=lambda risk: risk.name):
        earlier = before.get(risk.name)
        known = earlier is not None and is_known(earlier, risk)
        then = objects_of(earlier) if earlier is not None and known else Objects(())
        names, more = added(then, objects_of(risk))
        if not known or names or more:
            found.append(Change(risk.name, names, not known, more))
    return tuple(found)
