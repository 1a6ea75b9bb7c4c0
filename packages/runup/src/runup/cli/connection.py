"""The connection options, before or after the command's name, and the client made from them.

The kube layer is imported just before the first request, so that help, flag errors and `runup version` start without
loading it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from runup.cli import static_completion
from runup.cli.options import option, with_options
from runup.process.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])


def connection_of(ctx: click.Context) -> Connection:
    """Returns the connection that this command line describes."""
    return ctx.find_root().ensure_object(Connection)


def _remember_option(ctx: click.Context, param: click.Parameter, value: str | tuple[str, ...] | None) -> None:
    # An option that is not given must not overwrite the one before the subcommand.
    if value and param.name is not None:
        setattr(connection_of(ctx), param.name, value)


def _remember_one(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    """Stores an option, given before or after the command's name. Raises CommandError for two different values.

    A user who names two clusters means both, and an update requested of the wrong one is hard to undo.
    """
    connection, name = connection_of(ctx), str(param.name)
    before: str | None = getattr(connection, name)
    for option_value in filter(None, value):
        if before is not None and before != option_value and not ctx.resilient_parsing:
            from runup.cli.errors import CommandError

            several = "; of several clusters: runup fleet, with --contexts" if name == "context" else ""
            raise CommandError(
                f"{param.opts[0]} is given twice, {before} and {option_value}: give one of them{several}"
            )
        before = option_value
    setattr(connection, name, before)


def _contexts(ctx: click.Context) -> Iterable[str]:
    from kubekit.kube.config import context_names

    return context_names(connection_of(ctx).kubeconfig)


_OPTIONS = (
    option(
        "--kubeconfig",
        metavar="PATH",
        shell_complete=static_completion.files,
        expose_value=False,
        callback=_remember_one,
        multiple=True,
        help="The kubeconfig to use; else $KUBECONFIG, else ~/.kube/config.",
    ),
    option(
        "--context",
        metavar="NAME",
        shell_complete=static_completion.complete_from(_contexts),
        expose_value=False,
        callback=_remember_one,
        multiple=True,
        help="The context of the kubeconfig to use.",
    ),
    option(
        "--as",
        "as_user",
        metavar="NAME",
        expose_value=False,
        callback=_remember_one,
        multiple=True,
        help="Act as this user.",
    ),
    option(
        "--as-group",
        metavar="NAME",
        multiple=True,
        expose_value=False,
        callback=_remember_option,
        help="Act as a member of this group; may be repeated.",
    ),
)


def connection_options(function: F) -> F:
    """Adds `--kubeconfig`, `--context`, `--as` and `--as-group`, which may stand before or after the command's name."""
    return with_options(_OPTIONS)(function)
