"""A file without end where somebody names one: an error that names it, in little memory."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from tests.cli.commands import Run

ENDLESS = "/dev/zero"
ROWS: dict[str, tuple[str, ...]] = {
    "a ClusterVersion": ("upgrade", "recommend", "--mock-clusterversion", ENDLESS),
    "suppressions": ("preflight", "run", "--suppressions", ENDLESS),
    "credentials": ("release", "info", "registry.example/x:1", "-a", ENDLESS),
    "mirrors": ("release", "info", "registry.example/x:1", "--idms-file", ENDLESS),
    "a key to sign with": (
        "release", "new", "--from-dir", "r", "--version", "5.2.0", "--to", "oci:x", "--signature-store", "s",
        "--sign-key", ENDLESS,
    ),
    "a kubeconfig": ("upgrade", "--kubeconfig", ENDLESS),
    "updates": ("checks", "coverage", "--release", "5.1.0=r", "--update", ENDLESS),
    "overrides": ("release", "manifests", "r", "--overrides", ENDLESS),
}  # fmt: skip


@pytest.mark.parametrize("words", ROWS.values(), ids=list(ROWS))
def test_a_file_without_end(words: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read up to a limit, and the cut is reported."""
    monkeypatch.chdir(tmp_path)
    manifests = tmp_path / "r" / "manifests"
    manifests.mkdir(parents=True)
    (manifests / "0000_a.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 * 1024**3, limits[1]))
    try:
        ran = run(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert ENDLESS in ran.err
    assert "more than 64 mib" in ran.err.lower()
