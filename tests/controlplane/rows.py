"""Which servers a test gets: the sandbox's always, a real kube-apiserver where one was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.controlplane import build

REAL = pytest.param("kube-apiserver", marks=[pytest.mark.e2e, pytest.mark.timeout(900)])
# `make e2e` sets it; without, the real server's rows do not exist, rather than being skipped by the hundred.
SERVERS = ["sandbox", *([REAL] if os.environ.get("RUNUP_E2E") else [])]


def programs() -> Path:
    """The folder of the real server's programs; skips the test, or fails it where they are required."""
    try:
        return build.find()
    except build.Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
