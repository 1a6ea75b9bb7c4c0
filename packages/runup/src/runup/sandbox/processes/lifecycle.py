"""Starts, resets and stops a sandbox from outside: takes a data folder and settings, starts processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kubekit.error_types import Terminal
from kubekit.kube.clock import Clock, machine_now
from kubekit.lang.files import remove_tree
from kubesandbox.node.pod_volumes import write_atomically
from kubesandbox.sandbox_error import SandboxError
from runup.sandbox.scenario.folder import Scenario
from runup.sandbox.setup import settings

KUBECONFIG = "admin.kubeconfig"
# A start that makes progress is not ended: on a machine with twenty busy processes it takes a minute.
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0
_LOOK_S = 0.05
# Bytes that must be free on the disk: less than this, and the API server's next write fails.
_ROOM = 64 * 1024
# Characters of a log line that an error shows.
_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class Progress:
    """A step that is done, with its time in seconds since the start."""

    step: str
    seconds: float


def default_data() -> Path:
    """Returns `$XDG_STATE_HOME/runup/sandbox`, by default below ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(state) / "runup" / "sandbox"


def start(data: Path, requested: settings.Settings, clock: Clock) -> Iterator[Progress]:
    """Starts the sandbox in `data` and yields each step; raises SandboxError and leaves nothing running.

    A folder that this start created and that never became ready is removed again; the last lines of its logs are in the
    error.
    """
    pid = settings.running_pid(data)
    if pid:
        text = f"a sandbox runs in {data} already (process {pid}); `runup sandbox stop` ends it"
        raise SandboxError(text, reason="AlreadyRunning")
    begin = clock.monotonic()
    is_new, was_there = settings.load(data) is None, data.is_dir()
    start_settings = _settings_to_use(data, requested)
    try:
        try:
            (data / "logs").mkdir(parents=True, exist_ok=True)
            data.chmod(0o700)
        except OSError as error:
            text = f"{data} cannot be written ({error.strerror}); give another folder with --data"
            raise SandboxError(text, reason="DataNotWritable") from error
        settings.save(data, start_settings)
        supervisor = _launch_supervisor(data)
        try:
            previous_start = _modified_ns(data / settings.READY)
            steps: list[tuple[str, Callable[[], bool]]] = [
                ("API server", lambda: settings.port_taken(start_settings.api_port) and (data / KUBECONFIG).is_file()),
                ("cluster", lambda: _modified_ns(data / settings.READY) > previous_start),
            ]
            for step, holds in steps:
                while not holds():
                    _check_start(data, supervisor, step, clock.monotonic() - begin)
                    clock.pause(_LOOK_S)
                yield Progress(step, clock.monotonic() - begin)
        except BaseException:
            stop(data, clock, pid=supervisor.pid)
            raise
    except BaseException as error:
        if not is_new or (data / settings.READY).exists():
            raise
        last_lines = []
        for name in ("cluster", "apiserver", "supervisor"):
            with suppress(OSError):
                lines = (data / "logs" / f"{name}.log").read_text(errors="replace").split("\n")
                last = next((line for line in reversed(lines) if line.strip()), "")
                last_lines += [f"\n  {name}: {last[:_LONGEST_WORDS]}"] if last else []
        words = "".join(last_lines)
        # The folder was empty or absent before.
        for path in data.iterdir() if was_there else ():
            if path.is_dir():
                remove_tree(path)
            else:
                path.unlink(missing_ok=True)
        if not was_there:
            remove_tree(data)
        if isinstance(error, Terminal):
            raise SandboxError(error.message.replace(_see_logs(data), words), reason=error.reason) from error
        raise


def _see_logs(data: Path) -> str:
    return f"; see {data / 'logs'}"


def reset(data: Path, clock: Clock) -> Iterator[Progress]:
    """Stops the sandbox in `data`, removes it, and starts a new one with its settings. Raises SandboxError.

    Its scenario or dump is read first: if that is missing, the sandbox stays as it is.
    """
    before = settings.load(data)
    if before is None:
        text = f"there is no sandbox in {data}; `runup sandbox start` makes one"
        raise SandboxError(text, reason="NotASandbox")
    new_settings = settings.Settings(
        scenario=before.scenario, source=before.source, runner=before.runner, api_port=before.api_port
    )
    _check(new_settings)
    stop(data, clock)
    remove(data)
    yield from start(data, new_settings, clock)


def stop(data: Path, clock: Clock, *, pid: int = 0) -> bool:
    """Stops the sandbox in `data` and everything that it runs; returns whether one was running. Raises SandboxError."""
    pid = pid or settings.running_pid(data)
    if not pid:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    deadline = clock.monotonic() + STOP_TIMEOUT_S
    while _is_alive(pid):
        if clock.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise SandboxError(f"the sandbox (process {pid}) did not end in {STOP_TIMEOUT_S:g} s and was killed")
        clock.pause(_LOOK_S)
    return True


def remove(data: Path) -> None:
    """Deletes the data folder of a sandbox that is not running; raises SandboxError for any other folder."""
    if not data.exists():
        return
    if not (data / settings.FILE).is_file():
        raise SandboxError(f"{data} is not the data folder of a sandbox; nothing was removed", reason="NotASandbox")
    if why := remove_tree(data):
        raise SandboxError(f"{data} could not be removed completely: {why}")


