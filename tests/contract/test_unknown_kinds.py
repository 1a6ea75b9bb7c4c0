"""Tests kubectl's messages about a kind that the server lacks; kubectl reads discovery and OpenAPI first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.contract.api import Api

KUBECTL = shutil.which("kubectl") or "kubectl"
NO_TYPE = 'error: the server doesn\'t have a resource type "{}"\n'
NO_MATCH = (
    'error: resource mapping not found for name: "a" namespace: "" from "STDIN": '
    'no matches for kind "{}" in version "{}"\n'
    "ensure CRDs are installed first\n"
)


def _kubectl(api: Api, home: Path, command: str, sent: str = "") -> str:
    """Returns kubectl's stderr without klog's lines; kubectl must fail."""
    environ = {"PATH": os.environ["PATH"], "KUBECONFIG": api.kubeconfig, "HOME": str(home)}
    done = subprocess.run(
        [KUBECTL, *command.split()], env=environ, input=sent, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stdout
    return done.stderr


pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


@pytest.mark.parametrize(
    "command", ["get frobs", "get frobs.example.com", "get frobs.apps", "delete frobs a", "label frobs a x=y"]
)
def test_by_its_name(api: Api, tmp_path: Path, command: str) -> None:
    """The words of a real server's kubectl."""
    assert _kubectl(api, tmp_path, command) == NO_TYPE.format("frobs")


@pytest.mark.parametrize("command", ["create", "apply", "apply --server-side", "replace", "delete"])
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("frobs.example.com/v1", "Frob", id="a group that there is not"),
        pytest.param("v1", "Frob", id="a kind that core has not"),
        pytest.param("apps/v9", "Deployment", id="a version that there is not"),
    ],
)
def test_by_a_manifest(api: Api, tmp_path: Path, command: str, version: str, kind: str) -> None:
    """The words of a real server's kubectl, rather than that it could not read what describes the kinds."""
    manifest = json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
    assert _kubectl(api, tmp_path, f"{command} -f -", manifest) == NO_MATCH.format(kind, version)
