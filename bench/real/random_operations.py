"""`python -m bench random_operations [--sequences N] [--seed N]`: the sandbox's API server against kube-apiserver.

In: how many random sequences, and which. Out: JSON on stdout: the seed, sequences, operations, their codes, seconds,
and each kind of difference with how often it was met and the shortest sequence that shows it. Exit code 1 if there is
any. Needs the programs that `make e2e` builds.
"""

from __future__ import annotations

import json
import secrets
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from tests.contract.api import Api
from tests.contract.conftest import define_widgets
from tests.contract.machine import Difference, run
from tests.contract.operations import Pair
from tests.controlplane import build
from tests.controlplane.plane import ControlPlane
from tests.servers import api_server


@dataclass
class Kind:
    """Differences of one kind."""

    count: int
    shortest: Difference


@click.command()
@click.option("--sequences", default=10_000, show_default=True)
@click.option("--seed", type=int, default=None, help="Which sequences; another number each time where none is given.")
@click.option("--show", default=20, show_default=True, help="How many kinds of differences to print.")
def main(sequences: int, seed: int | None, show: int) -> None:
    """Run random sequences on both servers, and count what differs."""
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    kinds: dict[str, Kind] = {}

    def found(difference: Difference) -> None:
        kind = kinds.setdefault(_kind(difference), Kind(0, difference))
        kind.count += 1
        if len(difference.history) < len(kind.shortest.history):
            kind.shortest = difference

    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder) / "real", build.build()) as plane,
        api_server(Path(folder) / "sandbox") as kubeconfig,
    ):
        servers = [Api("kube-apiserver", str(plane.kubeconfig)), Api("sandbox", str(kubeconfig))]
        for api in servers:
            define_widgets(api)
        pair = Pair(*servers)
        started = time.perf_counter()
        counts = run(pair, sequences, found, number=seed)
        seconds = time.perf_counter() - started
        pair.close()
    ranked = sorted(kinds.items(), key=lambda item: -item[1].count)
    json.dump(
        {
            "seed": seed,
            "sequences": counts.sequences,
            "operations": counts.operations,
            "codes": dict(sorted(counts.codes.items())),
            "seconds": round(seconds, 1),
            "differences": sum(kind.count for kind in kinds.values()),
            "kinds": [_told(name, kind) for name, kind in ranked[:show]],
        },
        sys.stdout,
        indent=2,
    )
    print()
    sys.exit(1 if kinds else 0)


def _kind(difference: Difference) -> str:
    last = difference.history[-1]
    paths = sorted(_paths(difference.first, difference.second, ""))
    codes = f"{difference.first['code']}/{difference.second['code']}"
    return f"{last.verb} {last.kind} {codes} {' '.join(paths[:3])}"


def _paths(first: Any, second: Any, path: str) -> list[str]:
    """Where two answers differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        return [
            found
            for key in sorted({*first, *second})
            if first.get(key) != second.get(key)
            for found in _paths(first.get(key), second.get(key), f"{path}.{key}")
        ]
    return [path]


def _told(name: str, kind: Kind) -> dict[str, Any]:
    shortest = kind.shortest
    return {
        "kind": name,
        "count": kind.count,
        "operations": [str(step) for step in shortest.history],
        "kube-apiserver": _differing(shortest.first, shortest.second),
        "sandbox": _differing(shortest.second, shortest.first),
    }


def _differing(one: Any, other: Any) -> Any:
    """Of `one`, what `other` has not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: _differing(value, other.get(key)) for key, value in one.items() if value != other.get(key)}
    return one


if __name__ == "__main__":
    main()
