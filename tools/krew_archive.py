"""`python tools/krew_archive.py [FOLDER]`: the archives that krew installs, and the manifest with their checksums.

An archive holds the launcher, the licence, and in `lib` our wheels with the locked versions of all that they need, for
one platform and Python 3.11. They are the index' wheels, so that each platform's is made on any. `--alone` leaves the
libraries out, for a look at all the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

# Started by its path, it finds the checkout's other tools all the same.
sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.release import archives

from tools import compiled, packages

# As the manifest names them, and as uv does. None for Intel's Macs: `cryptography` has no wheel for them any more.
PLATFORMS = {
    "linux-amd64": "x86_64-unknown-linux-gnu",
    "linux-arm64": "aarch64-unknown-linux-gnu",
    "darwin-arm64": "aarch64-apple-darwin",
}
# What an installer notes of itself, and byte code, which is the machine's own.
_LEFT_OUT = ("RECORD", "REQUESTED", "direct_url.json", "uv_cache.json", ".lock")


def main(argv: list[str]) -> int:
    """Write both into the folder."""
    parser = argparse.ArgumentParser(prog="tools/krew_archive.py")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/krew"))
    parser.add_argument("--alone", action="store_true", help="without the libraries")
    parser.add_argument("--wheels", type=Path, help="a folder of them; by default they are built of the checkout")
    given = parser.parse_args(argv)
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "runup.yaml"
    text = (packages.ROOT / "deploy" / "krew" / "runup.yaml").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="runup-krew-") as temporary:
        wheels = packages.found(given.wheels) if given.wheels else packages.wheels(Path(temporary, "wheels"))
        version = packages.semantic(packages.version(wheels[packages.RUNUP]))
        for platform in PLATFORMS:
            archive = folder / f"runup-{platform}.tar.gz"
            _make(archive, Path(temporary, platform), wheels, platform, alone=given.alone)
            text = text.replace(f"SHA256-{platform}", hashlib.sha256(archive.read_bytes()).hexdigest())
            print(f"kubectl krew install --manifest={manifest} --archive={archive}")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    manifest.write_text("".join(lines).replace("VERSION", f"v{version}"), encoding="utf-8")
    return 0


def _make(archive: Path, content: Path, wheels: packages.Built, platform: str, *, alone: bool) -> None:
    content.mkdir()
    packages.install(wheels, "--target", content / "lib", alone=alone, platform=PLATFORMS[platform])
    found = compiled.files(content)
    strange = [str(path.relative_to(content)) for path, its in found.items() if platform not in its]
    if strange or (not alone and not found):
        raise SystemExit(f"error: {archive.name}: not compiled for {platform}: {', '.join(strange) or 'anything'}")
    shutil.copy(packages.ROOT / "deploy" / "krew" / "kubectl-runup", content)
    shutil.copy(packages.ROOT / "LICENSE", content)
    _pack(content, archive)


def _pack(content: Path, archive: Path) -> None:
    for program in (content / "lib" / "bin").iterdir():
        # The launcher says which Python; an installer names the one that it ran on itself.
        program.write_bytes(re.sub(rb"\A#!.*", b"#!/usr/bin/env python3", program.read_bytes()))
    files = archives.below(content).items()
    archives.pack({name: path for name, path in files if path.suffix != ".pyc" and path.name not in _LEFT_OUT}, archive)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
