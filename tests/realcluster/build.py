"""The programs of a real cluster beyond its control plane: found, or built once, in a folder outside the checkout.

kube-controller-manager, kube-scheduler, kube-proxy and kubelet are of the Kubernetes that `tests/controlplane` pins;
`pause` is what a pod's sandbox runs. What Debian packages has to be installed: containerd, runc, the CNI plugins.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.controlplane import build
from tests.controlplane.build import Unavailable

MODULE = Path(__file__).parent / "programs"
DNS = Path(__file__).parent / "coredns"
HELM = Path(__file__).parent / "helm"
PROGRAMS = ("kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet", "pause")
IMAGE = "RUNUP_REAL_IMAGE"
"""Names another image of the operator than this checkout's: oci:DIR:TAG, such as one that must be released."""
PYTHON = (3, 11)
"""Of the base image."""
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
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids")


def programs(environ: Mapping[str, str] = os.environ, *, make: bool = False) -> Path:
    """The folder with the programs, built if need be where `make` is given; raises Unavailable."""
    packages = [f"./{name}" for name in PROGRAMS]
    return _built(
        MODULE,
        build.version(),
        packages=packages,
        names=PROGRAMS,
        environ=environ,
        make=make,
        flags=build.version_flags(),
    )


def dns(environ: Mapping[str, str] = os.environ, *, make: bool = False) -> Path:
    """As `programs`, the folder with CoreDNS."""
    return _built(DNS, "coredns", packages=["."], names=("coredns",), environ=environ, make=make, flags="-s -w")


def helm(environ: Mapping[str, str] = os.environ, *, make: bool = False) -> Path:
    """Helm's program, that of PATH or one that is built as `programs` are; raises Unavailable."""
    if found := shutil.which("helm", path=environ.get("PATH")):
        return Path(found)
    package = "helm.sh/helm/v3/cmd/helm"
    folder = _built(HELM, "helm", packages=[package], names=("helm",), environ=environ, make=make, flags="-s -w")
    return folder / "helm"


def _built(
    module: Path,
    name: str,
    packages: Sequence[str],
    names: Sequence[str],
    environ: Mapping[str, str],
    *,
    make: bool,
    flags: str,
) -> Path:
    sources = [module / "go.mod", module / "go.sum", *sorted(module.rglob("main.go"))]
    content = hashlib.sha256(b"\0".join(each.read_bytes() for each in sources)).hexdigest()
    folder = folder_of_caches(environ) / f"{name}-{content[:12]}"
    if not build.complete(folder, names):
        go = shutil.which("go", path=environ.get("PATH"))
        if not make or go is None:
            raise Unavailable(f"{', '.join(names)} not built; `make real` builds what is missing where there is Go")
        build.compile_into(go, folder, module, packages, names, environ, flags)
    return folder


def folder_of_caches(environ: Mapping[str, str] = os.environ) -> Path:
    """What is kept from one run to the next: programs and base images."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "runup" / "realcluster"


def check_machine() -> None:
    """Raises Unavailable with everything that this machine lacks, and what would help."""
    lacking = [*_another_server(), *_no_rights(), *_no_programs(), *_no_cgroups(), *_no_python()]
    if lacking:
        raise Unavailable("a real cluster cannot run here: " + "; ".join(lacking))


def _another_server() -> list[str]:
    """A kube-controller-manager is of the server's minor version or the one before."""
    name = build.KUBERNETES
    return [f"{name}={os.environ[name]} is not of the nodes' version: unset it"] if os.environ.get(name) else []


def _no_rights() -> list[str]:
    return [] if os.geteuid() == 0 else ["namespaces, mounts and cgroups of nodes need root"]


def _no_programs() -> list[str]:
    packages = {package for name, package in _OF_DEBIAN.items() if shutil.which(name) is None}
    if not (PLUGINS / "bridge").exists():
        packages.add("containernetworking-plugins")
    return [f"not installed: apt-get install {' '.join(sorted(packages))}"] if packages else []


def _no_python() -> list[str]:
    if os.environ.get(IMAGE) or sys.version_info[:2] == PYTHON:
        return []
    wanted = ".".join(map(str, PYTHON))
    return [
        f"the image takes its libraries from here, and its Python is {wanted}: use that, or name an image in {IMAGE}"
    ]


def _no_cgroups() -> list[str]:
    folder = Path("/sys/fs/cgroup")
    unified = folder / "cgroup.controllers"
    if unified.exists():
        found = set(unified.read_text().split()) | {"cpuacct"}
    else:
        found = {name for name in _CONTROLLERS if (folder / name / "cgroup.procs").exists()}
    missing = [name for name in _CONTROLLERS if name not in found]
    return [f"the cgroup controllers {', '.join(missing)} are not mounted"] if missing else []
