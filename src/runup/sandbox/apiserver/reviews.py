"""Reviews: who am I, may I, what may I, is this token good. Asked by POST, answered at once, never stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from runup.sandbox.apiserver.authn import Authenticator
from runup.sandbox.apiserver.authz import Attributes, Authorizer
from runup.sandbox.apiserver.body import read_object
from runup.sandbox.apiserver.errors import bad_request
from runup.sandbox.apiserver.http import Request, Response, User, json_response
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.routing import Target
from runup.sandbox.apiserver.tokens import AUDIENCE

JSON = dict[str, Any]
Handler = Callable[[Request, Target], Awaitable[Response]]


class Reviews:
    """One handler for each kind of review."""

    def __init__(self, authn: Authenticator, authz: Authorizer) -> None:
        self._authn = authn
        self._authz = authz
        self._handlers: dict[str, Handler] = {
            "SelfSubjectAccessReview": self._self_access,
            "SubjectAccessReview": self._access,
            "LocalSubjectAccessReview": self._access,
            "SelfSubjectRulesReview": self._rules,
            "SelfSubjectReview": self._self_subject,
            "TokenReview": self._token,
        }

    def handler(self, kind: Kind) -> Handler | None:
        """The handler of a kind of review, None for a kind that is stored."""
        return (
            self._handlers.get(kind.kind)
            if kind.group.endswith(("authorization.k8s.io", "authentication.k8s.io"))
            else None
        )

    async def _self_access(self, request: Request, _: Target) -> Response:
        body = read_object(request)
        return _reviewed(body, self._decide(_user(request), body.get("spec") or {}))

    async def _access(self, request: Request, target: Target) -> Response:
        body = read_object(request)
        spec = body.get("spec") or {}
        about = spec.get("resourceAttributes") or {}
        if target.namespace and about.get("namespace") != target.namespace:
            raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {target.namespace}")
        extra = tuple((key, tuple(values)) for key, values in (spec.get("extra") or {}).items())
        user = User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)
        return _reviewed(body, self._decide(user, spec))

    def _decide(self, user: User, spec: JSON) -> JSON:
        if about := spec.get("resourceAttributes"):
            wanted = Attributes(
                about.get("verb", ""),
                about.get("group", ""),
                about.get("resource", ""),
                about.get("subresource", ""),
                about.get("namespace", ""),
                about.get("name", ""),
            )
        elif about := spec.get("nonResourceAttributes"):
            wanted = Attributes(about.get("verb", ""), path=about.get("path", ""))
        else:
            raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        return {"allowed": self._authz.allowed(user, wanted)}

    async def _rules(self, request: Request, _: Target) -> Response:
        body = read_object(request)
        namespace = (body.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        user = _user(request)
        rules = self._authz.rules(user, namespace)
        if "system:masters" in user.groups:
            rules = [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]
        status: JSON = {
            "resourceRules": [
                {key: value for key, value in rule.items() if key != "nonResourceURLs"}
                for rule in rules
                if rule.get("resources")
            ],
            "nonResourceRules": [
                {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        return _reviewed(body, status)

    async def _self_subject(self, request: Request, _: Target) -> Response:
        return _reviewed(read_object(request), {"userInfo": _user(request).to_dict()})

    async def _token(self, request: Request, _: Target) -> Response:
        body = read_object(request)
        spec = body.get("spec") or {}
        audiences = tuple(spec.get("audiences") or (AUDIENCE,))
        user = self._authn.review(spec.get("token", ""), audiences)
        if user is None:
            return _reviewed(body, {"user": {}, "error": "the token is invalid or expired"})
        return _reviewed(body, {"authenticated": True, "user": user.to_dict(), "audiences": list(audiences)})


def _reviewed(body: JSON, status: JSON) -> Response:
    metadata = {"creationTimestamp": None, **(body.get("metadata") or {})}
    return json_response({**body, "metadata": metadata, "status": status}, 201)


def _user(request: Request) -> User:
    return request.user or User("")
