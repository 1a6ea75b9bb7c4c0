"""Computes the critical path of a simulated drain: the nodes that waited for one another until the last was back."""

from __future__ import annotations

from collections.abc import Sequence

from runup.rehearse.decide.drains.drain_result import NodeDrain, PathStep


def critical_path(nodes: Sequence[NodeDrain]) -> tuple[PathStep, ...]:
    """Returns the steps that decided how long everything took, the first one first."""
    by_name = {node.node: node for node in nodes}
    steps: list[PathStep] = []
    last_drain = max(nodes, key=_end_s, default=None)
    while last_drain is not None:
        if last_drain.back_s is not None:
            steps.append(PathStep(last_drain.drained_s, last_drain.back_s, f"update of {last_drain.node}"))
        steps.append(PathStep(last_drain.from_s, last_drain.drained_s, f"drain of {last_drain.node}", last_drain.last))
        previous_drain = by_name.get(last_drain.after) or _last_drain_of_pool_before(nodes, last_drain)
        if previous_drain is not None and _end_s(previous_drain) < last_drain.from_s:
            steps.append(PathStep(_end_s(previous_drain), last_drain.from_s, "wait for the window"))
        if previous_drain is None and last_drain.from_s:
            steps.append(PathStep(0, last_drain.from_s, "wait for the window"))
        last_drain = previous_drain
    return tuple(step for step in reversed(steps) if step.to_s > step.from_s)


def _end_s(node: NodeDrain) -> int:
    return node.drained_s if node.back_s is None else node.back_s


def _last_drain_of_pool_before(nodes: Sequence[NodeDrain], drain: NodeDrain) -> NodeDrain | None:
    """Returns the node of another pool that this first node of its pool waited for."""
    if not drain.from_s:
        return None
    earlier_drains = (node for node in nodes if node.pool != drain.pool and _end_s(node) <= drain.from_s)
    return max(earlier_drains, key=_end_s, default=None)
