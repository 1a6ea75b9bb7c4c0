"""Dumps of a store and items of a scheduler, in this process: what is listed, fetched, refused and left behind."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.control.s3_server import Store, serve_bucket

from runup import __version__
from runup.dump import dump_limits
from runup.evaluation.dask_engine import Answer, call_in_worker, result_of
from runup.evaluation.workers import Lost
from runup.fleet.control import remote_dumps
from runup.fleet.control.remote_dumps import CannotFetch, Listing, fetch_dump, list_dumps, members_of
from runup.fleet.decide.members import BadFleet, Member

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A store in memory with two dumps, and what is none; temporary files go to `tmp_path`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = fsspec.filesystem("memory")
    for name, text in FILES.items():
        made.pipe(f"/fleet/{name}", text)
    yield made
    made.rm("/fleet", recursive=True)


FILES = {
    "orchard/nodes.json": b"[]",
    "orchard/namespaces/a/pods.yaml": b"pods",
    "orchard/namespaces/a/pod.log": b"much",
    "meadow.tar.gz": b"packed",
    "harbour.tgz": b"packed, too",
    "notes.txt": b"no dump",
    ".hidden/nodes.json": b"[]",
}


def test_what_a_store_has(store: Any) -> None:
    """Folders and archives by their names; what is hidden is none, and what is neither is reported."""
    assert store.isdir("/fleet")
    assert list_dumps("memory://fleet") == Listing(
        dumps=(
            ("harbour", "memory:///fleet/harbour.tgz"),
            ("meadow", "memory:///fleet/meadow.tar.gz"),
            ("orchard", "memory:///fleet/orchard"),
        ),
        left_out=("notes.txt",),
    )


NAMES = {
    "a.tar": "a",
    "a.tar.gz": "a",
    "a.tgz": "a",
    "a.tar.xz": "a",
    "a.txz": "a",
    "a.tar.bz2": "a",
    "a.tbz2": "a",
    "a.b.gz": "a.b",
    "targz": "targz",
}


@pytest.mark.parametrize(("name", "short"), NAMES.items())
def test_names_of_archives(name: str, short: str) -> None:
    """Without what says how they are packed."""
    assert remote_dumps.without_suffixes(name) == short


@pytest.mark.parametrize(
    ("listing", "notes"),
    [
        (Listing((("a", "m://a"),)), []),
        (Listing((("a", "m://a"),), ("x", "y", "z")), ["x, y, z"]),
        (Listing((("a", "m://a"),), ("v", "x", "y", "z")), ["v, x, y and 1 more"]),
    ],
    ids=["nothing", "three", "more"],
)
def test_what_is_left_out(listing: Listing, notes: list[str]) -> None:
    """Three are named, the rest is counted."""
    shown = [f"m://: not a folder or a tar archive, and left out: {each}" for each in notes]
    assert members_of("m://", listing) == ([Member(name="a", dump="m://a")], shown)


@pytest.mark.parametrize(
    ("listing", "says"),
    [
        (Listing(problem="m://: permission denied"), "--dumps m://: permission denied"),
        (Listing(left_out=("x",)), "--dumps m://: has no dump (a folder or a tar archive)"),
    ],
    ids=["not known", "none"],
)
def test_no_members(listing: Listing, says: str) -> None:
    """It is an error, which names the flag."""
    with pytest.raises(BadFleet) as error:
        members_of("m://", listing)
    assert str(error.value) == says


def test_a_folder_is_fetched_and_goes(store: Any, tmp_path: Path) -> None:
    """Lists locations that may hold objects, and nothing next to the folder."""
    store.pipe("/fleet/orchard/../stray.json", b"[]")
    with fetch_dump("memory://fleet/orchard") as folder:
        assert folder.name == "orchard"
        found = {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
        assert len(list(tmp_path.rglob("*.json"))) == 1
    assert found == {"nodes.json": b"[]", "namespaces/a/pods.yaml": b"pods"}
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_fetched_and_goes(store: Any, tmp_path: Path) -> None:
    """Under its name, which says how it is packed."""
    with fetch_dump("memory://fleet/meadow.tar.gz") as file:
        assert (file.name, file.read_bytes()) == ("meadow.tar.gz", b"packed")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "address", "says"),
    [
        pytest.param(("MAX_BYTES", 5), "meadow.tar.gz", "it has more than 0 GiB; give a dump of one", id="an archive"),
        pytest.param(("MAX_BYTES", 5), "orchard", "it has more than 0 GiB; give a dump of one cluster", id="all files"),
        pytest.param(("MAX_ENTRIES", 1), "orchard", "it has more than 1 files; give a dump of one", id="many files"),
        pytest.param(("MAX_BYTES", 9), "void", "nothing in it is a file of a dump", id="nothing"),
    ],
)
def test_what_is_not_fetched(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int], address: str, says: str
) -> None:
    """It is named with the way out, and nothing is left."""
    monkeypatch.setattr(remote_dumps, *limit)
    with pytest.raises(CannotFetch) as error, fetch_dump(f"memory://fleet/{address}"):
        pass
    assert str(error.value).startswith(f"memory://fleet/{address}: {says}")
    assert list(tmp_path.iterdir()) == []


def test_limits_are_reached_and_not_passed(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump of just as many files and bytes is fetched."""
    monkeypatch.setattr(remote_dumps, "MAX_BYTES", 6)
    monkeypatch.setattr(remote_dumps, "MAX_ENTRIES", 2)
    for address in ("orchard", "meadow.tar.gz"):
        with fetch_dump(f"memory://fleet/{address}"):
            pass
    assert dump_limits.MAX_ENTRIES > 2


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError(2, "no"), "there is no such bucket or prefix; name one that has dumps"),
        (PermissionError(13, "not\n you"), "permission denied ([Errno 13] not you); give credentials that may list"),
        (
            OSError(errno.EBUSY, "Please reduce your request rate."),
            "the store limits its requests ([Errno 16] Please reduce your request rate.); read fewer dumps at once",
        ),
        (OSError(errno.EIO, "broken"), "cannot be read: OSError: [Errno 5] broken; check the address, and credentials"),
    ],
    ids=["nothing there", "not allowed", "too often", "broken"],
)
def test_a_store_that_fails(store: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str) -> None:
    """The address, the reason in one line, and the way out: of a listing and of a dump."""

    def fails(*_args: object, **_options: object) -> bool:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "isfile", fails)
        assert list_dumps("memory://fleet").problem.startswith(f"memory://fleet: {says}")
        with pytest.raises(CannotFetch) as shown, fetch_dump("memory://fleet/orchard"):
            pass
    assert str(shown.value).startswith(f"memory://fleet/orchard: {says}")


