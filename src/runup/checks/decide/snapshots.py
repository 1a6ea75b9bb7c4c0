"""Builds snapshots from objects as JSON: for dumps, for examples, and for the tests that a check brings.

An object belongs to a read by group and kind and, if the kind is read in several versions, by version as well. An
object that does not match the type of its kind is named in the snapshot, as in a client's list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubekit.api import codec
from kubekit.api.codec import DecodeError, Undecodable
from kubekit.api.scheme import Resource
from runup.checks.decide.built_in_groups import has_definitions
from runup.checks.decide.model import Snapshot
from runup.checks.decide.reads import Slim, has_type, namespace_of, type_of

JSON = Mapping[str, Any]
OTHER_VERSION = "its objects are there in another version"
Why = Callable[[Resource], str]


@dataclass
class _Found:
    """The objects collected for one read: decoded ones, and those that could not be decoded."""

    objects: list[Any] = field(default_factory=list)
    undecoded: list[Undecodable] = field(default_factory=list)


def snapshot_of(
    reads: Iterable[Resource],
    objects: Iterable[JSON],
    *,
    lacking: Why = lambda _: "",
    partly: Why = lambda _: "",
    complete_in: Callable[[Resource], Collection[str]] = lambda _: (),
    absent: Callable[[Resource], bool] = lambda _: False,
) -> Snapshot:
    """Returns the snapshot of `objects` for checks that read `reads`.

    `lacking` returns why a kind is not known although it has no object here (empty: there is none); `partly` returns
    why there may be more objects of it, and `complete_in` in which namespaces there are none. `absent` returns whether
    the server is known not to have the kind.
    """
    wanted = tuple(dict.fromkeys(read for read in reads if has_type(read)))
    by_kind: dict[tuple[str, str], list[Resource]] = {}
    for read in wanted:
        by_kind.setdefault((read.group, read.kind), []).append(read)
    found_by_read = {read: _Found() for read in wanted}
    for obj in objects:
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        for read in _readers(by_kind.get((group, str(obj.get("kind"))), []), version):
            if _is_in_read(read, obj):
                _add_object(found_by_read[read], read, obj)
    present = {
        read for reads in by_kind.values() if any(_has_objects(found_by_read[each]) for each in reads) for read in reads
    }
    unreadable = {
        read: why
        for read, each in found_by_read.items()
        if not _has_objects(each)
        and (why := OTHER_VERSION if _versions(by_kind, read) and read in present else lacking(read))
    }
    return Snapshot(
        {read: tuple(each.objects) for read, each in found_by_read.items() if read not in unreadable},
        unreadable,
        {read: tuple(each.undecoded) for read, each in found_by_read.items() if each.undecoded},
        {read: (why,) for read in found_by_read if read not in unreadable and (why := partly(read))},
        # That a kind without a definition is not here means that nobody looked, not that the cluster has none.
        frozenset(
            read
            for read, why in unreadable.items()
            if why == OTHER_VERSION or absent(read) or has_definitions(read.group)
        ),
        {read: frozenset(namespaces) for read in found_by_read if (namespaces := complete_in(read))},
    )


def _versions(by_kind: Mapping[tuple[str, str], list[Resource]], read: Resource) -> bool:
    """Returns whether the kind is read in several versions."""
    return len({each.version for each in by_kind[read.group, read.kind]}) > 1


def _has_objects(found: _Found) -> bool:
    """Returns whether any object was found, decoded or not."""
    return bool(found.objects or found.undecoded)


def _readers(candidates: list[Resource], version: str) -> list[Resource]:
    """Returns the reads that take the object: a kind that is read in only one version takes objects of any version."""
    if len({read.version for read in candidates}) < 2:
        return candidates
    return [read for read in candidates if read.version == version]


def _is_in_read(read: Resource, obj: JSON) -> bool:
    """Returns whether the object is in the namespace of the read and has the labels that it selects."""
    metadata = obj.get("metadata") or {}
    namespace = namespace_of(read)
    if namespace and metadata.get("namespace") != namespace:
        return False
    selector = read.label_selector if isinstance(read, Slim) else ""
    # The only selector in use has the form `!label`: the label must not be there.
    return not selector or selector.removeprefix("!") not in (metadata.get("labels") or {})


def _add_object(found: _Found, read: Resource, obj: JSON) -> None:
    """Adds the object to `found`, as undecoded if it does not match the type of its kind."""
    try:
        decoded = codec.convert(type_of(read), obj)
    except DecodeError as error:
        metadata = obj.get("metadata") or {}
        found.undecoded.append(
            Undecodable(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), str(error))
        )
        return
    found.objects.append(read.keep(decoded) if isinstance(read, Slim) else decoded)
