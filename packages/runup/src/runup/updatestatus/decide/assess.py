"""Assesses a snapshot: an UpdateStatus within the limits of the API, next to the insights of other informers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import without_condition
from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import count
from runup.api.update_v1alpha1 import ControlPlane, Informer, Insight, Omitted, UpdateStatusStatus, WorkerPool
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide import health, insights, waiting
from runup.updatestatus.decide import nodes as states
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.control_plane import is_progressing
from runup.updatestatus.decide.draft import INPUTS, Draft, draft
from runup.updatestatus.decide.finding import Finding, cut
from runup.updatestatus.decide.memory import ConditionValues, PreviousStatus
from runup.updatestatus.decide.nodes import PoolState
from runup.updatestatus.decide.snapshot import Snapshot, readable

if TYPE_CHECKING:
    from runup.updatestatus.decide.hosted.snapshot import HostedSnapshot
    from runup.updatestatus.decide.kubernetes.snapshot import KubernetesSnapshot

    AnySnapshot = Snapshot | KubernetesSnapshot | HostedSnapshot

JSON = dict[str, Any]
# Informers a layer may have, by the API.
MAX_INFORMERS = 16


class OtherInformers(msgspec.Struct, frozen=True):
    """The contributions of other informers.

    Each pool holds others' informers only; a pool that has none of ours is kept whole.
    """

    control_plane: tuple[JSON, ...] = ()
    pools: dict[str, JSON] = {}

    def __bool__(self) -> bool:
        return bool(self.control_plane or self.pools)


class Room(msgspec.Struct, frozen=True):
    """The room that other informers leave in bytes of JSON, and the names of the worker pools with their entries.

    `full` are the layers, CONTROL_PLANE or the name of a worker pool, in which they have taken every place.
    """

    bytes: int = terms.MAX_BYTES
    pools: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()


def others_of(status: JSON | None) -> OtherInformers:
    """Returns the entries in `status` that are not ours; a value that is not a list of objects is ignored."""
    status = status or {}
    pools = {}
    for pool in _objects(status.get("workerPools")):
        if (other_informers := _informers_of_others(pool)) and isinstance(pool.get("name"), str):
            pools[pool["name"]] = pool
            if _is_ours(pool):
                # Its own fields are ours, unless the whole pool is theirs.
                kept: JSON = {key: pool[key] for key in ("name", "resource") if key in pool}
                pools[pool["name"]] = {**kept, "informers": list(other_informers)}
    return OtherInformers(_informers_of_others(status.get("controlPlane")), pools)


def own_status(status: JSON) -> UpdateStatusStatus | None:
    """Returns the status without others' entries; None if it cannot be decoded, so that it is computed again."""
    control_plane, pools = status.get("controlPlane"), _objects(status.get("workerPools"))
    own_document = {**status, "workerPools": [_with_own_informer(pool) for pool in pools if _is_ours(pool)]}
    if isinstance(control_plane, dict):
        own_document["controlPlane"] = _with_own_informer(control_plane)
    try:
        return codec.convert(UpdateStatusStatus, own_document)
    except codec.DecodeError:
        return None


def room_beside(other_informers: OtherInformers) -> Room:
    """Returns the room for our status within the limits, never less than a report needs."""
    if not other_informers:
        return Room()
    taken_bytes = len(codec.encode([other_informers.control_plane, *other_informers.pools.values()]))
    layers = {terms.CONTROL_PLANE: other_informers.control_plane} | {
        name: tuple(_informers(pool)) for name, pool in other_informers.pools.items()
    }
    return Room(
        max(terms.LEAST_BYTES, terms.MAX_BYTES - taken_bytes),
        frozenset(other_informers.pools),
        frozenset(name for name, informers in layers.items() if len(informers) >= MAX_INFORMERS),
    )


