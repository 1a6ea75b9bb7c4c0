"""The runner for root: runc, with namespaces and cgroup limits that the kernel enforces."""

from __future__ import annotations

import json
import os
import signal as signals
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubekit.lang.files import remove_tree
from kubesandbox.node.interpreter import interpreter_folders
from kubesandbox.node.runner_interface import (
    Bind,
    Command,
    Launch,
    image_binds,
    root_binds,
    root_links,
    unlinked_roots,
    until_delivered,
    why_not_installed,
)

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
