"""Formats comparisons and explanations of releases as text or data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kubekit.lang.text import one_line
from runup.cli.render.screen import PIPE, Screen
from runup.cli.render.table import Column, Row, Table, draw_table
from runup.release.decide.difference import Difference, ManifestChange, NameChange
from runup.release.decide.inclusion_reasons import DescribedCluster, Explained
from runup.release.decide.listing import filters_data as filters_data
from runup.release.decide.object_diff import ABSENT, Change, value_text
from runup.release.decide.payload import Payload

JSON = dict[str, Any]
T = TypeVar("T")
# Maximum number of changed fields that a line names; the data has all.
_SHOWN = 4
_COUNTED = ("added", "changed", "removed", "deleted")


_COLUMNS = (Column(""), Column("", folds=True), Column("", flows=True))


def table(rows: Iterable[Sequence[str]], screen: Screen = PIPE) -> str:
    """Returns rows of an action, an object and a reason as a table; rows of a section begin with two blanks."""
    cells = list(rows)
    lines = [tuple(cell.strip() for cell in row) for row in cells]
    indent = 2 if any(row[0].startswith("  ") for row in cells) else 0
    return draw_table(Table(_COLUMNS, [Row(line) for line in lines], indent, blank=""), screen)


def difference_text(before: Payload, after: Payload, difference: Difference, screen: Screen = PIPE) -> str:
    """Returns the changes, section by section; an empty section is one line."""
    lines = [f"{before.version} -> {after.version}", ""]
    lines += _section_lines("Images", difference.images, _name_row, screen=screen)
    lines += _section_lines(
        "Manifests", difference.manifests, _manifest_row, more=f"{difference.same} the same", screen=screen
    )
    lines += _section_lines("Checks", difference.checks, _manifest_row, screen=screen)
    lines += _section_lines("Feature gates", difference.gates, _name_row, screen=screen)
    lines += [f"Access: {_number_of(len(difference.access), 'role or binding', 'roles and bindings')} changed"]
    for change in difference.access:
        lines.append(one_line(f"  {change.object}"))
        lines += [one_line(f"    + {line}") for line in change.granted]
        lines += [one_line(f"    - {line}") for line in change.taken]
    return "\n".join(lines) + "\n"


def difference_data(before: Payload, after: Payload, difference: Difference) -> JSON:
    """Returns the changes as data for programs, with every value."""
    return {
        "from": before.version,
        "to": after.version,
        "images": [_name_data(change) for change in difference.images],
        "manifests": [_manifest_data(change) for change in difference.manifests],
        "same": difference.same,
        "checks": [_manifest_data(change) for change in difference.checks],
        "featureGates": [_name_data(change) for change in difference.gates],
        "access": [
            {"object": change.object, "granted": list(change.granted), "taken": list(change.taken)}
            for change in difference.access
        ],
    }


def effects(payload: Payload, effects_found: Sequence[Any], screen: Screen = PIPE) -> str:
    """Returns what the update to `payload` would change on the cluster; unchanged objects are only counted."""
    states = ("created", "changed", "deleted", "left", "refused", "unknown", "same")
    counts = ", ".join(
        f"{number} {'left behind' if state == 'left' else state}"
        for state in states
        if (number := sum(effect.state == state for effect in effects_found))
    )
    rows = [
        (_EFFECTS[effect.state], effect.object, effect.why or _fields(effect.changes))
        for effect in effects_found
        if effect.state != "same"
    ]
    head = f"The update to {payload.version} would: {counts or 'change nothing'}\n"
    return head + table(rows, screen) if rows else head


_EFFECTS = {
    "created": "create", "changed": "change", "deleted": "delete", "left": "leave", "refused": "REFUSED",
    "unknown": "UNKNOWN",
}  # fmt: skip


def effects_data(payload: Payload, digest: str, effects_found: Sequence[Any], notes: Sequence[str]) -> JSON:
    """Returns the effects as data for programs."""
    return {
        "to": payload.version,
        "digest": digest,
        "objects": [
            {
                "object": effect.object,
                "file": effect.file,
                "state": effect.state,
                "changes": [_change_data(change) for change in effect.changes],
                "why": effect.why,
            }
            for effect in effects_found
        ],
        "notes": list(notes),
    }


def explained_text(
    payload: Payload, cluster: DescribedCluster, explanations: Iterable[Explained], screen: Screen = PIPE
) -> str:
    """Returns each manifest of that name: in or out, and the verdict of every rule."""
    blocks = []
    for explanation in explanations:
        ruling = explanation.decided_by
        by = f", by {ruling.rule}" if ruling else ""
        head = f"{explanation.manifest.identity} of {payload.version}: {explanation.answer}{by}"
        rows = [
            (f"  {ruling.rule}", ruling.verdict, ruling.why or _comparison_clause(ruling.rule, cluster, ruling.verdict))
            for ruling in explanation.rulings
        ]
        blocks.append(f"{one_line(head)}\n  file: {one_line(explanation.manifest.file)}\n{table(rows, screen)}")
    return "\n".join(blocks)


def explained_data(payload: Payload, digest: str, cluster: DescribedCluster, explanations: Iterable[Explained]) -> JSON:
    """Returns the explanations as data for programs."""
    return {
        "version": payload.version,
        "digest": digest,
        "filters": filters_data(cluster.filters),
        "unreadable": dict(cluster.unreadable),
        "manifests": [
            {
                "object": str(explanation.manifest.identity),
                "file": explanation.manifest.file,
                "answer": explanation.answer,
                "rules": [{"rule": r.rule, "verdict": r.verdict, "why": r.why} for r in explanation.rulings],
            }
            for explanation in explanations
        ],
    }


def no_such(payload: Payload, kind: str, name: str, namespace: str, image: str) -> str:
    """Returns the error for a manifest that a release does not have, with objects of the same name."""
    scope = f" in namespace {namespace}" if namespace else ""
    near = sorted({str(m.identity) for m in (*payload.manifests, *payload.checks) if m.identity.name == name})
    hint = f"; it has {', '.join(near[:_SHOWN])}" if near else "; `runup release manifests` lists what it has"
    return f"{payload.version} ({image}) has no {kind} {name}{scope}{hint}"


def _comparison_clause(rule: str, cluster: DescribedCluster, verdict: str) -> str:
    """Returns the cluster's value that a passed rule was compared with, as a clause."""
    filters = cluster.filters
    clauses = {
        "feature set": f"the cluster's is {filters.feature_set or 'Default'}",
        "feature gates": f"enabled are {', '.join(sorted(filters.gates or ())) or 'none'}",
        "major version": f"the release's is {filters.major}",
        "profile": f"the cluster's is {filters.profile}",
        "capabilities": "all that it names are enabled",
        "overrides": "none is unmanaged for it",
    }
    return clauses.get(rule, "") if verdict == "passes" else ""


