"""Finds the files of a folder that make up a dump.

Five layouts are distinguished by their files: the `NAME-cv.yaml` families of `oc`'s own test cases, trees of
must-gather and `oc adm inspect`, archives of the Insights operator, bundles of other tools (`bundles`), and any other
folder, or one file, of YAML and JSON. Lists that were collected later lie next to the folders of a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kubekit.error_types import Terminal
from kubekit.lang.text import printable
from runup.dump.documents import SUFFIXES

CASE_PARTS = ("cv", "co", "mcp", "mc", "node", "mco-deployment")
_CASE_MARK = "-cv.yaml"
# The record that `runup dump collect` keeps of what it listed.
COLLECTED = "runup-dump.json"
# The folders in which must-gather and `oc adm inspect` keep objects; the rest of such a tree is logs.
_INSPECT = frozenset({"cluster-scoped-resources", "namespaces"})
_NOT_OBJECTS = frozenset({"pods", "host_service_logs", "audit_logs", "static-pods", "monitoring", "network_logs"})


class BadDump(Terminal):
    """The folder is not a dump that can be imported. Names of its files may be any bytes, so they are escaped."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(printable(message), reason=reason)


@dataclass(frozen=True, slots=True)
class Layout:
    """The recognised kind of dump, a name for it, and its files in a fixed order."""

    style: str
    name: str
    files: tuple[Path, ...]
    root: Path = Path()


def find(path: Path) -> Layout:
    """Recognises the dump at `path`: a folder, a file, or a folder and the prefix of one case in it. Raises BadDump."""
    if path.is_dir():
        return _folder(path)
    if path.is_file() and path.suffix in SUFFIXES:
        return Layout("folder", path.stem, (path,), path.parent)
    if path.parent.is_dir():
        case = _case(path.parent, path.name)
        if case.files:
            return case
        cases = _cases(path.parent)
        hint = f"; it holds {', '.join(cases)}" if cases else ""
        raise BadDump(
            (f"there is no folder {path}, and no {path.name}{_CASE_MARK} in {path.parent}{hint}"), reason="DumpNotFound"
        )
    raise BadDump(f"there is no folder {path} to import; give the folder of a dump", reason="DumpNotFound")


def _folder(path: Path) -> Layout:
    """Returns which files in a folder belong to a dump, by its layout. Raises BadDump unless it holds one."""
    cases = _cases(path)
    if len(cases) == 1:
        return _case(path, cases[0])
    if cases:
        listed = "\n".join(f"  {path / case}" for case in cases)
        raise BadDump(f"{path} holds {len(cases)} dumps; import one of them:\n{listed}", reason="SeveralDumps")
    # The folders with an archive's `config` in them: the archive's root, or else folders below that.
    archives: list[Path] = []
    for root in (path, *sorted(folder for folder in path.iterdir() if folder.is_dir())):
        config = root / "config"
        if (config / "clusteroperator").is_dir() or any((config / f"{n}.json").is_file() for n in _CLUSTER_VERSION):
            archives.append(root)
        if archives == [path]:
            break
    # An archive has folders of these names too, for some of what it gathers.
    tree = [file for file in _inspect_files(path) if not any(file.is_relative_to(root) for root in archives)]
    if tree:
        # `oc get` added files at the top, one for each kind.
        others = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
        return Layout("inspect", name_of(path), (*tree, *others), path)
    if len(archives) > 1:
        listed = "\n".join(f"  {Path(name_of(path)) / archive.relative_to(path)}" for archive in archives)
        text = f"{name_of(path)} holds {len(archives)} archives of the Insights operator; give one of them:\n{listed}"
        raise BadDump(text, reason="SeveralDumps")
    if archives:
        root = archives[0]
        folders = [root / name for name in ("config", *sorted(_INSPECT))]
        found = {file for folder in folders for file in folder.rglob("*.json")}
        # Of ConfigMaps an archive has a file for each key, whatever that is called.
        found |= {file for file in (root / "config" / "configmaps").rglob("*") if file.is_file()}
        return Layout("insights", name_of(path), tuple(sorted(found)), root)
    if (bundle := root_of(path)) is not None:
        return Layout("bundle", name_of(path), tuple(files_in(bundle)), bundle)
    # The folder that `runup dump collect` wrote: `path`, or the only one in it, as an archive unpacks.
    below = list(path.iterdir())
    inner = below[0] if len(below) == 1 else path
    path = inner if (inner / COLLECTED).is_file() else path
    files = tuple(sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file()))
    files = tuple(file for file in files if file != path / COLLECTED)
    if not files:
        raise BadDump(f"{path} contains no YAML or JSON file; give the folder of a dump", reason="EmptyDump")
    return Layout("folder", name_of(path), files, path)


PACKED = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".gz")
"""The suffixes of packed dumps."""


def without_suffixes(name: str) -> str:
    """Returns the name of an archive without the suffixes of its format."""
    for suffix in (".gz", ".tgz", ".xz", ".txz", ".bz2", ".tbz2", ".tar"):
        name = name.removesuffix(suffix)
    return name


def name_of(path: Path) -> str:
    """Returns the name of the dump at `path`, also if it was typed as `.`."""
    return path.name if path.name.strip(".") else path.resolve().name


def cluster_name(path: Path) -> str:
    """Returns the name of the cluster whose dump is at `path`: that of its folder, or of its archive's file."""
    name = name_of(path)
    return without_suffixes(name) if name.endswith(PACKED) and path.is_file() else name


def _cases(folder: Path) -> list[str]:
    return sorted(file.name.removesuffix(_CASE_MARK) for file in folder.glob(f"*{_CASE_MARK}"))


def _case(folder: Path, prefix: str) -> Layout:
    files = tuple(file for part in CASE_PARTS if (file := folder / f"{prefix}-{part}.yaml").is_file())
    return Layout("case", prefix, files, folder)


_CLUSTER_VERSION = ("version", "clusterversion")


def _inspect_files(path: Path) -> Iterator[Path]:
    """Yields the files of `oc adm inspect`: those in folders `cluster-scoped-resources` and `namespaces`.

    These folders may be at any depth: must-gather puts them into a folder for each image.
    """
    for root in sorted(folder for folder in path.rglob("*") if folder.is_dir() and folder.name in _INSPECT):
        if any(parent.name in _INSPECT for parent in root.relative_to(path).parents):
            continue
        for file in sorted(root.rglob("*")):
            below = file.relative_to(root).parts
            # namespaces/NS/pods/POD/POD.yaml repeats what namespaces/NS/core/pods.yaml lists.
            inside_pods = root.name == "namespaces" and len(below) > 2 and below[1] in _NOT_OBJECTS
            if file.suffix in SUFFIXES and file.is_file() and not inside_pods:
                yield file


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
    """Returns the namespace of a file, empty for cluster-scoped objects, None if a server did not write it."""
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
