"""The status that travels: what is packed is what is read, what is too large is reported, and other people's bytes."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from datetime import timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW
from tests.preflight.decide.test_newest_report import noise

from kubekit.api import codec
from runup.fleet.decide.newest_status import (
    FORMAT,
    MAX_BYTES,
    BadStatus,
    NewestStatus,
    Precheck,
    for_advice,
    unpack,
    with_status,
)

JSON = dict[str, Any]
# ClusterVersion has nulls, and they mean something else than a field that is not there.
CLUSTER_VERSION: JSON = {
    "metadata": {"name": "version"},
    "spec": {"channel": "stable-5.1"},
    "status": {"desired": {"version": "5.0.0"}, "availableUpdates": None},
}
UPDATE_STATUS: JSON = {"kind": "UpdateStatus", "status": {"controlPlane": {"conditions": []}}}
STATUS = NewestStatus(
    format=FORMAT,
    observed_time=NOW,
    update_status=UPDATE_STATUS,
    notes=("a note",),
    doubt="a doubt",
    worker_pools_before_master=2,
    cluster_version=CLUSTER_VERSION,
    prechecks=(Precheck(name="A", type="recommended/NodeAlerts", status="False"),),
)


def value_of(status: NewestStatus) -> str:
    """The value that an agent takes to the hub."""
    return str(with_status(status)["binaryData"]["status"])


def packed(document: bytes) -> str:
    """A document as the value of the ConfigMap."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return b64encode(packer.compress(document) + packer.flush()).decode()


def test_what_is_packed_is_what_is_read() -> None:
    """Nothing is lost, nulls neither; the summary is for people."""
    assert unpack(value_of(STATUS)) == STATUS
    assert with_status(STATUS)["data"] == {"summary": f"5.0.0, observed {NOW:%Y-%m-%dT%H:%M:%SZ}"}


def test_a_half_that_could_not_be_read() -> None:
    """Why is reported in its place, on one line and cut."""
    failed = replace(STATUS, update_status=None, status_problem=f"refused\n{'x' * 5000}")
    found = unpack(value_of(failed))
    assert found.update_status is None
    assert found.status_problem.startswith("refused\\nxxx")
    assert len(found.status_problem) <= 1024
    assert "refused" in with_status(failed)["data"]["summary"]


LARGE: JSON = {"kind": "UpdateStatus", "status": {"note": noise(1, 200_000)}}


def test_a_status_that_is_too_large_leaves_the_advice() -> None:
    """A half is left out whole and says so: a cut one would look as if nothing were wrong."""
    value = value_of(replace(STATUS, update_status=LARGE))
    assert len(b64decode(value)) <= MAX_BYTES
    found = unpack(value)
    assert (found.update_status, found.cluster_version) == (None, CLUSTER_VERSION)
    assert found.status_problem.endswith("KiB packed, of 96 KiB")
    assert (found.notes, found.doubt) == ((), "")


def test_a_clusterversion_that_alone_is_too_large() -> None:
    """The status of the update, which fits, stays."""
    found = unpack(value_of(replace(STATUS, cluster_version={"spec": LARGE})))
    assert (found.update_status, found.cluster_version) == (STATUS.update_status, None)
    assert found.advice_problem.endswith("of 96 KiB")


def test_both_halves_too_large() -> None:
    """Each says so."""
    found = unpack(value_of(replace(STATUS, update_status=LARGE, cluster_version={"spec": LARGE})))
    assert (found.update_status, found.cluster_version, found.prechecks) == (None, None, ())
    assert found.status_problem.endswith("of 96 KiB")
    assert found.advice_problem.endswith("of 96 KiB")


def test_the_part_of_clusterversion_that_advice_is_computed_from() -> None:
    """Who changed which field when does not travel."""
    whole = CLUSTER_VERSION | {"kind": "ClusterVersion", "metadata": {"name": "version", "managedFields": [{}]}}
    assert for_advice(whole) == CLUSTER_VERSION | {"kind": "ClusterVersion"}


WHOLE = codec.encode(STATUS)
BAD = {
    "not base64": ("%%%", "is not base64"),
    "not ASCII": ("ä", "is not base64"),
    "not packed": (b64encode(WHOLE).decode(), "is not packed by gzip"),
    "cut": (b64encode(b64decode(packed(WHOLE))[:-4]).decode(), "is cut"),
    "a bomb": (packed(b" " * (9 << 20)), "unpacks to more than 8 MiB"),
    "no JSON": (packed(b"hello"), "cannot be read"),
    "not UTF-8": (packed(b'{"format":"\xff"}'), "cannot be read"),
    "deep": (packed(b'{"updateStatus":' + b'{"a":' * 100_000), "cannot be read"),
    "no time": (packed(b'{"format":"runup.dev/newest-status/v1"}'), "cannot be read"),
    "a time of no zone": (packed(WHOLE.replace(b'00Z"', b'00"', 1)), "time zone"),
    "a time that cannot be": (
        packed(codec.encode({"format": FORMAT, "observedTime": "0001-01-01T00:00:00+23:59"})),
        "at a time that cannot be",
    ),
    "of a long format": (
        packed(codec.encode({"format": "A" * 5000, "observedTime": "2026-01-10T02:00:00Z"})),
        r"has format A{50,100} \.\.\. and 49\d\d more characters, and",
    ),
    "of another format": (packed(WHOLE.replace(b"/v1", b"/v2", 1)), "has format runup.dev/newest-status/v2"),
}


@pytest.mark.parametrize(("value", "said"), BAD.values(), ids=list(BAD))
def test_what_is_no_status(value: str, said: str) -> None:
    """A cluster may send anything; none of it is taken for a status."""
    with pytest.raises(BadStatus, match=said) as refused:
        unpack(value)
    assert len(str(refused.value)) < 500


def test_another_time_zone() -> None:
    """The time is the same moment, in UTC."""
    there = timezone(timedelta(hours=5))
    found = unpack(value_of(replace(STATUS, observed_time=NOW.astimezone(there))))
    assert (found.observed_time, found.observed_time.utcoffset()) == (NOW, timedelta())
