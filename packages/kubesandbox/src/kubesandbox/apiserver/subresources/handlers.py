"""The subresources token, binding, finalize and scale, and the dispatch of all subresources and reviews."""

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
from kubesandbox.apiserver.http.body import media_type
from kubesandbox.apiserver.http.messages import (
    CREATED,
    UNSTORED,
    Request,
    Response,
    User,
    check_acceptable,
    json_response,
    negotiate,
)
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.request_target import Target, not_there
from kubesandbox.apiserver.metadata import JSON, meta, rfc3339
from kubesandbox.apiserver.objects.rest import Handler, Rest
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError
from kubesandbox.apiserver.served_kinds import BINDING_KIND, SCALE_KIND, TOKEN_KIND, Kind
from kubesandbox.apiserver.subresources.pods import Evictions, PodLogs

# The limits of a requested token's life (pkg/registry/core/serviceaccount/storage/token.go), in seconds.
_SHORTEST_S, _USUAL_S, _LONGEST_S = 600, 3600, 1 << 32
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
# The paths of a Scale's fields in built-in workloads.
_PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_PATCHES = tuple(f"application/{form}+json" for form in ("json-patch", "merge-patch", "strategic-merge-patch"))
_SET_OPERATORS = {"In": "in", "NotIn": "notin"}


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
            ("*", "scale"): self._serve_scale,
        }

    def review(self, kind: Kind) -> Callable[[Request, Target], Awaitable[Response]] | None:
        """Returns the handler of a kind that is never stored, or None for other kinds."""
        handler = self._reviews.handler(kind)
        return handler and (
            lambda request, target: handler(self._read_body(request, kind), request.user or User(""), target)
        )

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
        spec = self._read_body(request, TOKEN_KIND).get("spec") or {}
        account = self._rest.entry(kind, target.namespace, target.name).load()
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
        node = (self._read_body(request, BINDING_KIND).get("target") or {}).get("name", "")
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

    async def _serve_scale(self, request: Request, target: Target, kind: Kind) -> Response:
        """Reads, replaces or patches the Scale of one object. Raises ApiError."""
        negotiate(request.header("accept"), UNSTORED)
        paths = kind.scale_paths or _PATHS
        if target.verb == "get":
            entry = self._rest.entry(kind, target.namespace, target.name)
            return json_response(_scale_of(from_stored(kind, entry.load()), paths))
        options = write_options(request, "UpdateOptions" if target.verb == "update" else "PatchOptions")

        if target.verb == "update":
            body: JSON | None = self._rest.decoding.body(request, SCALE_KIND, options)
        elif media_type(request) in _PATCHES:
            body, patched = None, self._rest.patching.patch_reader(request, SCALE_KIND, options)
        else:
            raise status_errors.unsupported_media_type(_PATCHES)

        def compute(obj: JSON) -> JSON:
            """Returns the object with the requested replicas. Raises ApiError (400, 409, 422)."""
            new_scale = patched(_scale_of(obj, paths)) if body is None else body
            replicas = (new_scale.get("spec") or {}).get("replicas", 0)
            # Replicas of a custom resource are validated with the whole object.
            if replicas < 0 and not kind.custom:
                fault = FieldError(Fault.INVALID, "spec.replicas", replicas, "must be greater than or equal to 0")
                raise status_errors.invalid("Scale", "autoscaling", target.name, [fault])
            # The revision is a precondition only if the client sent one.
            expected_revision = meta(new_scale).get("resourceVersion") if target.verb == "update" else None
            if expected_revision and expected_revision != meta(obj).get("resourceVersion"):
                raise status_errors.conflict(kind.plural, kind.group, target.name)
            *parents, last = filter(None, paths["specReplicasPath"].split("."))
            branch = obj
            for part in parents:
                branch = branch.setdefault(part, {})
            branch[last] = replicas
            return obj

        entry = await self._rest.change(kind, target, compute, options)
        return json_response(_scale_of(from_stored(kind, entry.load()), paths))


def _scale_of(obj: JSON, paths: Any) -> JSON:
    """Returns the Scale of an object, its numbers and selector read at `paths`."""
    metadata = meta(obj)
    selector = _value_at(obj, paths.get("labelSelectorPath") or "")
    status: JSON = {"replicas": _value_at(obj, paths["statusReplicasPath"]) or 0}
    if isinstance(selector, dict):
        # As text, such as `a=b,c in (d,e)`.
        parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
        for expression in selector.get("matchExpressions") or ():
            operator, key = expression.get("operator"), expression.get("key", "")
            if operator in _SET_OPERATORS:
                parts.append(f"{key} {_SET_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})")
            else:
                parts.append(key if operator == "Exists" else f"!{key}")
        selector = ",".join(sorted(parts))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _META if key in metadata},
        "spec": {"replicas": _value_at(obj, paths["specReplicasPath"]) or 0},
        "status": status,
    }


def _value_at(obj: JSON, path: str) -> Any:
    value: Any = obj
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
    return value if path else None
