"""Pools that are degraded, or whose machines are still on their way to the pool's newest configuration.

The meaning of the conditions is that of the machine-config operator's status.go: a paused pool that is behind has
Updated=False and Updating=False, and does not move; the check of paused pools speaks of it. A pool without machines is
never behind, but can be degraded (its configuration could not be rendered). A degraded pool does not finish by itself,
so nobody is told to wait for one.
"""

from __future__ import annotations

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.checks.catalogue.nodes.shared.pools import (
    DEGRADED_TYPES,
    READS,
    all_pools,
    is_degraded,
    machines_behind_text,
)
from runup.checks.decide.wording import DEGRADED_PATIENCE, cause, condition_text, severity_after
from runup.checks.writing import Applies, Context, Finding, Findings, Snapshot, count, declared, refer
from runup.report.report import Severity

DEGRADED = "MachineConfigPoolDegraded"
UPDATING = "MachineConfigPoolUpdating"


def run(snapshot: Snapshot, context: Context) -> Findings:
    for pool in all_pools(snapshot):
        name, status = pool.metadata.name, pool.status
        conditions = [condition for type_ in DEGRADED_TYPES if (condition := find(status.conditions, type_))]
        degraded = [condition for condition in conditions if condition.status == "True"]
        unknown = [condition for condition in conditions if condition.status == "Unknown"]
        machines = f" ({status.degraded_machine_count} of {count(status.machine_count, 'machine')})"
        machines_text = machines if status.degraded_machine_count else ""
        if degraded:
            severity = severity_after(
                degraded[0].last_transition_time,
                context.now,
                patience=DEGRADED_PATIENCE,
                before="warning",
                after="critical",
            )
            # Degraded itself is the sum of the others, and no cause (machine-config-operator,
            # pkg/controller/node/status.go).
            first, *other_conditions = degraded
            causes = {cause(first), ""}
            more = [
                condition
                for condition in other_conditions
                if condition.type != "Degraded" and cause(condition) not in causes
            ]
            degraded_causes = condition_text(first) + "".join(
                f" {condition.type}{condition_text(condition)}" for condition in more
            )
            yield _pool_finding(
                DEGRADED, pool, f"Machine config pool {name} is degraded{machines_text}{degraded_causes}", severity
            )
        elif status.degraded_machine_count:
            # The condition follows the count within seconds, so the machine became degraded just now.
            yield _pool_finding(DEGRADED, pool, f"Machine config pool {name} has degraded machines{machines_text}.")
        elif unknown:
            yield _pool_finding(DEGRADED, pool, _unknown_words(pool, unknown[0]), applies=Applies.UNKNOWN)
        elif not conditions and status.machine_count:
            message = f"Machine config pool {name} does not report whether it is degraded."
            yield _pool_finding(DEGRADED, pool, message, applies=Applies.UNKNOWN)
        yield from _updating_findings(pool)


def _updating_findings(pool: MachineConfigPool) -> Findings:
    """Yields the finding that a pool is being updated or has Nodes that still wait for it."""
    name, status = pool.metadata.name, pool.status
    updating = find(status.conditions, "Updating")
    late = machines_behind_text(pool)
    moving = updating is not None and updating.status == "True"
    # A paused pool is behind on purpose, which the check MachineConfigPoolPaused reports.
    if not status.machine_count or (pool.spec.paused and not moving):
        return
    if moving or late or status_of(status.conditions, "Updated") == "False":
        late_text = f", {late} still to come" if late else ""
        words = condition_text(updating) if updating is not None and moving else "."
        state = "is being updated" if moving else "is behind its newest configuration"
        yield _pool_finding(UPDATING, pool, f"Machine config pool {name} {state}{late_text}{words}")
    elif updating is None:
        message = f"Machine config pool {name} does not report whether it is being updated."
        yield _pool_finding(UPDATING, pool, message, applies=Applies.UNKNOWN)
    elif updating.status == "Unknown":
        yield _pool_finding(UPDATING, pool, _unknown_words(pool, updating), applies=Applies.UNKNOWN)


def _unknown_words(pool: MachineConfigPool, condition: Condition) -> str:
    name = pool.metadata.name
    return f"Machine config pool {name} reports {condition.type}=Unknown{condition_text(condition)}"


def _pool_finding(
    risk: str,
    pool: MachineConfigPool,
    message: str,
    severity: Severity = "warning",
    *,
    applies: Applies = Applies.YES,
) -> Finding:
    """Returns a finding about `pool`, named after it."""
    name = pool.metadata.name
    degraded = risk == DEGRADED
    if applies is Applies.UNKNOWN:
        fix = f"See with `oc describe mcp {name}` whether the machine-config operator runs; it writes that status."
    elif degraded:
        fix = f"Repair what `oc describe mcp {name}` names; an update cannot finish on a degraded pool."
    elif is_degraded(pool):
        fix = f"It does not finish while it is degraded: repair what `oc describe mcp {name}` names."
    else:
        fix = f"Wait until `oc get mcp {name}` says UPDATED=True."
    return Finding(
        name=f"{risk}-{name}",
        message=message,
        applies=applies,
        reason="PoolDegraded" if degraded else "PoolUpdating",
        severity=severity,
        resources=(refer(pool),),
        remediation=fix,
    )


CHECK = declared(
    run, "MachineConfigPoolHealth", "machine-config", reads=READS, by_hand=True, rank=80, severity="critical"
)
