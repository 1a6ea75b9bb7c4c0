"""The process of a rehearsal: what is told when it does not come to its end, and that nothing of it is left."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from runup.checks.decide.rehearsed_outcomes import NOT_RUN
from runup.preflight.control.rehearsal_process import RehearsalOrder, RehearsalProcess

ENDS: dict[str, tuple[float, dict[str, Any], str]] = {
    "no release": (240.0, {}, "its process ended with code 1: no release payload in nowhere"),
    "too little time": (0.001, {}, "it took more than 0.001 s; raise `timeout` of the settings"),
    "an image without it": (240.0, {"module": "nowhere.at.all"}, "the image of the release does not carry it"),
    "another program's text": (240.0, {"module": "this"}, "JSON is malformed"),
    "another program's data": (240.0, {"module": "json.tool"}, "Expected `array`, got `object`"),
}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary ones are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(("limit_s", "more", "told"), ENDS.values(), ids=ENDS)
async def test_what_is_told_of_a_process_that_comes_to_nothing(
    limit_s: float, more: dict[str, Any], told: str, scratch: Path
) -> None:
    """Why there is no rehearsal is Unknown, with the way out; whoever waits is woken, and no folder is left."""
    woken: list[bool] = []
    process = RehearsalProcess(RehearsalOrder("nowhere"), limit_s, lambda: woken.append(True), **more)
    await process.run()
    assert process.outcomes is not None
    (outcome,) = process.outcomes
    (finding,) = outcome.findings
    assert (outcome.result, finding.name, told in finding.message) == ("Unknown", NOT_RUN, True), finding.message
    assert (woken, os.listdir(scratch)) == ([True], [])  # noqa: PTH208 -- of a few entries, in a test
