"""Reads a ClusterVersion from files, for commands that use no server: `--mock-clusterversion FILE` and `--dump DIR`.

The first is one file, as in oc's own test cases. The second is a must-gather, a tree of `oc adm inspect`, an Insights
archive, or a folder of YAML. Of a dump only the files that these commands need are read: a must-gather may have
gigabytes, too much to read for a list of versions.
"""

# pathlib takes longer to import than these commands take to read.
# ruff: noqa: PTH110, PTH112, PTH113, PTH118, PTH208

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from kubekit.error_types import InputError
from kubekit.lang.files import links_inside, read_limited
from runup.api.clusterversion_json import JSON, mapping, mappings, text

MARK = "-cv.yaml"
NO_FILE = "no such file or directory"
_SUFFIXES = (".yaml", ".yml", ".json")
_TREE = "cluster-scoped-resources"
# Levels searched for a tree: a must-gather has a folder for its own name and one for each image above it.
_DEPTH = 4
_VERSION = os.path.join("config.openshift.io", "clusterversions")
_INSIGHTS = ("config/version.json", "config/clusterversion.json", "config/clusterversion/version.json")
_ALERTS = ("monitoring/prometheus/alerts.json", "monitoring/prometheus/rules.json", "alerts.json")
_MAX_CANDIDATES = 100_000
Found = tuple[str, JSON]  # the folder (or file) and the ClusterVersion in it
_MAX_DEPTH = 64  # as runup.dump.dump_limits has it


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the files. `alerts` is Prometheus' parsed answer, None without one; `problem`: why it is missing.

    `config_maps` are the operator's own, as far as the dump has them.
    """

    cluster: JSON
    alerts: Any = None
    problem: str = ""
    alerts_path: str = ""
    config_maps: tuple[JSON, ...] = ()


def mock(path: str) -> Read:
    """Reads the case whose ClusterVersion is in `path`; its alerts are in the file next to it. Raises InputError."""
    items = _items_of(document(path))
    if not items:
        raise InputError(f"{path} contains no ClusterVersion")
    if (kind := text(items[0], "kind")) not in ("", "ClusterVersion"):
        raise InputError(f"{path} contains no ClusterVersion but a {kind}")
    return _with_alerts(Read(cluster=items[0]), path.replace(MARK, "-alerts.json", 1))


def dump(path: str, *, alerts: bool = False, config_maps: bool = False) -> Read:
    """Reads the dump at `path`, packed or not; alerts and ConfigMaps only if requested. Raises InputError."""
    # oc's test cases are named without their endings.
    if not os.path.exists(path) and os.path.isfile(path + MARK):
        return mock(path + MARK)
    with _open_dump(path) as folder:
        if not os.path.isdir(folder):
            if MARK in folder:
                return mock(folder)
            return Read(cluster=_newest([(folder, version) for version in _versions_in(folder)], folder))
        roots = list(_roots(folder))
        cases = [] if roots else [file for file in _files(folder) if file.endswith(MARK)]
        if len(cases) > 1:
            listed = "\n".join(f"  {case.removesuffix(MARK)}" for case in cases)
            raise InputError(f"{folder} holds {len(cases)} clusters; give one of them:\n{listed}")
        cluster_read = mock(cases[0]) if cases else _read_folder(path, folder, roots, alerts=alerts)
        if not config_maps:
            return cluster_read
        return msgspec.structs.replace(cluster_read, config_maps=tuple(_config_maps(roots, folder)))


def _read_folder(path: str, folder: str, roots: list[str], *, alerts: bool) -> Read:
    """Reads must-gathers (those of `roots`), an Insights archive or any other folder; `path` is what the user typed."""
    versions_found: list[Found] = []
    for root in roots:
        place = os.path.join(root, _TREE, _VERSION)
        for file in (*_files(place), f"{place}.yaml", f"{place}.json"):
            versions_found += [(root, version) for version in _versions_in(file)]
    if not versions_found:
        # Each Insights archive has one, whose file omits the kind and name that its path states. Archives of different
        # releases have it at different paths; the first is taken.
        for below in ("", *sorted(os.listdir(folder))):
            for name in _INSIGHTS:
                file = os.path.join(folder, below, name)
                if os.path.isfile(file) and isinstance(gathered := document(file), dict):
                    versions_found.append((os.path.join(folder, below), gathered))
                    break
    if not versions_found:
        for file in _files_mentioning(folder, b"ClusterVersion"):
            versions_found += [(os.path.split(file)[0], version) for version in _versions_in(file)]
    # An archive is unpacked elsewhere; its places are named below what the user typed.
    named = [(os.path.normpath(os.path.join(path, os.path.relpath(at, folder))), obj) for at, obj in versions_found]
    cluster_read = Read(cluster=_newest(named, path))
    return with_alerts_below(folder, cluster_read, roots) if alerts else cluster_read


def with_alerts_below(folder: str, cluster_read: Read, roots: Iterable[str] = ()) -> Read:
    """Returns `cluster_read` with the alerts that a must-gather in `folder` has, in one of its `roots`."""
    for root in (*(roots or _roots(folder)), folder):
        file = next(filter(os.path.isfile, (os.path.join(root, name) for name in _ALERTS)), "")
        if file and cluster_read.alerts is None and not cluster_read.problem:
            cluster_read = _with_alerts(cluster_read, file)
    return cluster_read


@contextmanager
def _open_dump(path: str) -> Iterator[str]:
    """Yields the folder of a dump; one that is packed is unpacked until the block ends. Raises InputError."""
    if not os.path.exists(path):
        raise InputError(f"there is no {path}; give the folder of a must-gather, or of another dump")
    if os.path.isdir(path):
        with links_inside(path):
            yield path
        return
    if path.endswith(_SUFFIXES):
        yield path
        return
    from pathlib import Path

    from runup.dump import archive
    from runup.dump.dump_files import BadDump

    try:
        with archive.open_dump(Path(path)) as folder:
            yield str(folder)
    except BadDump as error:
        raise InputError(error.message) from error


def _roots(folder: str, depth: int = 0) -> Iterator[str]:
    """Yields the folders that hold a tree of `oc adm inspect`, sorted by name."""
    try:
        below = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return
    if _TREE in below or "namespaces" in below:
        yield folder
    elif depth < _DEPTH:
        for name in below:
            yield from _roots(os.path.join(folder, name), depth + 1)


def _files_mentioning(folder: str, word: bytes) -> Iterator[str]:
    """Yields the files of objects below `folder`, in order, that contain `word`. Raises InputError at a limit."""
    # Not os.walk, which calls itself for each level before Python 3.12.
    waiting, number = [(folder, 1)], 0
    while waiting:
        place, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise InputError(f"{folder} has more than {_MAX_DEPTH} folders in one another; give the folder of a dump")
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError:
            continue
        waiting += [(entry.path, depth + 1) for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]
        for entry in entries:
            if not entry.name.endswith(_SUFFIXES) or entry.is_dir():
                continue
            number += 1
            if number > _MAX_CANDIDATES:
                raise InputError(f"{folder} has more than {_MAX_CANDIDATES} files; give the folder of one dump")
            if word in _contents_of(entry.path):
                yield entry.path


def _contents_of(file: str) -> bytes:
    """Returns the content of a file, none of a link out of the dump. Raises InputError for one that is too large."""
    try:
        return read_limited(file)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return b""
        if error.errno != errno.EFBIG:
            raise
        raise InputError(f"{file}: {error.strerror}; give a dump without it, or of fewer namespaces") from error


def _files(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(_SUFFIXES)]


def _versions_in(file: str) -> list[JSON]:
    """Returns the ClusterVersions `version` in `file`; none if it is unreadable, as in every other reader of dumps."""
    return [
        obj
        for obj in _objects(file)
        if text(obj, "kind") == "ClusterVersion" and text(mapping(obj, "metadata"), "name") in ("", "version")
    ]


def _objects(file: str) -> Iterator[JSON]:
    """Yields the objects in a YAML file, also those of lists; none if it cannot be read as YAML."""
    if not os.path.isfile(file):
        return
    from kubekit.lang import yaml as kyaml

    try:
        documents = kyaml.load_all(_contents_of(file), name=file)
    except kyaml.YamlError:
        return
    for yaml_document in documents:
        for item in _items_of(yaml_document):
            # The items of a list do not repeat the list's kind: `ConfigMapList` has items without `kind`.
            if isinstance(yaml_document, dict) and text(yaml_document, "kind").endswith("List"):
                item.setdefault("kind", text(yaml_document, "kind").removesuffix("List"))
            yield item


def _items_of(document: Any) -> list[JSON]:
    if not isinstance(document, dict):
        return []
    return mappings(document, "items") if isinstance(document.get("items"), list) else [document]


def _newest(versions_found: list[Found], path: str) -> JSON:
    """Returns the newest ClusterVersion. Raises InputError if it does not exist, or if they are of several clusters."""
    if not versions_found:
        raise InputError(f"the dump {path} has no ClusterVersion, so its updates are not known")
    if len(versions_found) > 1:
        from runup.dump.clusters import Sighting, why_several

        if why := why_several(path, [Sighting(place, obj) for place, obj in versions_found]):
            raise InputError(why)

    def resource_version(obj: JSON) -> int:
        version = text(mapping(obj, "metadata"), "resourceVersion")
        return int(version) if version.isdecimal() else 0

    # A dump may hold one object twice, as gathered at different times.
    return max((obj for _place, obj in versions_found), key=resource_version)


def _config_maps(roots: list[str], folder: str) -> Iterator[JSON]:
    """Yields the ConfigMaps of the operator's namespace in the dump."""
    from runup.process.names import operator_namespace

    namespace = operator_namespace()
    files = []
    for root in roots:
        core = os.path.join(root, "namespaces", namespace, "core")
        files += [*_files(os.path.join(core, "configmaps")), os.path.join(core, "configmaps.yaml")]
    for file in files or (() if roots else _files_mentioning(folder, b"ConfigMap")):
        for obj in _objects(file):
            # A cluster has ConfigMaps of the same names in other namespaces.
            if text(obj, "kind") == "ConfigMap" and text(mapping(obj, "metadata"), "namespace") == namespace:
                yield obj


