"""Reads releases for `runup release info` and `manifests`, and formats their output."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from kubekit.lang.text import one_line
from runup.cli.render import table
from runup.cli.render.screen import PIPE, Screen, join_parts
from runup.cli.render.table import draw_table, wrap_text
from runup.cli.render.text import machine
from runup.release.decide.inclusion import Filters
from runup.release.decide.listing import Row, filters_data, likely_mistakes, notes, rows
from runup.release.decide.payload import Payload


def info_data(payload: Payload, digest: str) -> dict[str, Any]:
    """Returns the content of `info` by the name of each line."""
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
        "warnings": [*metadata.problems, *payload.warnings, *likely_mistakes(payload)],
    }


def as_text(lines: dict[str, Any]) -> str:
    """Returns one line for each entry, with the images below their number."""
    text = []
    for key, value in lines.items():
        text.append(f"{key + ':':<14}{one_line(_value_text(value))}".rstrip())
        if isinstance(value, dict):
            text += [one_line(f"  {name}  {pullspec}") for name, pullspec in value.items()]
    return "\n".join(text)


def _value_text(value: Any) -> str:
    """Returns a value of the release's metadata as one cell: a truth as yes or no, a mapping as its size."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return str(len(value))
    return ", ".join(value) if isinstance(value, list) else str(value)


@dataclass(frozen=True, slots=True)
class Listed:
    """The content of `manifests`; `notes` has the parts of the description that the release does not know."""

    version: str
    digest: str
    filters: Filters
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def list_manifests(payload: Payload, digest: str, filters: Filters) -> Listed:
    """Returns all manifests of a release, included or not in a cluster as `filters` describe it."""
    return Listed(payload.version, digest, filters, rows(payload, filters), notes(payload, filters))


def as_listing(listing: Listed, form: str, screen: Screen = PIPE) -> str:
    """Returns the text of a form; if it is longer than the terminal, a summary of counts comes first."""
    if form in ("json", "yaml"):
        return machine(_document(listing), form)
    if form == "name":
        return "".join(f"{one_line(row.object)}\n" for row in listing.rows if row.included)
    text = draw_table(_manifest_table(listing.rows), screen)
    longer = screen.height is not None and text.count("\n") >= screen.height
    return join_parts(wrap_text(_summary_text(listing), screen), "\n", text) if longer else text


def _summary_text(listing: Listed) -> str:
    counts = Counter(row.state for row in listing.rows)
    counted_states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return f"Release {listing.version}: {len(listing.rows)} manifests and checks, {counted_states}."


def _document(listing: Listed) -> dict[str, Any]:
    """Returns the list of manifests for `-o json`."""
    objects = [asdict(row) for row in listing.rows if row.object]
    skipped = [{"file": row.file, "state": row.state, "reason": row.reason} for row in listing.rows if not row.object]
    return {
        "version": listing.version,
        "digest": listing.digest,
        "filters": filters_data(listing.filters),
        "manifests": objects,
        "skipped": skipped,
        "notes": list(listing.notes),
    }


def _manifest_table(rows: tuple[Row, ...]) -> table.Table:
    """Returns the table of manifests: in or out of the cluster, and why."""
    columns = (
        table.Column("", styles={"in": "green", "out": "yellow"}),
        table.Column("MANIFEST", folds=True),
        table.Column("FILE"),
        table.Column("REASON", flows=True),
    )
    lines = [table.Row((row.state, row.object, row.file, row.reason)) for row in rows]
    return table.Table(columns, lines, gap=2, blank="")
