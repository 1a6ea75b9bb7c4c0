"""Values of named parts: made, compared, shown and changed as dataclasses are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from kubekit.lang.value import Value


class Pair(Value):
    """Two parts, the second with a default."""

    one: str
    two: tuple[int, ...] = ()


class Other(Value):
    """The same parts of another name."""

    one: str
    two: tuple[int, ...] = ()


@dataclass(frozen=True)
class Model:
    """What Python has for it."""

    one: str
    two: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param((), {}, id="nothing"),
        pytest.param(("a",), {}, id="one by its place"),
        pytest.param(("a", (1,)), {}, id="both by their places"),
        pytest.param(("a",), {"two": (2,)}, id="one of each"),
        pytest.param((), {"two": (), "one": "a"}, id="by their names"),
        pytest.param((), {"two": ()}, id="one without a default is missing"),
        pytest.param(("a", (), 3), {}, id="one too many"),
        pytest.param(("a",), {"one": "b"}, id="one twice"),
        pytest.param(("a",), {"three": 3}, id="one that there is not"),
    ],
)
def test_parts_are_given_as_to_a_dataclass(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """In their order or by name; what is wrong is refused."""
    try:
        expected = Model(*values, **named)
    except TypeError:
        with pytest.raises(TypeError, match="Pair has the parts one, two"):
            Pair(*values, **named)
        return
    made = Pair(*values, **named)
    assert (made.one, made.two) == (expected.one, expected.two)
    assert repr(made) == repr(expected).replace("Model", "Pair")
    assert made.replaced(two=(9,)) == Pair(expected.one, (9,))
    assert replace(expected, two=(9,)).two == made.replaced(two=(9,)).two


def test_equal_is_what_has_the_same_parts() -> None:
    """Defaults count as if they were given; another type never equals."""
    assert Pair("a") == Pair("a", ())
    assert hash(Pair("a")) == hash(Pair("a", ()))
    assert Pair("a") != Pair("b")
    assert Pair("a") != Other("a")


def test_a_value_does_not_change() -> None:
    """As little as a tuple."""
    with pytest.raises(AttributeError, match="one of Pair cannot be changed"):
        Pair("a").one = "b"  # type: ignore[misc]