def _with_alerts(cluster_read: Read, path: str) -> Read:
    """Returns `cluster_read` with the alerts in the file at `path`, or with the problem that `oc` would report."""
    try:
        content = read_limited(path)
    except FileNotFoundError:
        content = b""
    if not content:
        return msgspec.structs.replace(cluster_read, alerts_path=path)
    import json

    try:
        return msgspec.structs.replace(cluster_read, alerts=json.loads(content), alerts_path=path)
    except (ValueError, RecursionError) as error:
        # The text of a JSON error as Go words it, which `oc` prints.
        position, message = getattr(error, "pos", -1), getattr(error, "msg", "")
        document = getattr(error, "doc", "")
        if message.startswith("Unterminated string") or (message and not document[position:].strip()):
            error_as_go_says = "unexpected end of JSON input"
        elif message in _GO_WORDS:
            error_as_go_says = f"invalid character '{document[position:].strip()[0]}' {_GO_WORDS[message]}"
        else:
            error_as_go_says = str(error)
        return msgspec.structs.replace(cluster_read, problem=f"parsing alerts: {error_as_go_says}", alerts_path=path)


# Python's messages for invalid JSON, and Go's, which oc prints.
_GO_WORDS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}


def document(path: str) -> Any:
    """Returns the one document of the file. Raises InputError, and OSError for a file that cannot be read."""
    from kubekit.lang import yaml as kyaml

    try:
        return kyaml.load(read_limited(path), name=path)
    except FileNotFoundError as error:
        raise InputError(f"open {path}: {NO_FILE}") from error
    except kyaml.YamlError as error:
        raise InputError(str(error)) from error
