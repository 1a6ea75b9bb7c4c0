"""Computes the critical path of a simulated drain: the nodes that waited for one another until the last was back."""

from __future__ import annotations

from collections.abc import Sequence

from runup.rehearse.decide.drains.drain_result import NodeDrain, PathStep


def critical_path(nodes: Sequence[NodeDrain]) -> tuple[PathStep, ...]:
    """Returns the steps that decided how long everything took, the first one first."""
    by_name = {node.node: node for node in nodes}
    steps: list[PathStep] = []
    last = max(nodes, key=_end_s, default=None)
    while last is not None:
        if last.back_s is not None:
            steps.append(PathStep(last.drained_s, last.back_s, f"update of {last.node}"))
        steps.append(PathStep(last.from_s, last.drained_s, f"drain of {last.node}", last.last))
        before = by_name.get(last.after) or _last_of_pool_before(nodes, last)
        if before is not None and _end_s(before) < last.from_s:
            steps.append(PathStep(_end_s(before), last.from_s, "wait for the window"))
        if before is None and last.from_s:
            steps.append(PathStep(0, last.from_s, "wait for the window"))
        last = before
    return tuple(step for step in reversed(steps) if step.to_s > step.from_s)


def _end_s(node: NodeDrain) -> int:
    return node.drained_s if node.back_s is None else node.back_s


def _last_of_pool_before(nodes: Sequence[NodeDrain], first: NodeDrain) -> NodeDrain | None:
    """Returns the node of another pool that this first node of its pool waited for."""
    if not first.from_s:
        return None
    earlier = (node for node in nodes if node.pool != first.pool and _end_s(node) <= first.from_s)
    return max(earlier, key=_end_s, default=None)
