"""`runup demo` prints what the tutorial shows; failures, signals and closed pipes leave nothing running."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.conftest import RUNUP
from tests.servers import eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo"), pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[3]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-cluster.md"
STARTING, CHECKING = "sandbox start", "--mode=preflight"


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


def _left_over(folder: Path) -> list[str]:
    """Files that the demo left below its folder for temporary files."""
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


def _environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), **more}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, since sockets below it have a length limit."""
    path = Path(tempfile.mkdtemp(prefix="rd-"))
    yield path
    shutil.rmtree(path)


def _pattern(line: str) -> re.Pattern[str]:
    """A line of the tutorial: dots represent anything, times and seconds for others."""
    text = re.escape(line)
    text = text.replace(re.escape("[...]"), ".*").replace(re.escape("..."), ".*")
    text = re.sub(r"\d{4}\\-\d\d\\-\d\dT\d\d:\d\d:\d\dZ", r"\\S+Z", text)
    return re.compile(re.sub(r"\d+\\\.\d\\ s", r"\\d+\\.\\d s", text) + r"\Z")


def _transcript() -> list[str]:
    """What the tutorial shows of the demo, without blank lines and the progress that a fast machine does not show."""
    block = TUTORIAL.read_text().partition("```console\n")[2].partition("```")[0]
    progress = re.compile(r"waiting for|Preflight of \S+ from \S+: |\.\.\.$")
    return [line for line in block.splitlines() if line.strip() and not progress.match(line)]


def test_the_demo_prints_what_the_tutorial_shows(folder: Path) -> None:
    """Every line of the transcript is there, in its order; exit code 0, nothing left."""
    done = subprocess.run(
        [*RUNUP, "demo"], env=_environment(folder), capture_output=True, text=True, check=False, timeout=350
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    words = iter(done.stdout.splitlines())
    transcript = _transcript()
    assert len(transcript) > 12
    for line in transcript:
        assert any(_pattern(line).match(shown) for shown in words), f"the demo does not say, or not then: {line}"
    assert list(folder.iterdir()) == []
    assert _processes_in(folder) == []


def test_make_demo_is_that_demo() -> None:
    """The Makefile adds nothing to it but the installation."""
    # `make test` hands its own words to a make below it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "--dry-run", "--assume-old=.venv/.runtime", "demo"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ".venv/bin/python -m runup demo\n")


@pytest.mark.parametrize(
    ("number", "after"),
    [
        pytest.param(signal.SIGINT, STARTING, id="Ctrl-C while the sandbox starts"),
        pytest.param(signal.SIGINT, CHECKING, id="Ctrl-C in the middle"),
        pytest.param(signal.SIGTERM, CHECKING, id="SIGTERM in the middle"),
    ],
)
def test_interrupted(folder: Path, number: signal.Signals, after: str) -> None:
    """130, one word, nothing runs any more, no folder stays; a second signal changes nothing."""
    running = subprocess.Popen(
        [*RUNUP, "demo"], env=_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    seen = []
    for line in running.stdout:
        seen.append(line)
        if after in line:
            break
    running.send_signal(number)
    for line in running.stdout:
        seen.append(line)
        if "Stopped; clearing up." in line:
            running.send_signal(number)
    assert running.wait(60) == 130, "".join(seen)
    assert "Stopped; clearing up.\n" in seen
    assert "Traceback" not in "".join(seen)
    eventually(lambda: not _processes_in(folder), "everything ended")
    assert list(folder.iterdir()) == []


def test_a_step_that_fails(folder: Path) -> None:
    """The story ends there: 1, the command and its exit code, nothing runs any more, and the logs alone are kept."""
    tools = folder / "tools"
    tools.mkdir()
    kubectl = tools / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'the pool is stuck' >&2\nexit 7\n")
    kubectl.chmod(0o755)
    (folder / "t").mkdir()
    environment = _environment(folder / "t", PATH=f"{tools}:{os.environ['PATH']}")
    done = subprocess.run([*RUNUP, "demo"], env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    said, command, logs = done.stderr.splitlines()[-3:]
    assert (said, command[:17]) == ("", "The demo stopped:")
    assert command.endswith('\'{"spec":{"paused":false}}\'` ended with exit code 7 instead of 0')
    assert done.stdout.splitlines()[-1].startswith("$ kubectl patch machineconfigpool infra")
    assert logs.startswith(f"Logs: {folder}/t/runup-demo-")
    kept = _left_over(folder / "t")
    assert sorted({Path(path).parts[1] for path in kept}) == ["logs"]
    assert Path(logs.removeprefix("Logs: ")).is_dir()
    eventually(lambda: not _processes_in(folder / "t"), "everything ended")


def test_a_reader_that_leaves(folder: Path) -> None:
    """`runup demo | head` ends the demo with what a shell calls SIGPIPE, without a word; nothing is left."""
    running = subprocess.Popen(
        [*RUNUP, "demo"], env=_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stderr is not None
    while "--data" not in running.stdout.readline():
        pass
    running.stdout.close()
    assert (running.wait(60), running.stderr.read()) == (141, "")
    running.stderr.close()
    eventually(lambda: not _processes_in(folder), "everything ended")
    assert list(folder.iterdir()) == []
