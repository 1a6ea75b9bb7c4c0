"""Keeps every report in a folder: one folder a cluster, one file a report, named by time and target.

    DIR/harbour/20261123T092159Z.20261123T092201125000Z.4.16.0.json

The first time is when the cluster was as the report says, of a dump its own; the second one when the file was written.
A file is a report as it is elsewhere (docs/reference/spec/preflight-v1.schema.json), with the name of the cluster. It
is written whole or not at all, so several commands may write to one folder. `stores.py` has the other places.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.error_types import Terminal
from kubekit.lang.files import links_inside, read_limited, write_new
from runup.preflight.decide.stored_reports import same_findings
from runup.report.report import FORMAT, BadReport, Report, is_of, read

_TIME = "%Y%m%dT%H%M%S"
_SUFFIX = ".json"
# File systems allow 255 bytes; the rest of a longer name is its hash.
_LONGEST = 200
NO_ROOM = "NoRoom"
"""The reason of a Terminal that refuses one report, of a store that takes others."""


class StoredReport(msgspec.Struct, frozen=True):
    """A report in the store: whose it is, when the cluster was so, and when it was written."""

    cluster: str
    observed: datetime
    written: datetime
    path: Path

    def report(self) -> Report:
        """Returns the report. Raises Terminal if the file cannot be used."""
        with links_inside(self.path.parents[1]):
            return read_file(self.path)


def failed_report(target: str, problem: str, now: datetime) -> Report:
    """Returns the report of a failed preflight, so that the history shows that the cluster could not be evaluated."""
    return Report(
        format=FORMAT,
        target_version=target,
        execution_status="failed",
        observed_time=now,
        message=problem or "no result",
    )


def keep(folder: Path, cluster: str, report: Report, now: datetime) -> Path:
    """Adds a report, and returns its file; a dump that is evaluated again with the same result is not added twice.

    Raises Terminal if it cannot be written.
    """
    cluster_folder = folder / folder_name(cluster)
    observed = (report.observed_time or now).astimezone(UTC)
    stored_before = [kept for kept in reports_of(folder, cluster) if kept.observed == observed.replace(microsecond=0)]
    with suppress(Terminal):
        if stored_before and is_same(stored_before[-1].report(), report):
            return stored_before[-1].path
    data = json.dumps(printed(cluster, report), indent=1, ensure_ascii=True) + "\n"
    target, written = quote(report.target_version or "unknown", safe="+"), now.astimezone(UTC)
    try:
        cluster_folder.mkdir(parents=True, exist_ok=True)
        while True:
            file = cluster_folder / f"{observed:{_TIME}}Z.{written:{_TIME}%f}Z.{target}{_SUFFIX}"
            with suppress(FileExistsError):
                write_new(file, data)
                return file
            # Two results of one moment that are written at one moment differ by a microsecond in their names.
            written += timedelta(microseconds=1)
    except OSError as error:
        text = f"--store {folder}: {error.strerror or error}; name a folder that you may write to"
        raise Terminal(text, reason="StoreNotWritable") from error


def check(folder: Path) -> None:
    """Raises Terminal if no report could be added to the folder. Makes nothing."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    problem = "" if existing.is_dir() else f"{existing} is not a folder"
    if problem or not os.access(existing, os.W_OK | os.X_OK):
        text = f"--store {folder}: {problem or 'permission denied'}; name a folder that you may write to"
        raise Terminal(text, reason="StoreNotWritable")


def printed(cluster: str, report: Report) -> dict[str, Any]:
    """Returns a report as it is kept: with the name of its cluster."""
    return {"cluster": cluster, **codec.to_dict(report)}


def is_same(old: Report, new: Report) -> bool:
    """Returns whether two reports of one moment say the same; the engine's version is no finding."""
    return same_findings(replace(old, engine_version=new.engine_version), new)


def folder_name(cluster: str) -> str:
    """Returns the name of a cluster's folder: names of contexts have slashes and colons."""
    name = quote(cluster, safe=" @+=,")
    name = f"%2E{name[1:]}" if name.startswith(".") else name or "%"
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(cluster.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - len(digest) - 1]}-{digest}"


def clusters_in(folder: Path) -> tuple[str, ...]:
    """Returns the names of the clusters that have reports, sorted. Raises Terminal if there is no such folder."""
    if not folder.is_dir():
        raise Terminal(f"--store {folder}: there is no such folder; a run with --store makes it", reason="NoStore")
    names = set()
    for cluster_folder in folder.iterdir():
        files = sorted(_report_files(cluster_folder)) if cluster_folder.is_dir() else []
        if files:
            # The name as a stored report has it; the folder's name if the report cannot be read.
            name = None
            with links_inside(folder), suppress(OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                name = msgspec.json.decode(read_limited(files[-1]), type=dict).get("cluster")
            names.add(str(name or cluster_folder.name))
    return tuple(sorted(names))


def reports_of(folder: Path, cluster: str) -> tuple[StoredReport, ...]:
    """Returns the stored reports of a cluster, the oldest first, by the times in the names of its files."""
    cluster_folder, reports = folder / folder_name(cluster), []
    for file in _report_files(cluster_folder) if cluster_folder.is_dir() else ():
        # The name begins with two times; the target after them has dots of its own.
        name_parts = file.name.split(".", 2)
        # Files with other names are left alone.
        with suppress(ValueError, IndexError):
            observed = datetime.strptime(name_parts[0], f"{_TIME}Z").replace(tzinfo=UTC)
            written = datetime.strptime(name_parts[1], f"{_TIME}%fZ").replace(tzinfo=UTC)
            reports.append(StoredReport(cluster, observed, written, file))
    return tuple(sorted(reports, key=lambda kept: (kept.observed, kept.written)))


def _report_files(cluster_folder: Path) -> Iterator[Path]:
    return (file for file in cluster_folder.iterdir() if file.suffix == _SUFFIX and not file.name.startswith("."))


def newest(reports: tuple[StoredReport, ...], until: datetime | None = None, target: str = "") -> StoredReport | None:
    """Returns the newest report until a time, of a target if one is named; None if it does not exist."""
    fitting = [report for report in reports if until is None or report.observed < until]
    return next((each for each in reversed(fitting) if not target or is_of(each.report(), target)), None)


def read_file(path: Path) -> Report:
    """Returns the report in a file. Raises Terminal with the file's name."""
    try:
        data = read_limited(path)
    except OSError as error:
        raise Terminal(f"{path}: {error.strerror}", reason="BadReport") from error
    return report_of(data, str(path))


def report_of(data: bytes, name: str) -> Report:
    """Returns the report in `data`. Raises Terminal with the name."""
    try:
        return read(data)
    except BadReport as error:
        raise Terminal(f"{name}: {error.message}", reason="BadReport") from error
