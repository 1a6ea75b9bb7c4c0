"""The page of an update, part by part: what the head says about it, what needs attention, what is counted."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.render.reading import read
from tests.cli.updatestatus.render.test_html import (
    NOW,
    STARTED,
    condition,
    health,
    insight,
    node_insight,
    operator,
    pool_insight,
    status,
    version,
    worker,
)

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.api.update_v1alpha1 import (
    ControlPlane,
    Informer,
    Insight,
    Omitted,
    ResourceRef,
    UpdateStatusStatus,
    Version,
    VersionMetadata,
    Versions,
)
from runup.cli.updatestatus.render.status_page import page


def text(found: UpdateStatusStatus) -> str:
    """What the page says."""
    return read(page(found, NOW)).text


def status_with(conditions: tuple[Condition, ...]) -> UpdateStatusStatus:
    """A control plane that says no more of itself than this."""
    return UpdateStatusStatus(control_plane=ControlPlane(conditions=conditions))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(UpdateStatusStatus(), "ClusterVersion could not be read.", id="nothing at all"),
        pytest.param(
            status_with((condition("Updating", "Unknown", "x"),)), "ClusterVersion could not be read.", id="no word"
        ),
        pytest.param(
            status_with((condition("Updating", "Unknown", "x", "no such kind"),)), "no such kind", id="its own words"
        ),
    ],
)
def test_an_update_of_which_nothing_is_known(found: UpdateStatusStatus, why: str) -> None:
    """The head says why."""
    assert f"The update's state is not known {why} " in text(found)


def of(*metadata: tuple[str, str], previous: tuple[tuple[str, str], ...] = ()) -> Versions:
    """From 5.0.0 to 5.1.0, with remarks."""
    before, after = (
        tuple(VersionMetadata(key=key, value=value) for key, value in found) for found in (previous, metadata)
    )
    return Versions(previous=Version(version="5.0.0", metadata=before), target=Version(version="5.1.0", metadata=after))


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        pytest.param(None, "Updating to an unknown version Progressing ClusterVersion has no history.", id="none"),
        pytest.param(of(), "Updating to 5.1.0 Progressing From 5.0.0.", id="from one to another"),
        pytest.param(
            of(previous=(("Partial", ""),)),
            "From 5.0.0 (which was never completed).",
            id="the one before was cut short",
        ),
        pytest.param(of(("Installation", "")), "Progressing A new installation.", id="an installation"),
        pytest.param(
            of(("Architecture", "Arm64")), "A migration to another architecture: Arm64.", id="another architecture"
        ),
        pytest.param(
            of(("Architecture", "")), "A migration to another architecture: Multi.", id="to several architectures"
        ),
    ],
)
def test_from_where_to_where(versions: Versions | None, said: str) -> None:
    """In a sentence below the title."""
    assert said in text(status((version(versions=versions),)))


@pytest.mark.parametrize(
    ("own", "parts", "said"),
    [
        pytest.param("True", "True", "Updating to 5.1.0 Progressing", id="it goes on"),
        pytest.param("Unknown", "True", "Updating to 5.1.0 Progressing", id="of the control plane nobody knows"),
        pytest.param("False", "True", "Worker nodes are updating to 5.1.0 Progressing", id="workers alone"),
        pytest.param("False", "False", "The cluster is at 5.1.0 Not updating", id="it is over"),
        pytest.param("Unknown", "Unknown", "The cluster is at 5.1.0 Not known", id="nobody knows"),
    ],
)
def test_the_title_and_its_badge(own: ConditionStatus, parts: ConditionStatus, said: str) -> None:
    """By what ClusterVersion and the parts say; what is not known is not called over."""
    assert said in text(status((version(conditions=(condition("Updating", own, "x"),)),), updating=parts))


def test_the_bar_of_operators_has_a_share_for_each_state() -> None:
    """Of five nodes two are done, one updates, one waits; nothing is known about the fifth."""
    reasons = ("Updated", "Updated", "Progressing", "Pending", "Postponed")
    html = page(status((version(), *(operator(f"o{place}", reason) for place, reason in enumerate(reasons)))), NOW)
    bar = re.search(
        r'<div class="bar" role="img" aria-label="50 % of the control plane&#x27;s operators">(.*?)</div>', html
    )
    assert bar
    assert re.findall(r'class="fill-(\w+)" style="width:([\d.]+)%"', bar[1]) == [
        ("good", "40.00"),
        ("busy", "20.00"),
        ("idle", "20.00"),
    ]
    assert "2 updated 1 updating 1 waiting 1 not known Control plane 50 %" in read(html).text
    without = page(status((version(),)), NOW)
    assert "0 updated 0 updating 0 waiting Control plane" in read(without).text
    assert "fill-" not in without.partition("</style>")[2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({}, "Duration 1 h 37 min Expected to be done in 24 min Healthy operators", id="it goes on"),
        pytest.param(
            {"estimated_completed_at": NOW}, "Expected to be done in 0 s Healthy operators", id="about to be done"
        ),
        pytest.param(
            {"estimated_completed_at": NOW - timedelta(minutes=5)},
            "Expected to be done 5 min ago, by its estimate Healthy operators",
            id="overdue",
        ),
        pytest.param({"estimated_completed_at": None}, "Duration 1 h 37 min Healthy operators", id="no estimate"),
        pytest.param({"started_at": None}, "Control plane 50 % Expected to be done in 24 min", id="no beginning"),
        pytest.param(
            {"completed_at": STARTED + timedelta(minutes=9)},
            "Started 2026-11-21 06:00 UTC Duration 9 min Completed 2026-11-21 06:09 UTC Healthy operators",
            id="it is over",
        ),
    ],
)
def test_the_times_of_an_update(changes: dict[str, Any], said: str) -> None:
    """Unknown values have no line."""
    assert said in text(status((version(**changes),)))


def test_healthy_operators_are_counted() -> None:
    """Counts all operators except those without a health."""
    found = (operator("etcd", "Updated"), operator("dns", "Updated"), operator("storage", "Updated"))
    silent = insight(cluster_operator=_without_health(found[2]))
    assert "Healthy operators 2 of 3 " in text(status((version(waiting_for=()), *found[:2], silent)))


def _without_health(found: Insight) -> Any:
    assert found.cluster_operator
    return replace(found.cluster_operator, conditions=found.cluster_operator.conditions[:1])


def test_doubts_have_their_reason_or_their_status() -> None:
    """One that says no more than that says no more here; one that holds is no doubt."""
    conditions = (
        condition("Available", "True", "AsExpected"),
        condition("Fresh", "False", ""),
        condition("NodesReachable", "Unknown", "Forbidden", "403"),
    )
    found = text(status((version(),), conditions=conditions))
    assert "Not everything is known Fresh: False NodesReachable: Forbidden . 403 Needs attention" in found


def test_what_needs_attention_is_in_the_order_of_its_weight() -> None:
    """The worst level first, of equals the newest, by when it began, else by when it was first seen; undated last."""
    found = (
        health("told-info", "Info", started_at=NOW),
        health("undated", "Error"),
        health("old", "Error", started_at=NOW - timedelta(minutes=9)),
        health("seen", "Error", first_observed_at=NOW - timedelta(minutes=5)),
        health("new", "Error", started_at=NOW - timedelta(minutes=1), first_observed_at=NOW - timedelta(minutes=30)),
        health("warned", "Warning", started_at=NOW),
        health("unheard-of", "Fatal"),
        health("worst", "Critical"),
        health("unknown", "Unknown"),
    )
    html = page(status((version(),), found), NOW)
    headings = re.findall(r"<article.*?<h3>(.*?)</h3>", html)
    expected = ["unheard-of", "worst", "new", "seen", "old", "undated", "warned", "told-info", "unknown"]
    assert headings == expected
    shown = read(html).text
    assert "Needs attention (9)" in shown
    assert "Update Stalled · since 2026-11-21 07:36 UTC (1 min)" in shown
    assert "Update Stalled · first seen 2026-11-21 07:32 UTC (5 min)" in shown
    assert "undated Error Update Stalled warned" in shown


def test_what_was_left_out_is_counted_too() -> None:
    """Next to what is there, and where nothing else is."""
    some = text(status((version(),), (health(),), omitted=Omitted(health=3)))
    assert "Needs attention (4)" in some
    assert "3 more were left out to keep the object small." in some
    none = text(status((version(),), omitted=Omitted(health=3)))
    assert "Needs attention 3 more were left out" in none
    assert "Nothing needs attention" not in none


def test_what_an_issue_concerns() -> None:
    """Kind and group, namespace and name, one after the other; where to read on is a link."""
    refs = (
        ResourceRef(resource="nodes", name="w-1"),
        ResourceRef(group="apps", resource="deployments", namespace="shop", name="db"),
    )
    html = page(status((version(),), (health(resources=refs, reference="https://docs.example/x"),)), NOW)
    assert "Concerns nodes w-1 , deployments.apps shop/db Read on: https://docs.example/x" in read(html).text
    assert '<a href="https://docs.example/x"' in html
    assert "Concerns" not in text(status((version(),), (health(),)))


def test_pools_that_were_left_out_are_counted() -> None:
    """Below those that are there; where there is nothing, there is no heading."""
    found = status((version(),), (pool_insight("worker", Total=1),))
    assert "pools were left out" not in text(found)
    assert "Worker pools worker Progressing 1 updated 100 % of 1 nodes" in text(found)
    assert "7 more pools were left out." in text(replace(found, omitted_worker_pools=7))
    assert "Worker pools" not in text(status((version(),)))


def test_kinds_that_cannot_be_read_are_named_once() -> None:
    """In the order of the alphabet."""
    found = tuple(
        Insight(uid=uid, acquired_at=NOW, type=kind) for uid, kind in (("a", "Zone"), ("b", "Area"), ("c", "Zone"))
    )
    assert "insights of the type Area, Zone, which the object holds." in text(status((version(), *found)))
    assert "cannot read insights" not in text(
        status((version(), operator("etcd", "Updated"), node_insight("w", "Pending")))
    )


def host(name: str, reason: str, *more: Condition, updating: ConditionStatus = "False", **changes: Any) -> Insight:
    """A node in a phase."""
    return worker(name, condition("Updating", updating, reason), *more, **changes)


DOWN = condition("Available", "False", "NotReady")
BROKEN = condition("Degraded", "True", "Degraded")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        pytest.param(host("w", "Pending"), "w Outdated Pending ? ?", id="waiting, of no known version"),
        pytest.param(host("w", "Paused", version="5.0.0"), "w Excluded Paused 5.0.0 ?", id="paused"),
        pytest.param(host("w", "Completed", est_to_complete="0s"), "w Completed Updated ? -", id="done"),
        pytest.param(host("w", ""), "w Unknown Unknown ? ?", id="no word"),
        pytest.param(host("w", "Pending", DOWN), "w Unavailable Pending ? ?", id="down"),
        pytest.param(
            host("w", "Rebooting", DOWN, updating="True"), "w Progressing Rebooting ? ?", id="down on its way"
        ),
        pytest.param(host("w", "Pending", DOWN, BROKEN), "w Degraded Pending ? ?", id="down and broken"),
        pytest.param(host("w", "Draining", BROKEN, updating="True"), "w Degraded Draining ? ?", id="broken on its way"),
        pytest.param(host("w", "Pending", est_to_complete="10m0s"), "w Outdated Pending ? +10m", id="minutes"),
        pytest.param(host("w", "Pending", est_to_complete="1h0m0s"), "w Outdated Pending ? +1h", id="an hour"),
        pytest.param(host("w", "Pending", est_to_complete="50s"), "w Outdated Pending ? +50s", id="seconds"),
        pytest.param(host("w", "Pending", est_to_complete="1m30s"), "w Outdated Pending ? +1m30s", id="both"),
        pytest.param(host("w", "Pending", est_to_complete="soon"), "w Outdated Pending ? ?", id="no duration"),
    ],
)
def test_a_row_of_a_node(found: Insight, said: str) -> None:
    """Degraded outweighs unavailable, and a node on its way may be away."""
    shown = text(status((version(),), (found,)))
    assert f"Nodes of pool worker Node State Phase Version Needs {said} " in shown


def test_troubled_nodes_come_first() -> None:
    """Updating nodes follow, then waiting and completed ones, each by phase and name. Unknown ones are first."""
    nodes = (
        host("done", "Completed"),
        host("waits", "Pending"),
        host("paused", "Paused"),
        host("b-reboots", "Rebooting", updating="True"),
        host("a-reboots", "Rebooting", updating="True"),
        host("drains", "Draining", updating="True"),
        host("down", "Pending", DOWN),
        host("broken", "Pending", BROKEN),
        host("odd", "Hibernating"),
    )
    html = page(status((version(),), nodes), NOW)
    expected = ["odd", "broken", "down", "drains", "a-reboots", "b-reboots", "paused", "waits", "done"]
    assert re.findall(r'<th scope="row">(.*?)</th>', html) == expected


@pytest.mark.parametrize(
    ("counts", "shares", "said"),
    [
        pytest.param({"Total": 4}, [("good", "100.00")], "4 updated 100 % of 4 nodes", id="all done"),
        pytest.param(
            {"Total": 10, "Outdated": 8, "Progressing": 3, "Draining": 1, "Degraded": 1, "Excluded": 2},
            [
                ("good", "20.00"),
                ("busy", "20.00"),
                ("busy", "10.00"),
                ("bad", "10.00"),
                ("warn", "20.00"),
                ("idle", "20.00"),
            ],
            "2 updated 2 updating 1 draining 1 degraded 2 paused 2 waiting 20 % of 10 nodes",
            id="one of each kind at least",
        ),
        pytest.param(
            {"Total": 4, "Outdated": 1, "Degraded": 3},
            [("good", "75.00"), ("bad", "25.00")],
            "3 updated 1 degraded 75 % of 4 nodes",
            id="some that are done are degraded: no more are than are not done",
        ),
        pytest.param(
            {"Total": 2, "Outdated": 2, "Progressing": 1, "Draining": 2},
            [("busy", "100.00")],
            "2 draining 0 % of 2 nodes",
            id="one drains that does not progress",
        ),
        pytest.param(
            {"Total": 2, "Outdated": 2, "Draining": 1, "Degraded": 2},
            [("busy", "50.00"), ("bad", "100.00")],
            "1 draining 2 degraded 0 % of 2 nodes",
            id="one is degraded and drains",
        ),
    ],
)
def test_a_pool_by_its_counts(counts: dict[str, int], shares: list[tuple[str, str]], said: str) -> None:
    """Counts overlap; the bar has each node once, as far as that is known."""
    html = page(status((version(),), (pool_insight("blue", **counts),)), NOW)
    bars = re.findall(r'<div class="bar" role="img" aria-label="([^"]*)">(.*?)</div>', html)
    label, bar = bars[-1]
    assert re.findall(r'class="fill-(\w+)" style="width:([\d.]+)%"', bar) == shares
    assert said.endswith(label)
    assert f"worker Progressing {said} All times" in read(html).text


def test_a_pool_without_nodes_is_empty() -> None:
    """And has no bar."""
    html = page(status((version(),), (pool_insight("blue", Total=0),)), NOW)
    assert "Worker pools worker Empty All times" in read(html).text
    assert html.count('class="bar"') == 1


@pytest.mark.parametrize(("count", "folded"), [(12, ""), (13, "1 more node The other nodes of pool worker")])
def test_twelve_rows_stand_open(count: int, folded: str) -> None:
    """The others are a fold away."""
    found = text(status((version(),), tuple(host(f"w{place:02}", "Pending") for place in range(count))))
    assert ("more node" in found) is bool(folded)
    assert folded in found


def test_nodes_are_counted_that_are_not_listed() -> None:
    """Captions mention omitted rows; the control plane's table has different captions."""
    found = text(status((version(), host("m-0", "Pending")), (host("w-0", "Pending"),), omitted=Omitted(nodes=2)))
    assert "2 more nodes are counted above and not listed" in found
    assert "Nodes Control plane nodes Nodes of the control plane Node" in found
    assert "counted above" not in text(status((version(),), (host("w-0", "Pending"),)))


