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
    """Returns the step of one part of a path, such as `.name`, `[0]` or `[?(@.a=="b")]`.

    A negative index counts from the end; a filter keeps items by their value at a path, or by its existence.
    """
    index = int(match["index"]) if match["index"] else 0
    wanted_value = _parse_literal(match["value"]) if match["op"] else None
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["member"] or "")

    def step(value: Any) -> Iterator[Any]:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if match["all"]:
            yield from members
        elif match["index"]:
            if isinstance(value, list) and -len(value) <= index < len(value):
                yield value[index]
        elif match["op"]:
            for item in members:
                values = find_values(match["path"], item)
                if values and (values[0] == wanted_value) is (match["op"] == "=="):
                    yield item
        elif match["exists"]:
            yield from (item for item in members if find_values(match["exists"], item))
        elif isinstance(value, dict) and name in value:
            yield value[name]

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