def test_files_are_read_at_once_and_asked_for_once(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded number; the listing has their sizes, so that only their bytes are asked for."""
    running, most, asked = 0, 0, []
    lock = threading.Lock()
    cat_file = type(store).cat_file

    def slow(self: Any, path: str, **part: Any) -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            asked.append(path)
        time.sleep(0.02)
        with lock:
            running -= 1
        return bytes(cat_file(self, path, **part))

    for number in range(60):
        store.pipe(f"/fleet/orchard/{number:02}.json", b"x")
    monkeypatch.setattr(type(store), "cat_file", slow)
    monkeypatch.setattr(type(store), "open", lambda *_args, **_options: pytest.fail("it asks for more than the bytes"))
    with fetch_dump("memory://fleet/orchard") as folder:
        assert len(list(folder.rglob("*.json"))) == 61
    assert len(asked) == 62
    assert 1 < most <= 16


def test_a_large_file_is_read_in_parts(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few bytes of it are in memory."""
    monkeypatch.setattr(remote_dumps, "_PART", 3)
    with fetch_dump("memory://fleet/orchard") as folder:
        assert (folder / "namespaces/a/pods.yaml").read_bytes() == b"pods"


WHILE_READ = "while it was read: it is still being written, or removed; read it when that has ended"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda store: store.pipe("/fleet/orchard/more.json", b"[]"), f"more.json changed {WHILE_READ}"),
        (lambda store: store.pipe("/fleet/orchard/nodes.json", b"[0]"), f"nodes.json changed {WHILE_READ}"),
        (lambda store: store.rm("/fleet/orchard/nodes.json"), f"nodes.json vanished {WHILE_READ}"),
        (lambda store: store.pipe("/fleet/orchard/nodes.json", b"["), f"nodes.json became shorter {WHILE_READ}"),
    ],
    ids=["a new file", "a longer file", "a file that is gone", "a shorter file"],
)
def test_a_dump_that_is_still_being_written(
    store: Any, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None], says: str
) -> None:
    """It would look like a whole one."""
    cat_file = type(store).cat_file
    lock, changed = threading.Lock(), []

    def then(self: Any, path: str, **part: Any) -> bytes:
        with lock:
            if not changed:
                changed.append(path)
                change(store)
        return bytes(cat_file(self, path, **part))

    monkeypatch.setattr(type(store), "cat_file", then)
    with pytest.raises(CannotFetch) as shown, fetch_dump("memory://fleet/orchard"):
        pass
    assert str(shown.value) == f"memory://fleet/orchard: {says}"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An S3 server whose answers take a while, with a dump of 150 files."""
    s3fs = pytest.importorskip("s3fs", reason="needs s3fs: pip install 'kube-runup[s3]'")
    # It keeps the client of an earlier endpoint.
    s3fs.S3FileSystem.clear_instance_cache()
    made = Store({f"nov/orchard/{number:03}.json": b"[]" for number in range(150)}, latency_s=0.03)
    with serve_bucket(made):
        names = {"AWS_ENDPOINT_URL": made.endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in (names | dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")).items():
            monkeypatch.setenv(name, value)
        yield made


def test_an_s3_server_is_asked_for_each_file_once(bucket: Store) -> None:
    """In a third of the time that one after another takes at least."""
    began = time.monotonic()
    with fetch_dump("s3://fleet/nov/orchard") as folder:
        assert len(list(folder.iterdir())) == 150
    assert time.monotonic() - began < 150 * bucket.latency_s
    assert (bucket.asked["GET"], bucket.asked["HEAD"] < 5, bucket.asked["LIST"] < 6) == (150, True, True)
    assert 1 < bucket.at_once <= 17


def test_an_object_that_s3_lists_and_does_not_have(bucket: Store) -> None:
    """It is not a bucket that is not there."""
    bucket.gone.add("nov/orchard/003.json")
    with pytest.raises(CannotFetch, match=f"003.json vanished {WHILE_READ}"), fetch_dump("s3://fleet/nov/orchard"):
        pass


def test_an_item_of_another_runup_is_not_done() -> None:
    """It would evaluate by other checks."""
    assert call_in_worker((abs, -1, __version__)) == Answer(1)
    why = call_in_worker((abs, -1, "0.0.1")).why
    assert why == f"its worker has runup {__version__}, and this is 0.0.1: they must be the same"


def _takes_all(_item: object) -> int:
    raise MemoryError


def test_an_item_that_needs_too_much_memory() -> None:
    """Is lost, and the worker continues."""
    assert call_in_worker((_takes_all, 1, __version__)) == Answer(
        why="reading it takes more memory than its worker has"
    )


def test_what_becomes_of_a_task() -> None:
    """Its result, or why it is lost, in one line; Ctrl-C is nobody's result."""
    done, lost, failed, stopped = Future[Answer](), Future[Answer](), Future[Answer](), Future[Answer]()
    done.set_result(Answer(7))
    lost.set_result(Answer(why="too large"))
    failed.set_exception(RuntimeError("a\n  b" + "c" * 600))
    stopped.set_exception(KeyboardInterrupt())
    assert [result_of(each) for each in (done, lost, failed)] == [
        7,
        Lost("too large"),
        Lost("its task failed: RuntimeError: a b" + "c" * 497),
    ]
    with pytest.raises(KeyboardInterrupt):
        result_of(stopped)


def test_no_link_of_a_folder_of_this_machine_is_followed(tmp_path: Path) -> None:
    """It could lead to a file that only the reader may read."""
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "version.json").write_text("{}")
    (tmp_path / "dump" / "nodes.yaml").symlink_to("/proc/self/environ")
    with fetch_dump(f"file://{tmp_path}/dump") as folder:
        assert [file.name for file in folder.iterdir()] == ["version.json"]
