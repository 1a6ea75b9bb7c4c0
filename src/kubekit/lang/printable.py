"""Other people's text, made fit to be shown and stored: one function for terminals, pages, logs and conditions.

A terminal obeys what it is sent, a reader believes the order in which words stand, and `kubectl get -o yaml` fails on
a control character. So such characters are written as escapes: `\\x1b`, `\\u202e`. Line ends and tabs stay.
"""

from __future__ import annotations

import re
from typing import Any

from kubekit.lang.pattern import Pattern

# C0 but tab and newline, DEL and C1; marks and overrides of writing direction; line and paragraph separators; the byte
# order mark, annotations and non-characters, which YAML refuses; halves of surrogate pairs, which UTF-8 cannot carry.
_HAZARD = Pattern(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069"
    "\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\ud800-\\udfff]"
)
_ESCAPE = Pattern(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|[nr])")
_LONGEST_ESCAPE = 6


def printable(text: str) -> str:
    """`text` with an escape for each character that does more than being read. Doing it twice changes nothing."""
    # What the pattern looks for is not printable for Python either, and compiling it takes longer than most texts.
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _HAZARD.sub(_escape, text)


def one_line(text: str) -> str:
    """The same for a place that has one line: a table's cell, a name in a sentence."""
    return printable(text).replace("\n", "\\n")


def encoded(text: str) -> str:
    """JSON text (or YAML whose strings are double-quoted) that means the same, without such characters in it."""
    return text if text.isascii() and "\x7f" not in text else _HAZARD.sub(_encode, text)


def as_json(value: Any) -> str:
    """`value` as indented JSON that is safe to show; a program reads the very same value back."""
    import json  # not needed to start

    return encoded(json.dumps(value, indent=2, ensure_ascii=False))


def is_hazardous(text: str) -> bool:
    """Whether `text` has a character that `printable` would replace."""
    return _HAZARD.search(text) is not None


def everywhere(value: Any) -> Any:
    """`value` (dicts, lists, text) with every text printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {everywhere(key): everywhere(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [everywhere(item) for item in value]
    return value


def boundary(text: str, end: int) -> int:
    """The greatest place up to `end` where `text` may be cut without leaving half of an escape."""
    for start in range(max(0, end - _LONGEST_ESCAPE + 1), end):
        found = _ESCAPE.match(text, start)
        if found is not None and found.end() > end:
            return start
    return end


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] == "\r":
        return "\\r"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _encode(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
