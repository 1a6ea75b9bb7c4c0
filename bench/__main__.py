"""`python -m bench [NAME...] [--COUNT N ...]`: runs benchmarks, prints JSON on stdout and progress on stderr."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from types import ModuleType
from typing import Any

# By name: the module below `bench`.
NAMES = {
    "startup": "speed.startup",
    "cold_start": "speed.cold_start",
    "checks": "speed.checks",
    "api": "speed.api",
    "preflight": "speed.preflight",
    "registry_client": "speed.registry_client",
    "update_status": "speed.update_status",
    "update_advice": "speed.update_advice",
    "applying": "speed.applying",
    "hostile": "hostile.every_part",
    "kernel_modules": "speed.kernel_modules",
    "live": "speed.live",
    "peers": "real.peers",
    "any_kubernetes": "speed.any_kubernetes",
    "drains": "speed.drains",
    "fleet": "speed.fleet",
}
# These run only by name: they need programs that are built once, take a quarter of an hour, or run others.
BY_NAME = {
    "aims": "aims",
    "console": "speed.console",
    "day": "speed.day",
    "envtest": "speed.envtest",
    "growth": "speed.growth",
    "memory": "speed.memory",
    "memory_in_image": "speed.memory_in_image",
    "placements": "real.placements",
    "real_drains": "real.drains",
    "real_preflight": "real.preflight",
    "real_releases": "real.releases",
    "rehearsals": "real.rehearsals",
}
# These have flags of their own, and run alone.
PROGRAMS = {
    "charts": "speed.charts",
    "faults": "hostile.survival",
    "fuzz": "fuzz.__main__",
    "fuzz_drains": "fuzz.drains",
    "fleet_growth": "speed.fleet_growth",
    "fleet_hub": "speed.fleet_hub",
    "fleet_updates": "speed.fleet_updates",
    "hostile_fleet": "hostile.fleet",
    "kubernetes_e2e": "real.kubernetes_e2e",
    "mutants": "mutants.__main__",
    "random_operations": "real.random_operations",
    "random_requests": "real.random_requests",
    "suites": "suites.__main__",
    "turns": "turns",
    "unstable": "unstable",
}
# Flags that take a number: by flag, the benchmark and the meaning.
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
    "boarded": ("console", "clusters; the aim is for 1000"),
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
    """Runs the named benchmarks, by default all that do not run only by name."""
    if argv and argv[0] in PROGRAMS:
        code: int = importlib.import_module(f"bench.{PROGRAMS[argv[0]]}").main(argv[1:])
        return code
    parser = argparse.ArgumentParser(
        prog="python -m bench", epilog=f"With flags of their own (NAME --help): {', '.join(PROGRAMS)}."
    )
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
        results[name] = module_of(name).run(**told)
    print(json.dumps(results, indent=2))
    return 0


def module_of(name: str) -> ModuleType:
    """Returns the module of a benchmark in NAMES or BY_NAME."""
    return importlib.import_module(f"bench.{(NAMES | BY_NAME)[name]}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
