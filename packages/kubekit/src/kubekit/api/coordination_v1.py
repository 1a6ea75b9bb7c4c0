"""`coordination.k8s.io/v1`: Lease."""

from datetime import datetime

from kubekit.api.meta_v1 import Object, Wire


class LeaseSpec(Wire, frozen=True):
    """`spec` of a Lease; durations in seconds."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Object, frozen=True):
    """A lease, by which one of several processes is the leader."""

    spec: LeaseSpec = LeaseSpec()
