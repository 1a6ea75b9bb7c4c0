"""A ClusterVersion out of files, for commands that ask no server: `--mock-clusterversion FILE` and `--dump DIR`.

The first is one file, as oc's own test cases have it. The second is a must-gather, a tree of `oc adm inspect`, an
Insights archive, or a folder of YAML. Of a dump only what these commands need is looked for and read: a must-gather
has gigabytes, and nobody waits for those to be told a list of versions.
"""

# pathlib takes longer to import than these commands take to read.
# ruff: noqa: PTH110, PTH112, PTH113, PTH118, PTH123, PTH208

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubekit.lang.files import contents
from kubekit.lang.value import Value
from runup.cli.errors import CommandError
from runup.cli.facts import JSON, mapping, mappings, text

MARK = "-cv.yaml"
_NO_FILE = "no such file or directory"
_SUFFIXES = (".yaml", ".yml", ".json")
_TREE = "cluster-scoped-resources"
# A must-gather has a folder for its own name and one for each image above the tree.
_DEPTH = 4
_VERSION = os.path.join("config.openshift.io", "clusterversions")
_INSIGHTS = ("config/version.json", "config/clusterversion.json", "config/clusterversion/version.json")
_ALERTS = ("monitoring/prometheus/alerts.json", "monitoring/prometheus/rules.json", "alerts.json")
_MAX_CANDIDATES = 100_000


class Read(Value):
    """What files say. `alerts` is the parsed answer of Prometheus, None without one; `problem`: why it is none.

    `config_maps` are the operator's own, by name, as far as the dump has them.
    """

    cluster: JSON
    alerts: Any = None
    problem: str = ""
    alerts_path: str = ""
    config_maps: tuple[JSON, ...] = ()


def mock(path: str) -> Read:
    """The case whose ClusterVersion is in `path`; its alerts are in the file beside it. Raises CommandError."""
    cluster = _first(_document(path), path)
    beside = path.replace(MARK, "-alerts.json", 1)
    return _with_alerts(Read(cluster), beside)


def dump(path: str, *, alerts: bool = False, config_maps: bool = False) -> Read:
    """The dump at `path`, packed or not; alerts and ConfigMaps where they are wanted. Raises CommandError."""
    if not os.path.exists(path) and os.path.isfile(path + MARK):
        return mock(path + MARK)
    with _opened(path) as folder:
        if not os.path.isdir(folder):
            return _of_file(folder)
        roots = list(_roots(folder))
        read = _of_cases(folder) if not roots else None
        if read is None:
            read = Read(_newest(_in_trees(roots) or _in_archive(folder) or _in_folder(folder), path))
            for root in (*roots, folder):
                if alerts and read.alerts is None and not read.problem:
                    read = _with_first_alerts(read, root)
        if not config_maps:
            return read
        return read.replaced(config_maps=tuple(_config_maps(roots, folder)))


@contextmanager
def _opened(path: str) -> Iterator[str]:
    if not os.path.exists(path):
        raise CommandError(f"there is no {path}; give the folder of a must-gather, or of another dump")
    if os.path.isdir(path) or path.endswith(_SUFFIXES):
        yield path
        return
    from pathlib import Path

    from runup.dump import archive
    from runup.dump.layout import BadDump

    try:
        with archive.opened(Path(path)) as folder:
            yield str(folder)
    except BadDump as error:
        raise CommandError(error.message) from error


def _roots(folder: str, depth: int = 0) -> Iterator[str]:
    """The folders with a tree of `oc adm inspect` in them, in order of their names."""
    try:
        below = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return
    if _TREE in below or "namespaces" in below:
        yield folder
    elif depth < _DEPTH:
        for name in below:
            yield from _roots(os.path.join(folder, name), depth + 1)


def _in_trees(roots: list[str]) -> list[JSON]:
    found = []
    for root in roots:
        place = os.path.join(root, _TREE, _VERSION)
        for file in (*_files(place), f"{place}.yaml", f"{place}.json"):
            found += _versions_in(file)
    return found


def _in_archive(folder: str) -> list[JSON]:
    """What the Insights operator gathered; its files leave out what the path says."""
    for below in ("", *sorted(os.listdir(folder))):
        for name in _INSIGHTS:
            file = os.path.join(folder, below, name)
            if os.path.isfile(file) and isinstance(document := _document(file), dict):
                return [document]
    return []


def _in_folder(folder: str) -> list[JSON]:
    return [found for file in _mentioning(folder, b"ClusterVersion") for found in _versions_in(file)]


def _mentioning(folder: str, word: bytes) -> Iterator[str]:
    """Files of objects below `folder` that have `word` in them."""
    for number, file in enumerate(_walk(folder), 1):
        if number > _MAX_CANDIDATES:
            raise CommandError(f"{folder} has more than {_MAX_CANDIDATES} files; give the folder of one dump")
        with open(file, "rb") as opened:
            if word in opened.read():
                yield file


