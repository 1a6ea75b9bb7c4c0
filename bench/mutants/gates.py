"""The changes after which an update may start too early: all of them, not a sample, in the code that decides about it.

A gate is open, a comparison of times is reversed, or what is unknown is read as open. Tests must notice each of them
but those of `EQUIVALENT`, which lists the changes that no test can notice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.mutants.made import Mutant, text_of
from bench.mutants.rooms import folder_of

Kind = Literal["gate open", "comparison reversed", "unknown open"]
MODULES = (
    *sorted((folder_of("rollout") / "decide").rglob("*.py")),
    *sorted((folder_of("fleet") / "decide" / "hub_update").glob("*.py")),
    *sorted((folder_of("fleet") / "decide").glob("update_*.py")),
)
# What a function returns if its gate is open, by the type that it returns.
_OPEN = {
    "Gate": 'Gate(name="m", state="Open", reason="M", message="m")',
    "Gate | None": "None",
    "Iterable[Gate]": "()",
    "Iterator[Gate]": "iter(())",
    "tuple[Gate, ...]": "()",
}
# The same of functions that return a text: why something is closed, or must not start.
_TEXTS = {"_gate": '""', "_blown_fuse": "None", "why_unverified": '""'}
_REVERSED: dict[type[ast.cmpop], str] = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}
_UNKNOWN = ("unknown", "path_unknown", "why_unknown", "why_pools_unknown", "unverified")
# By module, the line before the change, and the kind: why no test can notice it.
EQUIVALENT: dict[tuple[str, str, Kind], str] = {
    (
        "preflight.py",
        "if risk_of(name) not in named and (findings.observed is None or findings.observed <= since)",
        "unknown open",
    ): "`evaluate` returns before, if the report has no time",
}


@dataclass(frozen=True)
class GateMutant(Mutant):
    """A change by its text, which replaces the characters from `occurrence` to `end`."""

    end: int = 0
    new: str = ""

    def code(self) -> str:
        """The whole module, changed."""
        text = text_of(self.path)
        return text[: self.occurrence] + self.new + text[self.end :]


def mutants() -> list[GateMutant]:
    """Returns the changes of all modules, in the order of their lines."""
    return [each for path in MODULES for each in mutants_of(path)]


def mutants_of(path: Path) -> list[GateMutant]:
    """Returns the changes of one module."""
    text = text_of(path)
    lines = text.splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        """Returns a place in characters; `column` counts bytes of UTF-8."""
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    found = set()
    for node, kind, new in _changes(ast.parse(text)):
        begin = place(node.lineno, node.col_offset)
        end = place(node.end_lineno or 0, node.end_col_offset or 0) if isinstance(node, ast.expr) else begin
        if (path.name, lines[node.lineno - 1].strip(), kind) not in EQUIVALENT:
            found.add(GateMutant(path, node.lineno, kind, begin, end=end, new=new))
    return sorted(found, key=lambda each: (each.occurrence, each.operator))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, Kind, str]]:
    """Yields what to replace, or the statement before which to insert, and the new text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            returned = ast.unparse(node.returns) if node.returns is not None else ""
            value = _OPEN.get(returned) or _TEXTS.get(node.name)
            first = node.body[1 if ast.get_docstring(node) is not None else 0] if len(node.body) > 1 else None
            if value is not None and first is not None:
                yield first, "gate open", f"return {value}\n{' ' * first.col_offset}"
        elif isinstance(node, ast.expr):
            yield from _reversed(node)
            yield from _known(node)
        if isinstance(node, ast.If | ast.IfExp | ast.comprehension):
            tests = node.ifs if isinstance(node, ast.comprehension) else [node.test]
            parts = [each for test in tests for each in ast.walk(test)]
            names = [each for each in parts if isinstance(each, ast.Attribute) and each.attr in _UNKNOWN]
            yield from ((each, "unknown open", "()") for each in names)


def _reversed(node: ast.expr) -> Iterator[tuple[ast.expr, Kind, str]]:
    """Yields a comparison in the other direction, unless it compares numbers of things."""
    if not isinstance(node, ast.Compare) or not all(type(each) in _REVERSED for each in node.ops):
        return
    parts = [node.left, *node.comparators]
    if any(isinstance(each, ast.Constant) or _is_number(each) for each in parts):
        return
    signs = [_REVERSED[type(each)] for each in node.ops]
    texts = [f"({ast.unparse(each)})" for each in parts]
    rest = "".join(f" {sign} {text}" for sign, text in zip(signs, texts[1:], strict=True))
    yield node, "comparison reversed", texts[0] + rest


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "size_of", "set")


def _known(node: ast.expr) -> Iterator[tuple[ast.expr, Kind, str]]:
    """Yields what reads Unknown, Closed or an unknown value as open."""
    match node:
        case ast.Name(id="UNKNOWN", ctx=ast.Load()):
            yield node, "unknown open", '"Open"'
        case ast.Name(id="CLOSED", ctx=ast.Load()):
            yield node, "gate open", '"Open"'
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Name(id="OPEN") | ast.Constant(value="Open")]):
            yield node, "unknown open", f'{ast.unparse(left)} != "Closed"'
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Name(id="OPEN") | ast.Constant(value="Open")]):
            yield node, "unknown open", f'{ast.unparse(left)} == "Closed"'
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Constant(value="False")]):
            yield node, "unknown open", f'{ast.unparse(left)} == "True"'
        case ast.Compare(comparators=[ast.Constant(value="Unknown")]):
            yield node, "unknown open", "False"
        case ast.Compare(ops=[ast.NotIn()], comparators=[ast.Tuple(elts=[ast.Constant(value="True"), _])]):
            yield node, "unknown open", "False"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="unknown"), attr="append")):
            yield node, "unknown open", "None"
        case ast.BoolOp(op=ast.Or(), values=[ast.Compare(ops=[ast.Is()]) as first, *_]):
            yield first, "unknown open", "False"
        case _:
            pass
