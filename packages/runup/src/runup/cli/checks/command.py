"""Defines `runup checks`: write, test, list and explain the checks of a release; nothing here talks to a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubekit.lang.files import read_limited
from kubekit.lang.text import count
from runup.cli.errors import CommandError
from runup.cli.lazy import Group

if TYPE_CHECKING:
    from kubekit.lang.version import Version
    from runup.checks.control.check_files import CheckFile
    from runup.checks.decide.model import Check


@click.group("checks", cls=Group)
def checks() -> None:
    """Write, test and list the checks of a release.

    \b
      runup checks new my-check --resource routes.v1.route.openshift.io --kind Route
      runup checks lint preflight-checks
      runup checks test preflight-checks
    """


def _write_out(text: str) -> None:
    # Here and below imports stand inside functions, so that listing the commands does not pay for them.
    from runup.cli.output import write

    write([("out", text)])


def _read_check_files(words: tuple[str, ...]) -> tuple[CheckFile, ...]:
    """Returns the content of the files and folders in `words`. Raises CommandError."""
    from runup.checks.control import check_files

    return check_files.read(words)


@checks.command("lint")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--strict", is_flag=True, help="A likely mistake counts as a mistake.")
def lint(paths: tuple[str, ...], strict: bool) -> int:
    """Report the errors in PreflightChecks by file, line and field.

    \b
      runup checks lint preflight-checks
      runup checks lint 0000_20_dns_old-records.yaml --strict
    """
    results = _read_check_files(paths)
    errors = [error for result in results for error in result.errors]
    notes = [note for result in results for note in result.notes]
    number = sum(len(result.checks) for result in results)
    for line in (*errors, *(f"note: {note}" for note in notes)):
        _write_out(f"{line}\n")
    if not number and not errors:
        raise CommandError(f"no PreflightCheck in {', '.join(paths)}")
    bad = len(errors) + (len(notes) if strict else 0)
    _write_out(f"{count(number, 'check')} read, {count(len(errors), 'error')}, {count(len(notes), 'note')}\n")
    return 1 if bad else 0


@checks.command("test")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
def test(paths: tuple[str, ...]) -> int:
    """Run the cases (PreflightCheckTest) of PreflightChecks: clear, applies, unknown and an empty cluster at least.

    \b
      runup checks test preflight-checks
      runup checks test old-records.yaml                     with old-records.test.yaml next to it
    """
    from runup.checks.control.check_files import with_cases
    from runup.checks.decide import cases

    results = _read_check_files(with_cases(paths))
    if errors := [error for result in results for error in result.errors]:
        raise CommandError("\n".join(errors))
    by_name = {check.name: check for result in results for check in result.checks}
    cases_by_check = {case.check: case for result in results for case in result.cases}
    failed = 0
    for name in sorted(cases_by_check.keys() - by_name.keys()):
        failed += 1
        _write_out(f"FAIL {name}: there are cases for it, but the check itself is missing\n")
    for name, check in sorted(by_name.items()):
        if name not in cases_by_check:
            if check.container is not None:
                _write_out(f"ok   {name}: a container, tested where its image is built\n")
                continue
            failed += 1
            _write_out(f"FAIL {name}: it has no cases; `runup checks new` writes some\n")
            continue
        for verdict in cases.evaluate_cases(check, cases_by_check[name]):
            failed += bool(verdict.problem)
            reason_suffix = f": {verdict.problem}" if verdict.problem else ""
            _write_out(f"{'FAIL' if verdict.problem else 'ok  '} {name}: {verdict.case}{reason_suffix}\n")
    if not by_name:
        raise CommandError(f"no PreflightCheck in {', '.join(paths)}")
    return 1 if failed else 0


@checks.command("list")
@click.option("--release-dir", default="", metavar="DIR", help="Also the declarative checks of this release.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
def list_(release_dir: str, output: str | None) -> None:
    """List the built-in checks, and those of a release's folder.

    \b
      runup checks list
      runup checks list --release-dir release -o json
    """
    from runup.cli.output import screen_of
    from runup.cli.render.table import Column, Row, Table, draw_table
    from runup.cli.render.text import machine

    rows: list[dict[str, Any]] = [
        {
            "name": check.name,
            "component": check.component,
            "severity": check.severity,
            "updates": check.updates,
            "reads": sorted({resource.name for resource in check.reads}),
            "unknownRisk": check.unknown_risk,
        }
        for check in _checks_of_release(release_dir)
    ]
    if output:
        _write_out(machine(rows, output))
        return
    titles = ("CHECK", "COMPONENT", "SEVERITY", "UPDATES")
    columns = (*(Column(title=title) for title in titles), Column(title="READS", flows=True))
    lines = [Row((r["name"], r["component"], r["severity"], r["updates"], ", ".join(r["reads"]))) for r in rows]
    _write_out(draw_table(Table(columns=columns, rows=lines), screen_of(sys.stdout)))


def _checks_of_release(release_dir: str) -> tuple[Check, ...]:
    """Returns the built-in checks and those of the release's folder.

    Raises CommandError if the folder does not exist.
    """
    from runup.checks.catalogue import CHECKS

    folder = Path(release_dir) / "preflight-checks"
    if not release_dir:
        return CHECKS
    if not folder.is_dir():
        raise CommandError(f"--release-dir {release_dir}: there is no folder {folder}")
    return (*CHECKS, *_read((str(folder),)))


@checks.command("explain")
@click.argument("name")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--release-dir", default="", metavar="DIR", help="Also the declarative checks of this release.")
def explain(name: str, paths: tuple[str, ...], release_dir: str) -> None:
    """Print what a check is about, and the rights that it needs: a built-in one, one of a file, or one of a release.

    NAME is the check's, or that of the risk that it reports.

    \b
      runup checks explain HeadroomShort
      runup checks explain old-routes preflight-checks
      runup checks explain RemovedAPIInUse --release-dir release
    """
    import difflib

    from runup.checks import risk_pages
    from runup.checks.catalogue import CHECKS
    from runup.checks.decide import rights
    from runup.checks.decide.check_page import declared_page

    checks = _read(paths)
    if paths and not checks:
        raise CommandError(f"no PreflightCheck in {', '.join(paths)}")
    declared = (*checks, *(check for check in _checks_of_release(release_dir) if check not in CHECKS))
    known = (*CHECKS, *declared)
    # Names of checks come first, since a risk may have the name of another check.
    by_name = {each.unknown_risk: each for each in reversed(known)} | {each.name: each for each in reversed(known)}
    if name not in by_name:
        similar = difflib.get_close_matches(name, [each.name for each in known], 1)
        way_out = "for a release's own: `runup release extract IMAGE --to DIR`, and --release-dir DIR"
        elsewhere = "" if declared else f"; {way_out}"
        hint = f"; did you mean {similar[0]}?" if similar else f"; `runup checks list` names those built in{elsewhere}"
        raise CommandError(f"there is no check {name}{hint}")
    check = by_name[name]
    page = declared_page(check) if check in declared else risk_pages.find(check.name)
    rules = "\n".join(
        f'- apiGroups: ["{right.group}"], resources: [{right.resource}], verbs: [get, list, watch]'
        + (f", in namespace {right.namespace}" if right.namespace else "")
        for right in rights.rights_of_checks([check])
    )
    _write_out(f"{page}\n**Rights**\n\n{rules}\n")


def _read(paths: tuple[str, ...]) -> tuple[Check, ...]:
    """Returns the checks of these files and folders.

    Raises CommandError if one cannot be read: the others are not all.
    """
    results = _read_check_files(paths)
    if errors := [error for result in results for error in result.errors]:
        raise CommandError("\n".join(errors))
    return tuple(check for result in results for check in result.checks)


@checks.command("coverage")
@click.option(
    "--release",
    "releases",
    multiple=True,
    required=True,
    metavar="VERSION=DIR",
    help="A release and its checks' folder.",
)
@click.option(
    "--update",
    "updates",
    multiple=True,
    required=True,
    metavar="FROM..TO",
    help="An update that is offered; or a graph: FILE.",
)
def coverage(releases: tuple[str, ...], updates: tuple[str, ...]) -> int:
    """Fail when a check that covered a source version is gone from a later release that it can still update to.

    \b
      runup checks coverage --release 5.1.0=a --release 5.2.0=b --update 5.0.3..5.1.0 --update 5.0.3..5.2.0
      runup checks coverage --release 5.1.0=a --release 5.2.0=b --update graph.json
    """
    from runup.checks.decide.coverage import gaps

    checks_by_release = {}
    for typed in releases:
        version, _, folder = typed.partition("=")
        checks_by_release[_parse_version(version, "--release")] = _read((folder,)) if folder else ()
    edges = {edge for typed in updates for edge in _edges(typed)}
    missing = list(gaps(checks_by_release, edges))
    for gap in missing:
        _write_out(f"{gap}\n")
    numbers = {"release": len(checks_by_release), "update": len(edges), "gap": len(missing)}
    _write_out(", ".join(count(number, noun) for noun, number in numbers.items()) + "\n")
    return 1 if missing else 0


def _edges(typed: str) -> list[tuple[Version, Version]]:
    """Returns the updates that `--update` names: `FROM..TO`, or a file of an update graph.

    A graph is as the update service answers it: nodes, and edges by their numbers. Raises CommandError.
    """
    import json

    # A file may have two dots in its name, too.
    if ".." in typed and not Path(typed).is_file():
        source, _, target = typed.partition("..")
        return [(_parse_version(source, "--update"), _parse_version(target, "--update"))]
    try:
        graph = json.loads(read_limited(typed))
        versions = [_parse_version(node["version"], "--update") for node in graph["nodes"]]
        unconditional = [(versions[source], versions[target]) for source, target in graph["edges"]]
        return unconditional + [
            (_parse_version(edge["from"], "--update"), _parse_version(edge["to"], "--update"))
            for group in graph.get("conditionalEdges") or ()
            for edge in group["edges"]
        ]
    except (OSError, ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CommandError(f"--update {typed}: is neither FROM..TO nor an update graph: {error}") from error


def _parse_version(text: str, flag: str) -> Version:
    """Returns the version that a flag names. Raises CommandError."""
    from kubekit.lang.version import Version, VersionError

    try:
        return Version(text)
    except VersionError as error:
        raise CommandError(f"{flag}: {error}") from error


@checks.command("new")
@click.argument("name")
@click.option("--component", default="my-component", show_default=True, help="Whose check it is.")
@click.option(
    "--resource",
    default="",
    metavar="PLURAL.VERSION.GROUP",
    help="The kind that it reads; --kind is enough for a kind that runup knows. By default ConfigMaps.",
)
@click.option("--kind", default="", help="The kind of that.")
@click.option(
    "--target", default="5.2.0", show_default=True, metavar="VERSION", help="The first release that it is for."
)
@click.option("--in", "folder", default=".", show_default=True, metavar="DIR", help="Where the files go.")
@click.option(
    "--builtin", "area", default="", metavar="AREA", help="A check of runup itself, in its sources: nodes, ..."
)
def new(*, name: str, component: str, resource: str, kind: str, target: str, folder: str, area: str) -> None:
    """Write a check and its cases, to be filled in; nothing that exists is replaced.

    \b
      runup checks new old-routes --resource routes.v1.route.openshift.io --kind Route --in preflight-checks
      runup checks new old-pods --kind Pod
      runup checks new OldNodes --builtin nodes --component machine-config
    """
    import re

    from runup.checks.control.skeleton import built_in_files, complete_resource, skeleton

    if area:
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,62}", name):
            raise CommandError(f"{name!r} is not a name of a built-in check; use words such as OldNodes")
        files = built_in_files(Path(folder), name, area, component)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        _write_out(
            f"Wrote {next(iter(files))} and its rows. Fill it in, then: python tools/check_pages.py && "
            "python -m tests.golden.findings && python -m pytest tests/checks tests/golden\n"
        )
        return
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise CommandError(
            f"{name!r} is not a name of a check; use small letters, digits and dashes, for example old-routes"
        )
    _parse_version(target, "--target")
    resource, kind = complete_resource(resource, kind)
    into = Path(folder)
    paths = (into / f"{name}.yaml", into / f"{name}.test.yaml")
    # All are looked at before the first is written, so that nothing is left half-done.
    for path in paths:
        if path.exists():
            raise CommandError(f"{path} exists; it is not replaced")
    try:
        into.mkdir(parents=True, exist_ok=True)
        for path, text in zip(
            paths,
            skeleton(name, component, resource=resource, kind=kind, target=target, file=str(paths[0])),
            strict=True,
        ):
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{into}: cannot be written: {error}") from error
    _write_out(
        f"Wrote {paths[0]} and {paths[1]}. Fill them in, then: runup checks lint {into} && runup checks test {into}\n"
    )
