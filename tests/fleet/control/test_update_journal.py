"""The journal of a fleet update: refused with the way out, or correct, whatever happens to its file. Case 63."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.few_or_many import few_or_many
from tests.fleet.decide.test_update_turns import fleet_update

from runup.fleet.control.update_journal import BadJournal, Start, create, driver, open_journal
from runup.fleet.decide.update_records import Record, UpdateMember, open_intents, requests_of

NOW = datetime(2027, 2, 2, 22, tzinfo=UTC)
START = Start(update=fleet_update({}), members=(UpdateMember(name="harbour", stage=0, uid="u"),))
WAY_OUT = "or begin with another journal"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with an intent, its outcome, a hold and an open intent."""
    path = tmp_path / "5.1.journal"
    create(path, START)
    with open_journal(path) as journal:
        number = journal.add("intent", NOW, "harbour", {"act": "preflight"}, record=Record(uid="u"))
        journal.add("outcome", NOW, "harbour", {"intent": str(number), "result": "Sent"})
        journal.add("control", NOW, data={"control": "Hold"})
        journal.add(
            "intent", NOW + timedelta(seconds=1), "harbour", {"act": "commit"}, record=Record(uid="u", attempt=1)
        )
    return path


def content(path: Path) -> tuple[Any, ...]:
    """Everything that the journal says."""
    with open_journal(path) as journal:
        return journal.start, journal.entries(), journal.records()


def test_reads_what_was_written(path: Path) -> None:
    """The newest record of a cluster, and every entry; an intent without an outcome is open."""
    start, entries, records = content(path)
    assert (start, records) == (START, {"u": Record(uid="u", attempt=1)})
    assert [entry.kind for entry in entries] == ["intent", "outcome", "control", "intent"]
    assert {name: entry.number for name, entry in open_intents(entries).items()} == {"harbour": 4}
    assert requests_of(entries, "").decisions.control == "Hold"


@few_or_many(40, 5000)
def test_63_a_journal_that_was_cut(examples: int, path: Path) -> None:
    """At any byte: an error that names the file and the way out, never a part of what it said."""
    whole = path.read_bytes()
    cut = path.with_name("cut.journal")
    for index in range(examples):
        cut.write_bytes(whole[: len(whole) * index // examples])
        with pytest.raises(BadJournal) as raised:
            content(cut)
        assert raised.value.message.startswith(str(cut))
        assert WAY_OUT in raised.value.message


@few_or_many(40, 5000)
def test_63_a_journal_with_a_changed_byte(examples: int, path: Path) -> None:
    """The same content, or an error; a byte that no row uses may change."""
    whole, expected = path.read_bytes(), content(path)
    changed = path.with_name("changed.journal")
    for index in range(examples):
        place = (index * 2654435761) % len(whole)
        changed.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            assert content(changed) == expected
        except BadJournal as error:
            assert str(changed) in error.message
        for suffix in ("-wal", "-shm"):
            changed.with_name(f"{changed.name}{suffix}").unlink(missing_ok=True)


def test_63_a_write_ahead_log_that_was_cut(path: Path) -> None:
    """A killed command leaves its log; of a log that was cut the first entries count, without a gap."""
    with open_journal(path) as journal:
        before = journal.entries()
        for _ in range(3):
            journal.add("control", NOW, data={"control": "Run"})
        log, main = path.with_name(f"{path.name}-wal").read_bytes(), path.read_bytes()
    copy = path.with_name("copy.journal")
    numbers = set()
    for index in range(21):
        copy.write_bytes(main)
        copy.with_name("copy.journal-shm").unlink(missing_ok=True)
        copy.with_name("copy.journal-wal").write_bytes(log[: len(log) * index // 20])
        entries = content(copy)[1]
        assert entries[:4] == before
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        numbers.add(len(entries))
    assert numbers == {4, 5, 6, 7}


def _edit(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda path: path.unlink(), "does not exist: `runup fleet update start FILE` begins"),
        (lambda path: path.write_text("kind: FleetUpdate"), "file is not a database"),
        (lambda path: path.write_bytes(b""), "it is empty"),
        (lambda path: _edit(path, "PRAGMA application_id = 7"), "is the database of another program"),
        (lambda path: _edit(path, "PRAGMA user_version = 2"), "written by a newer runup (version 2)"),
        (lambda path: _edit(path, "DELETE FROM entries WHERE number = 3"), "entry 3 was changed or removed"),
        (lambda path: _edit(path, "UPDATE entries SET entry = replace(entry, 'Hold', 'Run')"), "entry 3 was changed"),
        (lambda path: _edit(path, "UPDATE records SET record = '{}'"), "the record of cluster u was changed"),
        (lambda path: _edit(path, "UPDATE meta SET document = replace(document, '5.1', '5.2')"), "the stored start"),
        (lambda path: _edit(path, "DELETE FROM meta"), "the stored start was changed"),
        (lambda path: _edit(path, "DROP TABLE entries"), "no such table: entries"),
    ],
)
def test_63_a_journal_that_cannot_be_used(change: Callable[[Path], None], error: str, path: Path) -> None:
    """Foreign, newer, edited or missing: one error that names the file."""
    change(path)
    with pytest.raises(BadJournal) as raised:
        content(path)
    assert error in raised.value.message
    assert str(path) in raised.value.message


def test_a_journal_is_never_replaced(path: Path) -> None:
    """A start over an existing journal would lose its holds."""
    with pytest.raises(BadJournal) as raised:
        create(path, START)
    assert "`runup fleet update resume` continues it" in raised.value.message
    assert len(content(path)[1]) == 4


def test_a_start_that_was_killed_may_begin_again(tmp_path: Path) -> None:
    """The file exists and nothing is in it."""
    path = tmp_path / "a.journal"
    path.touch()
    create(path, START)
    assert content(path) == (START, (), {})


def test_63_one_process_drives(path: Path) -> None:
    """The lock ends with its process, even if that is killed."""
    ready, answer = os.pipe()
    child = os.fork()
    if not child:
        with driver(path) as drives:
            os.write(answer, b"1" if drives else b"0")
            signal.pause()
    assert os.read(ready, 1) == b"1"
    with driver(path) as drives:
        assert not drives
    with open_journal(path) as journal:
        # A person's decision does not need the lock.
        assert journal.add("control", NOW, data={"control": "Run"}) == 5
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with driver(path) as drives:
        assert drives


def test_63_a_full_disk(path: Path) -> None:
    """The entry is not written, the error says what to do, and what was written before is readable."""
    child = os.fork()
    if not child:
        code = 1
        try:
            with open_journal(path) as journal:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
                for number in range(100):
                    journal.add("intent", NOW, "harbour", {"act": "x" * 1000, "number": str(number)})
        except BadJournal as error:
            code = 0 if "free space, then `runup fleet update resume`" in error.message else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    entries = content(path)[1]
    assert entries[3].data == {"act": "commit"}
    assert all(len(entry.data["act"]) == 1000 for entry in entries[4:])


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    """The error names what must be writable."""
    missing = tmp_path / "none" / "a.journal"
    with pytest.raises(BadJournal) as raised:
        create(missing, START)
    assert "must be writable" in raised.value.message
