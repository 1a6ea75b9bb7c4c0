"""Knows the tools that write dumps: which namespace a file covers, and which kinds a tool listed in full.

Which tools, and the source of each rule: docs/decisions/0080.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

from kubekit.lang.files import read_limited
from runup.dump import dump_files as bundles
from runup.dump.documents import JSON, Resource, identity
from runup.dump.dump_files import COLLECTED, Layout
from runup.dump.dump_time import read_text, timestamps

# Stands for every namespace, and for the cluster.
ALL = "*"
# How `oc adm inspect` names its folders; `all` has what was listed in all namespaces at once.
CLUSTER, NAMESPACES, _CORE, _EVERYWHERE = "cluster-scoped-resources", "namespaces", "core", "all"
# What must-gather's own image writes first into its folder (collection-scripts/gather).
_IMAGE = "openshift/must-gather"
_OPERATORS: Resource = ("config.openshift.io", "clusteroperators")
# What its script has `oc adm inspect` list by kind, in every release whose image writes that file.
_LISTED: frozenset[Resource] = frozenset(
    {
        ("", "nodes"),
        ("", "persistentvolumes"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        _OPERATORS,
        ("config.openshift.io", "clusterversions"),
        ("operator.openshift.io", "networks"),
        *(("storage.k8s.io", plural) for plural in ("csidrivers", "csinodes", "storageclasses", "volumeattachments")),
        *(
            ("operators.coreos.com", plural)
            for plural in ("catalogsources", "clusterserviceversions", "installplans", "subscriptions")
        ),
    }
)
# What later releases list, and earlier ones collect by name: an object that every cluster has and nobody asks for.
_LISTED_WITH: dict[Resource, str] = {
    ("apiregistration.k8s.io", "apiservices"): "v1.apps",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "exempt",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "exempt",
}
# Operators of every cluster that has its own control plane: whoever inspected all of them inspected the kind.
_CORE_OPERATORS = """authentication config-operator dns etcd kube-apiserver kube-controller-manager kube-scheduler
machine-config network openshift-apiserver"""
_EVERY_CLUSTERS = frozenset(_CORE_OPERATORS.split())
# Gatherers of the Insights operator that record every object of a kind, with their folder below `config`. Of budgets,
# pods, volumes, requests and definitions it records some only.
_GATHERERS: dict[str, tuple[Resource, str]] = {
    "clusterconfig/nodes": (("", "nodes"), "node"),
    "clusterconfig/operators": (_OPERATORS, "clusteroperator"),
    "clusterconfig/machine_config_pools": (
        ("machineconfiguration.openshift.io", "machineconfigpools"),
        "machineconfigpools",
    ),
}


def place_of(file: Path, layout: Layout, has_namespaces: Callable[[Path], bool]) -> str | None:
    """Returns the namespace that the path of a file is about: empty for what is in none, ALL, or None if it is open.

    `has_namespaces` returns whether a folder has a folder for each namespace.
    """
    parts = file.relative_to(layout.root).parts if file.is_relative_to(layout.root) else file.parts
    if layout.style == "bundle":
        return bundles.place_of(file, layout.root)
    if layout.style == "inspect":
        for index, part in enumerate(parts[:-1]):
            if part == CLUSTER:
                return ""
            if part == NAMESPACES and len(parts) > index + 2:
                return ALL if parts[index + 1] == _EVERYWHERE else parts[index + 1]
    if layout.style == "folder" and len(parts) > 1 and has_namespaces(layout.root / Path(*parts[:-2])):
        return parts[-2]
    return None


def has_namespaces(folder: Path) -> bool:
    """Returns whether `kubectl cluster-info dump` wrote to `folder`: nodes, and a folder for each namespace."""
    return any((folder / f"nodes{suffix}").is_file() for suffix in (".json", ".yaml")) and any(
        next(folder.glob(f"*/replication-controllers{suffix}"), None) for suffix in (".json", ".yaml")
    )


def proven_by_tool(
    layout: Layout, objects: Iterable[JSON], broken: AbstractSet[Path]
) -> Iterator[tuple[Resource, str]]:
    """Yields the kinds that the tool is known to have listed, each with the namespace or ALL."""
    if layout.style == "inspect":
        # The kinds that trees of `oc adm inspect` hold completely, each with the namespace that this holds for.
        names: dict[Path, dict[Resource, set[str]]] = defaultdict(lambda: defaultdict(set))
        places: set[tuple[Path, Resource, str]] = set()
        spoilt: set[tuple[Path, Resource]] = set()
        for file in layout.files:
            if (placed := _place_in_tree(file, layout.root)) is None:
                continue
            root, resource, namespace = placed
            names[root][resource].add(file.stem)
            places.add((root, resource, namespace))
            if file in broken:
                spoilt.add((root, resource))
        related = {identity(obj)[3]: _related(obj) for obj in objects if obj["kind"] == "ClusterOperator"}
        for root, of_kind in names.items():
            requests = {
                related_objects for name in of_kind.get(_OPERATORS, ()) for related_objects in related.get(name, ())
            }
            if of_kind.get(_OPERATORS, set()) >= _EVERY_CLUSTERS:
                requests.add((_OPERATORS, ALL))
            if is_must_gather(root, layout.root):
                for resource in _empty_folders(root):
                    of_kind.setdefault(resource, set())
                requests |= {(resource, ALL) for resource in _LISTED}
                requests |= {
                    (resource, ALL) for resource, name in _LISTED_WITH.items() if name in of_kind.get(resource, ())
                }
            # Of a kind without an object there is no file: it was empty, or its listing failed.
            yield from (
                (resource, namespace)
                for resource, namespace in requests
                if (resource in of_kind if namespace == ALL else (root, resource, namespace) in places)
                if (root, resource) not in spoilt
            )
    elif layout.style == "insights":
        yield from _of_insights(layout.root, broken)


def _empty_folders(root: Path) -> Iterator[Resource]:
    for folder in (root / CLUSTER).glob("*/*"):
        if folder.is_dir() and not any(folder.iterdir()):
            group = folder.parent.name
            yield "" if group == _CORE else group, folder.name


def _place_in_tree(file: Path, top: Path) -> tuple[Path, Resource, str] | None:
    """Returns the tree's root, the resource and the namespace of a file `GROUP/PLURAL/NAME.yaml`; None for any other.

    The namespace of what is in none is empty.
    """
    parts = file.relative_to(top).parts
    start = next((index for index, part in enumerate(parts) if part in {CLUSTER, NAMESPACES}), None)
    if start is None:
        return None
    namespace, below = ("", parts[start + 1 :]) if parts[start] == CLUSTER else (parts[start + 1], parts[start + 2 :])
    if len(below) != 3:
        return None
    return top.joinpath(*parts[:start]), ("" if below[0] == _CORE else below[0], below[1]), namespace


def _related(operator: JSON) -> frozenset[tuple[Resource, str]]:
    """Returns the kinds that `oc adm inspect` lists because a ClusterOperator relates to all their objects."""
    status = operator.get("status")
    rows = status.get("relatedObjects") if isinstance(status, dict) else None
    return frozenset(
        ((str(row.get("group") or ""), str(row["resource"])), str(row.get("namespace") or "") or ALL)
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and row.get("resource") and not row.get("name")
    )


def is_must_gather(root: Path, top: Path) -> bool:
    """Returns whether must-gather's own image wrote the tree at `root`, and came to its end.

    `oc adm must-gather` notes its start and its end in a file beside the folder of the image.
    """
    if root != top and (times := timestamps(root.parent)) is not None and len(times) < 2:
        return False
    version = root / "version"
    if version.is_file():
        return read_text(version).partition("\n")[0].strip() == _IMAGE
    # Images of before that file: the folder is one of `oc adm must-gather` all the same.
    return root != top and timestamps(root.parent) is not None


def _of_insights(root: Path, broken: AbstractSet[Path]) -> Iterator[tuple[Resource, str]]:
    """Yields what the archive's own record says was gathered without an error, but for kinds with a broken file."""
    for row in _rows_of_record(root / "insights-operator" / "gathers.json", "status_reports"):
        resource, folder = _GATHERERS.get(str(row.get("name")), (None, ""))
        is_spoilt = any(file.is_relative_to(root / "config" / folder) for file in broken)
        if resource and not is_spoilt and not row.get("errors") and not row.get("panic"):
            yield resource, ALL


