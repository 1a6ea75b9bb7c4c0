"""Knows the files of a troubleshoot support bundle and of a sonobuoy tarball that hold answers of the API server.

troubleshoot writes `cluster-resources/KIND.json`, `cluster-resources/KIND/NAMESPACE.json` and the same of custom
resources below `custom-resources`; sonobuoy writes `resources/cluster/` and `resources/ns/NAMESPACE/`. Both write what
one request returned, older releases as an array of objects without their kind (docs/decisions/0080).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runup.dump.documents import SUFFIXES

TROUBLESHOOT, SONOBUOY, _CUSTOM = "cluster-resources", "resources", "custom-resources"
_APPS, _STORAGE = "apps/v1", "storage.k8s.io/v1"
# The name of a file or folder of a troubleshoot bundle (pkg/collect/cluster_resources.go) -> the kind of its objects.
_TROUBLESHOOT = {
    "configmaps": ("v1", "ConfigMap"),
    "custom-resource-definitions": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "daemonsets": (_APPS, "DaemonSet"),
    "deployments": (_APPS, "Deployment"),
    "namespaces": ("v1", "Namespace"),
    "nodes": ("v1", "Node"),
    "pod-disruption-budgets": ("policy/v1", "PodDisruptionBudget"),
    "pods": ("v1", "Pod"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "pvs": ("v1", "PersistentVolume"),
    "services": ("v1", "Service"),
    "statefulsets": (_APPS, "StatefulSet"),
    "storage-classes": (_STORAGE, "StorageClass"),
    "volumeattachments": (_STORAGE, "VolumeAttachment"),
}
# The name of a file of a sonobuoy tarball (pkg/discovery/queries.go), in lower case.
_SONOBUOY = {
    "certificatesigningrequests": ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    "configmaps": ("v1", "ConfigMap"),
    "customresourcedefinitions": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "nodes": ("v1", "Node"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
    "pods": ("v1", "Pod"),
    "services": ("v1", "Service"),
}


def root_of(path: Path) -> Path | None:
    """Returns the folder of the bundle: `path` or the one below it that has such files, or None."""
    for root in (path, *sorted(folder for folder in path.iterdir() if folder.is_dir())):
        if (root / TROUBLESHOOT).is_dir() or (root / SONOBUOY / "cluster").is_dir():
            return root
    return None


def files_in(root: Path) -> Iterator[Path]:
    """Yields the files of the bundle that have objects, and those added by hand at its top."""
    for file in sorted(file for file in root.rglob("*") if file.suffix in SUFFIXES and file.is_file()):
        if (file.parent == root and kind_beside(file)) or place_of(file, root) is not None:
            yield file


def kind_beside(file: Path) -> bool:
    """Returns whether a file at the top may have been added by hand: bundles have JSON of their own there."""
    return file.suffix != ".json" or file.stem in ("cv", "clusterversion", "version")


def place_of(file: Path, root: Path) -> str | None:
    """Returns the namespace that a file is about, empty for what is in none; None if it is no answer of a server."""
    parts = file.relative_to(root).parts
    if parts[0] == TROUBLESHOOT:
        below = parts[2:] if parts[1] == _CUSTOM else parts[1:]
        if file.stem.endswith("-errors") or not (parts[1] == _CUSTOM or below[0].partition(".")[0] in _TROUBLESHOOT):
            return None
        return "" if len(below) == 1 else file.stem if len(below) == 2 else None
    if parts[:2] == (SONOBUOY, "cluster") and len(parts) == 3:
        return ""
    return parts[2] if parts[:2] == (SONOBUOY, "ns") and len(parts) == 4 else None


def kind_of(file: Path, root: Path) -> tuple[str, str] | None:
    """Returns the apiVersion and kind of objects that do not say it, by the path of their file, or None."""
    parts = file.relative_to(root).parts
    if parts[0] == TROUBLESHOOT:
        return _TROUBLESHOOT.get(parts[1].partition(".")[0])
    # `core_v1_nodes.json`, or `Nodes.json` of older releases.
    return _SONOBUOY.get(file.stem.rpartition("_")[2].lower()) if parts[0] == SONOBUOY else None
