"""Renders the plan of a rehearsal as text and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from kubekit.lang.text import count, printable
from runup.checks.decide.wording import names
from runup.cli.render.html.markup import Markup, el, grid
from runup.rehearse.decide import rehearsal_outcome as outcome
from runup.rehearse.decide.rehearsal_findings import value, value_change

_SIGNS = {outcome.Action.CREATE: "+", outcome.Action.UPDATE: "~", outcome.Action.DELETE: "-"}
# How many objects and fields the plan shows without --verbose, how many kinds are counted by name, and how many
# characters of a value the data have.
_MAX_OBJECTS, _MAX_FIELDS, _MAX_KINDS, _MAX_VALUE_CHARACTERS = 20, 4, 5, 400
_ORDER = {outcome.Action.DELETE: 0, outcome.Action.UPDATE: 1, outcome.Action.CREATE: 2}


def account_text(copied: outcome.CopyAccount) -> str:
    """Returns the text about the copy: the number of objects of each kind, and omitted kinds."""
    kinds = names([f"{number} {kind}" for kind, number in copied.kinds], _MAX_KINDS)
    requests_text = f", read by {count(copied.requests, 'request')} (get and list)" if copied.requests else ""
    lines = [f"Copy of {copied.source}: {count(copied.objects, 'object')}{requests_text}: {kinds}."]
    return "\n".join(map(printable, lines)) + "\n" + left_out_text(copied.left_out)


def left_out_text(left_out: Iterable[outcome.LeftOut]) -> str:
    """Returns what the copy lacks, a line each."""
    lines = (f"Left out: {each.kind}{f' ({each.count})' if each.count else ''}: {each.why}." for each in left_out)
    return "".join(f"{printable(line)}\n" for line in lines)


def plan(rehearsed: outcome.Rehearsal, *, whole: bool = False) -> str:
    """Returns the plan of changes; `whole` names every object and field, and not only the gravest."""
    if rehearsed.kubernetes:
        return ""
    changed = ordered(rehearsed)
    numbers = Counter(change.action for change in changed)
    counts_text = ", ".join(
        f"{numbers[action]} to {action}"
        for action in (outcome.Action.CREATE, outcome.Action.UPDATE, outcome.Action.DELETE)
    )
    unknown = sum(not change.known for change in changed)
    aside = f" (of {unknown} it is not known whether they are there)" if unknown else ""
    refused = f"{len(rehearsed.refusals)} refused"
    lines = [f"Plan of {rehearsed.source} to {rehearsed.target}: {counts_text}{aside}, {refused}."]
    lines += [f"  ! {refusal.identity}: refused ({refusal.kind})" for refusal in rehearsed.refusals]
    rights = {change.identity: change for change in rehearsed.rights}
    shown_changes = changed
    if not whole:
        is_grave = {outcome.Action.DELETE: True, outcome.Action.CREATE: False}
        grave = [each for each in changed if is_grave.get(each.action, each.weight is not outcome.Weight.METADATA)]
        shown_changes = grave[:_MAX_OBJECTS]
    for change in shown_changes:
        lines += _object_lines(change, rights.get(change.identity), whole=whole)
    if (more_changes := len(changed) - len(shown_changes)) > 0:
        lines.append(f"  ... and {count(more_changes, 'object')} more: --verbose, or -o json")
    return "\n".join(map(printable, lines)) + "\n\n"


def ordered(rehearsed: outcome.Rehearsal) -> list[outcome.ObjectChange]:
    """Returns the objects that change: deletions, then updates with the gravest fields first, then creations."""
    changed = [change for change in rehearsed.changes if change.action is not outcome.Action.NOTHING]
    return sorted(
        changed, key=lambda each: (_ORDER[each.action], outcome.WEIGHTS.index(each.weight), str(each.identity))
    )


def _object_lines(change: outcome.ObjectChange, rights: outcome.RightsChange | None, *, whole: bool) -> Iterator[str]:
    """Yields an object and its changed fields; only the first ones unless `whole`."""
    unknown = "" if change.known else " (whether it is there already is not known)"
    yield f"  {_SIGNS[change.action]} {change.identity}{unknown}"
    shown_fields = change.fields if whole else change.fields[:_MAX_FIELDS]
    for field in shown_fields:
        lost = f"  (set by {names(field.others)}: lost)" if field.others else ""
        text = field_text(field)
        if rights and field.weight is outcome.Weight.RIGHTS:
            by_verb = (("loses", rights.lost), ("gains", rights.gained))
            text = "rights: " + "; ".join(f"{verb} {names(each, _MAX_KINDS)}" for verb, each in by_verb if each)
        yield f"      {text}{lost}"
    if (more_fields := len(change.fields) - len(shown_fields)) > 0:
        yield f"      ... and {count(more_fields, 'field')} more"


def field_text(field: outcome.FieldChange) -> str:
    """Returns a changed field; a schema is not shown, since its effect on stored objects is reported instead."""
    return f"{field.path}: another schema" if field.path.endswith("openAPIV3Schema") else value_change(field)


def effort_text(rehearsed: outcome.Rehearsal) -> str:
    """Returns how much was tried, and what stood in for the components."""
    if rehearsed.kubernetes and rehearsed.server is None:
        return "The versions are those of the table of removed APIs; no API server of the target was asked."
    if rehearsed.kubernetes and rehearsed.server is not None:
        written_text = (
            f"{rehearsed.server.tried} of {count(rehearsed.server.objects, 'object')} were written as dry runs"
        )
        return f"On kube-apiserver {rehearsed.server.version}: {written_text}."
    tried = f"Tried {rehearsed.tried} of {count(rehearsed.tasks, 'object')} of the release"
    if rehearsed.server is not None:
        tried += f" on kube-apiserver {rehearsed.server.version}"
    return f"{tried}; stand-ins answered for its operators, roll-outs and Jobs: that they come up is not rehearsed."


def data(rehearsed: outcome.Rehearsal) -> dict[str, Any]:
    """Returns the machine form: the copy, the plan, refusals, rights, stored objects and webhooks."""
    copied, server = rehearsed.account, rehearsed.server
    return {
        "copy": {
            "source": copied.source,
            "objects": copied.objects,
            "requests": copied.requests,
            "kinds": dict(copied.kinds),
            "leftOut": [
                {"kind": left_out.kind, "count": left_out.count, "reason": left_out.why} for left_out in copied.left_out
            ],
        },
        "tasks": rehearsed.tasks,
        "tried": rehearsed.tried,
        "changes": [_change_data(each) for each in ordered(rehearsed)],
        "refused": [
            {
                "object": str(each.identity),
                "task": each.index,
                "kind": str(each.kind),
                "message": each.message,
                "behind": each.behind,
            }
            for each in rehearsed.refusals
        ],
        "vanished": [{"object": str(identity), "reason": reason} for identity, reason in rehearsed.vanished],
        "rights": [
            {
                "object": str(each.identity),
                "lost": list(each.lost),
                "gained": list(each.gained),
                "subjects": list(each.subjects),
            }
            for each in rehearsed.rights
        ],
        "storedObjects": [
            {
                "definition": each.name,
                "tried": each.tried,
                "complete": each.complete,
                "removedVersions": list(each.gone),
                "objects": [
                    {
                        "object": str(stored.identity),
                        "refused": list(stored.refused),
                        "tolerated": list(stored.tolerated),
                        "pruned": list(stored.pruned),
                        "unknown": stored.unknown,
                    }
                    for stored in each.objects
                ],
            }
            for each in rehearsed.definitions
        ],
        "webhooks": [
            {
                "configuration": each.configuration,
                "webhook": each.name,
                "failureIgnored": each.ignores,
                "writes": list(map(str, each.writes)),
            }
            for each in rehearsed.webhooks
        ],
        # What a real API server said about the cluster's own objects.
        "server": server
        and {
            "kubernetes": server.version,
            "written": server.tried,
            "refused": [{"object": str(each.identity), "message": each.message} for each in server.refused],
            "readOtherwise": [_change_data(each) for each in server.read_changes],
        },
        "notices": list(rehearsed.notes),
    }


def _change_data(change: outcome.ObjectChange) -> dict[str, Any]:
    """Returns one object's change as JSON data."""
    fields = [
        {
            "path": field_change.path,
            "before": value(field_change.before, _MAX_VALUE_CHARACTERS),
            "after": value(field_change.after, _MAX_VALUE_CHARACTERS),
            "weight": str(field_change.weight),
            "lostFrom": list(field_change.others),
        }
        for field_change in change.fields
    ]
    return {"object": str(change.identity), "action": str(change.action), "known": change.known, "fields": fields}


