"""Validation of claims, volumes, storage classes and CSI drivers.

Source: k8s.io/kubernetes/pkg/apis/core/validation and pkg/apis/storage/validation. What a real server appends to a
refused change of a spec, the difference of Go's types, is left out (docs/sandbox-differences.md).
"""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.schema.field_errors import forbidden, invalid, one_of, required
from kubesandbox.apiserver.validation.common import Faults, changed_paths, value_at

JSON = dict[str, Any]

# The members of a PersistentVolume's source, in the order in which a second one is refused.
_SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "cephfs", "iscsi"),
    *("cinder", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk", "portworxVolume"),
    *("scaleIO", "local", "storageos", "csi", "flexVolume"),
)


def claim_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a PersistentVolumeClaim: access modes, and a spec that changes once it is there."""
    spec = obj.get("spec") or {}
    yield from _access_mode_faults(spec)
    if old is None and not value_at(spec, "resources.requests.storage"):
        yield required("spec.resources[storage]")
    if old is not None and _fixed_claim_spec(spec, old) != _fixed_claim_spec(old.get("spec") or {}, old):
        rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield forbidden("spec", f"{rule} for bound claims")
    if old is not None:
        yield from _mode_faults(obj, old)


def _fixed_claim_spec(spec: JSON, old: JSON) -> JSON:
    """Returns what may not change: all but the volume and the class that come later, and a bound claim's size."""
    former = old.get("spec") or {}
    free = {name for name in ("volumeName", "storageClassName") if not former.get(name)}
    fixed = {key: value for key, value in spec.items() if key not in free}
    if value_at(old, "status.phase") == "Bound":
        fixed.pop("volumeAttributesClassName", None)
        fixed["resources"] = {key: each for key, each in (spec.get("resources") or {}).items() if key != "requests"}
    return fixed


def _access_mode_faults(spec: JSON) -> Faults:
    """Yields a fault without any access mode, and one for each unknown mode."""
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        supported = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
        yield from one_of("spec.accessModes", mode, supported)


def _mode_faults(obj: JSON, old: JSON) -> Faults:
    mode = value_at(obj, "spec.volumeMode")
    if mode != value_at(old, "spec.volumeMode"):
        # Kubernetes names the field so.
        yield invalid("volumeMode", mode, "field is immutable")


def volume_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a PersistentVolume: access modes, exactly one source, which stays, and the policy."""
    spec = obj.get("spec") or {}
    yield from _access_mode_faults(spec)
    sources = [name for name in _SOURCES if spec.get(name) is not None]
    if not sources:
        yield required("spec", "must specify a volume type")
    for name in sources[1:]:
        yield forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    nfs = spec.get("nfs")
    if nfs is not None and sources[0] == "nfs":
        for name in ("server", "path"):
            if not nfs.get(name):
                yield required(f"spec.nfs.{name}")
        if nfs.get("path") and not str(nfs["path"]).startswith("/"):
            yield invalid("spec.nfs.path", nfs["path"], "must be an absolute path")
    if policy := spec.get("persistentVolumeReclaimPolicy"):
        yield from one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    if old is not None:
        former = old.get("spec") or {}
        if {name: spec.get(name) for name in _SOURCES} != {name: former.get(name) for name in _SOURCES}:
            yield forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        yield from _mode_faults(obj, old)


def class_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a StorageClass: what may not change, and topologies without values."""
    if old is not None:
        for name in ("parameters", "provisioner", "reclaimPolicy"):
            if (obj.get(name) or None) != (old.get(name) or None):
                yield forbidden(name, f"updates to {name} are forbidden.")
        yield from changed_paths(obj, old, "volumeBindingMode")
    elif not obj.get("provisioner"):
        yield required("provisioner")
    for index, topology in enumerate(obj.get("allowedTopologies") or ()):
        for number, term in enumerate(topology.get("matchLabelExpressions") or ()):
            if not term.get("values"):
                yield required(f"allowedTopologies[{index}].matchLabelExpressions[{number}].values")


def driver_faults(obj: JSON, old: JSON | None) -> Faults:
    """Yields the faults of a CSIDriver: what may not change."""
    if old is None:
        return
    spec, former = obj.get("spec") or {}, old.get("spec") or {}
    # Kubernetes names the first of them so.
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(name) != former.get(name):
            yield invalid(f"spec.{shown}", spec.get(name), "field is immutable")
