"""Images made to hurt whoever reads them: refused at once, before memory or disk is spent on what they claim."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from bench.hostile.images import HARMLESS, IMAGES

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hostile-images")]


@pytest.fixture(scope="module")
def read_results(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str | int]]:
    """What a separate process says that read all of them, one after the other."""
    command = [sys.executable, "-m", "bench.hostile.images", str(tmp_path_factory.mktemp("hostile"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("row", IMAGES, ids=lambda row: row.name)
def test_a_hostile_image_is_refused(read_results: list[tuple[str, str, str | int]], row: object) -> None:
    """By each way to use it, for the reason that is written next to it, and with nothing of size written."""
    name, said = getattr(row, "name"), getattr(row, "said")  # noqa: B009
    outcomes = {way: text for found, way, text in read_results if found == name}
    assert outcomes, name
    for way, text in outcomes.items():
        assert re.search(said, str(text)), f"{way}: {text}"


def test_what_only_looks_odd_is_read(read_results: list[tuple[str, str, str | int]]) -> None:
    """The other half: it costs time alone."""
    names = {row.name for row in HARMLESS}
    assert {text for name, _, text in read_results if name in names} == {""}


def test_no_image_takes_100_mib(read_results: list[tuple[str, str, str | int]]) -> None:
    """The whole process, Python included, at the worst of all rows."""
    (peak,) = [text for name, _, text in read_results if name == "peak"]
    assert isinstance(peak, int)
    assert 10 * 1024 < peak < 100 * 1024
