"""Turns an error into text on stderr and an exit code, in `oc`'s words; no other module does.

A command raises `CommandError` (its message is the whole of what the user reads), `UsageProblem`, or an error of the
kube layer; `describe` turns it into text. An unknown exception is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import click
import msgspec

from kubekit.error_types import InputError
from kubekit.lang.gotext import quote_go


class CommandError(InputError):
    """An error that ends the command with an exit code; `message` says what is wrong and the way out."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class UsageProblem(click.UsageError):
    """An error in the command line itself; like `oc`, the message adds where the help is."""


class Failure(msgspec.Struct, frozen=True):
    """The text for stderr, and the exit code."""

    text: str
    code: int = 1


def with_prefix(message: str) -> str:
    """Returns the message with `error: ` once, and one newline at the end (kubectl's CheckErr)."""
    text = message if message.startswith("error: ") else f"error: {message}"
    return text if text.endswith("\n") else text + "\n"


def describe(error: Exception) -> Failure | None:
    """Returns what the user reads of `error`, or None if it is a bug of ours."""
    if isinstance(error, CommandError):
        return Failure(with_prefix(error.message), error.code)
    if isinstance(error, InputError):
        return Failure(with_prefix(error.message))
    if isinstance(error, click.ClickException):
        return Failure(with_prefix(_usage(error)))
    return _of_kube(error) or _of_file(error)


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


def _of_kube(error: Exception) -> Failure | None:
    """Returns the failure for an error of the kube layer, None if `error` is none of those."""
    # These errors can only be raised once the kube layer is imported, so it need not be imported to recognise them.
    import sys

    codec = sys.modules.get("kubekit.api.codec")
    if codec is not None and isinstance(error, codec.DecodeError):
        return Failure(with_prefix(f"the server's answer could not be read: {error}"))
    kube = sys.modules.get("kubekit.kube.api_errors")
    if kube is None or not isinstance(error, kube.KubeError):
        return None
    if isinstance(error, kube.Unreachable):
        return Failure(_unreachable_text(error.address, error.detail, refused=error.refused))
    if isinstance(error, kube.Unauthorized):
        return Failure(with_prefix(f"You must be logged in to the server ({error.message})"))
    if isinstance(error, kube.Invalid):
        return Failure(_invalid_text(error))
    if isinstance(error, kube.ApiError):
        return Failure(f"Error from server ({error.reason}): {error.message}\n")
    return Failure(with_prefix(error.message))


def _unreachable_text(address: str, detail: str, *, refused: bool) -> str:
    if refused:
        return f"The connection to the server {address} was refused - did you specify the right host or port?\n"
    return f"Unable to connect to the server: {detail}\n"


def _invalid_text(error: Exception) -> str:
    """Returns kubectl's text for a 422: one cause on the same line, several on lines below (pkg/cmd/util checkErr)."""
    from kubekit.kube.api_errors import Invalid

    assert isinstance(error, Invalid)
    details = error.status.details
    causes = [] if details is None else [f"{c.field}: {c.message}" if c.field else c.message for c in details.causes]
    # kubectl prints each cause once (k8s.io/kubectl pkg/cmd/util, statusCausesToAggrError).
    causes = list(dict.fromkeys(causes))
    if details is None or not (details.kind or details.name):
        head = "The request is invalid"
        if not causes:
            return f"{head}: {error.message}\n"
    else:
        head = f"The {details.kind} {quote_go(details.name)} is invalid"
    if not causes:
        return f"{head}\n"
    if len(causes) == 1:
        return f"{head}: {causes[0]}\n"
    return "".join([f"{head}: \n", *(f"* {cause}\n" for cause in causes)])


def _of_file(error: Exception) -> Failure | None:
    """Returns the text about a named file or folder that cannot be used, or about a full disk."""
    if isinstance(error, OSError) and error.strerror:
        file_prefix = f"{error.filename}: " if error.filename else ""
        return Failure(with_prefix(f"{file_prefix}{error.strerror}"))
    return None
