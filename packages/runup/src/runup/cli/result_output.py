"""Prints the result of a command that changes something: oc's lines, or with `-o` one object in their place.

Warnings go to stderr in either case. The object contains what was sent to the server, if anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from runup.cli.render.text import Output, machine

JSON = dict[str, Any]


class ResultPrinter:
    """A printer that prints at once, or keeps stdout's part for `done`. `form` is empty, `json` or `yaml`."""

    def __init__(self, action: str, form: str | None) -> None:
        self._action = action
        self._form = form
        self._messages: list[str] = []

    def say(self, *output: Output) -> None:
        """Writes each part to its stream, in order."""
        for stream, text in output:
            if stream == "out" and self._form:
                self._messages.append(text.strip("\n"))
                continue
            target = sys.stdout if stream == "out" else sys.stderr
            target.write(text)
            target.flush()

    def extend(self, output: Iterable[Output]) -> None:
        """Writes the parts of a sequence."""
        self.say(*output)

    def done(self, patch: JSON | None, **more: Any) -> None:
        """Prints the object, if requested; `patch` is the sent patch, None if no change was needed."""
        if self._form:
            result = {"action": self._action, "changed": patch is not None, "patch": patch, "messages": self._messages}
            sys.stdout.write(machine(result | more, self._form))
            sys.stdout.flush()
