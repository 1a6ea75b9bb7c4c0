"""`pytest --rerun-alone`: what fails is run once more, alone, when everything else is over.

What passes then is unstable: it is told with its first failure, and is no failure of the run. More than three of them
are, for then it is not chance. What fails again is a failure as ever; and where a run did not come to its end (no
collection, Ctrl-C, an error of pytest's own, `-x`) nothing is run again and nothing changes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

MOST_UNSTABLE = 3
# So many at once are no chance, whatever became of each: the run has failed, and is not made longer.
MOST_AGAIN = 20
# No single test's own limit is as long.
LONGEST_S = 1800
UNSTABLE = "unstable"
# What says where in a run a process is.
OF_THE_RUN = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Off unless it is asked for: a developer who runs a few tests sees what fails at once."""
    parser.addoption(
        "--rerun-alone", action="store_true", help="run what failed once more, alone; what passes then is unstable"
    )


def pytest_configure(config: pytest.Config) -> None:
    """In the process that sees all reports: not in a worker of pytest-xdist."""
    options = config.option
    if options.rerun_alone and not options.collectonly and not options.maxfail and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again(config), "rerun-alone")


@dataclass
class Failed:
    """A test's failures in the run, and how it went alone."""

    reports: list[pytest.TestReport]
    passed: bool = False
    seconds: float = 0.0
    said: str = ""

    @property
    def text(self) -> str:
        """What failed first."""
        return self.reports[0].longreprtext

    @property
    def first_line(self) -> str:
        """In a line."""
        crash = getattr(self.reports[0].longrepr, "reprcrash", None)
        return str(crash.message if crash else self.text).partition("\n")[0]


