#!/usr/bin/env python3
"""Puts a symbolic link where the report should be."""

import os
import pathlib
import signal

path = pathlib.Path(os.environ["PREFLIGHT_REPORT"])
path.parent.mkdir(parents=True, exist_ok=True)
risk = {
    "name": "SomeRisk",
    "message": "Something is the matter.",
    "url": "https://docs.runup.example/risks/SomeRisk",
    "applies": "True",
}
report = {
    "format": "preflight-v1-json",
    "preflightID": os.environ.get("PREFLIGHT_ID", ""),
    "sourceVersion": os.environ.get("PREFLIGHT_SOURCE_VERSION", ""),
    "targetVersion": os.environ.get("PREFLIGHT_TARGET_VERSION", ""),
    "targetImage": os.environ.get("PREFLIGHT_TARGET_IMAGE", ""),
    "executionStatus": "completed",
    "checks": [{"name": "some-check", "component": "test", "result": "Applies"}],
    "risks": [risk],
}
path.unlink(missing_ok=True)
path.symlink_to("/etc/passwd")
signal.sigwait({signal.SIGTERM})
