"""A click group whose commands are imported when they are used, not when they are listed.

In goes a table of names, places and one-line summaries; out comes a group whose help and completion read the table
alone. It prevents that `runup version` pays for what `runup upgrade` needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

_WHOLE = 500


class Group(click.Group):
    """A click group that completes its commands with their whole first sentence; click cuts it at 45 characters."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands and options."""
        names = [
            CompletionItem(name, help=self.summary(ctx, name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def summary(self, ctx: click.Context, name: str) -> str | None:
        """One line about the command of that name."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_WHOLE) if command is not None else None


class LazyGroup(Group):
    """A group over `places` (name -> "module:attribute") and `summaries` (name -> one line of help)."""

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str] | None = None,
        summaries: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.places = places or {}
        self.summaries = summaries or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name of the table, in its order."""
        return [*self.places, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None where the table has no such name."""
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in `--help`, out of the table."""
        rows = [(name, self.summaries.get(name, "")) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def summary(self, ctx: click.Context, name: str) -> str | None:  # noqa: ARG002
        """Out of the table, without importing any command."""
        return self.summaries.get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but an unknown name is reported with everything that followed it, as `oc` does."""
        if ctx.resilient_parsing or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        from runup.cli.errors import UsageProblem
        from runup.lang.gotext import quoted

        raise UsageProblem(f"unknown command {quoted(' '.join(args))}", ctx)
