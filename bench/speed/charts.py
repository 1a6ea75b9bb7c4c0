"""`python -m bench charts`: draws one chart with each candidate library, each in a separate empty environment.

The chart has 30 days with three counts each. Measured are what pip installs, the import, the drawing, the bytes of the
SVG, and what a self-contained page must not have (scripts, addresses to load) or should have (role, titles). The row
`own` is `runup.cli.render.html.charts`. docs/decisions/0123 has the figures.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

TRIES = 5
DATA = "data = [(f'{n:02}', n % 7, n % 5, n % 3) for n in range(30)]; names = ('new', 'fixed', 'accepted')"
# By package: the imports, and the lines that leave the drawing in `svg`.
LIBRARIES = {
    "pygal": (
        "import pygal",
        """
chart = pygal.StackedBar(title='Risks')
chart.x_labels = [row[0] for row in data]
for place, name in enumerate(names, 1):
    chart.add(name, [row[place] for row in data])
svg = chart.render(is_unicode=True)
""",
    ),
    "matplotlib": (
        "import matplotlib; matplotlib.use('svg'); import matplotlib.pyplot as plt, io",
        """
figure, axes = plt.subplots()
bottom = [0] * len(data)
for place, name in enumerate(names, 1):
    counts = [row[place] for row in data]
    axes.bar([row[0] for row in data], counts, bottom=bottom, label=name)
    bottom = [a + b for a, b in zip(bottom, counts)]
axes.legend()
kept = io.StringIO()
figure.savefig(kept, format='svg')
svg = kept.getvalue()
""",
    ),
    "drawsvg": (
        "import drawsvg",
        """
drawing = drawsvg.Drawing(600, 160)
for column, row in enumerate(data):
    y = 160
    for place, count in enumerate(row[1:]):
        y -= 10 * count
        drawing.append(drawsvg.Rectangle(20 * column, y, 16, 10 * count, class_=names[place]))
svg = drawing.as_svg()
""",
    ),
    "jinja2": (
        "import jinja2",
        """
svg = jinja2.Environment(autoescape=True).from_string(
    '<svg role="img" aria-label="Risks">{% for row in data %}<g><title>{{ row[0] }}</title>{% for n in row[1:] %}'
    '<rect height="{{ 10 * n }}"/>{% endfor %}</g>{% endfor %}</svg>').render(data=data)
""",
    ),
    "own": (
        "from runup.cli.render.html import charts",
        """
series = (('new', 'bad'), ('fixed', 'good'), ('accepted', 'idle'))
svg = str(charts.columns_chart('Risks', series, [charts.Column(row[0], row[1:]) for row in data]))
""",
    ),
}
PROGRAM = """
import json, sys, time
begin = time.perf_counter()
{imports}
imported = time.perf_counter()
{data}
{draw}
drawn = time.perf_counter()
print(json.dumps(dict(importMs=(imported - begin) * 1e3, drawMs=(drawn - imported) * 1e3, svg=svg)))
"""


def _kib_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) // 1024


def _installed(python: Path, package: str) -> dict[str, Any]:
    """Installs a package; returns the size and the names of what that added."""
    site = next((python.parents[1] / "lib").glob("python*/site-packages"))
    before = set(site.iterdir())
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", package], check=True, timeout=600)
    added = set(site.iterdir()) - before
    names = sorted(each.name.removesuffix(".dist-info") for each in added if each.suffix == ".dist-info")
    return {"packages": names, "kib": sum(_kib_of(each) if each.is_dir() else 0 for each in added)}


def _measured(python: Path | str, imports: str, draw: str) -> dict[str, Any]:
    program = PROGRAM.format(imports=imports, data=DATA, draw=draw)
    runs = [
        json.loads(subprocess.run([python, "-c", program], capture_output=True, check=True, timeout=120).stdout)
        for _ in range(TRIES)
    ]
    svg = runs[0]["svg"]
    loaded = re.findall(r"""(?:src|xlink:href|href)=["'](?:https?:)?//[^"']+""", svg)
    return {
        "importMs": round(min(run["importMs"] for run in runs[1:])),
        "drawMs": round(min(run["drawMs"] for run in runs[1:]), 1),
        "svgKiB": round(len(svg) / 1024, 1),
        "scripts": svg.count("<script"),
        "loads": loaded,
        "role": 'role="img"' in svg,
        "titles": svg.count("<title>"),
        "inlineStyles": svg.count("<style") + svg.count("style="),
    }


def main(_argv: list[str]) -> int:
    """Prints a row for each library."""
    rows = {}
    with tempfile.TemporaryDirectory(prefix="runup-charts-") as made:
        for package, (imports, draw) in LIBRARIES.items():
            python: Path | str = sys.executable
            installed: dict[str, Any] = {"packages": [], "kib": 0}
            if package != "own":
                folder = Path(made) / package
                venv.create(folder, with_pip=True)
                python = folder / "bin" / "python"
                installed = _installed(python, package)
            rows[package] = {**installed, **_measured(python, imports, draw)}
            sys.stderr.write(f"{package}: measured\n")
    print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
