"""`python -m tests.contract.differences [--check]`: tables of docs/reference/sandbox-differences.md, from the tests.

In: `differences.yaml`, the rows that show what it lists, `newest.yaml`, and what `bench random_requests` explains.
Out: the page with these tables written again. With `--check` nothing is written, and a page that differs is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import yaml
from bench.real.random_requests import EXPLAINED
from tests.contract import other_versions
from tests.contract.rows import rows

from kubekit.api.codec import convert
from kubekit.api.meta_v1 import Wire

FILE = Path(__file__).with_name("differences.yaml")
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "sandbox-differences.md"


class Difference(Wire, frozen=True):
    """What differs, why, and the tests that show it in addition to rows."""

    what: str
    why: str
    tests: tuple[str, ...] = ()


class UnservedKinds(Wire, frozen=True):
    """Kinds and subresources of a group and version that the sandbox does not serve."""

    group: str
    names: tuple[str, ...]
    why: str


class Differences(Wire, frozen=True):
    """The content of `differences.yaml`."""

    rows: tuple[Difference, ...]
    kinds: tuple[UnservedKinds, ...]


@cache
def stored() -> Differences:
    """The content of `differences.yaml`."""
    return convert(Differences, yaml.safe_load(FILE.read_text()))


def shown_by(difference: Difference) -> list[str]:
    """The rows and tests that show a difference."""
    return [*(row.title for row in rows() if row.differs == difference.what), *difference.tests]


def tables() -> dict[str, str]:
    """The tables by the heading under which they are."""
    listed = stored()
    return {
        "What differs in a row": _table(
            ("what", "why", "shown by"),
            ((each.what, each.why, _marked(shown_by(each), "; ")) for each in listed.rows),
        ),
        "What the newest Kubernetes answers otherwise": _table(
            ("what 1.37 does", "effect on runup", "rows and tests"),
            (
                (each.reason, each.effect, str(len(each.rows) + len(each.tests)))
                for each in other_versions.differences("newest")
            ),
        ),
        "What random requests found": _table(("difference", "why"), ((each.what, each.why) for each in EXPLAINED)),
        "Which kinds are not served": _table(
            ("group", "kinds and subresources", "why"),
            ((f"`{each.group}`", _marked(each.names, ", "), each.why) for each in listed.kinds),
        ),
    }


def with_tables(page: str) -> str:
    """The page with the first table under each of these headings replaced. Raises ValueError without a heading."""
    for heading, table in tables().items():
        before, found, rest = page.partition(f"## {heading}\n")
        if not found:
            raise ValueError(f"{PAGE} has no heading {heading!r}")
        section, _, later = rest.partition("\n| ")
        _, _, after = later.partition("\n\n")
        page = f"{before}{found}{section}\n{table}{after and chr(10) + after}"
    return page


def _marked(names: Iterable[str], separator: str) -> str:
    return separator.join(f"`{name.replace('`', '')}`" for name in names)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    written = (f"| {' | '.join(line)} |\n" for line in (head, *lines))
    return f"{next(written)}|{'---|' * len(head)}\n{''.join(written)}"


def main(arguments: list[str]) -> int:
    """1 if the page differs and is only checked."""
    page = PAGE.read_text()
    written = with_tables(page)
    if "--check" not in arguments:
        PAGE.write_text(written)
    elif page != written:
        print(f"{PAGE.relative_to(ROOT)} differs; run: python -m tests.contract.differences", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
