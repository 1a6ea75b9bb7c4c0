"""A manifest of a release: one object of a file, its identity, and the parser that collects every error.

A file's documents are read as Kubernetes reads YAML. Each document that cannot be read is a `ManifestError`, so that
one report names everything that is wrong with a release.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import msgspec

from kubekit.lang import yaml as kyaml

JSON = dict[str, Any]

# zlib's quickest: level 6 saves 0.3 MiB of 1.7 for a release of 900 manifests, and takes four times as long.
_LEVEL = 1

_FILE_NAME = re.compile(r"0000_([0-9]+)_([a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*?)_")


class ManifestError(ValueError):
    """A document of a release is not a manifest; the message names file and document."""


class Identity(msgspec.Struct, frozen=True, order=True):
    """The identity of an object: the API version is not part of it (docs/reference/upstream.md 1.2)."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class FileName(msgspec.Struct, frozen=True):
    """The parts of `0000_<run level>_<component>_...`; run levels are compared as text, and for equality only."""

    run_level: str
    component: str


class Manifest(msgspec.Struct, frozen=True):
    """An object of a release; `file` is its path in the image.

    `packed` is the object as compact JSON, compressed: a release is kept in memory for as long as the operator runs,
    and takes a thirtieth of what the decoded objects would. `annotations` are those of the object, with null as an
    empty string; None if they are not a map of strings: one value of another type makes all of them unreadable, as it
    does for Kubernetes' accessor.
    """

    file: str
    identity: Identity
    packed: bytes
    annotations: dict[str, str] | None

    @classmethod
    def of(cls, file: str, identity: Identity, obj: JSON) -> Manifest:
        """Returns the manifest of `obj`; raises ValueError for a value that JSON cannot represent."""
        try:
            data = msgspec.json.encode(obj, order="sorted")
        except (OverflowError, TypeError) as error:
            raise ValueError(f"cannot be written as JSON: {error}") from error
        # Go's encoding/json escapes these characters, and the version hash is computed over its bytes.
        for char in (b"&", b"<", b">"):
            data = data.replace(char, b"\\u00%02x" % ord(char))
        return cls(
            file,
            identity,
            zlib.compress(data.replace("\u2028".encode(), b"\\u2028").replace("\u2029".encode(), b"\\u2029"), _LEVEL),
            _valid_annotations(obj),
        )

    @property
    def raw(self) -> bytes:
        """The object as compact JSON, decompressed again: as Go writes it, keys sorted, `<`, `>` and `&` escaped."""
        return zlib.decompress(self.packed)

    @property
    def object(self) -> JSON:
        """The object as it would be applied, decoded again each time."""
        decoded: JSON = msgspec.json.decode(self.raw)
        return decoded


def _valid_annotations(obj: JSON) -> dict[str, str] | None:
    """Returns the annotations, None if they are not a mapping to texts."""
    metadata = obj.get("metadata")
    values = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(values, dict):
        return None
    if not all(value is None or isinstance(value, str) for value in values.values()):
        return None
    return {key: value or "" for key, value in values.items()}


def file_name(path: str) -> FileName | None:
    """Returns run level and component of a release file, None for a name outside the grammar (which is legal)."""
    match = _FILE_NAME.match(path.rpartition("/")[2])
    return FileName(match[1], match[2]) if match else None


def parse_manifests(file: str, data: bytes | str) -> tuple[list[Manifest], list[ManifestError]]:
    """Returns the manifests of a file in order, and its errors: not YAML, no kind, no name, an object twice."""
    try:
        documents = kyaml.load_all(data, name=file)
    except kyaml.YamlError as error:
        return [], [ManifestError(str(error))]
    manifests: list[Manifest] = []
    errors: list[ManifestError] = []
    identities: set[Identity] = set()
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue
        problem = _why_no_manifest(document)
        if problem:
            errors.append(ManifestError(f"{file}, document {number}: {problem}"))
            continue
        try:
            group, slash, _ = str(document.get("apiVersion") or "").partition("/")
            metadata = document["metadata"]
            manifest = Manifest.of(
                file,
                Identity(group if slash else "", document["kind"], metadata.get("namespace") or "", metadata["name"]),
                document,
            )
        except ValueError as error:
            errors.append(ManifestError(f"{file}, document {number}: {error}"))
            continue
        if manifest.identity in identities:
            errors.append(ManifestError(f"{file}, document {number}: {manifest.identity} is there twice"))
        identities.add(manifest.identity)
        manifests.append(manifest)
    return manifests, errors


def _why_no_manifest(document: Any) -> str:
    """Returns why a document is not a manifest, empty if it is one."""
    if not isinstance(document, dict):
        return f"is a {type(document).__name__}, not an object"
    if not isinstance(document.get("kind"), str) or not document["kind"]:
        return "has no kind"
    if not isinstance(document.get("apiVersion", ""), str):
        return "has an apiVersion that is not text"
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return f"{document['kind']} has no metadata.name"
    if not isinstance(metadata.get("namespace") or "", str):
        return f"{document['kind']} {metadata['name']} has a namespace that is not text"
    return ""
