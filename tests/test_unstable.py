"""`--rerun-alone` on small runs: what is unstable, what is a failure, and what the run says about it."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.slow

# A test that fails the first time, whichever process runs it.
ONCE = """
    import pathlib, pytest
    HERE = pathlib.Path(__file__).parent
    def once(name):
        mark = HERE / name
        if not mark.exists():
            mark.write_text("")
            raise AssertionError("by chance")
"""


class Run:
    """One run, and what came of it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.folder = pytester.path

    def __call__(self, text: str, *options: str) -> Run:
        self._pytester.makepyfile(test_it=dedent(ONCE) + dedent(text))
        self._pytester.makeini("[pytest]\nmarkers =\n    xdist_group: of pytest-xdist\n")
        words = ("-p", "tests.unstable", "-p", "xdist.plugin", "-p", "pytest_timeout", "--rerun-alone", *options)
        done = self._pytester.run(sys.executable, "-m", "pytest", *words, timeout=100)
        self.code, self.out = done.ret, done.stdout.str()
        return self

    @property
    def closing(self) -> str:
        """The last line, without the time."""
        return re.sub(r" in [\d.]+s.*", "", self.out.strip().splitlines()[-1]).strip("= ")


@pytest.fixture
def ran(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest with the plugin on a file of tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    # Half of a short run's time is plugins that it has no use for.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return Run(pytester)


BOTH = pytest.mark.parametrize("workers", [pytest.param((), id="alone"), pytest.param(("-n2",), id="two workers")])


def test_folders_with_fixtures_of_their_own(ran: Run) -> None:
    """pytest asks each folder for the plugins that it leaves out, and keeps those in sets."""
    for folder in ("one", "two"):
        (ran.folder / folder).mkdir()
        (ran.folder / folder / "conftest.py").write_text("")
        (ran.folder / folder / f"test_{folder}.py").write_text("def test_good(): pass\n")
    ran("def test_good(): pass", "one", "two", "test_it.py")
    assert (ran.code, ran.closing) == (0, "3 passed")


@BOTH
def test_what_passes_alone_is_unstable(ran: Run, workers: tuple[str, ...]) -> None:
    """The run passes, says so, and shows the first failure; the record counts no failure and keeps it all the same."""
    ran(
        """
    def test_chance(): once("a")
    def test_good(): pass
    """,
        *workers,
        "--junitxml=told.xml",
    )
    assert (ran.code, ran.closing) == (0, "1 passed, 1 unstable")
    assert "unstable: 1 failed in the run and passed alone" in ran.out
    assert "AssertionError: by chance" in ran.out
    assert re.search(r"It failed after \d+\.\d s; alone it passed, in \d+\.\d s\.", ran.out)
    assert re.search(r"^UNSTABLE test_it.py::test_chance - AssertionError: by chance$", ran.out, re.MULTILINE)
    suite = ElementTree.parse(ran.folder / "told.xml").find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")
    assert suite.find("testcase/flakyFailure") is not None


@BOTH
def test_what_fails_again_is_a_failure(ran: Run, workers: tuple[str, ...]) -> None:
    """Next to one that is unstable, which is reported too."""
    ran(
        """
    def test_chance(): once("a")
    def test_bad(): assert 1 == 2
    def test_good(): pass
    """,
        *workers,
    )
    assert (ran.code, ran.closing) == (1, "1 failed, 1 passed, 1 unstable")
    assert "failed again, alone: test_it.py::test_bad: failure: assert 1 == 2" in ran.out


@pytest.mark.parametrize(("number", "code", "closing"), [(3, 0, "1 passed, 3 unstable"), (4, 1, "4 failed, 1 passed")])
def test_how_many_are_chance(ran: Run, number: int, code: int, closing: str) -> None:
    """Three; of four each is reported, and the run has failed."""
    ran(
        f"""
    @pytest.mark.parametrize("n", range({number}))
    def test_chance(n): once(str(n))
    def test_good(): pass
    """
    )
    assert (ran.code, ran.closing) == (code, closing)
    assert len(re.findall(r"^UNSTABLE ", ran.out, re.MULTILINE)) == number
    assert ("More than 3 unstable tests" in ran.out) is (number == 4)


def test_a_great_many_are_not_run_again(ran: Run) -> None:
    """The run has failed, and ends."""
    ran(
        """
    @pytest.mark.parametrize("n", range(21))
    def test_chance(n): once(str(n))
    """
    )
    assert (ran.code, ran.closing) == (1, "21 failed")
    assert "21 tests failed, which is no chance: none was run again" in ran.out


@pytest.mark.parametrize("workers", [(), ("-n2", "--dist=loadgroup")], ids=["alone", "two workers"])
@pytest.mark.parametrize(("group", "code"), [("one", 0), ("", 1)], ids=["of a group", "of none"])
def test_tests_of_a_group_build_on_each_other(ran: Run, group: str, code: int, workers: tuple[str, ...]) -> None:
    """Those before the failed one are run with it, those behind are not; alone it could not pass."""
    mark = f'pytestmark = pytest.mark.xdist_group("{group}")' if group else ""
    ran(
        f"""
    {mark}
    SEEN = []
    def test_first(): SEEN.append(1)
    def test_second():
        once("a")
        assert SEEN == [1]
    def test_third(): assert not (HERE / "third").exists(); (HERE / "third").write_text("")
    """,
        *(workers if group else ()),
    )
    assert ran.code == code


@BOTH
@pytest.mark.parametrize(
    "cases",
    [("with spaces", "a/b", "[brackets] and ]"), ("two::colons", "at@sign", "-k x"), ("an 'apostrophe", '"quote', "ä")],
)
def test_the_names_of_cases(ran: Run, cases: tuple[str, ...], workers: tuple[str, ...]) -> None:
    """As somebody writes them."""
    ran(
        f"""
    @pytest.mark.parametrize("n", {[*cases, "other"]!r}, ids=lambda each: each)
    def test_chance(n):
        if n != "other": once(str({cases!r}.index(n)))
    """,
        *workers,
        "--junitxml=told.xml",
    )
    assert (ran.code, ran.closing) == (0, "1 passed, 3 unstable")
    suite = ElementTree.parse(ran.folder / "told.xml").find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "0"


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        pytest.param('once("a")\n        yield', "1 unstable", id="before the test"),
        pytest.param('yield\n        once("a")', "1 passed, 1 unstable", id="after it"),
    ],
)
def test_an_error_in_a_fixture(ran: Run, body: str, counted: str) -> None:
    """Is a failure like any other."""
    ran(
        f"""
    @pytest.fixture
    def made():
        {body}
    def test_chance(made): pass
    """
    )
    assert (ran.code, ran.closing) == (0, counted)


