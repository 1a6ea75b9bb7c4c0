"""Turns the error of a task into the problem that conditions report.

Reasons and causes: docs/upstream-behaviour.md 4.3.
"""

from __future__ import annotations

from kubekit.api.codec import DecodeError
from kubekit.error_types import RunupError
from kubekit.kube.api_errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Transient,
    Unauthorized,
)
from runup.applying.decide.progress import Problem
from runup.applying.decide.task import Task

FAILED = "UpdatePayloadFailed"
_DOWN = ("UpdatePayloadClusterDown", "the server is down or not responding")
_ERROR = ("UpdatePayloadClusterError", "the server is reporting an internal error")
_OVERLOADED = ("UpdatePayloadClusterOverloaded", "the server is overloaded and is not accepting updates")
_DELETED = ("UpdatePayloadResourceNotFound", "resource may have been deleted")
_BY_TYPE: tuple[tuple[type[Exception], tuple[str, str]], ...] = (
    (NotFound, _DELETED),
    (AlreadyExists, _DELETED),
    (Conflict, ("UpdatePayloadResourceConflict", "someone else is updating this resource")),
    (
        Invalid,
        ("UpdatePayloadResourceInvalid", "the object is invalid, possibly due to local cluster configuration"),
    ),
    (Unauthorized, ("UpdatePayloadClusterUnauthorized", "could not authenticate to the server")),
    (Forbidden, ("UpdatePayloadResourceForbidden", "the server has forbidden updates to this resource")),
    (TooManyRequests, _OVERLOADED),
)
_BY_REASON = {"InternalError": _ERROR, "ServerTimeout": _OVERLOADED}


class KindMissing(Exception):
    """Raised if the API server does not serve the kind of a task's object."""


def problem_of(task: Task, error: Exception) -> Problem:
    """Returns the problem to report for `task`, which failed with `error`. The server's own words come last."""
    reason, cause = _class_of(error)
    parts = [f"Could not update {task}", *([cause] if cause else [])]
    details = error_message(error)
    return Problem(reason=reason, message=": ".join(parts) + (f" ({details})" if details else ""))


def error_message(error: Exception) -> str:
    """Returns the message of `error`, with the request in front of it if that was a GET."""
    # A GET precedes the write (API discovery, for example), so its path is not that of the task's object.
    message = error.message if isinstance(error, KubeError | RunupError) else str(error)
    return f"{error.request}: {message}" if isinstance(error, ApiError) and error.request.method == "GET" else message


def _class_of(error: Exception) -> tuple[str, str]:
    """Returns the reason and the cause in words of a task's failure, as the Cluster Version Operator names them."""
    if isinstance(error, KindMissing):
        text = "the server does not recognize this resource, check extension API servers"
        return "UpdatePayloadResourceTypeMissing", text
    if isinstance(error, NotFound) and error.api_missing:
        return _class_of(KindMissing())
    for kind, reason_and_cause in _BY_TYPE:
        if isinstance(error, kind):
            return reason_and_cause
    if isinstance(error, ServerError):
        return _BY_REASON.get(error.reason, _DOWN)
    if isinstance(error, Transient | DecodeError):
        return _DOWN
    return (error.reason, "") if isinstance(error, RunupError) else (FAILED, "")
