"""`python -m bench fuzz`: each reader reads some inputs, and every fault of a reader is noticed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from bench.fuzz import __main__ as fuzz
from bench.fuzz import worker as fuzz_worker
from bench.fuzz.changes import drawn
from bench.fuzz.outcomes import Wrong
from bench.fuzz.readers import READERS, Reader


@pytest.mark.parametrize("name", READERS)
def test_some_inputs(name: str) -> None:
    """Each is accepted or refused; the same seed and index make the same input."""
    reader = READERS[name]
    for index in range(40):
        data = reader.make(drawn(name, 7, index))
        assert data == reader.make(drawn(name, 7, index))
        assert reader.read(data) in ("accepted", "refused"), index


class Panic(BaseException):
    """What a library in Rust raises is no Exception."""


def raising(error: BaseException) -> Any:
    """A reader that ends so."""

    def read(_data: bytes) -> str:
        raise error

    return read


@pytest.mark.parametrize(
    ("error", "outcome", "said"),
    [
        (KeyError("risks"), "crashed", "KeyError: 'risks'\n"),
        (Panic("at line 1"), "crashed", "Panic: at line 1\n"),
        (Wrong("accepted, though bad"), "wrong", "accepted, though bad"),
    ],
)
def test_what_a_reader_raises(error: BaseException, outcome: str, said: str) -> None:
    """It is a fault, with where it came from."""
    reader = Reader(lambda _: b"", raising(error))
    found, told = fuzz_worker.outcome_of(reader, b"")
    assert (found, told.endswith(said)) == (outcome, True)


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        pytest.param({}, [], id="as due"),
        pytest.param({"seconds": 2.0, "mib": 356.0}, [], id="at the limits"),
        pytest.param({"seconds": 2.1}, ["took 2.1 s of a processor"], id="too slow"),
        pytest.param({"mib": 357.0}, ["took 257 MiB beyond the 100 before"], id="too large"),
        pytest.param({"outcome": "crashed", "said": "KeyError"}, ["KeyError"], id="a crash"),
    ],
)
def test_what_counts_as_a_fault(line: dict[str, Any], faults: list[str]) -> None:
    """Two seconds of a processor, 256 MiB beyond what the process had; the peak of a process counts once."""
    survey = fuzz.Survey(base_mib=100.0)
    whole = {"index": 9, "outcome": "refused", "seconds": 0.1, "mib": 120.0, "said": ""} | line
    survey.take(whole)
    assert survey.faults == [{"index": 9, "fault": fault} for fault in faults]
    survey.take(whole | {"index": 10, "outcome": "refused", "seconds": 0.1, "said": ""})
    assert len(survey.faults) == len(faults)


WORKER = """
import faulthandler, json, os, sys, time
name, seed, first = sys.argv[1], *map(int, sys.argv[2:4])
def say(index, outcome):
    print(json.dumps(dict(index=index, outcome=outcome, seconds=0, mib=50, said="")), flush=True)
say(first, "ready")
for index in range(first, first + int(sys.argv[4])):
    if index == 1:
        os.abort()
    if index == 3:
        faulthandler.dump_traceback_later(0.1, exit=True)
        while True: pass
    say(index, "refused")
"""


def test_an_input_that_ends_the_process_or_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with what the process said, and the others are read by another process."""
    (tmp_path / "bench" / "fuzz").mkdir(parents=True)
    (tmp_path / "bench" / "fuzz" / "worker.py").write_text(WORKER)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(tmp_path))
    survey = fuzz.surveyed("it", 1, 0, 6, 0.0)
    assert survey.outcomes == {"refused": 4, "ended the process": 2}
    (aborted, hung) = survey.faults
    assert (aborted["index"], hung["index"]) == (1, 3)
    assert aborted["fault"].endswith("ended with -6")
    assert "most recent call first" in hung["fault"]
