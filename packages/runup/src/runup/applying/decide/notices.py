"""Phrases notices about one object of a release: administrators should know of them, but they block nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubekit.lang.text import join_within
from runup.applying.decide.task import Task

# Bytes of a message: as many as an event keeps.
MAX_MESSAGE_BYTES = 1024
CONTESTED, DROPPED = "ReleaseObjectContested", "ReleaseFieldsDropped"


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about the object of `task`, as an event has it."""

    task: Task
    reason: str
    message: str


def contested_notice(task: Task, writer: str) -> Notice:
    """Returns the notice that an object is changed or deleted each time it is put back.

    `writer` is the field manager that changed it last, "" if that is not known.
    """
    changed = f'changed by "{writer}"' if writer else "changed or deleted"
    text = (
        f"{task} is {changed} as often as it is put back, so it is put back ever later, at most once a minute. "
        "End what changes it, or take the object away from the operator: spec.overrides"
    )
    return Notice(task, CONTESTED, text)


def dropped_notice(task: Task, warnings: Sequence[str]) -> Notice:
    """Returns the notice that the API server does not keep all that a manifest says, in its own `warnings`."""
    head = f"{task} is not as the release has it, because this API server does not know or keep all of it"
    return Notice(task, DROPPED, join_within([f"{head}: {warnings[0]}", *warnings[1:]], "; ", MAX_MESSAGE_BYTES))
