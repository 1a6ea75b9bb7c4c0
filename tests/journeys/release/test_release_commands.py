"""`runup release` as typed: an image made, looked into, filtered, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.journeys.conftest import RUNUP

from runup.oci.signatures import Keyring, generate_key, verify_signatures

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    {more}
"""
TECH_PREVIEW = "release.openshift.io/feature-set: TechPreviewNoUpgrade"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run([*RUNUP, "release", *words], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release with one manifest for all and one for technology preview."""
    manifests = tmp_path / "release" / "release-manifests"
    manifests.mkdir(parents=True)
    (manifests / "0000_50_a_00-all.yaml").write_text(MANIFEST.format(name="all", more=""))
    (manifests / "0000_50_a_01-preview.yaml").write_text(MANIFEST.format(name="preview", more=TECH_PREVIEW))
    return tmp_path / "release"


def made(folder: Path, target: str, *more: str) -> subprocess.CompletedProcess[str]:
    """`release new` of the folder."""
    return run("new", "--from-dir", str(folder), "--version", "5.2.0", "--to", target, *more)


def test_an_image_is_made_signed_and_looked_into(folder: Path, tmp_path: Path) -> None:
    """The digest is reproducible, and the signature verifies for it."""
    key = generate_key()
    (tmp_path / "key").write_bytes(key.secret)
    signed = ("--sign-key", str(tmp_path / "key"), "--signature-store", str(tmp_path / "store"))
    first = made(folder, f"oci:{tmp_path / 'one'}", *signed)
    second = made(folder, f"oci:{tmp_path / 'two'}")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    digest = first.stdout.splitlines()[0]
    assert digest == second.stdout.splitlines()[0]
    signature = (tmp_path / "store" / digest.replace(":", "=") / "signature-1").read_bytes()
    verify_signatures(digest, [Keyring("k", key.public)], [signature])
    told = json.loads(run("info", f"oci:{tmp_path / 'one'}", "-o", "json").stdout)
    assert (told["name"], told["digest"], told["manifests"]) == ("5.2.0", digest, 2)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        pytest.param((), ["ConfigMap default/all"], id="the default feature set"),
        pytest.param(
            ("--feature-set", "TechPreviewNoUpgrade"),
            ["ConfigMap default/all", "ConfigMap default/preview"],
            id="technology preview",
        ),
        pytest.param(("--profile", "single-node-developer"), [], id="another profile"),
    ],
)
def test_which_manifests_a_cluster_would_get(
    folder: Path, tmp_path: Path, flags: tuple[str, ...], names: list[str]
) -> None:
    """Decided from the image alone."""
    assert made(folder, f"oci:{tmp_path / 'image'}").returncode == 0
    done = run("manifests", f"oci:{tmp_path / 'image'}", "-o", "name", *flags)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line] == names


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(("manifests", "/nowhere"), "/nowhere", id="no such folder"),
        pytest.param(("info", "oci:/nowhere"), "/nowhere", id="no such layout"),
        pytest.param(
            ("new", "--from-dir", "/nowhere", "--version", "5.2.0", "--to", "oci:x"), "/nowhere", id="no input"
        ),
        pytest.param(("new", "--from-dir", "/", "--version", "v5", "--to", "oci:x"), "'v5'", id="no version"),
    ],
)
def test_what_cannot_be_used_is_one_error(words: tuple[str, ...], named: str) -> None:
    """It names the input; nothing is written."""
    done = run(*words)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_manifest_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    """The error names the file, and there is no half-made layout."""
    (folder / "release-manifests" / "0000_50_a_02-broken.yaml").write_text("kind: [")
    done = made(folder, f"oci:{tmp_path / 'image'}")
    assert done.returncode == 1
    assert "0000_50_a_02-broken.yaml" in done.stderr
    assert not (tmp_path / "image").exists()
