"""Destinations of a report: a file that is replaced as a whole, a ConfigMap, or a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Protocol

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import ClusterConfig
from runup.preflight.decide import preflight_deployment
from runup.process.read_only_client import refuse_writes
from runup.report.report import FILE_NAME

FIELD_MANAGER = "cluster-version-operator-preflight"


class Sink(Protocol):
    """Stores a report's bytes; if it raises OSError, the previous report is kept."""

    def write(self, data: bytes) -> None:
        """Replaces the previous report by `data`."""


class FileSink:
    """A file that is replaced by a rename, so that a reader sees the old report or the new one, never a part."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, data: bytes) -> None:
        """Replaces the file by `data`. Raises OSError if that fails."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A name of this project, so that a process which was killed half-way leaves at most one file behind.
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                # Before the rename, or a crash of the node could leave an empty file under the final name.
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        # Makes the rename survive a crash of the node.
        descriptor = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ConfigMapSink:
    """A ConfigMap in the process's own namespace, for clusters that forbid host paths (docs/decisions/0072 D8)."""

    def __init__(self, config: ClusterConfig, namespace: str, preflight_id: str) -> None:
        self._config = config
        self._namespace = namespace
        self._name = preflight_deployment.report_map(preflight_id)

    def write(self, data: bytes) -> None:
        """Applies the ConfigMap with `data`. Raises OSError, also for errors of the API server."""
        # The managing operator watches ConfigMaps with this label.
        labels = {preflight_deployment.APP_LABEL: preflight_deployment.NAME}
        metadata = {"name": self._name, "namespace": self._namespace, "labels": labels}
        obj = {"metadata": metadata, "data": {FILE_NAME: data.decode()}}
        call = calls.apply(resource_of(ConfigMap), obj, field_manager=FIELD_MANAGER, force=True)
        refuse_writes(call.request, self._namespace)
        try:
            with SyncClient(self._config) as client:
                client.send(call)
        except (KubeError, DecodeError) as error:
            raise OSError(f"ConfigMap {self._namespace}/{self._name}: {error}") from error


class StreamSink:
    """A stream; each report is one line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Writes `data` and flushes the stream."""
        self._stream.write(data)
        self._stream.flush()
