"""The documentation gate of `make check`: what is built is documented, and what is written can be followed.

Each rule is a function that yields one line for each fault; the exit code is 1 if there is any. Files are those that
git tracks or would track, so that a page that is not added yet counts too.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from runup.advice.decide import preflight_reasons
from runup.checks import risk_pages
from runup.checks.catalogue import CHECKS
from runup.cli.main import root
from runup.cli.operator.main import PROGRAM, operator

HERE = Path(__file__).parents[1]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# A block of shell, and a command in a sentence: what a reader copies.
SHELL = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`((?:kubectl |oc )?(?:runup|cluster-version-operator) [^`]+)`")
TYPED = re.compile(r"(?:^|[|;&(] *|\$ )(?:time )?(?:kubectl |oc )?(runup|cluster-version-operator) ([^|;&#)]*)")
FLAG = re.compile(r"--?[a-z][a-z-]*")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FRAGMENT = re.compile(r"[a-z0-9][a-z0-9-]*\.(added|changed|fixed|removed)\.md")
RECORD = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
STATUS = re.compile(
    r"\nStatus: (?:accepted|replaced by \[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\))(?:; .+)?\n(?:Date: [\d-]+\n)?\n"
)
# Paths of one machine, and hosts of package indexes: neither means anything to a reader elsewhere.
PRIVATE = re.compile(
    r"(?<![\w.])/(?:root|home/\w+|work)/[\w.]"
    r"|\b(?:pypi\.(?:org|python\.org)|files\.pythonhosted\.org|registry\.npmjs\.org|proxy\.golang\.org)\b"
)
# These speak of such paths on purpose: inside images, or as the example of what must not be there.
MAY_NAME_PATHS = {"tools/check_docs.py"}
MAX_FRAGMENT_LINES = 3

Rule = Callable[[], Iterator[str]]


def files(*patterns: str) -> list[Path]:
    """Files that git tracks or would track, as absolute paths."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout.splitlines()
    return [HERE / name for name in listed if (HERE / name).is_file()]


