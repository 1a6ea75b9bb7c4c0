"""What an operator that runs for months does not hold: libraries that another command needs, megabytes each."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("cel_expr_python", "cryptography", "sqlite3", "rich", "pygments")
# What a preflight, a ConfigMap with a TLS profile, or the reading of a release needs: not before there is one.
LATER = ("pysequoia", "yaml", "kubekit.lang.cel", "runup.checks.catalogue", "runup.kernelmodules")
# What reads catalogs and modules' images: an administrator waits for the target's start, and many clusters have none.
FOR_IMAGES = ("runup.kernelmodules.decide.verdict", "runup.kernelmodules.control.image_stage")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "heavy"),
    [
        pytest.param(
            "runup.cli.operator.start_commands, runup.operator.manager", (*HEAVY, *LATER), id="the managing operator"
        ),
        pytest.param(
            "runup.cli.operator.preflight_command, runup.target.start",
            (*HEAVY, "pysequoia", *FOR_IMAGES),
            id="the target of a preflight",
        ),
        pytest.param(
            "runup.checks.catalogue",
            (*HEAVY, "kubekit.lang.cel", "runup.kernelmodules.decide.verdict"),
            id="checks of a dump",
        ),
        pytest.param("runup.cli.operator.start_commands, runup.updatestatus.control.process", HEAVY, id="the keeper"),
    ],
)
def test_what_an_operators_process_does_not_load(process: str, heavy: tuple[str, ...]) -> None:
    """Each is read where it is used, if it ever is; the process begins as its program does."""
    begin = "from runup.cli.startup import plain_logs; plain_logs.leave_rich_out()"
    code = f"import sys; {begin}; import {process}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in heavy if name in loaded] == []
