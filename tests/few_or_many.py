"""How much of what is drawn or listed at random `make test` tries; `make slow` tries all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """The test's `examples`: `few` of them in `make test`, `many` in `make slow`."""
    return pytest.mark.parametrize(
        "examples", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
    )


def first_and_rest(values: Sequence[Any], first: int = 1) -> list[Any]:
    """The first of them in `make test`, the others in `make slow`."""
    rest = (value if isinstance(value, type(pytest.param())) else pytest.param(value) for value in values[first:])
    return [*values[:first], *(each._replace(marks=(*each.marks, pytest.mark.slow)) for each in rest)]
