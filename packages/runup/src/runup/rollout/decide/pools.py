"""Decides which MachineConfigPools a run pauses and resumes, and which of them are updated. Pure.

A pool is the run's own if it has the annotation with the UID of the run, which is written in the same patch as the
pause. The pool is listed in the status of the run before it is paused. Every other pause is a person's, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.lang.text import shorten
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import PAUSED_BY, PausedPool, UpdateRun, UpdateRunStatus
from runup.rollout.decide.durations import parse
from runup.rules.machine_config import CONTROL_PLANE_POOL, degradations

# ClusterVersion completes an update only after the machines of these pools have been updated
# (machine-config-operator, `pkg/operator/sync.go`, syncRequiredMachineConfigPools).
CONTROL_PLANE_POOLS = frozenset({CONTROL_PLANE_POOL, "arbiter"})
DEGRADED_FOR = timedelta(minutes=30)
_RISK = "MachineConfigPoolPaused"
_MAX_NAMED = 5

Pools = Sequence[MachineConfigPool] | str
"""The pools of a cluster; or a text, the reason why they are not known."""


def risk_of(pool: str) -> str:
    """Returns the name of the risk by which a preflight reports that a pool is paused."""
    return f"{_RISK}-{pool}"


def is_marked(pool: MachineConfigPool, run: UpdateRun) -> bool:
    """Reports whether the annotation of a pool names the run."""
    return bool(run.metadata.uid) and pool.metadata.annotations.get(PAUSED_BY) == run.metadata.uid


def is_paused_by(pool: MachineConfigPool, run: UpdateRun) -> bool:
    """Reports whether the run keeps a pool paused: its status lists the pool, and the annotation names the run."""
    listed = any(each.name == pool.metadata.name for each in run.status.paused_pools)
    return listed and pool.spec.paused and is_marked(pool, run)


def own_pauses(run: UpdateRun, pools: Pools) -> dict[str, datetime]:
    """Returns the pools that the run keeps paused, and since when."""
    since = {each.name: each.since for each in run.status.paused_pools}
    if isinstance(pools, str):
        return {}
    return {pool.metadata.name: since[pool.metadata.name] for pool in pools if is_paused_by(pool, run)}


def pools_to_pause(run: UpdateRun, pools: Pools) -> tuple[MachineConfigPool, ...]:
    """Returns the worker pools with machines that the run must pause before it starts.

    A pool that somebody resumed keeps the annotation, and is not paused again. Other updaters than ClusterVersion's do
    not wait for pauses.
    """
    if run.spec.pools.when == "Together" or run.spec.actuator != "ClusterVersion" or isinstance(pools, str):
        return ()
    return tuple(pool for pool in _worker_pools(run, pools) if not pool.spec.paused and not is_marked(pool, run))


def with_listed(status: UpdateRunStatus, pools: Iterable[MachineConfigPool], now: datetime) -> UpdateRunStatus:
    """Returns the status that lists these pools, each with the version on which its pause is written."""
    entries = {each.name: each for each in status.paused_pools}
    for pool in pools:
        name, version = pool.metadata.name, pool.metadata.resource_version
        if name not in entries or entries[name].resource_version != version:
            entries[name] = PausedPool(name=name, since=now, resource_version=version)
    return replace(status, paused_pools=tuple(entries.values()))


def marked_pools(run: UpdateRun, pools: Sequence[MachineConfigPool]) -> tuple[str, ...]:
    """Returns the listed pools that have the run's annotation, whether they are paused or not."""
    listed = {each.name for each in run.status.paused_pools}
    return tuple(p.metadata.name for p in pools if p.metadata.name in listed and is_marked(p, run))


def unsettled_pools(run: UpdateRun, pools: Sequence[MachineConfigPool]) -> tuple[str, ...]:
    """Returns the listed pools whose pause may still be on its way: they have not changed since they were listed."""
    versions = {each.name: each.resource_version for each in run.status.paused_pools}
    return tuple(
        pool.metadata.name for pool in pools if versions.get(pool.metadata.name) == pool.metadata.resource_version
    )


def is_updated(pool: MachineConfigPool) -> bool:
    """Reports whether all machines of a pool have the configuration that the pool should have."""
    spec, status = pool.spec.configuration.name, pool.status.configuration.name
    return (
        status_of(pool.status.conditions, "Updated") == "True"
        and spec == status
        and pool.status.observed_generation >= (pool.metadata.generation or 0)
    )


