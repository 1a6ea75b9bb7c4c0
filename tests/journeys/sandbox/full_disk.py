"""A sandbox whose disk is full for a while: run by `test_full_disk` where `$DISK` is a separate small disk.

Ends with what `upgrade --mode=preflight --wait` says once there is room again, or with an AssertionError.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubesandbox.node.runners import descendants_of
from runup.sandbox.setup import settings

DISK = Path(os.environ["DISK"])
DATA = DISK / "data"
RUNUP = os.environ["RUNUP"].split()
ENVIRONMENT = os.environ | {"KUBECONFIG": str(DATA / "admin.kubeconfig")}
CONFIG_MAPS = resource_of(ConfigMap)
OPERATOR = "cluster-version-operator start"
PARTS = ("runup.sandbox.processes.cluster_process", "kubesandbox.apiserver")


def runup(*words: str) -> subprocess.CompletedProcess[str]:
    """A command as typed."""
    return subprocess.run([*RUNUP, *words], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=240)


def ours(*texts: str) -> list[int]:
    """The sandbox's own processes whose command line holds one of `texts`."""
    return sorted(
        pid for pid in descendants_of(settings.running_pid(DATA)) if any(text in _words(pid) for text in texts)
    )


def until(holds: Callable[[], Any], what: str) -> None:
    """Wait for it."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def fill() -> None:
    """Leave no room: large pieces first, then single bytes' worth."""
    for name, size in (("fill", 1 << 16), ("rest", 512)):
        with (DISK / name).open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def fill_store() -> None:
    """Leave the API server no room in the files that it has: it uses them again before it asks for more."""
    with SyncClient(config.load(str(DATA / "admin.kubeconfig"))) as client:
        for size in (900_000, 50_000, 500):
            with suppress(KubeError):
                for number in range(2_000):
                    metadata = {"name": f"fill-{size}-{time.time_ns()}-{number}", "namespace": "default"}
                    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "x" * size}}
                    client.send(calls.create(CONFIG_MAPS, body))


def refuses(targets: Iterator[str]) -> bool:
    """Whether a request is refused for lack of room; what ended in the meantime may have made some."""
    fill()
    fill_store()
    asked = runup("upgrade", "--mode=preflight", f"--to={next(targets)}")
    if asked.returncode == 0:
        return False
    # Of the store, or of the audit log, without which nothing is written.
    assert "full" in asked.stderr or "cannot be audited: No space left" in asked.stderr, asked.stderr
    return True


def main() -> int:
    """See the module."""
    started = runup("sandbox", "start", "--data", str(DATA), "--scenario", "skip-level", "--runner", "process")
    assert started.returncode == 0, started.stderr
    try:
        until(lambda: "5.0.3" in runup("upgrade").stdout, "the operator is at work")
        before = ours(*PARTS)
        fill()
        killed = ours(OPERATOR)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        # The node starts it again, now and then: only those that were killed must be gone.
        until(lambda: not set(killed).intersection(ours(OPERATOR)), "the operator ended")
        targets = cycle(("5.2.0", "5.1.0"))
        until(lambda: refuses(targets), "a write is refused, and it is said why")
        for name in ("fill", "rest"):
            (DISK / name).unlink()
        done = runup("upgrade", "--mode=preflight", "--to=5.2.0", "--wait")
        assert ours(*PARTS) == before, "a part of the sandbox was started anew"
        sys.stderr.write(done.stdout[-2000:] + done.stderr)
        return done.returncode
    finally:
        runup("sandbox", "stop", "--data", str(DATA))


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
