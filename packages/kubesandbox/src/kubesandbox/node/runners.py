"""The runners of containers, from the most to the least isolation."""

from __future__ import annotations

from pathlib import Path

from kubesandbox.node.runner_bwrap import BubblewrapRunner
from kubesandbox.node.runner_interface import Runner
from kubesandbox.node.runner_process import ProcessRunner
from kubesandbox.node.runner_runc import RuncRunner

NAMES = ("runc", "bubblewrap", "process")


def runners(state: Path) -> dict[str, Runner]:
    """Returns the runners by name; `state` is a folder that runc may use."""
    available: list[Runner] = [RuncRunner(state), BubblewrapRunner(), ProcessRunner()]
    return {runner.name: runner for runner in available}
