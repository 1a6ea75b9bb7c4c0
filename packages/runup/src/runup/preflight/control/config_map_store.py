"""Keeps reports in a ConfigMap of a cluster: `--store configmap:NAMESPACE/NAME` (docs/decisions/0100).

Several commands and scheduled preflights may write to one at once: a change carries the resourceVersion that it was
decided on, and is decided again after a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kubekit.api import codec
from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from runup.preflight.control.report_store import NO_ROOM, StoredReport, is_same, printed, report_of
from runup.preflight.decide import packed_reports
from runup.preflight.decide.cluster_run import CONFIG_MAP, FIELD_MANAGER
from runup.preflight.decide.packed_reports import PackedEntry
from runup.report.report import Report

# Each conflict means that another command added its report; more of them at once than this do not end together.
_ATTEMPTS = 20
# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_NAMES = re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)/([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)")


class PackedReport(StoredReport, frozen=True, kw_only=True):
    """A report in a key of the ConfigMap."""

    packed: bytes = b""
    name: str = ""

    def report(self) -> Report:
        """Returns the report. Raises Terminal if the value cannot be used."""
        return _report_in(self.packed, self.name)


class ConfigMapStore:
    """The reports in one ConfigMap of the cluster that `config` leads to."""

    def __init__(self, address: str, config: Callable[[], ClusterConfig]) -> None:
        matched = _NAMES.fullmatch(address)
        if matched is None:
            text = f"--store configmap:{address}: names no ConfigMap; give configmap:NAMESPACE/NAME"
            raise Terminal(text, reason="BadStore")
        self.namespace, self.map_name = matched[1], matched[3]
        self.name = f"configmap:{address}"
        self._config = config
        self._read: ConfigMap | None = None
        self._dropped: list[PackedEntry] = []

    def check(self) -> None:
        """Raises Terminal if no report could be added. Asks the server to try, which makes nothing."""
        try:
            with SyncClient(self._config()) as client:
                config_map = self._existing(client)
                if config_map is None:
                    empty = packed_reports.empty_config_map(self.namespace, self.map_name)
                    client.send(calls.create(CONFIG_MAP, empty, dry_run=True, field_manager=FIELD_MANAGER))
                else:
                    self._refuse_others(config_map)
                    self._patch(client, {"metadata": {}}, dry_run=True)
        except (KubeError, DecodeError) as error:
            raise self._bad(error) from error

    def keep(self, cluster: str, report: Report, now: datetime) -> None:
        """Adds a report; a dump that is evaluated again with the same result is not added twice. Raises Terminal."""
        try:
            with SyncClient(self._config()) as client:
                self._add(client, cluster, report, now)
        except (KubeError, DecodeError) as error:
            raise self._bad(error) from error

    def _add(self, client: SyncClient, cluster: str, report: Report, now: datetime) -> None:
        """Adds a report, trying again after conflicts; the oldest reports go when there is no room. Raises Terminal."""
        observed = (report.observed_time or now).astimezone(UTC).replace(microsecond=0)
        packed = packed_reports.pack(codec.encode(printed(cluster, report)))
        for attempts_left in reversed(range(_ATTEMPTS)):
            config_map = self._existing(client) or self._created(client)
            self._refuse_others(config_map)
            if self._has(config_map, cluster, report, observed):
                return
            key = packed_reports.free_key(cluster, observed, now, config_map.binary_data)
            try:
                patch, dropped = packed_reports.with_report(config_map, key, packed)
            except ValueError as error:
                raise Terminal(f"--store {self.name}: {cluster}: {error}", reason=NO_ROOM) from error
            try:
                self._patch(client, patch)
            except Conflict:
                if not attempts_left:
                    raise
            else:
                self._read = None
                self._dropped += dropped
                return

    def _has(self, config_map: ConfigMap, cluster: str, report: Report, observed: datetime) -> bool:
        """Returns whether the newest report of the cluster at that moment says the same."""
        for entry in reversed(packed_reports.entries(config_map.binary_data)):
            packed = config_map.binary_data[entry.key]
            if entry.observed == observed and _cluster_in(packed) == cluster:
                with suppress(Terminal):
                    return is_same(_report_in(packed, self.name), report)
                return False
        return False

    def clusters(self) -> tuple[str, ...]:
        """Returns the names of the clusters that have reports, sorted. Raises Terminal if there is no ConfigMap."""
        self._read = None
        return tuple(sorted({report.cluster for report in self._reports()}))

    def reports_of(self, cluster: str) -> tuple[StoredReport, ...]:
        """Returns the stored reports of a cluster, the oldest first. Raises Terminal."""
        return tuple(report for report in self._reports() if report.cluster == cluster)

    def notes(self) -> tuple[str, ...]:
        """Returns the removed reports: those that an addition replaced, or else all that are recorded as removed."""
        if self._dropped:
            newest = max(entry.observed for entry in self._dropped)
            return (self._dropped_text(len(self._dropped), newest, "had to go for it"),)
        dropped = packed_reports.dropped_from(self._read) if self._read is not None else packed_reports.DroppedReports()
        if not dropped.reports:
            return ()
        return (self._dropped_text(dropped.reports, dropped.until, "are not there any more"),)

    def _dropped_text(self, number: int, until: datetime | None, noun: str) -> str:
        newest_text = f", the newest of {until:%Y-%m-%d %H:%M}Z" if until is not None else ""
        limits = f"{packed_reports.MAX_REPORTS} reports and {packed_reports.MAX_BYTES // 1024} KiB"
        return f"--store {self.name}: a ConfigMap holds {limits}; the {number} oldest {noun}{newest_text}"

    def _reports(self) -> list[PackedReport]:
        if self._read is None:
            self._read = self._opened()
        packed_entries = self._read.binary_data
        return [self._stored(entry, packed_entries[entry.key]) for entry in packed_reports.entries(packed_entries)]

    def _stored(self, entry: PackedEntry, packed: bytes) -> PackedReport:
        name = f"{self.name}: {entry.key}"
        return PackedReport(
            cluster=_cluster_in(packed),
            observed=entry.observed,
            written=entry.written,
            path=Path(entry.key),
            packed=packed,
            name=name,
        )

    def _opened(self) -> ConfigMap:
        """Returns the ConfigMap as it is in the cluster.

        Raises Terminal if it does not exist, or it is another program's.
        """
        try:
            with SyncClient(self._config()) as client:
                config_map = self._existing(client)
        except (KubeError, DecodeError) as error:
            raise self._bad(error) from error
        if config_map is None:
            raise self._bad("there is no such ConfigMap; a run with --store makes it")
        self._refuse_others(config_map)
        return config_map

    def _existing(self, client: SyncClient) -> ConfigMap | None:
        try:
            return client.send(calls.get(ConfigMap, self.map_name, self.namespace))
        except NotFound:
            return None

    def _created(self, client: SyncClient) -> ConfigMap:
        empty = packed_reports.empty_config_map(self.namespace, self.map_name)
        with suppress(AlreadyExists):
            client.send(calls.create(CONFIG_MAP, empty, field_manager=FIELD_MANAGER))
        return client.send(calls.get(ConfigMap, self.map_name, self.namespace))

    def _patch(self, client: SyncClient, patch: packed_reports.JSON, *, dry_run: bool = False) -> None:
        """Applies a merge patch to the ConfigMap. Raises KubeError."""
        client.send(
            calls.merge_patch(
                CONFIG_MAP, self.map_name, patch, self.namespace, field_manager=FIELD_MANAGER, dry_run=dry_run
            )
        )

    def _refuse_others(self, config_map: ConfigMap) -> None:
        if not packed_reports.is_store(config_map):
            raise self._bad("is not a store of runup's; name a ConfigMap that runup has made, or a new one")

    def _bad(self, problem: object) -> Terminal:
        hint = "; name a ConfigMap that you may get, create and patch" if isinstance(problem, Forbidden) else ""
        hint = f"; make it first: kubectl create namespace {self.namespace}" if isinstance(problem, NotFound) else hint
        return Terminal(f"--store {self.name}: {problem}{hint}", reason="BadStore")


class _ReportHead(msgspec.Struct, frozen=True):
    """The fields of a report that identify its cluster."""

    cluster: str = ""


def _cluster_in(packed: bytes) -> str:
    """Returns the name of a report's cluster, empty if it cannot be read."""
    try:
        return msgspec.json.decode(packed_reports.unpack(packed), type=_ReportHead).cluster
    except (ValueError, RecursionError):  # DecodeError and UnicodeDecodeError are ValueErrors
        return ""


def _report_in(packed: bytes, name: str) -> Report:
    """Returns the report of a packed entry. Raises Terminal if it cannot be read."""
    try:
        data = packed_reports.unpack(packed)
    except ValueError as error:
        raise Terminal(f"{name}: {error}", reason="BadReport") from error
    return report_of(data, name)
