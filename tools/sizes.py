"""`python tools/sizes.py [--check]`: the sizes of our distributions, as docs/how-to/install.md lists them.

Without an option it writes the rows of the page. With `--check` it writes nothing, and fails if a size is above its
limit or if the page has another one. Needs the package index.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import packages

OWN = ("kubekit", "kubesandbox", "runup")
PAGE = packages.ROOT / "docs" / "how-to" / "install.md"
# At most: MB of the wheel, of our packages installed, and of all that is installed; the number of packages. The limits
# leave a tenth; `pip install kubesandbox` must install 24 packages at most.
LIMITS = {
    "kubekit": (0.3, 0.8, 80.0, 18),
    "kubesandbox": (0.7, 2.5, 115.0, 24),
    "kube-runup": (2.6, 7.5, 165.0, 36),
    "kube-runup[sandbox]": (2.6, 9.0, 165.0, 38),
}
# A size of the page may differ from the measured one by this share: minor releases of libraries change it.
TOLERANCE = 0.05
Row = tuple[float, float, float, int]
_ROW = re.compile(r"^\| `(.+?)` \| ([\d.]+) MB \| ([\d.]+) MB \| ([\d.]+) MB \| (\d+) \|$", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Builds, installs and measures; returns 1 if `--check` finds a difference."""
    measured = dict(_measure())
    if "--check" not in arguments:
        PAGE.write_text(_with_rows(PAGE.read_text(), measured))
        return 0
    problems = [*_above_limits(measured), *_stale_rows(PAGE.read_text(), measured)]
    print("\n".join(problems) or "sizes: within their limits, and as the page has them")
    return 1 if problems else 0


def _measure() -> list[tuple[str, Row]]:
    rows: list[tuple[str, Row]] = []
    with tempfile.TemporaryDirectory(prefix="runup-sizes-") as temporary:
        wheels = packages.wheels(Path(temporary, "wheels"))
        for requirement in LIMITS:
            venv = Path(temporary, requirement)
            packages.environment(venv)
            empty = packages.size(venv)
            packages.install_by_name(requirement, wheels, venv)
            libraries = next(venv.glob("lib/python*/site-packages"))
            wheel = wheels[requirement.partition("[")[0]].stat().st_size
            own = sum(packages.size(libraries / name) for name in OWN)
            count = len(list(libraries.glob("*.dist-info")))
            rows.append((requirement, (wheel / 1e6, own / 1e6, (packages.size(venv) - empty) / 1e6, count)))
    return rows


def _above_limits(measured: dict[str, Row]) -> list[str]:
    return [
        f"{name}: {value:.4g} {unit}, and the limit is {limit}"
        for name, row in measured.items()
        for value, limit, unit in zip(
            row, LIMITS[name], ("MB wheel", "MB of ours", "MB installed", "packages"), strict=True
        )
        if value > limit
    ]


def _stale_rows(page: str, measured: dict[str, Row]) -> list[str]:
    listed = {name: tuple(map(float, sizes)) for name, *sizes in _ROW.findall(page)}
    return [
        f"{PAGE.name}: `{name}` is {_cells(row)}: run `python tools/sizes.py`"
        for name, row in measured.items()
        if name not in listed
        or any(abs(value - was) > max(TOLERANCE * value, 0.1) for value, was in zip(row, listed[name], strict=True))
    ]


def _with_rows(page: str, measured: dict[str, Row]) -> str:
    for name, row in measured.items():
        page = re.sub(rf"^\| `{re.escape(name)}` .*$", f"| `{name}` | {_cells(row)} |", page, flags=re.MULTILINE)
    return page


def _cells(row: Row) -> str:
    return " | ".join([*(f"{size:.1f} MB" for size in row[:3]), str(row[3])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
