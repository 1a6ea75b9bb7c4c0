"""`cluster-version-operator preflight`, which a managing operator runs from the target's image.

Flags and environment in, a report out. Anything heavy is imported after the flags are validated, so that an unknown
format is refused at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kubekit.http.quick_imports import quick_imports
from runup.cli.errors import CommandError
from runup.cli.lazy import Command
from runup.cli.options import with_options

FORMAT = "preflight-v1-json"
# The exit code of a scheduled run that found what no report before it has: its Job fails, which an alert can see.
FOUND_NEWS = 4


OPTIONS = (
    click.option("--format", "format_", default=FORMAT, show_default=True, help="The report's format."),
    click.option("--once", is_flag=True, help="Write one report, then exit."),
    click.option("--reads", is_flag=True, help="Print what the checks of this image's Python read, then exit."),
    click.option(
        "--report",
        envvar="PREFLIGHT_REPORT",
        default="-",
        show_default=True,
        metavar="FILE",
        help="File, or - for stdout.",
    ),
    click.option(
        "--release-dir",
        envvar="PAYLOAD_OVERRIDE",
        default="/",
        show_default=True,
        type=click.Path(path_type=Path),
        help="Where the release image's folders are.",
    ),
    click.option(
        "--to", envvar="PREFLIGHT_TARGET_VERSION", default="", help="Target version instead of the release's own."
    ),
    click.option(
        "--to-channel",
        envvar="PREFLIGHT_TARGET_CHANNEL",
        default="",
        metavar="CHANNEL",
        help="Check the newest release that ClusterVersion lists in this channel; `latest` is any channel.",
    ),
    click.option(
        "--from", "from_", envvar="PREFLIGHT_SOURCE_VERSION", default="", help="Source version, if not the cluster's."
    ),
    click.option("--kubeconfig", default=None, help="Cluster to check, by default the one this runs in."),
    click.option("--context", default=None, help="Context of the kubeconfig."),
    click.option(
        "--prometheus-url",
        envvar="PREFLIGHT_PROMETHEUS_URL",
        default="",
        metavar="URL",
        help="A Prometheus or Thanos for checks that are queries; '' disables queries.",
    ),
    click.option("--prometheus-ca", default="", metavar="FILE", help="Certificate authorities for it."),
    click.option(
        "--catalogs",
        envvar="PREFLIGHT_CATALOGS",
        type=click.Choice(["read", "skip"]),
        default="read",
        show_default=True,
        help="Whether the catalogs of operators that the target brings are read out of their registries.",
    ),
    click.option(
        "--inner-registry",
        envvar="PREFLIGHT_INNER_REGISTRIES",
        multiple=True,
        metavar="HOST[:PORT]",
        help="A registry on this machine, link-local, or behind a Service that the cluster's objects may name.",
    ),
    click.option(
        "--plain-http",
        envvar="PREFLIGHT_PLAIN_HTTP",
        multiple=True,
        metavar="HOST[:PORT]",
        help="A registry that speaks plain HTTP; may be given again.",
    ),
    click.option(
        "--rehearse",
        envvar="PREFLIGHT_REHEARSE",
        is_flag=True,
        help="Rehearse the update on a copy of the cluster, too, in a separate process.",
    ),
    click.option(
        "--rehearse-seconds",
        envvar="PREFLIGHT_REHEARSE_SECONDS",
        default=300,
        show_default=True,
        type=click.IntRange(1, 86400),
        help="Seconds that the rehearsal may take; what is not tried then is Unknown.",
    ),
    click.option(
        "--rehearse-memory-mib",
        envvar="PREFLIGHT_REHEARSE_MEMORY_MIB",
        default=0,
        type=click.IntRange(0),
        help="Memory that the rehearsal may have; 0 for any amount.",
    ),
    click.option("--check-timeout", default=10.0, show_default=True, help="Seconds that one check may take."),
)


@click.command("preflight", cls=Command)
@with_options(OPTIONS)
def preflight(format_: str, reads: bool, **flags: Any) -> int:
    """Check a cluster for an update to this release, changing nothing.

    Exit code 4: with the kept reports as destination, the report names risks that none before it does.
    """
    if reads:
        from runup.checks.catalogue.own_rights import own_rights
        from runup.checks.decide import rights
        from runup.facts.target_release import python_checks

        sys.stdout.buffer.write(rights.to_file(own_rights(), rights.rights_of_checks(python_checks())))
        return 0
    # A managing operator of a later release may ask for a format that this one does not know.
    if format_ != FORMAT:
        raise CommandError(f'unknown format "{format_}"; this release writes {FORMAT}')
    folder = flags["release_dir"]
    source = click.get_current_context().get_parameter_source("release_dir")
    typed = source is click.core.ParameterSource.COMMANDLINE
    if typed and not any((folder / name).is_dir() for name in ("preflight-checks", "release-manifests")):
        raise CommandError(f"--release-dir {folder} holds neither a folder preflight-checks nor release-manifests")
    import asyncio

    with quick_imports():
        from runup.target import start

    return FOUND_NEWS if asyncio.run(start.run(flags)) else 0
