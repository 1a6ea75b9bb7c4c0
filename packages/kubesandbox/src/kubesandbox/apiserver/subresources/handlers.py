"""The subresources token, binding and finalize, and the dispatch of all subresources and reviews."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.authn import AUDIENCE, Claims, TokenSigner
from kubesandbox.apiserver.access.review_requests import Reviews
from kubesandbox.apiserver.http.messages import (
    CREATED,
    Request,
    Response,
    User,
    check_acceptable,
    json_response,
)
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.request_target import Target, not_there
from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.objects.rest import Handler, Rest
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError
from kubesandbox.apiserver.served_kinds import BINDING_KIND, TOKEN_KIND, Kind
from kubesandbox.apiserver.subresources.pods import Evictions, PodLogs
from kubesandbox.apiserver.subresources.scale import Scales

# The limits of a requested token's life (pkg/registry/core/serviceaccount/storage/token.go), in seconds.
_SHORTEST_S, _USUAL_S, _LONGEST_S = 600, 3600, 1 << 32


class Subresources:
    """The handlers of subresources and reviews; one instance for the whole server."""

    def __init__(self, rest: Rest, reviews: Reviews, *, signer: TokenSigner, clock: Clock, pods: Path) -> None:
        self._rest, self._reviews, self._signer, self._clock = rest, reviews, signer, clock
        # By resource and subresource; "*" means every resource.
        self._special: dict[tuple[str, str], Handler] = {
            ("serviceaccounts", "token"): self._issue_token,
            ("pods", "binding"): self._bind_pod,
            ("pods", "eviction"): Evictions(rest, clock).serve,
            ("pods", "log"): PodLogs(rest, clock, pods).serve,
            ("namespaces", "finalize"): self._finalize_namespace,
            ("*", "scale"): Scales(rest).serve,
        }

    def review(self, kind: Kind) -> Callable[[Request, Target], Awaitable[Response]] | None:
        """Returns the handler of a kind that is never stored, or None for other kinds."""
        if (handler := self._reviews.handler(kind)) is None:
            return None

        async def review(request: Request, target: Target) -> Response:
            return await handler(await self._read_body(request, kind), request.user or User(""), target)

        return review

    async def handle(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a request for a subresource. Raises ApiError."""
        sub = kind.subresource(target.subresource)
        if sub is None:
            # A custom resource's handler is registered for any subresource name and reports an unknown one itself.
            raise status_errors.not_found(kind.plural, kind.group, target.name) if kind.custom else not_there()
        if target.verb not in sub.verbs or (request.method == "HEAD" and not kind.custom):
            raise status_errors.method_not_allowed()
        if not kind.custom:
            check_acceptable(request.header("accept"))
        special = self._special.get((kind.resource, sub.name)) or self._special.get(("*", sub.name))
        answer = (special or self._rest.verbs[target.verb])(request, target, kind)
        return await answer if isawaitable(answer) else answer

    async def _issue_token(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a TokenRequest: issues a token for a ServiceAccount."""
        creation = write_options(request, "CreateOptions")
        body = await self._rest.decoding.body(request, TOKEN_KIND, creation)
        account = self._rest.entry(kind, target.namespace, target.name).load()
        # Name, namespace, time and audiences are set before validating webhooks see the request.
        body["metadata"] = {
            **meta(body),
            "name": target.name,
            "namespace": target.namespace,
            "creationTimestamp": rfc3339(self._clock.now()),
        }
        body["spec"] = {
            **(body.get("spec") or {}),
            "audiences": (body.get("spec") or {}).get("audiences") or [AUDIENCE],
        }
        body = await self._rest.writing.admit_other(kind, target, body, creation, object_kind=TOKEN_KIND)
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = _USUAL_S if seconds is None else seconds
        if not _SHORTEST_S <= seconds <= _LONGEST_S:
            why = "may not specify a duration less than 10 minutes"
            why = why if seconds < _SHORTEST_S else "may not specify a duration larger than 2^32 seconds"
            fault = FieldError(Fault.INVALID, "spec.expirationSeconds", seconds, why)
            raise status_errors.invalid("TokenRequest", "authentication.k8s.io", "", [fault])
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

    async def _bind_pod(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles a Binding: assigns a pod to a node, once."""
        creation = write_options(request, "CreateOptions")
        body = await self._rest.decoding.body(request, BINDING_KIND, creation)
        body = await self._rest.writing.admit_other(kind, target, body, creation, object_kind=BINDING_KIND)
        node = (body.get("target") or {}).get("name", "")
        if not node:
            raise status_errors.bad_request("Binding: target.name: Required value")

        def compute(pod: JSON) -> JSON:
            """Returns the pod bound to the node and marked as scheduled. Raises ApiError 409 if it is bound already."""
            spec = pod.setdefault("spec", {})
            if spec.get("nodeName"):
                text = f'pod {meta(pod)["name"]} is already assigned to node "{spec["nodeName"]}"'
                raise status_errors.conflict(kind.plural + "/binding", kind.group, target.name, text)
            spec["nodeName"] = node
            status, now = pod.setdefault("status", {}), rfc3339(self._clock.now())
            others = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
            condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            status["conditions"] = [*others, condition]
            return pod

        await self._write_change(request, kind, target, compute)
        return json_response(CREATED, 201)

    async def _finalize_namespace(self, request: Request, target: Target, kind: Kind) -> Response:
        """Handles finalize: sets a namespace's own finalizers, which only its controller removes."""
        finalizers = ((await self._read_body(request, kind)).get("spec") or {}).get("finalizers") or []

        def compute(namespace: JSON) -> JSON:
            namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": finalizers}
            return namespace

        entry = await self._write_change(request, kind, target, compute)
        return await self._rest.reading.answer(request, kind, entry)

    async def _read_body(self, request: Request, kind: Kind) -> JSON:
        return await self._rest.decoding.body(request, kind, write_options(request, "CreateOptions"))

    async def _write_change(self, request: Request, kind: Kind, target: Target, compute: Any) -> Any:
        options: WriteOptions = write_options(request, "UpdateOptions")
        return await self._rest.change(kind, target, compute, options)
