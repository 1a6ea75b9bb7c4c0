"""Counts a graph's releases, edges, edges with risks, and risks by name, in all and for each channel. Pure."""

from __future__ import annotations

from typing import Any

from runup.advice.control.graph_source import Source, channels
from runup.advice.decide.build_graph import graph_of_channel
from runup.cli.render.text import align_columns

JSON = dict[str, Any]


def summary(source: Source) -> JSON:
    """Returns the numbers of the whole graph, and of each channel's part."""
    parts = {name: _count_parts(graph_of_channel(source.document, name)) for name in channels(source.document)}
    return {
        **_count_parts(source.document),
        "blockedEdges": len(source.removed),
        "channels": parts,
        "notes": [*source.notes],
    }


def _count_parts(document: JSON) -> JSON:
    """Returns the numbers of the graph's nodes and edges, and the names of its risks."""
    groups = document["conditionalEdges"]
    return {
        "nodes": len(document["nodes"]),
        "edges": len(document["edges"]),
        "conditionalEdges": sum(len(group["edges"]) for group in groups),
        "risks": sorted({risk["name"] for group in groups for risk in group["risks"]}),
    }


def as_text(summary_data: JSON) -> str:
    """Returns one line per channel, the whole graph last."""
    rows: list[tuple[str, ...]] = [("CHANNEL", "RELEASES", "UPDATES", "WITH RISKS", "RISKS")]
    rows += [_table_row(name, part) for name, part in summary_data["channels"].items()]
    whole = _table_row("all", summary_data)
    return f"{align_columns([*rows, whole])}\n{summary_data['blockedEdges']} updates are blocked altogether.\n"


def _table_row(name: str, part: JSON) -> tuple[str, ...]:
    counts = (part["nodes"], part["edges"], part["conditionalEdges"], len(part["risks"]))
    return name, *map(str, counts)
