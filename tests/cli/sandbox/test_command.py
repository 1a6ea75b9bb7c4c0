"""`runup sandbox ...` where nothing has to be started: what is reported of a folder, its logs, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from tests.cli.commands import Run

from kubekit.error_types import InputError
from kubekit.kube.clock import SystemClock
from kubesandbox.sandbox_error import SandboxError
from runup.cli.sandbox import command
from runup.sandbox.processes import lifecycle
from runup.sandbox.processes.lifecycle import Progress
from runup.sandbox.scenario import folder as scenarios
from runup.sandbox.setup import settings
from runup.sandbox.setup.settings import Ready, Settings

READY = Ready(title="A cluster", version="5.0.0", releases=("5.0.0", "5.1.0"), runner="process")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[int]:
    """The number of a process that is taken for the supervisor of the sandbox in the folder."""
    words = ("import time; print(flush=True); time.sleep(600)", "runup.sandbox.processes.supervisor")
    process = subprocess.Popen([sys.executable, "-c", *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it has its name from here on
    (tmp_path / settings.PID).write_text(str(process.pid))
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_folder_in_which_no_sandbox_runs(run: Run, tmp_path: Path) -> None:
    """Its status is 1, and ending what does not run is no error."""
    ran = run("sandbox", "status", "--data", tmp_path)
    assert (ran.code, ran.out, ran.err) == (1, f"no sandbox runs in {tmp_path}\n", "")
    ran = run("sandbox", "status", "--data", tmp_path, "-o", "json")
    assert (ran.code, json.loads(ran.out)) == (1, {"running": False, "data": str(tmp_path)})
    ran = run("sandbox", "stop", "--data", tmp_path)
    assert (ran.code, ran.out) == (0, f"no sandbox runs in {tmp_path}\n")


def test_a_sandbox_that_has_ended_still_tells_its_settings(run: Run, tmp_path: Path) -> None:
    """In the machine form."""
    settings.save(tmp_path, Settings(scenario="clean", api_port=7))
    settings.save_ready(tmp_path, READY)
    ran = run("sandbox", "status", "--data", tmp_path, "-o", "yaml")
    shown = yaml.safe_load(ran.out)
    assert (ran.code, shown["running"]) == (1, False)
    assert shown["settings"] == {"scenario": "clean", "apiPort": 7}
    assert shown["cluster"]["title"] == "A cluster"


def test_a_sandbox_that_runs(run: Run, tmp_path: Path, running: int) -> None:
    """It says how to be used as soon as it is ready; a second one is refused, and it can be ended."""
    ran = run("sandbox", "status", "--data", tmp_path)
    assert (ran.code, ran.out) == (0, f"running (process {running})\nstarting\n")
    settings.save_ready(tmp_path, READY)
    ran = run("sandbox", "status", "--data", tmp_path)
    assert ran.out == f"running (process {running})\n{command.how_to_use(tmp_path, READY)}\n"
    assert json.loads(run("sandbox", "status", "--data", tmp_path, "-o", "json").out)["running"] is True
    ran = run("sandbox", "start", "--data", tmp_path)
    said = f"error: a sandbox runs in {tmp_path} already (process {running}); `runup sandbox stop` ends it\n"
    assert (ran.code, ran.out, ran.err) == (1, "", said)
    ran = run("sandbox", "stop", "--data", tmp_path)
    assert (ran.code, ran.out) == (0, "stopped\n")
    assert run("sandbox", "status", "--data", tmp_path).code == 1


def test_what_an_earlier_start_chose_holds(run: Run, tmp_path: Path) -> None:
    """Another scenario, dump or port is refused, by the words that were typed."""
    settings.save(tmp_path, Settings(scenario="clean", api_port=7, registry_port=8, update_port=9))
    rows = (
        (("--scenario", "skip-level"), "was made with another scenario (clean)"),
        (("--import", "elsewhere"), "was made with another import (none)"),
        (("--port", "6"), "has port 7 for good"),
    )
    for words, said in rows:
        ran = run("sandbox", "start", "--data", tmp_path, *words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"error: the sandbox in {tmp_path} {said}"), ran.err


def test_a_dump_is_named_from_where_one_stands(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths work from the home folder too: the sandbox's processes have another working directory."""
    monkeypatch.chdir(tmp_path)
    settings.save(tmp_path, Settings(source=str(tmp_path / "dump"), api_port=7, registry_port=8, update_port=9))
    assert "another import" in run("sandbox", "start", "--data", tmp_path, "--import", "other").err
    monkeypatch.setenv("HOME", str(tmp_path))
    for typed in ("dump", "~/dump", tmp_path / "dump"):
        said = run("sandbox", "start", "--data", tmp_path, "--import", typed, "--port", "6").err
        assert "has port 7 for good" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", "--port", "0"), "Invalid value for '--port': 0 is not in the range 1<=x<=65535."),
        (("start", "--port", "65536"), "Invalid value for '--port': 65536 is not in the range 1<=x<=65535."),
        (("start", "--runner", "docker"), "'docker' is not one of 'runc', 'bubblewrap', 'process'."),
        (("start", "--scenario", "nonsense"), "nonsense"),
        (("reset",), "there is no sandbox in DIR; `runup sandbox start` makes one"),
        (("status", "-o", "xml"), "'xml' is not one of 'json', 'yaml'."),
        (("logs", "nothing"), "no log of 'nothing' in DIR; it has no logs"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], said: str, run: Run, tmp_path: Path) -> None:
    """One error, exit code 1, and no folder is made."""
    data = tmp_path / "data"
    ran = run("sandbox", *words, "--data", data)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert said.replace("DIR", str(data)) in ran.err
    assert not data.exists()