def after_control_plane(run: UpdateRun, pools: Sequence[MachineConfigPool], now: datetime) -> UpdateRunStatus:
    """Returns the run's status with the pools that were resumed and updated, as the cluster shows them."""
    by_name = {pool.metadata.name: pool for pool in pools}
    entries = []
    for each in run.status.paused_pools:
        pool = by_name.get(each.name)
        if pool is None or not pool.spec.paused:
            # A pool that does not exist any more has no machine to update.
            updated = each.updated or (now if pool is None or is_updated(pool) else None)
            each = replace(each, resumed=each.resumed or now, updated=updated)
        entries.append(each)
    return replace(run.status, paused_pools=tuple(entries))


def pools_behind(run: UpdateRun, pools: Sequence[MachineConfigPool]) -> tuple[MachineConfigPool, ...]:
    """Returns the worker pools that are being updated: neither paused nor complete."""
    return tuple(pool for pool in _worker_pools(run, pools) if not pool.spec.paused and not is_updated(pool))


def failure_of(run: UpdateRun, behind: Iterable[MachineConfigPool], now: datetime) -> tuple[str, str] | None:
    """Returns the reason and the message if a pool that is being updated has failed, else None."""
    deadline = parse(run.spec.pools.deadline, "spec.pools.deadline")
    resumed = {each.name: each.resumed for each in run.status.paused_pools}
    for pool in behind:
        name = pool.metadata.name
        begun = resumed.get(name) or run.status.completed
        if begun is None:
            continue
        degraded = find(pool.status.conditions, "Degraded")
        if degraded is not None and degraded.status == "True":
            since = max(begun, degraded.last_transition_time or begun)
            if now >= since + DEGRADED_FOR:
                why = next((each.message for each in degradations(pool) if each.message), degraded.reason)
                return "PoolDegraded", f"Pool {name} is degraded: {shorten(why, 300)}."
        if now >= begun + deadline:
            return "PoolsDeadline", f"Pool {name} is not updated {run.spec.pools.deadline} after its update began."
    return None


def next_pools(run: UpdateRun, pools: Sequence[MachineConfigPool]) -> tuple[str, ...]:
    """Returns the run's paused pools of which the first one with open gates is resumed.

    Named pools come first, and each of them must be resumed before the next pool is.
    """
    paused = sorted(pool.metadata.name for pool in pools if is_paused_by(pool, run))
    named = [name for name in run.spec.pools.names if name in paused]
    return (named[0],) if named else tuple(paused)


def with_resumed(status: UpdateRunStatus, name: str, when: datetime | None) -> UpdateRunStatus:
    """Returns the status in which a pool is resumed at that time; None: it is not."""
    entries = (replace(each, resumed=when) if each.name == name else each for each in status.paused_pools)
    return replace(status, paused_pools=tuple(entries))


def left_text(run: UpdateRun, pools: Pools) -> str:
    """Returns sentences about the pools that stay paused, and how to resume those of the run; empty without any."""
    if isinstance(pools, str):
        listed = ", ".join(each.name for each in run.status.paused_pools if each.updated is None)
        return f"Could not determine whether pools are paused ({pools}): {listed}." if listed else ""
    own = sorted(pool.metadata.name for pool in pools if is_paused_by(pool, run))
    others = sorted(p.metadata.name for p in pools if p.spec.paused and p.metadata.name not in own)
    texts = []
    if own:
        patch = f'{{"metadata":{{"annotations":{{"{PAUSED_BY}":null}}}},"spec":{{"paused":false}}}}'
        texts.append(
            f"This run leaves {_names(own)} paused: `oc patch mcp NAME --type merge -p '{patch}'` resumes a pool."
        )
    if others:
        texts.append(f"Somebody else paused {_names(others)}: not updated.")
    return " ".join(texts)


def overdue_pools(run: UpdateRun, own: Mapping[str, datetime], now: datetime) -> tuple[str, ...]:
    """Returns the run's pools that have been paused for longer than the policy wants."""
    most = parse(run.spec.pools.max_paused, "spec.pools.maxPaused")
    return tuple(sorted(name for name, since in own.items() if now >= since + most))


def _worker_pools(run: UpdateRun, pools: Iterable[MachineConfigPool]) -> list[MachineConfigPool]:
    """Returns the pools with machines that are neither of the control plane nor skipped by the run."""
    skipped = CONTROL_PLANE_POOLS | set(run.spec.skip_pools)
    return [pool for pool in pools if pool.metadata.name not in skipped and pool.status.machine_count]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"pool{'s' if len(names) > 1 else ''} {', '.join(names[:_MAX_NAMED])}{more}"
