"""A node: containerd, kubelet and kube-proxy in namespaces of their own, with a disk that outlives a reboot.

Each program is started again a second after its end, as systemd would. Its processes are in one PID namespace: when its
first process is killed the kernel ends all others, which is how `power_off` works and why nothing is left behind. Its
file systems are mounted in its mount namespace only. The cgroups of its pods are below one of its own, which
`remove_cgroups` takes away.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.realcluster import build

JSON = dict[str, Any]
CGROUPS = Path("/sys/fs/cgroup")
CGROUP = "runup-real"
SOCKET = "/run/containerd/containerd.sock"
INTERFACE = "eth0"
_INIT = Path(__file__).with_name("node_init.py")
READY_S = 120.0
# As a unit with Restart=always and RestartSec=1; $0 is the program's name.
_SUPERVISOR = 'while :; do "$@"; echo "$0 ended with $?; it is started again"; sleep 1; done'


@dataclass(frozen=True, slots=True)
class Place:
    """What a node knows about its cluster."""

    name: str
    address: str
    """Its own, on the cluster's bridge."""
    pods: str
    """Where the addresses of its pods are from."""
    routes: Mapping[str, str]
    """The other nodes: their pods' network, and their address."""
    all_pods: str
    dns: str
    registry: str
    """HOST:PORT, without TLS."""


