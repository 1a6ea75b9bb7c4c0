"""`apiserver.openshift.io/v1`: who asks for which API."""

import msgspec

from kubekit.api.meta_v1 import Condition, Object, Wire


class PerVerbAPIRequestCount(Wire, frozen=True):
    """How often a verb was used."""

    verb: str = ""
    request_count: int = 0


class PerUserAPIRequestCount(Wire, frozen=True):
    """What one client asked for; `user_agent` and `username` say who it was."""

    username: str = ""
    user_agent: str = ""
    request_count: int = 0
    by_verb: tuple[PerVerbAPIRequestCount, ...] = ()


class PerNodeAPIRequestLog(Wire, frozen=True):
    """What one API server was asked."""

    by_user: tuple[PerUserAPIRequestCount, ...] = ()


class PerResourceAPIRequestLog(Wire, frozen=True):
    """What was asked within an hour."""

    by_node: tuple[PerNodeAPIRequestLog, ...] = ()


class APIRequestCountStatus(Wire, frozen=True):
    """`status` of an APIRequestCount; `removed_in_release` is a Kubernetes release such as `1.25`."""

    conditions: tuple[Condition, ...] = ()
    removed_in_release: str = ""
    request_count: int = 0
    last24h: tuple[PerResourceAPIRequestLog, ...] = msgspec.field(default=(), name="last24h")


class APIRequestCount(Object, frozen=True):
    """How often a resource, named `resource.version.group`, was asked for in the last day."""

    status: APIRequestCountStatus = APIRequestCountStatus()
