"""`python tools/words.py [SRC]`: how plain the words are, as JSON: docstrings, names that occur twice, comments.

SRC is a folder of packages, by default those of this checkout. A docstring is headless if its first word is neither a
verb nor a noun (nor an article before one), but a word that opens a clause: "What", "Whether", "Of", "Until". The
docstrings of commands are help texts, and those of checks in the catalogue are pages; both count like all others.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
from collections import Counter
from pathlib import Path

OPENS_A_CLAUSE = frozenset(
    """
    what whatever whether which whichever who whoever whom whose how where wherever when whenever why if that those
    these as of by in on at to from for with without until while since because than so then only also not none no
    nobody nothing it they one two all any some each every everything something
    """.split()  # noqa: SIM905 (a list of words is easier to read without quotes)
)


def main(source: Path) -> int:
    """Prints the figures of `source`; returns 2 if it has no module."""
    paths = [path for path in sorted(source.rglob("*.py")) if (path.parent / "__init__.py").exists()]
    if not paths:
        print(f"error: {source} holds no Python package; give the folder that holds the packages", file=sys.stderr)
        return 2
    firsts = Counter(word for path in paths for word in _first_words(path))
    headless = sum(count for word, count in firsts.items() if word in OPENS_A_CLAUSE)
    lines = sum(bool(line.strip()) for path in paths for line in path.read_text().splitlines())
    comments = sum(_comments(path) for path in paths)
    names = Counter(path.name for path in paths if path.name != "__init__.py")
    figures = {
        "docstrings": firsts.total(),
        "headless": headless,
        "headlessPercent": round(100 * headless / firsts.total(), 1),
        "headlessFirstWords": {word: firsts[word] for word, _ in firsts.most_common() if word in OPENS_A_CLAUSE},
        "fileNamesThatOccurTwice": sum(count for count in names.values() if count > 1),
        "linesWithAComment": comments,
        "linesWithACommentPercent": round(100 * comments / lines, 1),
    }
    print(json.dumps(figures, indent=2))
    return 0


def _first_words(path: Path) -> list[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, documented))
    return [text.split()[0].strip("`\"'*:,.").lower() for node in nodes if (text := ast.get_docstring(node))]


def _comments(path: Path) -> int:
    """Returns the number of lines with a comment that is no instruction to a tool."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    texts = (token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT)
    return sum(not text.startswith(("noqa", "type:", "!")) for text in texts)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "packages"))
