"""Forecasts how long an update takes: a range and its basis for each part, and whether it fits into a window.

In: what earlier updates took (ClusterVersion's history), when the nodes of a pool came back from the last one (their
condition Ready), and the simulated drains of the nodes as they are now. Out: a `Forecast`. A time that nothing limits
has no upper end, and a range that rests on a guess is never said to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node
from kubekit.lang.text import count
from kubekit.rules.node_rules import CORDON
from runup.api.config_v1 import UpdateHistory
from runup.rehearse.decide.drains.drain_result import DrainResult, PoolTimeline, stuck_texts
from runup.rules.holders import cordon_holder
from runup.rules.machine_config import is_drain_wanted, is_moving
from runup.rules.node_groups import is_leaving

if TYPE_CHECKING:
    from runup.rehearse.decide.drains.drained_cluster import Pool
    from runup.updatestatus.decide.holdups import Holdups

CONTROL_PLANE = "control plane"
MASTER = "master"
# Older updates were of a cluster that was another one.
_MAX_UPDATES = 5
# One update tells little of the next: up to twice as long is reckoned with.
_FACTOR_OF_ONE_SAMPLE = 2
# No node is drained, restarted and Ready in less: more nodes than go at once came back from something else, such as an
# API server that did not answer.
_SHORTEST_NODE_UPDATE = timedelta(minutes=1)
# A pool whose nodes came back over a longer time was restarted by something else than the update, too.
_LONGEST_ROLL_OUT_S = 2 * 24 * 3600
_NOT_ALL_IS_KNOWN = "its drains are known in part, see below"
FITS, DOES_NOT_FIT, CANNOT_TELL = "fits", "does not fit", "cannot tell"


@dataclass(frozen=True, slots=True)
class Range:
    """A time in seconds; without `high_s` it has no known upper end."""

    low_s: int
    high_s: int | None


@dataclass(frozen=True, slots=True)
class ForecastPart:
    """The control plane, or a pool: how long it takes, and what that rests on; `guessed` if on a guess of ours."""

    name: str
    range: Range
    sources: tuple[str, ...]
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The duration of an update in all and of each part; `unknown` says what is not known, and why.

    `needs_help` says why the update does not finish unless somebody does something.
    """

    total: Range
    parts: tuple[ForecastPart, ...]
    unknown: tuple[str, ...] = ()
    guessed: bool = False
    needs_help: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """A node that is being updated now: for how long, and how long it was to take.

    `since` is when it was cordoned, None if that is not known; `late_s` is 0 while it is within its time.
    """

    node: str
    pool: str
    since: datetime | None
    elapsed_s: int | None
    expected_s: int
    late_s: int = 0


