"""The server's errors, as the Status objects that a real kube-apiserver sends, word for word.

Clients branch on `reason` and people search for messages, so both are those of Kubernetes. Texts follow
k8s.io/apimachinery/pkg/api/errors and the registries that raise them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

JSON = dict[str, Any]

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


# Characters of all faults of an object. Each can show a whole list of which it finds every item wrong.
_MOST_TEXT = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause in `details.causes`; `str()` is its part of the Status message (`field: message` by default)."""

    reason: str
    message: str
    field: str = ""

    def to_dict(self) -> JSON:
        """Returns the cause as it is in the Status."""
        pairs = (("reason", self.reason), ("message", self.message), ("field", self.field))
        return {key: value for key, value in pairs if value}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ApiError(Exception):
    """A failed request's response, a Status; `headers` are sent with it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JSON | None = None,
        causes: Sequence[Cause] = (),
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details) if details is not None else None
        if causes:
            self.details = {**(self.details or {}), "causes": [cause.to_dict() for cause in causes]}
        self.headers = headers

    def status(self) -> JSON:
        """Returns the Status object."""
        body: JSON = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        # Go omits empty strings (omitempty), for example an unset reason.
        return {key: value for key, value in body.items() if value != ""}


def qualified_resource(resource: str, group: str) -> str:
    """Returns a resource's qualified name: `deployments.apps`, or `pods` for the core group."""
    return f"{resource}.{group}" if group else resource


def _status_details(resource: str, group: str, name: str) -> JSON:
    pairs = (("name", name), ("group", group), ("kind", resource))
    return {key: value for key, value in pairs if value}


def not_found(resource: str, group: str, name: str) -> ApiError:
    """Returns 404: the object does not exist."""
    message = f'{qualified_resource(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_status_details(resource, group, name))


def already_exists(resource: str, group: str, name: str) -> ApiError:
    """Returns 409 AlreadyExists."""
    message = f'{qualified_resource(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_status_details(resource, group, name))


def conflict(resource: str, group: str, name: str, why: str = MODIFIED) -> ApiError:
    """Returns 409 Conflict: the object is not in the state that the writer expects."""
    message = f'Operation cannot be fulfilled on {qualified_resource(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_status_details(resource, group, name))


def apply_conflict(message: str, causes: Sequence[Cause]) -> ApiError:
    """Returns 409 Conflict of a server-side apply: other managers own the fields."""
    return ApiError(409, "Conflict", message, details={}, causes=causes)


def forbidden(resource: str, group: str, name: str, why: str) -> ApiError:
    """Returns 403; `why` is the text of the authorizer or admission plugin."""
    about = _status_details(resource, group, name)
    if not resource:
        return ApiError(403, "Forbidden", f"forbidden: {why}", details={})
    subject = f'{qualified_resource(resource, group)} "{name}"' if name else qualified_resource(resource, group)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details=about)


def unauthorized() -> ApiError:
    """Returns 401: no credentials, or invalid ones."""
    return ApiError(401, "Unauthorized", "Unauthorized")


class FieldFault(Protocol):
    """A fault of one field, as `kubesandbox.apiserver.schema` reports it."""

    @property
    def reason(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def field(self) -> str: ...


def invalid(kind: str, group: str, name: str, faults: Sequence[FieldFault]) -> ApiError:
    """Returns 422: the object is invalid, with one cause for each fault, up to `_MOST_TEXT`."""
    texts: dict[str, None] = {}
    causes: list[Cause] = []
    size = 0
    for fault in faults:
        size += len(text := str(fault))
        if causes and size > _MOST_TEXT:
            break
        # The message lists equal faults once, the causes list them all (k8s.io/apimachinery's Aggregate).
        texts[text] = None
        causes.append(Cause(fault.reason, fault.body, fault.field))
    joined = ", ".join(texts)
    joined = joined if len(texts) == 1 else f"[{joined}]"
    message = f'{qualified_resource(kind, group)} "{name}" is invalid: {joined}'
    return ApiError(422, "Invalid", message, details=_status_details(kind, group, name), causes=causes)


def bad_request(message: str) -> ApiError:
    """Returns 400."""
    return ApiError(400, "BadRequest", message)


def method_not_allowed() -> ApiError:
    """Returns 405: the path does not support the method."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details=_status_details("", "", ""))


def expired(message: str) -> ApiError:
    """Returns 410: the requested revision was compacted."""
    return ApiError(410, "Expired", message)


def not_acceptable(types: str = f"{_MEDIA_TYPES}, {_STREAMS}") -> ApiError:
    """Returns 406: the header has no supported media type."""
    message = f"406: Not Acceptable\n\nAvailable representations: {types}"
    return ApiError(406, "NotAcceptable", message, details={})


def only_media_types() -> ApiError:
    """Returns 406: the header has a supported media type, but in no supported representation."""
    message = f"only the following media types are accepted: {_MEDIA_TYPES}"
    return ApiError(406, "NotAcceptable", message)


def only_stream_types() -> ApiError:
    """Returns 406: a watch has no representation in a supported media type, such as YAML."""
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {_STREAMS}")


def another_number_accepted(form: str, representation: str) -> ApiError:
    """Returns 406: a representation of one object where there is a list, or of a list where there is one object."""
    return ApiError(406, "NotAcceptable", f"you requested {form}, but the requested object is {representation}")


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """Returns 415 for a body."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)


def unsupported_patch_type() -> ApiError:
    """Returns 415 for a patch, which is refused before its body is read."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def too_large_resource_version(revision: int, current: int) -> ApiError:
    """Returns 504: the requested revision is in the future."""
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {revision}, current: {current}",
        details={"retryAfterSeconds": 1},
        causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
        headers=(("Retry-After", "1"),),
    )


def too_many_requests(message: str, retry_after_s: int = 0, causes: Sequence[Cause] = ()) -> ApiError:
    """Returns 429, for example for an eviction that a disruption budget refuses."""
    details = {"retryAfterSeconds": retry_after_s} if retry_after_s else {}
    headers = (("Retry-After", str(retry_after_s)),) if retry_after_s else ()
    return ApiError(429, "TooManyRequests", message, details=details, causes=causes, headers=headers)


def internal(why: str) -> ApiError:
    """Returns 500."""
    return ApiError(500, "InternalError", f"Internal error occurred: {why}", details={}, causes=(Cause("", why),))


def too_large(limit: int) -> ApiError:
    """Returns 413: the body exceeds `limit` bytes."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")
