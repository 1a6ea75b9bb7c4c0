"""What an operator that runs for months does not hold: libraries that another command needs, megabytes each."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("cel_expr_python", "cryptography", "sqlite3")


@pytest.mark.parametrize(
    "process",
    [
        pytest.param("runup.operator.start_command, runup.operator.manager", id="the managing operator"),
        pytest.param("runup.operator.update_status, runup.updatestatus.control.process", id="the keeper"),
    ],
)
def test_what_an_operators_process_does_not_load(process: str) -> None:
    """Each is read where it is used, if it ever is."""
    code = f"import sys, {process}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in HEAVY if name in loaded] == []
