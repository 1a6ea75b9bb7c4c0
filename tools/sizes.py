"""`python tools/sizes.py`: prints the sizes of docs/how-to/install.md. Needs the package index."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import packages

OWN = ("kubekit", "kubesandbox", "runup")


def main() -> int:
    """Builds, installs and measures; prints the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="runup-sizes-") as temporary:
        wheels = packages.wheels(Path(temporary, "wheels"))
        for number, requirement in enumerate((*packages.NAMES, f"{packages.RUNUP}[sandbox]")):
            venv = Path(temporary, str(number))
            packages.environment(venv)
            empty = packages.size(venv)
            packages.install_by_name(requirement, wheels, venv)
            libraries = next(venv.glob("lib/python*/site-packages"))
            sizes = (
                wheels[requirement.partition("[")[0]].stat().st_size,
                sum(packages.size(libraries / name) for name in OWN),
                packages.size(venv) - empty,
            )
            count = len(list(libraries.glob("*.dist-info")))
            print(f"| `{requirement}` | {' | '.join(f'{size / 1e6:.1f} MB' for size in sizes)} | {count} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