def _settings_to_use(data: Path, wanted_settings: settings.Settings) -> settings.Settings:
    """Returns the settings. Those of an earlier start stay valid; raises SandboxError if `wanted_settings` differ."""
    before = settings.load(data)
    if before is None:
        if data.is_dir() and any(data.iterdir()):
            raise SandboxError(
                f"{data} is not empty, but does not contain a sandbox; give another folder with --data",
                reason="DataNotEmpty",
            )
        now = _check(wanted_settings).cluster.now
        api, registry, updates = settings.free_ports(3)
        return settings.Settings(
            scenario=wanted_settings.scenario,
            source=wanted_settings.source,
            runner=wanted_settings.runner,
            api_port=_port(wanted_settings.api_port) or api,
            registry_port=registry,
            update_port=updates,
            # The cluster's clock starts at the scenario's time.
            clock_offset_s=(datetime.fromisoformat(now) - machine_now()).total_seconds() if now else 0.0,
        )
    for name, requested in (("scenario", wanted_settings.scenario), ("import", wanted_settings.source)):
        earlier_source = before.scenario if name == "scenario" else before.source
        if requested and requested != earlier_source:
            text = f"the sandbox in {data} was made with another {name} ({earlier_source or 'none'})"
            raise SandboxError(f"{text}; `runup sandbox reset` recreates it", reason="OtherScenario")
    if wanted_settings.api_port and wanted_settings.api_port != before.api_port:
        text = f"the sandbox in {data} has port {before.api_port} for good; `runup sandbox reset` recreates it"
        raise SandboxError(text, reason="OtherPort")
    for port in (before.api_port, before.registry_port, before.update_port):
        _port(port)
    return before


def _check(requested: settings.Settings) -> Scenario:
    """Reads the scenario or dump, so that an unusable one is an error before anything is created."""
    from runup.sandbox.processes.cluster_process import read_scenario

    return read_scenario(requested)


def _port(port: int) -> int:
    if port and settings.port_taken(port):
        raise SandboxError(f"port {port} is in use; give another with --port, or end what uses it", reason="PortInUse")
    return port


def _launch_supervisor(data: Path) -> subprocess.Popen[bytes]:
    """Starts the supervisor as a separate process session and notes its pid."""
    with (data / "logs" / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "runup.sandbox.processes.supervisor", "--data", str(data)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            # The pid is written before exec, so that the sandbox is found even if its starter is killed now: Python
            # starts slowly.
            preexec_fn=lambda: _write_pid(data),  # noqa: PLW1509 -- a command has one thread
        )


def _write_pid(data: Path) -> None:
    with suppress(OSError):  # the supervisor writes it again and reports the error
        write_atomically(data / settings.PID, str(os.getpid()).encode())


def _check_start(data: Path, supervisor: subprocess.Popen[bytes], step: str, seconds: float) -> None:
    """Raises SandboxError if the start has failed, or takes too long."""
    if supervisor.poll() is not None:
        raise SandboxError(f"the sandbox ended while it started{_see_logs(data)}", reason="StartFailed")
    for log in ("cluster.log", "apiserver.log"):
        with suppress(OSError):
            lines = (data / "logs" / log).read_text(errors="replace").splitlines()[-5:]
            # The line with which the process gave up.
            for line in reversed(lines):
                if line.startswith("error: "):
                    raise SandboxError(line.removeprefix("error: "), reason="StartFailed")
    if shutil.disk_usage(data).free < _ROOM:
        text = f"no space left where {data} is; free some, or give another folder with --data"
        raise SandboxError(text, reason="DataNotWritable")
    if seconds > START_TIMEOUT_S:
        text = f"{step} was not ready in {START_TIMEOUT_S:g} s{_see_logs(data)}"
        raise SandboxError(text, reason="StartFailed")


def _modified_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _is_alive(pid: int) -> bool:
    """Returns whether a process runs; one that has ended and that its parent has not reaped does not.

    kill() finds such a zombie. A container's first process may take seconds to reap it, or never do.
    """
    try:
        # One of this project children is reaped here.
        waited, _ = os.waitpid(pid, os.WNOHANG)
        if waited == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True  # reaped in the meantime, or a system without /proc: kill() tells
    # The command's name, which comes first, is in parentheses and may hold any character.
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def state(data: Path) -> tuple[int, settings.Settings | None, settings.Ready | None]:
    """Returns process id (0: not running), settings and the cluster's `ready.json`."""
    return settings.running_pid(data), settings.load(data), settings.ready(data)


def log_files(folder: Path) -> dict[str, Path]:
    """Returns the log of each component and of each `namespace/pod/container`."""
    logs_by_name = {file.stem: file for file in (folder / "logs").glob("*.log")}
    for file in (folder / "pods").glob("*/*.log"):
        namespace, pod, _ = file.parent.name.split("_", 2)
        logs_by_name[f"{namespace}/{pod}/{file.stem}"] = file
    return logs_by_name
