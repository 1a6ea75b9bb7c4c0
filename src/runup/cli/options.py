"""A command's options as a table: rows in, a decorator out, so that a command's body is read without its flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def with_options(rows: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Add the options of `rows` to a command; `--help` lists them in the table's order."""

    def decorate(command: F) -> F:
        for option in reversed(rows):
            command = option(command)
        return command

    return decorate
