"""JSONPath as printer columns and `kubectl` write it: members, indexes, wildcards, `[?(@.a=="b")]`.

Only the subset that CustomResourceDefinitions may use; a path that matches nothing is an empty list, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]
_TOKEN = re.compile(
    r"""\.(?P<member>(?:\\.|[^.\[\\])+)
      | \[\?\(@(?P<path>[^=!<>\s]*)\s*(?P<op>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
      | \[\?\(@(?P<exists>[^=!<>\s)]+)\)\]
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
      | \[(?P<index>-?\d+)\]
      | (?P<all>\[\*\]|\.\*)""",
    re.VERBOSE,
)


class PathError(ValueError):
    """A path that is not in the supported subset."""


def find_values(path: str, obj: Any) -> list[Any]:
    """Returns every value that the path matches."""
    values = [obj]
    for step in compile_path(path):
        values = [match for value in values for match in step(value)]
    return values


@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """Returns the steps of a path. Raises PathError."""
    # CRDs write .spec.x, kubectl {.spec.x} or {$.spec.x}.
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    text = text if not text or text[0] in ".[" else f".{text}"
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PathError(f"{path}: cannot be read from {text[at:]!r} on")
        steps.append(_parse_step(match))
        at = match.end()
    return tuple(steps)


def _parse_step(match: re.Match[str]) -> Step:
    """Returns the step that a part of a path, such as `.name`, `[0]` or `[?(@.a=="b")]`, stands for."""
    if match["all"]:
        return _all_members
    if match["index"]:
        return _index_step(int(match["index"]))
    if match["op"]:
        return _filter_step(match["path"], match["op"] == "==", _parse_literal(match["value"]))
    if match["exists"]:
        return _existence_step(match["exists"])
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["member"])
    return _member_step(name)


def _member_step(name: str) -> Step:
    """Returns the step that yields the field `name` of a mapping that has it."""

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index_step(number: int) -> Step:
    """Returns the step that yields the item at `number` of a list; negative numbers count from the end."""

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _all_members(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _filter_step(path: str, equal: bool, wanted_value: Any) -> Step:
    """Returns the step that keeps the items whose value at `path` is, or is not, `wanted_value`."""

    def step(value: Any) -> Iterator[Any]:
        for item in _all_members(value):
            values = find_values(path, item)
            if values and (values[0] == wanted_value) is equal:
                yield item

    return step


def _existence_step(path: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        yield from (item for item in _all_members(value) if find_values(path, item))

    return step


def _parse_literal(text: str) -> Any:
    """Returns the value of a literal in a filter: text, boolean or integer."""
    if text[0] in "\"'":
        return text[1:-1]
    if text in {"true", "false"}:
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text
