"""`python tools/sizes.py`: how large an installation is, in the words of docs/install.md. Needs the package index."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import packages


def main() -> int:
    """Build, install and measure; prints the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="runup-sizes-") as temporary:
        built = packages.wheel(Path(temporary))
        venv = Path(temporary, "venv")
        packages.environment(venv)
        empty = packages.size(venv)
        packages.install(built, "--python", venv)
        libraries = next(venv.glob("lib/python*/site-packages"))
        own = [libraries / name for name in ("runup", "kubesandbox", "kubekit")]
        sandbox = [libraries / "runup" / "sandbox", libraries / "kubesandbox"]
        rows = {
            "the wheel": built.stat().st_size,
            "runup, installed": sum(map(packages.size, own)),
            "of it the sandbox": sum(map(packages.size, sandbox)),
            "with all that it needs": packages.size(venv) - empty,
        }
    for what, number in rows.items():
        print(f"| {what} | {number / 1e6:.1f} MB |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
