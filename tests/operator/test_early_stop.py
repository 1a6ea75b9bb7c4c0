"""A stop while a command of the operator is still starting is obeyed at once, by a container's first process too."""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import signal
import sys
import termios
import tomllib
from pathlib import Path

import pytest

from runup.release.control.image_build import THIN_OPERATOR

PYPROJECT = Path(__file__).parents[2] / "packages/runup/pyproject.toml"
OWN = "quay.example/release@sha256:" + "1" * 64


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["start", f"--release-image={OWN}", "--node-name=node-1"], id="the managing operator"),
        pytest.param(["preflight", "--report={folder}/report", "--release-dir={folder}"], id="a target"),
        pytest.param(["update-status-controller"], id="the update status controller"),
        pytest.param(["update-policy-controller"], id="the update policy controller"),
        pytest.param(["update-extension", "--cluster=a/b"], id="the extension of Cluster API"),
        pytest.param(["fleet-update-controller"], id="the fleet update controller"),
    ],
)
async def test_a_stop_while_it_starts(tmp_path: Path, words: list[str]) -> None:
    """It reads its kubeconfig, which never ends; whoever has no handler dies of the signal, or as PID 1 does not."""
    pipe = tmp_path / "kubeconfig"
    os.mkfifo(pipe)
    (tmp_path / "release-manifests").mkdir()
    given = [word.format(folder=tmp_path) for word in words]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", THIN_OPERATOR.decode(), *given, f"--kubeconfig={pipe}"
    )
    # Open for both, so that neither side waits here; what it has read says that it is there.
    end = os.open(pipe, os.O_RDWR)
    try:
        async with asyncio.timeout(90):
            os.write(end, b"#")
            while _unread(end):
                assert process.returncode is None
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        os.close(end)


def _unread(end: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


def test_the_installed_command_begins_there_too() -> None:
    """What pip makes of it, and what a thin image has, name the same entry."""
    entry = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]["cluster-version-operator"]
    module, _, function = entry.partition(":")
    assert f"from {module} import {function}".encode() in THIN_OPERATOR
