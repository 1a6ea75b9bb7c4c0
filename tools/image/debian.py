"""The interpreter's base: Debian packages of locked versions, fetched by apt and unpacked without being installed.

No package's script runs and nothing of another machine is started, so that any machine with apt makes either
architecture's, as any user. Why not mmdebstrap: docs/decisions/0085.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tools.image.tree import File, Tree
from tools.packages import ROOT

LOCK = ROOT / "deploy" / "image" / "debian.lock"
ARCHITECTURES = ("amd64", "arm64")
# What Python, its compiled libraries and the Pods that copy a release need (`sh`, `cp`, `mkdir`, `mv`, `rm`). Left out
# is what only scripts of packages need (debconf, perl, openssl), and libraries of modules that nobody imports (curses,
# readline, dbm, nis).
PACKAGES = (
    "base-files",
    "ca-certificates",
    "coreutils",
    "dash",
    "gcc-12-base",
    "libacl1",
    "libattr1",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "libgmp10",
    "liblzma5",
    "libpcre2-8-0",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libselinux1",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "media-types",
    "python3.11-minimal",
    "zlib1g",
)
_LEFT_OUT = re.compile(
    r"usr/share/(?:man|info|locale|lintian|bug|doc-base|gcc|gdb|pixmaps|applications|binfmts)/"
    r"|usr/share/doc/(?!.*/copyright$)|usr/lib/[^/]+/(?:gconv|audit)/|usr/share/doc/.+/examples/"
)
_MERGED = re.compile(r"^(?:bin|sbin|lib|lib64)/")
APT_SETTINGS = Path("/etc/apt")
SUITE = "bookworm"
KEYRING = "debian-archive-keyring"
ELSEWHERE = "it comes with Debian and Ubuntu; elsewhere podman builds the image from deploy/Containerfile"
GONE = (
    "If the mirror has a locked version no more: `make lock-image` takes today's, or name an apt source that has it, "
    "such as a snapshot, in DEBIAN_SOURCES."
)
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runup" / "debian"
# Beside the packages' own lists, which are the only ones that are read.
_TARGETS = ("DEP-11", "Translations", "Contents-deb", "CNF")


class Locked(NamedTuple):
    """A package's file: for which machine, name, version, and the SHA-256 of the whole."""

    architecture: str
    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return " ".join(self)


