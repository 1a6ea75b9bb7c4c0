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
        """Returns whether the object must be deleted."""
        return DELETE in (self.manifest.annotations or {})

    @property
    def unusable(self) -> str:
        """Returns why the task cannot be carried out at all, in words; "" if it can."""
        value = (self.manifest.annotations or {}).get(DELETE, "true")
        if value == "true":
            return ""
        return f'Invalid delete annotation "{DELETE}" value: "{value}"'

    def __str__(self) -> str:
        return f"{_object_text(self.identity, self.identity.kind.lower())} ({self.index} of {self.total})"


# The kinds that the Go operator deletes by separate functions (lib/resourcedelete), which print a kind in lower case.
_LOWERED = frozenset({
    ("", "Namespace"), ("", "Service"), ("", "ServiceAccount"), ("", "ConfigMap"), ("apps", "Deployment"),
    ("apps", "DaemonSet"), ("batch", "Job"), ("batch", "CronJob"), ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"), ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"), ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"), ("image.openshift.io", "ImageStream"),
    ("operators.coreos.com", "OperatorGroup"), ("security.openshift.io", "SecurityContextConstraints"),
})  # fmt: skip


def deletion_text(identity: Identity) -> str:
    """Returns an object whose deletion is in progress as the Go operator prints it, such as `configmap "ns/name"`."""
    lowered = (identity.group, identity.kind) in _LOWERED
    return _object_text(identity, identity.kind.lower() if lowered else identity.kind)


def _object_text(identity: Identity, kind: str) -> str:
    name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
    return f'{kind} "{name}"'


def tasks_of(manifests: Sequence[Manifest]) -> tuple[Task, ...]:
    """Returns a task for each of `manifests`, in the same order."""
    return tuple(Task(manifest, index, len(manifests)) for index, manifest in enumerate(manifests, start=1))
