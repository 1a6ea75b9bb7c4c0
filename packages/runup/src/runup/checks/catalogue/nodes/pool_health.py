"""Pools that are degraded, or whose machines are still on their way to the pool's newest configuration.

The meaning of the conditions is that of the machine-config operator's status.go: a paused pool that is behind has
Updated=False and Updating=False, and does not move; the check of paused pools speaks of it. A pool without machines is
never behind, but can be degraded (its configuration could not be rendered). A degraded pool does not finish by itself,
so the finding advises nobody to wait for one."""

from __future__ import annotations

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import count
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.nodes.shared.pools import READS, all_pools, is_degraded
from runup.checks.catalogue.nodes.shared.pools import machines_behind_text as behind_text
from runup.checks.decide.model import Applies, Context, Finding, Snapshot
from runup.checks.writing import DEGRADED_PATIENCE, Findings, cause, condition_text, declared, risk, severity_after
from runup.rules.machine_config import degradations, degraded_conditions

DEGRADED = "MachineConfigPoolDegraded"
UPDATING = "MachineConfigPoolUpdating"
# Conditions whose reasons name their subject; other conditions are named.
_COMMON = ("NodeDegraded", "RenderDegraded", "Degraded")


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of each pool that is degraded, or is being updated."""
    for pool in all_pools(snapshot):
        yield from _degraded_findings(pool, context)
        yield from _updating_findings(pool)


def _degraded_findings(pool: MachineConfigPool, context: Context) -> Findings:
    """Yields the finding that a pool is degraded, or that it is not known."""
    name, status = pool.metadata.name, pool.status
    conditions = degraded_conditions(pool)
    degraded = degradations(pool)
    undecided = [condition for condition in conditions if condition.status == "Unknown"]
    machines = f" ({status.degraded_machine_count} of {count(status.machine_count, 'machine')})"
    machines_text = machines if status.degraded_machine_count else ""
    fix = f"Repair what `oc describe mcp {name}` names; an update cannot finish on a degraded pool."
    if degraded:
        first, *others = degraded
        more = [each for each in others if cause(each) not in (cause(first), "")]
        kind = "" if first.type in _COMMON else f": {first.type}"
        causes = kind + condition_text(first) + "".join(f" {each.type}{condition_text(each)}" for each in more)
        since = first.last_transition_time
        yield risk(
            f"{DEGRADED}-{name}",
            f"Machine config pool {name} is degraded{machines_text}{causes}",
            [pool],
            severity=severity_after(since, context.now, patience=DEGRADED_PATIENCE, before="warning", after="critical"),
            fix=fix,
            reason="PoolDegraded",
        )
    elif status.degraded_machine_count:
        # The condition follows the count within seconds, so the machine became degraded just now.
        message = f"Machine config pool {name} has degraded machines{machines_text}."
        yield risk(f"{DEGRADED}-{name}", message, [pool], fix=fix, reason="PoolDegraded")
    elif undecided:
        yield _unknown_finding(DEGRADED, pool, _unknown_words(undecided[0]))
    elif not conditions and status.machine_count:
        yield _unknown_finding(DEGRADED, pool, "does not report whether it is degraded.")


def _updating_findings(pool: MachineConfigPool) -> Findings:
    """Yields the finding that a pool is being updated or has nodes that still wait for it, or that it is not known."""
    name, status = pool.metadata.name, pool.status
    updating = find(status.conditions, "Updating")
    late = behind_text(pool)
    moving = updating is not None and updating.status == "True"
    # A paused pool is behind on purpose, which the check MachineConfigPoolPaused reports.
    if not status.machine_count or (pool.spec.paused and not moving):
        return
    if moving or late or status_of(status.conditions, "Updated") == "False":
        late_text = f", {late} still to come" if late else ""
        words = condition_text(updating) if updating is not None and moving else "."
        state = "is being updated" if moving else "is behind its newest configuration"
        fix = f"Wait until `oc get mcp {name}` says UPDATED=True."
        if is_degraded(pool):
            fix = f"It does not finish while it is degraded: repair what `oc describe mcp {name}` names."
        message = f"Machine config pool {name} {state}{late_text}{words}"
        yield risk(f"{UPDATING}-{name}", message, [pool], fix=fix, reason="PoolUpdating")
    elif updating is None:
        yield _unknown_finding(UPDATING, pool, "does not report whether it is being updated.")
    elif updating.status == "Unknown":
        yield _unknown_finding(UPDATING, pool, _unknown_words(updating))


def _unknown_words(condition: Condition) -> str:
    return f"reports {condition.type}=Unknown{condition_text(condition)}"


def _unknown_finding(name: str, pool: MachineConfigPool, words: str) -> Finding:
    """Returns the finding, under the risk `name`, that the state of a pool is not known."""
    pool_name = pool.metadata.name
    return risk(
        f"{name}-{pool_name}",
        f"Machine config pool {pool_name} {words}",
        [pool],
        fix=f"See with `oc describe mcp {pool_name}` whether the machine-config operator runs; it writes that status.",
        reason="PoolDegraded" if name == DEGRADED else "PoolUpdating",
        applies=Applies.UNKNOWN,
    )


CHECK = declared(
    run, "MachineConfigPoolHealth", "machine-config", reads=READS, by_hand=True, rank=80, severity="critical"
)
