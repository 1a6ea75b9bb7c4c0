"""How a container becomes a process: what is to run in, the command that runs it out.

A `Runner` turns a `Launch` into a `Command`; starting it, logging it and waiting for it is the same for all
(`process.py`). Three of them, from the most to the least isolation: runc, bubblewrap, plain process.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kubekit.kube.clock import SystemClock
from kubesandbox.errors import SandboxError

# Where a container finds its image's files, and where the payload is read from (docs/sandbox.md).
IMAGE_MOUNT = "/run/image"
# How long a container may take from the start of its runner's program until it can be signalled.
_DELIVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path that the container sees at `target`."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything about one start of one container. `argv` has paths as the container sees them; memory in bytes."""

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
    """What to execute on the host."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


class Runner(Protocol):
    """One way to run containers."""

    name: str
    # What a user must know that it does not isolate; empty for nothing.
    not_isolated: tuple[str, ...]
    # Whether the memory limit is enforced by the kernel; if not, the agent samples and kills.
    limits_memory: bool
    # Whether volumes are mounted; if not, their paths in arguments and environment are replaced by the host's.
    mounts: bool

    def command(self, launch: Launch) -> Command:
        """The command that runs `launch`; prepares what it needs in `launch.work`."""
        ...

    def signal(self, launch: Launch, pid: int, number: int) -> None:
        """Send a signal to the container's first process; one that is gone already is fine."""
        ...

    def out_of_memory(self, launch: Launch) -> bool:
        """Whether the kernel ended it for its memory limit; asked after its end and before `clean_up`."""
        ...

    def clean_up(self, launch: Launch) -> None:
        """Remove what `command` and the run left behind; may be called again."""
        ...

    def sweep(self) -> None:
        """End whatever an agent that was killed left running."""
        ...

    def problem(self) -> str:
        """Why it cannot be used here, or the empty string; tries it out."""
        ...


def choose(runners: Mapping[str, Runner], wanted: str = "") -> tuple[Runner, tuple[str, ...]]:
    """The first runner that works here, and why the ones before it were passed over.

    Raises SandboxError where `wanted` is unknown or does not work.
    """
    if wanted and wanted not in runners:
        known = ", ".join(runners)
        raise SandboxError(f"there is no runner {wanted!r}; choose one of {known}", reason="UnknownRunner")
    passed_over: list[str] = []
    for name, runner in runners.items():
        if wanted and name != wanted:
            continue
        problem = runner.problem()
        if not problem:
            return runner, tuple(passed_over)
        if wanted:
            raise SandboxError(f"runner {wanted} cannot be used here: {problem}", reason="RunnerUnusable")
        passed_over.append(f"{name}: {problem}")
    raise SandboxError("no runner works here: " + "; ".join(passed_over), reason="RunnerUnusable")


def until_delivered(deliver: Callable[[], bool], pid: int) -> bool:
    """Call `deliver` until it says that the signal went out, or process `pid` is gone; whether it is or did.

    Between the start of a runner's program and that of the container in it there is nobody to signal yet.
    """
    clock = SystemClock()
    deadline = clock.monotonic() + _DELIVERY_S
    while not deliver():
        if not Path(f"/proc/{pid}").exists():
            return True
        if clock.monotonic() > deadline:
            return False
        clock.pause(0.01)
    return True


def tried(argv: list[str], *, timeout_s: float = 10.0) -> str:
    """Run a command to its end; the empty string if it succeeded, else the last line that it wrote."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def missing(program: str) -> str:
    """`program is not installed`, or the empty string."""
    return "" if shutil.which(program) else f"{program} is not installed"


def root_binds(interpreter: tuple[Path, ...]) -> tuple[Bind, ...]:
    """What a thin image needs of the host: system libraries and tools, and the Python that runs its code; read only."""
    wanted = [Path(path) for path in ("/usr", "/etc/ssl", "/etc/passwd", "/etc/group", "/etc/localtime")]
    binds = [Bind(path, str(path), read_only=True) for path in wanted if path.exists()]
    for path in interpreter:
        if not any(path.is_relative_to(bind.source) for bind in binds):
            binds.append(Bind(path, str(path), read_only=True))
    return tuple(binds)


def root_links() -> tuple[tuple[str, str], ...]:
    """(`usr/lib`, `/lib`) and its like, on systems where those are links; elsewhere they are bound."""
    paths = [Path(path) for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64")]
    return tuple((str(path.readlink()), str(path)) for path in paths if path.is_symlink())


def unlinked_roots() -> tuple[Bind, ...]:
    """`/bin` and its like where they are folders of their own."""
    paths = [Path(path) for path in ("/bin", "/sbin", "/lib", "/lib64")]
    return tuple(Bind(path, str(path), read_only=True) for path in paths if path.is_dir() and not path.is_symlink())


def image_binds(image: Path) -> tuple[Bind, ...]:
    """The image's own folders at the root (`/manifests`, ...), and all of it at IMAGE_MOUNT; system folders stay."""
    system = {"usr", "bin", "sbin", "lib", "lib64", "etc", "proc", "dev", "sys", "tmp", "run", "var"}
    folders = [path for path in sorted(image.iterdir()) if path.name not in system]
    return (
        Bind(image, IMAGE_MOUNT, read_only=True),
        *(Bind(path, f"/{path.name}", read_only=True) for path in folders),
    )
