"""From the beginning of a process in the operator's image until it is ready, in runc, and the memory that it then has.

Run as a user of no name, in a root that cannot be written, against a sandbox. Needs root for runc, and the image that
`make image` has built.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import spread
from bench.releases_world import usage
from kubekit.oci.layers import open_image, unpack_image
from kubekit.oci.layout import Layout
from runup.sandbox.setup.settings import free_ports

ROUNDS = 9
LIMIT_S = 60.0
USER = 65532
LAYOUT = Path(__file__).parents[2] / "build" / "image"
RUNUP = [sys.executable, "-m", "runup"]
METADATA = {"kind": "cincinnati-metadata-v0", "version": "5.0.0", "previous": []}
REFERENCES = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "5.0.0"}, "spec": {}}


def run() -> dict[str, Any]:
    """The operator and the update status controller, each some times; empty where the machine cannot run them."""
    if problem := _problem():
        return {"skipped": problem}
    with tempfile.TemporaryDirectory(prefix="runup-cold-") as temporary, _sandbox(Path(temporary)) as kubeconfig:
        folder = Path(temporary)
        folder.chmod(0o755)
        image = open_image(Layout.open(LAYOUT))
        root = unpack_image(image, folder / "root")
        _payload(folder / "payload")
        commands = {
            "operator": ("start", "--release-image=registry.example/release@sha256:" + "0" * 64, "--node-name=bench"),
            "update_status_controller": ("update-status-controller",),
        }
        found = {
            name: _measured(folder, root, ["/usr/bin/cluster-version-operator", *words, f"--kubeconfig={kubeconfig}"])
            for name, words in commands.items()
        }
    return {"image": image.digest, "layers_mb": [round(layer.size / 1e6, 1) for layer in image.manifest.layers]} | found


def _problem() -> str:
    if os.geteuid() != 0 or shutil.which("runc") is None:
        return "needs runc, and root to run it"
    return "" if (LAYOUT / "index.json").is_file() else f"there is no image in {LAYOUT}: make image"


@contextlib.contextmanager
def _sandbox(folder: Path) -> Iterator[Path]:
    """The kubeconfig of a sandbox, readable for everybody; the sandbox is gone afterwards."""
    data = ["--data", str(folder / "sandbox")]
    subprocess.run([*RUNUP, "sandbox", "start", *data], check=True, stdout=subprocess.DEVNULL)
    try:
        kubeconfig = folder / "kubeconfig"
        shutil.copy(folder / "sandbox" / "admin.kubeconfig", kubeconfig)
        kubeconfig.chmod(0o644)
        yield kubeconfig
    finally:
        subprocess.run([*RUNUP, "sandbox", "stop", *data], check=True, stdout=subprocess.DEVNULL)


def _payload(folder: Path) -> None:
    for name, content in (("release-metadata", METADATA), ("image-references", REFERENCES)):
        path = folder / "release-manifests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    (folder / "manifests").mkdir()


def _measured(folder: Path, root: Path, command: list[str]) -> dict[str, Any]:
    # The first one reads the image's files from the disk.
    first, *runs = [_one(folder, root, command) for _ in range(ROUNDS + 1)]
    return {
        "ready_after_seconds": spread([each.ready_s for each in runs]),
        "ready_after_seconds_first_of_all": round(first.ready_s, 3),
        "with_what_runc_takes_seconds": spread([each.since_runc_s for each in runs]),
        # Not longer because of what else the machine does.
        "processor_seconds": spread([each.cpu_s for each in runs]),
        "resident_mib": round(statistics.median([each.resident_mib for each in runs]), 1),
    }


class Start(NamedTuple):
    """A process that became ready: after how long, what it computed for that, and what it has."""

    ready_s: float
    since_runc_s: float
    cpu_s: float
    resident_mib: float


def _one(folder: Path, root: Path, command: list[str]) -> Start:
    (port,) = free_ports(1)
    bundle = folder / f"bundle-{port}"
    bundle.mkdir()
    words = [*command, f"--listen=127.0.0.1:{port}"]
    (bundle / "config.json").write_text(
        json.dumps(bundle_config(root, words, folder / "kubeconfig", folder / "payload"))
    )
    name, pid_file = f"runup-cold-{port}", bundle / "pid"
    runc = ["runc", "--root", str(folder / "runc")]
    begun = time.monotonic()
    with (bundle / "log").open("wb") as log:
        running = subprocess.Popen(
            [*runc, "run", "--pid-file", str(pid_file), "--bundle", str(bundle), name], stdout=log, stderr=log
        )
    try:
        ready = _ready_at(port, running, bundle / "log")
        pid = int(pid_file.read_text())
        used = usage(pid)
        return Start(ready - _began_at(pid), ready - begun, used.cpu_seconds, used.mib)
    finally:
        subprocess.run([*runc, "kill", name, "KILL"], check=False, capture_output=True)
        running.wait(timeout=LIMIT_S)


def _ready_at(port: int, running: subprocess.Popen[bytes], log: Path) -> float:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and running.poll() is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=1)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return time.monotonic()
        time.sleep(0.005)
    raise RuntimeError(f"not ready within {LIMIT_S} s: {log.read_text()[-2000:]}")


def _began_at(pid: int) -> float:
    """Returns when a process began, by the clock of `time.monotonic`, to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return since_boot - (time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic())


def bundle_config(root: Path, command: list[str], kubeconfig: Path, payload: Path) -> dict[str, Any]:
    """Returns runc's configuration of `command` in `root`, with these two at /payload and where it is here."""
    env = ["PATH=/opt/runup/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "HOME=/tmp"]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]},
        *(
            {"destination": target, "type": "bind", "source": str(source), "options": ["rbind", "ro"]}
            for source, target in (
                (kubeconfig, str(kubeconfig)),
                (payload, "/payload"),
            )
        ),
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": USER, "gid": USER},
            "args": command,
            "env": [*env, "PAYLOAD_OVERRIDE=/payload"],
            "cwd": "/",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": mounts,
        # The host's network: the sandbox listens on loopback.
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
    }
