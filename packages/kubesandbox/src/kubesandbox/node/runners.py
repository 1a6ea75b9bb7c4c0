"""The runners of containers, from the most to the least isolation."""

from __future__ import annotations

import json
import os
import re
import signal as signals
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubekit.lang.files import remove_tree
from kubesandbox.node.runner_interface import (
    IMAGE_MOUNT,
    Bind,
    Command,
    Launch,
    Runner,
    image_binds,
    interpreter_environment,
    interpreter_folders,
    root_binds,
    root_links,
    try_command,
    unlinked_roots,
    until_delivered,
    why_not_installed,
)

NAMES = ("runc", "bubblewrap", "process")


def runners(state: Path) -> dict[str, Runner]:
    """Returns the runners by name; `state` is a folder that runc may use."""
    available: list[Runner] = [RuncRunner(state), BubblewrapRunner(), ProcessRunner()]
    return {runner.name: runner for runner in available}


JSON = dict[str, Any]
_CAPABILITIES = [
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETUID",
]  # fmt: skip
_NAMESPACES = ("pid", "ipc", "uts", "mount")


class RuncRunner:
    """The runner of containers by `runc run`; `state` is runc's own folder, one a sandbox."""

    name = "runc"
    not_isolated: tuple[str, ...] = ("network",)
    limits_memory = True
    mounts = True

    def __init__(self, state: Path) -> None:
        self._state = state

    def command(self, launch: Launch) -> Command:
        """Writes the bundle, and returns the command that runs it."""
        _write_bundle(launch)
        argv = (*self._runc_command(), "run", "--keep", "--no-new-keyring", "--bundle", str(launch.work), launch.id)
        return Command(argv, {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")}, launch.work)

    def signal(self, launch: Launch, pid: int, number: int) -> None:
        """Signals the container's first process, by the container's id; `pid` is that of `runc run`."""
        delivered = until_delivered(lambda: self._run_quietly("kill", launch.id, str(int(number))), pid)
        if not delivered and number == signals.SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def out_of_memory(self, launch: Launch) -> bool:
        """Returns the kernel's verdict from the container's cgroup, which is kept (`--keep`) until `clean_up`."""
        return bool(launch.memory_bytes) and any(_oom_kills(file) for file in _memory_files(launch))

    def clean_up(self, launch: Launch) -> None:
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
        return why_not_installed("runc") or self._try_out()

    def _try_out(self) -> str:
        """Runs `/usr/bin/true` in a container; returns why that failed, or "" if it did not."""
        work = self._state.parent / "runc-probe"
        image = work / "image"
        image.mkdir(parents=True, exist_ok=True)
        launch = Launch(
            id=f"probe-{os.getpid()}", argv=("/usr/bin/true",), image=image, work=work, memory_bytes=1 << 26
        )
        command = self.command(launch)
        completed = subprocess.run(
            command.argv, cwd=command.cwd, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=20
        )
        self.clean_up(launch)
        remove_tree(work)
        lines = completed.stderr.decode(errors="replace").strip().splitlines()
        return "" if completed.returncode == 0 else (lines[-1] if lines else f"exit code {completed.returncode}")

    def _runc_command(self) -> tuple[str, ...]:
        return ("runc", "--root", str(self._state))

    def _run_quietly(self, *arguments: str) -> bool:
        command = [*self._runc_command(), *arguments]
        return not subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode


def _write_bundle(launch: Launch) -> None:
    """Writes the bundle that runc reads: the root file system's folders and links, and the configuration."""
    rootfs = launch.work / "rootfs"
    for folder in ("proc", "dev", "tmp", "run", "var", "usr", "etc"):
        (rootfs / folder).mkdir(parents=True, exist_ok=True)
    for target, link in root_links():
        if not (rootfs / link[1:]).is_symlink():
            (rootfs / link[1:]).symlink_to(target)
    (launch.work / "config.json").write_text(json.dumps(bundle_config(launch)), encoding="utf-8")


def bundle_config(launch: Launch) -> JSON:
    """Returns the OCI runtime configuration of `launch`."""
    # Volumes first: one at /tmp must not hide an interpreter that lives below /tmp.
    binds = (*launch.binds, *root_binds(interpreter_folders()), *unlinked_roots(), *image_binds(launch.image))
    capabilities = dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES)
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
        "mounts": [*_system_mounts(), *(_mount_entry(bind) for bind in binds)],
        "linux": {
            "namespaces": [{"type": kind} for kind in _NAMESPACES],
            "cgroupsPath": _cgroup_path(launch),
            "resources": _resource_limits(launch),
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"],
        },
    }


def _memory_files(launch: Launch) -> tuple[Path, ...]:
    """Returns the files of the kernel's OOM counts, with cgroups of version 2, version 1, or both mounted."""
    root, name = Path("/sys/fs/cgroup"), _cgroup_path(launch).lstrip("/")
    return (root / name / "memory.events", root / "memory" / name / "memory.oom_control")


def _cgroup_path(launch: Launch) -> str:
    return f"/runup/{launch.id}"


