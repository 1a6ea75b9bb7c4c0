"""`apiserver.openshift.io/v1`: counts of API requests by client."""

import msgspec

from kubekit.api.meta_v1 import Condition, Object, Wire


class PerVerbAPIRequestCount(Wire, frozen=True):
    """The number of requests with one verb."""

    verb: str = ""
    request_count: int = 0


class PerUserAPIRequestCount(Wire, frozen=True):
    """The number of requests of one client, identified by `user_agent` and `username`."""

    username: str = ""
    user_agent: str = ""
    request_count: int = 0
    by_verb: tuple[PerVerbAPIRequestCount, ...] = ()


class PerNodeAPIRequestLog(Wire, frozen=True):
    """The requests to one API server."""

    by_user: tuple[PerUserAPIRequestCount, ...] = ()


class PerResourceAPIRequestLog(Wire, frozen=True):
    """The requests within an hour."""

    by_node: tuple[PerNodeAPIRequestLog, ...] = ()


class APIRequestCountStatus(Wire, frozen=True):
    """`status` of an APIRequestCount; `removed_in_release` is a Kubernetes release such as `1.25`."""

    conditions: tuple[Condition, ...] = ()
    removed_in_release: str = ""
    request_count: int = 0
    last24h: tuple[PerResourceAPIRequestLog, ...] = msgspec.field(default=(), name="last24h")


class APIRequestCount(Object, frozen=True):
    """The requests for a resource, named `resource.version.group`, in the last day."""

    status: APIRequestCountStatus = APIRequestCountStatus()
