"""A copy of the checkout, and the slow way: a mutant against the nearest tests, in processes of their own."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from bench.mutants.made import Mutant, text_of
from bench.mutants.rooms import ROOT, inside, nearest_folders

LEFT_OUT = (".venv", ".git", ".hypothesis", "build", ".*_cache")
BESIDE = ROOT.parent / "shared"
# Of all tests of a mutant. A single one that has no end is ended before, and has failed.
SLOWEST_S = 900
OUT_OF_TIME = 99
# Of pytest, where marks leave none of the files' tests.
NO_TEST = 5
FAR = ("browser", "controlplane", "goclient", "journeys", "transcripts")
# The environment variable that says which tests count, by their marks.
MARKED = "MUTANTS_MARKED"
# What `make test` runs.
FAST = "not slow and not e2e"


def marked() -> str:
    """The expression for `-m`."""
    return os.environ.get(MARKED, "not e2e")


def nearest_tests(path: Path) -> list[str]:
    """Returns of the nearest folders of tests the files that name the module, then their others, then all that name it.

    For a module that no test names, these are the tests that name a module that imports it. Golden files are as near to
    each module of a package that they name. Journeys and the real server are too far.
    """
    dotted = dotted_name(path)
    every = (file for file in (ROOT / "tests").rglob("test_*.py"))
    files = sorted(file for file in every if file.relative_to(ROOT / "tests").parts[0] not in FAR)
    names = {dotted}
    while not (naming := [file for file in files if names & imported(file)]):
        above = {dotted_name(each) for each in _sources() if names & imported(each)} - names
        if not above:
            break
        names |= above
    near_by = [file for file in files if {*file.parents} & {*nearest_folders(path)}]
    kept = [file for file in files if file.parent.name == "golden" and dotted.rpartition(".")[0] in imported(file)]
    ordered = dict.fromkeys((*(file for file in naming if file in near_by), *kept, *near_by, *naming))
    return [str(file.relative_to(ROOT)) for file in ordered]


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(sorted(ROOT.glob("packages/*/src/**/*.py")))


def dotted_name(path: Path) -> str:
    """The name by which a module is imported."""
    return ".".join(inside(path).with_suffix("").parts).removesuffix(".__init__")


@cache
def imported(file: Path) -> frozenset[str]:
    """All that a test imports, by its full name, and what the helpers beside it import."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    beside = ".".join(file.relative_to(ROOT).parent.parts) + "."
    helpers = [file.parent / f"{name.removeprefix(beside)}.py" for name in found if name.startswith(beside)]
    return frozenset(found).union(*(imported(helper) for helper in helpers if helper.is_file()))


class Copy:
    """A copy of the checkout in which mutants are tried; `failing` are tests that fail without any change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failing: list[str] = []
        self._placed = 0
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        # Cases that tests read beside the checkout; without them they skip, and notice nothing.
        if BESIDE.is_dir():
            (folder.parent / BESIDE.name).symlink_to(BESIDE)

    def environment(self) -> dict[str, str]:
        """The copy stands before the installed package; tables that can be as long as one likes are short."""
        return (
            {"RUNUP_FIT_CASES": "20"}
            | os.environ
            | {"PYTHONPATH": ":".join(map(str, self.folder.glob("packages/*/src")))}
        )

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """The copy with the mutant in it."""
        here, was = self.folder / mutant.inside, mutant.path.stat()
        here.write_text(mutant.code())
        # Python takes compiled code by the source's time in seconds and its size: each mutant has a time of its own.
        self._placed += 1
        os.utime(here, (self._placed, self._placed))
        try:
            yield
        finally:
            here.write_text(text_of(mutant.path))
            os.utime(here, ns=(was.st_atime_ns, was.st_mtime_ns))
            # Examples that failed under this mutant would be tried first under the next.
            shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)

    def outcome(self, mutant: Mutant) -> str:
        """`survived` if no test fails that passes without the change, `killed` if one does, else `out of time`."""
        tests = nearest_tests(mutant.path)
        while True:
            with self.changed(mutant):
                code, said = self._run(["-x", *(f"--deselect={test}" for test in self.failing), *tests])
            failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
            if code in (0, NO_TEST, OUT_OF_TIME):
                return "out of time" if code == OUT_OF_TIME else "survived"
            # Without a name it was no single test: the module cannot be imported, or a test had no end.
            if failed is None or "::" not in failed[1] or self._run([failed[1]])[0] == 0:
                return "killed"
            self.failing.append(failed[1])

    def _run(self, arguments: Iterable[str]) -> tuple[int, str]:
        """Exit code and output of pytest."""
        options = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-m", marked(), "--timeout=180"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=self.folder,
            env=self.environment(),
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
