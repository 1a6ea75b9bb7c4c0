"""The pure packages evaluate a dump without importing the network, an event loop, or the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "skip-level"
EVALUATED = f"""
from datetime import UTC, datetime
from pathlib import Path
from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate

result = evaluate_dump(Path({str(EXAMPLE)!r}), RequestedUpdate(), datetime(2026, 1, 1, tzinfo=UTC))
assert result.report is not None and result.report.risks, result.problem
"""


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        pytest.param(EVALUATED, {"aiohttp", "click", "asyncio"}, id="evaluating a dump"),
        *(
            pytest.param(f"import runup.{module}", {"aiohttp", "click"}, id=f"importing {module}")
            for module in ("evaluation.evaluate", "facts.of_dump", "checks.catalogue", "report.report", "rules")
        ),
    ],
)
def test_loads_no_network_and_no_command_line(code: str, refused: set[str]) -> None:
    """The modules are looked up in `sys.modules` of a separate process."""
    code = f"{code}\nimport sys\nprint(*sorted({refused!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("", "")
