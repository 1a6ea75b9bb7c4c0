"""`python -m tools.image [--architecture ARCH]... [--output DIR]`: builds the operator's image as an OCI layout.

It needs apt and dpkg-deb, the machine's Debian mirror and the package index; no root, no engine, nothing of another
machine's programs. One commit gives one digest. `--lock` writes the locked versions of Debian's packages anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.image import build, debian


def main(argv: list[str]) -> int:
    """Builds, and prints where the image is, its digest and how large it is."""
    parser = argparse.ArgumentParser(prog="python -m tools.image")
    parser.add_argument("--architecture", action="append", choices=debian.ARCHITECTURES, help="by default amd64")
    parser.add_argument("--output", type=Path, default=Path("build/image"), help="the layout; what is there goes")
    parser.add_argument("--lock", action="store_true", help="write the mirror's newest versions into the lock file")
    given = parser.parse_args(argv)
    if given.lock:
        debian.lock()
        return 0
    built = build.images(given.output, given.architecture or ["amd64"])
    for image in built.images:
        print(f"{image.architecture}: {image.digest}")
        for name, size in image.layers.items():
            print(f"  {name:<12} {size / 1e6:6.1f} MB compressed")
    print(f"oci:{given.output}:{built.tag} {built.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
