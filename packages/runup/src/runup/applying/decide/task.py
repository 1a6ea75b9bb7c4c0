"""A task: a manifest of a release with its position in the order, and its name in messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runup.release.decide.manifest import Identity, Manifest

CREATE_ONLY = "release.openshift.io/create-only"
DELETE = "release.openshift.io/delete"


@dataclass(frozen=True, slots=True)
class Task:
    """A `manifest` to be applied or deleted: number `index` (from 1) of the `total` that a cluster gets."""

    manifest: Manifest
    index: int
    total: int

    @property
    def identity(self) -> Identity:
        """The identity of its object."""
        return self.manifest.identity

    @property
    def kind(self) -> tuple[str, str]:
        """The group and kind of its object."""
        return self.identity.group, self.identity.kind

    @property
    def create_only(self) -> bool:
        """Returns whether the object is only created if it is absent, and never changed after that."""
        return (self.manifest.annotations or {}).get(CREATE_ONLY, "").lower() == "true"

    @property
    def deletes(self) -> bool:
        """Returns whether the object is to be deleted."""
        return DELETE in (self.manifest.annotations or {})

    @property
    def unusable(self) -> str:
        """Returns why the task cannot be carried out at all, in words; "" if it can."""
        value = (self.manifest.annotations or {}).get(DELETE, "true")
        if value == "true":
            return ""
        return f'Invalid delete annotation "{DELETE}" value: "{value}"'

    def __str__(self) -> str:
        identity = self.identity
        name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
        return f'{identity.kind.lower()} "{name}" ({self.index} of {self.total})'


def tasks_of(manifests: Sequence[Manifest]) -> tuple[Task, ...]:
    """Returns a task for each of `manifests`, in the same order."""
    return tuple(Task(manifest, index, len(manifests)) for index, manifest in enumerate(manifests, start=1))
