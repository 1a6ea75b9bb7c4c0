"""`pods/eviction` and `pods/log`: deletes a pod as its budget allows, and serves the output of its containers.

An eviction (pkg/registry/core/pod/storage/eviction.go) answers Success once the pod is deleted or marked, and raises
ApiError 429 if its PodDisruptionBudget allows no disruption. An allowed one is counted in the status of the budget at
once, so that two concurrent evictions cannot both use the last one. Logs are the files that the node agent keeps in the
data folder; a followed log ends once the container has ended and its whole output was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube.clock import Clock
from kubekit.rules import eviction_rules
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import CREATED, Request, Response, json_response
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.objects.object_deletion import options_of
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.served_kinds import EVICTION_KIND, Kind

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_RETRY_AFTER_S = 10
# Interval between two reads of a followed file, in seconds.
_LOOK_S = 0.2
_LISTS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


class Evictions:
    """The handler of evictions; one instance for the whole server."""

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest, self._clock = rest, clock

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Evicts one pod. Raises ApiError."""
        creation = write_options(request, "CreateOptions")
        body = await self._rest.decoding.body(request, EVICTION_KIND, creation)
        if (meta(body).get("name") or target.name) != target.name:
            raise status_errors.bad_request("name in URL does not match name in Eviction object")
        body = await self._rest.writing.admit_other(kind, target, body, creation, object_kind=EVICTION_KIND)
        options = options_of(body.get("deleteOptions") or {}, request.query)
        pod = self._rest.entry(kind, target.namespace, target.name).load()
        phase = (pod.get("status") or {}).get("phase", "")
        if not eviction_rules.is_evicted_without_budget(phase, deleted="deletionTimestamp" in meta(pod)):
            await self._charge_budget(target, pod, dry_run=options.dry_run)
        if not options.dry_run:
            await self._mark_disrupted(target, kind)
        await self._rest.deleting.delete_one(kind, target.namespace, target.name, options)
        return json_response(CREATED, 201)

    async def _charge_budget(self, target: Target, pod: JSON, *, dry_run: bool) -> None:
        """Charges the disruption to the pod's budget, if it has one. Raises ApiError if that allows none."""
        labels = meta(pod).get("labels") or {}
        stored = [entry.load() for entry in self._rest.store.items("poddisruptionbudgets.policy", target.namespace)]
        budgets = [
            one
            for one in stored
            if eviction_rules.selects(codec.convert(PodDisruptionBudget, one), target.namespace, labels)
        ]
        # Kubernetes refuses this with a 500, since no single budget could be charged.
        if len(budgets) > 1:
            raise status_errors.ApiError(500, "", _SEVERAL)
        if not budgets:
            return
        budget = budgets[0]
        conditions = (pod.get("status") or {}).get("conditions") or ()
        ready = any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
        if eviction_rules.is_uncounted(_counts(budget), ready=ready):
            return
        _check_budget(budget)
        if dry_run:
            return
        kind = self._rest.kinds.of_plural("policy", "poddisruptionbudgets")
        assert kind is not None

        def compute(current: JSON) -> JSON:
            """Returns the budget with one allowed disruption fewer and one disrupted pod more. Raises ApiError 429."""
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


def _counts(budget: JSON) -> eviction_rules.BudgetNow:
    disrupted = (budget.get("status") or {}).get("disruptedPods") or ()
    return eviction_rules.budget_now(codec.convert(PodDisruptionBudget, budget), disrupted=len(disrupted))


def _check_budget(budget: JSON) -> None:
    """Raises ApiError 403 or 429 if the budget allows no disruption."""
    name, counts = meta(budget)["name"], _counts(budget)
    retry_after_s = 0
    match eviction_rules.refusal_of(counts, ready=True):
        case None:
            return
        case eviction_rules.Refusal.NEGATIVE:
            raise status_errors.forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
        case eviction_rules.Refusal.UNCONFIRMED:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise status_errors.forbidden("poddisruptionbudget", "policy", name, why)
        case eviction_rules.Refusal.OUTDATED:
            why, retry_after_s = f"The disruption budget {name} is still being processed by the server.", _RETRY_AFTER_S
        case eviction_rules.Refusal.EXHAUSTED:
            why = f"The disruption budget {name} needs {counts.desired} healthy pods and has {counts.healthy} currently"
    raise status_errors.too_many_requests(_REFUSED, retry_after_s, [status_errors.Cause("DisruptionBudget", why)])


