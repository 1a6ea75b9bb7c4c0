"""Reviews of access, rules, the own user, and tokens: created by POST, answered at once, never stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from kubesandbox.apiserver.access.authn import AUDIENCE, Authenticator
from kubesandbox.apiserver.access.authz import Authorizer
from kubesandbox.apiserver.http.messages import Response, User, json_response
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError, Verbatim, go_json
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import JSON, bad_request, invalid

Handler = Callable[[JSON, User, Target], Awaitable[Response]]


class Reviews:
    """The handlers of the kinds of reviews."""

    def __init__(self, authn: Authenticator, authz: Authorizer) -> None:
        self._authn = authn
        self._authz = authz
        self._handlers: dict[str, Handler] = {
            "SelfSubjectAccessReview": self._self_access,
            "SubjectAccessReview": self._review_access,
            "LocalSubjectAccessReview": self._review_access,
            "SelfSubjectRulesReview": self._review_rules,
            "SelfSubjectReview": self._self_subject,
            "TokenReview": self._review_token,
        }

    def handler(self, kind: Kind) -> Handler | None:
        """Returns the handler of a kind of review, which takes the decoded body, or None for a kind that is stored."""
        return (
            self._handlers.get(kind.kind)
            if kind.group.endswith(("authorization.k8s.io", "authentication.k8s.io"))
            else None
        )

    async def _self_access(self, body: JSON, user: User, _: Target) -> Response:
        spec = body.get("spec") or {}
        _raise_faults(list(_attribute_faults(spec)))
        return _review_response(body, self._decide_access(user, spec))

    async def _review_access(self, body: JSON, _: User, target: Target) -> Response:
        """Handles a SubjectAccessReview of any of the kinds. Raises ApiError 422."""
        spec = body.get("spec") or {}
        faults = list(_attribute_faults(spec))
        if not spec.get("user") and not spec.get("groups"):
            why = "at least one of user or group must be specified"
            faults.append(FieldError(Fault.INVALID, "spec.user", "", why))
        about = spec.get("resourceAttributes")
        # A LocalSubjectAccessReview must be about its own namespace.
        if target.namespace and about is not None and (about.get("namespace") or "") != target.namespace:
            field, value = "spec.resourceAttributes.namespace", about.get("namespace") or ""
            faults.append(FieldError(Fault.INVALID, field, value, "must match metadata.namespace"))
        if target.namespace and spec.get("nonResourceAttributes") is not None:
            why = "disallowed on this kind of request"
            faults.append(FieldError(Fault.INVALID, "spec.nonResourceAttributes", None, why))
        _raise_faults(faults)
        extra = tuple((key, tuple(values)) for key, values in (spec.get("extra") or {}).items())
        user = User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)
        return _review_response(body, self._decide_access(user, spec))

    def _decide_access(self, user: User, spec: JSON) -> JSON:
        """Returns the review's status: whether `user` is allowed to do what `spec` describes, and why."""
        if about := spec.get("resourceAttributes"):
            keys = ("verb", "group", "resource", "subresource", "namespace", "name")
            attributes = Target(**{key: about.get(key, "") for key in keys})
        else:
            about = spec.get("nonResourceAttributes") or {}
            attributes = Target(verb=about.get("verb", ""), path=about.get("path", ""), is_resource=False)
        status: JSON = {"allowed": self._authz.allowed(user, attributes)}
        if reason := self._authz.reason(user, attributes):
            status["reason"] = reason
        return status

    async def _review_rules(self, body: JSON, user: User, _: Target) -> Response:
        """Handles a SelfSubjectRulesReview. Raises ApiError 400 without a namespace."""
        namespace = (body.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
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
        return _review_response({**body, "spec": {}}, status)

    async def _self_subject(self, body: JSON, user: User, _: Target) -> Response:
        return _review_response(body, {"userInfo": user.to_dict()})

    async def _review_token(self, body: JSON, _user: User, _target: Target) -> Response:
        spec = body.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        audiences = tuple(spec.get("audiences") or (AUDIENCE,))
        reviewed = self._authn.review(spec["token"], audiences)
        if reviewed is None:
            return _review_response(body, {"user": {}, "error": "the token is invalid or expired"})
        return _review_response(body, {"authenticated": True, "user": reviewed.to_dict(), "audiences": list(audiences)})


def _raise_faults(faults: list[FieldError]) -> None:
    if faults:
        # The real server omits the kind here, too.
        raise invalid("", "authorization.k8s.io", "", faults)


def _attribute_faults(spec: JSON) -> Iterator[FieldError]:
    """Yields a fault unless a review has exactly one of the two kinds of attributes."""
    about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if about is not None and path is not None:
        shown_path = Verbatim(go_json({"Path": path.get("path") or "", "Verb": path.get("verb") or ""}))
        why = "cannot be specified in combination with resourceAttributes"
        yield FieldError(Fault.INVALID, "spec.nonResourceAttributes", shown_path, why)
    if about is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield FieldError(Fault.INVALID, "spec.resourceAttributes", None, why)


def _review_response(body: JSON, status: JSON) -> Response:
    metadata = {"creationTimestamp": None, **(body.get("metadata") or {})}
    return json_response({**body, "metadata": metadata, "status": status}, 201)
