"""`pods/eviction`: deletes a pod unless a PodDisruptionBudget forbids it (pkg/registry/core/pod/storage/eviction.go).

In: an Eviction of one pod. Out: Success once the pod is deleted (or marked); raises ApiError 429 when its budget allows
no disruption. A disruption that is allowed is counted in the budget's status at once, so that two evictions at a time
cannot both use the last one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubekit.kube.clock import Clock
from kubesandbox.apiserver import errors
from kubesandbox.apiserver.errors import ApiError, Cause
from kubesandbox.apiserver.http.messages import Request, Response, json_response
from kubesandbox.apiserver.http.options import WriteOptions, write_options
from kubesandbox.apiserver.http.routing import Target
from kubesandbox.apiserver.kinds import EVICTION_KIND, Kind
from kubesandbox.apiserver.metadata import meta, rfc3339
from kubesandbox.apiserver.objects.deleting import DeleteOptions, options_of
from kubesandbox.apiserver.objects.rest import Rest

JSON = dict[str, Any]

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_OVER = frozenset({"Succeeded", "Failed", "Pending"})
_MOST_DISRUPTED = 2000
_RETRY_AFTER_S = 10


class Evictions:
    """The handler; one for the whole server."""

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest, self._clock = rest, clock

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Evict one pod; raises ApiError."""
        body = self._rest.decoding.body(request, EVICTION_KIND, write_options(request, "CreateOptions"))
        if (meta(body).get("name") or target.name) != target.name:
            raise errors.bad_request("name in URL does not match name in Eviction object")
        options = options_of(body.get("deleteOptions") or {}, request.query)
        pod = self._rest.entry(kind, target.namespace, target.name).load()
        if not _is_over(pod):
            options = await self._allowed(target, pod, options)
        if not options.dry_run:
            await self._mark(target, kind)
        await self._rest.deleting.delete_one(kind, target.namespace, target.name, options)
        return json_response(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    async def _allowed(self, target: Target, pod: JSON, options: DeleteOptions) -> DeleteOptions:
        """The options to delete with when the pod's budget allows it; raises ApiError when not."""
        budgets = self._budgets(target.namespace, pod)
        if len(budgets) > 1:
            raise ApiError(500, "", _SEVERAL)
        if not budgets:
            return options
        (budget,) = budgets
        if _may_go_unready(pod, budget):
            return options
        _check(budget)
        if not options.dry_run:
            await self._count(target, budget)
        return options

    def _budgets(self, namespace: str, pod: JSON) -> list[JSON]:
        labels = meta(pod).get("labels") or {}
        found = []
        for entry in self._rest.store.items("poddisruptionbudgets.policy", namespace):
            budget = entry.load()
            selector = (budget.get("spec") or {}).get("selector")
            if selector is not None and codec.convert(LabelSelector, selector).matches(labels):
                found.append(budget)
        return found

    async def _count(self, target: Target, budget: JSON) -> None:
        """Take one allowed disruption away and write down whose it is; raises ApiError when it was the last's."""
        kind = self._rest.kinds.of_plural("policy", "poddisruptionbudgets")
        assert kind is not None

        def compute(current: JSON) -> JSON:
            _check(current)
            status = current["status"]
            status["disruptionsAllowed"] -= 1
            status["disruptedPods"] = {**(status.get("disruptedPods") or {}), target.name: rfc3339(self._clock.now())}
            return current

        place = replace(target, group="policy", resource=kind.plural, subresource="status", name=meta(budget)["name"])
        await self._rest.change(kind, place, compute, WriteOptions(manager="kube-apiserver", validation="Ignore"))

    async def _mark(self, target: Target, kind: Kind) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self._clock.now()),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }

        def compute(pod: JSON) -> JSON:
            status = pod.get("status") or {}
            others = [each for each in status.get("conditions") or () if each.get("type") != condition["type"]]
            return {**pod, "status": {**status, "conditions": [*others, condition]}}

        options = WriteOptions(manager="kube-apiserver", validation="Ignore")
        await self._rest.change(kind, replace(target, subresource="status"), compute, options)


def _is_over(pod: JSON) -> bool:
    """Whether the pod's end disrupts nobody."""
    return (pod.get("status") or {}).get("phase") in _OVER or "deletionTimestamp" in meta(pod)


def _may_go_unready(pod: JSON, budget: JSON) -> bool:
    """Whether an unready pod may go although its budget allows no disruption (unhealthyPodEvictionPolicy)."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    status = budget.get("status") or {}
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _check(budget: JSON) -> None:
    """Refuse when the budget allows no disruption; raises ApiError 403 or 429."""
    status, name = budget.get("status") or {}, meta(budget)["name"]
    if status.get("observedGeneration", 0) < meta(budget).get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise errors.too_many_requests(_REFUSED, _RETRY_AFTER_S, [Cause("DisruptionBudget", why)])
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget", "policy", name, why)
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise errors.too_many_requests(_REFUSED, 0, [Cause("DisruptionBudget", why)])
