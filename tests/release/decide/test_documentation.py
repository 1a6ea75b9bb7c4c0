"""Where the pages of the documentation are: which address is a base, and which link leads below one."""

from __future__ import annotations

import pytest

from runup.report.documentation import MAX_BASE, BadBase, move_below, page, read_base

LONGEST = "https://" + "x" * (MAX_BASE - len("https://"))


@pytest.mark.parametrize(
    ("text", "base"),
    [
        pytest.param("https://docs.lan/x", "https://docs.lan/x", id="an address"),
        pytest.param("http://docs.lan:8080/", "http://docs.lan:8080", id="a port, and a slash at its end"),
        pytest.param(LONGEST, LONGEST, id="as long as one may be"),
    ],
)
def test_a_base(text: str, base: str) -> None:
    """As pages are put below it."""
    assert read_base(text) == base


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("ftp://docs.lan", "is not an http or https URL", id="another scheme"),
        pytest.param("https:///x", "is not an http or https URL", id="no host"),
        pytest.param("https://docs.lan/?x", "is not an http or https URL", id="a query"),
        pytest.param("https://docs.lan/#x", "is not an http or https URL", id="a fragment"),
        pytest.param("https://docs.lan/ x", "is not an http or https URL", id="a blank"),
        pytest.param("https://docs.lan/\x07", "is not an http or https URL", id="a control character"),
        pytest.param("https://döcs.lan", "is not an http or https URL", id="a letter of elsewhere"),
        pytest.param("https://docs.lan/%zz", "is not an http or https URL", id="half an escape"),
        pytest.param("https://[x", "is not an http or https URL", id="half an address"),
        pytest.param("", "is not an http or https URL", id="nothing"),
        pytest.param(LONGEST + "x", "is longer than 256 characters", id="a character too long"),
    ],
)
def test_what_is_no_base(text: str, why: str) -> None:
    """Nothing could be put below it."""
    with pytest.raises(BadBase, match=f"^{why}"):
        read_base(text)


def test_a_page() -> None:
    """One a risk, or a family of them; below the base where there is one."""
    assert page("Paused") == "https://docs.runup.example/checks/Paused"
    assert page("Paused-worker-a", "https://d") == "https://d/checks/Paused"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("https://a/checks/X", "https://new/checks/X", id="below the first"),
        pytest.param("https://b/checks/X", "https://new/checks/X", id="below the second"),
        pytest.param("https://c/checks/X", "https://c/checks/X", id="below neither"),
        pytest.param("https://a/other/X", "https://a/other/X", id="another page of a base"),
        pytest.param("/checks/X", "/checks/X", id="below none at all"),
    ],
)
def test_a_link_that_moves(url: str, expected: str) -> None:
    """To the same page; any other stays."""
    assert move_below(url, ("", "https://a", "https://b"), "https://new") == expected
