"""Reads YAML's flow collections, `[a, b]` and `{a: 1}`, where they look as people and tools write them.

In: the text from the bracket to the one that closes it, its lines without their indentation. Out: the values that
`yaml_events` builds from it, or `NotPlain` if that is not certain. It is the counterpart of `yaml_plain`
for flow collections, in a separate module because most files need no pattern.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from kubekit.lang.yaml_scalars import NotPlain, scalar, unescape_json

_MAX_DEPTH = 20
_MAX_KEY = 256

# What an unquoted scalar may consist of here: nothing that means something in a flow collection, or might.
_WORD = r"""(?:[^\s,\[\]{}:#?"'`&*!|>%@]|:(?=[A-Za-z0-9/]))+"""
_TOKEN = re.compile(
    rf"""
      [ \n]* (?:
        (?P<mark> [\[\]{{}},] )
      | (?P<double> "(?:[^"\\\n]|\\[^\n])*" )
      | (?P<single> '(?:[^'\n]|'')*' )
      | (?P<plain> (?:-(?=[A-Za-z0-9.]))? [A-Za-z0-9_./] (?:{_WORD})? (?:[ ]{_WORD})* )
      )""",
    re.VERBOSE,
)


def read_flow(text: str, key_of: Callable[[str], str], *, strict: bool = False) -> Any:
    """Returns the collection that is all of `text`.

    `key_of` returns the key that an unquoted text is. `strict` leaves a key that comes twice to the other reader.
    Raises NotPlain.
    """
    reader = _Flow(text, key_of, strict)
    value = reader.read_value(0)
    if reader.at != len(text):
        raise NotPlain
    return value


class _Flow:
    """The text of one collection, and the position in it."""

    __slots__ = ("_key_of", "_strict", "_text", "at")

    def __init__(self, text: str, key_of: Callable[[str], str], strict: bool) -> None:
        self._text = text
        self._key_of = key_of
        self._strict = strict
        self.at = 0

    def read_value(self, depth: int) -> Any:
        """Returns the value at the position. Raises NotPlain."""
        return self._value_of(self._token(), depth)

    def _token(self) -> re.Match[str]:
        token = _TOKEN.match(self._text, self.at)
        if token is None:
            raise NotPlain
        self.at = token.end()
        return token

    def _value_of(self, token: re.Match[str], depth: int) -> Any:
        """Returns the value that begins with `token`."""
        if depth > _MAX_DEPTH:
            raise NotPlain
        if token["mark"] == "[":
            return self._read_sequence(depth + 1)
        if token["mark"] == "{":
            return self._read_mapping(depth + 1)
        if token["plain"] is None:
            return _quoted(token)
        value = scalar(token["plain"])
        if isinstance(value, float) and not math.isfinite(value):
            raise NotPlain
        return value

    def _read_sequence(self, depth: int) -> list[Any]:
        """Returns the items up to the closing bracket."""
        items: list[Any] = []
        token = self._token()
        if token["mark"] == "]":
            return items
        while True:
            items.append(self._value_of(token, depth))
            if self._ends("]"):
                return items
            token = self._token()

    def _read_mapping(self, depth: int) -> dict[str, Any]:
        """Returns the members up to the closing brace."""
        members: dict[str, Any] = {}
        token = self._token()
        if token["mark"] == "}":
            return members
        while True:
            key = self._key(token)
            if self._strict and key in members:
                raise NotPlain
            members[key] = self.read_value(depth)
            if self._ends("}"):
                return members
            token = self._token()

    def _key(self, token: re.Match[str]) -> str:
        """Returns the key that `token` is, and moves behind its colon."""
        if self._text[self.at : self.at + 2] not in (": ", ":\n"):
            raise NotPlain
        self.at += 1
        if token["plain"] is not None:
            return self._key_of(token["plain"])
        key = _quoted(token)
        if len(key) > _MAX_KEY:
            raise NotPlain
        return key

    def _ends(self, bracket: str) -> bool:
        """Returns whether the collection ends after a value; otherwise a comma has to follow."""
        mark = self._token()["mark"]
        if mark not in (bracket, ","):
            raise NotPlain
        return mark == bracket


def _quoted(token: re.Match[str]) -> str:
    """Returns the text of a quoted scalar. Raises NotPlain for a mark in the place of a value."""
    if token["double"] is not None:
        return unescape_json(token["double"][1:-1])
    if token["single"] is not None:
        return token["single"][1:-1].replace("''", "'")
    raise NotPlain
