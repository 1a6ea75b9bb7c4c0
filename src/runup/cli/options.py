"""Options as the commands have them: rows of a table become a decorator, and the text of a help is taken as written.

click tidies every help text with `inspect`, whose import takes as long as half an interpreter, and translates its own,
which reads the machine's locale. Ours are tidy and English: `option` and `HelpOption` do without both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """A click option whose help is one line, taken as it is."""

    def __init__(self, *args: Any, help: str | None = None, **kwargs: Any) -> None:  # noqa: A002 (click's name)
        super().__init__(*args, **kwargs)
        self.help = help


class HelpOption(Option):
    """`--help`: prints the help of its command, and ends it."""

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


option = partial(click.option, cls=Option)
"""As `click.option`."""


def with_options(rows: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Add the options of `rows` to a command; `--help` lists them in the table's order."""

    def decorate(command: F) -> F:
        for row in reversed(rows):
            command = row(command)
        return command

    return decorate
