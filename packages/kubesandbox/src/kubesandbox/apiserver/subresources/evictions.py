"""`pods/eviction`: deletes a pod unless a PodDisruptionBudget forbids it (pkg/registry/core/pod/storage/eviction.go).

In: an Eviction of one pod. Out: Success once the pod is deleted (or marked); raises ApiError 429 if its budget allows
no disruption. An allowed disruption is counted in the budget's status at once, so that two concurrent evictions cannot
both use the last one.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import LabelSelector
from kubekit.kube.clock import Clock
from kubekit.rules.eviction_rules import BudgetNow, lets_go
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import Request, Response, Target, json_response
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.objects.object_deletion import options_of
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.served_kinds import EVICTION_KIND, Kind
from kubesandbox.apiserver.status_errors import ApiError, Cause

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_OVER = frozenset({"Succeeded", "Failed", "Pending"})
# MaxDisruptedPodSize in pkg/registry/core/pod/storage/eviction.go.
_MOST_DISRUPTED = 2000
_RETRY_AFTER_S = 10


class Evictions:
    """The handler of evictions; one instance for the whole server."""

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest, self._clock = rest, clock

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Evicts one pod. Raises ApiError."""
        body = self._rest.decoding.body(request, EVICTION_KIND, write_options(request, "CreateOptions"))
        if (meta(body).get("name") or target.name) != target.name:
            raise status_errors.bad_request("name in URL does not match name in Eviction object")
        options = options_of(body.get("deleteOptions") or {}, request.query)
        pod = self._rest.entry(kind, target.namespace, target.name).load()
        status = pod.get("status") or {}
        # The end of a pod that has finished, is pending or is being deleted is no disruption.
        if status.get("phase") not in _OVER and "deletionTimestamp" not in meta(pod):
            await self._charge_budget(target, pod, dry_run=options.dry_run)
        if not options.dry_run:
            await self._mark_disrupted(target, kind)
        await self._rest.deleting.delete_one(kind, target.namespace, target.name, options)
        return json_response(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    async def _charge_budget(self, target: Target, pod: JSON, *, dry_run: bool) -> None:
        """Charges the disruption to the pod's budget, if it has one. Raises ApiError if that allows none."""
        labels, budgets = meta(pod).get("labels") or {}, []
        for entry in self._rest.store.items("poddisruptionbudgets.policy", target.namespace):
            candidate = entry.load()
            selector = (candidate.get("spec") or {}).get("selector")
            if selector is not None and codec.convert(LabelSelector, selector).matches(labels):
                budgets.append(candidate)
        # Kubernetes refuses this with a 500, since no single budget could be charged.
        if len(budgets) > 1:
            raise ApiError(500, "", _SEVERAL)
        if not budgets:
            return
        budget, status = budgets[0], budgets[0].get("status") or {}
        conditions = (pod.get("status") or {}).get("conditions") or ()
        ready = any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
        now = BudgetNow(
            allowed=0,
            healthy=status.get("currentHealthy", 0),
            desired=status.get("desiredHealthy", 0),
            policy=(budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") or "",
        )
        # An unready pod may go without an allowed disruption (unhealthyPodEvictionPolicy).
        if lets_go(now, ready=ready):
            return
        _check_budget(budget)
        if dry_run:
            return
        kind = self._rest.kinds.of_plural("policy", "poddisruptionbudgets")
        assert kind is not None

        def compute(current: JSON) -> JSON:
            """Returns the budget with one disruption fewer allowed and the pod among disruptedPods.

            Raises ApiError (429).
            """
            _check_budget(current)
            status = current["status"]
            status["disruptionsAllowed"] -= 1
            status["disruptedPods"] = {**(status.get("disruptedPods") or {}), target.name: rfc3339(self._clock.now())}
            return current

        place = replace(target, group="policy", resource=kind.plural, subresource="status", name=meta(budget)["name"])
        await self._rest.change(kind, place, compute, WriteOptions(manager="kube-apiserver", validation="Ignore"))

    async def _mark_disrupted(self, target: Target, kind: Kind) -> None:
        """Sets the pod's condition DisruptionTarget. Raises ApiError."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self._clock.now()),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }

        def compute(pod: JSON) -> JSON:
            """Returns the pod with `condition` in place of its condition of the same type."""
            status = pod.get("status") or {}
            others = [one for one in status.get("conditions") or () if one.get("type") != condition["type"]]
            return {**pod, "status": {**status, "conditions": [*others, condition]}}

        options = WriteOptions(manager="kube-apiserver", validation="Ignore")
        await self._rest.change(kind, replace(target, subresource="status"), compute, options)


def _check_budget(budget: JSON) -> None:
    """Raises ApiError 403 or 429 if the budget allows no disruption."""
    status, name = budget.get("status") or {}, meta(budget)["name"]
    # The controller has not computed the counts for the present spec yet.
    if status.get("observedGeneration", 0) < meta(budget).get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise status_errors.too_many_requests(_REFUSED, _RETRY_AFTER_S, [Cause("DisruptionBudget", why)])
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise status_errors.forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise status_errors.forbidden("poddisruptionbudget", "policy", name, why)
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise status_errors.too_many_requests(_REFUSED, 0, [Cause("DisruptionBudget", why)])
