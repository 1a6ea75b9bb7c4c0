"""`python -m bench.turns CHECKOUT NAME... [--rounds 3]`: benchmarks of another checkout and of this one, in turns.

A processor that others share is twice as fast in one hour as in the next, so seconds of two hours say nothing about
what a change did; those of two checkouts in turns do. Each run is a process of its own, with this interpreter and its
libraries, and with the programs of its checkout. JSON on stdout, progress on stderr: for each aim of these benchmarks
both medians, and how much the figure here is of the other. What failed is told, and left out.
`python -m bench.aims RESULT.json THIS.json` has them on its page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.aims import AIMS, commit_of, figure_of
from bench.measure import compile_bytecode

HERE = Path(__file__).parents[1]


def main(arguments: list[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="the folder of the other checkout")
    parser.add_argument("names", nargs="+", metavar="NAME", choices=sorted({aim.bench for aim in AIMS}))
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each in both")
    options = parser.parse_args(arguments)
    # Its runs have it as their folder, and would import this checkout's `runup` if the path to its own led nowhere.
    checkout = options.checkout.resolve()
    if not sources_of(checkout):
        parser.error(f"{options.checkout} is no checkout of runup: it has neither packages/runup nor src/runup")
    for folder in (checkout, HERE):
        compile_bytecode(folder)
    other: list[dict[str, Any]] = []
    here: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        pythons = {
            folder: environment_of(folder, Path(temporary) / str(at)) for at, folder in enumerate((checkout, HERE))
        }
        for number in range(1, options.rounds + 1):
            for name in options.names:
                for folder, runs in ((checkout, other), (HERE, here)):
                    print(f"bench: {name} in {folder}, round {number}", file=sys.stderr, flush=True)
                    runs.append(_run(pythons[folder], folder, name))
    compared = list(ratios(other, here))
    told = {"other": commit_of(checkout), "here": commit_of(HERE), "rounds": options.rounds}
    print(json.dumps(told | {"figures": compared}, indent=2))
    return 0


def sources_of(checkout: Path) -> str:
    """The folders that hold the packages of a checkout, of this or of an earlier layout; empty if it has none."""
    folders = (*checkout.glob("packages/*/src"), *checkout.glob("src/runup/.."))
    return os.pathsep.join(str(folder.resolve()) for folder in folders)


def environment_of(checkout: Path, folder: Path) -> Path:
    """Makes a virtual environment with this one's libraries and the programs of `checkout`; returns its interpreter.

    Benchmarks start the programs next to their interpreter. Those of this environment name modules of this checkout,
    which another one may not have.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    for project in (checkout / "pyproject.toml", *checkout.glob("packages/*/pyproject.toml")):
        scripts = tomllib.loads(project.read_text()).get("project", {}).get("scripts", {})
        for name, entry in scripts.items():
            module, _, function = entry.partition(":")
            program = python.with_name(name)
            program.write_text(f"#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
            program.chmod(0o755)
    return python


def ratios(other: Sequence[Mapping[str, Any]], here: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the medians of each figure that has an aim and that both have; `ratio` is how much of the other it is."""
    for aim in AIMS:
        before, now = (
            [value for run in runs if (value := figure_of(run, (aim.bench, *aim.path))) is not None]
            for runs in (other, here)
        )
        if before and now:
            medians = statistics.median(before), statistics.median(now)
            ratio = round(medians[1] / medians[0], 3) if medians[0] else None
            yield {"what": aim.what, "figure": aim.figure, "other": medians[0], "here": medians[1], "ratio": ratio}


def _run(python: Path, checkout: Path, name: str) -> dict[str, Any]:
    """Returns the result of one benchmark of `checkout`; nothing if it failed, so that the others' are not lost."""
    environment = os.environ | {"PYTHONPATH": sources_of(checkout)}
    done = subprocess.run(
        [python, "-m", "bench", name],
        cwd=checkout,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        print(f"bench: {name} in {checkout} failed with {done.returncode}", file=sys.stderr, flush=True)
        return {}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