# How many objects, and fields of one, the page shows; `-o json` has all of them.
_PAGE_OBJECTS, _PAGE_FIELDS = 500, 20
_COLUMNS = ("Object", "Change", "Fields, the gravest first")


def plan_section(rehearsed: outcome.Rehearsal) -> Markup | None:
    """Returns the section with the plan and with what the copy lacks; None if no release was applied."""
    if rehearsed.kubernetes:
        return None
    changed = ordered(rehearsed)
    rows = [_plan_row(str(refusal.identity), "refused", [refusal.message]) for refusal in rehearsed.refusals]
    for change in changed[:_PAGE_OBJECTS]:
        lines = [] if change.known else ["Whether it is there already is not known."]
        for field in change.fields[:_PAGE_FIELDS]:
            lost = f" (set by {names(field.others)}: lost)" if field.others else ""
            lines.append(f"{field_text(field)}{lost}")
        if (more_fields := len(change.fields) - _PAGE_FIELDS) > 0:
            lines.append(f"and {count(more_fields, 'field')} more")
        rows.append(_plan_row(str(change.identity), str(change.action), lines))
    more_changes = len(changed) - _PAGE_OBJECTS
    account = rehearsed.account
    copy_rows = [_copy_row(kind, str(number), "") for kind, number in account.kinds]
    copy_rows += [_copy_row(each.kind, str(each.count or ""), each.why) for each in account.left_out]
    return el(
        "section",
        el("h2", "Plan of changes"),
        el("div", grid("The effect of the release on each object", _COLUMNS, rows), class_="card long"),
        el("p", f"{count(more_changes, 'object')} more: -o json", class_="faint") if more_changes > 0 else None,
        el("h2", "The copy"),
        el("div", grid("Copied objects, and objects left out", ("Kind", "Objects", "Left out"), copy_rows)),
    )


def _plan_row(name: str, action: str, lines: Iterable[str]) -> Markup:
    return el("tr", el("th", name, scope="row"), el("td", action), el("td", *(el("p", line) for line in lines)))


def _copy_row(kind: str, number: str, reason: str) -> Markup:
    return el("tr", el("th", kind, scope="row"), el("td", number), el("td", reason, class_="wide"))
