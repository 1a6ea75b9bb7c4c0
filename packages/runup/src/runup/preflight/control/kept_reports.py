"""Reads and changes the ConfigMaps of the reports that preflights in the cluster leave.

`preflight-history` has the newest report of each update, `preflight-reports` all reports of scheduled runs, as long as
they have room (`config_map_store`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, Conflict, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from runup.preflight.control.config_map_store import ConfigMapStore
from runup.preflight.decide import kept_history, newest_report, packed_reports
from runup.preflight.decide.cluster_run import CONFIG_MAP, FIELD_MANAGER, NAMESPACE
from runup.preflight.decide.kept_history import NAME, LastScheduled
from runup.process.read_only_client import refuse_writes
from runup.report.report import Report, read

# Each conflict means that another run added its report; more of them at once than this do not end together.
_ATTEMPTS = 10
# Of a schedule that an earlier runup made.
_UNNAMED = "this cluster"
T = TypeVar("T")


def read_kept(client: SyncClient) -> ConfigMap | None:
    """Returns the ConfigMap, or None. Raises KubeError."""
    try:
        return client.send(calls.get(ConfigMap, NAME, NAMESPACE))
    except NotFound:
        return None


def ensure(client: SyncClient) -> None:
    """Creates the ConfigMap if it does not exist. Raises KubeError."""
    if read_kept(client) is None:
        with suppress(AlreadyExists):
            client.send(calls.create(CONFIG_MAP, kept_history.empty_config_map(), field_manager=FIELD_MANAGER))


def ensure_series(client: SyncClient) -> None:
    """Creates the ConfigMap of all reports if it does not exist. Raises KubeError."""
    try:
        client.send(calls.get(ConfigMap, packed_reports.SERIES, NAMESPACE))
    except NotFound:
        empty = packed_reports.empty_config_map(NAMESPACE, packed_reports.SERIES)
        with suppress(AlreadyExists):
            client.send(calls.create(CONFIG_MAP, empty, field_manager=FIELD_MANAGER))


def add(client: SyncClient, report: Report) -> None:
    """Adds a report to the ConfigMap. Raises KubeError."""
    _patch_kept(client, lambda kept: (kept_history.with_report(kept, report), None))


class HistorySink:
    """The ConfigMaps of stored reports of scheduled runs; `last` is the record of the run.

    `not_in_series` says why the report is not among all reports, empty if it is. `newest`: it is also put into the
    ConfigMap from where an agent takes it to a hub.
    """

    def __init__(self, config: ClusterConfig, clock: Clock, cluster: str = "", *, newest: bool = False) -> None:
        self._config = config
        self._clock = clock
        self._cluster = cluster or _UNNAMED
        self._newest = newest
        self.last: LastScheduled | None = None
        self.not_in_series = ""

    def write(self, data: bytes) -> None:
        """Adds the report in `data`. Raises OSError, also for errors of the API server."""
        report = read(data)
        try:
            with SyncClient(self._config) as client:
                now = self._clock.now()
                # First: what is noted below is no news to the next run.
                if self._newest:
                    _put_newest(client, report)
                self.last = _patch_kept(client, lambda kept: kept_history.with_scheduled(kept, report, now))
        except NotFound as error:
            text = f"{error}; `runup preflight schedule` creates it"
            raise OSError(f"ConfigMap {NAMESPACE}/{NAME}: {text}") from error
        except (KubeError, DecodeError) as error:
            raise OSError(f"ConfigMap {NAMESPACE}/{NAME}: {error}") from error
        store = ConfigMapStore(f"{NAMESPACE}/{packed_reports.SERIES}", lambda: self._config)
        try:
            store.keep(self._cluster, report, now)
        except Terminal as error:
            # The result is in the first ConfigMap: a schedule of an earlier runup has no other.
            self.not_in_series = f"{error.message}; `runup preflight schedule --every` creates it"


def _put_newest(client: SyncClient, report: Report) -> None:
    """Puts a report in place of the one that travels. Raises OSError, also for errors of the API server."""
    where = f"ConfigMap {NAMESPACE}/{newest_report.NAME}"
    try:
        patch = newest_report.with_report(report)
        call = calls.merge_patch(CONFIG_MAP, newest_report.NAME, patch, NAMESPACE, field_manager=FIELD_MANAGER)
        refuse_writes(call.request, NAMESPACE)
        client.send(call)
    except NotFound as error:
        raise OSError(f"{where}: {error}; the add-on of `runup fleet addon` creates it") from error
    except (KubeError, ValueError) as error:
        raise OSError(f"{where}: {error}") from error


def _patch_kept(client: SyncClient, decide: Callable[[ConfigMap], tuple[dict[str, Any], T]]) -> T:
    """Patches the ConfigMap as `decide` says, and returns what else it says.

    `decide` gets the ConfigMap and returns a merge patch, empty for none. It is asked again if another run wrote
    meanwhile, `_ATTEMPTS` times at most. Raises KubeError.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        patch, outcome = decide(client.send(calls.get(ConfigMap, NAME, NAMESPACE)))
        if not patch:
            return outcome
        call = calls.merge_patch(CONFIG_MAP, NAME, patch, NAMESPACE, field_manager=FIELD_MANAGER)
        refuse_writes(call.request, NAMESPACE)
        try:
            client.send(call)
        except Conflict:
            if not attempts_left:
                raise
        else:
            return outcome
    raise AssertionError("the last attempt returns or raises")
