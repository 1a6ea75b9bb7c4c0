"""Selects the fields of an object that hold no secrets and may be shown. Pure.

A list of hidden fields is never complete: annotations of other tools hold whole manifests, and arguments, headers,
parameters of volumes and custom resources hold passwords. So the table `data/shown-fields.txt` lists what is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

JSON = dict[str, Any]
HIDDEN = "(not shown)"
# Characters of one text.
_MOST_TEXT = 2_000
_DEEPEST = 60
# The user and password of an address (RFC 3986, 3.2.1).
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")
_NOISE = frozenset({"managedFields"})

# None shows a single value, "+" everything below, and a map the fields that it names.
Selection = Mapping[str, Any] | str | None
ALL = "+"
EVERY_KIND = "*"


def without_secrets(obj: JSON) -> JSON:
    """Returns the object with `HIDDEN` in place of every value that the table does not name."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    kind = str(obj.get("kind", ""))
    shown: JSON = _shown(obj, selection_of(f"{kind}.{group}" if version and group else kind), 0)
    return shown


@cache
def selection_of(kind: str) -> dict[str, Any]:
    """Returns what objects of a kind show, `KIND.GROUP` or the name of a kind of the core group."""
    table = read_table("shown-fields")
    return merged(table[EVERY_KIND], table.get(kind, {}))


@cache
def read_table(name: str) -> dict[str, dict[str, Any]]:
    """Returns the selections of a table of `data`, by kind."""
    text = (resources.files(__package__) / "data" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    entries = [entry.partition(":") for entry in re.split(r"\n(?!\s)", "\n".join(lines))]
    parts: dict[str, str] = {}
    table: dict[str, dict[str, Any]] = {}
    for name, _, text in entries:
        # A part may contain those above it.
        text = re.sub(r"\$[A-Z_]+", lambda match: parts[match[0]], text)
        if name.startswith("$"):
            parts[name] = text
        else:
            table[name] = parsed(text)
    return table


def parsed(text: str) -> dict[str, Any]:
    """Returns the selection that a text in the form of the tables describes."""
    return _parsed(iter(re.findall(r"[{}+]|[^\s{}+]+", text)))


def _parsed(words: Iterator[str]) -> dict[str, Any]:
    """Returns the selection that the words up to the closing brace describe."""
    fields: dict[str, Any] = {}
    name = ""
    for word in words:
        if word == "}":
            break
        if word == "{":
            fields[name] = merged(fields[name] or {}, _parsed(words))
        elif word == ALL or word.startswith("="):
            fields[name] = word
        else:
            name = word
            fields.setdefault(name, None)
    return fields


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of both selections."""
    fields = {**one, **other}
    for name in one.keys() & other.keys():
        pair = (one[name], other[name])
        if all(isinstance(each, Mapping) for each in pair):
            fields[name] = merged(*pair)
        else:
            fields[name] = ALL if ALL in pair else next((each for each in pair if each is not None), None)
    return fields


def _shown(value: Any, selection: Selection, depth: int) -> Any:
    """Returns what is shown of a value."""
    # Neither can hold a secret, and both are shown wherever they are.
    if value is None or isinstance(value, bool):
        return value
    if depth > _DEEPEST:
        return HIDDEN
    if isinstance(value, list | tuple):
        return [_shown(item, selection, depth + 1) for item in value]
    if isinstance(value, dict):
        if selection is None:
            return HIDDEN
        shown = {}
        for key, item in value.items():
            if key in _NOISE:
                continue
            if isinstance(selection, str):
                shown[key] = _shown(item, selection, depth + 1)
            elif key in selection or "*" in selection:
                shown[key] = _shown(item, selection.get(key, selection.get("*")), depth + 1)
            else:
                shown[key] = item if item is None or isinstance(item, bool) else HIDDEN
        return shown
    if isinstance(selection, Mapping):
        return HIDDEN  # a single value where the kind has fields
    if not isinstance(value, str):
        return value
    text = _USER_OF_URL.sub(f"{HIDDEN}@", value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}... ({len(value)} characters)"
