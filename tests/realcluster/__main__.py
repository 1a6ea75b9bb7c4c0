"""`python -m tests.realcluster [PYTEST ARGUMENT...]`: build what is missing, then run the tests on a real cluster.

A machine that cannot have one is told why, and exits 0: nothing is wrong with the project. With RUNUP_REAL=required it
is an error, so that CI cannot skip by accident.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.controlplane import build as controlplane
from tests.realcluster import build, images, published

MARKED = "real"


def main(arguments: list[str]) -> int:
    """Exit code of pytest, or of having no cluster."""
    required = os.environ.get("RUNUP_REAL") == "required"
    began = time.monotonic()
    try:
        build.check_machine()
        controlplane.build()
        programs = build.programs(make=True)
        build.dns(make=True)
        build.helm(make=True)
        images.python_base()
        published.published()
    except controlplane.Unavailable as error:
        print(f"{'error' if required else 'skipped'}: {error}", file=sys.stderr)
        return 1 if required else 0
    print(f"Kubernetes {controlplane.version()} in {programs} ({time.monotonic() - began:.1f} s)")
    environ = {**os.environ, "RUNUP_REAL": os.environ.get("RUNUP_REAL") or "on"}
    # One after the other, in one process: they share a cluster.
    command = [sys.executable, "-m", "pytest", "tests/realcluster", "-m", MARKED, "-rs", *arguments]
    code = subprocess.run(command, env=environ, check=False).returncode
    print(f"real cluster: {time.monotonic() - began:.0f} s in all")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