def merge_informers(own_status: UpdateStatusStatus, other_informers: OtherInformers) -> JSON:
    """Returns the JSON of `own_status` with others' entries after ours, unchanged.

    `own_status` has no informer in the layers that `room_beside` calls full.
    """
    status: JSON = codec.to_dict(own_status)
    if not other_informers:
        return status
    if other_informers.control_plane:
        status["controlPlane"] = _with_informers(status.get("controlPlane") or {}, other_informers.control_plane)
    our_pools = [
        _with_informers(pool, _informers_of_others(other_informers.pools.get(pool["name"])))
        for pool in status.get("workerPools") or ()
    ]
    our_names = {pool["name"] for pool in our_pools}
    status["workerPools"] = [
        *our_pools,
        *(pool for name, pool in other_informers.pools.items() if name not in our_names),
    ]
    return status


def _objects(value: Any) -> list[JSON]:
    # JSON that was built from our own types has tuples, decoded JSON has lists.
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _informers(layer: Any) -> list[JSON]:
    return _objects(layer.get("informers")) if isinstance(layer, dict) else []


def _informers_of_others(layer: Any) -> tuple[JSON, ...]:
    return tuple(informer for informer in _informers(layer) if informer.get("name") != terms.INFORMER)


def _is_ours(layer: JSON) -> bool:
    """Reports whether this controller has reported the pool, and not only other informers."""
    return not _informers_of_others(layer) or any(
        informer.get("name") == terms.INFORMER for informer in _informers(layer)
    )


def _with_own_informer(layer: JSON) -> JSON:
    return {
        **layer,
        "informers": [informer for informer in _informers(layer) if informer.get("name") == terms.INFORMER],
    }


def _with_informers(layer: JSON, other_informers: tuple[JSON, ...]) -> JSON:
    """Returns the layer with others' informers after ours."""
    return {**layer, "informers": [*_informers(layer), *other_informers]}


MORE = "InsightsOmitted"
Layer = TypeVar("Layer", ControlPlane, WorkerPool)


def status_of(
    drafted: Draft, caps: terms.Limits, memory: PreviousStatus, full: frozenset[str] = frozenset()
) -> UpdateStatusStatus:
    """Returns the status with as much content as `caps` allow, and without insights in the layers that are `full`."""
    workers = [pool for pool in drafted.pools if not pool.is_control_plane]
    if len(workers) <= caps.pools:
        kept_pools = list(workers)
    else:
        ranked = sorted(range(len(workers)), key=lambda i: (workers[i].is_complete, not workers[i].total))
        chosen_pools = set(ranked[: caps.pools])
        kept_pools = [pool for i, pool in enumerate(workers) if i in chosen_pools]
    control_plane = _control_plane_layer(drafted, caps, memory, len(workers) - len(kept_pools))
    pools = tuple(_worker_pool(pool, drafted, caps, memory) for pool in kept_pools)
    full_layers = [name for name in (terms.CONTROL_PLANE, *(pool.name for pool in pools)) if name in full]
    if terms.CONTROL_PLANE in full:
        control_plane = _without_insights(control_plane)
    pools = tuple(_without_insights(pool) if pool.name in full else pool for pool in pools)
    omitted = [control_plane.omitted, *(pool.omitted for pool in pools)]
    missing = Omitted(
        nodes=sum(omission.nodes for omission in omitted), health=sum(omission.health for omission in omitted)
    )
    return UpdateStatusStatus(
        control_plane=control_plane,
        worker_pools=pools,
        omitted_worker_pools=len(workers) - len(kept_pools),
        conditions=_own_conditions(
            drafted, missing, pools=len(workers) - len(kept_pools), full_layers=full_layers, memory=memory
        ),
    )


def _without_insights(layer: Layer) -> Layer:
    """Returns a layer without our informer; the nodes and the health insights that it had count as omitted."""
    kinds = [insight.type for informer in layer.informers for insight in informer.insights]
    return replace(
        layer,
        informers=(),
        omitted=Omitted(
            nodes=layer.omitted.nodes + kinds.count("Node"),
            health=layer.omitted.health + kinds.count("Health"),
        ),
    )


