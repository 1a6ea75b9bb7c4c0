"""How many machines of a pool may be away: a number or a share."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.factories import pool

from runup.rules.machine_config import allowed_unavailable


@pytest.mark.parametrize(
    ("said", "machines", "number"),
    [
        pytest.param(None, 3, 1, id="nothing"),
        pytest.param(0, 3, 1, id="none"),
        pytest.param(2, 3, 2, id="a number"),
        pytest.param("2", 3, 2, id="a number as text"),
        pytest.param("50%", 3, 1, id="a share, rounded down"),
        pytest.param("50%", 4, 2, id="a share"),
        pytest.param("67%", 3, 2, id="two of three"),
        pytest.param("66%", 3, 1, id="less than two of three"),
        pytest.param("1%", 3, 1, id="a small share"),
        pytest.param("100%", 5, 5, id="all"),
        pytest.param("many", 3, 1, id="a word"),
        pytest.param("many%", 3, 1, id="a share of a word"),
    ],
)
def test_how_many_machines_may_be_away(said: int | str | None, machines: int, number: int) -> None:
    """Rounded down, and at least one."""
    found = pool(machines=machines)
    assert allowed_unavailable(replace(found, spec=replace(found.spec, max_unavailable=said))) == number
