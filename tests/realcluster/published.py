"""Releases of runup, built of this checkout under two versions: image, chart, and the wheels' commands."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.install import checkouts
from tests.realcluster import build

from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from runup.release.control.image_build import BuiltImage
from tools import packages

VERSIONS = ("0.1.0", "0.1.1")
"""A release of runup, and its next patch release: the same files under another version."""
_ARCHITECTURE = {"aarch64": "arm64"}.get(platform.machine(), "amd64")
_PARTS = ("image", "chart")
# The sources of these parts: a change of another file gives no new release.
_SOURCES = (
    *("packages/", "deploy/", "tools/", "docs/reference/checks/"),
    *("pyproject.toml", "requirements", "LICENSE", ".gitignore"),
)


@dataclass(frozen=True, slots=True)
class Published:
    """A release of runup: its image as a layout, its chart, and an environment with its wheels."""

    version: str
    image: BuiltImage
    chart: Path
    environment: Path

    def runup(self, kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """`runup WORD...` as installed from the wheels."""
        return _typed(kubeconfig, str(self.environment / "bin" / "runup"), *words)


def helm(kubeconfig: Path, *words: str) -> str:
    """The output of `helm WORD...`, which must succeed."""
    done = _typed(kubeconfig, str(build.helm()), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def published() -> dict[str, Published]:
    """The releases of the checkout as it is now, by version; built once for the same files, next to the programs."""
    with tempfile.TemporaryDirectory(prefix="runup-checkout-") as temporary:
        checkout = checkouts.copy(Path(temporary), only=_SOURCES)
        commit = _git(checkout, "rev-parse", "HEAD")
        kept = build.folder_of_caches() / f"published-{commit[:12]}"
        complete = kept / "complete"
        if not complete.exists():
            for left in kept.parent.glob("published-*"):
                shutil.rmtree(left)
            for version in VERSIONS:
                # Not moved afterwards: commands of an environment name its folder.
                _build(checkout, version, kept / version)
            complete.touch()
    return {version: _of(version, kept / version) for version in VERSIONS}


def _build(checkout: Path, version: str, folder: Path) -> None:
    """Builds the release as `make release` does, without the parts that no cluster gets."""
    for tag in _git(checkout, "tag").split():
        _git(checkout, "tag", "--delete", tag)
    for name in ("kubekit-", "kubesandbox-", ""):
        _git(checkout, "tag", f"{name}v{version}")
    parts = [word for part in _PARTS for word in ("--part", part)]
    checkouts.run_tool("tools.release", checkout, "--architecture", _ARCHITECTURE, "--output", str(folder), *parts)
    with tarfile.open(folder / f"runup-image-{version}.oci.tar") as archive:
        archive.extractall(folder / "image", filter="data")
    packages.environment(folder / "environment")
    packages.install(packages.found(folder), "--python", folder / "environment")


def _of(version: str, folder: Path) -> Published:
    digest = (folder / f"runup-image-{version}.digest").read_text().strip()
    assert open_image(Layout.open(folder / "image"), version, architecture=_ARCHITECTURE).digest == digest
    chart = folder / f"runup-chart-{version}.tgz"
    return Published(version, BuiltImage(folder / "image", digest, version), chart, folder / "environment")


def _git(checkout: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=checkout, check=True, capture_output=True, text=True).stdout.strip()


def _typed(kubeconfig: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {"KUBECONFIG": str(kubeconfig), "NO_COLOR": "1"}
    # In a folder without the checkout, whose packages Python would otherwise find first.
    return subprocess.run([*command], env=environ, cwd="/", capture_output=True, text=True, check=False, timeout=600)
