"""The fast way: each mutant in a fork of a process that is warm, against the tests that run the changed line."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from bench.mutants.copy import OUT_OF_TIME, Copy
from bench.mutants.lines import LEAST_S, Lines
from bench.mutants.made import Mutant
from bench.mutants.rooms import tests_of
from bench.mutants.warm import CANNOT, READY


class Forks:
    """Asks the warm processes (`bench.mutants.warm`): one a room, and one that has imported nothing of ours."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._alone: dict[str, bool] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def killed(self, mutant: Mutant, lines: Lines) -> bool:
        """Whether a test that runs the change fails, and passes alone without it.

        What a row of a table had computed when it was collected shows only where all is imported again.
        """
        ways = ("",) if lines.at_import(mutant) else (mutant.room, "")
        return any(self._killed(mutant, lines, way) for way in ways)

    def _killed(self, mutant: Mutant, lines: Lines, room: str) -> bool:
        tests = {test: limit_s for test, limit_s in lines.tests(mutant).items() if self._alone.get(test, True)}
        if tests:
            # Before the change is there: what it had imported with it, it would have for all that follow.
            self._process(room)
        while tests:
            with self._copy.changed(mutant):
                answer = self._ask(room, {"tests": tests, "file": mutant.inside, "code": mutant.code()})
            failed = answer["failed"]
            if answer["code"] in (0, CANNOT, OUT_OF_TIME):
                return False
            # Without a name it was no single test: the module cannot be imported.
            if not failed or self._passes_alone(room, failed, tests.get(failed, LEAST_S)):
                return True
            tests.pop(failed, None)
        return False

    def _passes_alone(self, room: str, test: str, limit_s: float) -> bool:
        if test not in self._alone:
            self._alone[test] = self._ask(room, {"tests": {test: limit_s}})["code"] == 0
        return self._alone[test]

    def _ask(self, room: str, asked: dict[str, Any]) -> dict[str, Any]:
        process = self._process(room)
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    def _process(self, room: str) -> subprocess.Popen[str]:
        """Begins it where there is none yet, and returns it when it has imported what it is to import."""
        if room not in self._processes:
            process = self._processes[room] = self._begun(tests_of(room) if room else ())
            assert process.stdout
            if process.stdout.readline() != READY:
                raise RuntimeError(f"the tests of {room} cannot be collected")
        return self._processes[room]

    def _begun(self, folders: tuple[str, ...]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.mutants.warm", *folders],
            cwd=self._copy.folder,
            env=self._copy.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
