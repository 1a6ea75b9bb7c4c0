"""Dumps in an object store, such as `s3://BUCKET/PREFIX`: which there are, and each fetched for as long as it is read.

The addresses are those of fsspec, an optional package, as are the packages for each kind of store. They are imported in
worker processes alone (`workers`): their threads must not run in a process that is forked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from kubekit.lang.files import remove_tree
from runup.dump import archive
from runup.dump.dump_limits import MAX_ENTRIES
from runup.fleet.decide.members import BadFleet, Member

MAX_BYTES = archive.MAX_BYTES
"""What may be fetched of one dump; a packed must-gather without its logs is a hundredth of it."""
_PIECE = 1024 * 1024
PACKED = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".gz")
_S3 = ("s3", "s3a")

JSON = dict[str, Any]


class Listing(msgspec.Struct, frozen=True):
    """The dumps below an address, by name and address, and what is left out; or `problem`, why nothing is known."""

    dumps: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    problem: str = ""


class CannotFetch(Exception):
    """A store did not give what was asked; the text names the address and the way out."""


def members_of(address: str, listing: Listing) -> tuple[list[Member], list[str]]:
    """Returns a member for each dump, and a note about what is left out. Raises BadFleet if there is none."""
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


def without_suffixes(name: str) -> str:
    """Returns the name of an archive without the suffixes of its format."""
    for suffix in (".gz", ".tgz", ".xz", ".txz", ".bz2", ".tbz2", ".tar"):
        name = name.removesuffix(suffix)
    return name


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
        return url_to_fs(address, use_listings_cache=False)  # type: ignore[no-any-return]
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
    except FileNotFoundError as error:
        raise CannotFetch(f"{address}: there is no such bucket or prefix; name one that has dumps") from error
    except PermissionError as error:
        way_out = "give credentials that may list and get (for S3 AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret)"
        raise CannotFetch(f"{address}: permission denied ({_error_text(error)}); {way_out}") from error
    except Exception as error:
        text = f"{address}: cannot be read: {type(error).__name__}: {_error_text(error)}"
        raise CannotFetch(f"{text}; check the address, and credentials and endpoint of its store") from error


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())


def _fetch_folder(store: Any, path: str, into: Path, address: str) -> None:
    """Fetches what may hold objects from a folder of the store; links are ignored, as those of an archive."""
    bytes_left, files = MAX_BYTES, 0
    into.mkdir()
    for name, info in store.find(path, detail=True).items():
        if info.get("islink") or info.get("type") == "link":  # of `file://`; of `sftp://`
            continue
        inner = PurePosixPath(name.removeprefix(path.rstrip("/")).lstrip("/"))
        if ".." in inner.parts or not archive.may_hold_objects(inner):
            continue
        files += 1
        if files > MAX_ENTRIES:
            raise CannotFetch(f"{address}: it has more than {MAX_ENTRIES} files; give a dump of one cluster")
        target = into / inner
        target.parent.mkdir(parents=True, exist_ok=True)
        bytes_left -= _fetch_file(store, name, into=target, limit=bytes_left, address=address)
    if not files:
        raise CannotFetch(f"{address}: nothing in it is a file of a dump")


def _fetch_file(store: Any, path: str, into: Path, limit: int, address: str) -> int:
    """Streams a file of the store into a new one, and returns its bytes. Raises CannotFetch beyond `limit`."""
    size = 0
    with store.open(path, "rb", block_size=_PIECE) as source, into.open("xb") as target:
        while chunk := source.read(_PIECE):
            size += len(chunk)
            if size > limit:
                gib = MAX_BYTES // 1024**3
                raise CannotFetch(f"{address}: it has more than {gib} GiB; give a dump of one cluster, without logs")
            target.write(chunk)
    return size
