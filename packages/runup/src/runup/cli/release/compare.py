"""Defines `runup release diff` (changes from one release to another, or on a cluster) and `runup release explain`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click

from kubekit.lang.text import one_line
from runup.applying.control.dry_run import Comparison, Effect, compare_with_cluster
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.output import screen_of
from runup.cli.release.shared import OUTPUT, access, registry_options, run_guarded
from runup.cli.render.screen import PIPE, Screen
from runup.cli.render.table import Column, Row, Table, draw_table
from runup.cli.render.text import machine
from runup.release.control import release_location
from runup.release.control.live_cluster import ExplainedOnCluster, explain_on_cluster
from runup.release.decide.difference import Difference, ManifestChange, NameChange, difference_of
from runup.release.decide.inclusion_reasons import DescribedCluster, Explained
from runup.release.decide.listing import filters_data
from runup.release.decide.object_diff import ABSENT, Change, value_text
from runup.release.decide.payload import Payload

JSON = dict[str, Any]
T = TypeVar("T")
# Maximum number of changed fields that a line names; the data has all.
_SHOWN = 4
_COUNTED = ("added", "changed", "removed", "deleted")
_COLUMNS = (Column(title=""), Column(title="", folds=True), Column(title="", flows=True))


def table(rows: Iterable[Sequence[str]], screen: Screen = PIPE) -> str:
    """Returns rows of an action, an object and a reason as a table; rows of a section begin with two blanks."""
    cells = list(rows)
    lines = [tuple(cell.strip() for cell in row) for row in cells]
    indent = 2 if any(row[0].startswith("  ") for row in cells) else 0
    return draw_table(Table(columns=_COLUMNS, rows=[Row(line) for line in lines], indent=indent, blank=""), screen)


def difference_text(before: Payload, after: Payload, difference: Difference, screen: Screen = PIPE) -> str:
    """Returns the changes, section by section; an empty section is one line."""
    lines = [f"{before.version} -> {after.version}", ""]
    lines += _section_lines("Images", difference.images, _name_row, screen=screen)
    lines += _section_lines(
        "Manifests", difference.manifests, _manifest_row, more=f"{difference.same} the same", screen=screen
    )
    lines += _section_lines("Checks", difference.checks, _manifest_row, screen=screen)
    lines += _section_lines("Feature gates", difference.gates, _name_row, screen=screen)
    number = len(difference.access)
    lines.append(f"Access: {number or 'no'} {'role or binding' if number == 1 else 'roles and bindings'} changed")
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


def effects_text(payload: Payload, effects_found: Sequence[Effect], screen: Screen = PIPE) -> str:
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


def effects_data(comparison: Comparison) -> JSON:
    """Returns the effects as data for programs."""
    return {
        "to": comparison.release.version,
        "digest": comparison.digest,
        "objects": [
            {
                "object": effect.object,
                "file": effect.file,
                "state": effect.state,
                "changes": [_change_data(change) for change in effect.changes],
                "why": effect.why,
            }
            for effect in comparison.effects
        ],
        "notes": list(comparison.notes),
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


def explained_data(explained: ExplainedOnCluster) -> JSON:
    """Returns the explanations as data for programs."""
    return {
        "version": explained.release.version,
        "digest": explained.digest,
        "filters": filters_data(explained.cluster.filters),
        "unreadable": dict(explained.cluster.unreadable),
        "manifests": [
            {
                "object": str(explanation.manifest.identity),
                "file": explanation.manifest.file,
                "answer": explanation.answer,
                "rules": [{"rule": r.rule, "verdict": r.verdict, "why": r.why} for r in explanation.rulings],
            }
            for explanation in explained.manifests
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


@click.command(cls=Command)
@click.argument("images", nargs=-1, required=True, metavar="FROM TO | TO")
@click.option("--live", is_flag=True, help="What TO would change on the cluster: a dry run on its server.")
@OUTPUT
@registry_options
@connection_options
@click.pass_context
def diff(ctx: click.Context, /, images: tuple[str, ...], live: bool, output: str | None, **registry: Any) -> int:
    """Show the differences between two releases: images, manifests, checks, feature gates, and permissions.

    With --live, what TO would change on the cluster. Each manifest that the cluster gets is sent as the operator would
    send it, as a dry run; nothing is written. Without FROM, the release that the cluster runs shows what TO lacks.

    Exit codes: 0 all is known, 3 something is unknown (with --live: may not be read, or the server did not say).

    \b
      runup release diff oci:layout:5.1.0 oci:layout:5.2.0
      runup release diff --live registry.example/release@sha256:...
    """
    if len(images) > 2 or (len(images) == 1 and not live):
        raise click.UsageError("give two releases, FROM and TO; with --live TO alone will do")

    def run() -> int:
        registry_access = access(**registry)
        if live:
            with connection_of(ctx).client() as client:
                comparison = compare_with_cluster(client, images, registry_access)
            for note in comparison.notes:
                click.echo(f"note: {note}", err=True)
            if output:
                text = machine(effects_data(comparison), output)
            else:
                text = effects_text(comparison.release, comparison.effects, screen_of(sys.stdout))
            click.echo(text, nl=False)
            return 3 if comparison.notes or any(effect.state == "unknown" for effect in comparison.effects) else 0
        (before, _), (after, _) = (release_location.load(image, registry_access) for image in images)
        changes = difference_of(before, after)
        if output:
            click.echo(machine(difference_data(before, after, changes), output), nl=False)
        else:
            click.echo(difference_text(before, after, changes, screen_of(sys.stdout)), nl=False)
        return 0

    return run_guarded(run)


@click.command(cls=Command)
@click.argument("kind")
@click.argument("name")
@click.option("-n", "--namespace", default="", metavar="NAMESPACE", help="Of several of that name, the one in there.")
@click.option(
    "--release",
    "image",
    default="",
    metavar="IMAGE",
    help="Which release (default: the cluster's own).",
)
@OUTPUT
@registry_options
@connection_options
@click.pass_context
def explain(
    ctx: click.Context, /, kind: str, name: str, namespace: str, image: str, output: str | None, **registry: Any
) -> int:
    """Show the rule that includes or excludes a manifest: sets, gates, profile, capabilities, overrides.

    Exit codes: 0 it is known, 3 something that decides could not be read, 1 there is no such manifest.

    \b
      runup release explain deployment etcd-operator
      runup release explain customresourcedefinition.apiextensions.k8s.io tests.example.com --release oci:layout:5.2.0
    """

    def run() -> int:
        # NAME may be NAMESPACE/NAME, which is how the output names an object.
        within, _, alone = name.rpartition("/")
        within = namespace or within
        with connection_of(ctx).client() as client:
            explained = explain_on_cluster(
                client, access(**registry), image=image, kind=kind, name=alone, namespace=within
            )
        if not explained.manifests:
            raise CommandError(no_such(explained.release, kind, name=alone, namespace=within, image=explained.image))
        if output:
            text = machine(explained_data(explained), output)
        else:
            text = explained_text(explained.release, explained.cluster, explained.manifests, screen_of(sys.stdout))
        click.echo(text, nl=False)
        return 3 if any(explanation.answer == "unknown" for explanation in explained.manifests) else 0

    return run_guarded(run)
