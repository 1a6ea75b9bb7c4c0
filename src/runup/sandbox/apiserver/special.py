"""Subresources that are not the object itself: token, binding, eviction, finalize; and where the rest are."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from runup.api import codec
from runup.api.meta_v1 import LabelSelector
from runup.kube.clock import Clock
from runup.sandbox.apiserver import errors
from runup.sandbox.apiserver.body import read_object
from runup.sandbox.apiserver.deleting import options_of
from runup.sandbox.apiserver.http import Request, Response, json_response
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.objects import meta, rfc3339
from runup.sandbox.apiserver.options import WriteOptions, write_options
from runup.sandbox.apiserver.pod_logs import PodLogs
from runup.sandbox.apiserver.rest import Handler, Rest
from runup.sandbox.apiserver.routing import Target
from runup.sandbox.apiserver.scale import Scale
from runup.sandbox.apiserver.tokens import AUDIENCE, Claims, TokenSigner

JSON = dict[str, Any]
# The limits of a requested token's life (pkg/registry/core/serviceaccount/storage/token.go), in seconds.
_SHORTEST_S, _USUAL_S, _LONGEST_S = 600, 3600, 1 << 32


def special_subresources(rest: Rest, signer: TokenSigner, clock: Clock, pods: Path) -> dict[tuple[str, str], Handler]:
    """Handlers by (resource, subresource); "*" stands for every resource."""
    special = Special(rest, signer, clock)
    return {
        ("serviceaccounts", "token"): special.token,
        ("pods", "binding"): special.binding,
        ("pods", "eviction"): special.eviction,
        ("pods", "log"): PodLogs(rest, clock, pods).serve,
        ("namespaces", "finalize"): special.finalize,
        ("*", "scale"): Scale(rest).serve,
    }


class Special:
    """The handlers; one for the whole server."""

    def __init__(self, rest: Rest, signer: TokenSigner, clock: Clock) -> None:
        self._rest = rest
        self._signer = signer
        self._clock = clock

    async def token(self, request: Request, target: Target, kind: Kind) -> Response:
        """TokenRequest: a token for a ServiceAccount."""
        account = self._rest.entry(kind, target.namespace, target.name).load()
        asked = read_object(request)
        spec = asked.get("spec") or {}
        seconds = spec.get("expirationSeconds") or _USUAL_S
        if not _SHORTEST_S <= seconds <= _LONGEST_S:
            limit = "may not specify a duration less than 10 minutes"
            limit = limit if seconds < _SHORTEST_S else "may not specify a duration larger than 2^32 seconds"
            raise errors.bad_request(f"spec.expirationSeconds: Invalid value: {seconds}: {limit}")
        now = int(self._clock.now().timestamp())
        bound = spec.get("boundObjectRef") or {}
        claims = Claims(
            namespace=target.namespace,
            account=target.name,
            account_uid=meta(account)["uid"],
            expires_s=now + seconds,
            audiences=tuple(spec.get("audiences") or (AUDIENCE,)),
            token_id=str(uuid.uuid4()),
            bound_kind=bound.get("kind", ""),
            bound_name=bound.get("name", ""),
            bound_uid=bound.get("uid", ""),
        )
        expires = self._clock.now().fromtimestamp(now + seconds, self._clock.now().tzinfo)
        status = {"token": self._signer.sign(claims, now), "expirationTimestamp": rfc3339(expires)}
        answer = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": target.name,
                "namespace": target.namespace,
                "creationTimestamp": rfc3339(self._clock.now()),
            },
            "spec": {
                "audiences": list(claims.audiences),
                "expirationSeconds": seconds,
                "boundObjectRef": bound or None,
            },
            "status": status,
        }
        return json_response(answer, 201)

    async def binding(self, request: Request, target: Target, kind: Kind) -> Response:
        """Binding: a pod gets its node, once."""
        node = (read_object(request).get("target") or {}).get("name", "")
        if not node:
            raise errors.bad_request("Binding: target.name: Required value")

        def compute(pod: JSON) -> JSON:
            spec = pod.setdefault("spec", {})
            if spec.get("nodeName"):
                text = f'pod {meta(pod)["name"]} is already assigned to node "{spec["nodeName"]}"'
                raise errors.conflict(kind.plural + "/binding", kind.group, target.name, text)
            spec["nodeName"] = node
            return _scheduled(pod, rfc3339(self._clock.now()))

        await self._write(request, kind, target, compute)
        return json_response(_success(), 201)

    async def eviction(self, request: Request, target: Target, kind: Kind) -> Response:
        """Eviction: deletes the pod unless a PodDisruptionBudget forbids it."""
        pod = self._rest.entry(kind, target.namespace, target.name).load()
        self._check_budgets(target.namespace, pod)
        body = read_object(request)
        options = options_of(body.get("deleteOptions") or {})
        await self._rest.deleting.delete_one(kind, target.namespace, target.name, options)
        return json_response(_success(), 201)

    def _check_budgets(self, namespace: str, pod: JSON) -> None:
        labels = meta(pod).get("labels") or {}
        budgets = self._rest.kinds.of_plural("policy", "poddisruptionbudgets")
        assert budgets is not None
        for entry in self._rest.store.items(budgets.storage, namespace):
            budget = entry.load()
            selector = (budget.get("spec") or {}).get("selector")
            if selector is not None and codec.convert(LabelSelector, selector).matches(labels):
                self._check_budget(budget)

    def _check_budget(self, budget: JSON) -> None:
        status = budget.get("status") or {}
        if status.get("disruptionsAllowed", 0) > 0:
            return
        name, needs = meta(budget)["name"], status.get("desiredHealthy", 0)
        has = status.get("currentHealthy", 0)
        why = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        cause = errors.Cause("DisruptionBudget", why, "")
        text = "Cannot evict pod as it would violate the pod's disruption budget."
        raise errors.ApiError(429, "TooManyRequests", text, details={}, causes=[cause])

    async def finalize(self, request: Request, target: Target, kind: Kind) -> Response:
        """A namespace's own finalizers, which only its controller removes."""
        finalizers = (read_object(request).get("spec") or {}).get("finalizers") or []

        def compute(namespace: JSON) -> JSON:
            namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": finalizers}
            return namespace

        entry = await self._write(request, kind, target, compute)
        return self._rest.reading.answer(request, kind, entry)

    async def _write(self, request: Request, kind: Kind, target: Target, compute: Any) -> Any:
        options: WriteOptions = write_options(request, "UpdateOptions")
        return await self._rest.change(kind, target, compute, options)


def _scheduled(pod: JSON, now: str) -> JSON:
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, condition]
    return pod


def _success() -> JSON:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
