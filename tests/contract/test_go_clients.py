"""What Go operators are made of, as it comes: client-go's clients, informers, elections, and a reconciler.

Each case of `tests/goclient` is one run of its program. client-go encodes built-in kinds in protobuf by default, which
neither kubectl nor the Python clients show.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.contract.api import Api
from tests.controlplane.build import Unavailable
from tests.goclient import build

pytestmark = pytest.mark.slow

CASES = (
    "typed",
    "deletes",
    "patches",
    "definitions",
    "dynamic",
    "metadata",
    "informers",
    "leader-election",
    "controller-runtime",
)


@pytest.fixture(scope="session")
def program() -> Path:
    """The built program; skips where there is no Go, or fails where it is required."""
    try:
        return build.build()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("goclient")
@pytest.mark.parametrize("case", CASES)
def test_a_go_program(api: Api, namespace: str, program: Path, case: str) -> None:
    """It ends well; what it prints otherwise names the step."""
    environ = {**os.environ, "KUBECONFIG": api.kubeconfig}
    done = subprocess.run(
        [program, case, namespace], env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
