"""The memory of the operator in its image over an hour, beside a real kube-apiserver, by its cgroup.

The operator installs a release of 900 manifests and keeps it, in runc, as a user of no name, in a root that cannot be
written. Each second a node gets another annotation and ClusterVersion another one. Needs root, runc, Debian's packages
for the image (docs/contributing/real-cluster.md) and a kube-apiserver that `make e2e` has built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import release_payload
from bench.releases_world import World, world
from bench.speed import cold_start
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.oci.layers import open_image, unpack_image
from kubekit.oci.layout import Layout
from runup.api.config_v1 import ClusterVersion

MINUTES = (1, 10, 30, 60)
CGROUPS = Path("/sys/fs/cgroup")
NODES = resource_of(Node)
COMPLETED_S = 600.0


def run(*, kept: int = MINUTES[-1]) -> dict[str, Any]:
    """MiB of the operator's cgroup at these minutes after the release is installed, and the most of all looks."""
    if os.geteuid() != 0 or shutil.which("runc") is None:
        return {"skipped": "needs runc, and root to run it"}
    from tests.realcluster import images

    with tempfile.TemporaryDirectory(prefix="runup-hour-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        image = images.operator(folder / "image")
        opened = open_image(Layout.open(image.layout), image.tag)
        root = unpack_image(opened, folder / "root")
        with world("kube-apiserver", folder / "world") as here, here.stand_in():
            payload = here.payload(release_payload.FIRST)
            for each in (folder / "world", payload):
                each.chmod(0o755)
            kubeconfig = folder / "kubeconfig"
            shutil.copy(here.kubeconfig, kubeconfig)
            kubeconfig.chmod(0o644)
            with _operator(folder, root, payload, opened.config.config.env) as operator:
                return _followed(here, operator, kept)


class Container(NamedTuple):
    """The operator's container: its cgroup, the runc that runs it, and its log."""

    cgroup: str
    runc: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises RuntimeError with its last words if it has ended."""
        if self.runc.poll() is not None:
            raise RuntimeError(f"the operator ended with {self.runc.returncode}: {self.log.read_text()[-2000:]}")


@contextmanager
def _operator(folder: Path, root: Path, payload: Path, env: Sequence[str]) -> Iterator[Container]:
    """Runs the operator of the first release in `root`, with the image's `env`; killed afterwards."""
    name = f"runup-hour-{os.getpid()}"
    bundle = folder / "bundle"
    bundle.mkdir()
    image = f"registry.example/release@sha256:{release_payload.digest(release_payload.FIRST)}"
    words = ["/usr/bin/cluster-version-operator", "start", f"--kubeconfig={folder / 'kubeconfig'}"]
    words += [f"--release-image={image}", "--node-name=bench", "--listen=127.0.0.1:0", "--report-dir=/tmp/reports"]
    config = cold_start.bundle_config(root, words, folder / "kubeconfig", payload)
    config["process"]["env"] += env
    config["linux"] |= {"cgroupsPath": f"/{name}", "resources": {"memory": {"limit": 1 << 30}}}
    (bundle / "config.json").write_text(json.dumps(config))
    runc = ["runc", "--root", str(folder / "runc")]
    log = bundle / "log"
    with log.open("wb") as file:
        running = subprocess.Popen([*runc, "run", "--bundle", str(bundle), name], stdout=file, stderr=file)
    try:
        yield Container(name, running, log)
    finally:
        subprocess.run([*runc, "kill", name, "KILL"], check=False, capture_output=True)
        running.wait(timeout=60)


def _followed(here: World, operator: Container, kept: int) -> dict[str, Any]:
    began = time.monotonic()
    while not _completed(here):
        operator.check()
        if time.monotonic() - began > COMPLETED_S:
            raise RuntimeError(f"not completed in {COMPLETED_S:g} s: {operator.log.read_text()[-2000:]}")
        time.sleep(0.5)
    here.client.send(calls.create(NODES, {"metadata": {"name": "bench"}}))
    installed = {"seconds": round(time.monotonic() - began, 1), **_memory(operator.cgroup)}
    print(f"memory_in_image: installed {installed}", file=sys.stderr, flush=True)
    began, changes, looks = time.monotonic(), 0, {}
    most = installed
    for minute in range(1, kept + 1):
        while time.monotonic() - began < minute * 60:
            _change(here, changes)
            changes += 1
            time.sleep(1.0)
        operator.check()
        found = _memory(operator.cgroup)
        most = max(most, found, key=lambda each: each["anonymous_mib"])
        if minute in MINUTES:
            looks[f"minute_{minute}"] = found
            print(f"memory_in_image: minute {minute} {found}", file=sys.stderr, flush=True)
    return {"installed": installed, **looks, "most": most, "changes": 2 * changes}


def _completed(here: World) -> bool:
    entry = next(iter(here.history()), None)
    return entry is not None and entry["state"] == "Completed"


def _change(here: World, number: int) -> None:
    patch = {"metadata": {"annotations": {"bench.runup.dev/changed": str(number)}}}
    for resource, name in ((NODES, "bench"), (resource_of(ClusterVersion), "version")):
        try:
            here.client.send(calls.merge_patch(resource, name, patch))
        except KubeError as error:
            print(f"memory_in_image: {error}", file=sys.stderr)


def _memory(cgroup: str) -> dict[str, float]:
    """MiB that the container's processes have to themselves, and all that is charged to it, files read among it."""
    unified = CGROUPS / cgroup
    if (unified / "memory.current").exists():
        folder, anonymous, charged = unified, "anon", "memory.current"
    else:
        folder, anonymous, charged = CGROUPS / "memory" / cgroup, "rss", "memory.usage_in_bytes"
    stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    charged_bytes = int((folder / charged).read_text())
    return {"anonymous_mib": round(int(stat[anonymous]) / 2**20, 1), "charged_mib": round(charged_bytes / 2**20, 1)}
