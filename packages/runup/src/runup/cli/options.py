"""Options of commands: a decorator from the rows of a table, and options that take a help text as it is.

click tidies every help text with `inspect`, whose import takes as long as half an interpreter's start, and translates
its own texts, for which it reads the machine's locale. Our texts are tidy and English: `option` and `HelpOption` need
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from runup import __version__

F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """A click option whose help is one line, taken as it is."""

    def __init__(self, *args: Any, help: str | None = None, **kwargs: Any) -> None:  # noqa: A002 (click's name)
        super().__init__(*args, **kwargs)
        self.help = help


class HelpOption(Option):
    """The option `--help`, which prints the help of its command and ends it."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            [*names, "show_help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_help,
            help="Show this message and exit.",
        )


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001
    if value and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 (click's signature)
    """Prints the version of runup and ends the command if `value` is set."""
    if value and not ctx.resilient_parsing:
        click.echo(f"Client Version: {__version__}")
        ctx.exit()


def typed_version(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001 (click's signature)
    """Returns the typed version without a leading `v`; the command itself refuses invalid versions."""
    if not value:
        return value
    # Only now: semantic versions take time to import, and most commands are started without one.
    from kubekit.lang.version import without_v

    return without_v(value)


def typed_target(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Returns the target version that was typed, without a `v` before it. Raises CommandError if it is none.

    Of Kubernetes, which has the major version 1, a minor version is a target, too.
    """
    version = typed_version(ctx, param, value)
    if not version or version.startswith("1.") or ctx.resilient_parsing:
        return version
    from kubekit.lang.version import parse
    from runup.cli.errors import CommandError

    if parse(version) is None:
        raise CommandError(f"{param.opts[0]}: {version!r} is not a semantic version such as 5.2.0 or 5.2.0-rc.1")
    return version


option = partial(click.option, cls=Option)
"""The decorator `click.option` with our `Option` class."""


version_option = partial(click.option, default="", metavar="VERSION", callback=typed_target)
"""The decorator `click.option` for a version that a user types."""


def with_options(rows: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Adds the options of `rows` to a command; `--help` lists them in the table's order."""

    def decorate(command: F) -> F:
        for row in reversed(rows):
            command = row(command)
        return command

    return decorate
