"""Renders a fleet update as text, data, JUnit, Markdown and a web page. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from kubekit.lang.text import count, one_line, printable, timestamp
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import BAD, BUSY, GOOD, IDLE, WARN, badge, el, grid, long_section
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import machine, plain
from runup.fleet.decide.update_turns import STATES
from runup.fleet.decide.update_view import ClusterLine, FleetView

FORMS = ("json", "yaml", "junit", "markdown", "html")
_STYLES = {"done": "green", "running": "cyan", "failed": "bold red", "unknown": "yellow"}
_TONES = {
    "done": GOOD,
    "running": BUSY,
    "ready": BUSY,
    "waiting": IDLE,
    "unknown": WARN,
    "skipped": IDLE,
    "failed": BAD,
}
_OUTCOMES = {
    "Done": "Every cluster is updated, skipped, or one of the failures that are allowed.",
    "Running": "Updates run, or a cluster may start.",
    "Failed": "Nothing more is started: retry or skip the clusters that failed.",
    "Aborted": "The update was aborted.",
    "Held": "Nothing more is started until `runup fleet update resume`.",
    "ApprovalMissing": "Nothing more is started until the approval is given with `runup fleet update approve`.",
    "Unknown": "Nothing can be started: something is unknown.",
    "GatesClosed": "Nothing can be started now: gates are closed.",
}


def headline(view: FleetView) -> str:
    """Returns the update with the number of its clusters by state."""
    counts = ", ".join(f"{number} {state}" for state in STATES if (number := view.number(state)))
    total = len(view.clusters)
    return f"{view.name}: update of {count(total, 'cluster')} to {view.version}: {counts}"


def text(view: FleetView, screen: Screen = PIPE, *, plans: bool = False) -> Iterator[Drawn]:
    """Yields the stages and the clusters; `plans`: with waves and earliest times, before the update has begun."""
    yield join_parts(wrap_text(headline(view), screen))
    yield join_parts("\n", _stage_table(view, screen))
    for stage in view.stages:
        for gate in stage.closed[:1]:
            yield wrap_text(f"{stage.name} does not start: {one_line(gate.message)}", screen, first="  ", indent=4)
    yield join_parts("\n", _cluster_table(view, screen, plans=plans))
    if view.left_out:
        names = ", ".join(map(one_line, view.left_out))
        yield wrap_text(f"No stage selects: {names}", screen)
    if not plans:
        yield join_parts("\n", wrap_text(_OUTCOMES[view.outcome], screen))


def _stage_table(view: FleetView, screen: Screen) -> Drawn:
    columns = (Column(title="STAGE"), *(Column(title=state.upper()) for state in STATES))
    rows = [
        Row((one_line(stage.name), *(str(stage.counts.get(state, 0) or ".") for state in STATES)))
        for stage in view.stages
    ]
    return draw_table(Table(columns=columns, rows=rows, indent=2, gap=2), screen)


def _cluster_table(view: FleetView, screen: Screen, *, plans: bool) -> Drawn:
    columns = [Column(title="CLUSTER"), Column(title="STAGE"), Column(title="STATE", styles=_STYLES)]
    if plans:
        columns = [Column(title="WAVE"), *columns, Column(title="NOT BEFORE")]
    rows = []
    for each in sorted(view.clusters, key=lambda each: (each.wave, each.name)) if plans else view.clusters:
        cells: tuple[str, ...] = (one_line(each.name), one_line(each.stage), each.state)
        if plans:
            cells = (str(each.wave or "."), *cells, timestamp(each.earliest) if each.earliest else ".")
        rows.append(Row((*cells, _why(each))))
    return draw_table(Table(columns=(*columns, Column(title="WHY", flows=True)), rows=rows, indent=2, gap=2), screen)


def _why(line: ClusterLine) -> str:
    if not line.reason:
        return ""
    return one_line(f"{line.reason}: {line.message}" if line.message else line.reason)


def data(view: FleetView) -> dict[str, Any]:
    """Returns the update as data for programs."""
    return {
        "name": view.name,
        "version": view.version,
        "image": view.image,
        "observedTime": timestamp(view.observed),
        "outcome": view.outcome,
        "exitCode": view.exit_code,
        "failures": view.failures,
        "allowedFailures": view.allowed_failures,
        "stages": [
            {
                "name": stage.name,
                "clusters": {state: stage.counts.get(state, 0) for state in STATES},
                "needed": stage.needed,
                "closed": [
                    {"name": gate.name, "reason": gate.reason, "message": gate.message} for gate in stage.closed
                ],
            }
            for stage in view.stages
        ],
        "clusters": [
            {
                "name": each.name,
                "stage": each.stage,
                "state": each.state,
                "reason": each.reason,
                "message": each.message,
                "wave": each.wave or None,
                "notBefore": timestamp(each.earliest) if each.earliest else None,
            }
            for each in view.clusters
        ],
        "leftOut": list(view.left_out),
    }


def junit(view: FleetView) -> str:
    """Returns JUnit XML: a case for each cluster, which fails if its update did, and is skipped if it did not start."""
    root = ElementTree.Element("testsuites", name="runup fleet update")
    for stage in view.stages:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(f"{view.name}: {stage.name}"))
        lines = [each for each in view.clusters if each.stage == stage.name]
        kinds = {
            "failed": "failure",
            "unknown": "error",
            "skipped": "skipped",
            "waiting": "skipped",
            "ready": "skipped",
        }
        for each in lines:
            case = ElementTree.SubElement(suite, "testcase", classname=_xml(stage.name), name=_xml(each.name))
            # An update that runs is not a success yet.
            kind = kinds.get(each.state, "" if each.state == "done" else "skipped")
            if kind:
                ElementTree.SubElement(case, kind, message=_xml(_why(each) or each.state))
        totals = {"tests": len(lines)}
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            totals[attribute] = len(suite.findall(f"testcase/{tag}"))
        for attribute, number in totals.items():
            suite.set(attribute, str(number))
    ElementTree.indent(root)
    return f"{ElementTree.tostring(root, encoding='unicode', xml_declaration=True)}\n"


def _xml(value: str) -> str:
    return printable(one_line(value))


def markdown(view: FleetView) -> str:
    """Returns the update as Markdown, short enough for a comment of a pull request."""
    lines = [f"# {plain(headline(view))}", "", _OUTCOMES[view.outcome], ""]
    lines += ["| cluster | stage | state | why |", "|---|---|---|---|"]
    for each in view.clusters:
        lines.append(f"| {plain(each.name)} | {plain(each.stage)} | {each.state} | {plain(_why(each))} |")
    return "\n".join(lines) + "\n"


def page(view: FleetView) -> str:
    """Returns the update as one web page."""
    stages = [
        el("tr", el("th", stage.name, scope="row"), *(el("td", str(stage.counts.get(state, 0))) for state in STATES))
        for stage in view.stages
    ]
    clusters = [
        el(
            "tr",
            el("th", each.name, scope="row"),
            el("td", each.stage),
            el("td", badge(each.state, _TONES[each.state])),
            el("td", _why(each), class_="wide"),
        )
        for each in view.clusters
    ]
    body = (
        el("h1", headline(view)),
        el("p", _OUTCOMES[view.outcome]),
        long_section("Stages", grid("Clusters of each stage by state", ("Stage", *STATES), stages)),
        long_section("Clusters", grid("Each cluster, and why", ("Cluster", "Stage", "State", "Why"), clusters)),
    )
    return document(f"Update to {view.version}", *body, now=view.observed)


def render(view: FleetView, form: str) -> str:
    """Returns the update in one of the forms for programs and pages."""
    if form in ("json", "yaml"):
        return machine(data(view), form)
    return {"junit": junit, "markdown": markdown, "html": page}[form](view)
