"""Reports in a ConfigMap as `--store configmap:NAMESPACE/NAME` keeps them: packed, a bounded number, the newest.

    binaryData:
      20261123T092159Z.20261123T092201125000Z.6ea1f3b2c4d0.json.gz: ...

The key holds the time that the report is about, the time at which it was written, and a hash of the cluster's name. The
value is the report as JSON with the name of its cluster, packed by gzip. An annotation says how many older ones had to
go.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Wire
from runup.preflight.decide.cluster_run import PART_OF, REPORTS_LABEL
from runup.report import report as reports

SERIES = "preflight-reports"
"""The ConfigMap in which scheduled preflights keep all their reports, in the namespace of the schedule."""
STORE_LABEL = "preflight.runup.dev/store"
"""Label of a ConfigMap that is a store, by which one of somebody else is not written to."""
DROPPED_ANNOTATION = "preflight.runup.dev/dropped"
"""Annotation with the number of reports that had to go, and of when the newest of them was."""
MAX_REPORTS = 200
# The API server takes 1 MiB of keys and values in a ConfigMap; the annotation and managed fields count apart.
# https://kubernetes.io/docs/concepts/configuration/configmap/
MAX_BYTES = 900 * 1024
_TIME = "%Y%m%dT%H%M%S"
_KEY = re.compile(r"(\d{8}T\d{6})Z\.(\d{8}T\d{12})Z\.[0-9a-f]{12}\.json\.gz")
# For zlib: a gzip header and trailer.
_GZIP = 16 + zlib.MAX_WBITS
# A report, the name of its cluster, and the spaces of somebody who wrote it by hand.
_MAX_UNPACKED = reports.MAX_BYTES + 64 * 1024

JSON = dict[str, Any]


class DroppedReports(Wire, frozen=True, kw_only=True):
    """The number of reports dropped for newer ones, and when the newest of them was observed."""

    reports: int = 0
    until: datetime | None = None


class PackedEntry(msgspec.Struct, frozen=True):
    """A report in the ConfigMap by its key: when the cluster was so, and when the report was written."""

    key: str
    observed: datetime
    written: datetime


def pack(document: bytes) -> bytes:
    """Returns a document packed by gzip; the same document is packed the same at any time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    return packer.compress(document) + packer.flush()


def unpack(packed: bytes, most: int = _MAX_UNPACKED, noun: str = "it") -> bytes:
    """Returns the unpacked data. Raises ValueError if it is not gzip, truncated, or larger than `most` bytes.

    No report has as many as the default. `noun` is what the error is about.
    """
    unpacker = zlib.decompressobj(_GZIP)
    try:
        document = unpacker.decompress(packed, most)
    except zlib.error as error:
        raise ValueError(f"{noun} is not packed by gzip ({error})") from error
    if unpacker.unconsumed_tail:
        size = f"{most >> 10} KiB" if most % (1 << 20) else f"{most >> 20} MiB"
        raise ValueError(f"{noun} unpacks to more than {size}")
    if not unpacker.eof:
        raise ValueError(f"{noun} is cut")
    return document


def entries(keys: Iterable[str]) -> tuple[PackedEntry, ...]:
    """Returns the reports of a ConfigMap, the oldest first; keys that are not of reports are left out."""
    sorted_entries = []
    for key in keys:
        try:
            if matched := _KEY.fullmatch(key):
                observed = datetime.strptime(matched[1], _TIME).replace(tzinfo=UTC)
                written = datetime.strptime(matched[2], f"{_TIME}%f").replace(tzinfo=UTC)
                sorted_entries.append(PackedEntry(key, observed, written))
        except ValueError:
            continue  # digits that are no time
    return tuple(sorted(sorted_entries, key=lambda entry: (entry.observed, entry.written, entry.key)))


def free_key(cluster: str, observed: datetime, now: datetime, used_keys: Iterable[str]) -> str:
    """Returns a key for a report of a cluster; of two that are written at one moment, the later one's is different."""
    digest = hashlib.sha256(cluster.encode()).hexdigest()[:12]
    known, written = set(used_keys), now.astimezone(UTC)
    while True:
        key = f"{observed.astimezone(UTC):{_TIME}}Z.{written:{_TIME}%f}Z.{digest}.json.gz"
        if key not in known:
            return key
        written += timedelta(microseconds=1)


def empty_config_map(namespace: str, name: str) -> JSON:
    """Returns the ConfigMap as it is created."""
    labels = PART_OF | {REPORTS_LABEL: "true", STORE_LABEL: "true"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def is_store(config_map: ConfigMap) -> bool:
    """Returns whether a ConfigMap is a store of reports."""
    return config_map.metadata.labels.get(STORE_LABEL) == "true"


def with_report(config_map: ConfigMap, key: str, packed: bytes) -> tuple[JSON, tuple[PackedEntry, ...]]:
    """Returns the merge patch that adds a report, and the reports that have no room next to it: the oldest.

    Raises ValueError for a report that has no room by itself, or is older than all that fill the ConfigMap.
    """
    values: dict[str, bytes] = {**config_map.binary_data, key: packed}
    other_bytes = sum(len(name) + len(text.encode()) for name, text in config_map.data.items())
    stored_entries = entries(values)
    mine = {entry.key for entry in stored_entries}
    other_bytes += sum(len(name) + len(value) for name, value in values.items() if name not in mine)
    # The oldest reports go, so that the rest keep the limits on number and size.
    sizes = [len(entry.key) + len(values[entry.key]) for entry in stored_entries]
    start = max(len(stored_entries) - MAX_REPORTS, 0)
    while start < len(stored_entries) and sum(sizes[start:]) > MAX_BYTES - other_bytes:
        start += 1
    dropped = stored_entries[:start]
    if any(entry.key == key for entry in dropped):
        size = f"{-(-len(packed) // 1024)} KiB"
        limits = f"{MAX_REPORTS} reports and {MAX_BYTES // 1024} KiB"
        raise ValueError(f"the report takes {size} packed, and newer ones fill the {limits} that there are")
    patch: JSON = {"binaryData": {key: codec.to_dict(packed), **{entry.key: None for entry in dropped}}}
    metadata: JSON = {"resourceVersion": config_map.metadata.resource_version}
    if dropped:
        dropped_before = dropped_from(config_map)
        until = max([entry.observed for entry in dropped] + ([dropped_before.until] if dropped_before.until else []))
        note = DroppedReports(reports=dropped_before.reports + len(dropped), until=until)
        metadata["annotations"] = {DROPPED_ANNOTATION: codec.encode(note).decode()}
    return {"metadata": metadata, **patch}, dropped


def dropped_from(config_map: ConfigMap) -> DroppedReports:
    """Returns which reports were dropped from a ConfigMap until now; none if its annotation cannot be read."""
    try:
        note = codec.decode(DroppedReports, config_map.metadata.annotations.get(DROPPED_ANNOTATION, "{}"))
    except codec.DecodeError:
        return DroppedReports()
    naive = note.until is not None and note.until.utcoffset() is None
    return DroppedReports() if naive or note.reports < 0 else note
