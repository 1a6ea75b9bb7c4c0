"""`python -m bench fuzz_drains [--seed S] [--first N] [--count N | --seconds T]`: random clusters, drained.

Seed and number name a cluster for good. JSON on stdout; exit code 1 after an exception, or where an invariant of
`tests.rehearse.drain_invariants` does not hold: a filter that answers otherwise after a pod was taken off and put back,
a workload that loses a pod, a budget that is exceeded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from random import Random

from tests.rehearse.drain_invariants import faults, random_cluster, random_settings

_SHOWN = 20


def main(argv: list[str]) -> int:
    """Drains clusters until the count or the time is over."""
    parser = argparse.ArgumentParser(prog="python -m bench fuzz_drains", description="Drain random clusters.")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--first", type=int, default=0, help="number of the first cluster")
    parser.add_argument("--count", type=int, default=0, help="clusters; without it, as many as there is time for")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args(argv)
    begun, number, found = time.monotonic(), arguments.first, []
    while arguments.count == 0 or number < arguments.first + arguments.count:
        if arguments.count == 0 and time.monotonic() - begun > arguments.seconds:
            break
        random = Random(f"{arguments.seed}/{number}")
        try:
            what = faults(random_cluster(random), random_settings(random))
        except Exception:  # noqa: BLE001 -- any exception is a fault
            what = [traceback.format_exc()]
        found += [{"cluster": f"{arguments.seed}/{number}", "fault": each} for each in what]
        number += 1
    drained = number - arguments.first
    summary = {"seed": arguments.seed, "clusters": drained, "faults": len(found), "first": found[:_SHOWN]}
    print(json.dumps(summary, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
