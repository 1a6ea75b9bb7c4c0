"""`cluster-version-operator version`: prints the operator's version."""

from __future__ import annotations

import click

from runup import __version__
from runup.cli.lazy import Command


@click.command("version", cls=Command)
def version() -> None:
    """Print the version of this operator."""
    click.echo(f"ClusterVersionOperator {__version__}")
