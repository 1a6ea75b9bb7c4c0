"""Renders the page of one cluster's preflight: verdict, risks with their objects, remedies, what is accepted. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from runup.cli.render.html.markup import Markup, el, join
from runup.console.cli.render.frame import commands, frame, how_old, message
from runup.console.decide.judgement import Board, Entry, Evidence, is_old, is_to_come
from runup.fleet.decide.members import Member
from runup.preflight.cli.render.preflight_page import page_body
from runup.preflight.decide.findings import Findings


def page(board: Board, name: str, found: Findings, now: datetime, max_age: timedelta, notes: Sequence[str] = ()) -> str:
    """Returns the page of cluster `name`; `found` is what counts of it now."""
    entry = board.entries[name]
    judged = entry.judged
    told = (*(judged.notes if judged else ()), *notes)
    if judged is None:
        body = message("Not judged yet", "Nothing is known of this cluster yet. Reload this page in a moment.")
    elif not found.completed:
        body = _not_judged(entry, found, now)
    else:
        body = join(
            _age(found, now, max_age),
            page_body(found),
            _lacking(judged.collect),
            _evidence(judged.evidence, kept=board.kept),
        )
    return frame(
        "Preflight",
        body,
        commands(_lines(entry.member, found)),
        now=now,
        here="cluster",
        cluster=name,
        notes=told,
    )


def _not_judged(entry: Entry, found: Findings, now: datetime) -> Markup:
    """Returns why there is no result, and what was found when there last was one."""
    why = found.failed.message if found.failed else "it has no result yet"
    last = entry.last_good
    words = "Nothing is known of it now." if last else "Nothing is known of it."
    head = message("Could not be judged", f"Tried {how_old(entry.at, now)}: {why}", words)
    if last is None:
        return head
    before = el("p", f"What follows is what was found {how_old(last.observed, now)}. It does not count any more.")
    return join(head, before, page_body(replace(last, ended=True)))


def _age(found: Findings, now: datetime, max_age: timedelta) -> Markup:
    words = f"As the cluster was {how_old(found.observed, now)}."
    if found.of_dump:
        words += " A dump is of one moment: what has changed since is not in it."
    elif found.observed and is_to_come(found.observed, now):
        words += " A clock is wrong, so how old that is cannot be told, and it does not count as known."
        return el("p", words, class_="card issue warn")
    elif is_old(found, now, max_age):
        words += f" That is older than {max_age.total_seconds() / 3600:g} h, so it does not count as known any more."
        return el("p", words, class_="card issue warn")
    return el("p", words, class_="faint")


def _lacking(collect: str) -> Markup | None:
    if not collect:
        return None
    return el("section", el("h2", "What the dump lacks"), el("pre", el("code", collect), class_="card"))


def _evidence(evidence: Sequence[Evidence], *, kept: bool) -> Markup | None:
    """Returns the objects that the risks are about, folded."""
    if kept:
        words = "A kept report names objects and does not hold them."
        return el("section", el("h2", "Objects"), el("p", words, class_="faint"))
    if not evidence:
        return None
    items = (_object(each) for each in evidence)
    return el("section", el("h2", f"Objects ({len(evidence)})"), el("div", *items, class_="card long"))


def _object(each: Evidence) -> Markup:
    about = el("p", f"Named by {', '.join(each.risks)}.", class_="faint")
    content = el("pre", el("code", each.yaml), tabindex="0") if each.yaml else el("p", each.why)
    return el("details", el("summary", each.name), about, content)


def where_flags(member: Member) -> str:
    """Returns the flags by which a command reads this cluster, as they are typed."""
    words = (
        [("--dump", member.dump)]
        if member.dump
        else [("--kubeconfig", member.kubeconfig), ("--context", member.context)]
    )
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in words if value)


def _lines(member: Member, found: Findings) -> Iterator[tuple[str, str]]:
    """Yields what can be done about this cluster, each with its command."""
    flags = where_flags(member)
    if not flags:
        return
    to = f" --to {shlex.quote(found.target)}" if found.target else ""
    yield "Judge it again", f"runup preflight run{flags}{to}"
    if member.dump or found.kind == "Kubernetes":
        return
    yield "Accept a risk", f"runup upgrade accept NAME --reason TEXT{flags}"
    if found.target:
        yield "Start the update, once nothing stands in its way", f"runup upgrade{flags}{to}"
