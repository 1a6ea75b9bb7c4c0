"""Pages of checks that releases declare, and what a built-in one lacks to become a page."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page

SPEC: dict[str, Any] = {"component": "etcd", "risk": {"name": "R"}, "expression": " x == 1 "}
WHOSE = "A check of component etcd; its risk is `R`."


@pytest.mark.parametrize(
    ("changes", "paragraphs"),
    [
        pytest.param({}, [WHOSE, "**Applies when** this is true:\n\n```\nx == 1\n```"], id="an expression"),
        pytest.param(
            {"for": "nodes"},
            [WHOSE, "**Applies when** this is true of one of its `nodes`:\n\n```\nx == 1\n```"],
            id="of each",
        ),
        pytest.param(
            {"for": "nodes", "when": " y "},
            [WHOSE, "**Applies when** this is true of one of its `nodes`, where `y`:\n\n```\nx == 1\n```"],
            id="of some",
        ),
        pytest.param(
            {"promql": {"query": " up "}},
            [WHOSE, "**Applies when** Prometheus answers 1 to\n\n```\nup\n```"],
            id="a query",
        ),
        pytest.param(
            {"container": {"image": "tool"}},
            [
                WHOSE,
                "**Applies when** the release's image `tool`, run with `preflight --format=preflight-v1-json`, "
                "says so.",
            ],
            id="a container",
        ),
        pytest.param(
            {"risk": {"name": "R", "message": "m", "messageExpression": "e", "remediation": "do", "url": "https://u"}},
            [
                "m",
                WHOSE,
                "**Applies when** this is true:\n\n```\nx == 1\n```",
                "**Remedy** do",
                "**More** https://u",
            ],
            id="all of a risk",
        ),
        pytest.param(
            {"risk": {"name": "R", "messageExpression": "e"}},
            ["e", WHOSE, "**Applies when** this is true:\n\n```\nx == 1\n```"],
            id="a message that is computed",
        ),
    ],
)
def test_what_a_declared_check_is_about(changes: dict[str, Any], paragraphs: list[str]) -> None:
    """Paragraph by paragraph, and none of what it does not say."""
    assert check_page.describe_declared(SPEC | changes) == "\n\n".join(paragraphs)


@pytest.mark.parametrize(
    ("sources", "targets", "words"),
    [
        ("", "", "all"),
        (" >=5.0.0 ", "", "from >=5.0.0"),
        ("", "<6", "to <6"),
        ("a", "b", "from a to b"),
        (" ", " ", "all"),
    ],
)
def test_for_which_updates_it_is(sources: str, targets: str, words: str) -> None:
    """Both ranges, as far as there are any."""
    assert check_page.updates_in_words(sources, targets) == words


def test_the_page_of_a_declared_check() -> None:
    """With what it reads, where it reads anything."""
    check = replace(CHECKS[0], name="n", about="a", updates="u", severity="critical")
    assert check_page.declared_page(replace(check, reads=())) == "# n\n\na\n\n**Updates** u; **severity** critical.\n"
    made = check_page.declared_page(check)
    assert made.startswith("# n\n\na\n\n**Reads** ")
    assert made.endswith(".\n\n**Updates** u; **severity** critical.\n")


@pytest.mark.parametrize("opening", check_page.OPENINGS)
def test_a_paragraph_that_is_missing_is_named(opening: str) -> None:
    """Each by how it begins."""
    check = next(
        each for each in CHECKS if each.example and all(f"\n\n{part}" in each.about for part in check_page.OPENINGS)
    )
    lacking = replace(check, about=check.about.replace(f"\n\n{opening}", "\n\nOtherwise"))
    assert list(check_page.problems(lacking)) == [f"its docstring has no paragraph that begins with {opening!r}"]


def test_an_example_that_shows_nothing_is_told() -> None:
    """A page without an answer is not complete."""
    check = next(each for each in CHECKS if each.name == "MachineFailed")
    assert list(check_page.problems(check)) == []
    silent = replace(check, example=check.example.replace("Failed", "Running"))
    assert list(check_page.problems(silent)) == ["it does not apply to its own example"]
