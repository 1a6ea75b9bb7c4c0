"""`build.openshift.io/v1`: the part of a Build with its result."""

from datetime import datetime

from kubekit.api.meta_v1 import Object, Wire


class BuildStatus(Wire, frozen=True, kw_only=True):
    """`status` of a Build; `phase` is New, Pending, Running, Complete, Failed, Error or Cancelled."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    log_snippet: str = ""
    completion_timestamp: datetime | None = None


class Build(Object, frozen=True):
    """An image build on the cluster."""

    status: BuildStatus = BuildStatus()
