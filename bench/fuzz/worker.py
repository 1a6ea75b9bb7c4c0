"""`python -m bench.fuzz.worker READER SEED FIRST COUNT SECONDS HANG_S`: reads fuzzed inputs, and says a line of each.

Whatever an input does to this process, the line of the one before it was written: `bench.fuzz` knows which it was.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import traceback

from bench.fuzz.changes import drawn
from bench.fuzz.outcomes import Wrong
from bench.fuzz.readers import READERS, Reader
from bench.fuzz.watchdog import watched

# More than this in all is a MemoryError rather than the machine's trouble.
_MEMORY_BYTES = 6 << 30
_TRACE = 3000


def run(name: str, seed: int, first: int, count: int, seconds: float, hang_s: float) -> None:
    """Reads `count` inputs, or as many as begin within `seconds` if that is 0."""
    reader = READERS[name]
    # What is imported or made when it is first needed is no input's.
    for index in range(-20, 0):
        outcome_of(reader, reader.make(drawn(name, 0, index)))
    mib = _peak_mib()
    _say(first, "ready", seconds=0.0, mib=mib, said="")
    until, index = time.monotonic() + seconds, first
    while (index < first + count) if count else (time.monotonic() < until):
        data = reader.make(drawn(name, seed, index))
        made_mib = _peak_mib()
        with watched(hang_s):
            began = time.process_time()
            outcome, said = outcome_of(reader, data)
            spent = time.process_time() - began
        # What making an input took is nobody's fault.
        mib = max(mib, peak) if (peak := _peak_mib()) > made_mib else mib
        _say(index, outcome, seconds=spent, mib=mib, said=said)
        index += 1


def outcome_of(reader: Reader, data: bytes) -> tuple[str, str]:
    """Returns what came of an input, and what is to be said of it."""
    try:
        return reader.read(data), ""
    except Wrong as error:
        return "wrong", str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 -- that is what is looked for, and a library's panic is no Exception
        return "crashed", traceback.format_exc()[-_TRACE:]


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _say(index: int, outcome: str, seconds: float, mib: float, said: str) -> None:
    line = {"index": index, "outcome": outcome, "seconds": round(seconds, 4), "mib": round(mib, 1), "said": said}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    run(sys.argv[1], *map(int, sys.argv[2:5]), *map(float, sys.argv[5:7]))
