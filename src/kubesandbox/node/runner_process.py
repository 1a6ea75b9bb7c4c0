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

from kubesandbox.node.interpreter import environment
from kubesandbox.node.runner import IMAGE_MOUNT, Bind, Command, Launch


class ProcessRunner:
    """A plain process."""

    name = "process"
    not_isolated: tuple[str, ...] = ("files", "processes", "network", "memory (sampled, then killed)")
    limits_memory = False
    mounts = False

    def command(self, launch: Launch) -> Command:
        """The launch with every container path replaced by the host's."""
        binds = (*launch.binds, Bind(launch.image, IMAGE_MOUNT))
        # The interpreter is the host's own already; it may well live below a path that a volume has in the container.
        ours = {sys.executable, *environment().values()}
        argv = tuple(text if text in ours else replace_paths(text, binds) for text in launch.argv)
        env = {name: text if text in ours else replace_paths(text, binds) for name, text in launch.env.items()}
        cwd = Path(replace_paths(launch.cwd, binds))
        return Command(argv, env, cwd if cwd.is_dir() else launch.image)

    def signal(self, launch: Launch, pid: int, number: int) -> None:  # noqa: ARG002  the protocol's
        """Signal the process; SIGKILL goes to its whole group, as a container's end takes all its processes."""
        with suppress(ProcessLookupError):
            if number == signals.SIGKILL:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    def out_of_memory(self, launch: Launch) -> bool:  # noqa: ARG002  the protocol's
        """Nothing here limits it: the agent samples, and knows for itself."""
        return False

    def clean_up(self, launch: Launch) -> None:
        """Nothing is left behind."""

    def sweep(self) -> None:
        """Processes die with their agent."""

    def problem(self) -> str:
        """It works everywhere."""
        return ""


def replace_paths(text: str, binds: Iterable[Bind]) -> str:
    """`text` with every bound path (whole, or as the start of a longer one) replaced by the host's; longest first."""
    by_target = {bind.target: str(bind.source) for bind in binds}
    if not by_target:
        return text
    alternatives = "|".join(re.escape(target) for target in sorted(by_target, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z0-9_./-])({alternatives})(?![A-Za-z0-9_.-])", lambda match: by_target[match[1]], text)
