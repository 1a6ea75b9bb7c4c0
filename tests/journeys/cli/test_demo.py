"""`runup demo` ends with 0 in under a minute; Ctrl-C and failures leave nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.journeys.conftest import RUNUP
from tests.servers import eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo"), pytest.mark.timeout(180)]


def _processes_in(folder: Path) -> list[str]:
    """Command lines and environments that name `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text and process.name != str(os.getpid()):
            found.append(process.name)
    return found


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}


@pytest.fixture
def folder() -> Path:
    """A short path, since sockets below it have a length limit."""
    import tempfile

    return Path(tempfile.mkdtemp(prefix="rd-"))


def test_the_demo(folder: Path) -> None:
    """The whole story, with real output."""
    done = subprocess.run(
        [*RUNUP, "demo"], env=_environment(folder), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for words in ("$ runup upgrade --mode=preflight --to=5.2.0 --wait", "Reason: UnacceptedRisks", "s after the fix."):
        assert words in done.stdout
    assert list(folder.iterdir()) == []
    assert _processes_in(folder) == []


def test_interrupted(folder: Path) -> None:
    """Ctrl-C in the middle: 130, nothing runs any more, no folder stays."""
    running = subprocess.Popen(
        [*RUNUP, "demo"], env=_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    for line in running.stdout:
        if "--mode=preflight" in line:
            break
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    eventually(lambda: not _processes_in(folder), "everything ended")
    assert list(folder.iterdir()) == []
