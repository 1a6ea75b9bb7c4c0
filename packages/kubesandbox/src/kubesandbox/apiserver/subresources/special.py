"""The subresources token, binding and finalize, and the table of all handlers of subresources."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.tokens import AUDIENCE, Claims, TokenSigner
from kubesandbox.apiserver.http.messages import Request, Response, json_response
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.routing import Target
from kubesandbox.apiserver.metadata import meta, rfc3339
from kubesandbox.apiserver.objects.rest import Handler, Rest
from kubesandbox.apiserver.schema import Fault, FieldError
from kubesandbox.apiserver.served_kinds import BINDING_KIND, TOKEN_KIND, Kind
from kubesandbox.apiserver.subresources.evictions import Evictions
from kubesandbox.apiserver.subresources.pod_logs import PodLogs
from kubesandbox.apiserver.subresources.scale import Scale

JSON = dict[str, Any]
# The limits of a requested token's life (pkg/registry/core/serviceaccount/storage/token.go), in seconds.
_SHORTEST_S, _USUAL_S, _LONGEST_S = 600, 3600, 1 << 32


def special_subresources(rest: Rest, signer: TokenSigner, clock: Clock, pods: Path) -> dict[tuple[str, str], Handler]:
    """Returns the handlers by (resource, subresource); "*" stands for every resource."""
    special = Special(rest, signer, clock)
    return {
        ("serviceaccounts", "token"): special.token,
        ("pods", "binding"): special.binding,
        ("pods", "eviction"): Evictions(rest, clock).serve,
        ("pods", "log"): PodLogs(rest, clock, pods).serve,
        ("namespaces", "finalize"): special.finalize,
        ("*", "scale"): Scale(rest).serve,
    }


class Special:
    """The handlers of token, binding and finalize; one instance for the whole server."""

    def __init__(self, rest: Rest, signer: TokenSigner, clock: Clock) -> None:
        self._rest = rest
        self._signer = signer
        self._clock = clock

    async def token(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a TokenRequest: issues a token for a ServiceAccount."""
        account = self._rest.entry(kind, target.namespace, target.name).load()
        spec = self._read_body(request, TOKEN_KIND).get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = _USUAL_S if seconds is None else seconds
        _check_life(seconds)
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
        """Handles a Binding: assigns a pod to a node, once."""
        node = (self._read_body(request, BINDING_KIND).get("target") or {}).get("name", "")
        if not node:
            raise status_errors.bad_request("Binding: target.name: Required value")

        def compute(pod: JSON) -> JSON:
            """Returns the pod bound to the node and marked as scheduled.

            Raises ApiError (409) if it is bound already.
            """
            spec = pod.setdefault("spec", {})
            if spec.get("nodeName"):
                text = f'pod {meta(pod)["name"]} is already assigned to node "{spec["nodeName"]}"'
                raise status_errors.conflict(kind.plural + "/binding", kind.group, target.name, text)
            spec["nodeName"] = node
            return _mark_scheduled(pod, rfc3339(self._clock.now()))

        await self._write_change(request, kind, target, compute)
        return json_response(_success_status(), 201)

    async def finalize(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles finalize: sets a namespace's own finalizers, which only its controller removes."""
        finalizers = (self._read_body(request, kind).get("spec") or {}).get("finalizers") or []

        def compute(namespace: JSON) -> JSON:
            namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": finalizers}
            return namespace

        entry = await self._write_change(request, kind, target, compute)
        return self._rest.reading.answer(request, kind, entry)

    def _read_body(self, request: Request, kind: Kind) -> JSON:
        return self._rest.decoding.body(request, kind, write_options(request, "CreateOptions"))

    async def _write_change(self, request: Request, kind: Kind, target: Target, compute: Any) -> Any:
        options: WriteOptions = write_options(request, "UpdateOptions")
        return await self._rest.change(kind, target, compute, options)


def _check_life(seconds: int) -> None:
    """Raises ApiError 422 if the lifetime of a token is too short or too long."""
    if _SHORTEST_S <= seconds <= _LONGEST_S:
        return
    why = "may not specify a duration less than 10 minutes"
    why = why if seconds < _SHORTEST_S else "may not specify a duration larger than 2^32 seconds"
    fault = FieldError(Fault.INVALID, "spec.expirationSeconds", seconds, why)
    raise status_errors.invalid("TokenRequest", "authentication.k8s.io", "", [fault])


def _mark_scheduled(pod: JSON, now: str) -> JSON:
    """Sets the condition PodScheduled to True, and returns the pod."""
    status = pod.setdefault("status", {})
    other_conditions = [
        condition for condition in status.get("conditions") or () if condition.get("type") != "PodScheduled"
    ]
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*other_conditions, condition]
    return pod


def _success_status() -> JSON:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
