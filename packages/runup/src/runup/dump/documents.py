"""Reads files of YAML or JSON into plain objects; splits Lists, drops comments and empty documents.

Scalars are read as Kubernetes reads them (an unquoted time stays text), so that an object keeps the values that it had
in the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubekit.error_types import Terminal
from kubekit.lang import yaml as kyaml
from kubekit.lang.files import read_limited

JSON = dict[str, Any]
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


class BadManifest(Terminal):
    """A file is not YAML or JSON, or a document in it is not a Kubernetes object."""


def objects_in(path: Path, *, values: dict[str, str] | None = None) -> list[JSON]:
    """Returns every object of the file, with `${name}` of `values` replaced.

    Raises BadManifest naming the file, also for one of more than 64 MiB.
    """
    try:
        data = read_limited(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL is in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise BadManifest(f"{path}: cannot be read: {reason}", reason="BadManifest") from error
    for name, value in (values or {}).items():
        data = data.replace(b"${%s}" % name.encode(), value.encode())
    try:
        documents = kyaml.load_all(data)
    except ValueError as error:
        raise BadManifest(f"{path}: {error}", reason="BadManifest") from error
    objects: list[JSON] = []
    for document in documents:
        objects.extend(_items_of(document, path))
    return objects


def objects_under(folder: Path, *, values: dict[str, str] | None = None) -> list[JSON]:
    """Returns every object of the files directly in `folder`, by file name; none if the folder does not exist."""
    if not folder.is_dir():
        return []
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)
    return [obj for file in files for obj in objects_in(file, values=values)]


def identity(obj: JSON) -> tuple[str, str, str, str]:
    """Returns group, kind, namespace and name, which identify an object in every API version."""
    group, _, version = obj["apiVersion"].rpartition("/")
    metadata = obj.get("metadata") or {}
    return (group if version else "", obj["kind"], metadata.get("namespace") or "", metadata.get("name") or "")


def object_name(obj: JSON) -> str:
    """Returns kind, namespace and name as text: `Pod shop/cart`, `Node a`."""
    _group, kind, namespace, name = identity(obj)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _items_of(document: Any, path: Path) -> Iterator[JSON]:
    """Yields the objects in a document: itself, or its items if it is a list. Raises BadManifest."""
    if document is None:
        return
    if not isinstance(document, dict):
        raise BadManifest(f"{path}: holds a {type(document).__name__}, not a Kubernetes object", reason="BadManifest")
    items = document.get("items", ())
    # Go writes a list without items as null.
    if isinstance(items, list | None) and str(document.get("kind", "" if items is None else "List")).endswith("List"):
        kind = str(document.get("kind", ""))
        for item in items or ():
            # The items of a typed list (NodeList) may leave out what the list already says.
            if isinstance(item, dict) and kind not in {"", "List"}:
                item = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
            yield from _items_of(item, path)
        return
    if not isinstance(document.get("kind"), str) or not isinstance(document.get("apiVersion"), str):
        raise BadManifest(f"{path}: a document has no apiVersion and kind", reason="BadManifest")
    if not isinstance(document.get("metadata"), dict) or not document["metadata"].get("name"):
        raise BadManifest(f"{path}: a {document['kind']} has no metadata.name", reason="BadManifest")
    yield document


Resource = tuple[str, str]  # group, plural
_CORE_KINDS = """configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods
podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services"""
_STEMS: dict[str, Resource] = {
    plural: (group, plural)
    for group, plurals in {
        "config.openshift.io": ("clusterversions", "clusteroperators", "featuregates", "infrastructures", "networks"),
        "machineconfiguration.openshift.io": ("machineconfigpools", "machineconfigs"),
        "policy": ("poddisruptionbudgets",),
        "apps": ("deployments",),
        "": _CORE_KINDS.split(),
    }.items()
    for plural in plurals
}
_PLURAL = re.compile("[a-z][a-z0-9]*")
# Short names of kubectl by which files are named, too.
_SHORT = {
    "node": "nodes",
    "co": "clusteroperators",
    "mcp": "machineconfigpools",
    "mc": "machineconfigs",
    "pdb": "poddisruptionbudgets",
    "pdbs": "poddisruptionbudgets",
}


def resource_named(file: Path) -> Resource | None:
    """Returns the resource that a file is named after, or None."""
    for word in (file.stem, file.stem.rpartition("-")[2]):
        plural, _, group = word.lower().partition(".")
        plural = _SHORT.get(plural, plural)
        if plural in _STEMS and group in ("", _STEMS[plural][0]):
            return _STEMS[plural]
    plural, _, group = file.stem.partition(".")
    return (group, plural) if group and _PLURAL.fullmatch(plural) else None
