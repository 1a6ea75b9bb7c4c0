"""What `runup release info` and `manifests` read, and the text that they print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runup.domain.release.listing import Row
from runup.domain.release.payload import FOLDERS, Payload, load_payload
from runup.oci.access import Access
from runup.oci.places import LayoutPlace, files_in, files_of, place_of


def load(image: str, access: Access) -> tuple[Payload, str]:
    """The payload of a folder, a layout or a pull spec, and its digest (empty for a folder).

    Raises OciError, and PayloadError for what is no release.
    """
    folder = Path(image)
    if folder.is_dir() and (folder / "oci-layout").is_file():
        files, digest = files_of(LayoutPlace(folder), FOLDERS, access)
    elif folder.is_dir() or image.startswith((".", "/")):
        files, digest = files_in(folder, FOLDERS), ""
    else:
        files, digest = files_of(place_of(image), FOLDERS, access)
    return load_payload(files, source=image), digest


def told(payload: Payload, digest: str) -> dict[str, Any]:
    """What `info` says of a release, by the name of each line."""
    metadata = payload.metadata
    return {
        "name": metadata.version,
        "digest": digest,
        "url": metadata.url,
        "architecture": metadata.architecture,
        "channels": list(metadata.channels),
        "previous": list(metadata.previous),
        "next": list(metadata.next),
        "images": dict(payload.image_references.images),
        "manifests": len(payload.manifests),
        "checks": [str(check.identity) for check in payload.checks],
        "verifies": payload.verification is not None,
        "warnings": [*metadata.problems, *payload.warnings],
    }


def as_text(lines: dict[str, Any]) -> str:
    """One line each; the images below their number."""
    text = []
    for key, value in lines.items():
        text.append(f"{key + ':':<14}{_shown(value)}".rstrip())
        if isinstance(value, dict):
            text += [f"  {name}  {pullspec}" for name, pullspec in value.items()]
    return "\n".join(text)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return str(len(value))
    return ", ".join(value) if isinstance(value, list) else str(value)


def as_table(rows: Sequence[Row], *, wide: bool) -> str:
    """Aligned text."""
    head = ("", "MANIFEST", "FILE", "REASON")
    whole = [head, *(("in" if row.included else "out", row.object, row.file, row.reason) for row in rows)]
    lines = [line if wide else (*line[:2], line[3]) for line in whole]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
