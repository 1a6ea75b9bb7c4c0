"""Renders the pages of one cluster: its preflight, its way through the update graph, and its update. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.lang.gotext import datetime_of_ns
from kubekit.lang.text import is_to_come
from runup.advice.decide.update_paths import UpdatePaths, UpdateStep
from runup.cli.console.render import frame, outlook_pages
from runup.cli.preflight.render.preflight_page import page_body
from runup.cli.render.html.markup import (
    BAD,
    GOOD,
    WARN,
    Child,
    Markup,
    badge,
    el,
    grid,
    join,
    link,
    long_section,
    minute_text,
)
from runup.cli.updatestatus.render import status_page
from runup.console.decide.asked_actions import ACCEPT, START, can_be_changed, link_to
from runup.console.decide.board import Board, is_old
from runup.console.decide.graph_ways import UpdateWay
from runup.console.decide.outlook import Outlook
from runup.fleet.decide.members import Member
from runup.preflight.decide.findings import Findings
from runup.preflight.decide.preflight_state import Phase
from runup.report.report import ReportedResource
from runup.updatestatus.control.status_reading import StatusReading
from runup.updatestatus.decide.decode import decode, with_unknown


def preflight_page(
    board: Board,
    name: str,
    findings: Findings,
    now: datetime,
    max_age: timedelta,
    notes: Sequence[str] = (),
    site: frame.Site = frame.ONLY_SHOWS,
) -> str:
    """Returns the page of cluster `name`; `findings` is what counts of it now."""
    entry = board.entries[name]
    evaluated, last_good = entry.evaluated, entry.last_good
    if evaluated is None:
        parts = [
            frame.message("Not evaluated yet", "Nothing is known about this cluster yet. Reload this page in a moment.")
        ]
    elif not findings.completed:
        # Why there is no result, and the findings of the last preflight that had one.
        problem = findings.failed.message if findings.failed else "it has no result yet"
        known_text = "Nothing is known about it now." if last_good else "Nothing is known about it."
        parts = [
            frame.message("Could not be evaluated", f"Tried {frame.how_old(entry.at, now)}: {problem}", known_text)
        ]
        if last_good is not None:
            when = frame.how_old(last_good.observed, now)
            parts.append(el("p", f"The following was found {when}. It does not count any more."))
            parts.append(page_body(replace(last_good, phase=Phase.OUTDATED)))
    else:
        places = {each.name: f"object-{number}" for number, each in enumerate(evaluated.evidence)}

        def show_object(item: ReportedResource) -> Child:
            place = places.get(item.text)
            return el("a", item.text, href=f"#{place}") if place else item.text

        parts = [_age_line(findings, now, max_age), page_body(findings, show_object=show_object)]
        if evaluated.collect:
            collect = el("pre", el("code", evaluated.collect), class_="card")
            parts.append(el("section", el("h2", "What the dump lacks"), collect))
        if board.kept:
            store_note = "A kept report names objects and does not hold them."
            parts.append(el("section", el("h2", "Objects"), el("p", store_note, class_="faint")))
        elif evaluated.evidence:
            details = []
            for each in evaluated.evidence:
                about = el("p", f"Named by {', '.join(each.risks)}.", class_="faint", id=places[each.name])
                content = el("pre", el("code", each.yaml), tabindex="0") if each.yaml else el("p", each.why)
                details.append(el("details", el("summary", each.name), about, content))
            parts.append(long_section(f"Objects ({len(details)})", *details))
    # What can be done about this cluster, each with its command.
    member, flags = entry.member, frame.where_options(entry.member)
    to = f" --to {shlex.quote(findings.target)}" if findings.target else ""
    lines = [("Evaluate it again", f"runup preflight run{flags}{to}")]
    if not member.dump and findings.kind != "Kubernetes":
        lines.append(("Accept a risk", f"runup upgrade accept NAME --reason TEXT{flags}"))
        if findings.target:
            lines.append(("Start the update, once nothing blocks it", f"runup upgrade{flags}{to}"))
    can_act = site.acts and can_be_changed(member, kept=board.kept)
    return frame.whole_page(
        "Preflight",
        *parts,
        _actions_section(member, findings) if can_act else None,
        frame.commands(lines if flags else ()),
        now=now,
        current_path="cluster",
        cluster=name,
        notes=(*(evaluated.notes if evaluated else ()), *notes),
        site=site,
    )


def _age_line(findings: Findings, now: datetime, max_age: timedelta) -> Markup:
    """Returns how old the findings are, as a warning if they no longer count as known."""
    age_text = f"As the cluster was {frame.how_old(findings.observed, now)}."
    if findings.of_dump:
        age_text += " A dump is of one moment: what has changed since is not in it."
    elif findings.observed and is_to_come(findings.observed, now):
        age_text += " A clock is wrong, so its age is unknown, and it does not count as known."
        return el("p", age_text, class_="card issue warn")
    elif is_old(findings, now, max_age):
        age_text += f" That is older than {max_age.total_seconds() / 3600:g} h, so it does not count as known any more."
        return el("p", age_text, class_="card issue warn")
    return el("p", age_text, class_="faint")


def _actions_section(member: Member, findings: Findings) -> Markup | None:
    """Returns links to what can be done with this cluster; each leads to a page that asks for confirmation."""
    if findings.kind == "Kubernetes":
        return None
    risks = [risk.name for risk in findings.risks if findings.completed and risk.open and risk.acceptable]
    links = [(f"Accept {name}", link_to(ACCEPT, name)) for name in dict.fromkeys(risks)]
    links.append(("Accept a risk by its name", link_to(ACCEPT)))
    if findings.completed and findings.target:
        links.append((f"Start the update to {findings.target}", link_to(START, findings.target)))
    links.append(("Start an update", link_to(START)))
    items = (el("li", el("a", words, href=frame.path_of(member.name, page))) for words, page in links)
    words = "By your own rights on the cluster. Each is confirmed on a separate page, which has the command, too."
    return el("section", el("h2", "To do from here"), el("p", words), el("ul", *items, class_="refs"), class_="card")


_WIDE, _HIGH, _LEFT, _TOP, _RIGHT = 180, 30, 30, 40, 150
_TONES = {"plain": GOOD, "risky": WARN, "blocked": BAD}
_WORDS = {"plain": "no known risks", "risky": "with risks", "blocked": "blocked"}


def way_page(name: str, update_way: UpdateWay, now: datetime, site: frame.Site = frame.ONLY_SHOWS) -> str:
    """Returns the page of cluster `name`."""
    if update_way.paths is None:
        body = frame.message("The way is not known", update_way.why)
    else:
        # The section with the start, the goal, the number of updates between them, and the source.
        paths = update_way.paths
        source_text = f"As reported by {update_way.source}."
        lines = []
        for number, step in enumerate(paths.way, 1):
            state = _kind_badge("risky" if step.risks else "plain")
            cells = (el("td", cell) for cell in (step.origin, step.to, _channels_text(update_way, step), state))
            risks = el("td", ", ".join(step.risks), class_="wide")
            lines.append(el("tr", el("th", str(number), scope="row"), *cells, risks))
        caption, heads = "The updates of the way, in their order", ("Update", "From", "To", "Channel", "State", "Risks")
        body = join(
            el(
                "section",
                el("h1", f"The way from {paths.origin} to {paths.goal}"),
                el("p", update_way.verdict),
                el("p", update_way.why, class_="warn") if update_way.why else None,
                el("p", source_text, class_="faint"),
                class_="card",
            ),
            _draw_graph(paths),
            long_section("The way", grid(caption, heads, lines)) if lines else None,
            _updates_table(update_way, paths),
            _onward_table(update_way, paths),
            _risks_table(paths),
            _beyond_one_update(update_way, paths) if update_way.one_step else None,
        )
    return frame.whole_page("Way", body, now=now, current_path="graph", cluster=name, site=site)


def _draw_graph(paths: UpdatePaths) -> Markup:
    """Returns the drawing: a column for each minor version, the newest release on top."""
    steps = dict.fromkeys((*paths.updates, *paths.onward, *paths.way))
    edges = [(step, "risky" if step.risks else "plain") for step in steps]
    edges += [(UpdateStep(paths.origin, to, files), "blocked") for to, files in paths.blocked.items()]
    positions = _node_positions({version for step, _ in edges for version in (step.origin, step.to)} | {paths.origin})
    shapes = []
    for step, kind in edges:
        (x1, y1), (x2, y2) = positions[step.origin], positions[step.to]
        # Releases of one minor version are in one column, so that a straight line would run through them.
        bend = (x1 + x2) // 2 + (60 if x1 == x2 else 0)
        reason = f": {', '.join(step.risks)}" if step.risks else ""
        title = el("title", f"{step.origin} to {step.to}, {_WORDS[kind]}{reason}")
        class_ = f"{kind} onway" if step in paths.way else kind
        shapes.append(el("path", title, class_=class_, d=f"M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}"))
    for version, (x, y) in positions.items():
        role = "origin" if version == paths.origin else "goal" if version == paths.goal else None
        shapes.append(el("circle", cx=str(x), cy=str(y), r="4"))
        shapes.append(el("text", version, x=str(x - 4), y=str(y - 9), class_=role))
    width = max(x for x, _ in positions.values()) + _RIGHT
    height = max(y for _, y in positions.values()) + _TOP
    drawn = el(
        "svg",
        *shapes,
        width=str(width),
        height=str(height),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=f"Updates from {paths.origin}, and the way to {paths.goal}; the tables below say the same",
    )
    legend = el("p", "Solid: no known risks. Dashed: with risks. Dotted: blocked. Thick: the way.", class_="faint")
    frame_ = el("div", drawn, class_="scroll", tabindex="0", role="region", aria_label="The drawing of the way")
    return long_section("Drawing", legend, frame_)


def _node_positions(versions: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Returns the (x, y) of each version in the drawing: one column a minor version, the newest on top."""
    by_minor: dict[tuple[int, ...], list[str]] = {}
    for version in sorted(versions, key=_version_key, reverse=True):
        by_minor.setdefault(_version_key(version)[0][:2], []).append(version)
    return {
        version: (_LEFT + column * _WIDE, _TOP + row * _HIGH)
        for column, minor in enumerate(sorted(by_minor))
        for row, version in enumerate(by_minor[minor])
    }


