"""Finds when an update cordoned, drained, updated and rebooted each node, and when the node was ready again. Pure.

The times are those of events about nodes, which an API server keeps for one hour by default (kube-apiserver,
`--event-ttl`), and the time of a node's taint for the cordon. A step without a record is unknown, not absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kubekit.api.core_v1 import Event
from runup.rules.node_events import CORDON, READY, STEP_OF_REASON, STEPS, is_of_node_step

Steps = Mapping[str, datetime]


def steps_of_nodes(
    events: Iterable[Event], cordoned: Mapping[str, datetime], started: datetime, now: datetime
) -> dict[str, Steps]:
    """Returns the recorded times of each node's steps since the update `started`; steps without a record are missing.

    `cordoned` has the times of the taint that a cordon adds. A step counts from its first record, the last step (ready)
    from its latest one, and only after the steps before it: a node may have become ready for another reason.
    """
    seen: dict[str, dict[str, list[datetime]]] = {}
    for name, at in cordoned.items():
        seen.setdefault(name, {}).setdefault(CORDON, []).append(at)
    for event in events:
        about, seen_at = event.involved_object, event.seen_at
        if seen_at is not None and is_of_node_step(about.kind, event.reason):
            seen.setdefault(about.name, {}).setdefault(STEP_OF_REASON[event.reason], []).append(seen_at)
    return {name: _in_order(times, started, now) for name, times in seen.items()}


def _in_order(seen: Mapping[str, list[datetime]], started: datetime, now: datetime) -> Steps:
    steps: dict[str, datetime] = {}
    for step in STEPS:
        after = max(steps.values(), default=started)
        times = [at for at in seen.get(step, ()) if after <= at <= now]
        # A node that is ready again was away before; without a record of that it may never have been.
        if times and (step != READY or steps):
            steps[step] = max(times) if step == READY else min(times)
    return steps
