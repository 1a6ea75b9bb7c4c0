"""Renders the page of one cluster's update, and the part of it that is renewed. Pure."""

from __future__ import annotations

from datetime import datetime

from kubekit.api import codec
from kubekit.lang.gotext import datetime_of_ns
from runup.cli.console.render.cluster_page import where_options
from runup.cli.console.render.frame import ONLY_SHOWS, Site, commands, message, path_of, whole_page
from runup.cli.render.html.markup import Markup, el, join, minute_text
from runup.cli.updatestatus.render.status_page import page_body
from runup.console.decide.judgement import Board
from runup.updatestatus.control.status_reading import StatusReading
from runup.updatestatus.decide.decode import decode, with_unknown


def page(board: Board, name: str, live: Markup | None, now: datetime, site: Site = ONLY_SHOWS) -> str:
    """Returns the page; `live` is its live part, None if nothing was read yet."""
    member = board.entries[name].member
    shown = None
    if board.kept:
        body = message("Not known", "The console reads kept reports, which do not say how an update goes.")
    elif member.problem:
        body = problem_part(member.problem)
    else:
        flags = where_options(member)
        lines = [("The same in a terminal", f"runup upgrade status{flags}")]
        if member.dump:
            note = "A dump is of one moment: what has changed since is not in it, and this page does not change."
            waiting = message("Not read yet", "The dump is being read. Reload this page in a moment.")
            body = join(el("p", note, class_="faint"), el("div", live if live is not None else waiting))
        else:
            lines.append(("Follow it there", f"runup upgrade status --watch{flags}"))
            waiting = message("Not read yet", "The cluster is being read; this page renews itself.")
            events = path_of(name, "update/events")
            body = join(
                el("p", "Reload this page for a newer status.", id="live-state", role="status", class_="faint"),
                # The script replaces this with each event of the stream.
                el("div", live if live is not None else waiting, id="live", data_events=events),
            )
        shown = commands(lines)
    return whole_page("Update", body, shown, now=now, current_path="update", cluster=name, site=site)


def status_part(reading: StatusReading) -> Markup:
    """Returns the live part of the page: the time of the report, warnings about it, and the report."""
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
        page_body(with_unknown(status, unknown, now), now),
    )


def problem_part(reason: str) -> Markup:
    """Returns what stands instead of a status that could not be read."""
    return message("The status is not known", f"It could not be read: {reason}")
