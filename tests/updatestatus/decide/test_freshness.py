"""How old a report is, by the Lease of the controller that keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubekit.api import codec
from runup.process.lease_age import LEAST_PATIENCE, LeaseRecord, lapse
from runup.updatestatus.decide.freshness import (
    CONFIRMED_AT,
    CURRENT,
    OLD,
    UNKNOWN,
    confirmation,
    freshness,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(seconds: float) -> str:
    """A time of the controller, in seconds after noon."""
    return f"{NOON + seconds * SECOND:%Y-%m-%dT%H:%M:%S.%fZ}"


def lease(
    confirmed: float | None = -10,
    renewed: float | None = 0,
    *,
    acquired: float = -3600,
    holder: str = "vm_1",
    duration: int = 137,
    taken: float | None = None,
) -> LeaseRecord:
    """A Lease; `taken` is when the server took the renewal, by its own clock, if it says so."""
    spec: dict[str, Any] = {"holderIdentity": holder, "leaseDurationSeconds": duration, "acquireTime": at(acquired)}
    spec |= {} if renewed is None else {"renewTime": at(renewed)}
    metadata: dict[str, Any] = {} if confirmed is None else {"annotations": {CONFIRMED_AT: at(confirmed)}}
    if taken is not None:
        ours = {"manager": "a", "time": at(taken), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}
        other = {"manager": "kubectl", "time": at(taken + 3000), "fieldsV1": {"f:metadata": {"f:labels": {}}}}
        metadata["managedFields"] = [other, ours, {"manager": "nobody"}]
    return codec.convert(LeaseRecord, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("record", "seconds", "state", "why"),
    [
        pytest.param(lease(), 0, CURRENT, "", id="renewed just now"),
        pytest.param(lease(), 30, CURRENT, "", id="gone for 30 s: its Lease is still held"),
        pytest.param(lease(), 127, CURRENT, "", id="for as long as its Lease was promised"),
        pytest.param(lease(), 128, OLD, "was last renewed at 2026-01-01T12:00:00Z", id="a second longer"),
        pytest.param(lease(), 3600, OLD, "was last renewed at 2026-01-01T12:00:00Z", id="an hour"),
        pytest.param(lease(duration=270), 260, CURRENT, "", id="on one node Leases are longer"),
        pytest.param(lease(duration=3), 110, CURRENT, "", id="a Lease of seconds: it confirms twice a minute only"),
        pytest.param(lease(duration=3), 111, OLD, "was last renewed", id="and is old after two minutes"),
        pytest.param(lease(-138, 0), 0, OLD, "but has not confirmed the report since", id="it renews and cannot write"),
        pytest.param(
            lease(-600, 0, acquired=-5),
            1,
            OLD,
            "has not confirmed it yet",
            id="another took over and has not looked",
        ),
        pytest.param(lease(holder="", duration=1), 50, CURRENT, "", id="ended in order, to be replaced"),
        pytest.param(lease(holder="", duration=1), 51, OLD, "was given back at", id="ended in order, for a minute"),
        pytest.param(lease(None), 137, CURRENT, "", id="an older controller notes nothing: its renewal counts"),
        pytest.param(lease(None), 138, OLD, "was last renewed", id="an older controller that is gone"),
        pytest.param(lease(None, None), 0, UNKNOWN, "says no renewTime", id="a Lease without a time"),
        pytest.param(lease(), -138, UNKNOWN, "still to come", id="renewed in the future"),
        pytest.param(lease(), -137, CURRENT, "", id="a clock that is a little behind"),
        pytest.param(lease(taken=7200), 7300, CURRENT, "", id="the controller's clock is two hours behind"),
        pytest.param(lease(taken=-7200), -7100, CURRENT, "", id="the controller's clock is two hours ahead"),
        pytest.param(lease(taken=-7200), -7000, OLD, "was last renewed at 2026-01-01T10:00:00Z", id="and it is gone"),
    ],
)
def test_how_old_a_report_is(record: LeaseRecord, seconds: float, state: str, why: str) -> None:
    """By the server's clock; what the controller's says counts as a difference only."""
    found = freshness(record, NOON + seconds * SECOND)
    assert found.state == state
    assert why in found.why
    assert bool(found.why) == (state != CURRENT)


def test_when_it_was_confirmed() -> None:
    """By the server's clock, where it shows when it took the renewal."""
    now = NOON + 20 * SECOND
    assert freshness(lease(-10), now).confirmed_at == NOON - 10 * SECOND
    assert freshness(lease(-10, taken=5), now).confirmed_at == NOON - 5 * SECOND
    assert freshness(lease(None), now).confirmed_at == NOON


def test_what_is_noted_is_read_again() -> None:
    """To the microsecond; nothing is noted before the first pass, and another's words are no time."""
    assert confirmation(None) == {}
    noted = confirmation(NOON + 1.25 * SECOND)
    record = lease(None, 10)
    shown = codec.convert(LeaseRecord, {"metadata": {"annotations": noted}, "spec": codec.to_dict(record.spec)})
    assert freshness(shown, NOON + 11 * SECOND).confirmed_at == NOON + 1.25 * SECOND
    for words in ("soon", "2026-01-01T12:00:00"):
        odd = codec.convert(
            LeaseRecord, {"metadata": {"annotations": {CONFIRMED_AT: words}}, "spec": codec.to_dict(record.spec)}
        )
        assert freshness(odd, NOON + 11 * SECOND).confirmed_at == NOON + 10 * SECOND


def test_patience_outlasts_what_is_usual() -> None:
    """A pass at least every 30 s, noted by a renewal that comes every 26 s, 60 s on one node."""
    assert LEAST_PATIENCE >= (30 + 60) * SECOND


@pytest.mark.parametrize(
    ("record", "seconds", "expected"),
    [
        pytest.param(lease(), 137, "", id="its holder may renew it"),
        pytest.param(lease(duration=15), 120, "", id="a short lease is not old sooner"),
        pytest.param(lease(), 138, "its Lease ns/version was last renewed at 2026-01-01T12:00:00Z", id="not renewed"),
        pytest.param(lease(holder=""), 60, "", id="a successor may be starting"),
        pytest.param(
            lease(holder=""),
            61,
            "its Lease ns/version was given back at 2026-01-01T12:00:00Z, and nobody holds it",
            id="given back",
        ),
        pytest.param(lease(renewed=None), 9999, "", id="no time"),
        pytest.param(lease(renewed=-7200, taken=0), 137, "", id="a clock of the holder that is behind"),
        pytest.param(
            lease(renewed=7200, taken=0),
            138,
            "its Lease ns/version was last renewed at 2026-01-01T12:00:00Z",
            id="a clock of the holder that is ahead",
        ),
        pytest.param(lease(renewed=7200), 138, "", id="a renewal that is still to come"),
    ],
)
def test_since_when_nobody_holds_a_lease(record: LeaseRecord, seconds: float, expected: str) -> None:
    """By the times of the API server alone."""
    assert lapse(record, NOON + seconds * SECOND, "ns/version") == expected
