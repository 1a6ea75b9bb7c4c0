"""Faults that a test adds to the API server: delays and refusals of the requests that they select."""

from __future__ import annotations

import msgspec

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.collected import CONTROLLERS
from kubesandbox.apiserver.http.messages import Request
from kubesandbox.apiserver.http.request_target import Target

_WHY = "injected by the test"
# Reasons of codes, as in apimachinery/pkg/api/errors (NewGenericServerResponse).
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 410: "Expired", 422: "Invalid",
    500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One fault, and the requests that it selects: empty fields select all.

    `latency_s` delays the request; `status` refuses it with this code, 0 does not. `verbs` are those of RBAC.
    `times` is the number of requests that meet it, None for all. Requests of the server's own controllers never do.
    """

    id: int = 0
    status: int = 0
    latency_s: float = 0.0
    retry_after_s: int = 1
    verbs: tuple[str, ...] = ()
    resource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    times: int | None = None

    def selects(self, request: Request) -> bool:
        """Reports whether the request meets this fault."""
        target, user = request.target, request.user.name if request.user else ""
        wanted = ((self.resource, target.full_resource), (self.namespace, target.namespace), (self.name, target.name),
                  (self.user, user))  # fmt: skip
        if user == CONTROLLERS or self.times == 0 or (self.verbs and target.verb not in self.verbs):
            return False
        return target.is_resource and all(not value or value == of_request for value, of_request in wanted)


class Faults:
    """The faults of a server, in the order in which they were added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = 1
        self.active: list[Fault] = []

    def add(self, fault: Fault) -> int:
        """Adds a fault and returns its number."""
        fault.id, self._next = self._next, self._next + 1
        self.active.append(fault)
        return fault.id

    def remove(self, number: int) -> None:
        """Removes a fault; one that is not there is left out."""
        self.active = [fault for fault in self.active if fault.id != number]

    async def inject(self, request: Request) -> None:
        """Delays the request or refuses it, as the faults say that select it. Raises ApiError."""
        for fault in tuple(self.active):
            if not fault.selects(request):
                continue
            if fault.times is not None:
                fault.times -= 1
            if fault.latency_s:
                await self._clock.sleep(fault.latency_s)
            if fault.status:
                raise refusal(fault, request.target)


def refusal(fault: Fault, target: Target) -> status_errors.ApiError:
    """Returns the error of a fault, in the form in which a server has it for this code."""
    if fault.status == 409:
        return status_errors.conflict(target.resource, target.group, target.name)
    if fault.status == 410:
        return status_errors.expired(f"The provided resource version is too old: {_WHY}")
    if fault.status == 429:
        return status_errors.too_many_requests(
            "Too many requests, please try again later.", retry_after_s=fault.retry_after_s
        )
    if fault.status == 500:
        return status_errors.internal(_WHY)
    return status_errors.ApiError(fault.status, _REASONS.get(fault.status, "Unknown"), _WHY)
