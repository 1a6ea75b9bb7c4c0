"""The interface of container runners: a `Launch` in, the command that runs it out.

A `Runner` turns a `Launch` into a `Command`; starting it, logging it and waiting for it is the same for all
(`container_process.py`). A thin image (label `images.THIN_LABEL`) holds a program but no operating system and no
Python: its containers use the host's libraries and this process's interpreter, mounted read only.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubekit.kube.clock import CLOCK_OFFSET_VARIABLE
from kubesandbox.sandbox_error import SandboxError

# The path of the image's files in a container, from which the payload is read (docs/how-to/sandbox.md).
IMAGE_MOUNT = "/run/image"
# The host's folder that holds kubesandbox and the packages installed with it.
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path that the container has at `target`."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A start of one container. `argv` has paths as the container sees them; memory in bytes."""

    id: str
    argv: tuple[str, ...]
    image: Path
    work: Path
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    binds: tuple[Bind, ...] = ()
    memory_bytes: int = 0
    read_only_root: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """The command to execute on the host."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


class Runner(ABC):
    """A way to run containers."""

    name: str
    # The missing isolation, as users read it; empty if it isolates everything.
    not_isolated: tuple[str, ...]
    # Whether the kernel enforces the memory limit; if not, the agent samples and kills.
    limits_memory: bool = False
    # Whether volumes are mounted; if not, the host's paths replace theirs in arguments and environment.
    mounts: bool = True

    @abstractmethod
    def command(self, launch: Launch) -> Command:
        """Returns the command that runs `launch`; prepares what it needs in `launch.work`."""

    @abstractmethod
    def signal(self, launch: Launch, pid: int, number: int) -> None:
        """Sends a signal to the container's first process; does nothing if that is gone."""

    @abstractmethod
    def problem(self) -> str:
        """Returns why the runner cannot be used here, or ""; tries it out."""

    def out_of_memory(self, launch: Launch) -> bool:  # noqa: ARG002  of those that limit the memory
        """Returns whether the kernel ended it for its memory limit; called after its end and before `clean_up`."""
        return False

    def clean_up(self, launch: Launch) -> None:  # noqa: B027  most leave nothing behind
        """Removes what `command` and the run left behind; may be called again."""

    def sweep(self) -> None:  # noqa: B027  most containers die with their agent
        """Ends the containers that a killed agent left running."""


def choose_runner(runners: Mapping[str, Runner], wanted_name: str = "") -> tuple[Runner, tuple[str, ...]]:
    """Returns the first runner that works here, and why the ones before it do not.

    Raises SandboxError if `wanted_name` is unknown or does not work.
    """
    if wanted_name and wanted_name not in runners:
        names = ", ".join(runners)
        raise SandboxError(f"there is no runner {wanted_name!r}; choose one of {names}", reason="UnknownRunner")
    passed_over: list[str] = []
    for name, runner in runners.items():
        if wanted_name and name != wanted_name:
            continue
        problem = runner.problem()
        if not problem:
            return runner, tuple(passed_over)
        if wanted_name:
            raise SandboxError(f"runner {wanted_name} cannot be used here: {problem}", reason="RunnerUnusable")
        passed_over.append(f"{name}: {problem}")
    raise SandboxError("no runner works here: " + "; ".join(passed_over), reason="RunnerUnusable")


def interpreter_folders() -> tuple[Path, ...]:
    """Returns the host's folders that the interpreter needs: its libraries, virtual environment and our packages.

    No folder is inside another one of them.
    """
    executable = Path(sys.executable)
    candidates = {
        Path(sys.prefix),
        Path(sys.base_prefix) / "lib",
        Path(sysconfig.get_path("stdlib")),
        executable.resolve().parent,
        PACKAGE_ROOT,
        *(Path(entry) for entry in sys.path if entry and Path(entry).is_dir()),
    }
    folders: list[Path] = []
    for path in sorted(candidates, key=lambda path: len(path.parts)):
        # Never the root or a folder directly in it, such as /usr or /root: only folders that the interpreter needs.
        if len(path.parts) > 2 and path.exists() and not any(path.is_relative_to(parent) for parent in folders):
            folders.append(path)
    return tuple(folders)


def argv_for(script_on_host: Path, script_in_container: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the command line of a container's program: a Python script is run with this interpreter.

    `script_on_host` is the file where it can be read now, `script_in_container` its path inside the container.
    """
    try:
        with script_on_host.open("rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    interpreter = (sys.executable,) if first.startswith(b"#!") and b"python" in first else ()
    return (*interpreter, script_in_container, *arguments)


def interpreter_environment() -> dict[str, str]:
    """Returns the environment variables with which a thin image's process finds our packages and writes no bytecode."""
    # Whatever this process was given to find packages that are not installed, its containers need too.
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and Path(entry).is_dir()]
    path = os.pathsep.join(dict.fromkeys([str(PACKAGE_ROOT), *(str(Path(entry).resolve()) for entry in given)]))
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    # The nodes use the cluster's clock, which may differ from the machine's.
    offset = os.environ.get(CLOCK_OFFSET_VARIABLE)
    return variables | ({CLOCK_OFFSET_VARIABLE: offset} if offset else {})