def _version_key(version: str) -> tuple[tuple[int, ...], str]:
    """Returns a sort key of a version; those of Kubernetes may lack the patch."""
    match = re.match(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", version)
    return tuple(int(number or 0) for number in match.groups()) if match else (), version


def _updates_table(update_way: UpdateWay, paths: UpdatePaths) -> Markup | None:
    """Returns the direct updates of the origin as a table, blocked ones included; None if they do not exist."""
    rows: Sequence[tuple[str, str, Sequence[str]]] = [
        *((step.to, "risky" if step.risks else "plain", step.risks) for step in paths.updates),
        *((to, "blocked", files) for to, files in paths.blocked.items()),
    ]
    if not rows:
        return None
    lines = (
        el("tr", el("th", to, scope="row"), el("td", _kind_badge(kind)), el("td", ", ".join(reason), class_="wide"))
        for to, kind, reason in rows
    )
    table = grid(f"Where {paths.origin} can go next", ("Release", "State", "Risks, or what blocks it"), lines)
    left_out = f"{update_way.left_out} more are left out; `runup graph show` has them all."
    note = el("p", left_out) if update_way.left_out else None
    return long_section(f"Updates of {paths.origin}", table, note)


def _onward_table(update_way: UpdateWay, paths: UpdatePaths) -> Markup | None:
    """Returns the updates that are possible after the first one; None if none is known."""
    lines = [
        el(
            "tr",
            el("th", step.origin, scope="row"),
            el("td", step.to),
            el("td", _channels_text(update_way, step)),
            el("td", _kind_badge("risky" if step.risks else "plain")),
            el("td", ", ".join(step.risks), class_="wide"),
        )
        for step in paths.onward
    ]
    heads = ("From", "To", "Channel", "State", "Risks")
    return long_section("Updates after the first", grid("Where these releases can go", heads, lines)) if lines else None


def _channels_text(update_way: UpdateWay, step: UpdateStep) -> str:
    """Returns the channels in which an update is, the cluster's own first; a graph may not have them."""
    channels = update_way.channels_of_step(step)
    if not channels:
        return "unknown"
    own = " (the cluster's)" if channels[0] == update_way.channel else ""
    more = f" and {len(channels) - 1} more" if len(channels) > 1 else ""
    return f"{channels[0]}{own}{more}"


def _risks_table(paths: UpdatePaths) -> Markup | None:
    """Returns a row with the text of each risk of the drawn updates; None without any."""
    lines = []
    for name, risk in paths.risks.items():
        message, url = str(risk.get("message") or ""), str(risk.get("url") or "")
        lines.append(
            el(
                "tr",
                el("th", name, scope="row"),
                el("td", message or "The graph has no text for it.", class_="wide"),
                el("td", link(url, f"About {name}") if url else ""),
            )
        )
    heads = ("Risk", "Possible effect", "Read on")
    return (
        long_section("Risks of these updates", grid("Risks as the graph describes them", heads, lines))
        if lines
        else None
    )


def _beyond_one_update(update_way: UpdateWay, paths: UpdatePaths) -> Markup:
    """Returns that further updates are unknown, and how the graph that has them is loaded."""
    text = (
        f"Updates after the one from {paths.origin} are unknown: a cluster is offered one update at a time. "
        "The graph of a channel has all of its updates. Load it, and serve it with the console:"
    )
    lines = [
        (f"Load channel {channel}", f"curl --fail --output graph.json {shlex.quote(url)}")
        for channel, url in update_way.graph_urls
    ]
    lines.append(("Serve it", "runup serve --graph graph.json"))
    return join(el("section", el("h2", "After the first update"), el("p", text), class_="card"), frame.commands(lines))


def _kind_badge(kind: str) -> Markup:
    return badge(_WORDS[kind], _TONES[kind])


def update_page(
    board: Board, name: str, live: Markup | None, now: datetime, site: frame.Site = frame.ONLY_SHOWS
) -> str:
    """Returns the page; `live` is its live part, None if nothing was read yet."""
    member = board.entries[name].member
    shown = None
    if board.kept:
        body = frame.message("Not known", "The console reads kept reports, which do not say how an update goes.")
    elif member.problem:
        body = problem_part(member.problem)
    else:
        flags = frame.where_options(member)
        lines = [("The same in a terminal", f"runup upgrade status{flags}")]
        if member.dump:
            note = "A dump is of one moment: what has changed since is not in it, and this page does not change."
            waiting = frame.message("Not read yet", "The dump is being read. Reload this page in a moment.")
            body = join(el("p", note, class_="faint"), el("div", live if live is not None else waiting))
        else:
            lines.append(("Follow it there", f"runup upgrade status --watch{flags}"))
            waiting = frame.message("Not read yet", "The cluster is being read; this page renews itself.")
            events = frame.path_of(name, "update/events")
            body = join(
                el("p", "Reload this page for a newer status.", id="live-state", role="status", class_="faint"),
                # The script replaces this with each event of the stream.
                el("div", live if live is not None else waiting, id="live", data_events=events),
            )
        shown = frame.commands(lines)
    return frame.whole_page("Update", body, shown, now=now, current_path="update", cluster=name, site=site)


def status_part(reading: StatusReading, outlook: Outlook | None = None, why_no_outlook: str = "") -> Markup:
    """Returns the live part of the page: the time of the report, warnings about it, the report, and the forecast."""
    try:
        status, unknown = decode(reading.obj)
    except codec.DecodeError as error:
        return problem_part(f"the status cannot be read: {error}")
    now = datetime_of_ns(reading.now_ns)
    notes = [
        note.strip().removeprefix("warning: ") for note in (*reading.notes, reading.alerts_problem) if note.strip()
    ]
    warned = el("ul", *(el("li", note) for note in notes), class_="refs")
    # 0: a dump that does not tell its time.
    time_text = f"at {minute_text(now)}" if reading.now_ns else "at an unknown time"
    return join(
        el("p", f"As the cluster was {time_text}.", class_="faint"),
        el("div", warned, class_="card issue warn") if notes else None,
        status_page.page_body(with_unknown(status, unknown, now), now),
        outlook_pages.progress_part(status, outlook, why_no_outlook, now),
    )


def problem_part(reason: str) -> Markup:
    """Returns the section that replaces a status that could not be read."""
    return frame.message("The status is not known", f"It could not be read: {reason}")