@dataclass(eq=False)  # pytest keeps plugins in sets
class Again:
    """The plugin."""

    config: pytest.Config
    failed: dict[str, Failed] = field(default_factory=dict)
    # Tests by their group and file, in the order in which they ran.
    ran: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    broken: bool = False
    why_not: str = ""

    def pytest_sessionstart(self) -> None:
        """The closing line counts what it knew about before."""
        self._reporter.stats.setdefault(UNSTABLE, [])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Which test is of which group; pytest-xdist writes it behind the test's name."""
        for item in session.items:
            if marker := item.get_closest_marker("xdist_group"):
                self.groups[item.nodeid] = str(marker.args[0] if marker.args else marker.kwargs.get("name", "default"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read is no test that could pass."""
        self.broken = self.broken or report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note who ran, and who failed."""
        name, group = split(report.nodeid)
        group = group or self.groups.get(name, "")
        several = self.ran.setdefault((group, name.partition("::")[0]), [])
        if name not in several:
            several.append(name)
        if report.failed:
            self.failed.setdefault(report.nodeid, Failed([])).reports.append(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """After the workers have ended, and the record of the run is written: run what failed, and evaluate."""
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not self.failed:
            return
        if len(self.failed) > MOST_AGAIN:
            self.why_not = f"{len(self.failed)} tests failed, which is no chance: none was run again"
            return
        for nodeid, test in self.failed.items():
            name, group = split(nodeid)
            self._alone(name, group or self.groups.get(name, ""), test)
        self._evaluate(session)

    def _evaluate(self, session: pytest.Session) -> None:
        unstable = [test for test in self.failed.values() if test.passed]
        if len(unstable) > MOST_UNSTABLE:
            return
        moved = [report for test in unstable for report in test.reports]
        stats = self._reporter.stats
        for category in ("failed", "error"):
            left = [report for report in stats.pop(category, []) if not any(report is each for each in moved)]
            stats.update({category: left} if left else {})
        stats[UNSTABLE] = [test.reports[0] for test in unstable]
        if path := getattr(self.config.option, "xmlpath", None):
            rewrite(Path(path), [split(nodeid)[0] for nodeid, test in self.failed.items() if test.passed])
        seen = sum(len(test.reports) for test in self.failed.values())
        # Nothing else may have failed that was not seen here.
        if not self.broken and len(unstable) == len(self.failed) and session.testsfailed == seen:
            session.exitstatus = pytest.ExitCode.OK

    def _alone(self, name: str, group: str, test: Failed) -> None:
        """Tests of a group that build on each other are run from the file's first one on."""
        several = self.ran[group, name.partition("::")[0]]
        names = several[: several.index(name) + 1] if group else [name]
        self._reporter.ensure_newline()
        self._reporter.write_line(f"once more, alone: {name}")
        began = time.monotonic()
        test.passed, test.said = run(self.config, names)
        test.seconds = time.monotonic() - began

    @property
    def _reporter(self) -> Any:
        return self.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What is unstable, with its first failure; what failed again, by name."""
        if not self.failed:
            return
        if self.why_not:
            terminalreporter.section(self.why_not)
        unstable = {nodeid: test for nodeid, test in self.failed.items() if test.passed}
        if unstable:
            terminalreporter.section(f"unstable: {len(unstable)} failed in the run and passed alone")
        for nodeid, test in unstable.items():
            terminalreporter.write_line(f"____ {nodeid} ____")
            terminalreporter.write_line(test.text)
            took = sum(report.duration for report in test.reports)
            terminalreporter.write_line(f"It failed after {took:.1f} s; alone it passed, in {test.seconds:.1f} s.")
        for nodeid, test in unstable.items():
            terminalreporter.write_line(f"UNSTABLE {nodeid} - {test.first_line}")
        if len(unstable) > MOST_UNSTABLE:
            terminalreporter.write_line(f"More than {MOST_UNSTABLE} unstable tests are a failure of the run.")
        for nodeid, test in self.failed.items():
            if test.said:
                terminalreporter.write_line(f"failed again, alone: {nodeid}: {test.said}")


def split(nodeid: str) -> tuple[str, str]:
    """Name and group of a test as pytest-xdist tells it: `file::test[case]@group`."""
    if nodeid.rfind("@") > nodeid.rfind("]"):
        name, _, group = nodeid.rpartition("@")
        return name, group
    return nodeid, ""


def run(config: pytest.Config, names: list[str]) -> tuple[bool, str]:
    """Whether the last of `names` passes in a separate process, and why not."""
    environ = {key: value for key, value in os.environ.items() if key not in OF_THE_RUN}
    with tempfile.TemporaryDirectory(prefix="rerun-alone-") as folder:
        shown = Path(folder) / "told.xml"
        options = ["-p", "no:xdist", "-p", "no:cacheprovider", f"--junitxml={shown}", f"--rootdir={config.rootpath}"]
        command = [sys.executable, "-m", "pytest", *kept(config), *options, *names]
        try:
            done = subprocess.run(
                command,
                cwd=config.rootpath,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            return False, f"no end within {LONGEST_S} s"
        if not shown.is_file():
            return False, f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}"
        return verdict(shown, names[-1])


def verdict(shown: Path, name: str) -> tuple[bool, str]:
    """Whether a record of a run says that the test passed, and what it says otherwise."""
    cases = [case for case in ElementTree.parse(shown).iter("testcase") if address(case) == addressed(name)]
    bad = [part for case in cases for part in case if part.tag in {"failure", "error", "skipped"}]
    if bad:
        return False, f"{bad[0].tag}: {(bad[0].get('message') or '').partition(chr(10))[0]}"
    return bool(cases), "" if cases else "it did not run"


def kept(config: pytest.Config) -> list[str]:
    """Of the run's own options those that say how a test is run, and none that say which."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for names in (("-p",), ("-W",), ("-c",), ("-o", "--override-ini"), ("--timeout",), ("--timeout-method",)):
        parser.add_argument(*names, dest=names[-1], action="append", default=[])
    given, _ = parser.parse_known_args([str(each) for each in config.invocation_params.args])
    return [word for name, values in vars(given).items() for value in values for word in (name, value)]


def address(case: ElementTree.Element) -> tuple[str, str]:
    """By which a record in JUnit's form knows a test, without its group."""
    return case.get("classname", ""), split(case.get("name", ""))[0]


def addressed(name: str) -> tuple[str, str]:
    """The same of a test's name."""
    base, bracket, case = name.partition("[")
    file, *inner = base.split("::")
    parts = [file.removesuffix(".py").replace("/", "."), *inner]
    return ".".join(parts[:-1]), parts[-1] + bracket + case


def rewrite(path: Path, names: list[str]) -> None:
    """Say in a record in JUnit's form that these were unstable, as Maven does, and count them as no failures."""
    tree = ElementTree.parse(path)
    unstable = {addressed(name) for name in names}
    for suite in tree.iter("testsuite"):
        for case in suite.iter("testcase"):
            for part in case if address(case) in unstable else ():
                if part.tag in {"failure", "error"}:
                    counted = "failures" if part.tag == "failure" else "errors"
                    suite.set(counted, str(int(suite.get(counted, "1")) - 1))
                    part.tag = f"flaky{part.tag.capitalize()}"
    tree.write(path, encoding="utf-8", xml_declaration=True)
