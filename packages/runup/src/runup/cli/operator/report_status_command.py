"""`cluster-version-operator report-status`, which a Job of the hub's add-on runs in each cluster."""

from __future__ import annotations

import sys

import click

from runup import __version__
from runup.cli.lazy import Command
from runup.fleet.decide.status_schedule import COMMAND

AGENT = f"runup-status/{__version__}"


@click.command(COMMAND, cls=Command)
@click.option("--kubeconfig", default=None, help="Cluster to read, by default the one this runs in.")
@click.option("--context", default=None, help="Context of the kubeconfig.")
def report_status(kubeconfig: str | None, context: str | None) -> int:
    """Store the progress of the update and the available updates where the agent of a hub reads them.

    Unreadable data is named in its place; exit code 1 if nothing could be written.
    """
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.config import load
    from runup.fleet.control import status_report

    with SyncClient(load(kubeconfig, context), user_agent=AGENT) as client:
        problems = status_report.report_status(client)
    for problem in problems:
        sys.stderr.write(f"could not be read, which is reported to the hub: {problem}\n")
    return 0
