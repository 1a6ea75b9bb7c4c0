"""What `tools/check_citations.py` follows, and what it calls a way to nowhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tools.check_citations import Checkout, citations, main

from runup.cli.main import root as runup

UPSTREAM = "# Upstream\n\n## 6 Status\n\n### 6.1 Conditions\n"
BEFORE = "# 72. Before\n\nStatus: accepted\n\n## Context\n\n## D20 Without a mode\n\n## D24 Live\n"
CODE = '"""A module."""\n\nLIMIT = 3\n\n\nclass Named:\n    """It has a part."""\n\n    part: int = 0\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with a page, two records and a module."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    written = {
        "docs/reference/upstream.md": UPSTREAM,
        "docs/decisions/0072-decisions-from-before-the-code.md": BEFORE,
        "docs/decisions/0007-own.md": "# 7. Own\n",
        "packages/runup/src/runup/release/decide/listing.py": CODE,
        "bench/__main__.py": "",
    }
    for name, text in written.items():
        write(tmp_path, name, text)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    """A file below `folder`."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def faults(folder: Path, name: str, text: str) -> list[str]:
    """What is said about `text` as the file `name`, without its place."""
    write(folder, name, text)
    checkout = Checkout(folder)
    vars(checkout)["commands"] = {"runup": runup}
    mine = [found for found in citations(checkout) if found.line.file == folder / name]
    return [f"{found.what} {found.fault}" for found in mine if found.fault]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("docs/reference/upstream.md 6.1", id="a section of a page"),
        pytest.param("docs/reference/upstream.md 6, 6.1", id="several sections"),
        pytest.param("docs/decisions/0007", id="a record by its number"),
        pytest.param("docs/decisions/0007-own.md", id="a record by its name"),
        pytest.param("decision record 7", id="a record in words"),
        pytest.param("docs/decisions/0072 D20", id="a decision with its record"),
        pytest.param("docs/decisions/0072 D20, D24", id="several decisions of a record"),
        pytest.param("openshift/enhancements#1930", id="a public proposal"),
        pytest.param("openshift/cluster-version-operator docs/dev/operators.md", id="somebody else's page"),
        pytest.param("packages/runup/src/runup/release/decide/listing.py", id="a path from the root"),
        pytest.param("release/decide/listing.py", id="a path as prose has it"),
        pytest.param("`release/decide`", id="a room"),
        pytest.param("release/decide/listing", id="a module of a room"),
        pytest.param("docs/decisions/<number>, src/{name}.py, src/*.py", id="a form with gaps"),
        pytest.param("python -m bench, python -m json", id="modules that start"),
        pytest.param("runup.release.decide.listing.Named.part", id="a part of a class of a module"),
        pytest.param("preflight.runup.dev/mode", id="a label"),
        pytest.param("records 10,000 samples, records 20% more", id="numbers that are no record's"),
    ],
)
def test_what_leads_on(folder: Path, said: str) -> None:
    """In a comment as in a page."""
    assert faults(folder, "tools/one.py", f"# {said}\n") == []
    assert faults(folder, "README.md", f"{said}\n") == []


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        pytest.param("cvo-behaviour 6.1", "cvo-behaviour is no document of this repository", id="an absent paper"),
        pytest.param("Seed 002", "Seed 002 is no document of this repository", id="another one"),
        pytest.param(
            "docs/reference/upstream.md 6.7",
            "docs/reference/upstream.md 6.7 is no section of that page",
            id="a section",
        ),
        pytest.param("docs/nothing.md", "docs/nothing.md does not exist", id="a page"),
        pytest.param("docs/decisions/0008", "docs/decisions/0008 does not exist", id="a record"),
        pytest.param("decision record 8", "decision record 8 leads to no record", id="a record in words"),
        pytest.param("(D20)", "D20 says not where it is decided: docs/decisions/0072 D20", id="a decision alone"),
        pytest.param(
            "docs/decisions/0072 D21", "docs/decisions/0072 D21 is not in that record", id="a decision of no record"
        ),
        pytest.param(
            "packages/runup/src/runup/whole.py",
            "packages/runup/src/runup/whole.py does not exist",
            id="a path from the root",
        ),
        pytest.param("release/whole.py", "release/whole.py does not exist", id="a path as prose had it once"),
        pytest.param("`release/controllers`", "release/controllers does not exist", id="a room that is gone"),
        pytest.param("python -m bench.nothing", "python -m bench.nothing is no module", id="a module to start"),
        pytest.param(
            "runup.release.decide.listing.Other",
            "runup.release.decide.listing.Other is no name in the code",
            id="a name",
        ),
    ],
)
def test_what_leads_nowhere(folder: Path, said: str, fault: str) -> None:
    """In a comment, in a docstring, in a page and in a remark of data."""
    assert faults(folder, "tools/one.py", f"# {said}\n") == [fault]
    assert faults(folder, "tools/one.py", f'"""{said}"""\n') == [fault]
    assert faults(folder, "README.md", f"{said}\n") == [fault]
    assert faults(folder, "deploy/one.yaml", f"# {said}\nkey: docs/nothing.md\n") == [fault]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param("`runup upgrade status --details=all`", [], id="a command with a flag"),
        pytest.param("`runup upgrade recommend 5.2.0`", [], id="a command with an argument"),
        pytest.param("`runup adm upgrade`", [], id="the long name of a command"),
        pytest.param("`runup stats`", ["runup stats has no command 'stats'"], id="a command that is none"),
        pytest.param("```\n$ runup stats\n```", ["runup stats has no command 'stats'"], id="one that is typed"),
        pytest.param("runup stands by itself", [], id="a sentence that begins with the name"),
    ],
)
def test_commands(folder: Path, page: str, expected: list[str]) -> None:
    """As `runup` knows them."""
    assert faults(folder, "README.md", f"{page}\n") == expected


def test_data_in_code_is_no_citation(folder: Path) -> None:
    """What a program handles may be called anything."""
    assert faults(folder, "tests/one.py", 'ROW = ("docs/nothing.md", "cvo-behaviour", "D20")\n') == []


def test_a_page_without_its_section_leads_to_nothing_in_particular(folder: Path) -> None:
    """Nor does one whose section is in the next line: nobody could follow it."""
    fault = "docs/reference/upstream.md is cited without a section, or with one in another line"
    assert faults(folder, "tools/one.py", "# docs/reference/upstream.md\n# 6.1\n") == [fault]


def test_a_record_may_tell_where_something_was(folder: Path) -> None:
    """If it says that it is there no more."""
    name = "docs/decisions/0009-moved.md"
    assert faults(folder, name, "The client lay in `release/controllers`.\n") == []
    assert faults(folder, name, "The client is in `release/controllers`.\n") != []


def test_what_is_printed_and_the_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Place and reason for each; the figures for who counts."""
    write(folder, "tools/one.py", "# first\n# (D20), docs/decisions/0007\n")
    assert main([str(folder)]) == 1
    assert capsys.readouterr().out == (
        "tools/one.py:2: D20 says not where it is decided: docs/decisions/0072 D20\ncitations: 1 of 2 lead nowhere\n"
    )
    assert main(["--count", str(folder)]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "citations": 2,
        "leadNowhere": 1,
        "why": {"says not where it is decided": 1},
    }
    write(folder, "tools/one.py", "# docs/decisions/0072 D20\n")
    assert main([str(folder)]) == 0


def test_a_file_that_is_not_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named with its line, and nothing is said about the others."""
    write(folder, "tools/half.py", "X = 1\ndef half(:\n")
    assert main([str(folder)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {folder}/tools/half.py:2: ")
    assert not said.out