def _control_plane_layer(
    drafted: Draft, caps: terms.Limits, memory: PreviousStatus, omitted_pools: int
) -> ControlPlane:
    """Returns the control plane's layer, with as many insights as `caps` allow."""
    cluster, state = drafted.cluster, drafted.control_plane
    pool = next((pool for pool in drafted.pools if pool.is_control_plane), None)
    head: list[Insight] = []
    if cluster is not None:
        head.append(insights.cluster_version(cluster, state, waiting=drafted.waiting, memory=memory, text=caps.text))
    elif drafted.version is not None:
        head.append(drafted.version(memory, caps.text))
    head += [
        insights.cluster_operator(each, memory, caps.text, drafted.side) for each in (state.operators if state else ())
    ]
    findings = [finding for finding in drafted.findings if finding.pool == terms.CONTROL_PLANE]
    if omitted_pools:
        findings.append(
            Finding(
                check=MORE,
                level=terms.UNKNOWN,
                impact=terms.UNKNOWN_IMPACT,
                summary=f"{omitted_pools} worker pools are left out, those that are done first",
                description=f"The report holds at most {terms.MAX_POOLS} worker pools.",
                reference=terms.DOCS + "insightsomitted",
                identity="pools",
            )
        )
    layer_insights, omitted = _layer(
        head,
        pool,
        drafted=drafted,
        findings=findings,
        caps=caps,
        memory=memory,
        max_nodes=min(terms.MAX_CONTROL_PLANE, caps.nodes),
        max_insights=terms.MAX_CONTROL_PLANE,
    )
    if cluster is not None:
        updating = insights.control_plane_updating(cluster)
    elif drafted.updating is not None:
        updating = drafted.updating
    else:
        why = dict(reversed(drafted.unreadable)).get(INPUTS["cluster_version"], "")
        updating = (terms.UPDATING, "Unknown", "CannotDetermineUpdating", f"ClusterVersion could not be read: {why}")
    return ControlPlane(
        resource=terms.cluster_version_ref(cluster.metadata.name) if cluster is not None else drafted.resource,
        pool_resource=pool.ref if pool is not None and cluster is not None else None,
        informers=(Informer(name=terms.INFORMER, insights=layer_insights),),
        omitted=omitted,
        conditions=memory.conditions(memory.conditions_of("control_plane"), updating),
    )


def _worker_pool(pool: PoolState, drafted: Draft, caps: terms.Limits, memory: PreviousStatus) -> WorkerPool:
    """Returns a worker pool's layer, with as many insights as `caps` allow."""
    findings = [finding for finding in drafted.findings if finding.pool == pool.name]
    pool_layer_insights, omitted = _layer(
        [],
        pool,
        drafted=drafted,
        findings=findings,
        caps=caps,
        memory=memory,
        max_nodes=caps.nodes,
        max_insights=terms.MAX_POOL,
    )
    return WorkerPool(
        name=pool.name,
        resource=pool.ref,
        informers=(Informer(name=terms.INFORMER, insights=pool_layer_insights),),
        omitted=omitted,
        conditions=memory.conditions(memory.pool_conditions(pool.name), insights.pool_updating(pool)),
    )


