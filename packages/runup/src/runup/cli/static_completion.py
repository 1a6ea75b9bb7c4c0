"""Completes the values of flags without a request to a cluster: fixed words, scenarios, folders.

Completion that needs a request is in `runup.cli.cluster_completion`. Any error here results in no completion, too: a
shell that prints an error into the line is worse than one that offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def item(value: str, **text: Any) -> CompletionItem:
    """Returns one candidate; `help` is its description, `type` leaves completion to the shell (`dir`, `file`)."""
    from click.shell_completion import CompletionItem  # only a command line that is being completed needs it

    return CompletionItem(value, **text)


def complete_from(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Returns a completer that offers those of `names` that begin with the typed text."""

    def complete_name(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [item(name) for name in names(ctx) if name.startswith(incomplete)]
        except Exception:  # noqa: BLE001 (see the module's docstring)
            return []

    return complete_name


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leaves the completion of folder names to the shell."""
    return [item(incomplete, type="dir")]


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leaves the completion of file names to the shell."""
    return [item(incomplete, type="file")]
