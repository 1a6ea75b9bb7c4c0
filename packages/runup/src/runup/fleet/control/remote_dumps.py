"""Dumps in an object store, such as `s3://BUCKET/PREFIX`: which there are, and each fetched for as long as it is read.

The addresses are those of fsspec, an optional package, as are the packages for each kind of store. They are imported in
worker processes alone (`workers`): their threads must not run in a process that is forked.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from kubekit.lang.files import remove_tree
from runup.dump import archive
from runup.dump.dump_files import PACKED, without_suffixes
from runup.dump.dump_limits import MAX_ENTRIES
from runup.fleet.decide.members import BadFleet, Member

MAX_BYTES = archive.MAX_BYTES
"""The limit of one fetched dump; a packed must-gather without its logs has a hundredth of it."""
_PIECE = 1024 * 1024
# Files of one dump that are read at once, each in parts of so many bytes: a store answers a request in some 30 ms.
_AT_ONCE, _PART = 16, 8 * 1024 * 1024
# What stores call it: S3 and its kin SlowDown, others 429 or 503 with these words.
_THROTTLED = re.compile(r"SlowDown|reduce your request rate|Throttl|TooManyRequests|Too Many Requests|ServerBusy")
_S3 = ("s3", "s3a")

JSON = dict[str, Any]


class Listing(msgspec.Struct, frozen=True):
    """The dumps below an address, by name and address, with notes; or `problem` if they could not be listed."""

    dumps: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    problem: str = ""


class CannotFetch(Exception):
    """Error raised if a store does not return an object; the text names the address and a solution."""


def members_of(address: str, listing: Listing) -> tuple[list[Member], list[str]]:
    """Returns a member for each dump, and a note about what is left out. Raises BadFleet if it does not exist."""
    if listing.problem:
        raise BadFleet(f"--dumps {listing.problem}")
    if not listing.dumps:
        raise BadFleet(f"--dumps {address}: has no dump (a folder or a tar archive)")
    names = listing.left_out
    names_text = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    notes = [f"{address}: not a folder or a tar archive, and left out: {names_text}"] if names else []
    return [Member(name=name, dump=dump_address) for name, dump_address in listing.dumps], notes


def list_dumps(address: str) -> Listing:
    """Returns the dumps that are directly below an address, as folders or archives. Runs in a worker."""
    try:
        store, root = _open_store(address)
        with _explained(address):
            if store.isfile(root):
                return Listing(problem=f"{address}: is one file; give the folder or prefix that the dumps are in")
            entries = store.ls(root, detail=True)
    except CannotFetch as error:
        return Listing(problem=str(error))
    dumps, left_out = [], []
    for entry in sorted(entries, key=lambda each: str(each["name"])):
        name = PurePosixPath(entry["name"]).name
        if entry["name"].rstrip("/") == root.rstrip("/") or name.startswith("."):
            continue  # the marker that some tools make for a folder, or what is hidden elsewhere too
        if entry["type"] == "directory" or name.endswith(PACKED):
            dump_name = name if entry["type"] == "directory" else without_suffixes(name)
            dumps.append((dump_name, store.unstrip_protocol(entry["name"].rstrip("/"))))
        else:
            left_out.append(name)
    return Listing(tuple(dumps), tuple(left_out))


@contextmanager
def fetch_dump(address: str) -> Iterator[Path]:
    """Yields the dump at an address as a file or folder of this machine, which is removed afterwards.

    Raises CannotFetch, also for one that has more than `MAX_BYTES`.
    """
    folder = Path(tempfile.mkdtemp(prefix="runup-dump-"))
    try:
        store, path = _open_store(address)
        into = folder / (PurePosixPath(path).name or "dump")
        with _explained(address):
            if store.isfile(path):
                _fetch_file(store, path, into=into, limit=MAX_BYTES, address=address)
            else:
                _fetch_folder(store, path, into, address)
        yield into
    finally:
        remove_tree(folder)


def _open_store(address: str) -> tuple[Any, str]:
    """Returns the store of an address and the place in it. Raises CannotFetch if a package is missing."""
    scheme = address.partition("://")[0]
    extra = "kube-runup[s3]" if scheme in _S3 else "fsspec"
    way_out = f"install what reads it: pip install '{extra}'"
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise CannotFetch(f"{address}: package fsspec is not installed; {way_out}") from error
    try:
        # A listing that was kept from before would be of another moment.
        options = {"config_kwargs": {"max_pool_connections": _AT_ONCE}} if scheme in _S3 else {}
        return url_to_fs(address, use_listings_cache=False, **options)  # type: ignore[no-any-return]
    except ImportError as error:
        hint = f"; {way_out}" if scheme in _S3 else ""
        raise CannotFetch(f"{address}: {_error_text(error)}{hint}") from error
    except Exception as error:
        raise CannotFetch(f"{address}: {_error_text(error)}; give an address such as s3://BUCKET/PREFIX") from error


@contextmanager
def _explained(address: str) -> Iterator[None]:
    """Turns errors of the store, of whatever package, into CannotFetch with the way out."""
    try:
        yield
    except CannotFetch:
        raise
    except _Changed as error:
        way_out = "it is still being written, or removed; read it when that has ended"
        raise CannotFetch(f"{address}: {error} while it was read: {way_out}") from error
    except FileNotFoundError as error:
        raise CannotFetch(f"{address}: there is no such bucket or prefix; name one that has dumps") from error
    except PermissionError as error:
        way_out = "give credentials that may list and get (for S3 AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret)"
        raise CannotFetch(f"{address}: permission denied ({_error_text(error)}); {way_out}") from error
    except Exception as error:
        if _THROTTLED.search(f"{type(error).__name__} {error}"):
            way_out = "read fewer dumps at once (--parallel N), or later"
            raise CannotFetch(f"{address}: the store limits its requests ({_error_text(error)}); {way_out}") from error
        text = f"{address}: cannot be read: {type(error).__name__}: {_error_text(error)}"
        raise CannotFetch(f"{text}; check the address, and credentials and endpoint of its store") from error


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())


class _Changed(Exception):
    """A folder of the store is not what its listing said; the text says what has changed."""


def _fetch_folder(store: Any, path: str, into: Path, address: str) -> None:
    """Fetches what may hold objects from a folder of the store; links are ignored, as those of an archive.

    The folder is listed once before, and once after: a dump that is still being written must not look like a whole one.
    """
    into.mkdir()
    entries = _files_in(store, path)
    if len(entries) > MAX_ENTRIES:
        raise CannotFetch(f"{address}: it has more than {MAX_ENTRIES} files; give a dump of one cluster")
    if not entries:
        raise CannotFetch(f"{address}: nothing in it is a file of a dump")
    sizes = [size for size, _ in entries.values() if size is not None]
    if sum(sizes) > MAX_BYTES:
        raise _too_large(address)
    targets = {name: into / _inner(path, name) for name in entries}
    for folder in {target.parent for target in targets.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    if len(sizes) == len(entries):
        with ThreadPoolExecutor(_AT_ONCE) as readers:
            reading = [
                readers.submit(partial(_fetch_sized, store, name, into=targets[name], size=entries[name][0]))
                for name in entries
            ]
            try:
                for each in reading:
                    each.result()
            finally:
                readers.shutdown(cancel_futures=True)
    else:
        # A store that does not tell sizes.
        bytes_left = MAX_BYTES
        for name, target in targets.items():
            bytes_left -= _fetch_file(store, name, into=target, limit=bytes_left, address=address)
    now = _files_in(store, path)
    if changed := [name for name in {**entries, **now} if entries.get(name) != now.get(name)]:
        more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
        raise _Changed(f"{_inner(path, changed[0])}{more} changed")


def _inner(path: str, name: str) -> PurePosixPath:
    """Returns the place of a file in the folder at `path`."""
    return PurePosixPath(name.removeprefix(path.rstrip("/")).lstrip("/"))


def _files_in(store: Any, path: str) -> dict[str, tuple[int | None, str]]:
    """Returns the files of a folder that may hold objects, with their size and their ETag or time."""
    files = {}
    for name, info in store.find(path, detail=True).items():
        inner = _inner(path, name)
        # Links of `file://` and of `sftp://`.
        is_link = info.get("islink") or info.get("type") == "link"
        if not is_link and ".." not in inner.parts and archive.may_hold_objects(inner):
            size = info.get("size")
            files[name] = (size if isinstance(size, int) else None, _state_of(info))
    return files


def _state_of(info: Mapping[str, Any]) -> str:
    return str(next((info[key] for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified") if key in info), ""))


def _fetch_sized(store: Any, path: str, into: Path, size: int | None) -> None:
    """Fetches a file of the size that the listing told, and asks the store for nothing else about it."""
    assert size is not None
    with into.open("xb") as target:
        for start in range(0, size, _PART):
            end = min(start + _PART, size)
            try:
                part = store.cat_file(path, start=start, end=end)
            except FileNotFoundError as error:
                raise _Changed(f"{PurePosixPath(path).name} vanished") from error
            if len(part) != end - start:
                raise _Changed(f"{PurePosixPath(path).name} became shorter")
            target.write(part)


def _too_large(address: str) -> CannotFetch:
    gib = MAX_BYTES // 1024**3
    return CannotFetch(f"{address}: it has more than {gib} GiB; give a dump of one cluster, without logs")


def _fetch_file(store: Any, path: str, into: Path, limit: int, address: str) -> int:
    """Streams a file of the store into a new one, and returns its bytes. Raises CannotFetch beyond `limit`."""
    size = 0
    with store.open(path, "rb", block_size=_PIECE) as source, into.open("xb") as target:
        while chunk := source.read(_PIECE):
            size += len(chunk)
            if size > limit:
                raise _too_large(address)
            target.write(chunk)
    return size