def test_a_worker_that_crashes(ran: Run) -> None:
    """Its test is run again; one that crashes again has failed."""
    text = """
    import os
    def test_chance():
        try: once("a")
        except AssertionError: os._exit(3)
    def test_good(): pass
    """
    assert (ran(text, "-n2").code, ran.closing) == (0, "1 passed, 1 unstable")
    assert "crashed while running" in ran.out
    ran("import os\ndef test_bad(): os._exit(3)\ndef test_good(): pass", "-n2")
    assert (ran.code, ran.closing) == (1, "1 failed, 1 passed")
    assert "failed again, alone: test_it.py::test_bad: exit code 3" in ran.out


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_test_that_takes_too_long(ran: Run, method: str) -> None:
    """Its limit holds alone too, and is among the options that are kept."""
    text = """
    import time
    def test_chance():
        try: once("a")
        except AssertionError: time.sleep(60)
    def test_endless(): time.sleep(60)
    """
    ran(text, "-n2", "--timeout=2", f"--timeout-method={method}")
    assert (ran.code, ran.closing) == (1, "1 failed, 1 unstable")


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        pytest.param("import nothing_of_the_kind", (), 2, id="a file that cannot be read"),
        pytest.param('def test_chance(): once("a")', ("-x",), 1, id="whoever stops at the first"),
        pytest.param('def test_chance(): once("a")\ndef test_b(): raise KeyboardInterrupt', (), 2, id="Ctrl-C"),
        pytest.param('def test_chance(): once("a")', ("--no-such-option",), 4, id="words that are none"),
    ],
)
def test_a_run_that_did_not_come_to_its_end(ran: Run, text: str, options: tuple[str, ...], code: int) -> None:
    """Nothing is run again, and nothing changes."""
    ran(text, *options)
    assert ran.code == code
    assert "once more, alone" not in ran.out


@BOTH
def test_a_file_that_cannot_be_read_beside_an_unstable_test(ran: Run, workers: tuple[str, ...]) -> None:
    """Even where the others are run all the same."""
    (ran.folder / "test_none.py").write_text("import nothing_of_the_kind")
    ran('def test_chance(): once("a")', "--continue-on-collection-errors", *workers)
    assert ran.code == 1
    assert "UNSTABLE test_it.py::test_chance" in ran.out
    assert ran.closing == "1 error, 1 unstable"


def test_one_that_is_skipped_alone_has_not_passed(ran: Run) -> None:
    """It may have lost what it needs."""
    ran(
        """
    def test_chance():
        try: once("a")
        except AssertionError: raise
        pytest.skip("no longer")
    """
    )
    assert (ran.code, ran.closing) == (1, "1 failed")
    assert "failed again, alone: test_it.py::test_chance: skipped: no longer" in ran.out


def test_without_the_option_nothing_is_run_again(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer sees what fails at once."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(test_it=dedent(ONCE) + 'def test_chance(): once("a")')
    assert pytester.run(sys.executable, "-m", "pytest", "-p", "tests.unstable").ret == 1
