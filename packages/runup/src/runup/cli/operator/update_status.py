"""`cluster-version-operator update-status-controller`: turns flags into `Options` and runs the controller."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from runup.cli.operator.command_process import add_serving_options, common, leadership, run_process
from runup.cli.startup.quick_imports import quick_imports

if TYPE_CHECKING:
    from runup.updatestatus.control.process import Options


@click.command("update-status-controller")
@click.option("--kubeconfig", default=None, metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    default="openshift-update-status-controller",
    show_default=True,
    help="Where the leader's lease is kept.",
)
@click.option(
    "--alerts-url", default="", metavar="URL", help="A Prometheus or Thanos to ask for alerts; '' disables queries."
)
@click.option("--alerts-ca", default="", metavar="FILE", help="Certificate authorities for it.")
@add_serving_options("")
@leadership
@click.option(
    "--write-interval",
    default=0.3,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    help="The object is written this often at most.",
)
@click.option(
    "--mock-now", default="", metavar="TIME", hidden=True, help="What time it is for a cluster out of a dump."
)
def update_status_controller(**flags: Any) -> None:
    """Keep the object UpdateStatus up to date: how the update goes, and what needs the administrator."""
    sys.exit(run(flags))


def run(flags: Mapping[str, Any]) -> int:
    """Runs the controller; returns 0 when told to stop, 1 with one line on stderr if it cannot run."""
    import uvloop

    with quick_imports():
        from runup.updatestatus.control.process import serve

    return run_process(flags, options_of, serve, uvloop.run)


def options_of(flags: Mapping[str, Any]) -> Options:
    """Returns the controller's options. Raises ValueError that names the flag which cannot be parsed."""
    from datetime import datetime

    from runup.updatestatus.control.controller import Timing
    from runup.updatestatus.control.process import Options

    now = flags["mock_now"]
    try:
        # Ages in a dump are meant as of when it was taken.
        fixed = datetime.fromisoformat(now) if now else None
    except ValueError as error:
        raise ValueError(f"--mock-now {now}: {error}") from error
    return Options(
        **common(flags),
        namespace=flags["namespace"],
        alerts_url=flags["alerts_url"],
        alerts_ca=flags["alerts_ca"],
        timing=Timing(interval_s=flags["write_interval"]),
        fixed_now=fixed,
    )
