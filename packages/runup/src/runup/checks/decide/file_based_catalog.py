"""Parses a file-based catalog of operators: the files of a catalog image in, packages with their channels out. Pure.

Format: operator-framework/operator-registry, alpha/declcfg: below /configs, files of JSON objects one after the other
or of YAML documents, each with a `schema` and a `package`. Only the schemas that are named here are read.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubekit.lang import yaml as kyaml

ROOT = "configs"
PACKAGE = "olm.package"
MAX_YAML_BYTES = 4 * 1024 * 1024
"""Some seconds of parsing; catalogs that are larger are JSON."""
NO_PATTERNS = b"#"
"""The part that is kept of a `.indexignore` that leaves out nothing."""
_IGNORE_FILE = ".indexignore"
_YAML_ENDINGS = (".yaml", ".yml")
_ENDINGS = (".json", *_YAML_ENDINGS)
# A line that does not begin with "#" and has more than space in it: whoever reads it trims the others only.
_PATTERN = re.compile(rb"^(?!#)[^\S\n]*\S", re.MULTILINE)
_KEPT = (PACKAGE, "olm.channel", "olm.deprecations")


class BadCatalog(ValueError):
    """Error raised if a file of the catalog cannot be read; the message names it."""


class Entry(msgspec.Struct, frozen=True):
    """A version in a channel and the versions that it can follow. `skip_range` is a range of semver."""

    name: str
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: str = ""


class Package(msgspec.Struct, frozen=True):
    """An operator in a catalog: its channels by name.

    `deprecated` maps `package`, `channel NAME` and `bundle NAME` to the message of their deprecation.
    """

    name: str
    default_channel: str = ""
    channels: Mapping[str, tuple[Entry, ...]] = msgspec.field(default_factory=dict)
    deprecated: Mapping[str, str] = msgspec.field(default_factory=dict)


def folder_of(path: str) -> str:
    """Returns the folder below `ROOT` that the file `path` is in, or an empty string for a file next to the folders.

    An image that keeps each package in a separate folder, as those of OpenShift do, names it after the package.
    """
    folder, inside, _ = path.removeprefix(f"{ROOT}/").partition("/")
    return folder if inside else ""


def has_known_ending(path: str) -> bool:
    """Returns whether the file `path` can be read here. OLM reads a file whatever its ending."""
    return path.endswith(_ENDINGS)


def is_ignore_file(path: str) -> bool:
    """Returns whether `path` is a `.indexignore`, whose patterns leave out files of its folder and of those below it.

    It is the one file that never has a part of the catalog.
    """
    return posixpath.basename(path) == _IGNORE_FILE


def keep_used_part(path: str, data: bytes) -> bytes:
    """Returns the file `path` as JSON without unused schemas: bundles, which are most of it. Raises BadCatalog.

    Of a `.indexignore` it returns `NO_PATTERNS`, or something else if there are patterns in it.
    """
    if is_ignore_file(path):
        return b"*" if _PATTERN.search(data) else NO_PATTERNS
    return b"\n".join(msgspec.json.encode(blob) for blob in _parts(path, data) if blob.get("schema") in _KEPT)


def parse(files: Mapping[str, bytes]) -> dict[str, Package]:
    """Returns the packages in `files` (path -> bytes) by name. Raises BadCatalog."""
    parts = [blob for path in sorted(files) for blob in _parts(path, files[path]) if blob.get("schema") in _KEPT]
    names = dict.fromkeys(_text(part, "name") for part in parts if part.get("schema") == PACKAGE)
    return {name: _package(name, [part for part in parts if _owner(part) == name]) for name in names if name}


def packages_by_folder(files: Mapping[str, bytes]) -> dict[str, frozenset[str]]:
    """Returns the folders of `files` (path -> bytes), each with the packages that its files name. Raises BadCatalog."""
    names: dict[str, set[str]] = {folder_of(path): set() for path in files}
    for path, data in files.items():
        names[folder_of(path)] |= {_owner(part) for part in _parts(path, data) if part.get("schema") in _KEPT}
    return {folder: frozenset(found) for folder, found in names.items()}


# A package's own object has its name in `name`; all others have it in `package`.
def _owner(blob: dict[str, Any]) -> str:
    """Returns the name of the package that a part belongs to."""
    return _text(blob, "name") if blob.get("schema") == PACKAGE else _text(blob, "package")


def _package(name: str, parts: list[dict[str, Any]]) -> Package:
    """Returns a package from the parts of a file-based catalog that name it."""
    default = ""
    channels: dict[str, tuple[Entry, ...]] = {}
    deprecated: dict[str, str] = {}
    for blob in parts:
        listed = blob.get("entries")
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        match blob.get("schema"):
            case "olm.package":
                default = _text(blob, "defaultChannel")
            case "olm.channel":
                versions = []
                for entry in entries:
                    skips = entry.get("skips")
                    skipped = tuple(skip for skip in skips if isinstance(skip, str)) if isinstance(skips, list) else ()
                    versions.append(
                        Entry(_text(entry, "name"), _text(entry, "replaces"), skipped, _text(entry, "skipRange"))
                    )
                channels[_text(blob, "name")] = tuple(versions)
            case "olm.deprecations":
                for entry in entries:
                    # What is deprecated: `package`, `channel NAME` or `bundle NAME`.
                    if isinstance(reference := entry.get("reference"), dict):
                        kind = _text(reference, "schema").removeprefix("olm.")
                        deprecated[f"{kind} {_text(reference, 'name')}".strip()] = _text(entry, "message")
    return Package(name, default, channels, deprecated)


def _parts(path: str, data: bytes) -> Iterator[dict[str, Any]]:
    """Yields the objects in one JSON or YAML file. Raises BadCatalog, also for a file of another ending.

    OLM would read that, too: taken for a file without objects, it would make packages absent that are in it.
    """
    if path.endswith(".json"):
        yield from _objects(path, data)
    elif path.endswith(_YAML_ENDINGS):
        if len(data) > MAX_YAML_BYTES:
            raise BadCatalog(f"{path}: of YAML, {MAX_YAML_BYTES} bytes are read at most, and it has {len(data)}")
        try:
            documents = kyaml.load_all(data, name=path)
        except kyaml.YamlError as error:
            raise BadCatalog(str(error)) from error
        yield from (document for document in documents if isinstance(document, dict))
    else:
        raise BadCatalog(f"{path}: its ending is not one of {', '.join(_ENDINGS)}")


def _objects(path: str, data: bytes) -> Iterator[dict[str, Any]]:
    """Yields JSON objects that follow one another, which no library for one document reads. Raises BadCatalog."""
    decoder, position = json.JSONDecoder(), 0
    try:
        text = data.decode()
        while position < len(text):
            if text[position].isspace():
                position += 1
                continue
            value, position = decoder.raw_decode(text, position)
            if isinstance(value, dict):
                yield value
    except (ValueError, RecursionError) as error:
        raise BadCatalog(f"{path}: {error}") from error


def _text(blob: dict[str, Any], key: str) -> str:
    """Returns a string field, or an empty string if the field is not a string."""
    value = blob.get(key)
    return value if isinstance(value, str) else ""
