"""`build.openshift.io/v1`: the part of a Build that says what became of it."""

from datetime import datetime

from kubekit.api.meta_v1 import Object, Wire


class BuildStatus(Wire, frozen=True):
    """`phase` is New, Pending, Running, Complete, Failed, Error or Cancelled."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    log_snippet: str = ""
    completion_timestamp: datetime | None = None


class Build(Object, frozen=True):
    """An image that is built on the cluster."""

    status: BuildStatus = BuildStatus()
