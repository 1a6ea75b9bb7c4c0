"""The command `runup kmod check`: whether the cluster's kernel modules will load on another kernel.

Parses the flags and calls `check`; needs no controller in the cluster.
"""

from __future__ import annotations

from typing import Any

import click

from runup.cli.connection import connection_of, connection_options
from runup.cli.lazy import Group
from runup.cli.release.shared import access, inner_option, registry_options, run_guarded


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
    with the flags below alone. Exit codes as for `--wait`: 0 all will load, 2 some will not, 3 something could not be
    told or would have to be built, 1 could not be judged.

    \b
      runup kmod check --to-image registry.example/release:5.2.0
      runup kmod check --kernel 5.14.0-427.50.1.el9_4.x86_64 --module drivers/nic -o yaml
      runup kmod check --to-image registry.example/release:5.2.0 --dump must-gather
    """
    from runup.cli.kernelmodules import check as checking

    if sum(map(bool, (to_image, kernel, toolkit_image))) != 1:
        raise click.UsageError("give one of --to-image, --kernel and --toolkit-image", ctx)
    flags = checking.Flags(to_image, kernel, toolkit_image, modules, dump, at_once, output)
    return run_guarded(lambda: checking.run(connection_of(ctx), flags, access(**registry)))