def prose() -> str:
    """Everything under docs/ that is no decision record, and the README."""
    pages = [path for path in files("docs/*.md", "README.md") if path.parent.name != "decisions"]
    return "\n".join(path.read_text() for path in pages)


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """`command` and everything below it, each with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        ctx = click.Context(command, info_name=name)
        for child in command.list_commands(ctx):
            found = command.get_command(ctx, child)
            if found is not None and not found.hidden:
                yield from walk(found, f"{name} {child}")


def undocumented_commands() -> Iterator[str]:
    """Every command and every flag is named in docs/."""
    text = prose()
    for name, command in [*walk(root, "runup"), *walk(operator, PROGRAM)]:
        # `adm upgrade` is `upgrade`, and is documented there.
        if name.startswith("runup adm "):
            continue
        if not re.search(rf"\b{re.escape(name)}\b", text):
            yield f"docs/: the command `{name}` is not documented"
        for param in command.params:
            flags = [flag for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")]
            hidden = isinstance(param, click.Option) and param.hidden
            missing = [flag for flag in flags if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text)]
            if not hidden and missing:
                yield f"docs/: {', '.join(missing)} of `{name}` is not documented"


def undocumented_checks() -> Iterator[str]:
    """Every check, and the risk of every check without a result, has a page or a section: its URL points there."""
    names = {check.name for check in CHECKS} | {check.unknown_risk for check in CHECKS if check.unknown_risk}
    names |= {preflight_reasons.IN_PROGRESS, preflight_reasons.INCOMPLETE, preflight_reasons.NOT_OFFERED}
    for name in sorted(names.difference(risk_pages.names())):
        yield f"docs/reference/checks: {name} has no page, but the risk's URL leads to one"


def unlisted_pages() -> Iterator[str]:
    """The index leads to every page except those of checks and decisions, which their folders list."""
    listed = LINK.findall((HERE / "docs" / "index.md").read_text())
    for path in files("docs/*.md"):
        name = str(path.relative_to(HERE / "docs"))
        if path.parent.name not in ("docs", "checks", "decisions") and name not in listed:
            yield f"docs/index.md: nothing leads to {name}"


def how_tos() -> Iterator[str]:
    """Every how-to page begins with its goal and prerequisites, and ends with the sections Verify and Undo."""
    for path in files("docs/how-to/*.md"):
        text = FENCE.sub("", path.read_text())
        if not re.match(r"# .+\n\nGoal: .+ You need ", text):
            yield f"{_name(path)}: below the title must be `Goal: ... . You need ... .`"
        if re.findall(r"^## (.+)$", text, re.MULTILINE)[-2:] != ["Verify", "Undo"]:
            yield f"{_name(path)}: the last two sections must be `## Verify` and `## Undo`"


def records() -> Iterator[str]:
    """Decision records are named NNNN-title.md, no number twice; number, title and status stand at the head of each."""
    index = (HERE / "docs" / "decisions" / "index.md").read_text()
    paths = [path for path in files("docs/decisions/*.md") if path.name != "index.md"]
    numbers = Counter(path.name[:4] for path in paths)
    for path in paths:
        match = RECORD.fullmatch(path.name)
        if match is None:
            yield f"{_name(path)}: a decision record is called NNNN-title.md"
            continue
        if numbers[match[1]] > 1:
            yield f"{_name(path)}: the number {match[1]} is taken twice"
        title, _, rest = path.read_text().partition("\n")
        if not title.startswith(f"# {int(match[1])}. "):
            yield f"{_name(path)}: the first line must be `# {int(match[1])}. Title`"
        if f"- [{title.removeprefix('# ')}]({path.name})" not in index:
            yield f"docs/decisions/index.md: {_name(path)} is not listed with its title"
        if not STATUS.match(rest):
            yield f"{_name(path)}: below the title must be `Status: accepted` or `Status: replaced by [NNNN](file)`"
        yield from (
            f"{_name(path)}: there is no `## {wanted}`"
            for wanted in ("Context", "Decision")
            if f"\n## {wanted}\n" not in rest
        )


def links() -> Iterator[str]:
    """Relative links lead to files that exist."""
    for path in files("*.md"):
        for target in LINK.findall(FENCE.sub("", path.read_text())):
            file = target.partition("#")[0]
            if file and "://" not in target and not target.startswith("mailto:") and not (path.parent / file).exists():
                yield f"{_name(path)}: the link to {target} leads nowhere"


def anchors() -> Iterator[str]:
    """A link to a section leads to a heading that its page has."""
    for path in files("*.md"):
        for target in LINK.findall(FENCE.sub("", path.read_text())):
            file, _, anchor = target.partition("#")
            page = path.parent / file if file else path
            if anchor and "://" not in target and page.is_file() and anchor not in _sections(page):
                yield f"{_name(path)}: {target} leads to no heading of {page.name}"


def _sections(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    # Of a link in a heading its words remain.
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def typed_commands() -> Iterator[str]:
    """Every command of ours on a page, in a block of shell or in a sentence, is one, with flags that it has."""
    known = dict(walk(root, "runup")) | dict(walk(operator, PROGRAM))
    for path in files("docs/*.md", "README.md", "CONTRIBUTING.md", "examples/*.md"):
        text = path.read_text()
        shell = [line for block in SHELL.findall(text) for line in block.replace("\\\n", " ").splitlines()]
        spans = SPAN.findall(FENCE.sub("", text).replace("\n", " "))
        for line in (*shell, *spans):
            for program, rest in TYPED.findall(line):
                yield from (f"{_name(path)}: {fault} in `{line.strip()}`" for fault in _faults(program, rest, known))


def _faults(program: str, rest: str, known: dict[str, click.Command]) -> Iterator[str]:
    """What is wrong with one command: a subcommand, or flags, that it does not have."""
    name, words = program, rest.split()
    flags = {"--help", "-h", "--version"} | _flags(known[name])
    words = words[1:] if words[:1] == ["help"] else words
    while words and f"{name} {words[0]}" in known:
        name = f"{name} {words.pop(0)}"
        flags |= _flags(known[name])
    command = known[name]
    if isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]+", words[0]):
        yield f"`{name} {words[0]}` is no command"
    for word in words:
        flag = word.partition("=")[0]
        # `-vv` and `-ojson` are the short flag with what follows it.
        short = not flag.startswith("--") and flag[:2] in flags
        if FLAG.fullmatch(flag) and flag not in flags and not short:
            yield f"`{name}` has no {flag}"


def _flags(command: click.Command) -> set[str]:
    return {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}


def tests_that_are_named() -> Iterator[str]:
    """A page that says which test shows something names one that there is."""
    for path in files("docs/*.md", "README.md", "CONTRIBUTING.md"):
        for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", path.read_text()):
            if not (HERE / file).is_file():
                yield f"{_name(path)}: there is no {file}"
            elif name and not re.search(rf"^ *(?:async )?def {name}\(", (HERE / file).read_text(), re.MULTILINE):
                yield f"{_name(path)}: {file} has no test {name}"


def doors() -> Iterator[str]:
    """Every module in ARCHITECTURE's table of doors is there: by its path, or by its name beside one of its row."""
    section = (HERE / "ARCHITECTURE.md").read_text().partition("\n## Doors\n")[2].partition("\n## ")[0]
    for row in section.splitlines():
        beside: list[Path] = []
        for name in re.findall(r"`([\w./-]+\.py)`", row.partition(" | ")[2]):
            roots = (HERE / "packages/runup/src/runup", *HERE.glob("packages/*/src"), HERE) if "/" in name else beside
            path = next((root / name for root in roots if (root / name).is_file()), None)
            if path is None:
                yield f"ARCHITECTURE.md: there is no {name} where its table of doors says"
            else:
                beside.append(path.parent)


