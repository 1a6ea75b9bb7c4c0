"""`python -m tools.release [--output DIR] [--architecture ARCH]... [--part PART]...`: what is published of a commit.

RUNUP_IMAGE is the pull spec under which the image will be found, which `runup install` then takes by itself;
RUNUP_SIGNING_KEY the file of an armored OpenPGP secret key, with which the checksums are signed. The same commit gives
the same files, but for the signature, which has its time in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tools.image import debian
from tools.release import contents, signing


def main(argv: list[str]) -> int:
    """Makes them all in a temporary folder, which takes the output's place at the end; prints the checksums."""
    parser = argparse.ArgumentParser(prog="python -m tools.release")
    parser.add_argument("--output", type=Path, default=Path("build/release"), help="the folder; what is there goes")
    parser.add_argument("--architecture", action="append", choices=debian.ARCHITECTURES, help="by default both")
    parser.add_argument("--part", action="append", choices=contents.PARTS, help="by default all; wheels always")
    given = parser.parse_args(argv)
    key = signing.key(os.environ.get("RUNUP_SIGNING_KEY", ""))
    with tempfile.TemporaryDirectory(prefix="runup-release-") as temporary:
        folder = Path(temporary, "release")
        folder.mkdir()
        contents.write(folder, given.architecture or list(debian.ARCHITECTURES), given.part or contents.PARTS)
        sums = signing.checksums(folder)
        (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
        if key is not None:
            (folder / "SHA256SUMS.asc").write_bytes(signing.sign(key, sums.encode()))
            (folder / "signing-key.asc").write_bytes(key.public)
        shutil.rmtree(given.output, ignore_errors=True)
        given.output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, given.output)
    print(sums, end="")
    if key is None:
        print("note: not signed; RUNUP_SIGNING_KEY names no key", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
