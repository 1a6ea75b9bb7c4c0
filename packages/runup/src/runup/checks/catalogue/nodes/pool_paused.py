"""Pools that are paused: their machines stay on the old release, and on old certificates, until somebody resumes them.

A pool without machines holds nothing back, and is no finding.
"""

from __future__ import annotations

from runup.checks.catalogue.nodes.shared.pools import READS, all_pools, machines_behind_text
from runup.checks.writing import Context, Findings, Snapshot, count, declared, risk
from runup.rules.holders import pause_holder

NAME = "MachineConfigPoolPaused"


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each paused machine config pool that has machines."""
    for pool in all_pools(snapshot):
        machines = pool.status.machine_count
        if not pool.spec.paused or not machines:
            continue
        name = pool.metadata.name
        late = machines_behind_text(pool)
        holder = pause_holder(pool)
        by = f" by {holder.name}" if holder else ""
        already = f" Already behind its newest configuration: {late}." if late else ""
        yield risk(
            f"{NAME}-{name}",
            f"Machine config pool {name} is paused{by}: its {count(machines, 'machine')} will not be updated to "
            f"{context.target}.{already}",
            [pool],
            reason="PoolPaused",
            fix=holder.remedy
            if holder
            else f'Resume it: `oc patch mcp/{name} --type=merge -p \'{{"spec":{{"paused":false}}}}\'`.',
        )


CHECK = declared(run, NAME, "machine-config", reads=READS, by_hand=True, rank=70)
