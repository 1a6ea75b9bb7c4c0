"""Renders the plan of changes of a rehearsal as a section of the preflight's page. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from runup.checks.decide.wording import count, names
from runup.cli.rehearse.render.plan_text import field_text, ordered
from runup.cli.render.html.markup import Markup, el
from runup.cli.render.html.parts import grid
from runup.rehearse.decide.rehearsal_outcome import ObjectChange, Rehearsal

# How many objects, and fields of one, the page shows; `-o json` has all of them.
_MAX_OBJECTS, _MAX_FIELDS = 500, 20
_COLUMNS = ("Object", "Change", "Fields, the gravest first")


def plan_section(rehearsed: Rehearsal) -> Markup | None:
    """Returns the section with the plan and with what the copy lacks; None if no release was applied."""
    if rehearsed.kubernetes:
        return None
    changed = ordered(rehearsed)
    rows = [
        *(_plan_row(str(refusal.identity), "refused", [refusal.message]) for refusal in rehearsed.refusals),
        *(_change_row(each) for each in changed[:_MAX_OBJECTS]),
    ]
    more_changes = len(changed) - _MAX_OBJECTS
    return el(
        "section",
        el("h2", "Plan of changes"),
        el("div", grid("What the release does to each object", _COLUMNS, rows), class_="card long"),
        el("p", f"{count(more_changes, 'object')} more: -o json", class_="faint") if more_changes > 0 else None,
        el("h2", "The copy"),
        el("div", grid("What was copied, and what was not", ("Kind", "Objects", "Left out"), _copy_rows(rehearsed))),
    )


def _change_row(change: ObjectChange) -> Markup:
    """Returns one object's row: its action and the first of its changed fields."""
    lines = [
        f"{field_text(field)}{f' (set by {names(field.others)}: lost)' if field.others else ''}"
        for field in change.fields[:_MAX_FIELDS]
    ]
    more_fields = len(change.fields) - _MAX_FIELDS
    notes = [] if change.known else ["Whether it is there already is not known."]
    return _plan_row(
        str(change.identity),
        str(change.action),
        [*notes, *lines, *([f"and {count(more_fields, 'field')} more"] if more_fields > 0 else [])],
    )


def _plan_row(name: str, action: str, lines: Iterable[str]) -> Markup:
    return el("tr", el("th", name, scope="row"), el("td", action), el("td", *(el("p", line) for line in lines)))


def _copy_rows(rehearsed: Rehearsal) -> list[Markup]:
    """Returns a row for each kind that was copied, then for each that was left out, with the reason."""
    account = rehearsed.account
    copied_rows = [_copy_row(kind, str(number), "") for kind, number in account.kinds]
    return [
        *copied_rows,
        *(_copy_row(left_out.kind, str(left_out.count or ""), left_out.why) for left_out in account.left_out),
    ]


def _copy_row(kind: str, number: str, reason: str) -> Markup:
    return el("tr", el("th", kind, scope="row"), el("td", number), el("td", reason, class_="wide"))