def _section_lines(
    title: str, changes: Sequence[T], row: Callable[[T], tuple[str, ...]], *, screen: Screen, more: str = ""
) -> Iterator[str]:
    """Yields a title with the number of changes by state, and a table of them."""
    states = [row(change)[0].strip() for change in changes]
    counts = [f"{states.count(state)} {state}" for state in _COUNTED if state in states]
    yield f"{title}: {', '.join([*(counts or ['no change']), *([more] if more else [])])}"
    yield from table([row(change) for change in changes], screen).splitlines()


def _name_row(change: NameChange) -> tuple[str, ...]:
    values = {"added": change.after, "removed": change.before}.get(
        change.state, f"{value_text(change.before)} -> {value_text(change.after)}"
    )
    return (f"  {change.state}", change.name, values)


def _manifest_row(change: ManifestChange) -> tuple[str, ...]:
    """Returns the cells for a manifest: state, object, and what that means for a cluster."""
    detail = {
        "changed": _fields(change.changes),
        "removed": "nothing deletes it: clusters that have it keep it",
        "deleted": "the operator deletes it",
        "added": change.file,
    }[change.state]
    return (f"  {change.state}", f"{change.object}{f' ({change.variant})' if change.variant else ''}", detail)


def _fields(changes: Sequence[Change]) -> str:
    more = len(changes) - _SHOWN
    return ", ".join([*map(str, changes[:_SHOWN]), *([f"and {more} more"] if more > 0 else [])])


def _name_data(change: NameChange) -> JSON:
    return {"name": change.name, "state": change.state, "from": change.before, "to": change.after}


def _manifest_data(change: ManifestChange) -> JSON:
    """Returns the change of a manifest for programs."""
    return {
        "object": change.object,
        "variant": change.variant,
        "state": change.state,
        "file": change.file,
        "changes": [_change_data(field) for field in change.changes],
    }


def _change_data(change: Change) -> JSON:
    """Returns the change as data; an absent value has no key."""
    data: JSON = {"path": change.path}
    if change.before is not ABSENT:
        data["from"] = change.before
    return data | ({} if change.after is ABSENT else {"to": change.after})


def _number_of(number: int, item: str, several: str) -> str:
    return f"{number or 'no'} {item if number == 1 else several}"
