"""`python tools/draw.py [--seed N] functions|modules|statements`: a sample to be read by somebody new, as text.

`functions` prints 60 of src whole, `modules` the first 60 lines of 30, `statements` 20 paragraphs or list items of
ARCHITECTURE.md and the decision records. The same seed on the same commit draws the same; figures of such a reading
count only with both.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHORTEST = 6
SHOWN = 60
# A statement says something that can be false: headings, tables and code blocks are left out.
STATEMENT = re.compile(r"(?:^|\n\n|\n(?=- ))((?:- )?[A-Z`*][^\n]+(?:\n(?!- |\n)[^\n]+)*)")
BLOCK = re.compile(r"^(```.*?^```|(?: {4}|\|).*?$)", re.MULTILINE | re.DOTALL)


def functions() -> Iterator[tuple[str, str]]:
    """Yields each function of at least six lines with its place."""
    for path in modules():
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = node.end_lineno or node.lineno
                if last - node.lineno + 1 >= SHORTEST:
                    lines = text.splitlines()[node.lineno - 1 : last]
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", "\n".join(lines)


def modules() -> list[Path]:
    """Returns the modules of src that have code."""
    paths = sorted(ROOT.glob("packages/*/src/**/*.py"))
    return [path for path in paths if path.name not in ("__init__.py", "__main__.py")]


def statements() -> Iterator[tuple[str, str]]:
    """Yields each paragraph and list item of the map and of the records."""
    for path in [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/decisions").glob("0*.md"))]:
        for match in STATEMENT.finditer(BLOCK.sub("", path.read_text("utf-8"))):
            yield str(path.relative_to(ROOT)), match[1]


def drawn(what: str, seed: int) -> list[tuple[str, str]]:
    """Returns the sample of `what`: places and texts."""
    if what == "functions":
        return random.Random(seed).sample(list(functions()), 60)
    if what == "modules":
        chosen = random.Random(seed).sample(modules(), 30)
        return [(str(one.relative_to(ROOT)), "\n".join(one.read_text("utf-8").splitlines()[:SHOWN])) for one in chosen]
    # Half of the statements are the map's, however many records there are.
    every = list(statements())
    of_map = [one for one in every if one[0] == "ARCHITECTURE.md"]
    of_records = [one for one in every if one[0] != "ARCHITECTURE.md"]
    return [*random.Random(seed).sample(of_map, 10), *random.Random(seed).sample(of_records, 10)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=("functions", "modules", "statements"))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for number, (place, text) in enumerate(drawn(asked.what, asked.seed), 1):
        print(f"=== {number}. {place}\n{text}\n")
