"""The errors of a Kubernetes client, by what happens next.

A transport passes status code, headers and body to `error_of`, which returns the exception. No other code looks at
status codes, and no exception of the HTTP library gets out. `ApiError.status` is the server's own Status, so that the
command line can print `Error from server (NotFound): ...` and a controller can read `reason` and `details`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import Status
from kubekit.kube.request import Request
from kubekit.lang.text import shorten


class KubeError(Exception):
    """Base of the errors of this package. `message` is for a person, `reason` is a CamelCase word."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


class ConfigError(KubeError):
    """Error raised if the kubeconfig, or a file or credential plugin that it names, cannot be used."""

    def __init__(self, message: str, *, reason: str = "InvalidConfiguration") -> None:
        super().__init__(message, reason=reason)


class Transient(KubeError):
    """A retry may help; `retry_after_s` is the wait in seconds that the server asks for, if it does."""

    def __init__(self, message: str, *, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, reason=reason)
        self.retry_after_s = retry_after_s


class Unreachable(Transient):
    """The server did not answer: refused, unresolvable, timed out, cut off, or TLS failed.

    `server` is its URL, `address` its `host:port`, `refused` whether the connection was refused, `detail` the cause.
    """

    def __init__(self, server: str, address: str, detail: str, *, refused: bool = False) -> None:
        super().__init__(f"could not reach {server}: {detail}", reason="Unreachable")
        self.server = server
        self.address = address
        self.detail = detail
        self.refused = refused


class AnswerTooLarge(KubeError):
    """The answer of `server` has more than `limit` bytes, and was not read to its end."""

    def __init__(self, server: str, limit: int) -> None:
        super().__init__(f"the answer of {server} has more than {limit} bytes", reason="AnswerTooLarge")


class Fenced(Transient):
    """The error that a write was not sent: what it was decided under, the lease, may be another process's by now."""

    def __init__(self, operation: str) -> None:
        super().__init__(f"{operation} was not sent: the lease is not held any more", reason="LeaseNotHeld")


class ApiError(KubeError):
    """The API server rejected a request; `status` is its answer, `request` the request."""

    def __init__(self, status: Status, request: Request) -> None:
        super().__init__(status.message, reason=status.reason or "Unknown")
        self.status = status
        self.request = request

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code


class BadRequest(ApiError):
    """400: the server could not read the request, or strict field validation rejected it."""


class Unauthorized(ApiError):
    """401: the server could not authenticate the client."""


class Forbidden(ApiError):
    """403: the user is not allowed to make the request."""


class NotFound(ApiError):
    """404: the object or the API does not exist (see `api_missing`)."""

    @property
    def api_missing(self) -> bool:
        """Reports whether the whole kind is unknown rather than one object: a 404 for an object names the object."""
        details = self.status.details
        return details is None or not details.name


class Conflict(ApiError):
    """409: the request was based on an old version, or another manager owns a field."""


class AlreadyExists(ApiError):
    """409 on create: the name is in use."""


class Gone(ApiError):
    """410: the server no longer has that resourceVersion or continue token."""


class Invalid(ApiError):
    """422: the object violates its schema."""


class _Overloaded(ApiError, Transient):
    def __init__(self, status: Status, request: Request, retry_after_s: float | None = None) -> None:
        ApiError.__init__(self, status, request)
        self.retry_after_s = retry_after_s


class TooManyRequests(_Overloaded):
    """429: the server is overloaded; retry after `retry_after_s`."""


class ServerError(_Overloaded):
    """5xx: the server failed."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Gone": Gone,
    "Expired": Gone,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": ServerError,
    "ServerTimeout": ServerError,
    "ServiceUnavailable": ServerError,
    "Timeout": ServerError,
}

# Messages for a bare status code of a proxy or an old server, as client-go has them (NewGenericServerResponse).
_BY_CODE: dict[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", "the server does not allow access to the requested resource"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Gone", "the requested resource is gone"),
    413: ("RequestEntityTooLarge", "the request is larger than the server accepts"),
    415: ("UnsupportedMediaType", "the server does not understand the content type of the request"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    502: ("ServiceUnavailable", "a gateway in front of the server got no answer from it"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}
# Of a number of seconds: a longer one is no wish that anybody could fulfil.
_MOST_DIGITS = 9
# Characters shown of a body that is not a Status, such as a proxy's HTML page.
_SHOWN_CHARACTERS = 200


def error_of(code: int, headers: Mapping[str, str], body: bytes, request: Request) -> ApiError:
    """Returns the exception for an answer whose HTTP status `code` is 400 or more."""
    try:
        document = codec.decode(dict[str, Any], body)
        codec.convert(Status, document)
    except codec.DecodeError:
        document = {}
    if document.get("kind") == "Status" and document.get("status") != "Success":
        status = codec.convert(Status, {"code": code, **document})
        if not status.message:
            status = codec.convert(Status, {**document, "message": _generic_message(code, b"")})
    else:
        reason = _BY_CODE.get(code, ("Unknown", ""))[0]
        status = Status(status="Failure", code=code, reason=reason, message=_generic_message(code, body))
    # Header names are case-insensitive; HTTP/2 proxies use lower case.
    retry_after = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return error_of_status(status, request, retry_after)


def error_of_status(status: Status, request: Request, retry_after: str = "") -> ApiError:
    """Returns the exception for a Status from an error's body or from a watch's ERROR event."""
    kind = _BY_REASON.get(status.reason)
    if kind is None:
        kind = _BY_REASON.get(_BY_CODE.get(status.code, ("", ""))[0], ServerError if status.code >= 500 else ApiError)
    if not issubclass(kind, _Overloaded):
        return kind(status, request)
    # The HTTP-date form is not used by API servers; a proxy's is treated as "no wish".
    wish = retry_after.strip()
    if wish.isdecimal() and len(wish) <= _MOST_DIGITS:
        return kind(status, request, float(wish))
    asked_s = status.details.retry_after_seconds if status.details is not None else 0
    return kind(status, request, float(asked_s) if asked_s > 0 else None)


def _generic_message(code: int, body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    meaning = _BY_CODE.get(code, ("", f"the server answered with the status code {code}"))[1]
    short = shorten(text, _SHOWN_CHARACTERS, keep=_SHOWN_CHARACTERS)
    return f"{meaning} ({short})" if short else meaning


def message_of(error: Exception) -> str:
    """Returns the bare message of an API error, for texts such as `Unable to upgrade: ...`."""
    message = getattr(error, "message", None)
    if not isinstance(message, str):
        return str(error)
    # The server's answer to a rejected patch quotes the whole patched object first; only the fault after it is useful.
    _, separator, fault = (
        message.partition('": strict decoding error: ') if message.startswith(' "" is invalid: ') else ("",) * 3
    )
    return f"strict decoding error: {fault}" if separator else message
