"""The runners of containers, from the most to the least isolation: runc, bubblewrap, plain processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal as signals
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubekit.kube.clock import SystemClock
from kubekit.lang.files import remove_tree
from kubesandbox.node import runner_interface

JSON = dict[str, Any]
NAMES = ("runc", "bubblewrap", "process")
# Limit from the start of a runner's program until its container can be signalled, in seconds.
_DELIVERY_S = 30.0
_CAPABILITIES = [
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETUID",
]  # fmt: skip
# The folders at the root of a container that an image does not replace.
_SYSTEM = frozenset({"usr", "bin", "sbin", "lib", "lib64", "etc", "proc", "dev", "sys", "tmp", "run", "var"})


def runners(state: Path) -> dict[str, runner_interface.Runner]:
    """Returns the runners by name; `state` is a folder that runc may use."""
    available: list[runner_interface.Runner] = [RuncRunner(state), BubblewrapRunner(), ProcessRunner()]
    return {runner.name: runner for runner in available}


class RuncRunner(runner_interface.Runner):
    """The runner for root, by `runc run`, with namespaces and cgroup limits that the kernel enforces.

    `state` is runc's own folder, one a sandbox.
    """

    name = "runc"
    not_isolated = ("network",)
    limits_memory = True

    def __init__(self, state: Path) -> None:
        self._state = state

    def command(self, launch: runner_interface.Launch) -> runner_interface.Command:
        """Writes the bundle, and returns the command that runs it."""
        rootfs = launch.work / "rootfs"
        for folder in ("proc", "dev", "tmp", "run", "var", "usr", "etc"):
            (rootfs / folder).mkdir(parents=True, exist_ok=True)
        for target, link in _root_links():
            if not (rootfs / link[1:]).is_symlink():
                (rootfs / link[1:]).symlink_to(target)
        (launch.work / "config.json").write_text(json.dumps(bundle_config(launch)), encoding="utf-8")
        argv = (*self._runc_command(), "run", "--keep", "--no-new-keyring", "--bundle", str(launch.work), launch.id)
        return runner_interface.Command(
            argv, {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")}, launch.work
        )

    def signal(self, launch: runner_interface.Launch, pid: int, number: int) -> None:
        """Signals the container's first process, by the container's id; `pid` is that of `runc run`."""
        delivered = _until_delivered(lambda: self._run_quietly("kill", launch.id, str(int(number))), pid)
        if not delivered and number == signals.SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def out_of_memory(self, launch: runner_interface.Launch) -> bool:
        """Returns the kernel's verdict from the container's cgroup, which is kept (`--keep`) until `clean_up`."""
        root, name = Path("/sys/fs/cgroup"), _cgroup_path(launch).lstrip("/")
        # With cgroups of version 2, version 1, or both mounted.
        for file in (root / name / "memory.events", root / "memory" / name / "memory.oom_control"):
            with suppress(OSError):
                lines = file.read_text().splitlines() if launch.memory_bytes else ()
                if any(int(line.split()[1]) for line in lines if line.startswith("oom_kill ")):
                    return True
        return False

    def clean_up(self, launch: runner_interface.Launch) -> None:
        """Removes the container and its cgroup."""
        if (self._state / launch.id).exists():
            self._run_quietly("delete", "--force", launch.id)
        remove_tree(launch.work / "rootfs")

    def sweep(self) -> None:
        """Removes every container in `state`, which a killed agent could not do."""
        for container in sorted(self._state.iterdir()) if self._state.is_dir() else ():
            self._run_quietly("delete", "--force", container.name)

    def problem(self) -> str:
        """Returns why runc does not work, or "": it needs root, its program, and a test container that succeeds."""
        if os.geteuid() != 0:
            return "it needs root"
        if why := _why_not_installed("runc"):
            return why
        work = self._state.parent / "runc-probe"
        image, probe = work / "image", f"probe-{os.getpid()}"
        image.mkdir(parents=True, exist_ok=True)
        launch = runner_interface.Launch(
            id=probe, argv=("/usr/bin/true",), image=image, work=work, memory_bytes=1 << 26
        )
        command = self.command(launch)
        completed = subprocess.run(
            command.argv, cwd=command.cwd, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=20
        )
        self.clean_up(launch)
        remove_tree(work)
        return _failure_text(completed)

    def _runc_command(self) -> tuple[str, ...]:
        return ("runc", "--root", str(self._state))

    def _run_quietly(self, *arguments: str) -> bool:
        command = [*self._runc_command(), *arguments]
        return not subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode


def bundle_config(launch: runner_interface.Launch) -> JSON:
    """Returns the OCI runtime configuration of `launch`."""
    capabilities = dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES)
    fresh = {"/dev": "mode=755", "/tmp": "mode=1777", "/run": "mode=755", "/var": "mode=755"}  # noqa: S108  inside it
    mounts: list[JSON] = [{"destination": "/proc", "type": "proc", "source": "proc"}]
    for path, mode in fresh.items():
        mounts.append({"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", mode]})
    # Volumes first: one at /tmp must not hide an interpreter that lives below /tmp.
    for bind in (*launch.binds, *_system_binds(launch.image)):
        options = ["rbind", "ro" if bind.read_only else "rw"]
        mounts.append({"destination": bind.target, "type": "bind", "source": str(bind.source), "options": options})
    # The limit includes swap, since a container could otherwise exceed it by swapping.
    memory = {"memory": {"limit": launch.memory_bytes, "swap": launch.memory_bytes}}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(launch.argv),
            "env": [f"{name}={value}" for name, value in launch.env.items()],
            "cwd": launch.cwd,
            "capabilities": capabilities,
            # Setuid programs in a container gain no rights.
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": launch.read_only_root},
        "hostname": launch.env.get("HOSTNAME", "pod"),
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
            "cgroupsPath": _cgroup_path(launch),
            "resources": memory if launch.memory_bytes else {},
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"],
        },
    }


def _cgroup_path(launch: runner_interface.Launch) -> str:
    return f"/runup/{launch.id}"


class BubblewrapRunner(runner_interface.Runner):
    """The runner for ordinary users, by `bwrap`, with namespaces for files, processes and IPC.

    Its processes die with the agent.
    """

    name = "bubblewrap"
    not_isolated = ("network", "memory (sampled, then killed)")

    def command(self, launch: runner_interface.Launch) -> runner_interface.Command:
        """Returns the `bwrap` command line."""
        argv = _bwrap_arguments()
        # Volumes first: one at /tmp must not hide an interpreter that lives below /tmp.
        for bind in launch.binds:
            argv += ["--ro-bind" if bind.read_only else "--bind", str(bind.source), bind.target]
        argv += _link_arguments()
        for bind in _system_binds(launch.image):
            argv += ["--ro-bind", str(bind.source), bind.target]
        for name, value in launch.env.items():
            argv += ["--setenv", name, value]
        if launch.read_only_root:
            argv += ["--remount-ro", "/"]
        argv += ["--chdir", launch.cwd, "--", *launch.argv]
        return runner_interface.Command(tuple(argv), {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}, launch.work)

    def signal(self, launch: runner_interface.Launch, pid: int, number: int) -> None:  # noqa: ARG002  the interface's
        """Signals the container's first process, which is bwrap's grandchild: its init stays between them."""
        if number == signals.SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)
            return

        def signal_first_process() -> bool:
            """Signals the first process below bwrap, not its children; returns False if none runs there yet."""
            for child in descendants_of(pid):
                try:
                    program = Path(f"/proc/{child}/comm").read_text().strip()
                except OSError:
                    continue
                if program != "bwrap":
                    with suppress(ProcessLookupError):
                        os.kill(child, number)
                    return True
            return False

        _until_delivered(signal_first_process, pid)

    def problem(self) -> str:
        """Returns why bwrap does not work, or ""; runs it, since no setting shows whether user namespaces work."""
        if why := _why_not_installed("bwrap"):
            return why
        argv = [*_bwrap_arguments(), "--ro-bind", "/usr", "/usr", *_link_arguments(), "--", "/usr/bin/true"]
        try:
            return _failure_text(
                subprocess.run(argv, capture_output=True, timeout=60.0, check=False, stdin=subprocess.DEVNULL)
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)


def _bwrap_arguments() -> list[str]:
    return [
        "bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--clearenv", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/var",  # noqa: S108  inside the container
    ]  # fmt: skip


def _link_arguments() -> list[str]:
    return [word for target, link in _root_links() for word in ("--symlink", target, link)]


class ProcessRunner(runner_interface.Runner):
    """The runner that always works: the container is a process of the user, with volumes by path replacement.

    It isolates nothing; a mount path in an argument or an environment variable is replaced by the host's folder.
    """

    name = "process"
    not_isolated = ("files", "processes", "network", "memory (sampled, then killed)")
    mounts = False

    def command(self, launch: runner_interface.Launch) -> runner_interface.Command:
        """Returns the launch with every container path replaced by the host's."""
        binds = (*launch.binds, runner_interface.Bind(launch.image, runner_interface.IMAGE_MOUNT))
        # The interpreter's paths are the host's own; they may be below a path that a volume has in the container.
        interpreter_paths = {sys.executable, *runner_interface.interpreter_environment().values()}

        def replaced(text: str) -> str:
            return text if text in interpreter_paths else replace_paths(text, binds)

        cwd = Path(replace_paths(launch.cwd, binds))
        return runner_interface.Command(
            tuple(map(replaced, launch.argv)),
            {name: replaced(text) for name, text in launch.env.items()},
            cwd if cwd.is_dir() else launch.image,
        )

    def signal(self, launch: runner_interface.Launch, pid: int, number: int) -> None:  # noqa: ARG002  the interface's
        """Signals the process; SIGKILL goes to its whole group, as a container's end ends all its processes."""
        with suppress(ProcessLookupError):
            if number == signals.SIGKILL:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    def problem(self) -> str:
        """Returns "": this runner works everywhere."""
        return ""


