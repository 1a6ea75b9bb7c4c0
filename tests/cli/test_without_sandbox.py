"""Commands of an installation without the extra `sandbox`: `pip install kube-runup` brings no kubesandbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.few_or_many import first_and_rest

ROOT = Path(__file__).parents[2]
DUMP = str(ROOT / "examples" / "skip-level")
_WITHOUT = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "kubesandbox":
            raise ModuleNotFoundError("No module named 'kubesandbox'", name="kubesandbox")

sys.meta_path.insert(0, Missing())
"""


def run_without(code: str, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs `code` in an interpreter that finds no kubesandbox."""
    command = [sys.executable, "-c", _WITHOUT + code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=home, timeout=60)


@pytest.mark.parametrize(
    ("command", "words"),
    first_and_rest(
        [
            pytest.param("runup sandbox start", (), id="start"),
            pytest.param("runup sandbox stop", (), id="stop"),
            pytest.param("runup sandbox list", (), id="list"),
            pytest.param("runup demo", (), id="demo"),
            pytest.param("runup rehearse", ("--dump", DUMP, "--release-dir", "release"), id="rehearse"),
            pytest.param("runup fleet rehearse", ("--dumps", DUMP, "--release-dir", "release"), id="many clusters"),
        ],
        2,
    ),
)
def test_names_the_extra_that_a_command_needs(command: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """One line, before anything is read or started."""
    code = "from runup.cli.main import main; sys.exit(main())"
    done = run_without(code, *command.split()[1:], *words, home=tmp_path)
    way_out = "package kubesandbox is not installed; install it: pip install 'kube-runup[sandbox]'"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {command} needs the sandbox: {way_out}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "code"),
    first_and_rest(
        [
            pytest.param(("preflight", "run", "--dump", DUMP), 2, id="checks"),
            pytest.param(("rehearse", "drain", "--dump", DUMP), 2, id="drains"),
            pytest.param(("upgrade", "forecast", "--dump", DUMP), 3, id="forecast"),
            pytest.param(("sandbox", "start", "--help"), 0, id="help"),
        ],
        2,
    ),
)
def test_other_commands_need_no_sandbox(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """Some commands of `rehearse` only compute and need no sandbox."""
    done = run_without("from runup.cli.main import main; sys.exit(main())", *words, home=tmp_path)
    assert (done.returncode, done.stderr) == (code, ""), done.stderr


_REHEARSAL = """
import asyncio
from runup.target.rehearsal_process import RehearsalOrder, RehearsalProcess

process = RehearsalProcess(RehearsalOrder(release_dir="release"), 60.0, lambda: None)
asyncio.run(process.run())
print(process.outcomes[0].result, process.outcomes[0].message)
"""


def test_a_preflight_without_a_rehearsal_says_why(tmp_path: Path) -> None:
    """Nobody takes a rehearsal that did not happen for one without findings."""
    done = run_without(_REHEARSAL, home=tmp_path)
    assert done.stdout.startswith(
        "Unknown The effects of the release on this cluster were not rehearsed: package kubesandbox"
    )
    assert "pip install 'kube-runup[sandbox]'" in done.stdout
