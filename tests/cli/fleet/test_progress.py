"""Shows progress while clusters are read, and names a problem of many clusters once."""

from __future__ import annotations

import io
import itertools
import json
import time
from pathlib import Path

import pytest
from tests.cli.commands import Run

from runup.cli.fleet.render import fleet_text
from runup.cli.fleet.shared import Progress, grouped_problems
from runup.cli.fleet.status_command import StatusRow, text
from runup.evaluation.workers import Pool
from runup.fleet.decide.matrix import Matrix
from runup.preflight.decide.findings import Result


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        """Says that it is one."""
        return True


def _lines(terminal: Terminal) -> list[str]:
    return terminal.getvalue().split("\r\x1b[K")[1:]


def test_a_terminal_shows_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second, and for how long nothing has ended; many names are counted."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    clock = [0.0]
    progress = Progress(200, lambda: clock[0])
    progress.count_one()
    many = [f"cluster-{number:03}" for number in range(64)]
    for clock[0], names in (
        (0.5, ["east"]),
        (1.0, ["east", "west"]),
        (2.0, ["east", "west"]),
        (5.0, ["east"]),
        (7.0, many),
    ):
        progress.show_under_way(names)
    lines = _lines(terminal)
    assert lines[:4] == [
        "1 of 200 clusters",
        "1 of 200 clusters; reading east, west",
        "1 of 200 clusters; reading east, west, 2 s",
        "1 of 200 clusters; reading east, 5 s",
    ]
    assert lines[4] == "1 of 200 clusters; reading cluster-000, cluster-001 and 62 more, 7 s"
    assert max(map(len, lines)) < 80


def test_a_pipe_shows_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A log would have a line for each second."""
    progress = Progress(3)
    progress.show_under_way(["east"])
    progress.count_one()
    assert capsys.readouterr().err == ""


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
