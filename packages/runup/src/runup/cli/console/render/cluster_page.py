"""Renders the page of one cluster's preflight: verdict, risks with their objects, remedies, what is accepted. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from runup.cli.console.render.frame import ONLY_SHOWS, Site, commands, how_old, message, path_of, whole_page
from runup.cli.preflight.render.preflight_page import page_body
from runup.cli.render.html.markup import Markup, el, long_section
from runup.console.decide.asked_actions import ACCEPT, START, can_be_changed, link_to
from runup.console.decide.judgement import Board, is_old, is_to_come
from runup.fleet.decide.members import Member
from runup.preflight.decide.findings import Findings


def page(
    board: Board,
    name: str,
    findings: Findings,
    now: datetime,
    max_age: timedelta,
    notes: Sequence[str] = (),
    site: Site = ONLY_SHOWS,
) -> str:
    """Returns the page of cluster `name`; `findings` is what counts of it now."""
    entry = board.entries[name]
    judged, last_good = entry.judged, entry.last_good
    if judged is None:
        parts = [message("Not judged yet", "Nothing is known of this cluster yet. Reload this page in a moment.")]
    elif not findings.completed:
        # Why there is no result, and the findings of the last preflight that had one.
        problem = findings.failed.message if findings.failed else "it has no result yet"
        known_text = "Nothing is known of it now." if last_good else "Nothing is known of it."
        parts = [message("Could not be judged", f"Tried {how_old(entry.at, now)}: {problem}", known_text)]
        if last_good is not None:
            when = how_old(last_good.observed, now)
            parts.append(el("p", f"What follows is what was found {when}. It does not count any more."))
            parts.append(page_body(replace(last_good, ended=True)))
    else:
        parts = [_age_line(findings, now, max_age), page_body(findings)]
        if judged.collect:
            collect = el("pre", el("code", judged.collect), class_="card")
            parts.append(el("section", el("h2", "What the dump lacks"), collect))
        if board.kept:
            store_note = "A kept report names objects and does not hold them."
            parts.append(el("section", el("h2", "Objects"), el("p", store_note, class_="faint")))
        elif judged.evidence:
            details = []
            for each in judged.evidence:
                about = el("p", f"Named by {', '.join(each.risks)}.", class_="faint")
                content = el("pre", el("code", each.yaml), tabindex="0") if each.yaml else el("p", each.why)
                details.append(el("details", el("summary", each.name), about, content))
            parts.append(long_section(f"Objects ({len(details)})", *details))
    # What can be done about this cluster, each with its command.
    member, flags = entry.member, where_options(entry.member)
    to = f" --to {shlex.quote(findings.target)}" if findings.target else ""
    lines = [("Judge it again", f"runup preflight run{flags}{to}")]
    if not member.dump and findings.kind != "Kubernetes":
        lines.append(("Accept a risk", f"runup upgrade accept NAME --reason TEXT{flags}"))
        if findings.target:
            lines.append(("Start the update, once nothing stands in its way", f"runup upgrade{flags}{to}"))
    can_act = site.acts and can_be_changed(member, kept=board.kept)
    return whole_page(
        "Preflight",
        *parts,
        _actions_section(member, findings) if can_act else None,
        commands(lines if flags else ()),
        now=now,
        current_path="cluster",
        cluster=name,
        notes=(*(judged.notes if judged else ()), *notes),
        site=site,
    )


def _age_line(findings: Findings, now: datetime, max_age: timedelta) -> Markup:
    """Returns how old the findings are, as a warning if they no longer count as known."""
    age_text = f"As the cluster was {how_old(findings.observed, now)}."
    if findings.of_dump:
        age_text += " A dump is of one moment: what has changed since is not in it."
    elif findings.observed and is_to_come(findings.observed, now):
        age_text += " A clock is wrong, so how old that is cannot be told, and it does not count as known."
        return el("p", age_text, class_="card issue warn")
    elif is_old(findings, now, max_age):
        age_text += f" That is older than {max_age.total_seconds() / 3600:g} h, so it does not count as known any more."
        return el("p", age_text, class_="card issue warn")
    return el("p", age_text, class_="faint")


def where_options(member: Member) -> str:
    """Returns the flags by which a command reads this cluster, as they are typed."""
    words = (
        [("--dump", member.dump)]
        if member.dump
        else [("--kubeconfig", member.kubeconfig), ("--context", member.context)]
    )
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in words if value)


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
    items = (el("li", el("a", words, href=path_of(member.name, page))) for words, page in links)
    words = "By your own rights on the cluster. Each is confirmed on a page of its own, which has the command, too."
    return el("section", el("h2", "To do from here"), el("p", words), el("ul", *items, class_="refs"), class_="card")
