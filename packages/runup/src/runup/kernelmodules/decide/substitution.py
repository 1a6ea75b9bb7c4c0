"""Substitutes `$VAR` and `${VAR}` in a Module's image names, and derives the variables of a kernel.

The language is that of the library which Kernel Module Management uses (a8m/envsubst): besides the plain forms there
are `${VAR-default}`, `${VAR:-default}`, the same with `=`, `${VAR+other}` and `${VAR:+other}`, all of which may hold
further variables, and `$$` for a dollar. An unset variable is empty, and not an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_DEPTH = 16
"""How deep variables may be nested; more than two levels are unusual."""

_NAME = re.compile(r"[A-Za-z0-9_]+")
_OPERATOR = re.compile(r":?[-=+]")
_SEPARATORS = re.compile(r"[.,-]")
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
_FIELDS = 3


class BadSubstitution(ValueError):
    """Raised if a text cannot be substituted, or a kernel's version has too few parts."""


def variables(kernel: str) -> dict[str, str]:
    """Returns the variables of `kernel`, which is as `uname -r` prints it; raises BadSubstitution."""
    full = as_tag(kernel)
    fields = _SEPARATORS.sub("\0", full).split("\0")
    if len(fields) < _FIELDS or not all(fields[:_FIELDS]):
        raise BadSubstitution(
            f"invalid kernel version {kernel}: expected at least three components (major.minor.patch)"
        )
    x, y, z = fields[:_FIELDS]
    return {
        "KERNEL_FULL_VERSION": full,
        "KERNEL_VERSION": full,
        "KERNEL_XYZ": f"{x}.{y}.{z}",
        "KERNEL_X": x,
        "KERNEL_Y": y,
        "KERNEL_Z": z,
    }


def as_tag(kernel: str) -> str:
    """Returns `kernel` with every character that a tag cannot have replaced by `_`."""
    return _FOREIGN.sub("_", kernel)


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Returns `text` with its variables substituted; raises BadSubstitution."""
    filled, _ = _substitute_from(text, 0, values, "", 0)
    return filled


def _substitute_from(text: str, at: int, values: Mapping[str, str], end: str, depth: int) -> tuple[str, int]:
    """Returns the substituted `text` from `at` to `end` (empty: the end of the text), and the position of the end."""
    if depth > MAX_DEPTH:
        raise BadSubstitution(f"{text!r} has variables more than {MAX_DEPTH} deep in each other")
    pieces: list[str] = []
    while at < len(text):
        if end and text[at] == end:
            return "".join(pieces), at
        if text[at] != "$":
            pieces.append(text[at])
            at += 1
            continue
        piece, at = _variable(text, at + 1, values, depth)
        pieces.append(piece)
    if end:
        raise BadSubstitution(f"{text!r}: closing brace expected")
    return "".join(pieces), at


def _variable(text: str, at: int, values: Mapping[str, str], depth: int) -> tuple[str, int]:
    """Returns the value of the variable after a dollar, and the position after it."""
    if text.startswith("$", at):
        return "$", at + 1
    if text.startswith("{", at):
        return _substitute_braced(text, at + 1, values, depth)
    name = _NAME.match(text, at)
    return (values.get(name[0], ""), name.end()) if name else ("$", at)


def _substitute_braced(text: str, at: int, values: Mapping[str, str], depth: int) -> tuple[str, int]:
    """Returns the text for `{NAME...}` at `at`, and the position after the brace. Raises BadSubstitution."""
    name = _NAME.match(text, at)
    if name is None:
        raise BadSubstitution(f"{text!r}: a variable's name is expected after the brace")
    value = values.get(name[0])
    operator = _OPERATOR.match(text, name.end())
    if operator is None:
        if not text.startswith("}", name.end()):
            raise BadSubstitution(f"{text!r}: closing brace expected")
        return value or "", name.end() + 1
    other, end = _substitute_from(text, operator.end(), values, "}", depth + 1)
    # With a colon an empty variable counts as unset, as in a shell.
    is_set = bool(value) if operator[0].startswith(":") else value is not None
    if operator[0].endswith("+"):
        return (other if is_set else ""), end + 1
    return (value or "" if is_set else other), end + 1
