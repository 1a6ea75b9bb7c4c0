"""Shows progress while clusters are read, and names a problem of many clusters once."""

from __future__ import annotations

import itertools
import json
import re
import time
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.cli.test_progress import Terminal

from runup.cli.fleet.render import fleet_text
from runup.cli.fleet.shared import Progress, grouped_problems
from runup.cli.fleet.status_command import StatusRow, text
from runup.cli.progress import ProgressDisplay
from runup.evaluation.workers import Pool
from runup.fleet.decide.matrix import Matrix
from runup.preflight.decide.findings import Result


def test_shows_what_is_under_way_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time for which nothing has ended; many names are counted, so that a line fits."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    clock = [0.0]
    display = ProgressDisplay(terminal, shown_after_s=0, now_s=lambda: clock[0])
    many = [f"cluster-{number:03}" for number in range(64)]
    shown = []
    with Progress(200, display, lambda: clock[0]) as progress:
        progress.count_one()
        for clock[0], names in ((0.5, ["east"]), (1.0, ["east", "west"]), (5.0, ["east"]), (7.0, many)):
            progress.clear_line()
            terminal.truncate(0)
            progress.show_under_way(names)
            text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[━╸╺]", "", terminal.getvalue())
            shown.append(" ".join(text.split()[1:]))
        progress.print_line("east: it is tried once more")
        assert terminal.getvalue().endswith("\x1b[2Keast: it is tried once more\n")
    assert shown == [
        "Reading clusters: east 1 of 200 0 s",
        "Reading clusters: east, west 1 of 200 1 s",
        "Reading clusters: east (5 s) 1 of 200 5 s",
        "Reading clusters: cluster-000, cluster-001, cluster-002 and 61 more (7 s) 1 of 200 7 s",
    ]


def test_a_pipe_shows_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A log would have a line for each second; what became of a cluster is written even so."""
    with Progress(300) as progress:
        progress.show_under_way(["east"])
        for _ in range(300):
            progress.count_one()
        assert capsys.readouterr().err == ""
        progress.print_line("east: it is tried once more")
    assert capsys.readouterr().err == "east: it is tried once more\n"


def _sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@pytest.mark.slow
def test_a_pool_says_what_it_does() -> None:
    """At least every two seconds while its workers are busy, also with a limit of time."""
    shown: list[tuple[float, list[int]]] = []
    began = time.monotonic()
    pool: Pool[float, float] = Pool(
        _sleep, 2, 60.0, under_way=lambda indexes: shown.append((time.monotonic() - began, list(indexes)))
    )
    assert sorted(answer for _, answer in pool.run([3.0, 2.9])) == [2.9, 3.0]  # type: ignore[type-var]
    moments = [moment for moment, _ in shown]
    assert max(later - earlier for earlier, later in itertools.pairwise(moments)) < 2
    assert sorted(shown[1][1]) == [0, 1]


def test_the_same_problem_is_named_once() -> None:
    """With its clusters; another one stays apart, in the order in which they come."""
    problems = [("a", "the store is down"), ("b", "no such folder"), ("c", "the store is down")]
    assert list(grouped_problems(problems)) == [("a, c", "the store is down"), ("b", "no such folder")]
    rows = [StatusRow(cluster=name, problem=problem) for name, problem in problems]
    assert str(list(text(rows))[-2:][0]) == "  a, c: the store is down\n"
    table = Matrix(
        clusters=("a", "b", "c"),
        results=dict.fromkeys("abc", Result.COULD_NOT_RUN),
        rows=(),
        groups=(),
        failed=tuple(problems),
    )
    assert "  a, c: the store is down\n" in [str(part) for part in fleet_text.text(table)]


def test_a_status_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    """As `fleet preflight` has it; the terminal has the table then."""
    file = tmp_path / "status.json"
    sample = Path(__file__).parents[3] / "examples"
    (tmp_path / "dumps").mkdir()
    Path(tmp_path / "dumps" / "east").symlink_to(sample / "skip-level")
    ran = run("fleet", "status", "--dumps", tmp_path / "dumps", "-o", f"json={file}")
    assert ran.out.startswith("1 cluster: ")
    printed = run("fleet", "status", "--dumps", tmp_path / "dumps", "-o", "json")
    assert json.loads(file.read_text()) == json.loads(printed.out)
    both = run("fleet", "status", "--dumps", tmp_path / "dumps", "-o", f"json={file},yaml=-")
    assert both.out.startswith("clusters:\n")
    missing = run("fleet", "status", "--dumps", tmp_path / "dumps", "-o", f"json={tmp_path}/none/status.json")
    assert (missing.code, "there is no folder" in missing.err) == (1, True)
