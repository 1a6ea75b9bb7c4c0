"""Which events `dump collect` writes: those that a reader of the dump uses, of the last hour, and a limited number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubekit.api.core_v1 import Event
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube.list_pages import Listing
from runup.facts.collect import EVENTS_AT_MOST, collect_kinds
from runup.facts.listers import WantedKind

JSON = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def event(name: str, minutes: float, reason: str = "FailedCreate", **changes: Any) -> JSON:
    """An event that was last seen so many minutes ago."""
    seen = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"name": name, "namespace": "openshift-dns"},
        "reason": reason,
        "lastTimestamp": seen,
        **changes,
    }


class Lister:
    """Lists these events."""

    def __init__(self, *items: JSON) -> None:
        self._items = items

    def listed(self, resource: Resource, namespace: str, selector: str) -> Listing[JSON]:
        """Returns them."""
        assert (resource.kind, namespace, selector) == ("Event", "", "")
        return Listing(tuple(self._items), "1")

    def named(self, resource: Resource, namespace: str, name: str) -> JSON | None:
        """Is not called."""
        raise NotImplementedError

    def server_version(self) -> str:
        """Returns none."""
        return ""


def collected(*items: JSON) -> list[str]:
    """Returns the names of the events that are written."""
    [kind] = collect_kinds([WantedKind(versions=(resource_of(Event),))], Lister(*items))
    assert kind.state == "complete"
    return [item["metadata"]["name"] for _, document in kind.lists for item in document["items"]]


BETA = {"metadata": {"name": "beta", "managedFields": [{"apiVersion": "events.k8s.io/v1beta1"}]}}
ROWS = {
    "the newest first": ([event("old", 50), event("new", 1)], ["new", "old"]),
    "older than an hour before the newest": ([event("old", 70), event("new", 1)], ["new"]),
    "about something else": ([event("pulled", 1, "Pulled"), event("new", 2)], ["new"]),
    "written in a beta version": ([event("x", 1, "Pulled", **BETA), event("new", 2)], ["beta", "new"]),
    "of a newer reporter": (
        [event("new", 90, series={"lastObservedTime": "2026-06-01T12:00:00.000000Z"}), event("old", 65)],
        ["new"],
    ),
    "without a time": ([event("x", 1, lastTimestamp=None)], ["x"]),
    "none": ([], []),
}


@pytest.mark.parametrize(("events", "names"), ROWS.values(), ids=ROWS)
def test_writes_the_events_that_a_reader_uses(events: list[JSON], names: list[str]) -> None:
    """The kind is complete: the readers of a dump use no other events."""
    assert collected(*events) == names


def test_writes_a_limited_number_of_events() -> None:
    """Only the newest are written."""
    names = collected(*(event(f"e-{number}", number / 100) for number in range(EVENTS_AT_MOST + 10)))
    assert (len(names), names[0], names[-1]) == (EVENTS_AT_MOST, "e-0", f"e-{EVENTS_AT_MOST - 1}")
