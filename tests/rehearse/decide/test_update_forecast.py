"""How long an update takes: by earlier ones, by when nodes came back, by drains; and whether it fits into a window."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from tests.rehearse.drained import NOW, budget, cluster, node, owner, pod

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from runup.api.config_v1 import UpdateHistory
from runup.rehearse.decide import update_forecast as forecasts
from runup.rehearse.decide.drains.drained_cluster import DrainedCluster, DrainSettings, Pool
from runup.rehearse.decide.drains.simulation import simulate
from runup.rehearse.decide.update_forecast import (
    CANNOT_TELL,
    DOES_NOT_FIT,
    FITS,
    Forecast,
    Range,
    fit_into_window,
    next_window,
)

HOUR, MINUTE = 3600, 60
BEGAN = NOW - timedelta(days=9)


def entry(version: str, minutes: int | None, began: datetime = BEGAN, state: str = "Completed") -> UpdateHistory:
    """An entry of the history that took so long; None if it did not end."""
    ended = None if minutes is None else (began + timedelta(minutes=minutes)).isoformat()
    document = {"version": version, "state": state, "startedTime": began.isoformat(), "completionTime": ended}
    return codec.convert(UpdateHistory, document)


INSTALLED = entry("4.14.0", 40, BEGAN - timedelta(days=99))

HISTORIES: dict[str, tuple[tuple[UpdateHistory, ...], tuple[tuple[str, int], ...]]] = {
    "the installation is no update": ((INSTALLED,), ()),
    "none at all": ((), ()),
    "two updates": (
        (entry("4.15.1", 74), entry("4.15.0", 61), INSTALLED),
        (("4.15.1", 74 * MINUTE), ("4.15.0", 61 * MINUTE)),
    ),
    "one that did not end": (
        (entry("4.15.1", None, state="Partial"), entry("4.15.0", 61), INSTALLED),
        (("4.15.0", 3660),),
    ),
    "one that was left for another": (
        (entry("4.15.1", 5, state="Partial"), entry("4.15.0", 61), INSTALLED),
        (("4.15.0", 3660),),
    ),
    "clocks that went back": ((entry("4.15.1", -5), INSTALLED), ()),
    "more than are asked": (
        (*(entry(f"4.15.{number}", 60) for number in range(9, 0, -1)), INSTALLED),
        tuple((f"4.15.{number}", HOUR) for number in range(9, 4, -1)),
    ),
}


@pytest.mark.parametrize(("history", "took"), HISTORIES.values(), ids=list(HISTORIES))
def test_what_earlier_updates_took(history: tuple[UpdateHistory, ...], took: tuple[tuple[str, int], ...]) -> None:
    """The newest first, and five at most."""
    assert forecasts.earlier_updates(history) == took


def back(name: str, minutes: float | None, status: str = "True") -> Node:
    """A node that became ready so long after the update began; None if nothing tells."""
    when = None if minutes is None else (BEGAN + timedelta(minutes=minutes)).isoformat()
    condition: dict[str, Any] = {"type": "Ready", "status": status, "lastTransitionTime": when}
    made = node(name)
    document = codec.to_dict(made)
    return codec.convert(Node, document | {"status": document["status"] | {"conditions": [condition]}})


UPDATED = (entry("4.15.1", 60), INSTALLED)
ROLLED: dict[str, tuple[tuple[Node, ...], int, int | None]] = {
    "one after another, a round of 10 minutes": ((back("a", 70), back("b", 80), back("c", 90)), 1, 30),
    "two at a time": ((back("a", 70), back("b", 71), back("c", 90), back("d", 90)), 2, 40),
    "one that did not restart": ((back("a", -70), back("b", 80), back("c", 90)), 1, None),
    "one that is not ready": ((back("a", 70), back("b", 80), back("c", 90, "False")), 1, None),
    "one that does not say since when": ((back("a", 70), back("b", 80), back("c", None)), 1, None),
    "one that was restarted days later": ((back("a", 70), back("b", 80), back("c", 4000)), 1, None),
    "all at once": ((back("a", 70), back("b", 80)), 2, None),
    "one node": ((back("a", 70),), 1, None),
    "within seconds, as after an API server that did not answer": ((back("a", 70), back("b", 70.1)), 1, None),
    "two at a time, and a third one right after": ((back("a", 70), back("b", 71), back("c", 71.5)), 2, 3),
    "at one moment, as after a restart of everything": ((back("a", 70), back("b", 70)), 1, None),
}


@pytest.mark.parametrize(("nodes", "at_once", "minutes"), ROLLED.values(), ids=list(ROLLED))
def test_when_the_nodes_of_a_pool_came_back(nodes: tuple[Node, ...], at_once: int, minutes: int | None) -> None:
    """It reports the pool only if all of them did, and in one go."""
    pool = Pool(name="worker", nodes=tuple(each.metadata.name for each in nodes), at_once=at_once)
    found = forecasts.find_last_roll_out(pool, {each.metadata.name: each for each in nodes}, UPDATED)
    assert (found and found.pool_s) == (minutes and minutes * MINUTE)


def of(state: DrainedCluster, *history: UpdateHistory, plain: bool = False, guessed: bool = True) -> Forecast:
    """The forecast of a cluster, where a node takes 5 to 20 minutes."""
    quick = simulate(state, DrainSettings(node_update_s=5 * MINUTE, drain_timeout_s=MINUTE), NOW)
    slow = simulate(state, DrainSettings(node_update_s=20 * MINUTE), NOW)
    return forecasts.forecast(
        None if plain else history, state.pools, nodes=state.nodes, quick=quick, slow=slow, guessed=guessed
    )


def two_pools(*nodes: Node, **fields: Any) -> DrainedCluster:
    """A control plane of one node, and these workers."""
    names = tuple(each.metadata.name for each in nodes)
    return cluster(
        node("m"), *nodes, pools=(Pool(name="master", nodes=("m",)), Pool(name="worker", nodes=names)), **fields
    )


def test_earlier_updates_and_the_nodes_that_came_back() -> None:
    """Both tell: nothing of it is guessed, and each part says what it rests on."""
    history = (entry("4.15.1", 74), entry("4.15.0", 61), INSTALLED)
    found = of(two_pools(back("a", 100), back("b", 110)), *history)
    control_plane, worker = found.parts
    assert control_plane.range == Range(61 * MINUTE, 74 * MINUTE)
    assert control_plane.sources == ("2 earlier updates took 74 (4.15.1) and 61 (4.15.0) minutes",)
    assert worker.range == Range(20 * MINUTE, 40 * MINUTE)
    assert (
        "its 2 nodes came back within 10 minutes in the update to 4.15.1, 1 at a time: 10 for each" in worker.sources[0]
    )
    # The pool begins with the machine-config operator, which may be the last thing of the control plane.
    assert found.total == Range(61 * MINUTE, (74 + 40) * MINUTE)
    assert (found.guessed, found.unknown) == (False, ())


def test_one_update_alone_tells_little() -> None:
    """Twice as long is reckoned with."""
    found = of(two_pools(back("a", 100), back("b", 110)), entry("4.15.1", 60), INSTALLED)
    assert found.parts[0].range == Range(60 * MINUTE, 120 * MINUTE)
    assert "1 earlier update took 60 (4.15.1) minutes" in found.parts[0].sources[0]


def test_drains_where_nodes_do_not_tell() -> None:
    """With a guess of what a node takes, which is said."""
    found = of(two_pools(node("a"), node("b")), *(entry(f"4.15.{n}", 60) for n in (2, 1)), INSTALLED)
    assert found.parts[1].range == Range(10 * MINUTE, 40 * MINUTE)
    assert found.parts[1].sources == ("simulated drains of 2 nodes, 1 at a time; the time of a node is guessed",)
    assert found.guessed


def test_a_cluster_that_was_never_updated() -> None:
    """How long the control plane takes at most is not known; at least as long as its nodes."""
    found = of(two_pools(node("a")), INSTALLED)
    assert found.parts[0].range == Range(5 * MINUTE, None)
    assert found.parts[0].sources[0] == "no earlier update is in the history of ClusterVersion"
    assert found.total == Range(5 * MINUTE, None)


def test_a_cluster_that_was_never_updated_tells_of_its_nodes_in_no_pool() -> None:
    """They leave its end open as they do after an update, and it is said."""
    found = of(cluster(node("a"), pools=()), INSTALLED)
    assert found.parts[0].range.high_s is None
    assert "no pool has a: how they are updated is unknown" in found.parts[0].sources


def test_a_pod_that_cannot_be_evicted() -> None:
    """Nobody knows when somebody deletes it, whatever earlier updates took."""
    state = two_pools(
        back("a", 100),
        back("b", 110),
        pods=(pod("db-0", "a", labels={"app": "db"}),),
        budgets=(budget("db", "db", maxUnavailable=0),),
        owners=(owner("web", 1),),
    )
    found = of(state, entry("4.15.1", 60), INSTALLED)
    assert found.parts[1].range == Range(20 * MINUTE, None)
    assert any("pod shop/db-0 of node a cannot be evicted" in source for source in found.parts[1].sources)
    assert found.total.high_s is None


def test_a_paused_pool_is_not_in_it() -> None:
    """And is named."""
    state = cluster(
        node("m"), node("a"), pools=(Pool(name="master", nodes=("m",)), Pool(name="worker", nodes=("a",), paused=True))
    )
    found = of(state, entry("4.15.1", 60), INSTALLED)
    assert [part.name for part in found.parts] == ["control plane"]
    assert "pool worker is paused: it stays as it is" in found.unknown


TWO_UPDATES = (entry("4.15.1", 74), entry("4.15.0", 61), INSTALLED)
OPEN_ENDS = {
    "nodes of no pool, as with a hosted control plane": (
        cluster(node("a"), node("b"), pools=()),
        "no pool has a, b: how they are updated is unknown",
    ),
    "one node that no pool selects": (
        cluster(
            node("m"),
            back("a", 100),
            node("x"),
            pools=(Pool(name="master", nodes=("m",)), Pool(name="worker", nodes=("a",))),
        ),
        "no pool has x: how they are updated is unknown",
    ),
    "a dump without pools": (
        cluster(pools=(), missing={"MachineConfigPool": "the dump holds none"}),
        "its drains are known in part, see below",
    ),
    "a control plane that is paused": (
        cluster(node("m"), pools=(Pool(name="master", nodes=("m",), paused=True),)),
        "pool master is paused: the update does not end before it is resumed",
    ),
}


@pytest.mark.parametrize(("state", "why"), OPEN_ENDS.values(), ids=list(OPEN_ENDS))
def test_what_leaves_the_end_open_whatever_earlier_updates_took(state: DrainedCluster, why: str) -> None:
    """It is never said to fit."""
    forecast = of(state, *TWO_UPDATES, guessed=False)
    assert why in forecast.parts[0].sources
    assert forecast.total.high_s is None
    assert (
        fit_into_window(forecast.total, next_window(time(22), time(6), UTC, NOW), guessed=False).verdict == CANNOT_TELL
    )


def test_kubernetes_alone_goes_group_by_group() -> None:
    """All that there is are its nodes."""
    pools = (Pool(name="control-plane", nodes=("m",)), Pool(name="workers", nodes=("a", "b"), after=("control-plane",)))
    found = of(cluster(node("m"), node("a"), node("b"), pools=pools), plain=True, guessed=False)
    assert [part.range for part in found.parts] == [Range(300, 1200), Range(600, 2400)]
    assert (found.total, found.guessed) == (Range(900, 3600), False)


def test_what_a_dump_lacks_leaves_the_end_open() -> None:
    """Without budgets nobody knows which drain waits."""
    found = of(two_pools(node("a"), missing={"PodDisruptionBudget": "the dump holds none"}), *UPDATED)
    assert found.total.high_s is None
    assert any("PodDisruptionBudget: the dump holds none" in each for each in found.unknown)


BERLIN = "Europe/Berlin"
WINDOWS: dict[str, tuple[time, time, str, datetime, str, int]] = {
    "tonight": (time(22), time(6), "", datetime(2026, 1, 14, 10, tzinfo=UTC), "2026-01-14T22:00:00+00:00", 8),
    "now is its beginning": (
        time(22),
        time(6),
        "",
        datetime(2026, 1, 14, 22, tzinfo=UTC),
        "2026-01-14T22:00:00+00:00",
        8,
    ),
    "it is open: the next one": (
        time(22),
        time(6),
        "",
        datetime(2026, 1, 14, 23, tzinfo=UTC),
        "2026-01-15T22:00:00+00:00",
        8,
    ),
    "within a day": (time(9), time(17), "", datetime(2026, 1, 14, 10, tzinfo=UTC), "2026-01-15T09:00:00+00:00", 8),
    "another zone": (time(22), time(6), BERLIN, datetime(2026, 1, 14, 20, tzinfo=UTC), "2026-01-14T22:00:00+01:00", 8),
    "a zone where it is tomorrow": (
        time(0),
        time(4),
        BERLIN,
        datetime(2026, 1, 14, 23, 30, tzinfo=UTC),
        "2026-01-16T00:00:00+01:00",
        4,
    ),
    "the night that is an hour shorter": (
        time(22),
        time(6),
        BERLIN,
        datetime(2026, 3, 28, 12, tzinfo=UTC),
        "2026-03-28T22:00:00+01:00",
        7,
    ),
    "the night that is an hour longer": (
        time(22),
        time(6),
        BERLIN,
        datetime(2026, 10, 24, 12, tzinfo=UTC),
        "2026-10-24T22:00:00+02:00",
        9,
    ),
}


@pytest.mark.parametrize(("opens", "closes", "zone", "now", "opening", "hours"), WINDOWS.values(), ids=list(WINDOWS))
def test_the_next_window(opens: time, closes: time, zone: str, now: datetime, opening: str, hours: int) -> None:
    """As long as it is by the clock on the wall of that zone."""
    try:
        window = next_window(opens, closes, ZoneInfo(zone) if zone else UTC, now)
    except ZoneInfoNotFoundError:
        pytest.skip("needs tzdata")
    assert window[0].isoformat() == opening
    assert fit_into_window(Range(0, 1), window, guessed=False).length_s == hours * HOUR


IN_THE_NIGHT_OF_ANOTHER_CLOCK = {
    # In Berlin 02:00 became 03:00 on 2026-03-29, and 03:00 became 02:00 on 2026-10-25.
    "opens at a time that is not": (time(2, 30), time(3, 15), 28, 3, "2026-03-30T02:30:00+02:00", 45),
    "has no length then": (time(2), time(3), 28, 3, "2026-03-30T02:00:00+02:00", 60),
    "closes at a time that is not": (time(22), time(2, 30), 28, 3, "2026-03-28T22:00:00+01:00", 210),
    "opens at a time that is twice": (time(2, 30), time(3), 24, 10, "2026-10-25T02:30:00+01:00", 30),
}


@pytest.mark.parametrize(
    ("opens", "closes", "day", "month", "opening", "minutes"),
    IN_THE_NIGHT_OF_ANOTHER_CLOCK.values(),
    ids=list(IN_THE_NIGHT_OF_ANOTHER_CLOCK),
)
def test_a_window_amid_the_change_of_clocks(
    opens: time, closes: time, day: int, month: int, opening: str, minutes: int
) -> None:
    """As short as its times may mean: nothing fits by an hour that may not be there."""
    try:
        window = next_window(opens, closes, ZoneInfo(BERLIN), datetime(2026, month, day, 12, tzinfo=UTC))
    except ZoneInfoNotFoundError:
        pytest.skip("needs tzdata")
    assert window[0].isoformat() == opening
    assert fit_into_window(Range(0, 1), window, guessed=False).length_s == minutes * MINUTE


@pytest.mark.parametrize(
    ("time_s", "guessed", "verdict"),
    [
        pytest.param(Range(HOUR, 8 * HOUR), False, FITS, id="exactly as long"),
        pytest.param(Range(HOUR, 8 * HOUR + 1), False, CANNOT_TELL, id="perhaps a second longer"),
        pytest.param(Range(8 * HOUR + 1, 9 * HOUR), False, DOES_NOT_FIT, id="longer in any case"),
        pytest.param(Range(8 * HOUR + 1, None), True, DOES_NOT_FIT, id="longer in any case, and nobody knows how long"),
        pytest.param(Range(HOUR, None), False, CANNOT_TELL, id="nobody knows how long"),
        pytest.param(Range(HOUR, 2 * HOUR), True, CANNOT_TELL, id="what is guessed is never said to fit"),
    ],
)
def test_whether_it_fits(time_s: Range, guessed: bool, verdict: str) -> None:
    """Into eight hours."""
    window = next_window(time(22), time(6), UTC, NOW)
    assert fit_into_window(time_s, window, guessed=guessed).verdict == verdict


CORDONED_KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("minutes", "taints", "late_s"),
    [
        pytest.param(5, (), 0, id="within its time"),
        pytest.param(40, (), 1800, id="late"),
        pytest.param(None, (), 0, id="since when is not known"),
        pytest.param(40, ({"key": "medik8s.io/drain", "effect": "NoSchedule"},), None, id="held by another controller"),
    ],
)
def test_names_nodes_that_are_late(minutes: int | None, taints: tuple[Any, ...], late_s: int | None) -> None:
    """A node that is drained takes ten minutes here; one that somebody else holds is not part of the update."""
    cordon: list[Any] = [{"key": CORDONED_KEY, "effect": "NoSchedule"}]
    if minutes is not None:
        cordon[0]["timeAdded"] = (NOW - timedelta(minutes=minutes)).isoformat()
    state = cluster(node("a", unschedulable=True, taints=[*cordon, *taints]), node("b"))
    slow = simulate(state, DrainSettings(), NOW)
    under_way = forecasts.nodes_under_way(state.pools, state.nodes, slow, NOW, openshift=False)
    assert [(each.node, each.expected_s, each.late_s) for each in under_way] == (
        [] if late_s is None else [("a", 600, late_s)]
    )