def test_messages_have_a_column_where_there_is_one() -> None:
    """Long names fit without it."""
    said = host("w-0", "Pending", message="disk is full")
    found = text(status((version(),), (said, host("w-1", "Pending"))))
    assert "Needs Message w-0 Outdated Pending ? ? disk is full w-1" in found
    assert "Message" not in text(status((version(),), (host("w-1", "Pending"),)))


def test_both_informers_of_a_part_are_read() -> None:
    """Shows insights of every informer."""
    part = ControlPlane(
        informers=(
            Informer(name="a", insights=(version(),)),
            Informer(name="b", insights=(operator("etcd", "Updated"),)),
        )
    )
    assert "1 updated 0 updating" in text(UpdateStatusStatus(control_plane=part))


def test_a_second_informer_that_tells_of_the_same_objects() -> None:
    """Its operators and nodes are the same rows, as in the text of the command; what it found is reported besides."""
    one = status((version(), operator("etcd", "Updated")), (node_insight("worker-0", "Draining"),))
    same = _with_informer(one, (operator("etcd", "Pending"), health("Odd")), (node_insight("worker-0", "Paused"),))
    assert text(same) == text(_with_informer(one, (health("Odd"),), ()))
    assert "Odd" in text(same)


def _with_informer(
    found: UpdateStatusStatus, control_plane: tuple[Insight, ...], workers: tuple[Insight, ...]
) -> UpdateStatusStatus:
    assert found.control_plane is not None
    (pool_,) = found.worker_pools
    of_control_plane = (*found.control_plane.informers, Informer(name="theirs", insights=control_plane))
    of_workers = (*pool_.informers, Informer(name="theirs", insights=workers))
    return replace(
        found,
        control_plane=replace(found.control_plane, informers=of_control_plane),
        worker_pools=(replace(pool_, informers=of_workers),),
    )
