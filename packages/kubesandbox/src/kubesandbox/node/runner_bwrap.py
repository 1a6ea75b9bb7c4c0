"""The runner for ordinary users: bubblewrap, with namespaces for files, processes and IPC."""

from __future__ import annotations

import os
import signal as signals
from contextlib import suppress
from pathlib import Path

from kubesandbox.node.interpreter import interpreter_folders
from kubesandbox.node.runner_interface import (
    Command,
    Launch,
    image_binds,
    root_binds,
    root_links,
    try_command,
    unlinked_roots,
    until_delivered,
    why_not_installed,
)


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
