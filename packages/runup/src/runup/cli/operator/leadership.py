"""Leader election flags of every controller process: a decorator adds them, and an `Election` is parsed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from runup.process.leader_election import Election


def leadership(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--leader-elect` and `--lease` to a command."""
    command = click.option(
        "--lease",
        default=None,
        metavar="DURATION,RENEW,RETRY",
        help="Seconds of the leader's lease, instead of 137,107,26 (270,240,60 with one control plane node). "
        "A killed leader's successor waits for DURATION.",
    )(command)
    return click.option(
        "--leader-elect/--no-leader-elect", default=True, show_default=True, help="Wait for the lease before writing."
    )(command)


def read_election(lease: str | None) -> Election | None:
    """Returns the parsed `--lease`, None if it was not given. Raises ValueError that names the flag."""
    from runup.process.leader_election import election_of

    try:
        return election_of(lease) if lease else None
    except ValueError as error:
        raise ValueError(f"--lease {lease}: {error}") from error
