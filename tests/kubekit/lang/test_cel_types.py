"""The types of expressions, and the faults that cel-go's checker finds."""

from __future__ import annotations

import pytest

from kubekit.lang.cel_types import (
    BOOL,
    DYN,
    INT,
    STRING,
    CelType,
    list_of,
    map_of,
    object_of,
    result_type,
    type_faults,
)

ITEM = object_of("item", {"name": STRING, "size": INT}.get)
FIELDS: dict[str, CelType] = {
    "items": list_of(ITEM), "labels": map_of(STRING), "size": INT, "name": STRING, "any": DYN, "item": ITEM,
}  # fmt: skip
SELF = {"self": object_of("self", FIELDS.get)}

WELL_TYPED = (
    ("a comparison", "self.size > 1", BOOL),
    ("items", "self.items.all(i, i.size > 0)", BOOL),
    ("a map of items", "self.items.map(i, i.name)", list_of(STRING)),
    ("a filter keeps the type", "self.items.filter(i, i.size > 0)[0].name", STRING),
    ("keys of a map", "self.labels.all(k, self.labels[k] != '')", BOOL),
    ("anything has any field", "self.any.what.ever == 3", BOOL),
    ("a conditional of one type", "self.size > 1 ? self.name : ''", STRING),
    ("an optional field", "self.item.?size.orValue(0)", INT),
    ("an empty list and a full one", "[] + [self.name]", list_of(STRING)),
    ("null and an object", "self.item != null", BOOL),
)


@pytest.mark.parametrize(("expression", "type_"), [row[1:] for row in WELL_TYPED], ids=[row[0] for row in WELL_TYPED])
def test_a_well_typed_expression(expression: str, type_: CelType) -> None:
    """No fault, and the type of its value."""
    assert type_faults(expression, SELF) == ""
    assert result_type(expression, SELF) == type_


# The words and places are those of a real kube-apiserver: tests/contract/rows/rules.yaml.
ILL_TYPED = (
    ("a field", "self.typo", "1:5: undefined field 'typo'"),
    ("a field of an item", "self.items.exists(i, i.typo == 1)", "1:23: undefined field 'typo'"),
    ("a field that is asked for", "has(self.item.typo)", "1:4: undefined field 'typo'"),
    ("a field of a number", "self.size.x", "1:10: type 'int' does not support field selection"),
    ("an equality", "self.name == 1", "1:11: found no matching overload for '_==_' applied to '(string, int)'"),
    ("a sum", "self.name + self.size", "1:11: found no matching overload for '_+_' applied to '(string, int)'"),
    ("a negation", "!self.name", "1:1: found no matching overload for '!_' applied to '(string)'"),
    ("a range", "self.size.all(x, true)", "1:5: expression of type 'int' cannot be range"),
)


@pytest.mark.parametrize(("expression", "fault"), [row[1:] for row in ILL_TYPED], ids=[row[0] for row in ILL_TYPED])
def test_an_ill_typed_expression(expression: str, fault: str) -> None:
    """The first fault with its line and column, then the line and a mark under it."""
    first, line, mark = type_faults(expression, SELF).split("\n")
    assert first.startswith(f"ERROR: <input>:{fault}")
    assert line == f" | {expression}"
    assert mark.endswith("^")


def test_a_place_in_the_second_line() -> None:
    """Columns count from the line's beginning."""
    assert type_faults("true &&\n  self.typo == 1", SELF).startswith(
        "ERROR: <input>:2:7: undefined field 'typo'\n |   self"
    )