class PodLogs:
    """The handler of logs; `folder` holds NAMESPACE_NAME_UID/CONTAINER.log."""

    def __init__(self, rest: Rest, clock: Clock, folder: Path) -> None:
        self._rest, self._clock, self._folder = rest, clock, folder

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Returns the whole log, its tail, or a stream that follows it. Raises ApiError 400 or 404."""
        pod = self._rest.entry(kind, target.namespace, target.name).load()
        query = request.query
        container = _choose_container(pod, query.get("container", ""))
        follow = query.flag("follow")
        if query.flag("previous"):
            raise status_errors.bad_request(
                f'previous terminated container "{container}" in pod "{target.name}" not found'
            )
        file = self._folder / f"{meta(pod)['namespace']}_{target.name}_{meta(pod)['uid']}" / f"{container}.log"
        if not pod["spec"].get("nodeName") and not file.exists():
            return Response(status=204)
        waiting = (_container_status(pod, container).get("state") or {}).get("waiting")
        if not file.exists() and waiting and (reason := waiting.get("reason", "ContainerCreating")):
            raise status_errors.bad_request(
                f'container "{container}" in pod "{target.name}" is waiting to start: {reason}'
            )
        data, end = await asyncio.to_thread(_read_from, file, 0)
        count = query.get("tailLines", "")
        if count.isdigit():
            lines = data.splitlines(keepends=True)
            data = b"".join(lines[max(0, len(lines) - int(count)) :])
        if follow:

            def is_over() -> bool:
                """Returns whether nothing more is written: the container has ended, or the pod is gone."""
                entry = self._rest.store.get(kind.storage, target.namespace, target.name)
                if entry is None:
                    return True
                pod = entry.load()
                ended = "terminated" in (_container_status(pod, container).get("state") or {})
                return ended or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}

            stream = self._follow_log(file, data, end, is_over=is_over)
            return Response(content_type="text/plain", stream=stream)
        limit = query.get("limitBytes", "")
        return Response(body=data[: int(limit)] if limit.isdigit() else data, content_type="text/plain")

    async def _follow_log(
        self, file: Path, data: bytes, at: int, *, is_over: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Yields the log from `at` (bytes) on until `is_over`; `data` comes first."""
        while True:
            # Checked before reading, so that the last read includes everything written until the end.
            over = is_over()
            more, at = await asyncio.to_thread(_read_from, file, at)
            if data or more:
                yield data + more
                data = b""
            if over:
                return
            await self._clock.sleep(_LOOK_S)


def _choose_container(pod: JSON, container: str) -> str:
    """Returns the container whose log is meant. Raises ApiError 400 if the name is unknown, or needed."""
    name, spec = meta(pod)["name"], pod.get("spec") or {}
    names = {field: [container_entry["name"] for container_entry in spec.get(field) or ()] for field, _ in _LISTS}
    if container:
        if not any(container in group for group in names.values()):
            raise status_errors.bad_request(f"container {container} is not valid for pod {name}")
        return container
    main = names["containers"]
    if len(main) == 1:
        only: str = main[0]
        return only
    choice = f"choose one of: [{' '.join(main)}]"
    if names["initContainers"]:
        choice += f" or one of the init containers: [{' '.join(names['initContainers'])}]"
    raise status_errors.bad_request(f"a container name must be specified for pod {name}, {choice}")


def _container_status(pod: JSON, container: str) -> JSON:
    """Returns the status of a container, of whichever list; empty before there is a status."""
    status = pod.get("status") or {}
    statuses = (one for _, field in _LISTS for one in status.get(field) or () if one.get("name") == container)
    found: JSON = next(statuses, {})
    return found


def _read_from(file: Path, start: int) -> tuple[bytes, int]:
    """Returns the file's contents from `start` and their end; a file that became shorter is read from its beginning."""
    try:
        with file.open("rb") as log:
            if log.seek(0, 2) < start:
                start = 0
            log.seek(start)
            data = log.read()
            return data, start + len(data)
    except OSError:
        return b"", start
