"""`python tools/sizes.py [--check]`: what our distributions and the image cost, as docs/how-to/install.md lists it.

Without an option it writes the table of the page. With `--check` it writes nothing, and fails if a figure is above its
limit or if the page has another one. Needs the package index and, for the image, apt-get and the Debian mirror.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import packages

sys.path.insert(0, str(packages.ROOT))
OWN = ("kubekit", "kubesandbox", "runup")
PAGE = packages.ROOT / "docs" / "how-to" / "install.md"
DUMP = packages.ROOT / "examples" / "skip-level"
MB, PACKAGES, INTERPRETERS = "MB", "packages", "bare interpreters"
# The most that a figure may be. The limits leave a tenth; `pip install kubesandbox` must install 24 packages at most.
# Start-up is processor time, as a multiple of that of an interpreter that does nothing.
LIMITS = {
    "`kubekit`: its wheel": (0.3, MB),
    "`kubekit`: our files": (0.8, MB),
    "`kubekit`: all files": (80.0, MB),
    "`kubekit`: packages": (18, PACKAGES),
    "`kubesandbox`: its wheel": (0.7, MB),
    "`kubesandbox`: our files": (2.5, MB),
    "`kubesandbox`: all files": (115.0, MB),
    "`kubesandbox`: packages": (24, PACKAGES),
    "`kube-runup`: its wheel": (2.6, MB),
    "`kube-runup`: our files": (8.4, MB),
    "`kube-runup`: all files": (165.0, MB),
    "`kube-runup`: packages": (36, PACKAGES),
    "`kube-runup[sandbox]`: our files": (10.2, MB),
    "`kube-runup[sandbox]`: all files": (165.0, MB),
    "`kube-runup[sandbox]`: packages": (38, PACKAGES),
    "image: layer of Debian and Python, compressed": (24.0, MB),
    "image: layer of libraries, compressed": (50.0, MB),
    "image: layer of runup, compressed": (8.7, MB),
    "start of `runup --version`": (2.3, INTERPRETERS),
    "start of `runup preflight run --dump examples/skip-level`": (40.0, INTERPRETERS),
}
_LAYERS = {"base": "Debian and Python", "libraries": "libraries", "runup": "runup"}
# A size of the page may differ from the measured one by this share: minor releases of libraries change it. Processor
# time differs more from run to run; its limit alone counts.
TOLERANCE = 0.05
_ROUNDS = 7
_HEAD = "| what | figure | limit |\n|---|---|---|\n"
_ROW = re.compile(r"^\| (.+?) \| ([\d.]+) [\w ]+ \| [\d.]+ [\w ]+ \|$", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Builds, installs and measures; returns 1 if `--check` finds a difference."""
    measured = dict(_measure())
    for name in LIMITS.keys() - measured.keys():
        print(f"sizes: not measured, because apt-get is missing: {name}", file=sys.stderr)
    if "--check" not in arguments:
        PAGE.write_text(_with_table(PAGE.read_text(), measured))
        return 0
    problems = [*_above_limits(measured), *_stale_rows(PAGE.read_text(), measured)]
    print("\n".join(problems) or "sizes: within their limits, and as the page has them")
    return 1 if problems else 0


def _measure() -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory(prefix="runup-sizes-") as temporary:
        wheels = packages.wheels(Path(temporary, "wheels"))
        venv = Path(temporary)
        for requirement in (*packages.NAMES, f"{packages.RUNUP}[sandbox]"):
            venv = Path(temporary, requirement)
            packages.environment(venv)
            empty = packages.size(venv)
            packages.install_by_name(requirement, wheels, venv)
            libraries = next(venv.glob("lib/python*/site-packages"))
            if requirement in wheels:
                yield f"`{requirement}`: its wheel", wheels[requirement].stat().st_size / 1e6
            yield f"`{requirement}`: our files", sum(packages.size(libraries / name) for name in OWN) / 1e6
            yield f"`{requirement}`: all files", (packages.size(venv) - empty) / 1e6
            yield f"`{requirement}`: packages", len(list(libraries.glob("*.dist-info")))
        yield from _start_up(venv / "bin")
        if shutil.which("apt-get") is not None:
            from tools.image import build

            (image,) = build.images(Path(temporary, "image"), ["amd64"], wheels).images
            for layer, size in image.layers.items():
                yield f"image: layer of {_LAYERS[layer]}, compressed", size / 1e6


def _start_up(programs: Path) -> Iterator[tuple[str, float]]:
    """Yields the least processor time of each command, in turns, so that all have the same machine."""
    bare, runup = (str(programs / "python"), "-c", "pass"), str(programs / "runup")
    commands = {
        "start of `runup --version`": (runup, "--version"),
        f"start of `runup preflight run --dump {DUMP.relative_to(packages.ROOT)}`": (
            *(runup, "preflight", "run", "--dump", str(DUMP)),
        ),
    }
    turns = [[_processor_seconds(*command) for command in (bare, *commands.values())] for _ in range(_ROUNDS)]
    least, *others = (min(seconds) for seconds in zip(*turns, strict=True))
    yield from zip(commands, (seconds / least for seconds in others), strict=True)


def _processor_seconds(*command: str) -> float:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _above_limits(measured: dict[str, float]) -> list[str]:
    return [
        f"{name}: {value:.4g} {LIMITS[name][1]}, and the limit is {LIMITS[name][0]:g}"
        for name, value in measured.items()
        if value > LIMITS[name][0]
    ]


def _stale_rows(page: str, measured: dict[str, float]) -> list[str]:
    listed = {name: float(value) for name, value in _ROW.findall(page)}
    return [
        f"{PAGE.name}: {_row(name, value)}: run `python tools/sizes.py`"
        for name, value in measured.items()
        if name not in listed
        or (LIMITS[name][1] != INTERPRETERS and abs(value - listed[name]) > max(TOLERANCE * value, 0.1))
    ]


def _with_table(page: str, measured: dict[str, float]) -> str:
    """Returns the page with the measured rows; rows that this machine cannot measure stay."""
    before, _, rest = page.partition(_HEAD)
    rows, _, after = rest.partition("\n\n")
    kept = {match[1]: match[0] for match in _ROW.finditer(rows)}
    table = "\n".join(_row(name, measured[name]) if name in measured else kept[name] for name in LIMITS)
    return f"{before}{_HEAD}{table}\n\n{after}"


def _row(name: str, value: float) -> str:
    limit, unit = LIMITS[name]
    return f"| {name} | {value:.{0 if unit == PACKAGES else 1}f} {unit} | {limit:g} {unit} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
