"""Keeps every report in one SQLite file: `--store sqlite:FILE`.

    CREATE TABLE reports (id, cluster, observed, written, target, report)

The times are UTC and sort as text; `report` is JSON as it is elsewhere (docs/reference/spec/preflight-v1.schema.json),
so that SQLite's own `json_extract` reads it. Every report is one transaction: several commands may write to one file,
and one that is killed leaves none of its half. No file is kept next to it, as a write-ahead log would be.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from kubekit.api import codec
from kubekit.error_types import Terminal
from runup.preflight.control.report_store import StoredReport, is_same, printed, report_of
from runup.report.report import Report

# Another command may be writing; a report takes milliseconds, on a slow disk a second.
_PATIENCE_S = 60.0
_SCHEMA = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS reports (
  id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL, observed TEXT NOT NULL, written TEXT NOT NULL, target TEXT NOT NULL, report TEXT NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS by_time ON reports (cluster, observed, written)"
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


class KeptRow(StoredReport, frozen=True, kw_only=True):
    """A report in a row of the file."""

    row: int = 0

    def report(self) -> Report:
        """Returns the report. Raises Terminal if the row cannot be used."""
        store = SqliteStore(self.path)
        with store.reading() as database:
            row = database.execute("SELECT report FROM reports WHERE id = ?", (self.row,)).fetchone()
        if row is None:
            raise Terminal(f"{store.name}: report {self.row} is gone", reason="BadReport")
        return report_of(_bytes(row[0]), f"{store.name}: report {self.row}")


class SqliteStore:
    """The reports in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"sqlite:{path}"

    def check(self) -> None:
        """Raises Terminal if no report could be added. Makes no file."""
        if self.path.is_dir():
            raise self._bad("is a folder; name a file")
        if not self.path.absolute().parent.is_dir():
            raise self._bad(f"there is no folder {self.path.parent}; make it first")
        if self.path.exists():
            with self._writing() as database:
                database.execute("SELECT id FROM reports LIMIT 1")

    def keep(self, cluster: str, report: Report, now: datetime) -> None:
        """Adds a report; a dump that is evaluated again with the same result is not added twice. Raises Terminal."""
        observed = _text((report.observed_time or now).replace(microsecond=0))
        text = codec.encode(printed(cluster, report)).decode()
        values = (cluster, observed, _text(now), report.target_version, text)
        with self._writing() as database:
            stored_before = database.execute(
                "SELECT report FROM reports WHERE cluster = ? AND observed = ? ORDER BY written DESC, id DESC LIMIT 1",
                values[:2],
            ).fetchone()
            if stored_before is None or not self._is_same(stored_before[0], report):
                database.execute(
                    "INSERT INTO reports (cluster, observed, written, target, report) VALUES (?, ?, ?, ?, ?)", values
                )

    def _is_same(self, text: object, report: Report) -> bool:
        try:
            return is_same(report_of(_bytes(text), self.name), report)
        except Terminal:
            return False

    def clusters(self) -> tuple[str, ...]:
        """Returns the names of the clusters that have reports, sorted. Raises Terminal if there is no such file."""
        with self.reading() as database:
            return tuple(sorted(str(name) for (name,) in database.execute("SELECT DISTINCT cluster FROM reports")))

    def reports_of(self, cluster: str) -> tuple[StoredReport, ...]:
        """Returns the stored reports of a cluster, the oldest first. Raises Terminal."""
        with self.reading() as database:
            rows = database.execute(
                "SELECT id, observed, written FROM reports WHERE cluster = ? ORDER BY observed, written, id", (cluster,)
            ).fetchall()
        try:
            return tuple(
                KeptRow(cluster=cluster, observed=_time(observed_at), written=_time(stored_at), path=self.path, row=row)
                for row, observed_at, stored_at in rows
            )
        except (TypeError, ValueError) as error:
            raise self._bad(f"has a report of {cluster} without a time ({error})") from error

    def notes(self) -> tuple[str, ...]:
        """Returns nothing: a file keeps all."""
        return ()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yields the database, opened to read. Raises Terminal."""
        if not self.path.is_file():
            raise self._bad("there is no such file; a run with --store makes it")
        with self._opened("ro") as database:
            yield database

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yields the database within a transaction, with its table created. Raises Terminal for a foreign file."""
        with self._opened("rwc") as database:
            # At once, not at the first row: two that have both read before they write would be refused.
            database.execute("BEGIN IMMEDIATE")
            (schema,) = database.execute("PRAGMA user_version").fetchone()
            if not schema and database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                raise self._bad("is the database of another program; name a file that runup has made, or a new one")
            database.execute(_TABLE)
            database.execute(_INDEX)
            database.execute(f"PRAGMA user_version = {_SCHEMA}")
            yield database
            database.execute("COMMIT")

    @contextmanager
    def _opened(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Yields the open database; `mode` is SQLite's (ro, rw, rwc). Raises Terminal."""
        address = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        try:
            with closing(sqlite3.connect(address, _PATIENCE_S, isolation_level=None, uri=True)) as database:
                (schema,) = database.execute("PRAGMA user_version").fetchone()
                if schema > _SCHEMA:
                    raise self._bad(f"a newer runup has written it (schema {schema}); use that, or another file")
                yield database
        except (sqlite3.Error, ValueError) as error:  # ValueError: a NUL is in the name
            raise self._bad(f"{error}; name a file that runup has made, or a new one") from error

    def _bad(self, problem: str) -> Terminal:
        return Terminal(f"--store {self.name}: {problem}", reason="BadStore")


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace")


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime(_TIME)


def _time(text: str) -> datetime:
    return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
