"""A manifest of a release as something to be done: its place in the order, and what it is called in messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runup.release.decide.manifest import Identity, Manifest

CREATE_ONLY = "release.openshift.io/create-only"
DELETE = "release.openshift.io/delete"


@dataclass(frozen=True, slots=True)
class Task:
    """`manifest` as number `index` (from 1) of the `total` that a cluster gets."""

    manifest: Manifest
    index: int
    total: int

    @property
    def identity(self) -> Identity:
        """Which object it is about."""
        return self.manifest.identity

    @property
    def kind(self) -> tuple[str, str]:
        """Group and kind."""
        return self.identity.group, self.identity.kind

    @property
    def create_only(self) -> bool:
        """Whether the object is created where it is absent, and never changed."""
        return (self.manifest.annotations or {}).get(CREATE_ONLY, "").lower() == "true"

    @property
    def deletes(self) -> bool:
        """Whether the object is to be gone."""
        return DELETE in (self.manifest.annotations or {})

    @property
    def unusable(self) -> str:
        """Why it cannot be carried out at all, in words; empty where it can."""
        value = (self.manifest.annotations or {}).get(DELETE, "true")
        if value == "true":
            return ""
        return f'Invalid delete annotation "{DELETE}" value: "{value}"'

    def __str__(self) -> str:
        identity = self.identity
        name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
        return f'{identity.kind.lower()} "{name}" ({self.index} of {self.total})'


def tasks_of(manifests: Sequence[Manifest]) -> tuple[Task, ...]:
    """`manifests` as tasks, in the order given."""
    return tuple(Task(manifest, index, len(manifests)) for index, manifest in enumerate(manifests, start=1))
