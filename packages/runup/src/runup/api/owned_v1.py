"""Any object, reduced to what applying a release needs: identity, field ownership, progress.

Nothing else is decoded, so that no data of a kind such as Secret is kept in memory or shown.
"""

from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition, Object, ObjectMeta, Wire


class ManagedFields(Wire, frozen=True, kw_only=True):
    """The fields that a manager set, and when it last did (RFC 3339); `operation` is `Apply` or `Update`."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")
    time: str = ""


class OwnedMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata with the managers of the fields."""

    managed_fields: tuple[ManagedFields, ...] = ()


class Owned(Object, frozen=True, kw_only=True):
    """An object reduced to metadata.

    `owned` are the fields that the operator applied, as JSON; `others` changes with each write of others that concerns
    the operator, and is empty if it does not exist.
    """

    metadata_alone: ClassVar[bool] = True
    metadata: OwnedMeta = OwnedMeta()
    owned: bytes = b""
    others: bytes = b""


class WorkloadSpec(Wire, frozen=True):
    """The settings that decide whether a Deployment rolls out, and whether a finished Job is deleted."""

    paused: bool = False
    ttl_seconds_after_finished: int | None = None


class WorkloadStatus(Wire, frozen=True, kw_only=True):
    """The status that shows whether a workload or a definition is ready."""

    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    replicas: int = 0
    # Of a DaemonSet: the nodes that must run a pod of it, and those of them that have one.
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class OwnedWorkload(Owned, frozen=True, kw_only=True):
    """A workload or a definition, with its progress. `status` is None if it was not read."""

    metadata_alone: ClassVar[bool] = False
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus | None = None


class Configuration(Object, frozen=True, kw_only=True):
    """A small singleton with only one or two values, whose place differs by kind."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


def applied_by(metadata: OwnedMeta, manager: str) -> ManagedFields | None:
    """Returns the entry with the fields that `manager` applied, None if it applied none."""
    # Only entries of server-side apply name fields that a later apply can remove; those of a subresource are apart:
    # https://kubernetes.io/docs/reference/using-api/server-side-apply/
    applier = (manager, "Apply", "")
    entries = metadata.managed_fields
    return next((entry for entry in entries if (entry.manager, entry.operation, entry.subresource) == applier), None)


def fields_of(metadata: OwnedMeta, manager: str) -> bytes:
    """Returns the fields that `manager` applied, as JSON; empty if they do not exist."""
    entry = applied_by(metadata, manager)
    return codec.encode(entry.fields_v1) if entry is not None else b""


def without_others(obj: Owned, manager: str, label: str, other_writes: bytes) -> Owned:
    """Returns `obj` reduced to the part kept in memory: identity, one label, the fields that `manager` applied."""
    metadata = obj.metadata
    metadata_kept = OwnedMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        generation=metadata.generation,
        deletion_timestamp=metadata.deletion_timestamp,
        labels={label: metadata.labels[label]} if label in metadata.labels else {},
    )
    return replace(obj, metadata=metadata_kept, owned=fields_of(metadata, manager), others=other_writes)
