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


def find(path: str, obj: Any) -> list[Any]:
    """Returns every value that the path matches."""
    values = [obj]
    for step in compiled(path):
        values = [match for value in values for match in step(value)]
    return values


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Step, ...]:
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
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return _all
    if match["index"]:
        return _index(int(match["index"]))
    if match["op"]:
        return _filter(match["path"], match["op"] == "==", _literal(match["value"]))
    if match["exists"]:
        return _having(match["exists"])
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["member"])
    return _member(name)


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(number: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _all(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _filter(path: str, equal: bool, wanted: Any) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in _all(value):
            values = find(path, item)
            if values and (values[0] == wanted) is equal:
                yield item

    return step


def _having(path: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        yield from (item for item in _all(value) if find(path, item))

    return step


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return text[1:-1]
    if text in {"true", "false"}:
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text
