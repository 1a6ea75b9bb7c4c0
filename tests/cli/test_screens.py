"""What a command takes for its screen: a terminal of a given size, a dumb one, one without colours, a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len
from tests.cli.commands import Server
from tests.few_or_many import first_and_rest

RUNUP = (sys.executable, "-m", "runup")
STATUS = {
    "desired": {"version": "5.0.0", "image": "x"},
    "conditions": [
        {"type": type_, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-14T09:30:00Z"}
        for type_, status in (
            ("PreflightRunning", "True"),
            ("PreflightCompleted", "True"),
            ("PreflightFailed", "False"),
        )
    ],
    "conditionalUpdates": [
        {
            "release": {"version": "5.2.0", "image": "x"},
            "riskNames": ["DualStackIncompatible"],
            "risks": [
                {
                    "name": "DualStackIncompatible",
                    "message": "Preflight=5.2.0: "
                    + "Cluster uses dual-stack networking, which 5.2.0 cannot have. " * 2,
                    "url": "https://example.com/a",
                    "matchingRules": [{"type": "Always"}],
                    "conditions": [
                        {
                            "type": "Applies",
                            "status": "True",
                            "reason": "PreflightValidation",
                            "message": "m",
                            "lastTransitionTime": "2026-01-14T09:30:00Z",
                        }
                    ],
                }
            ],
            "conditions": [],
        }
    ],
}


@pytest.fixture
def kubeconfig(server: Server) -> Path:
    """Of a cluster on which a preflight found one risk."""
    server.set_cluster_version(spec={"desiredUpdate": {"version": "5.2.0", "mode": "Preflight"}}, status=STATUS)
    return Path(server.kubeconfig)


def environment(kubeconfig: Path, **more: str) -> dict[str, str]:
    """Nothing of the tester's own terminal."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES", "TERM")}
    # In another namespace than those in which other tests store reports.
    return {**kept, "KUBECONFIG": str(kubeconfig), "LC_ALL": "C.UTF-8", "CVO_NAMESPACE": "no-reports", **more}


def typed(kubeconfig: Path, *words: str, size: tuple[int, int] = (24, 80), **more: str) -> tuple[str, int]:
    """What a terminal of `size` (lines, columns) got, and the exit code."""
    env = environment(kubeconfig, **{"TERM": "xterm", **more})
    child = pexpect.spawn(RUNUP[0], [*RUNUP[1:], *words], env=env, encoding="utf-8", timeout=90, dimensions=size)
    said = child.read()
    child.close()
    return said.replace("\r\n", "\n"), child.exitstatus


@pytest.mark.parametrize("width", first_and_rest([80, 60, 120, 200]))
def test_a_terminal_is_asked_how_wide_it_is(width: int, kubeconfig: Path) -> None:
    """The table fits it, and the exit code is that of the result."""
    said, code = typed(kubeconfig, "preflight", "show", size=(24, width), NO_COLOR="1")
    assert code == 2
    lines = said.splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert any(line.startswith("1. DualStackIncompatible: Cluster uses dual-stack") for line in lines)
    assert lines[-1] == "  runup upgrade accept DualStackIncompatible"


@pytest.mark.parametrize(
    ("more", "colours"),
    [
        pytest.param({}, True, id="a usual terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"NO_COLOR": ""}, True, marks=pytest.mark.slow, id="NO_COLOR that is empty says nothing"),
        pytest.param({"TERM": "dumb"}, False, marks=pytest.mark.slow, id="a dumb terminal"),
    ],
)
def test_who_gets_colours(more: dict[str, str], colours: bool, kubeconfig: Path) -> None:
    """A terminal that knows them, and nobody who does not want them."""
    said, _ = typed(kubeconfig, "preflight", "show", **more)
    assert ("\x1b[" in said) is colours


def test_columns_outweighs_the_terminal(kubeconfig: Path) -> None:
    """As everywhere."""
    said, _ = typed(kubeconfig, "preflight", "show", size=(24, 200), COLUMNS="60", NO_COLOR="1")
    assert max(cell_len(line) for line in said.splitlines()) <= 60


def test_a_terminal_that_does_not_know_its_size_is_a_usual_one(kubeconfig: Path) -> None:
    """0 by 0, as some programs start others."""
    said, code = typed(kubeconfig, "preflight", "show", size=(0, 0), NO_COLOR="1")
    assert code == 2
    assert 60 < max(cell_len(line) for line in said.splitlines()) <= 80


@pytest.mark.slow
@pytest.mark.parametrize("more", first_and_rest([{}, {"COLUMNS": "60"}, {"TERM": "xterm"}]), ids=str)
def test_a_pipe_is_plain(more: dict[str, str], kubeconfig: Path) -> None:
    """One line a risk however wide anything is, without an escape; rich is not even loaded."""
    code = (
        "import sys; from runup.cli.main import main; code = main(['preflight', 'show']); "
        "print('rich' in sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(kubeconfig, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert (done.returncode, done.stderr) == (2, "False\n")
    assert "\x1b" not in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("1. "))
    assert row.split()[:2] == ["1.", "DualStackIncompatible:"]
    assert row.endswith("which 5.2.0 cannot have.")
    assert row.count("Cluster uses") == 2
