"""The history of a cluster whose newest dump is half-copied: no risk is fixed because its objects are missing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate
from runup.facts.target_release import release_of
from runup.fleet.decide.trend import steps_of_reports
from runup.report.report import Report

EXAMPLES = Path(__file__).parents[2] / "examples"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
RECORD = "runup-dump.json"
KUBELET_CONFIGS = "kubeletconfigs.machineconfiguration.openshift.io"


def evaluated(path: Path) -> Report | None:
    """Returns the report about a dump."""
    requested = RequestedUpdate(release=release_of("", "", ()), target="", source="", image="", check_timeout_s=10.0)
    return evaluate_dump(path, requested, NOON).report


def halve(file: Path) -> None:
    """Cuts a file in the middle."""
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [Path.unlink, halve], ids=["missing", "cut"])
@pytest.mark.parametrize("sample", ["skip-level", "plain-kubernetes"])
def test_shows_nothing_as_gone_that_is_not_in_the_dump(
    sample: str, damage: Callable[[Path], None], tmp_path: Path
) -> None:
    """Whichever file is not copied yet: neither a risk nor an object of one."""
    whole = evaluated(EXAMPLES / sample)
    assert whole is not None
    for name in sorted(file.name for file in (EXAMPLES / sample).glob("*.json") if file.name != RECORD):
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / sample, folder)
        damage(folder / name)
        half = evaluated(folder)
        if half is not None and half.target_version == whole.target_version:
            steps = steps_of_reports([("a", NOON, whole), ("a", NOON + timedelta(hours=1), half)])
            assert (name, steps[1].went) == (name, ())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_kind_of_the_record_is_not_one_that_the_cluster_lacks(is_there: bool, tmp_path: Path) -> None:
    """Even if the definitions that were copied do not have it: the record says that the server did."""
    folder = tmp_path / "dump"
    shutil.copytree(EXAMPLES / "skip-level", folder)
    config = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": {"name": "max-pods"},
        "status": {"conditions": [{"type": "Failure", "status": "False", "message": "no"}]},
    }
    if is_there:
        (folder / f"{KUBELET_CONFIGS}.json").write_text(json.dumps({"kind": "List", "items": [config]}))
    else:
        (folder / f"{KUBELET_CONFIGS}.json").unlink(missing_ok=True)
    record = json.loads((folder / RECORD).read_text())
    rows = [row for row in record["kinds"] if row["resource"] != KUBELET_CONFIGS]
    record["kinds"] = [*rows, {"resource": KUBELET_CONFIGS, "state": "complete", "count": 1}]
    (folder / RECORD).write_text(json.dumps(record))
    report = evaluated(folder)
    assert report is not None
    result = next(check.result for check in report.checks if check.name == "NodeConfigFailed")
    assert result == ("Applies" if is_there else "Unknown")