def _walk(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                yield os.path.join(place, name)


def _files(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(_SUFFIXES)]


def _versions_in(file: str) -> list[JSON]:
    """The ClusterVersions `version` in `file`; one that cannot be read is none, as in every other reading of dumps."""
    return [obj for obj in _objects(file) if text(obj, "kind") == "ClusterVersion" and _name(obj) in ("", "version")]


def _objects(file: str) -> Iterator[JSON]:
    if not os.path.isfile(file):
        return
    from kubekit.lang import yaml as kyaml

    with open(file, "rb") as opened:
        content = opened.read()
    try:
        documents = kyaml.load_all(content, name=file)
    except kyaml.YamlError:
        return
    for document in documents:
        for item in _items(document):
            if isinstance(document, dict) and text(document, "kind").endswith("List"):
                item.setdefault("kind", text(document, "kind").removesuffix("List"))
            yield item


def _items(document: Any) -> list[JSON]:
    if not isinstance(document, dict):
        return []
    return mappings(document, "items") if isinstance(document.get("items"), list) else [document]


def _newest(found: list[JSON], path: str) -> JSON:
    if not found:
        raise CommandError(f"the dump {path} has no ClusterVersion, so nothing is known of its updates")
    return max(found, key=_resource_version)


def _resource_version(obj: JSON) -> int:
    version = text(mapping(obj, "metadata"), "resourceVersion")
    return int(version) if version.isdecimal() else 0


def _name(obj: JSON) -> str:
    return text(mapping(obj, "metadata"), "name")


def _of_file(path: str) -> Read:
    found = _versions_in(path)
    return mock(path) if MARK in path else Read(_newest(found, path))


def _of_cases(folder: str) -> Read | None:
    """The one case of a folder of oc's own; None where it is no such folder."""
    cases = [file for file in _files(folder) if file.endswith(MARK)]
    if len(cases) > 1:
        listed = "\n".join(f"  {case.removesuffix(MARK)}" for case in cases)
        raise CommandError(f"{folder} holds {len(cases)} clusters; give one of them:\n{listed}")
    return mock(cases[0]) if cases else None


def _config_maps(roots: list[str], folder: str) -> Iterator[JSON]:
    """The ConfigMaps of the operator's namespace."""
    from runup.cli.place import operator_namespace

    namespace = operator_namespace()
    files = []
    for root in roots:
        core = os.path.join(root, "namespaces", namespace, "core")
        files += [*_files(os.path.join(core, "configmaps")), os.path.join(core, "configmaps.yaml")]
    for file in files or (() if roots else _mentioning(folder, b"ConfigMap")):
        for obj in _objects(file):
            if text(obj, "kind") == "ConfigMap" and text(mapping(obj, "metadata"), "namespace") == namespace:
                yield obj


def _with_first_alerts(read: Read, root: str) -> Read:
    for name in _ALERTS:
        path = os.path.join(root, name)
        if os.path.isfile(path):
            return _with_alerts(read, path)
    return read


def _with_alerts(read: Read, path: str) -> Read:
    try:
        with open(path, "rb") as opened:
            content = opened.read()
    except FileNotFoundError:
        content = b""
    if not content:
        return read.replaced(alerts_path=path)
    import json

    try:
        return read.replaced(alerts=json.loads(content), alerts_path=path)
    except (ValueError, RecursionError) as error:
        return read.replaced(problem=f"parsing alerts: {_go_words(error)}", alerts_path=path)


# Python's words for what is wrong with JSON, and Go's.
_GO_WORDS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}


def _go_words(error: Exception) -> str:
    where, said = getattr(error, "pos", -1), getattr(error, "msg", "")
    document = getattr(error, "doc", "")
    if said.startswith("Unterminated string") or (said and not document[where:].strip()):
        return "unexpected end of JSON input"
    if said in _GO_WORDS:
        return f"invalid character '{document[where:].strip()[0]}' {_GO_WORDS[said]}"
    return str(error)


def _document(path: str) -> Any:
    from kubekit.lang import yaml as kyaml

    try:
        return kyaml.load(contents(path), name=path)
    except FileNotFoundError as error:
        raise CommandError(f"open {path}: {_NO_FILE}") from error
    except kyaml.YamlError as error:
        raise CommandError(str(error)) from error


def _first(document: Any, path: str) -> JSON:
    found = _items(document)
    if not found:
        raise CommandError(f"{path} holds no ClusterVersion")
    if (kind := text(found[0], "kind")) not in ("", "ClusterVersion"):
        raise CommandError(f"{path} holds no ClusterVersion but a {kind}")
    return found[0]
