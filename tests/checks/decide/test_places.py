"""On which line a field of a YAML text stands."""

from __future__ import annotations

import pytest

from runup.checks.decide.declarative import line_of

TEXT = """\
kind: A
spec:
  reads:
  - kind: B
    version: v1
  - kind: C
  name: x
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param("", 1, id="the text itself"),
        pytest.param("kind", 1, id="the first"),
        pytest.param("spec", 2, id="an object"),
        pytest.param("spec.reads", 3, id="a list"),
        pytest.param("spec.reads[0]", 4, id="its first item"),
        pytest.param("spec.reads[0].version", 5, id="a field of it"),
        pytest.param("spec.reads[1]", 6, id="its last item"),
        pytest.param("spec.reads[2]", 3, id="an item that is not there"),
        pytest.param("spec.reads.name", 3, id="a field of a list"),
        pytest.param("spec[0]", 2, id="an item of an object"),
        pytest.param("spec.name.x", 7, id="a field of a text"),
        pytest.param("spec.nothing.name", 2, id="a field that is not there"),
        pytest.param("nothing", 1, id="nothing of it"),
    ],
)
def test_on_which_line_a_field_stands(path: str, line: int) -> None:
    """Or the nearest part above it."""
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize("text", ["", "a: [", "# nothing\n"], ids=["empty", "no YAML", "only a comment"])
def test_where_there_is_nothing_no_line_is_known(text: str) -> None:
    """Which counts as 0."""
    assert line_of(text, "spec.reads") == 0
