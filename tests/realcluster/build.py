"""The programs of a real cluster beyond its control plane: found, or built once, in a folder outside the checkout.

kube-controller-manager, kube-scheduler, kube-proxy and kubelet are of the Kubernetes that `tests/controlplane` pins;
`pause` is what a pod's sandbox runs. What Debian packages has to be installed: containerd, runc, the CNI plugins.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane import build
from tests.controlplane.build import Unavailable

MODULE = Path(__file__).parent / "programs"
PROGRAMS = ("kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet", "pause")
PLUGINS = Path("/usr/lib/cni")
_OF_DEBIAN = {
    "containerd": "containerd",
    "runc": "runc",
    "docker-registry": "docker-registry",
    "skopeo": "skopeo",
    "mmdebstrap": "mmdebstrap",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
PACKAGES = (*dict.fromkeys(_OF_DEBIAN.values()), "containernetworking-plugins")
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids")


def programs(environ: Mapping[str, str] = os.environ, *, make: bool = False) -> Path:
    """The folder with the programs, built if need be where `make` is given; raises Unavailable."""
    folder = cache(environ)
    if not build.complete(folder, PROGRAMS):
        go = shutil.which("go", path=environ.get("PATH"))
        if not make or go is None:
            raise Unavailable(f"{', '.join(PROGRAMS)} are not built; `make real` builds them where there is Go")
        packages = [f"./{name}" for name in PROGRAMS]
        build.compile_into(go, folder, MODULE, packages, PROGRAMS, environ, build.version_flags())
    return folder


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the programs of this module's versions are, or would be."""
    sources = [MODULE / "go.mod", MODULE / "go.sum", *sorted(MODULE.glob("*/main.go"))]
    content = hashlib.sha256(b"\0".join(each.read_bytes() for each in sources)).hexdigest()
    return folder_of_caches(environ) / f"{build.version()}-{content[:12]}"


def folder_of_caches(environ: Mapping[str, str] = os.environ) -> Path:
    """What is kept from one run to the next: programs and base images."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "runup" / "realcluster"


def check_machine() -> None:
    """Raises Unavailable with everything that this machine lacks, and what would help."""
    lacking = [*_no_rights(), *_no_programs(), *_no_cgroups()]
    if lacking:
        raise Unavailable("a real cluster cannot run here: " + "; ".join(lacking))


def _no_rights() -> list[str]:
    return [] if os.geteuid() == 0 else ["namespaces, mounts and cgroups of nodes need root"]


def _no_programs() -> list[str]:
    packages = {package for name, package in _OF_DEBIAN.items() if shutil.which(name) is None}
    if not (PLUGINS / "bridge").exists():
        packages.add("containernetworking-plugins")
    return [f"not installed: apt-get install {' '.join(sorted(packages))}"] if packages else []


def _no_cgroups() -> list[str]:
    folder = Path("/sys/fs/cgroup")
    unified = folder / "cgroup.controllers"
    if unified.exists():
        found = set(unified.read_text().split()) | {"cpuacct"}
    else:
        found = {name for name in _CONTROLLERS if (folder / name / "cgroup.procs").exists()}
    missing = [name for name in _CONTROLLERS if name not in found]
    return [f"the cgroup controllers {', '.join(missing)} are not mounted"] if missing else []
