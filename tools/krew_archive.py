"""`python tools/krew_archive.py [FOLDER]`: the archive that krew installs, and the manifest with its checksum.

The archive holds the launcher, the licence, and in `lib` the wheel with the locked versions of all that it needs, for
the platform and the Python (3.11) that this runs on. `--alone` leaves the libraries out, for a look at all the rest.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import packages

import runup

ARCHIVE = "runup-linux-amd64.tar.gz"
# What an installer notes of itself, and byte code, which is the machine's own.
_LEFT_OUT = ("RECORD", "direct_url.json", ".lock")


def main(argv: list[str]) -> int:
    """Write both into the folder."""
    parser = argparse.ArgumentParser(prog="tools/krew_archive.py")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/krew"))
    parser.add_argument("--alone", action="store_true", help="without the libraries")
    given = parser.parse_args(argv)
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    archive, manifest = folder / ARCHIVE, folder / "runup.yaml"
    with tempfile.TemporaryDirectory(prefix="runup-krew-") as temporary:
        content = Path(temporary, "content")
        content.mkdir()
        packages.install(packages.wheel(Path(temporary)), "--target", content / "lib", alone=given.alone)
        shutil.copy(packages.ROOT / "deploy" / "krew" / "kubectl-runup", content)
        shutil.copy(packages.ROOT / "LICENSE", content)
        _pack(content, archive)
    manifest.write_text(_manifest(hashlib.sha256(archive.read_bytes()).hexdigest()), encoding="utf-8")
    print(f"kubectl krew install --manifest={manifest} --archive={archive}")
    return 0


def _manifest(checksum: str) -> str:
    text = (packages.ROOT / "deploy" / "krew" / "runup.yaml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    return "".join(lines).replace("SHA256", checksum).replace("VERSION", f"v{runup.__version__}")


def _pack(content: Path, archive: Path) -> None:
    files = [path for path in sorted(content.rglob("*")) if path.is_file()]
    with gzip.open(archive, "wb", compresslevel=6) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in files:
            if path.suffix != ".pyc" and path.name not in _LEFT_OUT:
                tar.add(path, str(path.relative_to(content)), filter=_plain)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
