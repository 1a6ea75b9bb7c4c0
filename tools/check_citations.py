"""`python tools/check_citations.py [--count] [ROOT]`: whether whatever a file cites is there to be read.

ROOT is a checkout, by default this one. Followed are pages and records below `docs/` with the sections and decisions
that are named of them, paths of code, modules and names in them, and commands. `--count` prints JSON: how many
citations there are, and how many of them lead nowhere. Otherwise each of those is printed as `file:line: what`; the
exit code is 1 if there is any. Addresses of the public web are not asked for.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import click

HERE = Path(__file__).parents[1]
READ = {".py", ".md", ".yaml", ".yml", ".toml"}
PACKAGES = ("runup", "kubesandbox", "kubekit")
# Prose names code without the folders that all of it is in.
CODE_ROOTS = ("", *(f"packages/{name}/src{inside}" for name in PACKAGES for inside in ("", f"/{name}")))
BEFORE_THE_CODE = "docs/decisions/0072"
UPSTREAM = "docs/reference/upstream.md"

# Papers that were on desks when the code was written. What code relies on of them is in the repository now.
ABSENT = re.compile(
    r"\bcvo-behaviou?r\b|\bdesign/(?:product|architecture)\b|\b(?:kmm-preflight|oc-upgrade-cli)\b"
    r"|(?<!/)\bupdate-status-api\b|\b[Ss]eeds? 00\d\b|\b[Rr]eference \d+\.\d+\b"
)
DECIDED = re.compile(r"\bD[1-9]\d?\b")
# `docs/decisions/0072 D7, D24`, and in pages `[D7](0072-title.md#d7)`: both say where it is decided.
OF_RECORD = re.compile(r"docs/decisions/0072(?:-[\w-]+\.md)? (D\d+(?:(?:, | and )D\d+)*)|\[(D\d+)\]\([\w./-]*0072-")
NUMBERED = re.compile(r"\b(?:[Dd]ecisions? (?:records? )?|[Rr]ecords? )0*(\d+)(?!\w|%|[.,-]\d)")
# A page of ours; behind `owner/repository ` it is somebody else's.
PAGE = re.compile(r"(?<![\w/.<{-])(?P<of>[a-z][\w-]*/[\w-]+ )?(?P<page>docs/[\w./-]*\w)(?P<more>\*?)")
SECTIONS = re.compile(r"(docs/[\w/-]+\.md) (\d+(?:\.\d+)*(?:(?:, | and )\d+(?:\.\d+)*)*)(?![\w-])")
CODE = re.compile(r"(?<![\w/.<{$~*-])(?:packages|tests|tools|bench|deploy)/[\w./-]*\w")
SCRIPT = re.compile(r"(?<![\w/.<{}~*%-])(?:[a-z_0-9]+/)+[a-z_0-9]+\.py\b")
ROOM = re.compile(r"`((?:[a-z_]+/)+[a-z_]*)`|(?<![\w./<{-])([a-z]+/(?:decide|control|cli)(?:/[a-z_]+)*)(?![\w./-])")
# A record may tell where something was, if it says that it is there no more.
GONE = re.compile(r"\b(?:lay|stood|used to|no longer|any more)\b")
MODULE = re.compile(r"\bpython3? -m ((?:\w+\.)*\w+)")
DOTTED = re.compile(
    r"(?<![\w./@:-])(?:runup|kubesandbox|kubekit)(?:\.(?!(?:md|py|yaml|json)\b)[A-Za-z_]\w*)+(?![\w/-]|\.\w)"
)
COMMAND = re.compile(r"`((?:runup|cluster-version-operator) [^`]+)`")
TYPED = re.compile(r"^ *(?:\$ )?((?:runup|kubectl runup|oc runup) .+)$")
# In data and recipes: remarks, and the fields that say where a row is from.
REMARK = re.compile(r"(?:(?:^|\s)#|\bsource: ).*|\bpython3? -m .*")
WORD = re.compile(r"[a-z][a-z-]*")


class Line(NamedTuple):
    """A line that people read: of a page whole, of code what is comment or docstring, of data what is comment."""

    file: Path
    number: int
    text: str
    typed: bool = False
    """Whether it is in a fenced block of a page."""


class Citation(NamedTuple):
    """What a line leads to; `fault` says why it leads nowhere, and is empty where it does."""

    line: Line
    what: str
    fault: str = ""


class Checkout:
    """A checkout, and what there is in it to be led to."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def files(self) -> list[Path]:
        """Files that git tracks or would track."""
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout.splitlines()
        return [self.root / name for name in listed if (self.root / name).is_file()]

    @cached_property
    def records(self) -> dict[int, Path]:
        """Decision records by number."""
        folder = self.root / "docs" / "decisions"
        return {int(path.name[:4]): path for path in folder.glob("[0-9][0-9][0-9][0-9]-*.md")}

    @cached_property
    def rooms(self) -> set[str]:
        """First folders below the packages: a path in prose that begins with one of them is one of code."""
        found = set(PACKAGES)
        for name in PACKAGES:
            folder = self.root / "packages" / name / "src" / name
            found |= {path.name for path in folder.glob("*/") if path.is_dir() and path.name != "__pycache__"}
        return found

    @cached_property
    def entry_points(self) -> set[str]:
        """Groups that other packages offer things in: they look like modules."""
        code = "\n".join(path.read_text() for path in self.root.glob("packages/*/src/**/*.py"))
        return set(re.findall(r"^ENTRY_POINTS = \"(.+)\"$", code, re.MULTILINE))

    @cached_property
    def commands(self) -> dict[str, click.Command]:
        """The programs whose commands pages name."""
        if not (self.root / "packages").is_dir():
            return {}
        sys.path[:0] = map(str, self.root.glob("packages/*/src"))
        from runup.cli.main import root

        try:
            from runup.cli.operator.main import PROGRAM, operator
        except ImportError:  # An older checkout, whose operator stood elsewhere.
            return {"runup": root}
        return {"runup": root, PROGRAM: operator}

    def is_there(self, path: str) -> bool:
        """Whether there is that file or folder; `docs/decisions/0007` is the record of that number."""
        found = self.root / path
        return found.exists() or any(found.parent.glob(f"{found.name}-*"))

    def is_code(self, path: str, beside: Path) -> bool:
        """Whether `path`, as prose has it, is a module or a room; `beside` is who says so."""
        folders = [*(self.root / base for base in CODE_ROOTS), self.root / "tests", *beside.parents]
        return any((folder / path).exists() or (folder / f"{path}.py").is_file() for folder in folders)

    def is_name(self, dotted: str) -> bool:
        """Whether `dotted` is a module, something that one defines, or a group of entry points."""
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            base = PurePosixPath(*parts[:count])
            for root in (*self.root.glob("packages/*/src"), self.root):
                for module in (root / f"{base}.py", root / base / "__init__.py"):
                    if module.is_file():
                        return _defines(_parsed(module), parts[count:]) or dotted in self.entry_points
                if (root / base).is_dir() and count == len(parts):
                    return True
        return dotted in self.entry_points

    def lines(self) -> Iterator[Line]:
        """Whatever in this checkout is read by people."""
        for path in self.files:
            if path.suffix not in READ and path.name not in ("Makefile", "Containerfile"):
                continue
            if path.suffix == ".py":
                yield from _said(path)
                continue
            fenced = False
            for number, text in enumerate(path.read_text().splitlines(), 1):
                fenced ^= path.suffix == ".md" and text.startswith("```")
                said = text if path.suffix == ".md" else "".join(REMARK.findall(text))
                if said:
                    yield Line(path, number, said, fenced)


