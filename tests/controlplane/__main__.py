"""`python -m tests.controlplane [PYTEST ARGUMENT...]`: build what is missing, then run the tests on a real server.

A machine that cannot have one is told why, and exits 0: nothing is wrong with the project. With RUNUP_E2E=required it
is an error, so that CI cannot skip by accident.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.controlplane import build

MARKED = "e2e"


def main(arguments: list[str]) -> int:
    """Exit code of pytest, or of having no control plane."""
    required = os.environ.get("RUNUP_E2E") == "required"
    began = time.monotonic()
    try:
        programs = build.build()
    except build.Unavailable as error:
        print(f"{'error' if required else 'skipped'}: {error}", file=sys.stderr)
        return 1 if required else 0
    print(f"kube-apiserver {build.version()} in {programs} ({time.monotonic() - began:.1f} s)")
    environ = {**os.environ, "RUNUP_E2E": os.environ.get("RUNUP_E2E") or "on"}
    command = [sys.executable, "-m", "pytest", "-m", MARKED, "-rs", "--rerun-alone", *arguments]
    return subprocess.run(command, env=environ, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
