"""`python -m bench [NAME...] [--COUNT N ...]`: run the benchmarks, print JSON on stdout and progress on stderr."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from typing import Any

NAMES = (
    "startup",
    "cold_start",
    "checks",
    "api",
    "preflight",
    "registry_client",
    "update_status",
    "update_advice",
    "applying",
    "hostile",
    "kernel_modules",
    "live",
    "peers",
    "any_kubernetes",
    "drains",
    "fleet",
)
# Those that are run by name alone: they need programs that are built once, a quarter of an hour, or run others.
BY_NAME = (
    "aims",
    "day",
    "growth",
    "memory",
    "memory_in_image",
    "placements",
    "real_drains",
    "real_preflight",
    "real_releases",
    "rehearsals",
)
# What can be told to a benchmark, and to which: numbers.
COUNTS = {
    "reports": ("hostile", "mutated reports, besides those at the limits"),
    "faults": ("hostile", "seconds of trouble with the API server"),
    "kills": ("hostile", "kills of the operator"),
    "expressions": ("hostile", "random CEL expressions"),
    "seed": ("hostile", "which of them"),
    "first": ("placements", "the seed of the first cluster"),
    "drained": ("real_drains", "seeds"),
    "drained_from": ("real_drains", "the first of them"),
    "applied": ("real_releases", "seeded releases"),
    "applied_from": ("real_releases", "the seed of the first release"),
    "window": ("applying", "seconds of steady state"),
    "dumps": ("fleet", "dumps; the aim is for 1000"),
    "nodes": ("live", "nodes, with thirty pods each"),
    "foreign": ("applying", "ConfigMaps of others, and as many Secrets"),
    "megabytes": ("kernel_modules", "size of the huge layer"),
    "clusters": ("placements", "seeded clusters"),
    "hours": ("day", "how far the clock is moved"),
    "held": ("memory", "minutes to look at"),
    "kept": ("memory_in_image", "minutes to look at"),
    "minutes": ("placements", "an end after these, whatever is left"),
    "releases": ("rehearsals", "seeded releases"),
    "seed_from": ("rehearsals", "the seed of the first release"),
    "rounds": ("real_preflight", "rounds of each case"),
    "servers": ("applying", "2 for both servers, 1 for the sandbox alone"),
}


def main(argv: list[str]) -> int:
    """Run the named benchmarks, all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*NAMES, *BY_NAME)))
    for count, (name, what) in COUNTS.items():
        parser.add_argument(f"--{count}", type=int, metavar="N", help=f"{name}: {what}")
    parser.add_argument("--engine", choices=["local", "dask"], help="fleet: what reads the dumps")
    given = vars(parser.parse_args(argv))
    names = given.pop("names")
    engine = given.pop("engine")
    unknown = sorted(set(names) - {*NAMES, *BY_NAME})
    if unknown:
        print(f"error: no benchmark {', '.join(unknown)}; there are {', '.join((*NAMES, *BY_NAME))}", file=sys.stderr)
        return 1
    results: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in names or NAMES:
        print(f"bench: {name}", file=sys.stderr)
        told = {count: given[count] for count in COUNTS if COUNTS[count][0] == name and given[count] is not None}
        told |= {"engine": engine} if engine and name == "fleet" else {}
        results[name] = importlib.import_module(f"bench.{name}").run(**told)
    print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