def _oom_kills(file: Path) -> int:
    """Returns the number of OOM kills in a cgroup's memory.events, 0 if the file cannot be read."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _resource_limits(launch: Launch) -> JSON:
    if not launch.memory_bytes:
        return {}
    # The limit includes swap, since a container could otherwise exceed it by swapping.
    return {"memory": {"limit": launch.memory_bytes, "swap": launch.memory_bytes}}


def _system_mounts() -> list[JSON]:
    """Returns the mounts that every container has: /proc, and empty file systems in memory."""
    fresh = {"/dev": "mode=755", "/tmp": "mode=1777", "/run": "mode=755", "/var": "mode=755"}  # noqa: S108  inside it
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        *(
            {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", mode]}
            for path, mode in fresh.items()
        ),
    ]


def _mount_entry(bind: Bind) -> JSON:
    """Returns a bind as an entry of the OCI runtime configuration."""
    return {
        "destination": bind.target,
        "type": "bind",
        "source": str(bind.source),
        "options": ["rbind", "ro" if bind.read_only else "rw"],
    }


class BubblewrapRunner:
    """The runner of containers by `bwrap`, whose processes die with the agent."""

    name = "bubblewrap"
    not_isolated: tuple[str, ...] = ("network", "memory (sampled, then killed)")
    limits_memory = False
    mounts = True

    def command(self, launch: Launch) -> Command:
        """Returns the `bwrap` command line."""
        argv = _base_arguments()
        # Volumes first: one at /tmp must not hide an interpreter that lives below /tmp.
        for bind in launch.binds:
            argv += ["--ro-bind" if bind.read_only else "--bind", str(bind.source), bind.target]
        argv += _root_arguments(launch)
        for name, value in launch.env.items():
            argv += ["--setenv", name, value]
        if launch.read_only_root:
            argv += ["--remount-ro", "/"]
        argv += ["--chdir", launch.cwd, "--", *launch.argv]
        return Command(tuple(argv), {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}, launch.work)

    def signal(self, launch: Launch, pid: int, number: int) -> None:  # noqa: ARG002  the protocol's
        """Signals the container's first process, which is bwrap's grandchild: its init stays between them."""
        if number == signals.SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)
            return
        until_delivered(lambda: _signal_first_process(pid, number), pid)

    def out_of_memory(self, launch: Launch) -> bool:  # noqa: ARG002  the protocol's
        """Returns False: bwrap limits no memory; the agent samples it and knows by itself."""
        return False

    def clean_up(self, launch: Launch) -> None:
        """Does nothing: the mount namespace ends with the processes."""

    def sweep(self) -> None:
        """Does nothing: `--die-with-parent` leaves nothing behind."""

    def problem(self) -> str:
        """Returns why bwrap does not work, or ""; runs it, since no setting shows whether user namespaces work."""
        return why_not_installed("bwrap") or try_command(
            [*_base_arguments(), "--ro-bind", "/usr", "/usr", *_link_arguments(), "--", "/usr/bin/true"]
        )


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


def _signal_first_process(pid: int, number: int) -> bool:
    """Signals the first process below bwrap, not its children; returns False if none runs there yet."""
    first = next((child for child in descendants_of(pid) if not _is_bwrap(child)), None)
    if first is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(first, number)
    return True


def _is_bwrap(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "bwrap"
    except OSError:
        return True


def _base_arguments() -> list[str]:
    return [
        "bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--clearenv", "--proc", "/proc", "--dev", "/dev", *_tmpfs_arguments("/tmp", "/run", "/var"),  # noqa: S108  inside the container
    ]  # fmt: skip


def _tmpfs_arguments(*folders: str) -> list[str]:
    return [word for folder in folders for word in ("--tmpfs", folder)]


def _link_arguments() -> list[str]:
    return [word for target, link in root_links() for word in ("--symlink", target, link)]


def _root_arguments(launch: Launch) -> list[str]:
    argv = _link_arguments()
    for bind in (*root_binds(interpreter_folders()), *unlinked_roots(), *image_binds(launch.image)):
        argv += ["--ro-bind", str(bind.source), bind.target]
    return argv


class ProcessRunner:
    """The runner of containers as plain processes."""

    name = "process"
    not_isolated: tuple[str, ...] = ("files", "processes", "network", "memory (sampled, then killed)")
    limits_memory = False
    mounts = False

    def command(self, launch: Launch) -> Command:
        """Returns the launch with every container path replaced by the host's."""
        binds = (*launch.binds, Bind(launch.image, IMAGE_MOUNT))
        # The interpreter's paths are the host's own; they may be below a path that a volume has in the container.
        interpreter_paths = {sys.executable, *interpreter_environment().values()}
        argv = tuple(text if text in interpreter_paths else replace_paths(text, binds) for text in launch.argv)
        env = {
            name: text if text in interpreter_paths else replace_paths(text, binds) for name, text in launch.env.items()
        }
        cwd = Path(replace_paths(launch.cwd, binds))
        return Command(argv, env, cwd if cwd.is_dir() else launch.image)

    def signal(self, launch: Launch, pid: int, number: int) -> None:  # noqa: ARG002  the protocol's
        """Signals the process; SIGKILL goes to its whole group, as a container's end ends all its processes."""
        with suppress(ProcessLookupError):
            if number == signals.SIGKILL:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    def out_of_memory(self, launch: Launch) -> bool:  # noqa: ARG002  the protocol's
        """Returns False: nothing limits the memory; the agent samples it and knows by itself."""
        return False

    def clean_up(self, launch: Launch) -> None:
        """Does nothing: nothing is left behind."""

    def sweep(self) -> None:
        """Does nothing: processes die with their agent."""

    def problem(self) -> str:
        """Returns "": this runner works everywhere."""
        return ""


def replace_paths(text: str, binds: Iterable[Bind]) -> str:
    """Replaces every bound path (whole, or as the start of a longer one) in `text` by the host's; longest first."""
    by_target = {bind.target: str(bind.source) for bind in binds}
    if not by_target:
        return text
    # Longest first: a mount below another one has its own host path.
    alternatives = "|".join(re.escape(target) for target in sorted(by_target, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z0-9_./-])({alternatives})(?![A-Za-z0-9_.-])", lambda match: by_target[match[1]], text)
