"""Any object, as far as whoever applies a release needs to know it: identity, who owns which field, how far it is.

Nothing else of it is decoded, so that a kind with secrets in it costs and shows nothing.
"""

from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition, Object, ObjectMeta, Wire


class ManagedFields(Wire, frozen=True):
    """Which fields a manager set; `operation` is `Apply` or `Update`."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class OwnedMeta(ObjectMeta, frozen=True):
    """Metadata with what says who owns which field."""

    managed_fields: tuple[ManagedFields, ...] = ()


class Owned(Object, frozen=True):
    """Metadata alone. `owned` is what is kept of the fields that we applied, as JSON."""

    metadata_alone: ClassVar[bool] = True
    metadata: OwnedMeta = OwnedMeta()
    owned: bytes = b""


class WorkloadSpec(Wire, frozen=True):
    """Whether a Job is removed once it is done."""

    ttl_seconds_after_finished: int | None = None


class WorkloadStatus(Wire, frozen=True):
    """Whether a workload or a definition is as it should be."""

    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    replicas: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class OwnedWorkload(Owned, frozen=True):
    """A workload or a definition: with the part that says how far it is. `status` is None where it was not read."""

    metadata_alone: ClassVar[bool] = False
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus | None = None


class Configuration(Object, frozen=True):
    """A small singleton of which a value or two is read, wherever it is."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


def fields_of(metadata: OwnedMeta, manager: str) -> bytes:
    """The fields that `manager` applied, as JSON; empty where there are none."""
    for entry in metadata.managed_fields:
        if (entry.manager, entry.operation, entry.subresource) == (manager, "Apply", ""):
            return codec.encode(entry.fields_v1)
    return b""


def without_others(obj: Owned, manager: str, label: str) -> Owned:
    """`obj` with what `manager` applied in `owned`, and nothing else but the one label: what is kept in memory."""
    found = obj.metadata
    kept = OwnedMeta(
        name=found.name,
        namespace=found.namespace,
        uid=found.uid,
        resource_version=found.resource_version,
        generation=found.generation,
        deletion_timestamp=found.deletion_timestamp,
        labels={label: found.labels[label]} if label in found.labels else {},
    )
    return replace(obj, metadata=kept, owned=fields_of(found, manager))
