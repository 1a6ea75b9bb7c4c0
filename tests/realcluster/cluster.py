"""A real cluster on this machine: Kubernetes' own control plane and two nodes with containerd, kubelet and kube-proxy.

    this machine   10.231.0.1   etcd, kube-apiserver, kube-controller-manager, kube-scheduler, docker-registry
    lan            a network namespace with a bridge, to which all others are wired
    node-1, ...    10.231.0.11  pods 10.232.1.0/24
    node-2         10.231.0.12  pods 10.232.2.0/24

Everything is a process of ours or below one, and every network device is in a namespace that ends with its processes:
what is left by a test that is killed is a folder below /tmp and empty cgroups.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from tests.controlplane import build as controlplane
from tests.controlplane.plane import ControlPlane
from tests.realcluster import build, images
from tests.realcluster.node import CGROUP, INTERFACE, Node, Place, die_with_parent, put, remove_cgroups

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient

JSON = dict[str, Any]
HERE = "10.231.0.1"
"""This machine, as nodes and pods know it."""
PREFIX = 24
PODS = "10.232.0.0/16"
DNS = "10.0.0.10"
SERVICES = "10.0.0.0/24"
REGISTRY_PORT = 5000
READY_S = 240.0
NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
_PREFIX = "runup-real-"
_LINK, _LAN_LINK = "runup-real", "runup-lan"
_SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
_KEYS = ("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")


class RealCluster:
    """`with RealCluster() as cluster`: both nodes are Ready at the beginning; nothing is left at the end."""

    def __init__(self, names: Sequence[str] = ("node-1", "node-2"), *, audit_rules: Sequence[JSON] = ()) -> None:
        """`audit_rules` say about what the API server's audit log has the contents, too."""
        self.folder = Path()
        self.names = names
        self._audit_rules = audit_rules
        self.nodes: dict[str, Node] = {}
        self.took: dict[str, float] = {}
        self._stack = ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        build.check_machine()
        self._programs = build.programs()
        with self._stack:
            self._start()
            self._kept = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.plane.kubeconfig

    def client(self) -> SyncClient:
        """A connection of the administrator's."""
        return SyncClient(config.load(str(self.kubeconfig)))

    def reboot(self, name: str) -> None:
        """Cuts a node's power and starts it again; returns once its programs run."""
        self.nodes[name].power_off()
        self.boot(name)

    def boot(self, name: str) -> None:
        """Starts a node that is off."""
        node = self.nodes[name]
        node.boot()
        self._wire(node)
        for program, user, groups in (
            ("kubelet", f"system:node:{name}", ("system:nodes",)),
            ("kube-proxy", "system:kube-proxy", ()),
        ):
            node.put(f"/etc/kubernetes/{program}.kubeconfig", self.plane.kubeconfig_for(user, groups))
        node.put("/etc/kubernetes/ca.crt", (self.plane.data / "pki" / "ca.crt").read_bytes())
        node.start_programs()

    def last_words(self) -> str:
        """The ends of all logs, for a test that failed."""
        logs = sorted(self.folder.glob("*.log"))
        own = "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs)
        return "\n".join([own, *(node.last_words() for node in self.nodes.values())])

    def _start(self) -> None:
        self._stack.enter_context(_alone())
        began = time.monotonic()
        self._stack.enter_context(_settings_kept())
        # Nobody else has a cluster now: these are of tests that were killed.
        for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            shutil.rmtree(left)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._stack.callback(shutil.rmtree, self.folder)
        self._stack.callback(remove_cgroups, CGROUP)
        self._start_lan()
        self.registry = self._stack.enter_context(images.Registry(self.folder / "registry", HERE, REGISTRY_PORT))
        self._start_control_plane()
        self.took["control plane"] = time.monotonic() - began
        self.registry.push(images.pause(self.folder / "images"), "pause")
        for number, name in enumerate(self.names, 1):
            self.nodes[name] = Node(self._place(number, name), self.folder / name, self._programs)
            self._stack.callback(self.nodes[name].power_off)
            self.boot(name)
        self._await_nodes()
        self.took["nodes ready"] = time.monotonic() - began

    def _place(self, number: int, name: str) -> Place:
        return Place(
            name=name,
            address=_address(number),
            pods=_pods(number),
            routes={_pods(other): _address(other) for other in range(1, len(self.names) + 1) if other != number},
            all_pods=PODS,
            dns=DNS,
            registry=self.registry.host,
        )

    def _start_lan(self) -> None:
        """A bridge in a network namespace, and this machine's end of a wire to it."""
        self._lan = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"],
            preexec_fn=die_with_parent,  # noqa: PLW1509 -- one system call, no lock
        )
        self._stack.callback(self._lan.wait)
        self._stack.callback(self._lan.kill)
        _await_namespace(self._lan.pid)
        self._in_lan("ip", "link", "add", "br0", "type", "bridge")
        self._in_lan("ip", "link", "set", "br0", "up")
        _do("ip", "link", "add", _LINK, "type", "veth", "peer", "name", _LAN_LINK, "netns", str(self._lan.pid))
        self._stack.callback(_do, "ip", "link", "del", _LINK)
        self._plug(_LAN_LINK)
        _do("ip", "addr", "add", f"{HERE}/{PREFIX}", "dev", _LINK)
        _do("ip", "link", "set", _LINK, "up")
        for number in range(1, len(self.names) + 1):
            _do("ip", "route", "add", _pods(number), "via", _address(number))
        # The API server calls webhooks by their Services' addresses; a node's kube-proxy knows them.
        _do("ip", "route", "add", SERVICES, "via", _address(1))

    def _wire(self, node: Node) -> None:
        wire = f"to-{node.place.name}"
        with suppress(RuntimeError):  # of before a reboot, if the kernel has not removed it yet
            self._in_lan("ip", "link", "del", wire)
        peer = ("peer", "name", INTERFACE, "netns", str(node.pid))
        # Made in the lan by a process that sees the node's ID: only its network is another.
        self._in_lan("ip", "link", "add", wire, "type", "veth", *peer)
        self._plug(wire)
        node.run("ip", "addr", "add", f"{node.place.address}/{PREFIX}", "dev", INTERFACE)
        node.run("ip", "link", "set", INTERFACE, "up")
        node.run("ip", "route", "add", "default", "via", HERE)
        for pods, address in node.place.routes.items():
            node.run("ip", "route", "add", pods, "via", address)

    def _plug(self, wire: str) -> None:
        self._in_lan("ip", "link", "set", wire, "master", "br0")
        self._in_lan("ip", "link", "set", wire, "up")

    def _in_lan(self, *command: str) -> None:
        _do("nsenter", f"--target={self._lan.pid}", "--net", "--", *command)

    def _start_control_plane(self) -> None:
        data = self.folder / "plane"
        client = data / "kubelet-client"
        flags = (
            "--authorization-mode=Node",
            "--enable-admission-plugins=NodeRestriction",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-certificate={client}.crt",
            f"--kubelet-client-key={client}.key",
        )
        self.plane = ControlPlane(
            data,
            controlplane.find(),
            disabled_admission="",
            address=HERE,
            flags=flags,
            before_start=self._client_of_kubelets,
            audit_rules=self._audit_rules,
        )
        self._stack.enter_context(self.plane)
        pki = data / "pki"
        for name, user in (
            ("kube-controller-manager", "system:kube-controller-manager"),
            ("kube-scheduler", "system:kube-scheduler"),
        ):
            put(self.folder / f"{name}.kubeconfig", self.plane.kubeconfig_for(user))
            self._commands[name] = [
                str(self._programs / name),
                f"--kubeconfig={self.folder / name}.kubeconfig",
                "--leader-elect=false",
                "--secure-port=0",
            ]
        self._commands["kube-controller-manager"] += [
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--service-account-private-key-file={pki / 'server.key'}",
            "--use-service-account-credentials",
            # What a node that is gone takes with it shall not be waited for by the minute.
            "--node-monitor-grace-period=20s",
        ]
        for name in self._commands:
            self._run(name)
            self._stack.callback(self._end, name)

    def _run(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._commands[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509 -- one system call, no lock
            )

    def _end(self, name: str) -> None:
        self._processes[name].terminate()
        self._processes[name].wait(60)

    def _client_of_kubelets(self, plane: ControlPlane) -> None:
        pair = plane.certificate_for("kube-apiserver-kubelet-client", ("system:masters",))
        put(plane.data / "kubelet-client.crt", pair.cert)
        put(plane.data / "kubelet-client.key", pair.key)

    def _await_nodes(self) -> None:
        deadline = time.monotonic() + READY_S
        labels = {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": ""}
        with self.client() as client:
            while True:
                nodes = client.send(calls.list_raw(NODES)).items
                if len(nodes) == len(self.names) and all(map(ready, nodes)):
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the nodes are not Ready in {READY_S:g} s\n{self.last_words()}")
                time.sleep(0.1)
            for name in self.names:
                client.send(calls.merge_patch(NODES, name, {"metadata": {"labels": labels}}))


def ready(node: JSON) -> bool:
    """Whether the node's condition Ready is True."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _address(number: int) -> str:
    return f"10.231.0.{10 + number}"


def _pods(number: int) -> str:
    return f"10.232.{number}.0/24"


@contextmanager
def _alone() -> Any:
    """One such cluster at a time: its addresses are fixed. Another one is waited for."""
    lock = build.folder_of_caches() / "cluster.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    file: IO[str]
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _settings_kept() -> Any:
    """A kubelet sets these of the whole machine; they get their values back."""
    places = [Path("/proc/sys", name) for name in (*_SETTINGS, *_KEYS)]
    before = {place: place.read_text() for place in places if place.exists()}
    try:
        yield
    finally:
        for place, value in before.items():
            place.write_text(value)


def _await_namespace(pid: int) -> None:
    """Until `unshare` has done it."""
    own = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + READY_S
    while Path(f"/proc/{pid}/ns/net").readlink() == own:
        if time.monotonic() > deadline:
            raise RuntimeError("no network namespace")
        time.sleep(0.01)


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
