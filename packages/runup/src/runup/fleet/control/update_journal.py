"""Keeps the journal of a fleet update in one SQLite file, so that a killed command can be resumed.

    meta      the FleetUpdate, its calendars and clusters, as at the start
    entries   intents, outcomes and decisions of people, each with a hash over the entries before it
    records   the newest record of each cluster, by the UID of its namespace kube-system

Every write is one transaction on a write-ahead log with `synchronous=FULL`, so that an intent is on the disk before
its act (docs/decisions/0138). One process drives the update, by a lock on FILE.lock; other commands may add decisions.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from kubekit.api import codec
from kubekit.error_types import InputError
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import UpdateCalendar
from runup.fleet.decide.update_records import Entry, Kind, Record, UpdateMember

# "RUPF": distinguishes a journal from databases of other programs (https://www.sqlite.org/pragma.html).
_APPLICATION, _VERSION = 0x52555046, 1
# Another command writes for milliseconds; on a slow disk for seconds.
_PATIENCE_S = 60.0
_TABLES = (
    "CREATE TABLE meta (document TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE records (uid TEXT PRIMARY KEY, record TEXT NOT NULL, hash TEXT NOT NULL)",
)
_NEW_ONE = (
    "restore a copy, or begin with another journal: `runup fleet update start FILE --journal OTHER`; clusters that are "
    "updated or updating are recognized by their own state, but holds, skips and approvals must be given again"
)


class BadJournal(InputError):
    """The journal cannot be used; the message names the file and the way out."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The start of an update: its FleetUpdate, the calendars of its file, and its clusters."""

    update: FleetUpdate
    calendars: tuple[UpdateCalendar, ...] = ()
    members: tuple[UpdateMember, ...]


class Journal:
    """An open journal. `start` is stored at the start; records and entries are read when they are needed."""

    def __init__(self, path: Path, database: sqlite3.Connection, start: Start) -> None:
        self.path = path
        self.start = start
        self._database = database

    def entries(self) -> tuple[Entry, ...]:
        """Returns all entries, the oldest first. Raises BadJournal if one was changed or removed."""
        with _errors(self.path):
            rows = self._database.execute("SELECT number, entry, hash FROM entries ORDER BY number").fetchall()
        before = ""
        for index, (number, text, digest) in enumerate(rows):
            if number != index + 1 or digest != _hash(before, text):
                raise _damaged(self.path, f"entry {index + 1} was changed or removed")
            before = digest
        return tuple(self._decode(Entry, text) for _, text, _ in rows)

    def records(self) -> dict[str, Record]:
        """Returns the records by UID. Raises BadJournal if one was changed."""
        with _errors(self.path):
            rows = self._database.execute("SELECT uid, record, hash FROM records").fetchall()
        if changed := next((uid for uid, text, digest in rows if digest != _hash(uid, text)), None):
            raise _damaged(self.path, f"the record of cluster {changed} was changed")
        return {uid: self._decode(Record, text) for uid, text, _ in rows}

    def add(
        self,
        kind: Kind,
        at: datetime,
        cluster: str = "",
        data: Mapping[str, str] | None = None,
        *,
        record: Record | None = None,
    ) -> int:
        """Adds an entry, and stores a record with it, in one transaction; returns its number. Raises BadJournal."""
        with _errors(self.path), _transaction(self._database):
            newest = self._database.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone()
            number, before = newest or (0, "")
            entry = Entry(number=number + 1, at=at, kind=kind, cluster=cluster, data=dict(data or {}))
            text = codec.encode(entry).decode()
            self._database.execute("INSERT INTO entries VALUES (?, ?, ?)", (number + 1, text, _hash(before, text)))
            if record is not None:
                self._write(record)
        return int(number) + 1

    def keep(self, record: Record) -> None:
        """Stores the record of a cluster. Raises BadJournal."""
        with _errors(self.path), _transaction(self._database):
            self._write(record)

    def _write(self, record: Record) -> None:
        text = codec.encode(record).decode()
        values = (record.uid, text, _hash(record.uid, text))
        self._database.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", values)

    def _decode(self, kind: type[Any], text: str) -> Any:
        try:
            return codec.decode(kind, text)
        except codec.DecodeError as error:
            raise _damaged(self.path, str(error)) from error


def create(path: Path, start: Start) -> None:
    """Creates a journal. Raises BadJournal if the file exists and is not empty."""
    text = codec.encode(start).decode()
    with _opened(path, "rwc") as database:
        (application,) = database.execute("PRAGMA application_id").fetchone()
        is_empty = not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if not is_empty or application:
            way_out = "`runup fleet update resume` continues it; for another update give --journal OTHER"
            raise BadJournal(f"{path} exists: {way_out}")
        _set_up(database)
        with _transaction(database):
            for table in _TABLES:
                database.execute(table)
            database.execute("INSERT INTO meta VALUES (?, ?)", (text, _hash("", text)))
            database.execute(f"PRAGMA application_id = {_APPLICATION}")
            database.execute(f"PRAGMA user_version = {_VERSION}")


@contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Yields the journal of a file. Raises BadJournal for one that is missing, damaged, foreign or newer."""
    if not path.is_file():
        raise BadJournal(f"{path} does not exist: `runup fleet update start FILE` begins an update and its journal")
    with _opened(path, "rw") as database:
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            if not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                raise _damaged(path, "it is empty")
            raise BadJournal(f"{path} is the database of another program: name a journal with --journal")
        if version > _VERSION:
            raise BadJournal(f"{path} was written by a newer runup (version {version}): use that runup")
        problems = [str(row[0]) for row in database.execute("PRAGMA integrity_check(1)").fetchall()]
        if problems != ["ok"]:
            raise _damaged(path, " ".join("; ".join(problems).split()))
        _set_up(database)
        row = database.execute("SELECT document, hash FROM meta").fetchall()
        if len(row) != 1 or row[0][1] != _hash("", row[0][0]):
            raise _damaged(path, "the stored start was changed")
        try:
            start = codec.decode(Start, row[0][0])
        except codec.DecodeError as error:
            raise _damaged(path, str(error)) from error
        yield Journal(path, database, start)


@contextmanager
def driver(path: Path) -> Iterator[bool]:
    """Yields whether this process may drive the update: a lock that the system releases when the process ends."""
    try:
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadJournal(f"{path}.lock: {error.strerror}: the journal needs a folder that can be written") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    with _errors(path), closing(sqlite3.connect(address, _PATIENCE_S, isolation_level=None, uri=True)) as database:
        yield database


def _set_up(database: sqlite3.Connection) -> None:
    """Makes each transaction durable before it returns (https://www.sqlite.org/pragma.html#pragma_synchronous)."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    # At once: two that have both read before they write would be refused.
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Turns errors of SQLite into BadJournal with the way out."""
    try:
        yield
    except (sqlite3.OperationalError, ValueError) as error:
        code = getattr(error, "sqlite_errorname", "")
        if code in ("SQLITE_FULL", "SQLITE_IOERR_WRITE"):
            way_out = "nothing was started without its intent; free space, then `runup fleet update resume`"
            raise BadJournal(f"{path}: {error}: {way_out}") from error
        if code in ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_BUSY"):
            raise BadJournal(f"{path}: {error}: the file and its folder must be writable by this user") from error
        raise _damaged(path, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, problem: str) -> BadJournal:
    return BadJournal(f"{path} cannot be used as a journal ({problem}): {_NEW_ONE}")


def _hash(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode("utf-8", "surrogateescape")).hexdigest()