@pytest.mark.parametrize(
    ("elsewhere", "here"),
    [("delete", "stop"), ("rm", "stop"), ("remove", "stop"), ("create", "start"), ("up", "start"), ("Delete", "stop")],
)
def test_what_other_tools_call_a_command(elsewhere: str, here: str, run: Run) -> None:
    """The command of this tool is named; nothing else is done."""
    ran = run("sandbox", elsewhere)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f'error: unknown command "{elsewhere}"; did you mean "{here}"?')


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Uses the named folder, relative to the working directory or the home folder; otherwise the state's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/me")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert command.folder_of(None) == Path("/state/runup/sandbox")
    assert command.folder_of("") == Path("/state/runup/sandbox")
    assert command.folder_of("~/x") == Path("/me/x")
    assert command.folder_of("x") == tmp_path / "x"


def test_scenarios_are_listed(run: Run) -> None:
    """Each with its title."""
    ran = run("sandbox", "list")
    rows = {line.split()[0]: line for line in ran.out.splitlines()}
    assert ran.code == 0
    assert list(rows) == list(scenarios.names())
    for name, line in rows.items():
        assert line.endswith(scenarios.load(scenarios.find(name)).title)


def test_an_error_of_the_sandbox_is_one_of_the_command() -> None:
    """In its words; what else happens is not touched."""

    def broken() -> int:
        raise SandboxError("no room", reason="R")

    with pytest.raises(InputError) as caught:
        command.run_guarded(broken)
    assert (caught.value.message, caught.value.code) == ("no room", 1)
    assert command.run_guarded(lambda: 7) == 7


