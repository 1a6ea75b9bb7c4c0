"""`-o parquet=FILE`: a row for each risk of each cluster, and for each cluster without one."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Run

ROOT = Path(__file__).parents[3]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A folder with a dump, and one that cannot be read."""
    shutil.copytree(ROOT / "examples" / "plain-kubernetes", tmp_path / "dumps" / "orchard")
    (tmp_path / "dumps" / "ruin").mkdir()
    (tmp_path / "dumps" / "ruin" / "nodes.json").write_text("{")
    return tmp_path / "dumps"


def test_the_rows_are_those_of_json(run: Run, dumps: Path, tmp_path: Path) -> None:
    """A cluster that was not evaluated has one, which says so."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'kube-runup[parquet]'")
    ran = run("fleet", "preflight", "--dumps", dumps, "-o", f"json,parquet={tmp_path / 'fleet.parquet'}")
    rows = parquet.read_table(tmp_path / "fleet.parquet").to_pylist()
    shown = {each["cluster"]: each for each in json.loads(ran.out)["clusters"]}
    risks = [(row["risk"], row["applies"], row["judged"]) for row in rows if row["cluster"] == "orchard"]
    assert risks == [(risk["name"], risk["applies"], True) for risk in shown["orchard"]["risks"]]
    assert len(risks) > 1
    assert [row["judged"] for row in rows if row["cluster"] == "ruin"] == [False]
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_without_its_package(run: Run, dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported before anything is read, and nothing is made."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = run("fleet", "preflight", "--dumps", dumps, "-o", f"parquet={tmp_path / 'fleet.parquet'}")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: -o parquet: package pyarrow is not installed; install it: pip install")
    assert not (tmp_path / "fleet.parquet").exists()


def test_it_is_no_text(run: Run, dumps: Path) -> None:
    """A terminal is not written to."""
    ran = run("fleet", "preflight", "--dumps", dumps, "-o", "parquet")
    assert (ran.code, ran.out) == (1, "")
    assert "-o parquet: is no text; give it a file: -o parquet=FILE" in ran.err
