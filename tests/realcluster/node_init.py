"""Process 1 of a node: gives the node its own /etc, /var/lib, /var/log and /run, then reaps what its programs leave.

`python node_init.py NAME FOLDER`, in new mount, network, PID and UTS namespaces. It says `ready` once, and ends when it
is killed: the kernel then ends every other process of the node, as when its power is cut. FOLDER is the node's disk.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

# What a node of a cluster sets in its own network; the machine's stays as it is.
_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
    "net/ipv4/conf/all/rp_filter": "0",
}


def main(name: str, folder: Path) -> None:
    """Sets the node up and reaps for ever."""
    socket.sethostname(name)
    # Nothing that is mounted here is seen by the machine; what pods mount is seen by the node (mountPropagation).
    _do("mount", "--make-rprivate", "/")
    _do("mount", "--make-rshared", "/")
    _do("mount", "-t", "proc", "proc", "/proc")
    upper, work = _made(folder / "etc"), _made(folder / "etc.work")
    _do("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/etc,upperdir={upper},workdir={work}", "/etc")
    for each in ("var/lib", "var/log"):
        _do("mount", "--bind", str(_made(folder / each)), f"/{each}")
    _do("mount", "-t", "tmpfs", "tmpfs", "/run")
    Path("/run/lock").mkdir()
    _do("ip", "link", "set", "lo", "up")
    for setting, value in _SETTINGS.items():
        place = Path("/proc/sys", setting)
        if place.exists():
            place.write_text(value)
    print("ready", flush=True)
    _reap()


def _reap() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        signal.sigwait({signal.SIGCHLD})


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _do(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
