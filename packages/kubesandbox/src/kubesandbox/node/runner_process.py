"""The runner that always works: the container is a process of the user, with volumes by path replacement.

It isolates nothing; a mount path in an argument or an environment variable is replaced by the host's folder.
"""

from __future__ import annotations

import os
import re
import signal as signals
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kubesandbox.node.interpreter import interpreter_environment
from kubesandbox.node.runner_interface import IMAGE_MOUNT, Bind, Command, Launch


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
