"""What completes the values of flags without asking a cluster: fixed words, scenarios, folders.

What a cluster is asked for is in `runup.cli.names`. Whatever goes wrong here completes nothing, too: a shell
that prints an error into the line is worse than one that offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def item(value: str, **said: Any) -> CompletionItem:
    """One candidate; `help` is what is said of it, `type` leaves it to the shell (`dir`, `file`)."""
    from click.shell_completion import CompletionItem  # only a command line that is being completed needs it

    return CompletionItem(value, **said)


def of(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """A completer that offers those of `names` which begin with what was typed."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [item(name) for name in names(ctx) if name.startswith(incomplete)]
        except Exception:  # noqa: BLE001 (see the module's docstring)
            return []

    return complete


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell: names of folders."""
    return [item(incomplete, type="dir")]


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell: names of files."""
    return [item(incomplete, type="file")]