Rule = Callable[[Checkout, Line], Iterator[Citation]]


def absent_papers(_: Checkout, line: Line) -> Iterator[Citation]:
    """Nobody is sent to a paper that is not in the repository."""
    for found in ABSENT.finditer(line.text):
        yield Citation(line, found[0], "is no document of this repository")


def decisions(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """A decision is cited with the record that holds it."""
    if line.file.name.startswith("0072-"):
        return
    record = checkout.records.get(72)
    known = _headings(record) if record else set()
    for found in OF_RECORD.finditer(line.text):
        for name in DECIDED.findall(found[1] or found[2]):
            yield Citation(line, f"{BEFORE_THE_CODE} {name}", "" if name in known else "is not in that record")
    for name in DECIDED.findall(OF_RECORD.sub("", line.text)):
        yield Citation(line, name, f"says not where it is decided: {BEFORE_THE_CODE} {name}")


def numbered_records(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """`decision record 7` is one that there is."""
    for found in NUMBERED.finditer(line.text):
        number = int(found[1])
        yield Citation(line, found[0], "" if number in checkout.records else "leads to no record")


def pages(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """Pages and records are there."""
    for found in PAGE.finditer(line.text):
        if not found["of"] and not found["more"]:
            yield Citation(line, found["page"], "" if checkout.is_there(found["page"]) else "does not exist")


def sections(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """A page has the sections that are cited of it."""
    for found in SECTIONS.finditer(line.text):
        page = checkout.root / found[1]
        known = _headings(page) if page.is_file() else set()
        for number in re.findall(r"\d+(?:\.\d+)*", found[2]):
            yield Citation(line, f"{found[1]} {number}", "" if number in known else "is no section of that page")
    if line.file.suffix != ".md" and UPSTREAM in SECTIONS.sub("", line.text):
        yield Citation(line, UPSTREAM, "is cited without a section, or with one in another line")


def paths_of_code(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """Folders and files of code are where the text says, be it from the root or from the packages."""
    text = line.text
    if line.file.parent.name == "decisions" and GONE.search(text):
        return
    for found in CODE.finditer(text):
        yield Citation(line, found[0], "" if checkout.is_code(found[0], line.file) else "does not exist")
    for found in SCRIPT.finditer(CODE.sub("", text)):
        yield Citation(line, found[0], "" if checkout.is_code(found[0], line.file) else "does not exist")
    for found in ROOM.finditer(CODE.sub("", text)):
        path = found[1] or found[2]
        if path.split("/")[0] in checkout.rooms:
            yield Citation(line, path, "" if checkout.is_code(path, line.file) else "does not exist")


def modules(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """`python -m X` starts something."""
    for found in MODULE.finditer(line.text):
        ours = found[1].split(".")[0] in (*PACKAGES, "bench", "tests", "tools")
        there = checkout.is_name(found[1]) if ours else find_spec(found[1].split(".")[0]) is not None
        yield Citation(line, found[0], "" if there else "is no module")


def dotted_names(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """A name with dots is a module or something in one."""
    for found in DOTTED.finditer(line.text):
        yield Citation(line, found[0], "" if checkout.is_name(found[0]) else "is no name in the code")


def commands(checkout: Checkout, line: Line) -> Iterator[Citation]:
    """Commands that pages show can be typed."""
    if line.file.suffix != ".md":
        return
    for found in (TYPED if line.typed else COMMAND).finditer(line.text):
        typed = found[1].removeprefix("kubectl ").removeprefix("oc ")
        program, *words = typed.split()
        command = checkout.commands.get(program)
        if command is not None:
            name = _unknown(command, words)
            yield Citation(line, typed, f"has no command {name!r}" if name else "")


RULES: tuple[Rule, ...] = (
    absent_papers,
    decisions,
    numbered_records,
    pages,
    sections,
    paths_of_code,
    modules,
    dotted_names,
    commands,
)


def citations(checkout: Checkout) -> Iterator[Citation]:
    """Every citation of a checkout, in the order of its files."""
    # Here are the names that must not be cited, and tables of what leads nowhere.
    speak_of_them = {"check_citations.py", "test_citations.py"}
    for line in checkout.lines():
        if line.file.name not in speak_of_them:
            for rule in RULES:
                yield from rule(checkout, line)


@cache
def _headings(page: Path) -> set[str]:
    """The first word of each heading."""
    return {found.rstrip(".") for found in re.findall(r"^#+ (\S+)", page.read_text(), re.MULTILINE)}


@cache
def _parsed(module: Path) -> ast.Module:
    """Returns the module's tree. Raises SyntaxError, with the file's name, where it is not Python."""
    return ast.parse(module.read_bytes(), str(module))


def _said(path: Path) -> Iterator[Line]:
    """Yields comments and docstrings. Raises SyntaxError if the file is not Python, which `tokenize` may not notice."""
    _parsed(path)
    depth = 0
    alone = True
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and alone and depth == 0):
            yield from (Line(path, token.start[0] + more, text) for more, text in enumerate(token.string.splitlines()))
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        alone = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT)


def _defines(tree: ast.AST, names: list[str]) -> bool:
    """Whether a module or class has the first of `names`, and that the next, as far as the source shows."""
    if not names:
        return True
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == names[0]:
            return not isinstance(node, ast.ClassDef) or _defines(node, names[1:])
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == names[0] for target in targets):
                return True
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(
            (alias.asname or alias.name) == names[0] for alias in node.names
        ):
            return True
    return False


def _unknown(command: click.Command, words: list[str]) -> str:
    """The first of `words` that should be a command and is none; empty if the rest are arguments and flags."""
    words = words[1:] if words[:1] == ["help"] else words
    while isinstance(command, click.Group) and words and WORD.fullmatch(words[0]):
        known = command.get_command(click.Context(command), words[0])
        if known is None:
            return words[0]
        command, words = known, words[1:]
    return ""


def main(arguments: list[str]) -> int:
    """Prints what leads nowhere (`--count`: how much); returns 1 if there is any, 2 if a file cannot be parsed."""
    count = "--count" in arguments
    roots = [argument for argument in arguments if argument != "--count"]
    checkout = Checkout(Path(roots[0]).resolve() if roots else HERE)
    try:
        found = list(citations(checkout))
    except SyntaxError as error:
        print(f"error: {error.filename}:{error.lineno}: {error.msg}; mend the file, then check again", file=sys.stderr)
        return 2
    lost = [citation for citation in found if citation.fault]
    if count:
        reasons = Counter(citation.fault.partition(":")[0] for citation in lost)
        print(json.dumps({"citations": len(found), "leadNowhere": len(lost), "why": dict(reasons.most_common())}))
        return 1 if lost else 0
    for line, what, fault in lost:
        print(f"{line.file.relative_to(checkout.root)}:{line.number}: {what} {fault}")
    print(f"citations: {len(lost)} of {len(found)} lead nowhere" if lost else f"citations: all {len(found)} lead on")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