def nodes_under_way(
    pools: Sequence[Pool],
    nodes: Iterable[Node],
    slow: DrainResult,
    now: datetime,
    *,
    history: Sequence[UpdateHistory] = (),
    openshift: bool,
) -> tuple[NodeProgress, ...]:
    """Returns the nodes that are being updated, those that are late first.

    A node was to take what the nodes of its pool took in the last update, twice as long at most, else what its drain
    and its update take in the simulation `slow`.
    """
    by_name = {node.metadata.name: node for node in nodes}
    simulated = {drain.node: (drain.back_s or drain.drained_s) - drain.from_s for drain in slow.nodes}
    under_way = []
    for pool in pools:
        rolled = find_last_roll_out(pool, by_name, history)
        of_roll_out = range_of([rolled.pool_s * rolled.at_once // rolled.nodes]).high_s if rolled is not None else None
        for name in pool.nodes:
            if name not in by_name or not _is_under_way(by_name[name], openshift=openshift):
                continue
            taints = by_name[name].spec.taints
            since = next((each.time_added for each in taints if each.key == CORDON.key and each.time_added), None)
            elapsed_s = int((now - since).total_seconds()) if since is not None else None
            expected_s = of_roll_out or simulated.get(name, 0)
            under_way.append(
                NodeProgress(
                    node=name,
                    pool=pool.name,
                    since=since,
                    elapsed_s=elapsed_s,
                    expected_s=expected_s,
                    late_s=max(0, elapsed_s - expected_s) if elapsed_s is not None and expected_s else 0,
                )
            )
    return tuple(sorted(under_way, key=lambda each: (-each.late_s, each.pool, each.node)))


def _is_under_way(node: Node, *, openshift: bool) -> bool:
    """Returns whether an update works on the node: one that somebody else holds is not part of it."""
    if openshift:
        return is_drain_wanted(node) or is_moving(node)
    return is_leaving(node) and cordon_holder(node) is None


@dataclass(frozen=True, slots=True)
class WindowFit:
    """The answer whether an update fits between two times."""

    opens: datetime
    closes: datetime
    verdict: str
    why: str

    @property
    def length_s(self) -> int:
        """Returns how long the window is; on a day on which clocks change it is another length."""
        return _length_s(self.opens, self.closes)


def _length_s(opens: datetime, closes: datetime) -> int:
    return int((closes.astimezone(UTC) - opens.astimezone(UTC)).total_seconds())


@dataclass(frozen=True, slots=True)
class RollOut:
    """The last roll-out of all nodes of a pool: its update and the times."""

    version: str
    nodes: int
    at_once: int
    span_s: int

    @property
    def pool_s(self) -> int:
        """Returns the duration of the whole pool; the span starts only when the first node was ready again."""
        rounds = -(-self.nodes // self.at_once)
        return round(self.span_s * rounds / (rounds - 1))


def earlier_updates(history: Sequence[UpdateHistory]) -> tuple[tuple[str, int], ...]:
    """Returns the version and the seconds of each completed update, the newest first; the installation is none."""
    updates = []
    # The oldest entry is the installation, which pruning keeps (docs/reference/upstream.md 6.3).
    for entry in history[:-1]:
        if entry.state != "Completed" or entry.completion_time is None:
            continue
        if None in (entry.started_time.utcoffset(), entry.completion_time.utcoffset()):
            continue
        seconds = int((entry.completion_time - entry.started_time).total_seconds())
        if seconds > 0:
            updates.append((entry.version, seconds))
    return tuple(updates[:_MAX_UPDATES])


def find_last_roll_out(pool: Pool, nodes: Mapping[str, Node], history: Sequence[UpdateHistory]) -> RollOut | None:
    """Returns the roll-out of a pool in the newest update, None if its nodes' conditions do not show one.

    Every node must have become Ready since that update began. None also if all nodes go at once, which does not show
    how long one takes; and if they became Ready too far apart, or faster one after another than nodes can be updated:
    then something else restarted them.
    """
    # Without the last entry, which is the installation.
    update = next((entry for entry in history[:-1] if entry.state == "Completed"), None)
    if update is None or update.started_time.utcoffset() is None:
        return None
    ready_times = []
    for name in pool.nodes:
        ready = find(nodes[name].status.conditions, "Ready") if name in nodes else None
        ready_since = ready.last_transition_time if ready is not None and ready.status == "True" else None
        if ready_since is None or ready_since.utcoffset() is None or ready_since <= update.started_time:
            return None
        ready_times.append(ready_since)
    at_once = max(pool.at_once, 1)
    if len(ready_times) <= at_once or (max(ready_times) - update.started_time).total_seconds() > _LONGEST_ROLL_OUT_S:
        return None
    ready_times.sort()
    if any(
        later - earlier < _SHORTEST_NODE_UPDATE
        for earlier, later in zip(ready_times, ready_times[at_once:], strict=False)
    ):
        return None
    return RollOut(update.version, len(ready_times), at_once, int((ready_times[-1] - ready_times[0]).total_seconds()))


def range_of(samples: Sequence[int]) -> Range:
    """Returns the range of the durations; for a single duration, up to twice its length."""
    low, high = min(samples), max(samples)
    return Range(low, high * _FACTOR_OF_ONE_SAMPLE if len(samples) == 1 else high)


def forecast(
    history: Sequence[UpdateHistory] | None,
    pools: Sequence[Pool],
    nodes: Iterable[Node],
    quick: DrainResult,
    slow: DrainResult,
    *,
    guessed: bool,
    why_no_history: str = "",
) -> Forecast:
    """Returns how long an update takes.

    `quick` and `slow` are the drains as simulated with the least and the most time that a node takes; `guessed` if
    these times are ours. `history` is None for a cluster without a ClusterVersion, whose pools are all there is.
    """
    by_name = {node.metadata.name: node for node in nodes}
    timelines = {pool.name: (pool, slow_pool) for pool, slow_pool in zip(quick.pools, slow.pools, strict=True)}
    parts = {
        pool.name: _pool_part(
            pool, by_name, history=history or (), timelines=timelines[pool.name], slow=slow, guessed=guessed
        )
        for pool in pools
        if not pool.paused and pool.name in timelines
    }
    paused = tuple(f"pool {pool.name} is paused: it stays as it is" for pool in pools if pool.paused)
    unknown = (*paused, *(why_no_history,) * bool(why_no_history), *slow.unknown)
    if history is None:
        # The groups of nodes go one after another, the control plane first.
        open_ended = any(part.range.high_s is None for part in parts.values()) or bool(slow.unknown)
        total = Range(quick.duration_s, None if open_ended else slow.duration_s)
        guesses = any(part.guessed for part in parts.values())
        return Forecast(
            total=total,
            parts=tuple(parts.values()),
            unknown=unknown,
            guessed=guesses,
            needs_help=slow.needs_help,
        )
    # Reasons why it has no known upper end, whatever earlier updates took.
    why_open = []
    if outside := sorted(by_name.keys() - {name for pool in pools for name in pool.nodes}):
        names = ", ".join(outside[:3]) + (f" and {len(outside) - 3} more" if len(outside) > 3 else "")
        why_open.append(f"no pool has {names}: how they are updated is unknown")
    if any(pool.name == MASTER and pool.paused for pool in pools):
        # The machine-config operator does not report the new version before (its syncRequiredMachineConfigPools).
        why_open.append("pool master is paused: the update does not end before it is resumed")
    if slow.unknown:
        why_open.append(_NOT_ALL_IS_KNOWN)
    control_plane = _control_plane_part(parts.pop(MASTER, None), earlier_updates(history), why_open)
    # The other pools go on side by side; they begin when the machine-config operator is updated, which is at the latest
    # when the control plane is.
    highs = [part.range.high_s for part in parts.values()]
    known_highs = [high_s for high_s in highs if high_s is not None]
    most = control_plane.range.high_s
    high = most + max(known_highs, default=0) if most is not None and len(known_highs) == len(highs) else None
    all_parts = (control_plane, *parts.values())
    low = max(part.range.low_s for part in all_parts)
    guesses = any(part.guessed for part in all_parts)
    return Forecast(
        total=Range(low, high), parts=all_parts, unknown=unknown, guessed=guesses, needs_help=slow.needs_help
    )


def with_holdups(result: Forecast, held: Holdups) -> Forecast:
    """Returns the forecast of a cluster whose update is held up: its time has no known upper end.

    A pool that is held up is named once, in the words of the status.
    """
    if not held.needs_help and not held.unknown:
        return result
    named = tuple(f"pool {name} does not begin:" for name in held.pools)
    drains = tuple(text for text in result.needs_help if not text.startswith(named))
    return replace(
        result,
        total=Range(result.total.low_s, None),
        parts=tuple(replace(part, range=Range(part.range.low_s, None)) for part in result.parts),
        unknown=(*result.unknown, *held.unknown),
        needs_help=(*held.needs_help, *drains),
    )


def _control_plane_part(
    master: ForecastPart | None, updates: Sequence[tuple[str, int]], why_open: Sequence[str]
) -> ForecastPart:
    """Returns the part of the control plane: as earlier updates went, else from the least that its pool takes."""
    if not updates:
        low = master.range.low_s if master is not None else 0
        no_update_text = "no earlier update is in the history of ClusterVersion"
        of_nodes = master.sources if master is not None else ()
        sources = tuple(dict.fromkeys((no_update_text, *of_nodes, *why_open)))
        return ForecastPart(CONTROL_PLANE, Range(low, None), sources)
    took = range_of([seconds for _, seconds in updates])
    times = [f"{_minutes(seconds)} ({version})" for version, seconds in updates]
    source = f"{len(times)} earlier updates took {', '.join(times[:-1])} and {times[-1]} minutes"
    if len(times) == 1:
        source = f"1 earlier update took {times[0]} minutes; of one, twice as long is reckoned with"
    of_master = master.sources[1:] if master is not None and master.range.high_s is None else ()
    blocks = tuple(dict.fromkeys((*of_master, *why_open)))
    return ForecastPart(CONTROL_PLANE, Range(took.low_s, None) if blocks else took, (source, *blocks))


def _minutes(seconds: int) -> int:
    return max(round(seconds / 60), 1)


def _pool_part(
    pool: Pool,
    nodes: Mapping[str, Node],
    history: Sequence[UpdateHistory],
    timelines: tuple[PoolTimeline, PoolTimeline],
    slow: DrainResult,
    *,
    guessed: bool,
) -> ForecastPart:
    """Returns the part of a pool: from its last roll-out if its nodes show it, else from the simulation."""
    quick_pool, slow_pool = timelines
    rolled = find_last_roll_out(pool, nodes, history)
    if rolled is not None:
        time_s = range_of([rolled.pool_s])
        per_node = _minutes(rolled.pool_s * rolled.at_once // rolled.nodes)
        source = (
            f"its {count(rolled.nodes, 'node')} came back within {_minutes(rolled.span_s)} minutes in the update to "
            f"{rolled.version}, {rolled.at_once} at a time: {per_node} for each; twice as long is reckoned with"
        )
    else:
        time_s = Range(_pool_s(quick_pool), _pool_s(slow_pool))
        times = "guessed" if guessed else "as given"
        at_once = f", {pool.at_once} at a time" if len(pool.nodes) > 1 else ""
        source = f"simulated drains of {count(len(pool.nodes), 'node')}{at_once}; the time of a node is {times}"
    stuck = stuck_texts((node, blocked) for node, blocked in slow.stuck if node.pool == pool.name)
    not_all = [_NOT_ALL_IS_KNOWN] if slow.unknown else []
    blocks = (*((slow_pool.held,) if slow_pool.held else ()), *stuck[:3], *not_all)
    if blocks:
        time_s = Range(time_s.low_s, None)
    return ForecastPart(pool.name, time_s, (source, *blocks), guessed and rolled is None)


def _pool_s(pool: PoolTimeline) -> int:
    """Returns what the drains of a pool take, from the first that begins."""
    if not pool.nodes:
        return 0
    ends = [node.drained_s if node.back_s is None else node.back_s for node in pool.nodes]
    return max(ends) - min(node.from_s for node in pool.nodes)


def next_window(opens: time, closes: time, zone: tzinfo, now: datetime) -> tuple[datetime, datetime]:
    """Returns when the window opens next, not before `now`, and closes; it may go past midnight.

    In a night in which clocks change it is as short as its times may mean; one that has no length then is left out.
    """
    day = now.astimezone(zone).date()
    for number in range(3):
        opening_day = day + timedelta(days=number)
        opening = _time_on_day(opening_day, opens, zone, later=True)
        closing = _time_on_day(opening_day + timedelta(days=closes <= opens), closes, zone, later=False)
        if now.astimezone(UTC) <= opening.astimezone(UTC) < closing.astimezone(UTC):
            return opening, closing
    raise AssertionError("a window opens on each day but the one on which clocks change")


def _time_on_day(day: date, at: time, zone: tzinfo, *, later: bool) -> datetime:
    """Returns when clocks show `at`; where they show it twice or never, the later or the earlier moment (PEP 495)."""
    both_folds = [datetime.combine(day, at.replace(fold=fold), zone) for fold in (0, 1)]
    return (max if later else min)(both_folds, key=lambda moment: moment.astimezone(UTC))


def fit_into_window(time_s: Range, window: tuple[datetime, datetime], *, guessed: bool) -> WindowFit:
    """Returns whether what takes `time_s` fits into the window."""
    opens, closes = window
    length_s = _length_s(opens, closes)
    if time_s.low_s > length_s:
        return WindowFit(opens, closes, DOES_NOT_FIT, "the shortest time that is reckoned with is longer")
    if time_s.high_s is None:
        return WindowFit(opens, closes, CANNOT_TELL, "its longest time is unknown")
    if time_s.high_s > length_s:
        return WindowFit(opens, closes, CANNOT_TELL, "the longest time that is reckoned with is longer")
    if guessed:
        return WindowFit(opens, closes, CANNOT_TELL, "that a node takes so long is guessed; give --node-minutes")
    return WindowFit(opens, closes, FITS, "the longest time that is reckoned with is shorter")
