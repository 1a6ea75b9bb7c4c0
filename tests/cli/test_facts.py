"""Tests the fields that advice reads from a ClusterVersion's JSON; invalid fields count as absent."""

from __future__ import annotations

from typing import Any

import pytest

from runup.api.clusterversion_json import Condition, Release, Risk, Update, conditions_of, first_condition, read, texts

RECOMMENDED = {"type": "Recommended", "status": "False", "reason": "R", "message": "m"}
WHOLE = {
    "spec": {"channel": "stable-5.0", "upstream": "https://up.example"},
    "status": {
        "desired": {"version": "5.0.0", "image": "i", "url": "u", "channels": ["a", 7, "b"]},
        "conditions": [{"type": "Failing", "status": "True"}, {"type": "Failing", "status": "False"}, RECOMMENDED],
        "availableUpdates": [{"version": "5.0.1", "image": "j"}, "no object"],
        "conditionalUpdates": [
            {"release": {"version": "5.1.0"}, "risks": [{"name": "A", "message": "m"}, 7], "conditions": [RECOMMENDED]},
            {"release": {"version": "5.2.0"}, "conditions": [{**RECOMMENDED, "status": "True"}]},
            {"release": {"version": "5.3.0"}, "conditions": [{**RECOMMENDED, "status": "Unknown"}]},
            {"release": {"version": "5.4.0"}},
        ],
        "history": [{"version": "5.0.0", "image": "i"}, {"version": "4.9.0"}],
    },
}


def test_every_field_has_its_place() -> None:
    """As it was written; the whole object is kept."""
    found = read(WHOLE)
    assert found.json is WHOLE
    assert (found.channel, found.upstream, found.channels) == ("stable-5.0", "https://up.example", ("a", "b"))
    assert found.desired == Release("5.0.0", "i", "u")
    assert found.available == (Release("5.0.1", "j"),)
    assert found.history == (Release("5.0.0", "i"), Release("4.9.0"))
    said = Condition("Recommended", "False", "R", "m")
    assert found.conditional[0] == Update(Release("5.1.0"), (Risk("A", "m"),), said)
    assert found.conditional[3] == Update(Release("5.4.0"), (), None)
    assert found.conditions == (Condition("Failing", "True"), Condition("Failing", "False"), said)


def test_of_several_conditions_the_first_counts() -> None:
    """As every client reads it."""
    found = read(WHOLE)
    assert found.condition("Failing") == Condition("Failing", "True")
    assert found.condition("Nothing") is None
    assert first_condition((), "Failing") is None


def test_what_is_not_recommended() -> None:
    """An entry without an answer, or one that is positive, is not listed."""
    assert [(update.release.version, said.status) for update, said in read(WHOLE).not_recommended] == [
        ("5.1.0", "False"),
        ("5.3.0", "Unknown"),
    ]


@pytest.mark.parametrize("odd", [None, 7, "text", [7], {"a": 7}], ids=str)
@pytest.mark.parametrize("field", ["spec", "status"])
def test_what_is_not_as_it_should_be_counts_as_absent(field: str, odd: Any) -> None:
    """A dump is anybody's text."""
    found = read({field: odd})
    assert (found.channel, found.upstream, found.desired, found.channels) == ("", "", Release(), ())
    assert (found.conditions, found.available, found.conditional, found.history) == ((), (), (), ())


@pytest.mark.parametrize("odd", [None, 7, "text", [7, None, "a"], {"a": 7}], ids=str)
@pytest.mark.parametrize("field", ["desired", "conditions", "availableUpdates", "conditionalUpdates", "history"])
def test_so_does_a_part_of_it(field: str, odd: Any) -> None:
    """One that is odd says nothing; the others still do."""
    found = read({"spec": {"channel": 7, "upstream": None}, "status": {field: odd}})
    assert (found.channel, found.upstream, found.desired, found.channels) == ("", "", Release(), ())
    assert (found.conditions, found.available, found.conditional, found.history) == ((), (), (), ())


def test_a_condition_without_a_status_is_unknown() -> None:
    """An entry without a type is ignored."""
    assert conditions_of({"conditions": [{"type": "A"}, {"status": "True", "reason": 7}]}) == (
        Condition("A", "Unknown"),
        Condition("", "True"),
    )


def test_texts_of_an_object() -> None:
    """Nothing else of it."""
    assert texts({"data": {"a": "b", "c": 7}}, "data") == {"a": "b"}
    assert texts(None, "data") == {}
    assert texts({"data": ["a"]}, "data") == {}