def resource_collected(file: Path) -> Resource:
    """Returns the resource of a list that `runup dump collect` wrote: `PLURAL.GROUP.json`, `PLURAL@NAMESPACE.json`."""
    plural, _, group = file.stem.partition("@")[0].partition(".")
    return group, plural


class Recorded(NamedTuple):
    """Record of `runup dump collect`: kinds that are known, each with the namespace or ALL; kinds of no server."""

    known: tuple[tuple[Resource, str], ...]
    absent: frozenset[Resource]


def read_record(root: Path) -> Recorded | None:
    """Returns the record of `runup dump collect` in the folder `root`, or None without one."""
    if not (root / COLLECTED).is_file():
        return None
    recorded: list[tuple[Resource, str]] = []
    absent: set[Resource] = set()
    for row in _rows_of_record(root / COLLECTED, "kinds"):
        plural, _, group = str(row.get("resource") or "").partition(".")
        namespaces = row.get("namespaces")
        if row.get("state") == "complete":
            namespaces_read = namespaces if isinstance(namespaces, list) and namespaces else [ALL]
            recorded += [((group, plural), str(namespace)) for namespace in namespaces_read]
        elif row.get("state") == "absent":
            absent.add((group, plural))
    return Recorded(tuple(recorded), frozenset(absent))


def _rows_of_record(file: Path, key: str) -> list[dict[str, Any]]:
    """Returns the rows below `key` of a JSON file; none if the file cannot be read."""
    try:
        record = json.loads(read_limited(file))
    except (OSError, ValueError, RecursionError):
        return []
    rows = record.get(key) if isinstance(record, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
