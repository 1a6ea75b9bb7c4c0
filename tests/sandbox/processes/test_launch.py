"""A start that is interrupted or killed: what it launched is found, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.clocks import Hurried

from kubekit.kube.clock import ManualClock
from runup.sandbox.processes import lifecycle
from runup.sandbox.setup import settings
from runup.sandbox.setup.settings import Settings


class _Interrupting(ManualClock):
    """At the first wait, the moment after the launch, it notes who runs in `data` and interrupts."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self.data = data
        self.seen: int | None = None

    def pause(self, seconds: float) -> None:
        """See `Clock.pause`."""
        if self.seen is None:
            self.seen = settings.running_pid(self.data)
            raise KeyboardInterrupt
        time.sleep(seconds)


def test_what_was_launched_is_found_at_once(tmp_path: Path) -> None:
    """`stop` after a `start` that was killed knows the supervisor, however long that takes to get going."""
    clock = _Interrupting(tmp_path / "data")
    with pytest.raises(KeyboardInterrupt):
        list(lifecycle.start(clock.data, Settings(scenario="clean"), clock))
    assert clock.seen
    assert settings.running_pid(clock.data) == 0


# A first process of a container that reaps nobody: it starts a child, says its id, and does no more.
REAPS_NOBODY = "import subprocess, sys; print(subprocess.Popen(['cat']).pid, flush=True); sys.stdin.read()"


def test_a_process_that_nobody_reaps_has_ended(tmp_path: Path) -> None:
    """`stop` waits for the end of the supervisor, and not for its parent to take note of that."""
    with subprocess.Popen(
        [sys.executable, "-c", REAPS_NOBODY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        try:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            assert lifecycle.stop(tmp_path, Hurried(10.0), pid=pid)
            os.kill(pid, 0)  # raises if it was reaped
        finally:
            parent.kill()
