"""Routes of which a router says that the next minor version will not serve them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.checks.catalogue.asking import BY_NAME, JSON, findings, messages_of
from tests.factories import context

from runup.checks.catalogue.network.routes_unservable import ROUTES
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies
from runup.checks.decide.snapshots import snapshot_of

NAME = "RoutesUnservable"


def route(name: str, *statuses: str, **said: Any) -> JSON:
    """A Route with that condition by as many routers."""
    ingress = [
        {"routerName": f"r{n}", "conditions": [{"type": "UnservableInFutureVersions", "status": status, **said}]}
        for n, status in enumerate(statuses)
    ]
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": "web"},
        "status": {"ingress": ingress},
    }


def test_one_router_is_enough() -> None:
    """Each Route once, the first with what its router says."""
    routes = [
        route("b", "False", "True", reason="Weak", message="1024\nbits."),
        route("a", "True"),
        route("c", "False"),
    ]
    assert messages_of(NAME, *routes) == [
        "2 Routes will not be served by the next minor version any more (web/a and web/b). Of web/a the router says "
        "nothing more."
    ]
    assert messages_of(NAME, routes[0]) == [
        "1 Route will not be served by the next minor version any more (web/b). "
        "Of web/b the router says: Weak: 1024 bits."
    ]
    assert findings(NAME, *routes) == [(NAME, "warning", Applies.YES, ["a", "b"])]


def test_routes_that_are_served() -> None:
    """Without the condition, with it False or Unknown, without a status, and without Routes."""
    assert (
        messages_of(NAME, route("a"), route("b", "False", "Unknown"), {**route("c"), "status": {}})
        == messages_of(NAME)
        == []
    )


def test_within_a_minor_version_it_does_not_matter() -> None:
    """The routers of a patch are the ones of today."""
    outcome = run_check(
        BY_NAME[NAME], snapshot_of(BY_NAME[NAME].reads, [route("a", "True")]), context("5.0.0", "5.0.9")
    )
    assert outcome.result == "Skipped"


def test_where_there_are_no_routes_and_where_they_could_not_be_read() -> None:
    """Plain Kubernetes has no Routes; an unavailable API server may have some."""
    check = BY_NAME[NAME]
    seen = snapshot_of(check.reads, [])
    without = {kind: each for kind, each in seen.objects.items() if kind != ROUTES}
    lacking = replace(seen, objects=without, unreadable={ROUTES: "the server has no API routes"})
    assert run_check(check, replace(lacking, absent=frozenset({ROUTES})), context()).result == "Clear"
    assert run_check(check, lacking, context()).result == "Unknown"


def test_a_dump_without_routes_proves_nothing() -> None:
    """Routes have no definition, so a list of definitions without them proves nothing."""
    check = BY_NAME[NAME]
    seen = snapshot_of(check.reads, [], lacking=lambda read: "the dump holds no routes" if read == ROUTES else "")
    outcome = run_check(check, seen, context())
    assert outcome.result == "Unknown"
    assert "the dump holds no routes" in outcome.findings[0].message
