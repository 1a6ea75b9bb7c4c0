"""Renders paths through a graph as text, DOT and SVG. Pure.

The drawings show what the text says: the updates of one release, the blocked ones, and the shortest path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from kubekit.lang.text import count, one_line
from kubekit.lang.version import Version
from runup.advice.decide.update_paths import UpdatePaths, UpdateStep
from runup.cli.render.text import columns, indent_lines, machine

_COLUMN_WIDTH, _ROW_HEIGHT, _LEFT_MARGIN, _TOP_MARGIN = 190, 26, 90, 60


def render_graph(paths: UpdatePaths, channel: str, form: str) -> str:
    """Returns `paths` in one of the forms text, dot, svg, json, yaml."""
    if form in ("json", "yaml"):
        return machine(
            {
                "channel": channel,
                "from": paths.origin,
                "to": paths.goal,
                "updates": [_step(step) for step in paths.updates],
                "blocked": [{"to": to, "files": list(files)} for to, files in paths.blocked.items()],
                "way": [_step(step) for step in paths.way],
                "risks": list(paths.risks.values()),
            },
            form,
        )
    draw = {"text": _text_lines, "dot": _dot, "svg": _svg}[form]
    return "\n".join(one_line(line) for line in draw(paths, channel)) + "\n"


def _step(step: UpdateStep) -> dict[str, Any]:
    return {"from": step.origin, "to": step.to, "risks": list(step.risks)}


def _text_lines(paths: UpdatePaths, channel: str) -> Iterator[str]:
    """Yields the lines of the text form: the updates, the blocked ones, and the way to the goal."""
    risky = sum(1 for step in paths.updates if step.risks)
    counts = f"{count(len(paths.updates), 'update')}, {risky} with known risks, {len(paths.blocked)} blocked"
    yield f"{paths.origin} in {channel}: {counts}"
    if paths.updates:
        rows = [("  VERSION", "RISKS"), *((f"  {step.to}", ", ".join(step.risks) or "-") for step in paths.updates)]
        yield from ("", "Updates:", *columns(rows).splitlines())
    if paths.blocked:
        rows = [
            ("  VERSION", "BLOCKED BY"),
            *((f"  {to}", ", ".join(paths.blocked[to])) for to in sorted(paths.blocked, key=Version, reverse=True)),
        ]
        yield from ("", "Blocked:", *columns(rows).splitlines())
    yield ""
    if paths.origin == paths.goal:
        yield f"{paths.goal} is the newest release there."
    elif not paths.way:
        yield f"No way leads to {paths.goal} in channel {channel}."
    else:
        yield f"Way to {paths.goal}, {count(len(paths.way), 'update')}:"
    for step in paths.way if paths.origin != paths.goal else ():
        yield f"  {step.origin} -> {step.to}" + (f"   risks: {', '.join(step.risks)}" if step.risks else "")
    if paths.risks:
        yield from ("", "Risks:")
    for name, risk in paths.risks.items():
        yield from (f"  {name}: {indent_lines(risk['message'])}".replace("\n", "\n    ").split("\n"))
        yield f"    {risk['url']}"
        for rule in risk["matchingRules"]:
            yield f"    applies: {rule['type']}"
            query = str((rule.get("promql") or {}).get("promql", "")).strip()
            yield from (f"      {line}" for line in query.splitlines())


def _lines(paths: UpdatePaths) -> list[tuple[UpdateStep, str]]:
    """Returns every update that is drawn, with its kind."""
    steps = dict.fromkeys((*paths.updates, *paths.way))
    kinds = [(step, "risky" if step.risks else "plain") for step in steps]
    return [*kinds, *((UpdateStep(paths.origin, to, files), "blocked") for to, files in paths.blocked.items())]


def _dot(paths: UpdatePaths, channel: str) -> Iterator[str]:
    """Yields the lines of the graph in Graphviz' DOT language; line styles tell plain, risky and blocked updates."""
    styles = {"plain": "", "risky": ", style=dashed, color=orange", "blocked": ", style=dotted, color=red"}
    yield f"digraph {json.dumps(channel)} {{"
    yield "  rankdir=LR;"
    yield "  node [shape=box];"
    yield f"  {json.dumps(paths.origin)} [style=bold];"
    for step, kind in _lines(paths):
        label = json.dumps("\n".join(step.risks))
        yield f"  {json.dumps(step.origin)} -> {json.dumps(step.to)} [label={label}{styles[kind]}];"
    yield "}"


def _svg(paths: UpdatePaths, channel: str) -> Iterator[str]:
    """Yields the lines of the graph as an SVG image; the styles are those of `_dot`."""
    by_minor: dict[tuple[int, int], list[str]] = {}
    drawn = {version for step, _ in _lines(paths) for version in (step.origin, step.to)} | {paths.origin}
    for text in sorted(drawn, key=Version, reverse=True):
        by_minor.setdefault((Version(text).major, Version(text).minor), []).append(text)
    places = {
        version: (_LEFT_MARGIN + column * _COLUMN_WIDTH, _TOP_MARGIN + row * _ROW_HEIGHT)
        for column, minor in enumerate(sorted(by_minor))
        for row, version in enumerate(by_minor[minor])
    }
    width = max(x for x, _ in places.values()) + _LEFT_MARGIN + 20
    height = max(y for _, y in places.values()) + _TOP_MARGIN
    title = f"{paths.origin} in {channel}"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">'
    yield f"<title>{escape(title)}</title>"
    yield "<style>text{font:13px sans-serif} .plain{stroke:#276749} .risky{stroke:#b7791f;stroke-dasharray:6 3}"
    yield ".blocked{stroke:#c53030;stroke-dasharray:2 4} path{fill:none;stroke-width:1.5}</style>"
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield f'<text x="10" y="20">{escape(title)}: solid free, dashed with risks, dotted blocked</text>'
    for step, kind in _lines(paths):
        (x1, y1), (x2, y2) = places[step.origin], places[step.to]
        # Releases of one minor version are in one column, so that a straight line would run through them.
        bend = (x1 + x2) // 2 + (60 if x1 == x2 else 0)
        tooltip = escape(f"{step.origin} to {step.to}: {', '.join(step.risks) or 'no known risks'}")
        yield f'<path class="{kind}" d="M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}"><title>{tooltip}</title></path>'
    for version, (x, y) in places.items():
        weight = ' font-weight="bold"' if version == paths.origin else ""
        yield f'<circle cx="{x}" cy="{y}" r="4"/><text x="{x + 8}" y="{y + 4}"{weight}>{escape(version)}</text>'
    yield "</svg>"
