"""`python -m tools.near [REVISION] [PYTEST-OPTION...]`, or `make near`: the fast tests of the code that differs.

Compares the checkout with REVISION, by default HEAD: what is not committed. Changed test files run as a whole. For a
changed module the map of `bench.mutants` names the tests that run the changed statements. Without a map that is of
REVISION, and for statements that run at import, the tests that import the module run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bench.mutants.copy import FAST, imported
from bench.mutants.lines import Lines, digest_of, kept, statement_at
from bench.mutants.rooms import ROOT, nearest_folders, room_of

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+")


@dataclass
class Near:
    """The tests to run: `files` as a whole, of other files only `tests`. As a plugin it leaves out all others."""

    files: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)

    def paths(self) -> list[str]:
        """The test files to collect, those that exist."""
        every = self.files | {test.partition("::")[0] for test in self.tests}
        return sorted(file for file in every if (ROOT / file).is_file())

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselects what was collected and is not near."""
        near = [item for item in items if item.nodeid in self.tests or item.nodeid.partition("::")[0] in self.files]
        config.hook.pytest_deselected(items=[item for item in items if item not in near])
        items[:] = near


def changed(revision: str) -> dict[str, list[range]]:
    """By the path of a Python file the lines of `revision` that differ, or for added lines the two around them."""
    found: dict[str, list[range]] = defaultdict(list)
    path = ""
    for line in _git("diff", "--unified=0", "--no-renames", "--no-ext-diff", revision, "--", "*.py").splitlines():
        if line.startswith(("--- a/", "+++ b/")):
            path = line[6:]
            found[path] += []
        elif hunk := HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found[path].append(range(first, first + (count or 2)))
    return dict(found) | {path: [] for path in _git("ls-files", "-o", "--exclude-standard", "*.py").splitlines()}


def near(revision: str) -> Near:
    """Returns the tests of what differs from `revision`."""
    found = Near()
    for path, hunks in changed(revision).items():
        name = Path(path).name
        if path.startswith("tests/") and name.startswith("test_"):
            found.files.add(path)
        elif name == "conftest.py":
            found.files |= {str(file.relative_to(ROOT)) for file in (ROOT / path).parent.rglob("test_*.py")}
        else:
            known = kept(room_of(ROOT / path)) if path.startswith("packages/") else Lines()
            tests = tests_that_run(known, path, hunks, revision)
            found.tests |= tests
            found.files |= set() if tests else tests_that_import(path)
    return found


def tests_that_run(known: Lines, path: str, hunks: Sequence[range], revision: str) -> set[str]:
    """Returns the tests of a map that run the statements in `hunks`; none if it does not know each of these."""
    text = _git("show", f"{revision}:{path}") if hunks and path in known.ran else ""
    if not text or known.digests.get(path) != digest_of(text.encode()):
        return set()
    names, ran, found = list(known.took), known.ran[path], set()
    for hunk in hunks:
        lines = {each for line in hunk for each in statement_at(text, line)}
        places = {place for line in lines for place in ran.get(str(line), ())}
        if not places:
            return set()
        found |= {names[place] for place in places}
    return found


def tests_that_import(path: str) -> set[str]:
    """Returns the test files that import a module, or what imports it; else those of the nearest folders."""
    inside = re.sub(r"^packages/\w+/src/", "", path)
    dotted = inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    words = ["grep", "-lwF", dotted.rpartition(".")[2], "--", "tests/*.py"]
    helpers = {ROOT / name for name in _git(*words).splitlines()}
    folders = {file.parent for file in helpers}
    tests = {test for folder in folders for test in folder.glob("test_*.py") if dotted in imported(test)}
    tests |= {file for file in helpers if file.name.startswith("test_") and dotted in imported(file)}
    if not tests and path.startswith("packages/"):
        tests = {test for folder in nearest_folders(ROOT / path) for test in folder.rglob("test_*.py")}
    return {str(test.relative_to(ROOT)) for test in tests}


def _git(*words: str) -> str:
    """The output of git; `grep` without a match and `show` of a file that is new are empty."""
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout


def main(arguments: Sequence[str]) -> int:
    """Runs them; returns the exit code of pytest, and 0 if no test is near."""
    revision, *options = arguments if arguments and not arguments[0].startswith("-") else ("HEAD", *arguments)
    chosen = near(revision)
    paths = chosen.paths()
    if not paths:
        print(f"near: no test runs or imports what differs from {revision}", file=sys.stderr)
        return 0
    print(f"near: {len(chosen.files)} files and {len(chosen.tests)} tests", file=sys.stderr)
    code = pytest.main(["-m", FAST, *options, *paths], plugins=[chosen])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
