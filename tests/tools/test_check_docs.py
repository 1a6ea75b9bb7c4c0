"""What is wrong with the commands and the links of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_docs


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only page that there is."""
    monkeypatch.setattr(check_docs, "HERE", tmp_path)
    path = tmp_path / "page.md"
    monkeypatch.setattr(check_docs, "files", lambda *_patterns: [path])
    return path


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("`runup foo`", "`runup foo` is no command", id="no command"),
        pytest.param("`runup graph nothing g.json`", "`runup graph nothing` is no command", id="no subcommand"),
        pytest.param("`oc runup check --nope`", "`runup check` has no --nope", id="no flag of a plugin's command"),
        pytest.param(
            "```sh\nrunup preflight run \\\n  --dmup d\n```", "`runup preflight run` has no --dmup", id="continued"
        ),
        pytest.param("```sh\ncat a | runup check --of=b\n```", "`runup check` has no --of", id="behind a pipe"),
        pytest.param("`cluster-version-operator start --x`", "has no --x", id="of the operator"),
    ],
)
def test_a_command_that_nobody_can_type(page: Path, text: str, fault: str) -> None:
    """It is named, with the line."""
    page.write_text(text)
    (found,) = check_docs.typed_commands()
    assert fault in found
    assert found.startswith("page.md: ")


@pytest.mark.parametrize(
    "text",
    [
        "`runup upgrade --to=5.2.0 --wait`",
        "`runup preflight run -ojson -o json --dump DIR`",
        "`runup graph serve graph.json --listen 0.0.0.0:8080`",
        "```sh\nrunup check; oc runup upgrade status -h\n```",
        "```text\nrunup foo --bar\n```",
        "`runup-install`",
    ],
)
def test_what_can_be_typed(page: Path, text: str) -> None:
    """Arguments, short flags with their value, programs of other names."""
    page.write_text(text)
    assert list(check_docs.typed_commands()) == []


@pytest.mark.parametrize(
    ("anchor", "leads"),
    [("two-words", True), ("of-code-and-links", True), ("a-b--c", True), ("two", False), ("three", False)],
)
def test_links_to_sections(page: Path, anchor: str, leads: bool) -> None:
    """By the heading's anchor as GitHub and Sphinx make it; a heading inside a block is none."""
    headings = "# Two Words\n\n## Of `code` and [links](page.md)\n\n### A-b / C\n\n```sh\n# three\n```\n"
    page.write_text(f"{headings}[x](#{anchor})\n")
    assert (list(check_docs.anchors()) == []) is leads
