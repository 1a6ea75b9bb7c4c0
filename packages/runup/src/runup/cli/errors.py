"""Turns an error into text on stderr and an exit code, in `oc`'s words; no other module does.

A command raises `CommandError` (its message is the whole of what the user reads), `UsageProblem`, or an error of the
kube layer; `describe` turns it into text. An unknown exception is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import click
import msgspec

from kubekit.error_types import InputError
from runup.process.error_texts import file_text, kube_text, with_prefix


class CommandError(InputError):
    """An error that ends the command with an exit code; `message` names the problem and a solution."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class UsageProblem(click.UsageError):
    """An error in the command line itself; like `oc`, the message adds where the help is."""


class Failure(msgspec.Struct, frozen=True):
    """The text for stderr, and the exit code."""

    text: str
    code: int = 1


def describe(error: Exception) -> Failure | None:
    """Returns what the user reads of `error`, or None if it is a bug of ours."""
    if isinstance(error, CommandError):
        return Failure(with_prefix(error.message), error.code)
    if isinstance(error, InputError):
        return Failure(with_prefix(error.message))
    if isinstance(error, click.ClickException):
        return Failure(with_prefix(_usage(error)))
    text = kube_text(error) or file_text(error)
    return Failure(text) if text else None


def _usage(error: click.ClickException) -> str:
    """Returns the text about wrong usage, as `oc` words it."""
    text = error.format_message()
    if isinstance(error, click.NoSuchOption):
        near = f" (did you mean {' or '.join(sorted(error.possibilities))}?)" if error.possibilities else ""
        text = f"unknown flag: {error.option_name}{near}"
    elif isinstance(error, click.BadOptionUsage) and error.option_name and "requires an argument" in text:
        text = f"flag needs an argument: {error.option_name}"
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return f"{text}\nSee '{ctx.command_path} -h' for help and examples" if ctx else text
