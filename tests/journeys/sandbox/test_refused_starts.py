"""`runup sandbox` as typed: what it refuses, in one line, with nothing left behind."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest
from tests.journeys.conftest import RUNUP

from runup.sandbox.scenario.folder import BUNDLED, DEFAULT

SAMPLES = Path(__file__).parents[2] / "dump" / "samples"


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    """`runup sandbox` with these words."""
    return subprocess.run([*RUNUP, "sandbox", *words], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param(["--scenario", "typo"], "choose one of skip-level", id="an unknown scenario lists them"),
        pytest.param(["--import", "/nowhere/at-all"], "there is no folder", id="no dump"),
        pytest.param(["--import", str(SAMPLES / "cases")], "import one of them", id="several dumps in a folder"),
        pytest.param(["--data", "/proc/runup"], "cannot be written", id="a folder that cannot be written"),
    ],
)
def test_a_start_that_cannot_be(tmp_path: Path, words: list[str], shown: str) -> None:
    """Non-zero, one error with the way out, no data folder."""
    data = tmp_path / "data"
    done = typed("start", "--data", str(data), *words)
    assert done.returncode != 0
    assert shown in done.stderr
    assert "Traceback" not in done.stderr
    assert not data.exists()


def test_a_port_in_use(tmp_path: Path) -> None:
    """It is named, and --port with it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = typed("start", "--data", str(tmp_path / "data"), "--port", str(port))
    assert done.returncode != 0
    assert f"port {port} is in use; give another with --port" in done.stderr
    assert not (tmp_path / "data").exists()


def scenario(folder: Path) -> str:
    """The default scenario, whose releases have a check that is no YAML."""
    (folder / "release" / "preflight-checks").mkdir(parents=True)
    (folder / "scenario.yaml").write_bytes((BUNDLED / DEFAULT / "scenario.yaml").read_bytes())
    (folder / "release" / "preflight-checks" / "bad.yaml").write_text("kind: [")
    return str(folder)


@pytest.mark.parametrize("was_there", [False, True], ids=["a folder that was not there", "an empty one that was"])
def test_a_start_that_fails_on_the_way(was_there: bool, tmp_path: Path) -> None:
    """The created files are removed, and the error gives the reason."""
    data = tmp_path / "data"
    if was_there:
        data.mkdir()
    done = typed("start", "--data", str(data), "--scenario", scenario(tmp_path / "odd"))
    assert done.returncode == 1
    assert "preflight-checks/bad.yaml, line 2, column 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert (data.exists(), list(tmp_path.glob("data/*"))) == (was_there, [])


def test_a_sandbox_that_was_there_stays_when_its_start_fails(tmp_path: Path) -> None:
    """One that does not become ready again keeps what is in it."""
    data = tmp_path / "data"
    try:
        assert typed("start", "--data", str(data)).returncode == 0
        typed("stop", "--data", str(data))
        port = json.loads((data / "sandbox.json").read_text())["apiPort"]
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
            done = typed("start", "--data", str(data))
        assert done.returncode == 1
        assert f"port {port} is in use" in done.stderr
        assert (data / "sandbox.json").exists()
        assert (data / "ready.json").exists()
    finally:
        typed("stop", "--data", str(data))


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    """A folder with other files is not taken over, and not removed."""
    (tmp_path / "mine.txt").write_text("mine")
    assert "does not contain a sandbox" in typed("start", "--data", str(tmp_path)).stderr
    assert typed("reset", "--data", str(tmp_path)).returncode == 1
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_nothing_runs(tmp_path: Path) -> None:
    """status says so with exit code 1; stop has nothing to do."""
    assert typed("status", "--data", str(tmp_path)).returncode == 1
    done = typed("stop", "--data", str(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, f"no sandbox runs in {tmp_path}")
