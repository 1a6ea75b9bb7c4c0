"""Records of accepted risks: what counts, until when, and what a record that cannot be read does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _value(until: datetime | None) -> str:
    return acceptance.encode_record(Acceptance(name="A", reason="why", by="kim", at=NOW, until=until))


COUNTS = {
    "no record": ({}, True),
    "a record without an end": ({"A": _value(None)}, True),
    "an end that is to come": ({"A": _value(NOW + timedelta(seconds=1))}, True),
    "an end that has come": ({"A": _value(NOW)}, False),
    "an end that is over": ({"A": _value(NOW - timedelta(days=1))}, False),
    "another risk's end": ({"B": acceptance.encode_record(Acceptance(name="B", until=NOW))}, True),
    "no JSON": ({"A": "until tomorrow"}, False),
    "a list": ({"A": "[]"}, False),
    "an end that is no time": ({"A": '{"name": "A", "until": "soon"}'}, False),
    "an end without a zone": ({"A": '{"name": "A", "until": "2027-01-01T00:00:00"}'}, False),
    "an end that no year in UTC has": ({"A": '{"name": "A", "until": "0001-01-01T00:00:00+23:59"}'}, False),
    "an end that is a number": ({"A": '{"name": "A", "until": 2027}'}, False),
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_counts(name: str) -> None:
    """An acceptance counts until its end; what cannot be read accepts nothing."""
    data, counts = COUNTS[name]
    assert (acceptance.names_that_count(["A"], acceptance.read(data), NOW) == {"A"}) is counts


def test_a_record_under_a_hash_that_cannot_be_read() -> None:
    """It ends the acceptance of the name that the hash is of, and of no other."""
    records = acceptance.read({acceptance.key_of("no key: a"): "until tomorrow"})
    assert acceptance.names_that_count(["no key: a", "no key: b"], records, NOW) == {"no key: b"}


def test_a_record_comes_back_as_it_was_written() -> None:
    """Also for a name that no key can be."""
    shown = Acceptance(
        name="Größe: 1 <b>", reason="weil\n'es' so ist", by="kube:admin", at=NOW, until=NOW + timedelta(days=1)
    )
    key = acceptance.key_of(shown.name)
    assert key.isascii()
    assert " " not in key
    assert acceptance.read({key: acceptance.encode_record(shown)}) == {shown.name: shown}


def test_a_record_alone_accepts_nothing() -> None:
    """The API's list of names is the authority."""
    assert acceptance.names_that_count([], acceptance.read({"A": _value(None)}), NOW) == frozenset()


def test_the_next_end_is_the_soonest_that_is_to_come() -> None:
    """An acceptance that ended, or is absent, starts no pass."""
    ends = {"A": NOW - timedelta(hours=1), "B": NOW + timedelta(hours=2), "C": NOW + timedelta(hours=1), "D": None}
    records = {name: Acceptance(name=name, until=end) for name, end in ends.items()}
    assert acceptance.next_end("ABD", records, NOW) == NOW + timedelta(hours=2)
    assert acceptance.next_end("AD", records, NOW) is None


def test_unused_names_get_the_nearest() -> None:
    """A misspelt name is reported with the one that was probably meant."""
    found = acceptance.unused_names(["DualStackIncompatibel", "Elsewhere", "Known"], ["DualStackIncompatible", "Known"])
    assert found == {"DualStackIncompatibel": "DualStackIncompatible", "Elsewhere": ""}
