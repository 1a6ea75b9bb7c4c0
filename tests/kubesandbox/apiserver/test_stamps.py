"""Tests the identifiers and times that the server writes, against the libraries that would write them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from kubesandbox.apiserver.access.audit import AuditLog
from kubesandbox.apiserver.metadata import new_uid

BEGIN = datetime(999, 12, 31, 23, 59, 59, 750_000, UTC)


def test_identifiers_are_random_uuids_of_version_4() -> None:
    """Thousands, so that bits that are set by chance do not hide one that is not."""
    made = [new_uid() for _ in range(4_000)]
    read = [uuid.UUID(text) for text in made]
    assert [str(each) for each in read] == made
    assert {(each.version, each.variant) for each in read} == {(4, uuid.RFC_4122)}
    together, ever = read[0].int, read[0].int
    for each in read:
        together, ever = together & each.int, ever | each.int
    # All bits but the six of version and variant are both, some time.
    assert ((ever ^ together).bit_count(), len(set(made))) == (122, 4_000)


@pytest.mark.parametrize("seconds", [0.0, 0.000_001, 0.249_999, 0.25, 1.0, 59.5, 86_400.125, 0.25])
def test_a_time_of_the_audit_log(seconds: float) -> None:
    """To the microsecond, over the change of a second and of a millennium, with four digits of the year."""
    passed = iter((0.0, seconds))
    log = AuditLog(None, lambda: BEGIN, lambda: next(passed))
    moment = (BEGIN + timedelta(seconds=seconds)).replace(tzinfo=None)
    assert log.now_text() == f"{moment.isoformat(timespec='microseconds')}Z"


def test_a_second_is_taken_for_no_other() -> None:
    """The text of the last second is kept."""
    passed = iter((0.0, 0.2, 0.3, 0.2, 1.3))
    log = AuditLog(None, lambda: BEGIN, lambda: next(passed))
    assert [log.now_text() for _ in range(4)] == [
        "0999-12-31T23:59:59.950000Z",
        "1000-01-01T00:00:00.050000Z",
        "0999-12-31T23:59:59.950000Z",
        "1000-01-01T00:00:01.050000Z",
    ]
