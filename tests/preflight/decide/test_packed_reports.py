"""Reports in a ConfigMap: how many have room, which ones go, and what others may have put next to them."""

from __future__ import annotations

import gzip
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.preflight.decide import packed_reports as packed
from runup.preflight.decide.packed_reports import DROPPED_ANNOTATION, MAX_BYTES, MAX_REPORTS, DroppedReports

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def key(number: int) -> str:
    """The key of a report of that minute after noon."""
    return packed.free_key("a", NOON + number * MINUTE, NOON, ())


def kept(number: int, size: int = 1000, note: str = "{}", data: str = "") -> ConfigMap:
    """A ConfigMap with so many reports of one size."""
    metadata = ObjectMeta(resource_version="7", annotations={DROPPED_ANNOTATION: note})
    return ConfigMap(
        metadata=metadata, data={"notes": data}, binary_data={key(each): b"x" * size for each in range(number)}
    )


ROOM: dict[str, tuple[ConfigMap, int, int]] = {
    "an empty one": (kept(0), 1000, 0),
    "one that has room": (kept(MAX_REPORTS - 1), 1000, 0),
    "as many as there may be": (kept(MAX_REPORTS), 1000, 1),
    "more, by another limit of old": (kept(MAX_REPORTS + 5), 1000, 6),
    "reports that are large": (kept(9, size=100_000), 100_000, 1),
    "one that is as large as several": (kept(9, size=100_000), 300_000, 3),
    "what others put beside them takes room, and stays": (kept(9, size=10_000, data="x" * 800_000), 40_000, 1),
}


@pytest.mark.parametrize(("before", "size", "dropped"), ROOM.values(), ids=list(ROOM))
def test_the_oldest_make_room(before: ConfigMap, size: int, dropped: int) -> None:
    """As many as have to go and no more; the patch carries the version that it was decided on."""
    new = key(1000)
    patch, went = packed.with_report(before, new, b"y" * size)
    assert [entry.key for entry in went] == sorted(before.binary_data)[:dropped]
    assert patch["metadata"]["resourceVersion"] == "7"
    assert {name for name, value in patch["binaryData"].items() if value is None} == {entry.key for entry in went}
    after = {**before.binary_data, new: b"y" * size}
    left = {name: value for name, value in after.items() if name not in {entry.key for entry in went}}
    others = sum(len(name) + len(text) for name, text in before.data.items())
    assert len(left) <= MAX_REPORTS
    assert sum(len(name) + len(value) for name, value in left.items()) + others <= MAX_BYTES


def test_what_went_is_noted() -> None:
    """With what went before, and when the newest of all was so."""
    patch, _ = packed.with_report(kept(MAX_REPORTS, note='{"reports": 4}'), key(1000), b"y")
    noted = ConfigMap(metadata=ObjectMeta(annotations=patch["metadata"]["annotations"]))
    assert packed.dropped_from(noted) == DroppedReports(reports=5, until=NOON)


@pytest.mark.parametrize(
    ("before", "new", "size"),
    [
        pytest.param(kept(0), 1, MAX_BYTES, id="larger than a ConfigMap"),
        pytest.param(kept(MAX_REPORTS), -5, 10, id="older than all that fill it"),
    ],
)
def test_a_report_without_room(before: ConfigMap, new: int, size: int) -> None:
    """It is refused: what is newer does not go for it, and it is not dropped in silence."""
    with pytest.raises(
        ValueError, match=r"the report takes .* KiB packed, and newer ones fill the 200 reports and 900 KiB"
    ):
        packed.with_report(before, key(new), b"y" * size)


@pytest.mark.parametrize("note", ["", "{", "[]", '{"reports": -1}', '{"reports": 2, "until": "2026-11-23T12:00:00"}'])
def test_a_note_that_cannot_be_read(note: str) -> None:
    """It says nothing, and hinders nothing."""
    assert packed.dropped_from(kept(0, note=note)) == DroppedReports()


def test_keys_of_others_are_left_alone() -> None:
    """And so are digits that are no time."""
    keys = [key(1), "notes", "20261123T126000Z.20261123T120000000000Z.0123456789ab.json.gz", key(0)]
    assert [entry.key for entry in packed.entries(keys)] == [key(0), key(1)]


def test_a_report_is_unpacked_by_any_gzip() -> None:
    """And what another gzip has packed is read."""
    assert gzip.decompress(packed.pack(b"{}")) == b"{}"
    assert packed.unpack(gzip.compress(b"{}")) == b"{}"


UNREADABLE = {
    "text": (b"{}", "is not packed by gzip"),
    "cut": (gzip.compress(b"x" * 1000)[:-9], "it is cut"),
    "without gzip's header": (zlib.compress(b"{}"), "is not packed by gzip"),
    "a bomb": (gzip.compress(b"0" * 50_000_000), "unpacks to more than 1088 KiB"),
}


@pytest.mark.parametrize(("data", "said"), UNREADABLE.values(), ids=list(UNREADABLE))
def test_what_cannot_be_unpacked(data: bytes, said: str) -> None:
    """One error, and no more memory than a report takes."""
    with pytest.raises(ValueError, match=said):
        packed.unpack(data)
