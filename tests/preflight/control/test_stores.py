"""What every place of kept reports does, and what is said about one that cannot be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.preflight.control.test_report_store import NAMES, NOON, REPORT
from tests.servers import Server

from kubekit.error_types import Terminal
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from runup.evaluation import results
from runup.evaluation.evaluate import EvaluatedCluster
from runup.preflight.control.stores import Store, open_store
from runup.preflight.decide.cluster_run import CONFIG_MAP
from runup.report.report import Report, ReportedResource, ReportedRisk

DAY = timedelta(days=1)
KINDS = {"folder": "{}/kept", "sqlite": "sqlite:{}/kept.db", "configmap": "configmap:default/kept"}


@pytest.fixture(params=list(KINDS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind."""
    place = KINDS[request.param].format(tmp_path)
    if request.param != "configmap":
        yield open_store(place)
        return
    server: Server = request.getfixturevalue("server")
    with suppress(NotFound):
        server.client.send(calls.delete(CONFIG_MAP, "kept", "default"))
    yield open_store(place, lambda: config.load(str(server.kubeconfig)))


def test_what_is_kept_is_read_again(store: Store, tmp_path: Path) -> None:
    """By cluster, the oldest first, by when the cluster was so; and looking whether it can be written makes nothing."""
    store.check()
    assert list(tmp_path.iterdir()) == []
    later = replace(REPORT, observed_time=NOON + DAY, risks=())
    store.keep("a", later, NOON + DAY)
    store.keep("a", REPORT, NOON + 2 * DAY)
    store.keep("b", REPORT, NOON)
    store.check()
    kept = store.reports_of("a")
    assert [each.report() for each in kept] == [REPORT, later]
    assert [(each.cluster, each.observed, each.written) for each in kept] == [
        ("a", NOON, NOON + 2 * DAY),
        ("a", NOON + DAY, NOON + DAY),
    ]
    assert store.clusters() == ("a", "b")
    assert store.reports_of("c") == ()


def test_a_time_of_another_zone_is_the_same_moment(store: Store) -> None:
    """As a dump of a machine with a local clock has it."""
    east = NOON.astimezone(tz=datetime.fromisoformat("2026-01-01T00:00:00+09:00").tzinfo)
    store.keep("a", replace(REPORT, observed_time=east), east)
    store.keep("a", REPORT, NOON + DAY)
    (kept,) = store.reports_of("a")
    assert (kept.observed, kept.observed.tzinfo) == (NOON, UTC)


def test_every_name_is_a_cluster_of_its_own(store: Store) -> None:
    """Whatever it has in it, an empty one only where a name is no folder's."""
    for name in NAMES:
        store.keep(name, REPORT, NOON)
    assert set(store.clusters()) >= {name for name in NAMES if name}
    assert all(len(store.reports_of(name)) == 1 for name in NAMES)


def test_the_same_result_of_one_moment_is_kept_once(store: Store) -> None:
    """Another result of it is kept next to the first, and is the newer one."""
    for number, report in enumerate((REPORT, replace(REPORT, engine_version="9"), replace(REPORT, risks=()))):
        store.keep("a", report, NOON + number * DAY)
    assert [each.report() for each in store.reports_of("a")] == [REPORT, replace(REPORT, risks=())]


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_a_report_that_was_damaged_is_kept_again(kind: str, tmp_path: Path) -> None:
    """Nobody can say that it is the same; read by itself it is an error with its name."""
    made = open_store(KINDS[kind].format(tmp_path))
    made.keep("a", REPORT, NOON)
    (before,) = made.reports_of("a")
    if kind == "folder":
        before.path.write_text("{")
    else:
        with closing(sqlite3.connect(tmp_path / "kept.db")) as database, database:
            database.execute("UPDATE reports SET report = '{'")
    with pytest.raises(Terminal, match=r"^.*kept.*: "):
        before.report()
    made.keep("a", REPORT, NOON + DAY)
    made.keep("a", REPORT, NOON + 2 * DAY)
    _, after = made.reports_of("a")
    assert after.report() == REPORT


@pytest.mark.parametrize(("kind", "said"), [("folder", "No such file or directory"), ("sqlite", "report 1 is gone")])
def test_a_report_that_is_gone(kind: str, said: str, tmp_path: Path) -> None:
    """Between the list and the look, by another program."""
    made = open_store(KINDS[kind].format(tmp_path))
    made.keep("a", REPORT, NOON)
    (kept,) = made.reports_of("a")
    if kind == "folder":
        kept.path.unlink()
    else:
        with closing(sqlite3.connect(tmp_path / "kept.db")) as database, database:
            database.execute("DELETE FROM reports")
    with pytest.raises(Terminal, match=rf"^.*kept.*: {said}$"):
        kept.report()


def test_two_results_of_one_moment_written_at_one_moment(store: Store) -> None:
    """As of two dumps of one cluster in one run, whose clock is read once: neither takes the other's place."""
    results = [replace(REPORT, risks=(ReportedRisk(name=name, message="so"),)) for name in ("A", "B", "C")]
    for report in results:
        store.keep("a", report, NOON)
    assert [each.report() for each in store.reports_of("a")] == results


def test_every_character_comes_back(store: Store) -> None:
    """A report has texts of the cluster in it."""
    resource = ReportedResource(kind="Pod", namespace="a", name="b\0\x1b[31m\u202eö\U0001f600")
    report = replace(REPORT, risks=(ReportedRisk(name="Ack", message="\0\n'\"%s", resources=(resource,)),))
    store.keep("a", report, NOON)
    assert [each.report() for each in store.reports_of("a")] == [report]


