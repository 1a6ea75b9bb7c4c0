"""Turns the error of a task into the problem that conditions report, and notices about a task into events.

Reasons and causes: docs/reference/upstream.md 4.3.
"""

from __future__ import annotations

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.error_types import RunupError
from kubekit.kube import api_errors
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.api.config_v1 import ClusterVersion
from runup.applying.decide.contesting_writers import Notice
from runup.applying.decide.progress import Problem
from runup.applying.decide.task import Task
from runup.process.plan import Event, Plan
from runup.process.plan_executor import Executor
from runup.release.decide.manifest import Identity

FAILED = "UpdatePayloadFailed"
_DOWN = ("UpdatePayloadClusterDown", "the server is down or not responding")
_ERROR = ("UpdatePayloadClusterError", "the server is reporting an internal error")
_OVERLOADED = ("UpdatePayloadClusterOverloaded", "the server is overloaded and is not accepting updates")
_DELETED = ("UpdatePayloadResourceNotFound", "resource may have been deleted")
_BY_TYPE: tuple[tuple[type[Exception], tuple[str, str]], ...] = (
    (api_errors.NotFound, _DELETED),
    (api_errors.AlreadyExists, _DELETED),
    (api_errors.Conflict, ("UpdatePayloadResourceConflict", "someone else is updating this resource")),
    (
        api_errors.Invalid,
        ("UpdatePayloadResourceInvalid", "the object is invalid, possibly due to local cluster configuration"),
    ),
    (api_errors.Unauthorized, ("UpdatePayloadClusterUnauthorized", "could not authenticate to the server")),
    (api_errors.Forbidden, ("UpdatePayloadResourceForbidden", "the server has forbidden updates to this resource")),
    (api_errors.TooManyRequests, _OVERLOADED),
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
    message = error.message if isinstance(error, api_errors.KubeError | RunupError) else str(error)
    return (
        f"{error.request}: {message}"
        if isinstance(error, api_errors.ApiError) and error.request.method == "GET"
        else message
    )


def _class_of(error: Exception) -> tuple[str, str]:
    """Returns the reason and the cause in words of a task's failure, as the Cluster Version Operator names them."""
    if isinstance(error, KindMissing):
        text = "the server does not recognize this resource, check extension API servers"
        return "UpdatePayloadResourceTypeMissing", text
    if isinstance(error, api_errors.NotFound) and error.api_missing:
        return _class_of(KindMissing())
    for kind, reason_and_cause in _BY_TYPE:
        if isinstance(error, kind):
            return reason_and_cause
    if isinstance(error, api_errors.ServerError):
        return _BY_REASON.get(error.reason, _DOWN)
    if isinstance(error, api_errors.Transient | DecodeError):
        return _DOWN
    return (error.reason, "") if isinstance(error, RunupError) else (FAILED, "")


log = structlog.get_logger("payload")
# A cluster keeps its events for an hour, so a notice that lasts is repeated once in that time.
INTERVAL_S = 3600.0


class Notices:
    """The events about a release's objects: each reason at most once an hour for each object.

    `cluster_version_uid` is the UID of ClusterVersion, without which `kubectl describe` does not find them.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self.cluster_version_uid = ""
        self._executor = Executor(client, clock)
        self._clock = clock
        self._told: dict[tuple[Identity, str], float] = {}

    def is_due(self, identity: Identity, reason: str) -> bool:
        """Returns whether a notice of that reason would be sent now."""
        told_at = self._told.get((identity, reason))
        return told_at is None or self._clock.monotonic() - told_at >= INTERVAL_S

    async def emit(self, notice: Notice) -> None:
        """Creates the event of `notice` if it is due. An event that cannot be stored is only logged."""
        identity = notice.task.identity
        if not self.is_due(identity, notice.reason):
            return
        self._told[identity, notice.reason] = self._clock.monotonic()
        log.warning("notice", reason=notice.reason, message=notice.message)
        key = NamespacedName("", "version")
        event = Event(
            resource=resource_of(ClusterVersion),
            key=key,
            type="Warning",
            reason=notice.reason,
            message=notice.message,
            uid=self.cluster_version_uid,
        )
        try:
            await self._executor.execute(Plan((event,)))
        except (api_errors.KubeError, DecodeError) as error:
            log.warning("an event could not be stored", reason=notice.reason, error=str(error))
