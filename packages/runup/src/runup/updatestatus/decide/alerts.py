"""The alerts of a cluster as Prometheus lists them, and the reason why something could not be read."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.lang.text import cut


class Unreadable(msgspec.Struct, frozen=True):
    """The reason why a kind could not be read, in words for the administrator."""

    why: str


PATH = "/api/v1/alerts"
# More than any cluster has at once: what is decided on alerts looks at each of them.
MAX_ALERTS = 10_000
MAX_VALUES = 400_000
# Characters of Prometheus' own words that are kept.
MAX_ERROR = 1024


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as Prometheus lists it (`/api/v1/alerts`); `state` is firing or pending."""

    labels: dict[str, str]
    annotations: dict[str, str]
    state: str = ""
    active_at: datetime | None = None


class _Alert(Wire, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    state: str = ""
    active_at: datetime | None = None


class _Alerts(Wire, frozen=True):
    alerts: tuple[_Alert, ...] = ()


class _Answer(Wire, frozen=True):
    status: str = ""
    error: str = ""
    data: _Alerts = _Alerts()


def read_alerts(body: bytes) -> tuple[Alert, ...]:
    """Returns the alerts of an answer; raises DecodeError if it cannot be decoded, has too many or says `error`."""
    answer = codec.decode_bounded(_Answer, body, most_values=MAX_VALUES)
    if answer.status == "error":
        raise codec.DecodeError(cut(answer.error, MAX_ERROR) or "the answer says error and no more")
    if (number := len(answer.data.alerts)) > MAX_ALERTS:
        raise codec.DecodeError(f"the answer has {number} alerts; the limit is {MAX_ALERTS}")
    return tuple(
        Alert(
            labels=alert.labels,
            annotations=alert.annotations,
            state=alert.state,
            active_at=alert.active_at.replace(tzinfo=UTC)
            if alert.active_at is not None and alert.active_at.utcoffset() is None
            else alert.active_at,
        )
        for alert in answer.data.alerts
    )
