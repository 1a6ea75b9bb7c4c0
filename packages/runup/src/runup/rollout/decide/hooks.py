"""Decides how the runtime extension of Cluster API answers: whether the gates of an update run are open. Pure.

Cluster API calls a hook before it begins an update, before each version of the control plane, and before each version
of the workers. It calls again after `retryAfterSeconds`; 0 lets it continue. Source:
https://pkg.go.dev/sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.conditions import find
from kubekit.lang.text import cut, printable
from kubekit.rules.version_skew import version_of
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.rollout.decide.plain_cluster import is_at
from runup.rollout.decide.run_steps import FINISHED, GATES_OPEN

API = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
HOOKS = ("BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "BeforeWorkersUpgrade")
RETRY_S = 60
# Cluster API waits for this long; an answer needs no request, so it takes less.
TIMEOUT_S = 5
_MAX_MESSAGE = 1024


class HookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a hook: the Cluster, and the version of the next step."""

    hook: str
    namespace: str
    name: str
    version: str


class KnownRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs in memory, the oldest first. `problem` says why they may not be those of the cluster any more."""

    runs: tuple[UpdateRun, ...] = ()
    problem: str = ""


def read_request(hook: str, body: Any) -> HookRequest | str:
    """Returns the request in the body of a call, or why it is not one."""
    if hook not in HOOKS:
        return f"{hook} is not one of {', '.join(HOOKS)}"
    if not isinstance(body, dict) or body.get("kind") != f"{hook}Request" or body.get("apiVersion") != API:
        return f"give a {hook}Request of {API}"
    metadata = body.get("cluster", {}).get("metadata") if isinstance(body.get("cluster"), dict) else None
    version = body.get("toKubernetesVersion")
    if hook == "BeforeClusterUpgrade":
        # The call names the last version. The first step is that of the first version of the control plane.
        steps = body.get("controlPlaneUpgrades")
        first = steps[0] if isinstance(steps, list) and steps else None
        version = first.get("version") if isinstance(first, dict) else version
    if not isinstance(metadata, dict) or not isinstance(version, str) or version_of(version) is None:
        return "the request must have cluster.metadata and a version of Kubernetes"
    namespace, name = metadata.get("namespace"), metadata.get("name")
    if not isinstance(namespace, str) or not isinstance(name, str):
        return "the request must have the namespace and the name of the Cluster"
    return HookRequest(hook=hook, namespace=namespace, name=name, version=version)


def discovery() -> dict[str, Any]:
    """Returns the handlers. A hook that is not answered stops the update (`failurePolicy: Fail`)."""
    handlers = [
        {
            "name": f"gate-{hook.lower()}",
            "requestHook": {"apiVersion": API, "hook": hook},
            "timeoutSeconds": TIMEOUT_S,
            "failurePolicy": "Fail",
        }
        for hook in HOOKS
    ]
    return {"apiVersion": API, "kind": "DiscoveryResponse", "status": "Success", "handlers": handlers}


def answer(request: HookRequest, known: KnownRuns, served: tuple[str, str], now: datetime) -> dict[str, Any]:
    """Returns the answer of a hook: Success with 0 seconds if the gates are open, otherwise with the reason.

    `served` are the namespace and the name of the Cluster whose runs are known.
    """
    why = why_closed(request, known, served, now)
    message = cut(printable(why or f"The gates of the update to {request.version} are open."), _MAX_MESSAGE)
    return {
        "apiVersion": API,
        "kind": f"{request.hook}Response",
        "status": "Success",
        "retryAfterSeconds": RETRY_S if why else 0,
        "message": message,
    }


def why_closed(request: HookRequest, known: KnownRuns, served: tuple[str, str], now: datetime) -> str:
    """Returns why a step must not begin; empty if its gates are open.

    A run that has begun keeps its gate open, also while the API server does not answer, because nodes would otherwise
    wait in the middle of an update. Before that, what is in memory must be current, and so must the gates: their
    `until` ends them if no controller evaluates them again.
    """
    if (request.namespace, request.name) != served:
        return f"This gate is for Cluster {served[0]}/{served[1]}; exclude others by the namespaceSelector."
    run = run_for(request.version, known.runs)
    if run is None:
        unknown = f" ({known.problem})" if known.problem else ""
        return f"No UpdateRun leads to {request.version}: set spec.target.version of the UpdatePolicy{unknown}."
    name, condition = run.metadata.name, find(run.status.conditions, GATES_OPEN)
    if condition is not None and condition.status == "True" and condition.reason == "Latched":
        return ""
    if known.problem:
        return f"The state of UpdateRun {name} is not known: {known.problem}."
    if condition is None or condition.status != "True":
        reason = condition.reason if condition is not None else "NotEvaluated"
        detail = f": {condition.message}" if condition is not None and condition.message else "."
        return f"UpdateRun {name} is not open, {reason}{detail}"
    ended = [gate for gate in run.status.gates if gate.until is not None and gate.until <= now]
    if ended:
        return (
            f"UpdateRun {name}: the gate {ended[0].name} was open until {ended[0].until}, and was not evaluated since."
        )
    return ""


def run_for(version: str, runs: Sequence[UpdateRun]) -> UpdateRun | None:
    """Returns the run that leads to this version: to the version itself, or to a later minor version by way of it.

    The gates of a run to a later version count for each version on its way: the run begins with the last of them.
    """
    step = version_of(version)
    if step is None:
        return None
    exact = [run for run in runs if is_at(version, run.spec.target.version)]
    if exact:
        return exact[-1]
    further = [
        run
        for run in runs
        if run.status.step not in FINISHED
        and (target := version_of(run.spec.target.version)) is not None
        and target.minor > step.minor
    ]
    return further[0] if further else None
