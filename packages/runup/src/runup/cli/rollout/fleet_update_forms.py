"""Renders a fleet update as text, data, JUnit, Markdown and a web page. Nothing is decided here."""

from __future__ import annotations

import shlex
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
from runup.process.names import FLEET_NAMESPACE

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
    "Refused": "The hub does not carry out the update.",
}
# What a person does next about an update on a hub; `words` are its name and its hub, as typed.
_HUB_STEPS: dict[str, str] = {
    "Failed": "Fix the cause or raise spec.maxFailures, then: runup fleet update resume {words} --acknowledge",
    "Aborted": "Runs that have not begun end. Another FleetUpdate begins again.",
    "Held": "To continue: runup fleet update resume {words}",
    "ApprovalMissing": "To approve: runup fleet update approve {words} --stage {stage} --gate {gate} --reason TEXT",
    "Unknown": "Each cluster, and why it is unknown: runup fleet update status {words} --clusters",
    "GatesClosed": "Each cluster, and why it waits: runup fleet update status {words} --clusters",
}


def headline(view: FleetView) -> str:
    """Returns the update with the number of its clusters by state."""
    counts = ", ".join(f"{number} {state}" for state in STATES if (number := view.number(state)))
    return f"{view.name}: update of {count(view.total, 'cluster')} to {view.version}: {counts}"


def text(view: FleetView, screen: Screen = PIPE, *, plans: bool = False) -> Iterator[Drawn]:
    """Yields the stages and the clusters; `plans`: with waves and earliest times, before the update has begun."""
    yield join_parts(wrap_text(headline(view), screen))
    yield join_parts("\n", _stage_table(view, screen))
    for stage in view.stages:
        for gate in stage.closed[:1]:
            yield wrap_text(f"{stage.name} does not start: {one_line(gate.message)}", screen, first="  ", indent=4)
        if stage.waiting_for:
            reasons = ", ".join(f"{number} {one_line(reason)}" for reason, number in stage.waiting_for.items())
            yield wrap_text(f"{stage.name} waits: {reasons}", screen, first="  ", indent=4)
    for each in view.troubles:
        names = ", ".join(map(one_line, each.clusters))
        more = f" and {each.total - len(each.clusters)} more" if each.total > len(each.clusters) else ""
        yield wrap_text(f"{each.kind}: {names}{more}", screen, first="  ", indent=4)
    if view.clusters or not view.hub:
        yield join_parts("\n", _cluster_table(view, screen, plans=plans))
    if view.left_out:
        names = ", ".join(map(one_line, view.left_out))
        yield wrap_text(f"No stage selects: {names}", screen)
    if not plans:
        yield join_parts("\n", *(wrap_text(line, screen) for line in outcome_lines(view)))


def outcome_lines(view: FleetView) -> list[str]:
    """Returns what the update waits for and, of one on a hub, why, how sure that is, and what a person can do next."""
    if not view.hub:
        return [_OUTCOMES[view.outcome]]
    # The words about a hold and an approval name the journal's commands.
    lines = [] if view.outcome in ("Held", "ApprovalMissing", "Failed") else [_OUTCOMES[view.outcome]]
    if view.outcome == "Held":
        lines = ["The update is held: nothing more is started."]
    lines += [one_line(view.problem)] if view.problem else []
    if view.waits_for is not None:
        lines.append(f"Waits for stage {view.waits_for.stage}: {one_line(view.waits_for.message)}")
    if view.permit_until is not None and view.permit_until > view.observed:
        until = timestamp(view.permit_until)
        lines.append(
            f"Permits until {until}: if held now, no update starts later, also where the hub reaches no agent."
        )
    lines += map(one_line, view.doubts)
    step = _HUB_STEPS.get(view.outcome, "")
    gate = view.waits_for
    named = {"stage": gate.stage, "gate": gate.name} if gate is not None else {}
    fields = {name: shlex.quote(one_line(value)) for name, value in named.items()}
    return [*lines, step.format(words=_words(view), **fields)] if step else lines


def _words(view: FleetView) -> str:
    """Returns the name of an update on a hub, as typed."""
    namespace = "" if view.namespace == FLEET_NAMESPACE else f" --namespace {view.namespace}"
    return f"{view.name} --hub {view.hub}{namespace}"


def _stage_table(view: FleetView, screen: Screen) -> Drawn:
    names = ("STAGE", *(("PHASE", "ROUND", "TURNS") if view.hub else ()), *(state.upper() for state in STATES))
    rows = []
    for stage in view.stages:
        counts = [str(stage.counts.get(state, 0) or ".") for state in STATES]
        turns = [stage.phase, f"{stage.round}/{stage.rounds}" if stage.round else ".", str(stage.turns or ".")]
        rows.append(Row((one_line(stage.name), *(turns if view.hub else ()), *counts)))
    columns = tuple(Column(title=name) for name in names)
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
    return {**_common_data(view), **(_hub_data(view) if view.hub else {})}


def _hub_data(view: FleetView) -> dict[str, Any]:
    """Returns what only an update on a hub has."""
    stages = [
        {
            "name": stage.name,
            "phase": stage.phase,
            "turns": stage.turns,
            "round": stage.round,
            "rounds": stage.rounds,
            "waitingFor": dict(stage.waiting_for),
        }
        for stage in view.stages
    ]
    gate = view.waits_for
    return {
        "hub": {
            "context": view.hub,
            "namespace": view.namespace,
            "stages": stages,
            "troubles": [
                {"kind": each.kind, "total": each.total, "clusters": list(each.clusters)} for each in view.troubles
            ],
            "problem": view.problem,
            "permitUntil": timestamp(view.permit_until) if view.permit_until else None,
            "waitsFor": None
            if gate is None
            else {"stage": gate.stage, "type": gate.type, "name": gate.name, "message": gate.message},
            "doubts": list(view.doubts),
        }
    }


def _common_data(view: FleetView) -> dict[str, Any]:
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
    lines = [f"# {plain(headline(view))}", "", *(plain(line) for line in outcome_lines(view)), ""]
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
        *(el("p", line) for line in outcome_lines(view)),
        long_section("Stages", grid("Clusters of each stage by state", ("Stage", *STATES), stages)),
        long_section("Clusters", grid("Each cluster, and why", ("Cluster", "Stage", "State", "Why"), clusters)),
    )
    return document(f"Update to {view.version}", *body, now=view.observed)


def render(view: FleetView, form: str) -> str:
    """Returns the update in one of the forms for programs and pages."""
    if form in ("json", "yaml"):
        return machine(data(view), form)
    return {"junit": junit, "markdown": markdown, "html": page}[form](view)
