"""Reads the input of the graph commands: a folder of graph data with releases, or a graph that was built before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.api import codec
from kubekit.error_types import InputError, Terminal
from kubekit.lang import yaml as kyaml
from kubekit.lang.files import read_limited
from runup.advice.decide import build_graph, graph

if TYPE_CHECKING:
    from kubekit.oci.access import Access

JSON = dict[str, Any]
_ASSUMED = (
    "no releases were given, so every release is assumed to update the earlier ones of its minor version and of the "
    "one before, and images are made up; give --releases or --image"
)


@dataclass(frozen=True, slots=True)
class Source:
    """A graph as JSON, the removed updates with the files that remove them, and warnings for the reader."""

    document: JSON
    removed: Mapping[build_graph.Hop, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def own_access() -> Access:
    """Returns access to registries with the credentials of this user. Raises OciError."""
    from kubekit.oci import credentials
    from kubekit.oci.access import Access

    return Access(credentials=credentials.load_credentials(""))


def load(
    source: str,
    releases: str | None,
    images: Sequence[str],
    architecture: str,
    access: Callable[[], Access] = own_access,
) -> Source:
    """Returns the graph of `source`; `access` gives access to the registries of `images`. Raises InputError."""
    path = Path(source)
    if path.is_file():
        if releases or images:
            raise InputError("a graph that was built has its releases; --releases and --image are for graph data")
        body = read_limited(path)
        try:
            graph.parse_graph(body)
        except graph.BadGraph as error:
            raise InputError(f"{path}: {error.message}") from error
        try:
            additions = msgspec.json.decode(body, type=_Ours)
            # A null is an absent member, as for the graph above.
            decoded = codec.without_nulls(msgspec.json.decode(body))
        # Members that are not part of a graph are skipped by `parse_graph`: invalid UTF-8, or nested too deep.
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: {error}; build it again with `runup graph build`") from error
        removed = {(edge.old, edge.new): edge.files for edge in additions.blocked}
        document = {key: value for key, value in decoded.items() if key not in ("blockedEdges", "notes")}
        whole = {"version": 1, "nodes": [], "edges": [], "conditionalEdges": [], **document}
        if not whole["nodes"]:
            # Clusters that ask for an empty graph have no update, which looks as if they were up to date.
            raise InputError(f"{path}: holds no release; give a graph that `runup graph build` made")
        for node in whole["nodes"]:
            node.setdefault("metadata", {})
        return Source(whole, removed, additions.notes)
    if not path.is_dir():
        raise InputError(f"there is no {source}; give a folder of graph data, or a graph that was built")
    known_releases = [*_read_release_list(releases), *_read_images(images, access)] if releases or images else None
    try:
        schema = path / "version"
        if not schema.is_file():
            raise InputError(f"{path} has no file `version`, so it is not a folder of graph data")
        raw = path / "raw" / "metadata.json"
        built = build_graph.build(
            build_graph.read(
                schema.read_text(),
                _documents(path / "channels"),
                _documents(path / "blocked-edges"),
                _parse_yaml_file(raw) if raw.is_file() else {},
            ),
            known_releases,
            architecture,
        )
    except Terminal as error:
        raise InputError(f"{source}: {error.message}") from error
    notes = (*built.notes, _ASSUMED) if built.assumed else built.notes
    return Source(built.document, built.removed, notes)


def write(source: Source, file: str) -> None:
    """Writes the graph, as a whole or not at all. It includes the removed updates, which clients ignore."""
    blocked = [{"from": old, "to": new, "files": list(files)} for (old, new), files in source.removed.items()]
    body = msgspec.json.encode({**source.document, "blockedEdges": blocked, "notes": list(source.notes)})
    # Written next to the target and renamed, so that a reader never sees half a graph.
    temporary = Path(f"{file}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(body)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def channels(document: JSON) -> list[str]:
    """Returns every channel of a graph."""
    return sorted({channel for node in document["nodes"] for channel in build_graph.channels_of(node)})


def nearest_hint(name: str, known_names: Iterable[str]) -> str:
    """Returns a hint with the names that were probably meant, or an empty string."""
    from difflib import get_close_matches

    matches = get_close_matches(name, list(known_names), n=3, cutoff=0.6)
    return f"; nearest: {', '.join(matches)}" if matches else ""


class _Blocked(msgspec.Struct, frozen=True):
    old: str = msgspec.field(name="from")
    new: str = msgspec.field(name="to")
    files: tuple[str, ...] = ()


class _Ours(msgspec.Struct, frozen=True):
    """The members that `write` adds to a graph."""

    blocked: tuple[_Blocked, ...] = msgspec.field(default=(), name="blockedEdges")
    notes: tuple[str, ...] = ()


def _documents(folder: Path) -> dict[str, Any]:
    return {f"{folder.name}/{file.name}": _parse_yaml_file(file) for file in sorted(folder.glob("*.y*ml"))}


def _parse_yaml_file(file: Path) -> Any:
    try:
        return kyaml.load(read_limited(file), name=str(file))
    except kyaml.YamlError as error:
        raise InputError(str(error)) from error


def _read_release_list(file: str | None) -> tuple[build_graph.KnownRelease, ...]:
    """Returns the releases in `file`, none without a file. Raises InputError."""
    if file is None:
        return ()
    try:
        return build_graph.read_releases(_parse_yaml_file(Path(file)))
    except Terminal as error:
        raise InputError(f"{file}: {error.message}") from error


def _read_images(images: Sequence[str], access: Callable[[], Access]) -> Iterable[build_graph.KnownRelease]:
    """Yields the releases in `images`, read from their registries. Raises InputError for the first that fails."""
    if not images:
        return
    from kubekit.oci.reference import Reference
    from kubekit.oci.registry_errors import OciError
    from runup.release.control import release_location
    from runup.release.decide.payload import PayloadError

    try:
        registry_access = access()
    except OciError as error:
        raise InputError(str(error)) from error
    for image in images:
        try:
            image_path = release_location.place_of_release(image)
            payload, digest = release_location.load(image, registry_access, keep_going=True)
        except (OciError, PayloadError) as error:
            raise InputError(f"{image}: {error}") from error
        if not isinstance(image_path, Reference):
            raise InputError(f"{image}: clusters cannot pull it from there; push it to a registry first")
        metadata = payload.metadata
        yield build_graph.KnownRelease(
            version=metadata.version,
            image=str(image_path.at(digest)),
            previous=metadata.previous,
            url=metadata.url,
            architecture=metadata.architecture,
        )
