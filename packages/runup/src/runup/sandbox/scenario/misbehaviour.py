"""Writes a valid preflight report for the entry points of scenario `misbehaving`, which then corrupt it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

JSON = dict[str, Any]


def report_path() -> Path:
    """Returns the path at which the operator expects the report, and creates its folder."""
    path = Path(os.environ["PREFLIGHT_REPORT"])
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def risk(**changes: Any) -> JSON:
    """Returns a risk that applies, with `changes`."""
    good = {
        "name": "SomeRisk",
        "message": "Something is the matter.",
        "url": "https://docs.runup.example/checks/SomeRisk",
        "applies": "True",
    }
    return good | changes


def report(**changes: Any) -> JSON:
    """Returns a complete report with one risk, with `changes`."""
    variables = {
        "preflightID": "PREFLIGHT_ID",
        "sourceVersion": "PREFLIGHT_SOURCE_VERSION",
        "targetVersion": "PREFLIGHT_TARGET_VERSION",
        "targetImage": "PREFLIGHT_TARGET_IMAGE",
    }
    good = {
        "format": "preflight-v1-json",
        **{field: os.environ.get(name, "") for field, name in variables.items()},
        "executionStatus": "completed",
        "checks": [{"name": "some-check", "component": "test", "result": "Applies"}],
        "risks": [risk()],
    }
    return good | changes


def write(content: JSON) -> None:
    """Writes the report to its place atomically, as a target should."""
    path = report_path()
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.replace(path)


def wait_for_sigterm() -> None:
    """Waits until the operator sends SIGTERM."""
    signal.sigwait({signal.SIGTERM})
