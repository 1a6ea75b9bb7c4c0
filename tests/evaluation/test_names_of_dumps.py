"""The file names the cluster, in every command; its ID tells it under any name, in every output for programs."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from tests.cli.commands import Run

SAMPLE = Path(__file__).parents[2] / "examples" / "skip-level"
ID = "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad"


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder of two archives whose folders have the same name."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    for name in ("c0007", "c0008"):
        with tarfile.open(folder / f"{name}.tar.gz", "w:gz", compresslevel=1) as tar:
            tar.add(SAMPLE, "must-gather")
    return folder


def _names(out: str) -> list[tuple[str, str]]:
    document = json.loads(out)
    clusters = document if isinstance(document, list) else document.get("clusters", [document])
    return [(each["cluster"], each["clusterID"]) for each in clusters]


def test_one_command_names_an_archive_as_a_fleet_does(run: Run, archives: Path) -> None:
    """By its file; the folder in it is called the same in all."""
    fleet = run("fleet", "preflight", "--dumps", archives, "-o", "json")
    both = run("preflight", "run", *(f"--dump={file}" for file in sorted(archives.iterdir())), "-o", "json")
    alone = run("preflight", "run", "--dump", archives / "c0007.tar.gz", "-o", "json")
    assert _names(fleet.out) == _names(both.out) == [("c0007", ID), ("c0008", ID)]
    assert _names(alone.out) == [("c0007", ID)]


def test_a_baseline_of_one_fits_the_other(run: Run, archives: Path, tmp_path: Path) -> None:
    """Nothing is new."""
    baseline = tmp_path / "base.json"
    run("preflight", "run", "--dump", archives / "c0007.tar.gz", "-o", f"json={baseline}", "-o", "markdown")
    (archives / "c0008.tar.gz").unlink()
    ran = run("fleet", "preflight", "--dumps", archives, "--baseline", baseline, "--fail-on", "critical")
    assert "each risk" not in ran.err
    assert json.loads(baseline.read_text())["cluster"] == "c0007"


def test_dumps_of_one_name_have_their_paths(run: Run, archives: Path, tmp_path: Path) -> None:
    """So that rows of a table can be distinguished."""
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        shutil.copy(archives / "c0007.tar.gz", tmp_path / place / "dump.tar.gz")
    ran = run("preflight", "run", *(f"--dump={tmp_path}/{place}/dump.tar.gz" for place in ("one", "two")), "-o", "json")
    assert _names(ran.out) == [(f"{tmp_path}/{place}/dump", ID) for place in ("one", "two")]


@pytest.mark.parametrize("form", ["json", "yaml", "junit", "sarif", "html"])
def test_outputs_have_both(run: Run, archives: Path, form: str) -> None:
    """The name and the ID."""
    ran = run("fleet", "preflight", "--dumps", archives, "-o", form)
    assert "c0007" in ran.out
    assert ID in ran.out
