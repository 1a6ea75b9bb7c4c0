"""Reads manifests from files, standard input and the records of releases that Helm stores in a cluster."""

from __future__ import annotations

import base64
import binascii
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubekit.api.scheme import Resource
from kubekit.lang import yaml as kyaml
from kubekit.lang.files import links_inside, read_limited
from kubekit.lang.yaml_events import item_lines
from runup.checks.decide.stored_manifests import Manifest, Manifests

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
# The most that a file, or a release as Helm packed it, may unpack to.
MAX_BYTES = 32 << 20
# What every object of Kubernetes has, in YAML or JSON.
_OBJECT = re.compile(r"""(?m)^\s*[{,]?\s*["']?(apiVersion|kind)["']?\s*:""")
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
# What Helm labels the record of a release with (helm, pkg/storage/driver), and the digits of a revision at most.
_STATES = ("deployed", "failed")
RELEASES = f"owner=helm,status in ({','.join(_STATES)})"
_DIGITS = 10


def read_manifests(typed: Iterable[str]) -> Manifests:
    """Returns the manifests in files and folders; `-` is standard input."""
    objects: list[Manifest] = []
    problems: list[str] = []
    texts = 0
    for name in typed:
        if name == STDIN:
            _read("standard input", sys.stdin.read(), objects, problems)
            texts += 1
            continue
        path = Path(name)
        files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES) if path.is_dir() else [path]
        if not files:
            problems.append(f"{name} holds no YAML or JSON file")
        for file in files:
            try:
                with links_inside(path):
                    text = read_limited(file, MAX_BYTES).decode("utf-8")
            except (OSError, ValueError) as error:
                problems.append(f"{file} ({error})")
            else:
                _read(str(file), text, objects, problems)
                texts += 1
    return Manifests(tuple(objects), tuple(problems), texts)