@dataclass
class Node:
    """`start` boots the node; `power_off` ends it at once; `start` again is a reboot."""

    place: Place
    folder: Path
    programs: Path
    _init: subprocess.Popen[str] | None = field(default=None, init=False)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)

    @property
    def pid(self) -> int:
        """Process 1 of the node, as the machine counts."""
        assert self._init is not None
        return _child_of(self._init.pid)

    @property
    def root(self) -> Path:
        """The node's own file system, as the machine sees it while the node runs."""
        return Path("/proc", str(self.pid), "root")

    @property
    def disk(self) -> Path:
        """The folder of the machine that has the node's /etc, /var/lib and /var/log."""
        return self.folder / "disk"

    def boot(self) -> None:
        """Starts process 1; the node has no network and no programs yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unshared = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child"]
        with (self.folder / "boot.log").open("ab") as log:
            self._init = subprocess.Popen(
                [*unshared, sys.executable, str(_INIT), self.place.name, str(self.disk)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 -- one system call, no lock
            )
        assert self._init.stdout is not None
        if self._init.stdout.readline().strip() != "ready":
            raise RuntimeError(f"node {self.place.name} did not boot\n{self.last_words()}")

    def start_programs(self) -> None:
        """Starts containerd, then kubelet and kube-proxy."""
        self._write_settings()
        self.start("containerd")
        self._await_containerd()
        self.start("kubelet")
        self.start("kube-proxy")

    def start(self, name: str) -> None:
        """Starts one of the node's programs and keeps it running; what it prints is appended to NAME.log."""
        commands = {
            "containerd": ["containerd", "--config=/etc/containerd/config.toml"],
            "kubelet": [
                str(self.programs / "kubelet"),
                "--config=/etc/kubernetes/kubelet.json",
                "--kubeconfig=/etc/kubernetes/kubelet.kubeconfig",
                f"--hostname-override={self.place.name}",
                f"--node-ip={self.place.address}",
                "--v=2",
            ],
            "kube-proxy": [str(self.programs / "kube-proxy"), "--config=/etc/kubernetes/kube-proxy.json", "--v=2"],
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*self._entering(), "sh", "-c", _SUPERVISOR, name, *commands[name]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """Kills one of its programs as `kill -9` does; it is started again, pods continue meanwhile."""
        os.kill(_child_of(_child_of(self._running[name].pid)), signal.SIGKILL)

    def run(self, *command: str, check: bool = True) -> str:
        """What a command prints that is run on the node."""
        done = subprocess.run([*self._entering(), *command], capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{self.place.name}: {' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def power_off(self) -> None:
        """Ends every process of the node at once; its disk stays."""
        if self._init is None:
            return
        with suppress(ProcessLookupError, IndexError):
            os.kill(self.pid, signal.SIGKILL)
        self._init.wait(60)
        for entering in self._running.values():
            entering.wait(60)
        self._running.clear()
        self._init = None
        remove_cgroups(f"{CGROUP}/{self.place.name}")

    def last_words(self) -> str:
        """The ends of its programs' logs."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.parent.name}/{log.name}: {log.read_text(errors='replace')[-2500:]}" for log in logs)

    def _entering(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--mount", "--net", "--uts", "--pid", "--"]

    def _await_containerd(self) -> None:
        deadline = time.monotonic() + READY_S
        while "ok" not in self.run("ctr", "--address", SOCKET, "plugins", "ls", check=False):
            if time.monotonic() > deadline or self._running["containerd"].poll() is not None:
                raise RuntimeError(f"containerd is not ready\n{self.last_words()}")
            time.sleep(0.05)

    def _write_settings(self) -> None:
        for controller in _controllers():
            (controller / CGROUP / self.place.name).mkdir(parents=True, exist_ok=True)
        # The node's /etc is an overlay, which may not be changed from below while it is mounted.
        etc = self.root / "etc"
        files = {
            "containerd/config.toml": _containerd(self.place),
            f"containerd/certs.d/{self.place.registry}/hosts.toml": _registry(self.place),
            "cni/net.d/10-bridge.conflist": json.dumps(_network(self.place)),
            "kubernetes/kubelet.json": json.dumps(_kubelet(self.place)),
            "kubernetes/kube-proxy.json": json.dumps(_kube_proxy(self.place)),
            "resolv.conf.pods": f"nameserver {self.place.dns}\n",
        }
        for name, content in files.items():
            put(etc / name, content.encode())

    def put(self, path: str, content: bytes) -> None:
        """Writes a file of the node."""
        put(self.root / path.lstrip("/"), content)


def put(path: Path, content: bytes) -> None:
    """Writes a file that only root may read, and the folders to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def remove_cgroups(below: str) -> None:
    """Removes a tree of cgroups, once nothing runs in it any more; what is in use is waited for."""
    deadline = time.monotonic() + READY_S
    for controller in _controllers():
        top = controller / below
        while top.is_dir():
            folders = [top, *(each for each in top.rglob("*") if each.is_dir())]
            for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
                with suppress(OSError):
                    folder.rmdir()
            if top.is_dir():
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{top} is still in use")
                time.sleep(0.05)


def die_with_parent() -> None:
    """A test that is killed leaves nothing behind (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _controllers() -> list[Path]:
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [each for each in CGROUPS.iterdir() if (each / "cgroup.procs").exists() and not each.is_symlink()]


def _child_of(pid: int) -> int:
    """The only child of a program that waits for it. Raises ProcessLookupError if it does not exist."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except FileNotFoundError:
            break
        if children:
            return int(children[0])
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.01)
    raise ProcessLookupError(f"process {pid} has no child")


def _containerd(place: Place) -> str:
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{place.registry}/pause:1"
  # Without CAP_SYS_RESOURCE nobody may lower an oom_score_adj.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{build.PLUGINS}"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"""


def _registry(place: Place) -> str:
    return (
        f'server = "http://{place.registry}"\n[host."http://{place.registry}"]\n  capabilities = ["pull", "resolve"]\n'
    )


def _network(place: Place) -> JSON:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": place.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        # A reboot gives all addresses back.
        "dataDir": "/run/cni",
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet(place: Place) -> JSON:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}/{place.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDomain": "cluster.local",
        "clusterDNS": [place.dns],
        "resolvConf": "",
        # The machine's disk is not the cluster's to evaluate.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "serializeImagePulls": False,
        "nodeStatusUpdateFrequency": "5s",
        "nodeLeaseDurationSeconds": 20,
        "maxPods": 100,
        "shutdownGracePeriod": "0s",
    }


def _kube_proxy(place: Place) -> JSON:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": place.all_pods,
        "hostnameOverride": place.name,
        "clientConnection": {"kubeconfig": "/etc/kubernetes/kube-proxy.kubeconfig"},
        "oomScoreAdj": 0,
        # The machine's table of connections belongs to the machine: 0 leaves it alone.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
    }
