"""kubesandbox as one program: `uvx`, `pipx run`, and an archive start the built wheels, and leave nothing behind.

Building and installing need the package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.kubesandbox_archive import LIMIT_MB, build

from tools import packages

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel"), pytest.mark.timeout(1200)]
UVX = str(Path(packages.UV).with_name("uvx"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> packages.Built:
    """The wheels of the checkout."""
    return packages.wheels(tmp_path_factory.mktemp("dist"))


def starts_and_ends(command: list[str], home: Path) -> bool:
    """Whether a program names the kubeconfig of a server, and ends it with its standard input."""
    environ = {**os.environ, "HOME": str(home), "PIPX_HOME": str(home / "pipx"), "SHIV_ROOT": str(home / "shiv")}
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, "--stop-with-stdin"], stdin=pipe, stdout=pipe, env=environ, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdout.readline()
        kubeconfig = Path(program.stdout.readline().strip().removeprefix("export KUBECONFIG="))
        ran = kubeconfig.is_file()
        program.stdin.close()
        return program.wait() == 0 and ran and not kubeconfig.parent.exists()


def test_an_archive_starts_a_server(wheels: packages.Built, tmp_path: Path) -> None:
    """It is one file, which a machine with Python runs, and smaller than the limit."""
    archive = tmp_path / "kubesandbox.pyz"
    build(archive, wheels)
    assert archive.stat().st_size < LIMIT_MB * 1e6
    assert starts_and_ends([sys.executable, str(archive)], tmp_path)


def test_uvx_starts_a_server(wheels: packages.Built, tmp_path: Path) -> None:
    """As `uvx kubesandbox` does from an index."""
    source = ["--from", str(wheels["kubesandbox"]), "--with", str(wheels["kubekit"])]
    assert starts_and_ends([UVX, "-q", "--isolated", "--python", sys.executable, *source, "kubesandbox"], tmp_path)


def test_pipx_starts_a_server(wheels: packages.Built, tmp_path: Path) -> None:
    """As `pipx run kubesandbox` does from an index."""
    found = f"--find-links={wheels['kubekit'].parent}"
    command = [
        UVX,
        "-q",
        "--python",
        sys.executable,
        "pipx==1.18.4",
        "run",
        "--backend",
        "pip",
        "--python",
        sys.executable,
    ]
    command += ["--no-cache", f"--pip-args={found}", "--spec", str(wheels["kubesandbox"]), "kubesandbox"]
    assert starts_and_ends(command, tmp_path)