def _read(source: str, text: str, objects: list[Manifest], problems: list[str]) -> None:
    """Adds the objects of a text, each with the line on which its document begins.

    A document that cannot be parsed is a problem only if it may be an object: the settings of another tool are not.
    """
    chunks = [(1, text)] if source.endswith(".json") else list(_documents(text))
    for line, chunk in chunks:
        try:
            document = kyaml.load(chunk.encode(), name=source)
        except (kyaml.YamlError, ValueError, RecursionError) as error:
            if not _OBJECT.search(chunk):
                continue
            template = "it is a template" if "{{" in chunk else str(error).splitlines()[0]
            problems.append(f"{source}:{line} ({template})")
            continue
        objects += _manifests(document, source, line, chunk)


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Yields each document of a YAML text, with the number of its first line that is no comment."""
    lines: list[str] = []
    first_line = 1
    for number, line in enumerate((*text.splitlines(), "---"), 1):
        if line.startswith("---"):
            if any(line.strip() and not line.lstrip().startswith("#") for line in lines):
                skipped = next(
                    number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")
                )
                yield first_line + skipped, "\n".join(lines)
            lines, first_line = [], number + 1
        else:
            lines.append(line)


def _manifests(document: Any, source: str, line: int, text: str = "") -> Iterator[Manifest]:
    """Yields the manifests in a document, also those of lists.

    `line` is the line of `source` on which the document begins. If its `text` is given, the items of a list have lines
    of their own.
    """
    if not isinstance(document, Mapping):
        return
    kind, items = _text(document.get("kind")), document.get("items")
    if kind.endswith("List") and isinstance(items, list):
        lines = item_lines(text) if text else []
        for number, item in enumerate(items):
            yield from _manifests(item, source, line + lines[number] - 1 if len(lines) == len(items) else line)
    elif kind and (api_version := _text(document.get("apiVersion"))):
        metadata = _mapping(document.get("metadata"))
        name = _text(metadata.get("name")) or _text(metadata.get("generateName"))
        yield Manifest(
            api_version=api_version,
            kind=kind,
            namespace=_text(metadata.get("namespace")),
            name=name,
            place=f"{source}:{line}",
            content=document,
        )


def _mapping(value: Any) -> Mapping[Any, Any]:
    """Returns `value` if it is a mapping, else an empty one: what others wrote may be anything."""
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    """Returns a scalar as text; an empty string for what is none."""
    return str(value) if isinstance(value, str | int | float) else ""


def helm_manifests_of_dump(objects: Iterable[Mapping[str, Any]]) -> Manifests:
    """Returns the manifests of the releases whose records are among the objects of a dump."""
    records = HelmRecords()
    for obj in objects:
        resource = {"Secret": SECRETS, "ConfigMap": CONFIG_MAPS}.get(str(obj.get("kind")))
        if resource is not None and obj.get("apiVersion") == "v1" and _labels(obj).get("owner") == "helm":
            records.add(obj, resource)
    return records.manifests()


class HelmRecords:
    """The record of each release that the next `helm upgrade` starts from; `forbidden` are lists without a right.

    That is the last one that is deployed or, without one, the last one if it failed (helm, pkg/action/upgrade.go,
    prepareUpgrade, and pkg/storage/storage.go, Deployed).
    """

    def __init__(self) -> None:
        self._chosen: dict[tuple[str, str, str], tuple[tuple[bool, int], Mapping[str, Any], Resource]] = {}
        self.problems: list[str] = []
        self.forbidden: list[str] = []

    def add(self, item: Mapping[str, Any], resource: Resource) -> None:
        """Keeps the record if it comes before the one that is known about its release."""
        labels, metadata = _labels(item), _mapping(item.get("metadata"))
        status, revision = labels.get("status"), labels.get("version", "")
        if status not in _STATES:
            return
        key = (resource.kind, _text(metadata.get("namespace")), labels.get("name") or _text(metadata.get("name")))
        rank = (status == "deployed", int(revision) if revision.isdecimal() and len(revision) < _DIGITS else 0)
        if key not in self._chosen or rank > self._chosen[key][0]:
            self._chosen[key] = (rank, item, resource)

    def manifests(self) -> Manifests:
        """Returns the manifests of the chosen records."""
        objects: list[Manifest] = []
        for _, item, resource in self._chosen.values():
            _release(item, resource, objects, self.problems)
        return Manifests(tuple(objects), tuple(self.problems), len(self._chosen), tuple(self.forbidden))


def _labels(item: Mapping[str, Any]) -> dict[str, str]:
    labels = _mapping(_mapping(item.get("metadata")).get("labels"))
    return {key: value for key, value in labels.items() if isinstance(value, str)}


def _release(item: Mapping[str, Any], resource: Resource, objects: list[Manifest], problems: list[str]) -> None:
    """Adds the objects of one release's record, or why it cannot be read; nothing else of it is kept."""
    metadata = item.get("metadata") or {}
    record = f"{resource.kind} {metadata.get('namespace')}/{metadata.get('name')}"
    try:
        release = unpack_release(str((item.get("data") or {}).get("release") or ""), twice=resource is SECRETS)
    except ValueError as error:
        problems.append(f"{record} ({error})")
        return
    chart = _mapping(_mapping(release.get("chart")).get("metadata"))
    namespace = _text(release.get("namespace")) or metadata.get("namespace")
    source = f"release {namespace}/{_text(release.get('name')) or metadata.get('name')} of chart "
    source += f"{_text(chart.get('name')) or '?'}-{_text(chart.get('version')) or '?'}"
    manifests: list[Manifest] = []
    _read(source, _text(release.get("manifest")), manifests, problems)
    objects += [replace(manifest, place=source, content=None) for manifest in manifests]


def unpack_release(text: str, *, twice: bool) -> dict[str, Any]:
    """Returns a release as Helm keeps it: JSON, packed by gzip, as base64. A Secret encodes it `twice`.

    Raises ValueError. Source: helm, pkg/storage/driver/util.go (decodeRelease).
    """
    try:
        data = base64.b64decode(text, validate=True)
        data = base64.b64decode(data, validate=True) if twice else data
        if data[:3] == b"\x1f\x8b\x08":
            unpacker = zlib.decompressobj(wbits=31)
            data = unpacker.decompress(data, MAX_BYTES)
            if unpacker.unconsumed_tail:
                raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
        release = json.loads(data)
    except (binascii.Error, zlib.error, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not a release of Helm: {error}") from error
    if not isinstance(release, dict):
        raise ValueError("it is not a release of Helm")
    return release
