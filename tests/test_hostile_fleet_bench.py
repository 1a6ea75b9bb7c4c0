"""The benchmark of hostile fleets makes the same dumps of a seed, and the command evaluates them as `preflight run`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from bench.hostile import fleet


def _digest(folder: Path) -> str:
    """A digest of the names and contents of the files, except for archives, which have times."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".gz")
    texts = [f"{file.relative_to(folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@pytest.mark.slow
def test_a_seed_makes_the_same_dumps(tmp_path: Path) -> None:
    """So that what a run has found can be recreated."""
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(fleet.make(tmp_path / name, 15, 4))
    assert made[0] == made[1]
    assert _digest(tmp_path / "one") == _digest(tmp_path / "two")
    assert {"whole", "half-copied"} <= set(made[0])


@pytest.mark.slow
def test_a_small_fleet_survives(capsys: pytest.CaptureFixture[str]) -> None:
    """No result differs, and nothing is left behind."""
    assert fleet.main(["--dumps", "12", "--seed", "3", "--kills", "2"]) == 0
    assert '"unlike preflight run": []' in capsys.readouterr().out
