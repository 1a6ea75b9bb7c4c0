"""Counts the phrases that docs/contributing/style.md replaces: `python tools/check_english.py [--write | --list AREA]`.

The exit code is 1 if a count is higher than in tools/english.json. `--write` stores the counts, and never raises one.
`--list` prints where the phrases of an area are. Code blocks of pages are left out: commands print them.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
BASELINE = Path(__file__).with_name("english.json")
# The pages that quote the phrases.
QUOTING = {"docs/contributing/style.md", "tools/check_english.py", "tools/english.json"}
AREAS = ("docs", "decisions", "messages", "src", "tests")
PHRASES = {
    "tell": r"\b(?:tells?|told|telling)\b",
    "could not be told": r"\bcould not (?:be told|tell)\b",
    "What ... is": (
        r"(?:^|[.:;|] +|\"\"\")What\b[^.?!|]{0,80}?\b(?:is|are|was|were|has|does|do|may|must)\b(?![^.!|\n]*\?)"
    ),
    "beside": r"\bbeside\b",
    "stands": r"\b(?:stands?|stood) (?!(?:up|down|by)\b)",
    "of its own": r"\bof (?:its|their|our|his|one's|your|his or her) own\b|\bof ours\b",
    "goes on": r"\b(?:goes|go|went|gone|going) (?:on|by|back)\b",
    "whoever": r"\b(?:whoever|whosever|whomever)\b",
    "but for": r"\bbut for\b",
    "says of": r"\b(?:say|says|said|know|knows|known|knew) of\b",
    "is to": r"\b(?:is|are|was|were) to (?!(?:the|a|an|this|that|it|its|be found|one|all|each|every|\d)\b)[a-z]+",
    "anew": r"\banew\b",
    "has none": r"\b(?:has|have|had|is|are|there is) (?:none|no more)\b",
    "judge": r"\bjudg(?:e|es|ed|ing|ement)\b",
    "mend": r"\bmend(?:s|ed|ing)?\b|\b(?:make|makes|made) again\b",
}
# Within a sentence, "what ... is" is no subject, and code says `is None`.
_CASE_SENSITIVE = {"What ... is", "has none"}
COMPILED = {
    name: re.compile(pattern, re.MULTILINE | (0 if name in _CASE_SENSITIVE else re.IGNORECASE))
    for name, pattern in PHRASES.items()
}


class Passage(NamedTuple):
    """Text that people read, and where it begins."""

    area: str
    path: Path
    line: int
    text: str


def passages() -> Iterator[Passage]:
    """Yields everything that is counted."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "packages/*.py", "tests/*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if name in QUOTING or not path.is_file():
            continue
        if path.suffix == ".md":
            # Blank out code, so that line numbers stay.
            blank = lambda found: "\n" * found[0].count("\n")  # noqa: E731
            text = re.sub(r"^```.*?^```|^    .*$", blank, path.read_text(), flags=re.MULTILINE | re.DOTALL)
            if not name.startswith("changelog.d/"):
                area = "decisions" if path.parent.name == "decisions" else "docs"
                yield Passage(area, path, 1, re.sub(r"`[^`\n]*`", "`", text))
        elif name.startswith("tests/"):
            yield Passage("tests", path, 1, path.read_text())
        else:
            yield from _of_code(path)


def _of_code(path: Path) -> Iterator[Passage]:
    """Yields the texts that users see, one each, and the rest of a module without them."""
    source = path.read_text()
    lines = source.splitlines()
    docstrings: set[ast.expr] = set()
    messages: list[ast.Constant] = []
    # A docstring is met before the text in it: parents come first.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
            is_help = any(re.search(r"\b(?:command|group)\b", each) for each in decorators)
            is_page = isinstance(node, ast.Module) and "checks/catalogue" in str(path)
            if node.body and isinstance(node.body[0], ast.Expr) and not (is_help or is_page):
                docstrings.add(node.body[0].value)
        elif isinstance(node, ast.Constant) and " " in str(node.value) and node not in docstrings:
            messages.append(node)
    for message in messages:
        yield Passage("messages", path, message.lineno, str(message.value))
        for number in range(message.lineno - 1, message.end_lineno or message.lineno):
            lines[number] = ""
    yield Passage("src", path, 1, "\n".join(lines))


def places() -> Iterator[tuple[str, Passage, int]]:
    """Yields each phrase: its name, its passage, its line."""
    for passage in passages():
        for name, pattern in COMPILED.items():
            for found in pattern.finditer(passage.text):
                yield name, passage, passage.line + passage.text.count("\n", 0, found.start())


def counts() -> dict[str, dict[str, int]]:
    """Returns how often each phrase occurs, by area."""
    counted = Counter((passage.area, name) for name, passage, _ in places())
    return {area: {name: counted[area, name] for name in PHRASES} for area in AREAS}


def main(arguments: list[str]) -> int:
    """Compares the counts with the stored ones, stores them, or prints where the phrases are."""
    if arguments[:1] == ["--list"]:
        for name, passage, line in places():
            if passage.area == arguments[1]:
                print(f"{passage.path.relative_to(ROOT)}:{line}: {name}")
        return 0
    now = counts()
    stored = json.loads(BASELINE.read_text()) if BASELINE.is_file() else now
    if arguments == ["--write"]:
        lower = {area: {name: min(n, stored[area].get(name, n)) for name, n in now[area].items()} for area in AREAS}
        BASELINE.write_text(json.dumps(lower, indent=2) + "\n")
    risen = [
        f"{area}: {name!r} occurs {n} times, {stored[area].get(name, 0)} are stored: docs/contributing/style.md has "
        f"the replacement, `python tools/check_english.py --list {area}` the places"
        for area in AREAS
        for name, n in now[area].items()
        if n > stored[area].get(name, 0)
    ]
    print(*risen, sep="\n", end="\n" if risen else "")
    print("english: " + ", ".join(f"{area} {sum(now[area].values())}" for area in AREAS))
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
