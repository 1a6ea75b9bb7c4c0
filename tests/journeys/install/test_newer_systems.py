"""The README's line for pip on Debian releases that are newer than this machine's, each with its Python."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.controlplane.build import Unavailable
from tests.journeys.install.checkouts import VERSION
from tests.journeys.install.test_readme_install import lines_of_the_table
from tests.realcluster.images import bootstrapped

LIMIT_S = 600
PACKAGES = ("python3", "python3-venv", "ca-certificates")
# Where a company's proxy signs, its authority is among the machine's.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# It mounts in a namespace that ends with it.
SCRIPT = 'mount -t proc proc "$1/proc" && exec chroot "$1" sh -euc "$2"'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * LIMIT_S),
    pytest.mark.xdist_group("image"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the root folder"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="no mmdebstrap"),
]


def _run(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell script in the system of the folder `root`, with an empty home."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "PIP_CERT": str(CERTIFICATES)}
    words = ("unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(root), script)
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)


# https://www.debian.org/releases: stable since August 2025, and the next one.
@pytest.mark.parametrize(("suite", "oldest_python"), [("trixie", "3.13"), ("forky", "3.14")])
def test_pip_installs_the_release(release: Path, tmp_path: Path, suite: str, oldest_python: str) -> None:
    """The command reports its version, checks a dump, and runs the sandbox, an operator and an update in it."""
    try:
        archive = bootstrapped(PACKAGES, suite=suite, variant="minbase")
    except Unavailable as error:
        pytest.skip(str(error))
    root = tmp_path / "root"
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(root, filter="fully_trusted")
    for file in (Path("/etc/resolv.conf"), Path("/etc/hosts"), CERTIFICATES):
        shutil.copy(file, root / file.relative_to("/"))
    shutil.copytree(release, root / "clone" / "build" / "release")
    shutil.copytree(release.parents[1] / "examples" / "skip-level", root / "dump")
    line = lines_of_the_table()["pip"][1]
    done = _run(
        root, f"python3 -m venv /env; cd /clone; PATH=/env/bin:$PATH; {line}; python3 --version; runup --version"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Python {oldest_python}" in done.stdout
    assert VERSION in done.stdout
    done = _run(root, "/env/bin/runup preflight run --dump /dump")
    assert done.returncode == 2, done.stdout + done.stderr
    done = _run(root, "/env/bin/runup demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Preflight of 5.2.0 from 5.0.0" in done.stdout