def _layer(
    head: list[Insight],
    pool: PoolState | None,
    drafted: Draft,
    findings: Sequence[Finding],
    caps: terms.Limits,
    memory: PreviousStatus,
    max_nodes: int,
    max_insights: int,
) -> tuple[tuple[Insight, ...], Omitted]:
    """Returns the insights of one layer in order (`head`, the pool, its nodes, health), and the counts of others."""
    bounded = caps != terms.UNBOUNDED
    if len(findings) <= caps.health:
        kept_findings, omitted_findings = list(findings), []
    else:
        ranked = sorted(range(len(findings)), key=lambda i: -terms.LEVELS.index(findings[i].level))
        chosen_findings = set(ranked[: caps.health])
        kept_findings, omitted_findings = (
            [finding for i, finding in enumerate(findings) if i in chosen_findings],
            [finding for i, finding in enumerate(findings) if i not in chosen_findings],
        )
    layer_insights = list(head)
    omitted_nodes = 0
    if pool is not None:
        layer_insights.append(insights.machine_config_pool(pool, memory))
        rows = drafted.rows[pool.name]
        room = (
            max(0, max_insights - len(layer_insights) - len(kept_findings) - bool(omitted_findings))
            if bounded
            else len(rows)
        )
        rows = rows[: min(room, max_nodes)] if bounded else rows
        layer_insights += [insights.node(row, pool, memory, caps.text) for row in rows]
        # Of all nodes of the pool, not only of those that were drafted.
        omitted_nodes = pool.total - len(rows)
    layer_insights += [insights.health(finding, memory, caps.text) for finding in kept_findings]
    if number := len(omitted_findings):
        counts = {
            level: sum(finding.level == level for finding in omitted_findings) for level in reversed(terms.LEVELS)
        }
        listed = ", ".join(f"{of_level} {level}" for level, of_level in counts.items() if of_level)
        worker = pool is not None and not pool.is_control_plane
        of_pool = f" of pool '{pool.name}'" if pool is not None and worker else ""
        findings_omitted = Finding(
            check=MORE,
            level=max((finding.level for finding in omitted_findings), key=terms.LEVELS.index),
            impact=terms.UNKNOWN_IMPACT,
            summary=f"{count(number, 'more insight')}{of_pool} {'is' if number == 1 else 'are'} left out ({listed})",
            description="The report is limited in size; the first of those left out: "
            + "; ".join(finding.summary for finding in omitted_findings[:5]),
            reference=terms.DOCS + "insightsomitted",
            scope=terms.SCOPE_WORKER_POOL if worker else terms.SCOPE_CONTROL_PLANE,
            identity="health",
            pool=pool.name if pool is not None and worker else terms.CONTROL_PLANE,
        )
        layer_insights.append(insights.health(findings_omitted, memory, caps.text))
    return tuple(layer_insights), Omitted(nodes=omitted_nodes, health=len(omitted_findings))


def _own_conditions(
    drafted: Draft, missing: Omitted, pools: int, full_layers: Sequence[str], memory: PreviousStatus
) -> tuple[Condition, ...]:
    """Returns the conditions of the report itself; conditions that other clients set are kept."""
    available: ConditionValues = ("Available", "True", "AsExpected", "")
    if drafted.unreadable:
        message = "; ".join(f"{input_name} could not be read: {why}" for input_name, why in drafted.unreadable)
        available = ("Available", "False", "CannotWatch", cut(message, 4096))
    alerts: ConditionValues = ("AlertsReachable", "True", "AsExpected", "")
    if drafted.alerts_unreadable is not None:
        alerts = ("AlertsReachable", "False", "CannotReadAlerts", cut(drafted.alerts_unreadable, 4096))
    elif not drafted.alerts_asked:
        alerts = ("AlertsReachable", "Unknown", "NotAsked", "Alerts were not asked for")
    # Entries are left out because of the object's size, or because other informers have taken the places.
    complete: ConditionValues = ("Complete", "True", "AsExpected", "")
    counts = ((missing.nodes, "nodes"), (missing.health, "health insights"), (pools, "worker pools"))
    parts = ", ".join(f"{count} {noun}" for count, noun in counts if count)
    if full_layers:
        names = ", ".join(f"pool '{name}'" if name else "the control plane" for name in full_layers)
        message = f"Other informers have taken every place of {names}{f'; left out in all: {parts}' if parts else ''}"
        complete = ("Complete", "False", "InsightsOmitted", cut(message, 4096))
    elif parts:
        complete = ("Complete", "False", "InsightsOmitted", f"Left out to keep the object small: {parts}")
    old = memory.conditions_of()
    own = [available, alerts, complete, *([drafted.hosted_side] if drafted.hosted_side else [])]
    others = without_condition(old, *(type_ for type_, *_ in own))
    return (*memory.conditions(old, *own), *others)


# How often an estimate is computed again while nothing happens.
ESTIMATE_PERIOD_S = 30.0


