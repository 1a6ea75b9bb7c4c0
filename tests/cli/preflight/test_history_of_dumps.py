"""`runup preflight history --dump`: what an operator had stored, and a dump of which that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Run

from runup.preflight.decide import stored_reports

VERSION: dict[str, Any] = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version"},
}
STORED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": stored_reports.NAME, "namespace": "operators"},
}


@pytest.mark.parametrize(
    ("odd", "where"),
    [
        pytest.param({**VERSION, "status": {"history": 7}}, "{0.name}/ClusterVersion.yaml", id="a ClusterVersion"),
        pytest.param({**STORED, "data": {"a": ["b"]}}, "{0}", id="the record"),
    ],
)
def test_a_dump_that_is_not_as_its_kinds_should_be(odd: dict[str, Any], where: str, run: Run, tmp_path: Path) -> None:
    """One line with the dump and what is odd in it; nothing is taken for a cluster without a history."""
    objects = {obj["kind"]: obj for obj in (VERSION, STORED, odd)}
    for kind, obj in objects.items():
        (tmp_path / f"{kind}.yaml").write_text(yaml.safe_dump(obj))
    ran = run("preflight", "history", "--dump", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {where.format(tmp_path)}: ")
    assert len(ran.err.splitlines()) == 1
