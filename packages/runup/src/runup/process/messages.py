"""Messages that a use case has for its user; a command writes them to its streams, the console shows them on a page."""

from __future__ import annotations

from typing import Literal, Protocol

Stream = Literal["out", "err"]
# A part of the output: the stream, and the exact text.
Output = tuple[Stream, str]


class Say(Protocol):
    """Takes messages in the order in which they must be read; called before the next request is sent."""

    def __call__(self, *output: Output) -> None:
        """Passes the messages on."""


def out(text: str) -> Output:
    """Returns `text` for stdout."""
    return ("out", text)


def err(text: str) -> Output:
    """Returns `text` for stderr."""
    return ("err", text)


def indent_lines(message: str) -> str:
    """Returns `message` with two blanks after every newline, empty lines included."""
    return message.replace("\n", "\n  ")


def reason_and_message(reason: str, message: str) -> str:
    """Returns the two lines that follow a condition's name, without a newline at the end."""
    return f"  Reason: {reason}\n  Message: {indent_lines(message)}"
