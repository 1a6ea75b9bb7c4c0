"""The small changes: cosmic-ray's operators, one of our own, and which of their places a seed chooses."""

from __future__ import annotations

import ast
import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import parso.python.tree
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

from bench.mutants.rooms import ROOT, folder_of, inside, room_of


class DropStatement(Operator):
    """A call, a `raise`, a guard's `return`, an attribute set: none of it happens; cosmic-ray has no such operator."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where a statement begins that may go. Without a plain variable all fails, which would prove nothing."""
        if node.type != "simple_stmt":
            return
        statement = node.children[0]
        guards = (
            statement.type == "return_stmt" and node.parent.type == "suite" and node.parent.parent.type == "if_stmt"
        )
        sets = statement.type == "expr_stmt" and statement.children[0].type == "atom_expr"
        if statement.type in ("atom_expr", "raise_stmt") or guards or sets:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        """`pass` in its place."""
        first = node.children[0].get_first_leaf()
        node.children[0] = parso.python.tree.Name("pass", first.start_pos, prefix=first.prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """None; cosmic-ray wants the method."""
        return ()


@cache
def text_of(path: Path) -> str:
    """A module as it was when the sample was taken: whoever edits it meanwhile changes no mutant."""
    return path.read_text()


@dataclass(frozen=True)
class Mutant:
    """One change: the `occurrence`-th place of a module where `operator` finds something to change."""

    path: Path
    line: int
    operator: str
    occurrence: int

    @property
    def inside(self) -> str:
        """The module's path in a checkout."""
        return str(self.path.relative_to(ROOT))

    @property
    def room(self) -> str:
        """Its room."""
        return room_of(self.path)

    def code(self) -> str:
        """The whole module, changed."""
        text = mutate_code(text_of(self.path), _operators()[self.operator], self.occurrence)
        assert text is not None
        return text

    def can_be_made(self) -> bool:
        """Not all that cosmic-ray lists: it trips over a dotted name among several exceptions, and takes the `|` of a
        pattern for an operator.
        """
        try:
            ast.parse(self.code())
        except (AttributeError, SyntaxError):
            return False
        return True

    def told(self) -> dict[str, Any]:
        """The change as somebody reads it."""
        before, after = text_of(self.path).splitlines(), self.code().splitlines()
        changed = next((i for i, pair in enumerate(itertools.zip_longest(before, after)) if pair[0] != pair[1]), 0)
        return {
            "file": self.inside,
            "line": self.line,
            "operator": self.operator,
            "before": before[changed].strip(),
            "after": after[changed].strip() if changed < len(after) else "",
        }


@cache
def _operators() -> dict[str, Operator]:
    # Those on variables need to be told of a variable each; `is` for `==`, or the other way, is the interpreter's
    # business.
    left_out = ("Variable", "Decorator", "_Eq_Is", "_NotEq_Is", "_Is_Eq", "_IsNot_NotEq")
    names = (name for name in plugins.operator_names() if not any(each in name for each in left_out))
    return {name.partition("/")[2]: plugins.get_operator(name)() for name in names} | {"DropStatement": DropStatement()}


@cache
def mutants_of(path: Path) -> dict[int, list[Mutant]]:
    """Every mutant of a module, by line; what only says how a value is typed or stored is left alone."""
    text = text_of(path)
    tree = ast.parse(text)
    passive, annotations = set(_passive_lines(tree)), _annotations(tree)
    found: dict[int, list[Mutant]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(text)))
    for name, operator in _operators().items():
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (start, _end) in enumerate(positions):
            line = start[0]
            if line not in passive and not any(begin <= start < end for begin, end in annotations):
                found[line].append(Mutant(path, line, name, occurrence))
    return found


def _passive_lines(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            parts = [*(each.annotation for each in every if each), node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.decorator_list, *(keyword.value for keyword in node.keywords), *_assignments(node.body)]
        elif isinstance(node, ast.Module):
            parts = [each for each in _assignments(node.body) if "TypeVar" in ast.dump(each)]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts = [node]
        elif isinstance(node, ast.If):
            parts = [node] if ast.unparse(node.test) == "TYPE_CHECKING" else []
        for part in filter(None, parts):
            yield from range(part.lineno, (part.end_lineno or part.lineno) + 1)  # type: ignore[attr-defined]


def _annotations(tree: ast.AST) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The places of the types of variables, which nothing evaluates: from and to, by line and column."""
    found = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    return [((each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0)) for each in found]


def _assignments(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    return [each for each in body if isinstance(each, ast.Assign | ast.AnnAssign)]


def modules_of(rooms: Iterable[str], part: str = "") -> list[Path]:
    """Returns the modules of the rooms; with `part`, a folder of rooms (control), only those below it."""
    return sorted(
        path for room in rooms for path in folder_of(room).rglob("*.py") if not part or part in inside(path).parts[:-1]
    )


def sample(rooms: Iterable[str], seed: int, count: int, part: str = "") -> list[Mutant]:
    """Returns `count` mutants of `modules_of`: every line that can be changed is as likely as any other."""
    chance = random.Random(seed)
    paths = modules_of(rooms, part)
    weights = [path.stat().st_size for path in paths]
    found: dict[tuple[Path, int], Mutant] = {}
    while len(found) < count:
        path = chance.choices(paths, weights)[0]
        lines = mutants_of(path)
        if lines:
            line = chance.choice(sorted(lines))
            mutant = chance.choice(lines[line])
            if mutant.can_be_made():
                found.setdefault((path, line), mutant)
    return list(found.values())
