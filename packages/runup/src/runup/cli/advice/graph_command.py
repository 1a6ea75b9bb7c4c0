"""The command group `runup graph`, which builds an update service's graph from graph data, serves it, and shows it."""

from __future__ import annotations

import sys
from typing import Any

import click

from runup.advice.control import graph_server
from runup.advice.control import graph_source as sources
from runup.advice.control.graph_source import Source, channels, nearest_hint
from runup.advice.decide.build_graph import graph_of_channel
from runup.advice.decide.update_paths import ways
from runup.cli import static_completion
from runup.cli.advice.graph_drawing import render_graph
from runup.cli.errors import CommandError
from runup.cli.lazy import Group
from runup.cli.options import version_option, with_options
from runup.cli.release.shared import access, registry_options
from runup.cli.render.text import align_columns, machine

JSON = dict[str, Any]
_SOURCE = (
    click.argument("source", metavar="DIR|FILE"),
    click.option("--releases", metavar="FILE", shell_complete=static_completion.files, help="A JSON list of releases."),
    click.option("--image", "images", multiple=True, metavar="IMAGE", help="A release image; may repeat."),
    click.option("--arch", default="amd64", metavar="NAME", help="The architecture, by its Go name (default amd64)."),
    registry_options,
)


@click.group("graph", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def graph() -> None:
    """Make, serve and look into the graph of an update service.

    \b
      runup graph build graph-data/ --releases releases.json --to graph.json
      runup graph show graph.json --from 4.14.20 --channel stable-4.16
    """


@graph.command()
@with_options(_SOURCE)
@click.option("--to", "file", metavar="FILE", help="Where to write the graph; without it, only what it comes to.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
def build(
    source: str,
    releases: str | None,
    images: tuple[str, ...],
    arch: str,
    file: str | None,
    output: str | None,
    **registry: Any,
) -> None:
    """Build a graph from a folder of graph data, and print a summary.

    \b
      runup graph build graph-data/ --releases releases.json --to graph.json
      runup graph build graph-data/ -o json
    """
    loaded = sources.load(source, releases, images=images, architecture=arch, access=lambda: access(**registry))
    if file is not None:
        sources.write(loaded, file)
    numbers = summary(loaded)
    if output:
        sys.stdout.write(machine(numbers, output))
    else:
        sys.stdout.write(summary_text(numbers))
    _say_notes(loaded)


@graph.command()
@with_options(_SOURCE)
@click.option("--listen", default="127.0.0.1:8080", metavar="HOST:PORT", help="Where to serve (127.0.0.1:8080).")
def serve(source: str, releases: str | None, images: tuple[str, ...], arch: str, listen: str, **registry: Any) -> None:
    """Serve a graph as an update service does; the address is spec.upstream of ClusterVersion. Ctrl-C ends it.

    \b
      runup graph serve graph.json
      runup graph serve graph-data/ --releases releases.json --listen 0.0.0.0:8080
    """
    host, port = graph_server.parse_listen_address(listen)
    loaded = sources.load(source, releases, images=images, architecture=arch, access=lambda: access(**registry))
    _say_notes(loaded)
    graph_server.serve(loaded, host, port, arch)


@graph.command()
@with_options(_SOURCE)
@version_option("--from", "origin", required=True, help="The release to go from.")
@click.option("--channel", required=True, metavar="NAME", help="The channel that is followed.")
@version_option("--to", "goal", help="Where to; without it, the channel's newest.")
@click.option("-o", "--output", type=click.Choice(["text", "dot", "svg", "json", "yaml"]), default="text")
def show(
    source: str,
    releases: str | None,
    images: tuple[str, ...],
    arch: str,
    origin: str,
    channel: str,
    goal: str,
    output: str,
    **registry: Any,
) -> None:
    """Show where a release can be updated to, what is blocked and why, and the shortest way to another.

    \b
      runup graph show graph.json --from 4.14.20 --channel stable-4.16
      runup graph show graph.json --from 4.14.20 --channel stable-4.16 -o svg > ways.svg
    """
    loaded = sources.load(source, releases, images=images, architecture=arch, access=lambda: access(**registry))
    part = graph_of_channel(loaded.document, channel)
    nodes = part["nodes"]
    if not nodes:
        raise CommandError(
            f"there is no channel {channel} in this graph{nearest_hint(channel, channels(loaded.document))}"
        )
    versions = [node["version"] for node in nodes]
    for version in filter(None, (origin, goal)):
        if version not in versions:
            raise CommandError(f"channel {channel} has no release {version}{nearest_hint(version, versions)}")
    paths = ways(part, loaded.removed, origin, goal)
    assert paths is not None
    sys.stdout.write(render_graph(paths, channel, output))
    _say_notes(loaded)


def _say_notes(source: Source) -> None:
    for note in source.notes:
        sys.stderr.write(f"warning: {note}\n")


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


def summary_text(summary_data: JSON) -> str:
    """Returns one line per channel, the whole graph last."""
    rows: list[tuple[str, ...]] = [("CHANNEL", "RELEASES", "UPDATES", "WITH RISKS", "RISKS")]
    rows += [_table_row(name, part) for name, part in summary_data["channels"].items()]
    whole = _table_row("all", summary_data)
    return f"{align_columns([*rows, whole])}\n{summary_data['blockedEdges']} updates are blocked altogether.\n"


def _table_row(name: str, part: JSON) -> tuple[str, ...]:
    counts = (part["nodes"], part["edges"], part["conditionalEdges"], len(part["risks"]))
    return name, *map(str, counts)