def test_a_name_that_is_no_text_costs_nothing(store: Store) -> None:
    """A folder's name may be any bytes: Python has them as surrogates, which no file takes."""
    shown = "no such file: a\udcff"
    keeper = results.ReportKeeper(store, "4.16.0", NOON)
    keeper.keep("a\udcff", EvaluatedCluster(where="a", report=REPORT), of_dump=True)
    keeper.keep("b\udcff", EvaluatedCluster(where="b", problem=shown, failed_at=NOON), of_dump=True)
    assert keeper.problems == []
    assert store.clusters() == ("a\\udcff", "b\\udcff")


def test_several_writers_at_once_lose_nothing(tmp_path: Path, store: Store) -> None:
    """Each with the store open for itself, as two commands have it; the file is made by anybody who is first."""

    def write(writer: int) -> None:
        mine = copy(store)
        for number in range(8):
            mine.keep(f"c{number}", replace(REPORT, observed_time=NOON + writer * DAY), NOON + writer * DAY)

    with ThreadPoolExecutor(4) as several:
        list(several.map(write, range(4)))
    assert {name: len(store.reports_of(name)) for name in store.clusters()} == {f"c{n}": 4 for n in range(8)}
    assert len({each.report().observed_time for each in store.reports_of("c0")}) == 4
    assert {entry.name for entry in tmp_path.iterdir()} <= {"kept", "kept.db"}


def _not_sqlite(file: Path) -> None:
    file.write_text("suppressions: []\n" * 100)


def _cut(file: Path) -> None:
    open_store(f"sqlite:{file}").keep("a", REPORT, NOON)
    file.write_bytes(file.read_bytes()[:5000])


def _newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 2")


def _of_others(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE reports (name)")


def _no_time(file: Path) -> None:
    open_store(f"sqlite:{file}").keep("a", REPORT, NOON)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE reports SET observed = 'noon'")


def _nothing(_: Path) -> None:
    pass


UNREADABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "another file": (_not_sqlite, "file is not a database; name a file that runup has made, or a new one"),
    "one that was cut": (_cut, "name a file that runup has made, or a new one"),
    "one of a newer runup": (_newer, r"a newer runup has written it \(schema 2\); use that, or another file"),
    "a database of others": (_of_others, "no such column"),
    "a row without a time": (_no_time, "has a report of a without a time"),
    "none at all": (_nothing, "there is no such file; a run with --store makes it"),
}


@pytest.mark.parametrize(("made", "said"), UNREADABLE.values(), ids=list(UNREADABLE))
def test_a_file_that_cannot_be_read(tmp_path: Path, made: Callable[[Path], None], said: str) -> None:
    """One error with the file's name, and never an empty history."""
    made(tmp_path / "x.db")
    store = open_store(f"sqlite:{tmp_path / 'x.db'}")

    def read() -> list[Report]:
        return [kept.report() for name in store.clusters() for kept in store.reports_of(name)]

    with pytest.raises(Terminal, match=rf"--store sqlite:.*x\.db: .*{said}"):
        read()


UNWRITABLE: dict[str, tuple[str, str]] = {
    "a folder as file": ("sqlite:{}", "is a folder; name a file"),
    "a file without a folder": ("sqlite:{}/no/x.db", "there is no folder .*no; make it first"),
    "another file as file": ("sqlite:{}/file", "file is not a database"),
    "the database of another program": ("sqlite:{}/others.db", "is the database of another program; name a file"),
    "no file": ("sqlite:", "--store sqlite: has no file; give sqlite:FILE"),
    "a file as folder": ("{}/file", "is not a folder; name a folder that you may write to"),
    "a folder in a file": ("{}/file/below", "is not a folder; name a folder that you may write to"),
}


@pytest.mark.parametrize(("typed", "said"), UNWRITABLE.values(), ids=list(UNWRITABLE))
def test_a_place_that_cannot_be_written_is_told_first(tmp_path: Path, typed: str, said: str) -> None:
    """Before an hour of reading clusters; what is there stays as it is."""
    _not_sqlite(tmp_path / "file")
    with closing(sqlite3.connect(tmp_path / "others.db")) as database:
        database.execute("CREATE TABLE mine (name)")
    files = [tmp_path / "file", tmp_path / "others.db"]
    before = [file.read_bytes() for file in files]
    with pytest.raises(Terminal, match=said):
        open_store(typed.format(tmp_path)).check()
    assert [file.read_bytes() for file in files] == before


@pytest.mark.parametrize("of_dump", [True, False])
def test_a_dump_without_a_time_has_no_entry(store: Store, of_dump: bool) -> None:
    """Its cluster was in that state at some other time, unlike a live cluster that cannot be reached now."""
    keeper = results.ReportKeeper(store, "4.16.0", NOON)
    keeper.keep("a", EvaluatedCluster(where="a", problem="the process that read it was killed"), of_dump=of_dump)
    keeper.keep("b", EvaluatedCluster(where="b", report=REPORT), of_dump=True)
    assert store.clusters() == (("b",) if of_dump else ("a", "b"))
    why = "the store has no entry for a: the dump could not be evaluated, and its time is unknown"
    assert [note for note in keeper.notes() if note == why] == [why] * of_dump


def test_tries_a_store_that_cannot_be_written_once(tmp_path: Path) -> None:
    """A fleet's clusters would otherwise give the same error a thousand times (`ReportKeeper`)."""
    (tmp_path / "kept").touch()
    keeper = results.ReportKeeper(open_store(str(tmp_path / "kept")), "4.16.0", NOON)
    for name in ("a", "b"):
        keeper.keep(name, EvaluatedCluster(where=name, report=REPORT), of_dump=True)
    assert len(keeper.problems) == 1
    assert f"--store {tmp_path / 'kept'}" in keeper.problems[0]
