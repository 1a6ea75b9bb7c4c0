"""Objects as JSON in, what checks may look at out: for dumps, for examples, for the tests that a check brings.

An object belongs to a read by group and kind; where a kind is read in several versions, by the version, too. An object
that is not as its kind should be is named in the snapshot, as a client's list would have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubekit.api import codec
from kubekit.api.codec import DecodeError, Undecodable
from kubekit.api.scheme import Resource
from runup.checks.decide.model import Snapshot
from runup.checks.decide.reads import Slim, known, namespace_of, type_of

JSON = Mapping[str, Any]
OTHER_VERSION = "its objects are there in another version"
Why = Callable[[Resource], str]


@dataclass
class _Found:
    objects: list[Any] = field(default_factory=list)
    undecoded: list[Undecodable] = field(default_factory=list)


def snapshot_of(
    reads: Iterable[Resource],
    objects: Iterable[JSON],
    *,
    lacking: Why = lambda _: "",
    partly: Why = lambda _: "",
) -> Snapshot:
    """What checks that read `reads` may look at of `objects`.

    `lacking` says why a kind is not known although no object of it is there (empty: there is none), `partly` why there
    may be more of it.
    """
    wanted = tuple(dict.fromkeys(read for read in reads if known(read)))
    by_kind: dict[tuple[str, str], list[Resource]] = {}
    for read in wanted:
        by_kind.setdefault((read.group, read.kind), []).append(read)
    found = {read: _Found() for read in wanted}
    for obj in objects:
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        for read in _readers(by_kind.get((group, str(obj.get("kind"))), []), version):
            if _within(read, obj):
                _take(found[read], read, obj)
    other = {read for reads in by_kind.values() if any(_any(found[each]) for each in reads) for read in reads}
    empty = {
        read: why
        for read, each in found.items()
        if not _any(each) and (why := OTHER_VERSION if _versions(by_kind, read) and read in other else lacking(read))
    }
    return Snapshot(
        {read: tuple(each.objects) for read, each in found.items() if read not in empty},
        empty,
        {read: tuple(each.undecoded) for read, each in found.items() if each.undecoded},
        {read: (why,) for read in found if read not in empty and (why := partly(read))},
        frozenset(read for read, why in empty.items() if why == OTHER_VERSION or not _built_in(read)),
    )


def _versions(by_kind: Mapping[tuple[str, str], list[Resource]], read: Resource) -> bool:
    """Whether the kind is read in several versions."""
    return len({each.version for each in by_kind[read.group, read.kind]}) > 1


def _built_in(read: Resource) -> bool:
    """Whether no CustomResourceDefinition makes the kind; `migration.k8s.io` has an operator's."""
    return "." not in read.group or (read.group.endswith(".k8s.io") and read.group != "migration.k8s.io")


def _any(found: _Found) -> bool:
    return bool(found.objects or found.undecoded)


def _readers(candidates: list[Resource], version: str) -> list[Resource]:
    """Those that read the object: a kind that is read in one version only is read whatever the object's own is."""
    if len({read.version for read in candidates}) < 2:
        return candidates
    return [read for read in candidates if read.version == version]


def _within(read: Resource, obj: JSON) -> bool:
    metadata = obj.get("metadata") or {}
    namespace = namespace_of(read)
    if namespace and metadata.get("namespace") != namespace:
        return False
    selector = read.label_selector if isinstance(read, Slim) else ""
    # The only selector in use says that a label must not be there.
    return not selector or selector.removeprefix("!") not in (metadata.get("labels") or {})


def _take(found: _Found, read: Resource, obj: JSON) -> None:
    try:
        decoded = codec.convert(type_of(read), obj)
    except DecodeError as error:
        metadata = obj.get("metadata") or {}
        found.undecoded.append(
            Undecodable(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), str(error))
        )
        return
    found.objects.append(read.keep(decoded) if isinstance(read, Slim) else decoded)
