"""A tool chain as an image, made of what Debian's package manager put on this machine: nothing is downloaded."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path

import pytest

from kubekit.oci.reference import sha256
from runup.release.control.image_build import Layer

# What builds, signs and indexes a kernel module, besides the headers.
TOOLS = ("gcc-12", "make", "binutils", "libc6-dev", "kmod", "dash", "coreutils", "sed", "grep", "mawk", "openssl")
_LEFT_OUT = re.compile(r"^/usr/share/(doc|man|locale|info|lintian|bug|perl)/")
_MERGED = ("bin", "sbin", "lib", "lib64", "lib32", "libx32")


@cache
def kernel() -> str:
    """The kernel whose headers are installed, such as 6.1.0-41-amd64; skips the test where something is missing."""
    missing = [
        name for name in ("buildah", "dpkg-query", "unshare", "modinfo", "openssl") if shutil.which(name) is None
    ]
    headers = sorted(Path("/usr/src").glob("linux-headers-*-amd64"))
    signers = list(Path("/usr/lib").glob("linux-kbuild-*/scripts/sign-file"))
    if missing or not headers or not signers or not shutil.which("gcc-12"):
        packages = "buildah linux-headers-amd64 gcc-12 make kmod openssl"
        pytest.skip(
            f"a real build needs Debian's packages {packages} (missing: {', '.join(missing) or 'headers or compiler'})"
        )
    if os.geteuid() != 0:
        pytest.skip("a real build needs root: buildah mounts")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a real build needs mount namespaces, which this machine forbids")
    return headers[-1].name.removeprefix("linux-headers-")


def sign_file() -> str:
    """Where the kernel's signing program is."""
    return str(max(Path("/usr/lib").glob("linux-kbuild-*/scripts/sign-file")))


def toolchain(target: Path, kernel: str) -> Layer:
    """One layer with the headers, the tools, and all that they depend on."""
    files = sorted(_files(_closure((f"linux-headers-{kernel}", *TOOLS))))
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        wanted = {*(f"usr/{name}" for name in _MERGED), "tmp", "proc", "dev", "sys", "run", "etc"}
        for folder in sorted(wanted - {path.lstrip("/") for path in files}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name in _MERGED:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(entry)
        for path in files:
            archive.add(path, arcname=path.lstrip("/"), recursive=False)
        archive.add("/usr/bin/mawk", arcname="usr/bin/awk", recursive=False)
    data = target.read_bytes()
    return Layer(gzip.compress(data, compresslevel=1, mtime=0), sha256(data))


def _closure(packages: tuple[str, ...]) -> set[str]:
    """The packages and what they depend on, of those that are installed."""
    listing = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    needs, provides = {}, {}
    for line in listing.splitlines():
        name, provided, depends = line.split("\t")
        needs[name] = _names(depends)
        provides.update(dict.fromkeys(_names(provided), name))
    found: set[str] = set()
    waiting = list(packages)
    while waiting:
        name = waiting.pop()
        name = name if name in needs else provides.get(name, "")
        if name and name not in found:
            found.add(name)
            waiting += needs[name]
    return found


def _names(relations: str) -> list[str]:
    """The packages that a relation field names, alternatives included."""
    words = re.split(r"[,|]", relations)
    return [word.split()[0].partition(":")[0] for word in words if word.split()]


def _files(packages: set[str]) -> set[str]:
    """The files of the packages, by where they really are: /lib is a link to /usr/lib."""
    qualified = subprocess.run(
        ["dpkg-query", "-W", "-f", "${binary:Package}\n", *packages], capture_output=True, text=True, check=True
    ).stdout.split()
    listing = subprocess.run(["dpkg-query", "-L", *qualified], capture_output=True, text=True, check=True).stdout
    found = set()
    for line in listing.splitlines():
        if not line.startswith("/") or line in ("/.", "/") or _LEFT_OUT.match(line):
            continue
        folder, _, name = line.rpartition("/")
        path = f"{os.path.realpath(folder or '/').rstrip('/')}/{name}"
        merged = path.lstrip("/") in _MERGED
        if os.path.lexists(path) and not merged:
            found.add(path)
    return found