def replace_paths(text: str, binds: Iterable[runner_interface.Bind]) -> str:
    """Replaces every bound path (whole, or as the start of a longer one) in `text` by the host's; longest first."""
    by_target = {bind.target: str(bind.source) for bind in binds}
    if not by_target:
        return text
    # Longest first: a mount below another one has its own host path.
    alternatives = "|".join(re.escape(target) for target in sorted(by_target, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z0-9_./-])({alternatives})(?![A-Za-z0-9_.-])", lambda match: by_target[match[1]], text)


def descendants_of(pid: int) -> list[int]:
    """Returns the descendants of process `pid`, nearest first."""
    result: list[int] = []
    waiting = [pid]
    while waiting:
        try:
            text = " ".join(path.read_text() for path in Path(f"/proc/{waiting.pop(0)}/task").glob("*/children"))
        except OSError:
            continue
        children = [int(word) for word in text.split()]
        result += children
        waiting += children
    return result


def _until_delivered(deliver: Callable[[], bool], pid: int) -> bool:
    """Calls `deliver` until it returns True, or process `pid` is gone; returns False after `_DELIVERY_S`.

    Right after the start of a runner's program its container does not exist yet and cannot be signalled.
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


def _failure_text(completed: subprocess.CompletedProcess[bytes]) -> str:
    """Returns "" if a command succeeded, else the last line of its errors."""
    if completed.returncode == 0:
        return ""
    lines = completed.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {completed.returncode}"


def _why_not_installed(program: str) -> str:
    return "" if shutil.which(program) else f"{program} is not installed"


def _root_links() -> tuple[tuple[str, str], ...]:
    """Returns the root's symbolic links, such as (`usr/lib`, `/lib`), if the system has them."""
    paths = [Path(path) for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64")]
    return tuple((str(path.readlink()), str(path)) for path in paths if path.is_symlink())


def _system_binds(image: Path) -> list[runner_interface.Bind]:
    """Returns the host's folders for a thin image, and the image's own folders, all read only.

    These are system libraries, tools and the Python interpreter, `/bin` and the like where they are real folders, the
    image's folders at the root (`/manifests`, ...), and all of the image at IMAGE_MOUNT.
    """
    paths = [Path(path) for path in ("/usr", "/etc/ssl", "/etc/passwd", "/etc/group", "/etc/localtime")]
    host = [path for path in paths if path.exists()]
    for path in runner_interface.interpreter_folders():
        if not any(path.is_relative_to(parent) for parent in host):
            host.append(path)
    real = [path for path in map(Path, ("/bin", "/sbin", "/lib", "/lib64")) if path.is_dir() and not path.is_symlink()]
    folders = [path for path in sorted(image.iterdir()) if path.name not in _SYSTEM]
    return [
        *(runner_interface.Bind(path, str(path), read_only=True) for path in (*host, *real)),
        runner_interface.Bind(image, runner_interface.IMAGE_MOUNT, read_only=True),
        *(runner_interface.Bind(path, f"/{path.name}", read_only=True) for path in folders),
    ]
