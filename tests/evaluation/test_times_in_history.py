"""A dump that could not be evaluated is in the history at its own time; missing files fix no risk."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.commands import Run

from runup.dump.load import time_of_unusable

SAMPLE = Path(__file__).parents[2] / "examples" / "skip-level"
VERSIONS = "clusterversions.config.openshift.io.json"
COLLECTED_AT = "2026-11-23T16:50:37Z"
NOW = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A fleet of one dump whose ClusterVersion cannot be read."""
    folder = tmp_path / "fleet" / "east"
    shutil.copytree(SAMPLE, folder)
    (folder / VERSIONS).write_text("{")
    return folder


def _history(run: Run, store: Path) -> list[tuple[str, bool]]:
    reports = json.loads(run("fleet", "history", "--store", store, "--cluster", "east", "-o", "json").out)
    return [(each["observedTime"], each["completed"]) for each in reports]


@pytest.mark.parametrize("command", ["fleet", "one"])
def test_a_broken_dump_has_its_own_time(command: str, run: Run, broken: Path, tmp_path: Path) -> None:
    """Not that of the run; and the same dump is kept once."""
    store = tmp_path / "store"
    words = (
        ("fleet", "preflight", "--dumps", broken.parent)
        if command == "fleet"
        else ("preflight", "run", "--dump", broken)
    )
    for _ in range(2):
        run(*words, "--store", store)
    assert _history(run, store) == [(COLLECTED_AT, False)]


def test_of_an_archive_the_record_counts(broken: Path, tmp_path: Path) -> None:
    """The folder in it has the record."""
    with tarfile.open(tmp_path / "east.tar.gz", "w:gz") as tar:
        tar.add(broken, "must-gather")
    assert time_of_unusable(tmp_path / "east.tar.gz", NOW) == datetime.fromisoformat(COLLECTED_AT)


def test_what_cannot_be_opened_has_the_time_of_its_file(tmp_path: Path) -> None:
    """At most that of the run."""
    file = tmp_path / "cut.tar.gz"
    file.write_bytes(b"\x1f\x8b cut")
    for written, expected in (
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
        (datetime(2028, 1, 1, tzinfo=UTC), NOW),
    ):
        os.utime(file, (written.timestamp(), written.timestamp()))
        assert time_of_unusable(file, NOW) == expected
    assert time_of_unusable(tmp_path / "nothing", NOW) == NOW


def test_a_half_copied_dump_fixes_nothing(run: Run, tmp_path: Path) -> None:
    """Its later copy lacks files that the record names: the risks of these are unknown, and not gone."""
    folder, store = tmp_path / "fleet" / "east", tmp_path / "store"
    shutil.copytree(SAMPLE, folder)
    run("fleet", "preflight", "--dumps", folder.parent, "--store", store)
    record = json.loads((folder / "runup-dump.json").read_text())
    (folder / "runup-dump.json").write_text(json.dumps(record | {"collectedTime": "2026-11-24T16:50:37Z"}))
    for name in (
        "poddisruptionbudgets.policy",
        "pods",
        "nodes",
        "machineconfigpools.machineconfiguration.openshift.io",
    ):
        (folder / f"{name}.json").unlink()
    run("fleet", "preflight", "--dumps", folder.parent, "--store", store)
    reports = json.loads(run("fleet", "history", "--store", store, "--cluster", "east", "-o", "json").out)
    assert [each["gone"] for each in reports] == [[], []]
