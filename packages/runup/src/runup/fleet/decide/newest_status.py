"""The newest status of a cluster in ConfigMap `status-newest`: how its update goes, and which updates it is offered.

    binaryData:
      status: ...
    data:
      summary: "5.1.0, observed 2026-11-24T09:21:59Z"

A Job of the add-on writes it every few minutes, and an agent of Open Cluster Management copies both values into the
status of its ManifestWork, from where `runup fleet status --hub` and `runup fleet recommend --hub` read them
(docs/decisions/0111). The status is JSON packed by gzip. A half that does not fit is left out, and says so.
"""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.text import cut, one_line
from runup.api.clusterversion_json import texts
from runup.preflight.decide import packed_reports
from runup.preflight.decide.cluster_run import NAMESPACE, PART_OF

NAME = "status-newest"
STATUS, SUMMARY = "status", "summary"
FORMAT = "runup.dev/newest-status/v1"
# The newest report has as much next to it in one status, which etcd keeps below 1.5 MiB.
MAX_BYTES = 96 * 1024
# Of clusters with a thousand nodes; what unpacks to more was not packed by us.
_MAX_UNPACKED = 8 << 20
_MAX_SUMMARY = 512
_MAX_TEXT = 1024
_MAX_FORMAT = 100

JSON = dict[str, Any]


class Precheck(Wire, frozen=True, kw_only=True):
    """A condition of an alert that `recommend` looks at first; `name` is the one that `--accept` takes."""

    name: str = ""
    type: str
    status: str
    reason: str = ""
    message: str = ""


class NewestStatus(Wire, frozen=True, kw_only=True):
    """The status and the update advice of a cluster, read at `observed_time` by the cluster's own clock.

    `update_status` is the UpdateStatus, with the notes and the doubt that its reader would have printed, and
    `cluster_version` the part of ClusterVersion that the advice is computed from. Of what could not be read, the
    `_problem` says why. `worker_pools_before_master` orders rows as the cluster's list of pools does.
    """

    format: str
    observed_time: datetime
    update_status: JSON | None = None
    status_problem: str = ""
    notes: tuple[str, ...] = ()
    doubt: str = ""
    worker_pools_before_master: int = 0
    cluster_version: JSON | None = None
    advice_problem: str = ""
    prechecks: tuple[Precheck, ...] = ()
    precheck_problem: str = ""

    @property
    def cluster_id(self) -> str:
        """The ID in ClusterVersion, empty if it is not known."""
        return texts(self.cluster_version, "spec").get("clusterID", "")


class BadStatus(Terminal):
    """Error raised if the data on the hub is not a valid status."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="StatusInvalid")


def empty_config_map() -> JSON:
    """Returns the ConfigMap as it is created."""
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": PART_OF}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def for_advice(cluster_version: JSON) -> JSON:
    """Returns ClusterVersion without the fields that no advice is computed from, such as the managed fields."""
    metadata = cluster_version.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    kept = {key: value for key, value in cluster_version.items() if key in ("apiVersion", "kind", "spec", "status")}
    return kept | {"metadata": {"name": name}}


def with_status(status: NewestStatus) -> JSON:
    """Returns the merge patch that puts a status in place of the one before."""
    fitting, packed = status, _pack(status)
    # The advice is small next to the nodes of a large cluster; and each half may be too large alone.
    for halves in ((_without_update_status,), (_without_advice,), (_without_update_status, _without_advice)):
        if len(packed) <= MAX_BYTES:
            break
        fitting = status
        for without_half in halves:
            fitting = without_half(fitting, len(_pack(fitting)))
        packed = _pack(fitting)
    # One line for people who look at the object itself.
    desired = ((fitting.cluster_version or {}).get("status") or {}).get("desired") or {}
    version = str(desired.get("version") or "unknown version")
    when = f"observed {fitting.observed_time:%Y-%m-%dT%H:%M:%SZ}"
    problems = "; ".join(filter(None, (fitting.status_problem, fitting.advice_problem)))
    return {
        "binaryData": {STATUS: codec.to_dict(packed)},
        "data": {SUMMARY: cut(one_line(": ".join(filter(None, (f"{version}, {when}", problems)))), _MAX_SUMMARY)},
    }


def _without_update_status(status: NewestStatus, size: int) -> NewestStatus:
    why = f"the status takes {_kib(size)} packed, of {_kib(MAX_BYTES)}"
    return replace(status, update_status=None, notes=(), doubt="", status_problem=why)


def _without_advice(status: NewestStatus, size: int) -> NewestStatus:
    why = f"ClusterVersion takes {_kib(size)} packed, of {_kib(MAX_BYTES)}"
    return replace(status, cluster_version=None, prechecks=(), advice_problem=why)


def _kib(size: int) -> str:
    return f"{-(-size // 1024)} KiB"


def _pack(status: NewestStatus) -> bytes:
    short = {
        field: cut(one_line(getattr(status, field)), _MAX_TEXT)
        for field in ("status_problem", "doubt", "advice_problem", "precheck_problem")
    }
    return packed_reports.pack(codec.encode(replace(status, **short)))


def unpack(text: str) -> NewestStatus:
    """Returns the status in a value of `binaryData`, which is base64. Raises BadStatus."""
    try:
        packed = b64decode(text, validate=True)
    # Other text than ASCII is a plain ValueError.
    except ValueError as error:
        raise BadStatus(f"the status is not base64: {error}") from error
    try:
        document = packed_reports.unpack(packed, _MAX_UNPACKED, "the status")
    except ValueError as error:
        raise BadStatus(str(error)) from error
    try:
        status = codec.decode(NewestStatus, document)
    except codec.DecodeError as error:
        raise BadStatus(f"the status cannot be read: {error}") from error
    if status.format != FORMAT:
        named = cut(one_line(status.format), _MAX_FORMAT)
        raise BadStatus(f"the status has format {named}, and this runup reads {FORMAT}")
    if status.observed_time.utcoffset() is None:
        raise BadStatus("the status does not say in which time zone it was observed")
    try:
        return replace(status, observed_time=status.observed_time.astimezone(UTC))
    except OverflowError as error:
        raise BadStatus(f"the status was observed at a time that cannot be: {status.observed_time}") from error
