"""`cluster-version-operator version`: prints the operator's version."""

from __future__ import annotations

import click

from runup import __version__


@click.command("version")
def version() -> None:
    """Print the version of this operator."""
    click.echo(f"ClusterVersionOperator {__version__}")
