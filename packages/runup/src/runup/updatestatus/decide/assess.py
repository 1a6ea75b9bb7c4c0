"""Computes the whole status of UpdateStatus from one snapshot of the cluster.

Every insight is computed anew from the snapshot; from the previous status (`memory`) come times, and the findings of a
drain whose pods are not listed yet. So nothing has to be withdrawn when an object vanishes, and the same snapshot gives
the same status: the writer compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from kubekit.api import codec
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.decide import health, limits, waiting
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.control_plane import is_progressing
from runup.updatestatus.decide.draft import Draft, draft
from runup.updatestatus.decide.memory import PreviousStatus
from runup.updatestatus.decide.snapshot import Snapshot, Unreadable, readable
from runup.updatestatus.decide.status_layers import status_of

# How often an estimate is computed again while nothing happens.
ESTIMATE_PERIOD_S = 30.0


def assess(
    snapshot: Snapshot,
    previous: UpdateStatusStatus | None,
    now: datetime,
    *,
    node_now: datetime | None = None,
    max_bytes: int | None = limits.MAX_BYTES,
    others_pools: frozenset[str] = frozenset(),
    full: frozenset[str] = frozenset(),
    watched: bool = True,
) -> UpdateStatusStatus:
    """Returns the status at `now`; equal to `previous` if only time has passed.

    `node_now` is the time by which the unavailability of nodes is computed, if not `now`: `oc` uses the real clock
    there even for its example files. `max_bytes` limits the status as JSON; None leaves nothing out. `others_pools` are
    worker pools in which other informers have entries: they stay, and count. `full` has the names of layers in which
    they have taken every place (CONTROL_PLANE or a pool's), so that our insights are left out there. Without `watched`
    the cluster was not looked at between `previous` and now: what is new has begun at a time that is not known.
    """
    memory = PreviousStatus(previous, now.replace(microsecond=0), watched=watched)
    findings = draft(snapshot, memory, now, node_now or now)
    if max_bytes is None:
        return status_of(findings, limits.UNBOUNDED, memory)
    return _fit_draft(findings, memory, max_bytes, _pools_left(findings, others_pools), full)


def _pools_left(drafted: Draft, others_pools: frozenset[str]) -> int:
    """Returns how many worker pools this controller may report, so that with others' pools the API's limit holds."""
    if len({pool.name for pool in drafted.pools if not pool.is_control_plane} | others_pools) <= limits.MAX_POOLS:
        return limits.MAX_POOLS
    return max(0, limits.MAX_POOLS - len(others_pools))


def _fit_draft(
    drafted: Draft, memory: PreviousStatus, max_bytes: int, pools: int, full: frozenset[str]
) -> UpdateStatusStatus:
    """Returns the status with as much content as `max_bytes` allow, by the rules of `limits`."""
    sizes = [pool.total for pool in drafted.pools]
    if limits.node_step(sizes, max_bytes, limits.LEAST_NODE_BYTES) == limits.LARGEST.nodes:
        status = status_of(drafted, replace(limits.LARGEST, pools=pools), memory, full)
        if len(codec.encode(status)) <= max_bytes:
            return status
    for caps in (*_limits_to_try(drafted, memory, max_bytes, sizes), *limits.SMALLEST):
        status = status_of(drafted, replace(caps, pools=pools), memory, full)
        if len(codec.encode(status)) <= max_bytes:
            break
    return status


def _limits_to_try(drafted: Draft, memory: PreviousStatus, max_bytes: int, sizes: list[int]) -> Iterator[limits.Limits]:
    """Yields the limits to try in turn: with as many nodes as should fit `max_bytes`, then with fewer.

    How many should fit is estimated from the bytes that the first nodes of each pool take.
    """
    none, some_nodes = (replace(limits.FEWER_NODES, nodes=nodes) for nodes in (0, limits.MIN_NODES))
    bare_bytes = len(codec.encode(status_of(drafted, none, memory)))
    sampled_nodes = sum(min(size, limits.MIN_NODES) for size in sizes) or 1
    node_bytes = max(1.0, (len(codec.encode(status_of(drafted, some_nodes, memory))) - bare_bytes) / sampled_nodes)
    first = limits.node_step(sizes, max_bytes - bare_bytes, node_bytes)
    yield from (replace(limits.FEWER_NODES, nodes=step) for step in limits.NODE_STEPS if step <= first)


def next_change_s(snapshot: Snapshot, now: datetime) -> float | None:
    """Returns the seconds until the assessment changes by time alone: an age passes a threshold, or an estimate is due.

    Returns None if only a changed object can alter it.
    """
    cluster = snapshot.cluster_version
    if isinstance(cluster, Unreadable) or is_progressing(cluster):
        return ESTIMATE_PERIOD_S
    thresholds = []
    for operator in readable(snapshot.cluster_operators):
        for condition in operator.status.conditions:
            bad = {"Available": "False", "Degraded": "True"}.get(condition.type)
            if condition.status == bad and condition.last_transition_time:
                patience = (health.TOLERATED_FOR, health.UNAVAILABLE_TOO_LONG, health.DEGRADED_TOO_LONG)
                thresholds += [condition.last_transition_time + span for span in patience]
    for node in readable(snapshot.nodes):
        for condition in node.status.conditions:
            if condition.last_transition_time:
                thresholds += [condition.last_transition_time + span for span in states.SERIOUS_AFTER.values()]
    for pod in readable(snapshot.pending_pods):
        if pod.metadata.creation_timestamp:
            thresholds.append(pod.metadata.creation_timestamp + waiting.POD_PATIENCE)
    seconds_left = [(moment - now).total_seconds() for moment in thresholds if moment > now]
    # One second later, since ages must be exceeded and not just reached.
    return min(seconds_left) + 1 if seconds_left else None
