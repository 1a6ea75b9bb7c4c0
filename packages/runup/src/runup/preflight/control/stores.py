"""The places in which reports are kept: a folder, `sqlite:FILE`, or `configmap:NAMESPACE/NAME` in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kubekit.error_types import Terminal
from runup.preflight.control import report_store
from runup.preflight.control.report_store import StoredReport
from runup.report.report import Report

if TYPE_CHECKING:
    from kubekit.kube.config import ClusterConfig

_SQLITE = "sqlite"
_CONFIG_MAP = "configmap"


class Store(Protocol):
    """Reports by cluster and time. Everything raises Terminal, which names the store."""

    name: str

    def check(self) -> None:
        """Raises Terminal if no report could be added; nothing is made."""

    def keep(self, cluster: str, report: Report, now: datetime) -> None:
        """Adds a report; one that was added already, with the same result at the same time, is not added twice."""

    def clusters(self) -> tuple[str, ...]:
        """Returns the names of the clusters that have reports, sorted."""

    def reports_of(self, cluster: str) -> tuple[StoredReport, ...]:
        """Returns the stored reports of a cluster, the oldest first."""

    def notes(self) -> tuple[str, ...]:
        """Returns notes for the user about reports that the store has removed."""


class FolderStore:
    """The reports in a folder, a file for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = str(folder)

    def check(self) -> None:
        """Raises Terminal if no report could be added; nothing is made."""
        report_store.check(self.folder)

    def keep(self, cluster: str, report: Report, now: datetime) -> None:
        """Adds a report; one that was added already, with the same result at the same time, is not added twice."""
        report_store.keep(self.folder, cluster, report, now)

    def clusters(self) -> tuple[str, ...]:
        """Returns the names of the clusters that have reports, sorted."""
        return report_store.clusters_in(self.folder)

    def reports_of(self, cluster: str) -> tuple[StoredReport, ...]:
        """Returns the stored reports of a cluster, the oldest first."""
        return report_store.reports_of(self.folder, cluster)

    def notes(self) -> tuple[str, ...]:
        """Returns nothing: a folder keeps all."""
        return ()


def open_store(typed: str, config: Callable[[], ClusterConfig] | None = None) -> Store:
    """Returns the store that `--store` names; nothing is read yet. Raises Terminal for what names none.

    `config` leads to the cluster that has a ConfigMap; without it that is the kubeconfig's current context.
    """
    kind, colon, path = typed.partition(":")
    if colon and kind == _SQLITE:
        if not path:
            raise Terminal("--store sqlite: has no file; give sqlite:FILE", reason="BadStore")
        from runup.preflight.control.sqlite_store import SqliteStore

        return SqliteStore(Path(path))
    if colon and kind == _CONFIG_MAP:
        from kubekit.kube.config import load
        from runup.preflight.control.config_map_store import ConfigMapStore

        return ConfigMapStore(path, config or load)
    return FolderStore(Path(typed))