def test_the_steps_of_a_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each as it is done and when, then how to use what runs."""
    settings.save_ready(tmp_path, READY)
    steps = iter((Progress("API server", 1.26), Progress("cluster", 12.0)))
    assert command.print_start(tmp_path, steps) == 0
    assert capsys.readouterr().out == (
        f"  1.3 s  API server ready\n 12.0 s  cluster ready\n{command.how_to_use(tmp_path, READY)}\n"
    )


@pytest.mark.parametrize(
    ("count", "more"),
    [(0, ""), (5, ""), (6, "note: 1 more objects were left out"), (8, "note: 3 more objects were left out")],
)
def test_what_was_left_out_is_told_as_far_as_there_is_room(count: int, more: str) -> None:
    """Five; the log has the others."""
    shown = command.how_to_use(Path("/d"), Ready(left_out=tuple(f"o{place}" for place in range(count)), runner="runc"))
    named = [f"note: left out, in part or whole: o{place}" for place in range(min(count, 5))]
    tail = [f"{more}; `runup sandbox logs cluster` names them"] if more else []
    assert [line for line in shown.splitlines() if line.startswith("note: ")] == [*named, *tail]


def test_how_to_use_a_sandbox() -> None:
    """Explains the sandbox, its lack of isolation, and the two lines to type."""
    shown = command.how_to_use(Path("/d"), replace(READY, notes=("a", "b")))
    assert shown == (
        "\nA cluster: release 5.0.0, of 5.0.0, 5.1.0\nnote: a\nnote: b\ncontainers run by process\n\n"
        "  export KUBECONFIG=/d/admin.kubeconfig\n  runup upgrade\n"
    )
    open_ = replace(READY, not_isolated=("files", "network"))
    assert "containers run by process (does not isolate: files, network)\n" in command.how_to_use(Path("/d"), open_)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with logs of processes and of containers."""
    for name in ("apiserver", "cluster"):
        (tmp_path / "logs").mkdir(exist_ok=True)
        (tmp_path / "logs" / f"{name}.log").write_text(f"of {name}\n")
    (tmp_path / "logs" / "other.txt").write_text("no log")
    for pod in ("ns_cluster-a_1", "ns_web-0_x_y"):
        (tmp_path / "pods" / pod).mkdir(parents=True)
        (tmp_path / "pods" / pod / "main.log").write_text(f"of {pod}\n")
    return tmp_path


def test_logs_by_their_names(run: Run, logs: Path) -> None:
    """All are listed; a whole name goes before a part, of several that fit the last is printed."""
    names = ["apiserver", "cluster", "ns/cluster-a/main", "ns/web-0/main"]
    assert run("sandbox", "logs", "--data", logs).out.splitlines() == names
    assert sorted(lifecycle.log_files(logs)) == names
    for typed, said in (
        ("cluster", "of cluster\n"),
        ("clus", "of ns_cluster-a_1\n"),
        ("api", "of apiserver\n"),
        ("ns/", "of ns_web-0_x_y\n"),
    ):
        ran = run("sandbox", "logs", typed, "--data", logs)
        assert (ran.code, ran.out, ran.err) == (0, said, "")
    ran = run("sandbox", "logs", "nothing", "--data", logs)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"error: no log of 'nothing' in {logs}; {', '.join(names)}\n"
    ran = run("sandbox", "logs", "--data", logs / "pods")
    assert (ran.code, ran.out) == (0, f"no logs in {logs / 'pods'}\n")


def test_names_of_logs_are_completed(run: Run, logs: Path) -> None:
    """Those of the folder that was named."""
    ran = run("completion", "candidates", "--", "sandbox", "logs", "--data", logs, "ns/")
    assert ran.out.splitlines() == ["ns/cluster-a/main", "ns/web-0/main", ":4"]


class Stop(Exception):
    """Enough was seen."""


class Writing(SystemClock):
    """A clock during whose pauses somebody writes, until nothing is left to write."""

    def __init__(self, file: Path, *texts: str) -> None:
        super().__init__()
        self._file, self._texts = file, list(texts)

    def pause(self, seconds: float) -> None:
        """No time uses."""
        assert 0 < seconds < 1
        if not self._texts:
            raise Stop
        with self._file.open("ab") as file:
            file.write(self._texts.pop(0).encode("latin-1"))


def test_a_log_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is written, nothing twice; what is no UTF-8 does not end it. Without being asked to, it is printed once."""
    file = tmp_path / "a.log"
    file.write_text("one\n")
    with pytest.raises(Stop):
        command.print_log(file, follow=True, clock=Writing(file, "two\n", "", "th\xffree\n"))
    assert capsys.readouterr().out == "one\ntwo\nth\ufffdree\n"
    command.print_log(file, follow=False, clock=Writing(file, "four\n"))
    assert capsys.readouterr().out == "one\ntwo\nth\ufffdree\n"
