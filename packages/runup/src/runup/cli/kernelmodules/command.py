"""The command `runup kmod check`: whether the cluster's kernel modules will load on another kernel.

Parses the flags, calls `module_check` and prints its result; needs no controller in the cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Group
from runup.cli.output import screen_of, write
from runup.cli.release.shared import access, inner_option, registry_options, run_guarded
from runup.cli.render.screen import PIPE, Screen
from runup.cli.render.table import Column, Row, Table, draw_table
from runup.cli.render.text import err, machine, out
from runup.kernelmodules.control.module_check import CheckRequest, CheckResult, check_modules
from runup.kernelmodules.decide.readiness import Readiness, Status
from runup.preflight.decide.findings import APPLY, EXIT_CLEAR, UNKNOWN

JSON = dict[str, Any]
NO_MODULES = "No Modules load a kernel module here.\n"
_STYLES = {"True": "green", "False": "red", "Unknown": "yellow"}


def table(readinesses: Sequence[Readiness], screen: Screen = PIPE, *, wide: bool = False) -> str:
    """Returns a table with a row for each Module and kernel, the reason in full; `wide` adds the image."""
    if not readinesses:
        return NO_MODULES
    columns = [Column(title="MODULE", folds=True), Column(title="KERNEL", folds=True), Column(title="STAGE")]
    columns += [Column(title="VERIFIED", styles=_STYLES), *([Column(title="IMAGE", folds=True)] if wide else [])]
    rows = []
    for readiness in readinesses:
        name = f"{readiness.namespace}/{readiness.name}" if readiness.namespace else readiness.name
        kernel = readiness.kernel or (f"unknown ({readiness.architecture})" if readiness.architecture else "-")
        image = (readiness.image,) if wide else ()
        rows.append(Row((name, kernel, readiness.stage, readiness.status.value, *image, readiness.reason)))
    return draw_table(Table(columns=(*columns, Column(title="REASON", flows=True)), rows=rows), screen) + summary(
        readinesses
    )


def summary(readinesses: Sequence[Readiness]) -> str:
    """Returns a summary in one line: how many Modules are verified, will not load, are not known.

    A Module for several kernels counts once, as in the status of a validation: it must be verified for each of them.
    """
    by_module: dict[tuple[str, str], set[Status]] = {}
    for readiness in readinesses:
        by_module.setdefault((readiness.namespace, readiness.name), set()).add(readiness.status)
    worst = [
        next(status for status in (Status.FALSE, Status.UNKNOWN, Status.TRUE) if status in found)
        for found in by_module.values()
    ]
    counts = {status: worst.count(status) for status in Status}
    parts = [f"{counts[Status.TRUE]} of {len(by_module)} verified"]
    if counts[Status.FALSE]:
        parts.append(f"{counts[Status.FALSE]} will not load")
    if counts[Status.UNKNOWN]:
        parts.append(f"{counts[Status.UNKNOWN]} not known")
    return f"\n{', '.join(parts)}.\n"


def as_data(readinesses: Sequence[Readiness], notes: Sequence[str]) -> JSON:
    """Returns the result as JSON data, with the field names of a PreflightValidation's status."""
    return {
        "modules": [
            {
                "namespace": readiness.namespace,
                "name": readiness.name,
                "kernelVersion": readiness.kernel,
                "architecture": readiness.architecture,
                "image": readiness.image,
                "verificationStage": readiness.stage,
                "verificationStatus": readiness.status.value,
                "statusReason": readiness.reason,
            }
            for readiness in readinesses
        ],
        "notes": list(notes),
    }


@click.group("kmod", cls=Group)
@connection_options
def kmod() -> None:
    """Kernel modules that are not the kernel's own: will they load after the update?

    \b
      runup kmod check --to-image registry.example/release:5.2.0
      runup kmod check --kernel 5.14.0-427.50.1.el9_4.x86_64
    """


@kmod.command("check")
@click.option("--to-image", default="", metavar="IMAGE", help="The release to go to; its kernels are read out of it.")
@click.option("--kernel", default="", metavar="VERSION", help="The kernel, as `uname -r` prints it there.")
@click.option("--toolkit-image", default="", metavar="IMAGE", help="The driver toolkit that names the kernels.")
@click.option("--module", "modules", multiple=True, metavar="[NAMESPACE/]NAME", help="These alone; may be repeated.")
@click.option("--dump", default="", metavar="DIR", help="A must-gather or another dump instead of a cluster.")
@click.option("--at-once", default=8, show_default=True, type=click.IntRange(1, 64), help="Images read at a time.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml"]),
    help="With images (wide), or a format for programs (json, yaml).",
)
@inner_option
@registry_options
@connection_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    to_image: str,
    kernel: str,
    toolkit_image: str,
    modules: tuple[str, ...],
    dump: str,
    at_once: int,
    output: str | None,
    **registry: Any,
) -> int:
    """Look whether each Module has an image with its kernel modules for another kernel; builds and changes nothing.

    Registries are asked as the cluster's nodes ask them, with the pull secrets and mirrors that may be read; for a dump
    with the flags below alone. Exit codes as for `--wait`: 0 all will load, 2 some will not, 3 something is
    unknown or would have to be built, 1 could not be evaluated.

    \b
      runup kmod check --to-image registry.example/release:5.2.0
      runup kmod check --kernel 5.14.0-427.50.1.el9_4.x86_64 --module drivers/nic -o yaml
      runup kmod check --to-image registry.example/release:5.2.0 --dump must-gather
    """
    if sum(map(bool, (to_image, kernel, toolkit_image))) != 1:
        raise click.UsageError("give one of --to-image, --kernel and --toolkit-image", ctx)
    request = CheckRequest(
        to_image=to_image, kernel=kernel, toolkit_image=toolkit_image, modules=modules, dump=dump, at_once=at_once
    )

    def run() -> int:
        result = check_modules(connection_of(ctx), request, access(**registry))
        text = (
            machine(as_data(result.found, result.notes), output)
            if output in ("json", "yaml")
            else table(result.found, screen_of(sys.stdout), wide=output == "wide")
        )
        write([*(err(f"warning: {note}\n") for note in result.notes), out(text)])
        return exit_code(result)

    return run_guarded(run)


def exit_code(result: CheckResult) -> int:
    """Returns 2 if a Module will not load, else 3 if that is not known about a Module or if there are notes, else 0."""
    # The same codes as those of `--wait`: docs/decisions/0017-what-the-wait-and-its-exit-code-mean.md.
    statuses = {readiness.status for readiness in result.found}
    if Status.FALSE in statuses:
        return APPLY
    return UNKNOWN if Status.UNKNOWN in statuses or result.notes else EXIT_CLEAR
