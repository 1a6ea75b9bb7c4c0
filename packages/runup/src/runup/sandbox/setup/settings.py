"""The settings of a sandbox, kept in its data folder so that every process of it reads the same."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TypeVar

import msgspec

from kubekit.api.meta_v1 import Wire
from kubesandbox.node.pod_volumes import write_atomically
from kubesandbox.sandbox_error import SandboxError

S = TypeVar("S", bound=msgspec.Struct)
FILE = "sandbox.json"
READY = "ready.json"
PID = "supervisor.pid"


class Settings(Wire, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of a sandbox. Ports are fixed at the first start: they are part of pull specs and kubeconfigs.

    `source` is a dump's path.
    """

    scenario: str = ""
    source: str = ""
    runner: str = ""
    api_port: int = 0
    registry_port: int = 0
    update_port: int = 0
    # How many seconds the cluster's time is ahead of the machine's.
    clock_offset_s: float = 0.0


class Ready(Wire, frozen=True, kw_only=True):
    """The report of the cluster process when everything is in place."""

    title: str = ""
    version: str = ""
    releases: tuple[str, ...] = ()
    runner: str = ""
    not_isolated: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    update_service: str = ""
    registry: str = ""


def load(data: Path) -> Settings | None:
    """Returns the settings of the sandbox in `data`, or None; raises SandboxError."""
    return _read_settings_file(data / FILE, Settings)


def save(data: Path, settings: Settings) -> None:
    """Writes the settings; raises SandboxError if the folder cannot be written."""
    _write_file(data / FILE, settings)


def ready(data: Path) -> Ready | None:
    """Returns the report of the cluster process, or None while it is not ready."""
    return _read_settings_file(data / READY, Ready)


def save_ready(data: Path, value: Ready) -> None:
    """Writes the report that everything is in place."""
    _write_file(data / READY, value)


def free_ports(count: int) -> list[int]:
    """Returns `count` different ports that are not in use now."""
    # All sockets are open at once, so that the ports differ.
    sockets = [socket.socket() for _ in range(count)]
    try:
        for bound_socket in sockets:
            bound_socket.bind(("127.0.0.1", 0))
        return [bound_socket.getsockname()[1] for bound_socket in sockets]
    finally:
        for bound_socket in sockets:
            bound_socket.close()


def port_taken(port: int) -> bool:
    """Reports whether a process is listening on the port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def running_pid(data: Path) -> int:
    """Returns the process id of the sandbox's supervisor, 0 if none is running (whatever a stale file says)."""
    try:
        pid = int((data / PID).read_text())
        os.kill(pid, 0)
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and b"runup.sandbox.processes.supervisor" not in command.read_bytes():
            return 0  # the process id now belongs to another program
    except (OSError, ValueError):
        return 0
    return pid


def _read_settings_file(file: Path, kind: type[S]) -> S | None:
    """Returns the settings in a file, or None. Raises SandboxError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"{file} cannot be read ({error}); remove the folder, or give another with --data"
        raise SandboxError(text, reason="BadSettings") from error


def _write_file(file: Path, value: msgspec.Struct) -> None:
    """Writes the value as JSON, atomically. Raises SandboxError if the folder cannot be written."""
    try:
        write_atomically(file, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    except OSError as error:
        text = f"{file.parent} cannot be written ({error.strerror}); give another folder with --data"
        raise SandboxError(text, reason="DataNotWritable") from error