def private_names() -> Iterator[str]:
    """No path of one machine and no host of a package index in any text file."""
    for path in files():
        if _name(path) in MAY_NAME_PATHS:
            continue
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            if found := PRIVATE.search(line):
                yield f"{_name(path)}:{number}: {found[0]!r} means nothing elsewhere"


def readme_commands() -> Iterator[str]:
    """`make X` and `runup X` in the README exist."""
    text = (HERE / "README.md").read_text() + (HERE / "CONTRIBUTING.md").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", (HERE / "Makefile").read_text(), re.MULTILINE))
    for name in sorted(set(re.findall(r"\bmake ([a-z0-9-]+)\b(?=[`\s]*(?:#|$|`))", text, re.MULTILINE)) - targets):
        yield f"README.md: `make {name}` is not in the Makefile"
    known = {name for name, _ in walk(root, "runup")} | {"runup help"}
    for words in re.findall(r"(?:^\$? *|`)runup ([a-z][a-z -]*?)(?= *(?:--|[A-Z0-9<`|&\\]|$))", text, re.MULTILINE):
        if not any(f"runup {words}".startswith(name) for name in known - {"runup"}):
            yield f"README.md: `runup {words}` is no command"


def fragments() -> Iterator[str]:
    """Changelog fragments are named <slug>.<added|changed|fixed|removed>.md and short."""
    for path in files("changelog.d/*"):
        if path.name == ".gitkeep":
            continue
        lines = path.read_text().strip().splitlines()
        if not FRAGMENT.fullmatch(path.name):
            yield f"{_name(path)}: a fragment is called <slug>.<added|changed|fixed|removed>.md"
        elif not 1 <= len(lines) <= MAX_FRAGMENT_LINES:
            yield f"{_name(path)}: a fragment is one to {MAX_FRAGMENT_LINES} lines"


def _name(path: Path) -> str:
    return str(path.relative_to(HERE))


RULES: tuple[Rule, ...] = (
    undocumented_commands,
    undocumented_checks,
    unlisted_pages,
    how_tos,
    records,
    links,
    anchors,
    typed_commands,
    tests_that_are_named,
    doors,
    private_names,
    readme_commands,
    fragments,
)


def main() -> int:
    """Print every fault; 1 if there is one."""
    faults = [fault for rule in RULES for fault in rule()]
    print(*faults, sep="\n" if faults else "")
    print(f"docs: {len(faults)} faults" if faults else "docs: commands, checks, records, links and fragments agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
