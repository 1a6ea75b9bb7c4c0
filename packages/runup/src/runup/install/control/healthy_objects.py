"""Waits until installed objects are healthy, by the rules by which the operator judges those of a release."""

from __future__ import annotations

from typing import Any

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.scheme import Resource
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from runup.api.owned_v1 import OwnedWorkload
from runup.applying.decide import workload_health
from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task import Task
from runup.install.control.sets import InstallError, ObjectSets
from runup.install.decide.objects import Objects, identity_of
from runup.release.decide.manifest import Manifest

JSON = dict[str, Any]
POD = Resource("", "v1", "Pod", "pods", namespaced=True)
POLL_S = 1.0


def wait(client: SyncClient, sets: ObjectSets, clock: Clock, objects: Objects, timeout_s: float) -> None:
    """Waits until each workload and definition of `objects` is healthy.

    Raises InstallError, which says what is waited for, after `timeout_s`; and KubeError.
    """
    deadline = clock.monotonic() + timeout_s
    tasks = [Task(Manifest.of("", identity_of(obj), obj), index, len(objects)) for index, obj in enumerate(objects, 1)]
    waiting = [task for task in tasks if task.kind in workload_health.KINDS]
    while waiting:
        problems = {task: problem for task in waiting if (problem := _why_unhealthy(sets, task))}
        if not problems:
            return
        if clock.monotonic() >= deadline:
            first, problem = next(iter(problems.items()))
            raise InstallError(f"after {timeout_s:g} s: {problem}{_pods(client, first)}")
        waiting = list(problems)
        clock.pause(POLL_S)


def _why_unhealthy(sets: ObjectSets, task: Task) -> str:
    """Returns what a workload of the set still waits for, empty if nothing."""
    stored_object = sets.read(task.identity)
    owned = codec.convert(OwnedWorkload, stored_object) if stored_object is not None else None
    problem = workload_health.problem_of(task, owned, ApplyReason.UPDATING) or workload_health.unfinished_rollout(
        task, owned
    )
    if problem is not None:
        return problem.message
    if task.kind == workload_health.DEPLOYMENT and owned is not None and owned.status is not None:
        # A release goes on while a pod starts; who types --wait wants it ready.
        available = find(owned.status.conditions, "Available")
        if available is None or available.status != "True":
            return f"waiting on {task.identity}, which is not available"
    return ""


def _pods(client: SyncClient, task: Task) -> str:
    """Returns what the pods of a Deployment that does not become available say, to go on from."""
    if task.kind != workload_health.DEPLOYMENT:
        return ""
    labels = task.manifest.object["spec"]["selector"]["matchLabels"]
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    pods = client.listing_raw(POD, task.identity.namespace, label_selector=selector).items
    return "".join(f"\npod {pod['metadata']['name']}: {words}" for pod in pods if (words := _reason_of_pod(pod)))


def _last_end(container: JSON) -> str:
    """Returns in words how the container's program last ended, with the last line of its message; "" if it has not."""
    ended = (container.get("lastState") or {}).get("terminated") or {}
    lines = str(ended.get("message", "")).strip().splitlines()
    last_line = f": {lines[-1]}" if lines else ""
    return f"; it ended with code {ended.get('exitCode', 'unknown')}{last_line}" if ended else ""


def _reason_of_pod(pod: JSON) -> str:
    """Returns why a pod is not ready, by its containers' states or its conditions."""
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            if reason := (state or {}).get("reason"):
                return f"{reason}: {state.get('message', '')}".rstrip(": ") + _last_end(container)
    unmet = [
        condition
        for condition in status.get("conditions") or ()
        if condition.get("status") == "False" and condition.get("message")
    ]
    return f"{unmet[0].get('reason', '')}: {unmet[0]['message']}" if unmet else str(status.get("phase", ""))
