"""Which fast test of a room runs which line of it, kept from one run to the next.

A test file runs again where it, what stands beside it, or a module that it ran has changed. A map that is not quite
true costs time and no truth: what no test of it kills is tried against all of the nearest.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.mutants.copy import FAST, Copy, dotted_name, imported
from bench.mutants.made import Mutant
from bench.mutants.rooms import ROOT, folder_of, tests_of

CACHE = Path("~/.cache/runup/mutants").expanduser()
# Of tests for one mutant, by what they took: what is left then are a line's slowest tests.
BOUND_S = 40.0
LEAST_S = 20.0


@dataclass
class Lines:
    """`took`: seconds of each test that passed; `ran`: by file and line, the places in `took` of tests that ran it.

    `digests`: of the room's modules and its test files, as they were.
    """

    took: dict[str, float] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)
    ran: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    def tests(self, mutant: Mutant) -> dict[str, float]:
        """Who runs the changed statement, the fastest first, and how many seconds each may take.

        Of a line that runs at import: tests of files that import its module, then who runs anything of it.
        """
        lines, names = self.ran.get(mutant.inside, {}), list(self.took)
        statement = statement_at(mutant.path.read_text(), mutant.line)
        found = {names[place] for line in statement or lines for place in lines.get(str(line), ())}
        module = dotted_name(mutant.path)
        near = set() if statement else {test for test in names if module in imported(ROOT / _file(test))}
        # Whichever of them comes first makes what a file's tests share.
        slowest: dict[str, float] = {}
        for test in names:
            slowest[_file(test)] = max(slowest.get(_file(test), 0.0), self.took[test])
        quick = {test for test in found | near if slowest[_file(test)] <= BOUND_S}
        chosen, total = {}, 0.0
        for test in sorted(quick, key=lambda test: (test not in near, self.took[test])):
            chosen[test] = max(LEAST_S, 10 * slowest[_file(test)])
            total += self.took[test]
            if total > BOUND_S:
                break
        return chosen

    def at_import(self, mutant: Mutant) -> bool:
        """Whether the line runs when its module is imported, and then not again."""
        return not statement_at(mutant.path.read_text(), mutant.line)

    def stale(self, digests: dict[str, str]) -> set[str]:
        """Test files of which this says nothing, or nothing that is true any more."""
        changed = {file for file in {*digests, *self.digests} if digests.get(file) != self.digests.get(file)}
        names = [_file(test) for test in self.took]
        touched = {names[place] for file in changed for places in self.ran.get(file, {}).values() for place in places}
        return {file for file in changed | touched if file.startswith("tests/")}

    def joined(self, new: Lines, stale: set[str]) -> Lines:
        """This without what is `stale`, and the new."""
        old = [test for test in self.took if _file(test) not in stale]
        place = {test: number for number, test in enumerate([*old, *new.took])}
        ran: dict[str, dict[str, list[int]]] = {}
        for each in (self, new):
            names = list(each.took)
            for file, lines in each.ran.items():
                for line, places in lines.items():
                    kept = [
                        place[names[number]] for number in places if each is new or _file(names[number]) not in stale
                    ]
                    ran.setdefault(file, {}).setdefault(line, []).extend(kept)
        failing = [test for test in self.failing if _file(test) not in stale] + new.failing
        return Lines({test: self.took[test] for test in old} | new.took, failing, ran)


def _file(test: str) -> str:
    return test.partition("::")[0]


def statement_at(text: str, line: int) -> list[int]:
    """The lines of the statement that begins with or spans `line`, of a compound one its head; none at import."""
    nodes = list(ast.walk(ast.parse(text)))
    inside = (
        node.body[0].lineno <= line <= (node.end_lineno or line)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    if not any(inside):
        return []
    spanning = [node for node in nodes if isinstance(node, ast.stmt) and _spans(node, line)]
    nearest = max(spanning, key=lambda node: node.lineno)
    if hasattr(nearest, "body") or isinstance(nearest, ast.Match):
        return [nearest.lineno, line]
    return list(range(nearest.lineno, (nearest.end_lineno or nearest.lineno) + 1))


def _spans(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def kept(room: str) -> Lines:
    """The room's map as it was kept, which may be older than the code; empty if there is none."""
    file = _file_of(room)
    return Lines(**json.loads(file.read_text())) if file.is_file() else Lines()


def _file_of(room: str) -> Path:
    return CACHE / "fast" / f"{room}.json"


def lines_of(room: str, copy: Copy) -> Lines:
    """The room's map; the part of it that is older than the code or the tests is made again, in the copy."""
    folder, lines = folder_of(room), kept(room)
    digests = digests_of(folder, tests_of(room))
    if stale := lines.stale(digests):
        again = sorted(file for file in stale if file in digests)
        lines = lines.joined(_made(room, folder, copy, again) if again else Lines(), stale)
    lines.digests = digests
    file = _file_of(room)
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.with_suffix(f".{os.getpid()}")
    whole.write_text(json.dumps(asdict(lines)))
    whole.rename(file)
    return lines


def digests_of(folder: Path, tests: tuple[str, ...]) -> dict[str, str]:
    """Of each module of a folder by itself, of each test file with what it shares its folder with."""
    found = {path: digest(path) for path in folder.rglob("*.py")}
    for path in (path for each in tests for path in (ROOT / each).rglob("test_*.py")):
        beside = [each for each in path.parent.iterdir() if each.is_file() and not each.name.startswith("test_")]
        found[path] = digest(path, *sorted(beside))
    return {str(path.relative_to(ROOT)): digest for path, digest in sorted(found.items())}


def digest(*paths: Path) -> str:
    """Changes with the content of any of the files."""
    return digest_of(*(path.read_bytes() for path in paths))


def digest_of(*contents: bytes) -> str:
    """`digest` of files with these contents."""
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]


def _made(name: str, folder: Path, copy: Copy, files: list[str]) -> Lines:
    """Run test files once. An exit code above 1 says that pytest itself could not; of 5, that they hold no test."""
    options = [
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "bench.mutants.recorder",
        "-m",
        FAST,
        "--timeout=900",
    ]
    to = copy.folder.parent / "lines.json"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=copy.folder,
        env=copy.environment() | {"MUTANTS_ROOM": str(folder.relative_to(ROOT)), "MUTANTS_LINES": str(to)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 5) or not to.is_file():
        raise SystemExit(f"error: the tests of {name} cannot be run:\n{done.stdout[-2000:]}")
    return Lines(**json.loads(to.read_text()))
