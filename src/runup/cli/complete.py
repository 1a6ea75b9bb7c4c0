"""What completes the values of flags without asking a cluster: fixed words, scenarios, contexts, folders.

What a cluster is asked for is in `runup.cli.upgrade.names`. Whatever goes wrong here completes nothing, too: a shell
that prints an error into the line is worse than one that offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def of(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """A completer that offers those of `names` which begin with what was typed."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name) for name in names(ctx) if name.startswith(incomplete)]
        except Exception:  # noqa: BLE001 (see the module's docstring)
            return []

    return complete


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell: names of folders."""
    return [CompletionItem(incomplete, type="dir")]


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell: names of files."""
    return [CompletionItem(incomplete, type="file")]


def _scenarios(_: click.Context) -> Iterable[str]:
    from runup.sandbox.scenario import folder

    return folder.names()


def _contexts(ctx: click.Context) -> Iterable[str]:
    from runup.kube.config import context_names

    return context_names(ctx.params.get("kubeconfig"))


scenarios = of(_scenarios)
contexts = of(_contexts)
