"""The fast way: each mutant in a fork of a process that has imported everybody else's packages already.

`Forks` is one end; `python -m bench.mutants_forks`, in the copy, the other: a line of JSON in for each mutant
(`tests`: seconds by test), one out (`code` of pytest, `failed`: the first test that did).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self

import pytest

from bench.mutants_copy import OUT_OF_TIME, Copy
from bench.mutants_lines import Lines
from bench.mutants_made import Mutant

# What takes long to import, and is nobody's mutant.
OTHERS = (
    *("aiohttp.web", "aiohttp.test_utils", "cel_expr_python", "click.testing", "cryptography.x509", "httptools"),
    *(
        "hypothesis",
        "jsonpatch",
        "jsonschema_rs",
        "msgspec",
        "orjson",
        "prometheus_client",
        "pysequoia",
        "pytest_asyncio",
    ),
    *("pytest_timeout", "rich.console", "semver", "structlog", "unittest.mock", "yaml", "zstandard"),
)
MEMORY_BYTES = 8 << 30
SLOWEST_S = 150.0


class Forks:
    """Asks the warm process."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._alone: dict[str, bool] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.mutants_forks"],
            cwd=copy.folder,
            env=copy.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def killed(self, mutant: Mutant, lines: Lines) -> bool:
        """Whether a test that runs the change fails, and passes alone without it."""
        tests = {test: took for test, took in lines.tests(mutant).items() if self._alone.get(test, True)}
        while tests:
            with self._copy.changed(mutant):
                answer = self._ask(tests)
            failed = answer["failed"]
            if answer["code"] in (0, OUT_OF_TIME):
                return False
            # Without a name it was no single test: the module cannot be imported.
            if not failed or self._passes_alone(failed, tests.get(failed, 1.0)):
                return True
            tests.pop(failed, None)
        return False

    def _passes_alone(self, test: str, took: float) -> bool:
        if test not in self._alone:
            self._alone[test] = self._ask({test: took})["code"] == 0
        return self._alone[test]

    def _ask(self, tests: dict[str, float]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"tests": tests}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class Chosen:
    """The plugin: these tests in this order, each with ten times its time, and which failed first."""

    def __init__(self, tests: dict[str, float]) -> None:
        self._tests = tests
        self._rank = {test: rank for rank, test in enumerate(tests)}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """By their rank. Where each parameter's fixture was meant to be made once, it is made more often."""
        items[:] = sorted(
            (each for each in items if each.nodeid in self._rank), key=lambda each: self._rank[each.nodeid]
        )
        for item in items:
            item.add_marker(pytest.mark.timeout(max(20.0, 10 * self._tests[item.nodeid])), append=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first is enough."""
        self.failed = self.failed or (report.nodeid if report.failed else "")


def main() -> int:
    """Answer until nobody asks any more."""
    for name in OTHERS:
        importlib.import_module(name)
    for asked in sys.stdin:
        print(json.dumps(_forked(json.loads(asked)["tests"])), flush=True)
    return 0


def _forked(tests: dict[str, float]) -> dict[str, Any]:
    """What a child says; without a word from it its exit code."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _child(tests, writing)
    os.close(writing)
    code = _ended(child)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    # Whoever outlives the child may hold the other end: it is read without waiting, and a pipe takes a name whole.
    os.set_blocking(reading, False)
    with os.fdopen(reading, "rb") as said:
        failed = (said.read() or b"").decode()
    return {"code": code, "failed": failed}


def _child(tests: dict[str, float], writing: int) -> None:
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    chosen = Chosen(tests)
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    code: int = 77
    try:
        code = pytest.main(
            ["-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", *files], plugins=[chosen]
        )
        os.write(writing, chosen.failed.encode())
    finally:
        os._exit(int(code))


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


if __name__ == "__main__":
    raise SystemExit(main())