def assess(
    snapshot: AnySnapshot,
    previous: UpdateStatusStatus | None,
    now: datetime,
    *,
    node_now: datetime | None = None,
    max_bytes: int | None = terms.MAX_BYTES,
    others_pools: frozenset[str] = frozenset(),
    full: frozenset[str] = frozenset(),
    watched: bool = True,
    ahead: bool = False,
) -> UpdateStatusStatus:
    """Returns the status at `now`; equal to `previous` if only time has passed.

    `node_now` is the time by which the unavailability of nodes is computed, if not `now`: `oc` uses the real clock
    there even for its example files. `max_bytes` limits the status as JSON; None leaves nothing out. `others_pools` are
    worker pools in which other informers have entries: they stay, and count. `full` has the names of layers in which
    they have taken every place (CONTROL_PLANE or a pool's), so that our insights are left out there. Without `watched`
    the cluster was not looked at between `previous` and now: what is new has begun at a time that is not known. With
    `ahead`, what would hold an update up is found while none is under way, too.
    """
    memory = PreviousStatus(previous, now.replace(microsecond=0), watched=watched)
    if isinstance(snapshot, Snapshot):
        findings = draft(snapshot, memory, now, node_now or now, ahead=ahead)
    else:
        findings = _draft_of_others(snapshot, memory, now)
    if max_bytes is None:
        return status_of(findings, terms.UNBOUNDED, memory)
    if len({pool.name for pool in findings.pools if not pool.is_control_plane} | others_pools) <= terms.MAX_POOLS:
        pools = terms.MAX_POOLS
    else:
        pools = max(0, terms.MAX_POOLS - len(others_pools))
    sizes = [pool.total for pool in findings.pools]
    if terms.node_step(sizes, max_bytes, terms.LEAST_NODE_BYTES) == terms.LARGEST.nodes:
        status = status_of(findings, replace(terms.LARGEST, pools=pools), memory, full)
        if len(codec.encode(status)) <= max_bytes:
            return status
    for caps in (*_limits_to_try(findings, memory, max_bytes, sizes), *terms.SMALLEST):
        status = status_of(findings, replace(caps, pools=pools), memory, full)
        if len(codec.encode(status)) <= max_bytes:
            break
    return status


def _draft_of_others(snapshot: KubernetesSnapshot | HostedSnapshot, memory: PreviousStatus, now: datetime) -> Draft:
    """Returns what the snapshot of a cluster without a ClusterVersion shows."""
    # Imported here because most readers have a ClusterVersion.
    from runup.updatestatus.decide.hosted.snapshot import HostedSnapshot

    if isinstance(snapshot, HostedSnapshot):
        from runup.updatestatus.decide.hosted.draft import draft as draft_of_hosted

        return draft_of_hosted(snapshot, memory, now)
    from runup.updatestatus.decide.kubernetes.draft import draft as draft_of_kubernetes

    return draft_of_kubernetes(snapshot, memory, now)


def _limits_to_try(drafted: Draft, memory: PreviousStatus, max_bytes: int, sizes: list[int]) -> Iterator[terms.Limits]:
    """Yields the limits to try in turn: with as many nodes as should fit `max_bytes`, then with fewer.

    How many should fit is estimated from the bytes that the first nodes of each pool take.
    """
    none, some_nodes = (replace(terms.FEWER_NODES, nodes=nodes) for nodes in (0, terms.MIN_NODES))
    bare_bytes = len(codec.encode(status_of(drafted, none, memory)))
    sampled_nodes = sum(min(size, terms.MIN_NODES) for size in sizes) or 1
    node_bytes = max(1.0, (len(codec.encode(status_of(drafted, some_nodes, memory))) - bare_bytes) / sampled_nodes)
    first = terms.node_step(sizes, max_bytes - bare_bytes, node_bytes)
    yield from (replace(terms.FEWER_NODES, nodes=step) for step in terms.NODE_STEPS if step <= first)


def next_change_s(snapshot: AnySnapshot, now: datetime) -> float | None:
    """Returns the seconds until the assessment changes by time alone: an age passes a threshold, or an estimate is due.

    Returns None if only a changed object can alter it.
    """
    if not isinstance(snapshot, Snapshot):
        return ESTIMATE_PERIOD_S
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
