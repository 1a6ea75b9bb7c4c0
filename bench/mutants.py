"""`python -m bench.mutants --seed N --count K [ROOM...]`: which of K small changes to the code no test notices.

cosmic-ray makes the changes; the sample, the copy and the choice of tests are ours (docs/decisions/0035). Each mutant
is tried against the nearest tests: those that name its module, then those of its room. JSON on stdout, progress on
stderr.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
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

ROOT = Path(__file__).parent.parent
ROOMS = ("domain", "controllers", "oci", "kube", "cli")
LEFT_OUT = (".venv", ".git", ".hypothesis", "build", "__pycache__", ".*_cache")
BESIDE = ROOT.parent / "shared"
# Of all tests of a mutant. A single one that has no end is ended before, and has failed.
SLOWEST_S = 900
OUT_OF_TIME = 99


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


@dataclass(frozen=True)
class Mutant:
    """One change: the `occurrence`-th place of a module where `operator` finds something to change."""

    path: Path
    line: int
    operator: str
    occurrence: int

    def code(self) -> str:
        """The whole module, changed."""
        text = mutate_code(self.path.read_text(), _operators()[self.operator], self.occurrence)
        assert text is not None
        return text

    def told(self) -> dict[str, Any]:
        """The change as somebody reads it."""
        before, after = self.path.read_text().splitlines(), self.code().splitlines()
        changed = next((i for i, pair in enumerate(itertools.zip_longest(before, after)) if pair[0] != pair[1]), 0)
        return {
            "file": str(self.path.relative_to(ROOT)),
            "line": self.line,
            "operator": self.operator,
            "before": before[changed].strip(),
            "after": after[changed].strip() if changed < len(after) else "",
        }


def _operators() -> dict[str, Operator]:
    # Those on variables need to be told of a variable each; `is` for `==` is the interpreter's business.
    left_out = ("Variable", "Decorator", "_Eq_Is", "_NotEq_Is")
    names = (name for name in plugins.operator_names() if not any(each in name for each in left_out))
    return {name.partition("/")[2]: plugins.get_operator(name)() for name in names} | {"DropStatement": DropStatement()}


def mutants_of(path: Path) -> dict[int, list[Mutant]]:
    """Every mutant of a module, by line; what only says how a value is typed or stored is left alone."""
    text = path.read_text()
    passive = set(_passive_lines(ast.parse(text)))
    found: dict[int, list[Mutant]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(text)))
    for name, operator in _operators().items():
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, ((line, _), _end) in enumerate(positions):
            if line not in passive:
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


def _assignments(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    return [each for each in body if isinstance(each, ast.Assign | ast.AnnAssign)]


def sample(rooms: Iterable[str], seed: int, count: int) -> list[Mutant]:
    """`count` mutants: every line of the rooms that can be changed is as likely as any other."""
    chance = random.Random(seed)
    paths = sorted(path for room in rooms for path in (ROOT / "src/runup" / room).rglob("*.py"))
    weights = [path.stat().st_size for path in paths]
    found: dict[tuple[Path, int], Mutant] = {}
    while len(found) < count:
        path = chance.choices(paths, weights)[0]
        lines = mutants_of(path)
        if lines:
            line = chance.choice(sorted(lines))
            found.setdefault((path, line), chance.choice(lines[line]))
    return list(found.values())


def nearest_tests(path: Path) -> list[str]:
    """Of the nearest folder of tests those that name the module, then its others, then whoever else names it.

    Where nobody names it, whoever names what imports it. Kept texts are as near to all of a package that they name.
    Journeys and the real server are too far.
    """
    inside, dotted = path.relative_to(ROOT / "src/runup"), _dotted(path)
    near = ("domain", "controllers", "oci", "kube", "cli", "lang", "api", "golden")
    files = sorted(file for folder in near for file in (ROOT / "tests" / folder).rglob("test_*.py"))
    names = {dotted}
    while not (naming := [file for file in files if names & _imported(file)]):
        above = {_dotted(each) for each in _sources() if names & _imported(each)} - names
        if not above:
            break
        names |= above
    folder = next(each for each in (ROOT / "tests" / inside).parents if each.is_dir())
    near_by = [file for file in files if file.is_relative_to(folder)]
    kept = [file for file in files if file.parent.name == "golden" and dotted.rpartition(".")[0] in _imported(file)]
    ordered = dict.fromkeys((*(file for file in naming if file in near_by), *kept, *near_by, *naming))
    return [str(file.relative_to(ROOT)) for file in ordered]


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(sorted((ROOT / "src/runup").rglob("*.py")))


def _dotted(path: Path) -> str:
    """The name by which a module is imported."""
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


@cache
def _imported(file: Path) -> frozenset[str]:
    """All that a test imports, by its full name, and what the helpers beside it import."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    beside = ".".join(file.relative_to(ROOT).parent.parts) + "."
    helpers = [file.parent / f"{name.removeprefix(beside)}.py" for name in found if name.startswith(beside)]
    return frozenset(found).union(*(_imported(helper) for helper in helpers if helper.is_file()))


class Copy:
    """A copy of the checkout in which a mutant is tried; `failing` are tests that fail without any change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failing: list[str] = []
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        # Cases that tests read beside the checkout; without them they skip, and notice nothing.
        if BESIDE.is_dir():
            (folder.parent / BESIDE.name).symlink_to(BESIDE)

    def outcome(self, mutant: Mutant) -> str:
        """`survived` if no test fails that passes without the change, `killed` if one does, else `out of time`."""
        tests = nearest_tests(mutant.path)
        here = self.folder / mutant.path.relative_to(ROOT)
        while True:
            here.write_text(mutant.code())
            try:
                code, said = self._run(["-x", *(f"--deselect={test}" for test in self.failing), *tests])
            finally:
                here.write_text(mutant.path.read_text())
            failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
            if code in (0, OUT_OF_TIME):
                return "out of time" if code else "survived"
            # Without a name it was no single test: the module cannot be imported, or a test had no end.
            if failed is None or "::" not in failed[1] or self._run([failed[1]])[0] == 0:
                return "killed"
            self.failing.append(failed[1])

    def _run(self, arguments: Iterable[str]) -> tuple[int, str]:
        """Exit code and output of pytest."""
        options = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-m", "not e2e", "--timeout=180"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=SLOWEST_S)
        except subprocess.TimeoutExpired:
            return OUT_OF_TIME, ""
        finally:
            _end(process)
        return process.returncode, said


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and whatever it left in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def main(arguments: list[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", default=ROOMS, help=f"rooms to change; all of {', '.join(ROOMS)} if none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=0, help="begin no further mutant after so long; 0 for no end")
    options = parser.parse_args(arguments)
    chosen = sample(options.rooms, options.seed, options.count)
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder) / "checkout")
        for number, mutant in enumerate(chosen, 1):
            if options.minutes and time.monotonic() - began > options.minutes * 60:
                break
            outcome = copy.outcome(mutant)
            change = mutant.told()
            modules[change["file"]][outcome] += 1
            survivors += [change] if outcome == "survived" else []
            said = f"{change['file']}:{change['line']}: {change['before']} -> {change['after']}"
            print(f"{number}/{len(chosen)} {outcome}: {said}", file=sys.stderr, flush=True)
    total = sum(modules.values(), Counter())
    result = {"seed": options.seed, **{name: total[name] for name in ("killed", "survived", "out of time")}}
    told = {"failing_anyway": copy.failing, "modules": dict(sorted(modules.items())), "survivors": survivors}
    print(json.dumps(result | told, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