def locked(architecture: str) -> list[Locked]:
    """Returns the lock file's packages for a machine."""
    lines = (line for line in LOCK.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return [package for package in (Locked(*line.split()) for line in lines) if package.architecture == architecture]


def lock() -> None:
    """Writes the lock file anew: the versions that the machine's Debian mirror has today."""
    packages: list[Locked] = []
    for architecture in ARCHITECTURES:
        with tempfile.TemporaryDirectory(prefix="runup-apt-") as temporary:
            for file in _download(architecture, PACKAGES, Path(temporary)):
                name, version, _ = file.stem.split("_")
                packages.append(Locked(architecture, name, version.replace("%3a", ":"), _kept(file)))
    head = "# The Debian packages in the operator's image; `make lock-image` writes the mirror's newest.\n"
    LOCK.write_text(head + "".join(f"{package}\n" for package in packages), encoding="utf-8")


def base(architecture: str) -> Tree:
    """Returns the files of the locked packages, and those that scripts of packages would have made."""
    tree: Tree = {}
    for package in _fetched(architecture):
        _unpack(package, tree)
    tree |= {name: File.link(f"usr/{name}") for name in ("bin", "sbin", "lib", "lib64")}
    certificates = [tree[name].data.strip() for name in sorted(tree) if name.endswith(".crt")]
    tree["etc/ssl/certs/ca-certificates.crt"] = File(b"\n".join([*certificates, b""]))
    # Where OpenSSL looks; the link comes with Debian's `openssl`, the program.
    tree["usr/lib/ssl/cert.pem"] = File.link("/etc/ssl/certs/ca-certificates.crt")
    tree["etc/passwd"] = File(b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    tree["etc/group"] = File(b"root:x:0:\nnogroup:x:65534:\n")
    # Without it glibc asks DNS alone: names of /etc/hosts would not be found.
    tree["etc/nsswitch.conf"] = File(b"passwd: files\ngroup: files\nhosts: files dns\n")
    tree |= {name: File.folder() for name in ("dev", "proc", "run", "sys")}
    tree |= {"tmp": File.folder(0o1777), "var/tmp": File.folder(0o1777)}
    return tree


def _fetched(architecture: str) -> list[Path]:
    """Returns the packages' files, from the cache where they were fetched before."""
    packages = locked(architecture)
    absent = [package for package in packages if not (_CACHE / f"{package.sha256}.deb").exists()]
    if absent:
        with tempfile.TemporaryDirectory(prefix="runup-apt-") as temporary:
            wanted = [f"{package.name}={package.version}" for package in absent]
            fetched = {_kept(file) for file in _download(architecture, wanted, Path(temporary))}
        for package in absent:
            if package.sha256 not in fetched:
                raise SystemExit(
                    f"error: {package.name} {package.version} is not the file that {LOCK} names by SHA-256"
                )
    return [_CACHE / f"{package.sha256}.deb" for package in packages]


def _kept(file: Path) -> str:
    """Moves a package into the cache, under its digest, and returns that."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    _CACHE.mkdir(parents=True, exist_ok=True)
    file.rename(_CACHE / f".{digest}.{os.getpid()}").rename(_CACHE / f"{digest}.deb")
    return digest


def _unpack(package: Path, tree: Tree) -> None:
    data = _output(["dpkg-deb", "--fsys-tarfile", str(package)])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            name = _MERGED.sub(r"usr/\g<0>", member.name.removeprefix("./").rstrip("/"))
            if _LEFT_OUT.search(name) or member.isdir() or not name:
                continue
            if member.issym():
                tree[name] = File.link(member.linkname)
            else:  # A hard link's content is that of the file which it names.
                content = archive.extractfile(member)
                assert content is not None, f"{package}: {name} is neither file nor link"
                tree[name] = File(content.read(), executable=bool(member.mode & 0o100))
    control = _output(["dpkg-deb", "--field", str(package)])
    name = _output(["dpkg-deb", "--field", str(package), "Package"]).decode().strip()
    # Scanners learn from here what is installed, where there is no dpkg.
    tree[f"var/lib/dpkg/status.d/{name}"] = File(control)


def _download(architecture: str, wanted: Sequence[str], folder: Path) -> list[Path]:
    """Fetches packages (`name` or `name=version`), whose digests apt compares with the mirror's signed list.

    apt gets lists, settings and an empty state of its own: the machine's are left alone.
    """
    for name in ("lists/partial", "sources", "fetched"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    for index, source in enumerate(sources()):
        (folder / "sources" / f"{index}{source.suffix}").write_bytes(source.read_bytes())
    settings = {
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder,
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": folder / "sources",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        # As root, apt would fetch as a user who cannot write here.
        "APT::Sandbox::User": "root",
        **{f"Acquire::IndexTargets::deb::{target}::DefaultEnabled": "false" for target in _TARGETS},
    }
    command = ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    _output([*command, "update"])
    _output([*command, "download", *wanted], cwd=folder / "fetched")
    return sorted((folder / "fetched").glob("*.deb"))


def sources() -> list[Path]:
    """Returns the machine's own settings of Debian's mirror, or those that DEBIAN_SOURCES names."""
    if named := os.environ.get("DEBIAN_SOURCES"):
        return [Path(named)]
    settings = [*sorted((APT_SETTINGS / "sources.list.d").glob("*.*")), APT_SETTINGS / "sources.list"]
    found = [path for path in settings if path.is_file() and is_debian(path.read_text(encoding="utf-8"))]
    if not found:
        raise SystemExit(
            f"error: no apt source of Debian's {SUITE} on this machine; name a file with one in DEBIAN_SOURCES"
        )
    return found


def is_debian(text: str) -> bool:
    """Returns whether an apt source is Debian's own."""
    # Mirrors of others, for which the machine may have sources too, are not signed by this key.
    return SUITE in text and (KEYRING in text or not re.search("signed-by", text, re.IGNORECASE))


def _output(command: Sequence[str], cwd: Path | None = None) -> bytes:
    try:
        return subprocess.run(command, cwd=cwd, check=True, capture_output=True).stdout
    except FileNotFoundError as error:
        raise SystemExit(f"error: {command[0]} is not on this machine; {ELSEWHERE}") from error
    except subprocess.CalledProcessError as error:
        told = error.stderr.decode(errors="replace").strip()
        raise SystemExit(f"error: {command[0]}: {told}\n{GONE}") from error
