"""Writes the status of components that do not run on a copy: operators, roll-outs and Jobs report that they are done.

A ClusterOperator that was declared stuck (`--operators stuck:NAME`) keeps its status. Whether a component
would really come up is not rehearsed, and the report says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubesandbox.apiserver.metadata import rfc3339
from runup.applying.decide.health import CLUSTER_OPERATOR, DAEMON_SET, DEPLOYMENT, JOB, wants_versions
from runup.applying.decide.task import Task
from runup.rehearse.control.cluster_copy import ClusterCopy

JSON = dict[str, Any]
MANAGER = "runup-rehearse"
STUCK = "stuck:"


class StandIns:
    """The stand-ins of one rehearsal; `stuck` are the ClusterOperators that report nothing new."""

    def __init__(self, copied: ClusterCopy, client: Client, clock: Clock, stuck: Collection[str]) -> None:
        self._copied, self._client, self._clock = copied, client, clock
        self._stuck = frozenset(stuck)

    def is_stuck(self, task: Task) -> bool:
        """Returns whether the object of `task` was declared stuck."""
        return task.kind == CLUSTER_OPERATOR and task.identity.name in self._stuck

    async def write_status_for(self, task: Task) -> None:
        """Writes the status that the object's component would write once the update has reached it. Raises KubeError.

        Does nothing for objects that were declared stuck, and for kinds without a status to wait for.
        """
        obj = self._copied.get(task.identity)
        kind = self._copied.kind_of(*task.kind)
        if obj is None or kind is None or self.is_stuck(task):
            return
        status = self._status_when_done(task, obj)
        if status is None:
            return
        resource = Resource(kind.group, kind.version, kind.kind, kind.plural, kind.namespaced)
        name, namespace = task.identity.name, task.identity.namespace
        patch = {"status": status}
        await self._client.send(
            calls.merge_patch(resource, name, patch, namespace, subresource="status", field_manager=MANAGER)
        )

    def _status_when_done(self, task: Task, obj: JSON) -> JSON | None:
        """Returns the status, as a merge patch; None for a kind that no operator waits for."""
        now = rfc3339(self._clock.now())
        generation = (obj.get("metadata") or {}).get("generation", 1)
        if task.kind == CLUSTER_OPERATOR:
            versions = [
                {"name": operand.name, "version": operand.version} for operand in wants_versions(task.manifest.object)
            ]
            states = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}
            return {"versions": versions, "conditions": _conditions(states, now)}
        if task.kind == DEPLOYMENT:
            replicas = (obj.get("spec") or {}).get("replicas", 1)
            numbers = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
            conditions = _conditions({"Available": "True", "Progressing": "True"}, now)
            return {"observedGeneration": generation, **numbers, "conditions": conditions}
        if task.kind == DAEMON_SET:
            status = obj.get("status") or {}
            replicas = status.get("desiredNumberScheduled", 0)
            names = ("currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
            return {"observedGeneration": generation, **dict.fromkeys(names, replicas), "numberUnavailable": 0}
        if task.kind == JOB:
            # A server from 1.31 on takes no Job as complete without its times and the condition before.
            conditions = _conditions({"SuccessCriteriaMet": "True", "Complete": "True"}, now)
            return {"succeeded": 1, "startTime": now, "completionTime": now, "conditions": conditions}
        return None


def _conditions(states: dict[str, str], now: str) -> list[JSON]:
    return [
        {"type": type_, "status": status, "reason": "AsExpected", "message": "", "lastTransitionTime": now}
        for type_, status in states.items()
    ]


def stuck_operators(declared: Collection[str]) -> tuple[str, ...]:
    """Returns the names in `stuck:NAME` words. Raises ValueError for another word."""
    names = []
    for text in declared:
        if not text.startswith(STUCK) or not text.removeprefix(STUCK):
            raise ValueError(text)
        names.append(text.removeprefix(STUCK))
    return tuple(names)
