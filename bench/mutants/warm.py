"""`python -m bench.mutants.warm [FOLDER...]`, in the copy: a warm process that forks for each line of JSON it reads.

With folders it has collected their tests: a child gives the functions of the changed file their changed code, and no
module is imported again. What runs at import cannot be changed so; without folders a child collects what it runs, and
only everybody else's packages are there already. In: `tests` (limits in seconds), `file`, `code`; out: `code` of pytest
and `failed`, the first test that did.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TextIO

import pytest

from bench.mutants.copy import OUT_OF_TIME, marked

# What takes long to import, and is nobody's mutant.
OTHERS = (
    *("aiohttp.web", "aiohttp.test_utils", "cel_expr_python", "click.testing", "cryptography.x509", "httptools"),
    *(
        "hypothesis",
        "jsonschema_rs",
        "msgspec",
        "orjson",
        "prometheus_client",
        "pysequoia",
        "pytest_asyncio",
    ),
    *("pytest_timeout", "rich.console", "structlog", "unittest.mock", "yaml", "zstandard"),
)
OPTIONS = ("-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", marked())
MEMORY_BYTES = 8 << 30
SLOWEST_S = 150.0
# The child's exit code where a change is of another sort than a function's code.
CANNOT = 78
# The first line of all: what was to be imported has been.
READY = "ready\n"


class Forking:
    """The plugin, and the answers: in a child `tests` are those to run, in their order."""

    def __init__(self, asked: TextIO, answers: TextIO) -> None:
        self._asked = asked
        self._answers = answers
        self._failed = ""
        self._tests: dict[str, float] = {}
        self._writing: int | None = None

    def forked(self) -> Iterator[dict[str, Any]]:
        """What is asked, in a child for each; the parent answers, and comes out at the end."""
        self._answers.write(READY)
        self._answers.flush()
        for line in self._asked:
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                self._writing = writing
                asked = json.loads(line)
                self._tests = asked["tests"]
                yield asked
                return
            os.close(writing)
            print(json.dumps(_outcome(child, reading)), file=self._answers, flush=True)

    def ended(self, code: int) -> None:
        """A child's last word."""
        if self._writing is not None:
            os.write(self._writing, self._failed.encode())
            os._exit(code)

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """In the process that has collected everything: wait for what is asked, then run it as pytest does."""
        if self._writing is not None:
            return None
        # What is frozen is not listed.
        gc.unfreeze()
        functions = _functions()
        gc.freeze()
        for asked in self.forked():
            if "file" in asked:
                here = functions[str(Path(asked["file"]).absolute())]
                if not _change(here, asked["code"], asked["file"]):
                    os._exit(CANNOT)
            session.items[:] = self._chosen(session.items)
            return None
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """In the child that collects for itself: no more than was asked for."""
        if self._writing is not None:
            items[:] = self._chosen(items)

    def _chosen(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """By their rank, each with its limit."""
        rank = {test: number for number, test in enumerate(self._tests)}
        chosen = sorted((each for each in items if each.nodeid in rank), key=lambda each: rank[each.nodeid])
        for item in chosen:
            item.add_marker(pytest.mark.timeout(self._tests[item.nodeid]), append=False)
        return chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first is enough."""
        self._failed = self._failed or (report.nodeid if report.failed else "")


def _functions() -> dict[str, list[FunctionType]]:
    """Every function that there is, by its file."""
    found = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            found[each.__code__.co_filename].append(each)
    return found


def _change(functions: list[FunctionType], text: str, file: str) -> bool:
    """Give them the code that they have in `text`; whether that could be done, and changed anything.

    Of two of one name (a property's) the order tells which is which.
    """
    changed = False
    new = defaultdict(list)
    for code in _codes(compile(text, file, "exec", dont_inherit=True)):
        new[code.co_qualname].append(code)
    old = defaultdict(set)
    for function in functions:
        old[function.__code__.co_qualname].add(function.__code__.co_firstlineno)
    for function in functions:
        code = function.__code__
        same = new[code.co_qualname]
        if len(same) == len(old[code.co_qualname]):
            its = same[sorted(old[code.co_qualname]).index(code.co_firstlineno)]
            if len(its.co_freevars) != len(code.co_freevars):
                return False
            changed = changed or its != code
            function.__code__ = its
    return changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _outcome(child: int, reading: int) -> dict[str, Any]:
    code = _ended(child)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    # Whoever outlives the child may hold the other end: it is read without waiting, and a pipe takes a name whole.
    os.set_blocking(reading, False)
    with os.fdopen(reading, "rb") as said:
        failed = (said.read() or b"").decode()
    return {"code": code, "failed": failed}


def _ended(child: int) -> int:
    """Its exit code, or that it had no end."""
    end = time.monotonic() + SLOWEST_S
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return OUT_OF_TIME


def main(folders: list[str]) -> int:
    """Answer until nobody asks any more. What tests print goes nowhere."""
    forking = Forking(os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"))
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    for name in OTHERS:
        importlib.import_module(name)
    if folders:
        forking.ended(pytest.main([*OPTIONS, *folders], plugins=[forking]))
        return 0
    for asked in forking.forked():
        files = dict.fromkeys(test.partition("::")[0] for test in asked["tests"])
        forking.ended(pytest.main([*OPTIONS, *files], plugins=[forking]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
