"""The preflight of a hosted cluster says what only its management cluster knows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run
from tests.evaluation.test_alerts_of_dumps import CLUSTER

from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "hosted"),
    [
        pytest.param({"controlPlaneTopology": "External"}, True, id="hosted"),
        pytest.param({"controlPlaneTopology": "HighlyAvailable"}, False, id="ordinary"),
        pytest.param({"controlPlaneTopology": 3}, False, id="not decodable"),
        pytest.param(None, False, id="no Infrastructure"),
    ],
)
def test_warns_about_what_is_on_the_management_cluster(tmp_path: Path, status: Any, hosted: bool) -> None:
    """The note names the command that reports it there."""
    (tmp_path / "version.json").write_text(json.dumps(CLUSTER))
    if status is not None:
        found = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Infrastructure",
            "metadata": {"name": "cluster"},
            "status": status,
        }
        (tmp_path / "infrastructure.json").write_text(json.dumps(found))
    notes = evaluate_dump(tmp_path, RequestedUpdate(target="5.1.0"), NOW).notes
    assert any("`runup upgrade status --hosted-clusters` reports them there" in note for note in notes) is hosted


PREFLIGHT, FLEET = ("preflight", "run", "--dump"), ("fleet", "preflight", "--dumps")


@pytest.mark.parametrize(
    ("command", "form"),
    [*((PREFLIGHT, form) for form in ("json", "yaml", "jsonl", "html", "markdown")), (FLEET, "json"), (FLEET, "jsonl")],
)
def test_stored_forms_have_the_note(run: Run, tmp_path: Path, form: str, command: tuple[str, ...]) -> None:
    """A reader of a stored result does not see stderr."""
    folder = tmp_path / "dumps" / "hosted"
    folder.mkdir(parents=True)
    found = {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}}
    topology = {"status": {"controlPlaneTopology": "External"}}
    for name, document in (("version", CLUSTER), ("infrastructure", found | topology)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    named = folder.parent if command[0] == "fleet" else folder
    result = run(*command, named, "--to", "5.1.0", "-o", form)
    assert "Unknown here are etcd, the control plane" in result.out.replace("&#39;", "'"), result.err
