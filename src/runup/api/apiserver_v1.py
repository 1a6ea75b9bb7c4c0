"""`apiserver.openshift.io/v1`: who asks for which API."""

from __future__ import annotations

from runup.api.meta_v1 import Condition, Object, Wire


class APIRequestCountStatus(Wire, frozen=True):
    """`status` of an APIRequestCount; `removed_in_release` is a Kubernetes release such as `1.25`."""

    conditions: tuple[Condition, ...] = ()
    removed_in_release: str = ""
    request_count: int = 0


class APIRequestCount(Object, frozen=True):
    """How often a resource, named `resource.version.group`, was asked for in the last day."""

    status: APIRequestCountStatus = APIRequestCountStatus()
