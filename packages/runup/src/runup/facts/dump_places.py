"""Finds the file and the line of each object in a dump, for output forms that point a reader there."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from runup.dump import archive
from runup.dump import dump_objects as objects
from runup.dump.documents import identity
from runup.dump.dump_files import Layout, find
from runup.report.report import ReportedResource


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an object in a dump: the URI of its file, relative to the working directory, and the line."""

    uri: str
    line: int = 1


_CLUSTER = ReportedResource(group="config.openshift.io", kind="ClusterVersion", namespace="", name="version")


def find_places(dump: Path, wanted_resources: Collection[ReportedResource]) -> dict[str, Place]:
    """Returns the place of each object of the dump at `dump`, by its text; that of ClusterVersion is the dump's own.

    Objects in an archive are at the archive. Raises BadDump, as reading the dump does.
    """
    keys = {(item.group, item.kind, item.namespace, item.name): item.text for item in (*wanted_resources, _CLUSTER)}
    names = {item.name.encode() for item in (*wanted_resources, _CLUSTER)}
    with archive.open_dump(dump) as folder:
        if folder != dump:
            return {"": Place(uri_of(dump))}
        places_by_text = _find_places(find(folder), keys, names)
    cluster_place = places_by_text.get(_CLUSTER.text)
    return {**places_by_text, "": cluster_place} if cluster_place else places_by_text


def _find_places(
    layout: Layout, keys: dict[tuple[str, str, str, str], str], names: Collection[bytes]
) -> dict[str, Place]:
    """Returns the file and line of each object in `keys`; only files that contain one of `names` are decoded."""
    places_by_text: dict[str, Place] = {}
    for file in layout.files:
        try:
            data = file.read_bytes()
        except OSError:
            continue
        # Most files have none of the objects: only those that name one are decoded.
        if not any(name in data for name in names):
            continue
        contents = objects.read(file, layout.style).objects
        for obj in contents:
            if text := keys.get(identity(obj)):
                name = identity(obj)[3]
                line = _line_of_name(data.decode(errors="replace"), name) if len(contents) > 1 else 1
                places_by_text[text] = Place(uri_of(file), line)
    return places_by_text


def _line_of_name(text: str, name: str) -> int:
    """Returns the number of the first line that gives `name` as a name, in YAML or JSON; 1 if there is none."""
    name_pattern = re.compile(rf"(?:^|[\s{{,-])\"?name\"?:\s*[\"']?{re.escape(name)}[\"']?\s*(?:[,}}]|$)")
    return next((number for number, line in enumerate(text.splitlines(), 1) if name_pattern.search(line)), 1)


def uri_of(file: Path) -> str:
    """Returns the path relative to the working directory as a URI, or an absolute URI if it is elsewhere."""
    whole = file.resolve()
    try:
        return quote(whole.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return whole.as_uri()
