"""The objects of a dump by type, and what the dump proves about a kind. Objects of the example files of oc, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kubekit.api import codec
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.error_types import InputError
from runup.api.config_v1 import ClusterOperator
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.snapshot import LISTED

if TYPE_CHECKING:
    from runup.dump.load import Dump

K = TypeVar("K", bound=Object)
_STATUSES = ("True", "False", "Unknown")
ABSENT = "the dump holds none"
_KIND_OF = {
    kind.__name__: (resource_of(kind).group, kind.__name__)
    for kind in (ClusterOperator, MachineConfigPool, Node, MachineConfig, Pod, PodDisruptionBudget)
}
_KIND_OF["CertificateSigningRequest"] = ("certificates.k8s.io", "CertificateSigningRequest")
_FIELDS = {field: _KIND_OF[kind] for field, kind in LISTED.items()}


def convert_item(item: Any, kind: type[K], path: str) -> K:
    """Returns the object, with missing statuses filled if it needs them. Raises InputError."""
    try:
        try:
            return codec.convert(kind, item)
        except codec.DecodeError:
            return codec.convert(kind, _with_statuses(item))
    except codec.DecodeError as error:
        raise InputError(f"{path}: not a {resource_of(kind).kind}: {error}") from error


def _with_statuses(item: Any) -> Any:
    """Returns `item` with status Unknown, neither True nor False, in each condition whose status is not valid."""
    status = item.get("status") if isinstance(item, dict) else None
    rows = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return item
    conditions = [{**row, "status": row["status"] if row.get("status") in _STATUSES else "Unknown"} for row in rows]
    return {**item, "status": {**status, "conditions": conditions}}


class DumpObjects:
    """A dump's objects by type. An object that cannot be decoded as its kind is noted as a warning and left out."""

    def __init__(self, loaded_dump: Dump, notes: list[str]) -> None:
        self._dump, self._notes = loaded_dump, notes

    def of(self, kind: type[K]) -> tuple[K, ...]:
        """Returns the objects of `kind` in the dump."""
        resource, objects = resource_of(kind), []
        for obj in self._dump.objects:
            if obj["kind"] != resource.kind or obj["apiVersion"].rpartition("/")[0] != resource.group:
                continue
            try:
                objects.append(convert_item(obj, kind, obj["metadata"]["name"]))
            except InputError as error:
                self._notes.append(f"warning: left out: {error}\n")
        return tuple(objects)

    def known(self, kind: type[K]) -> tuple[K, ...] | Unreadable:
        """Returns the objects of `kind`, or Unreadable if the dump lacks them and may not have collected them."""
        objects = self.of(kind)
        return objects if objects or self.is_complete(kind) else Unreadable(ABSENT)

    def is_complete(self, kind: type[Object]) -> bool:
        """Returns whether the dump proves that it has all objects of `kind`."""
        resource = resource_of(kind)
        return (resource.group, resource.plural) in self._dump.collected.whole

    def why_partly(self, kind: type[Object]) -> str:
        """Returns why the dump holds only a part of the objects of `kind`, empty if it is not known to."""
        resource = resource_of(kind)
        key = (resource.group, resource.plural)
        return self._dump.collected.why_partly(key) if key in self._dump.collected.partly else ""

    def incomplete(self) -> dict[str, str]:
        """Returns the snapshot fields of which the dump holds only a part, each with the reason."""
        collected, reasons = self._dump.collected, {}
        for field, (group, kind) in _FIELDS.items():
            resource = (group, self._dump.plurals.get((group, kind), ""))
            if resource in collected.partly:
                reasons[field] = collected.why_partly(resource)
        return reasons
