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
from runup.checks.decide.reads import Slim, has_type, kept_form, namespace_of, type_of

JSON = Mapping[str, Any]
OTHER_VERSION = "its objects are there in another version"
Why = Callable[[Resource], str]


@dataclass
class _ReadObjects:
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
    served: Callable[[Resource], bool] = lambda _: False,
) -> Snapshot:
    """Returns the snapshot of `objects` for checks that read `reads`.

    `lacking` returns why a kind without an object in `objects` is not known (empty: the cluster has no object of it).
    `partly` returns why the cluster may have more objects of a kind, and `complete_in` the namespaces in which it has
    no more. `absent` returns whether the server is known not to have the kind, and `served` whether it is known to.
    """
    typed_reads = tuple(dict.fromkeys(resource for resource in reads if has_type(resource)))
    by_kind: dict[tuple[str, str], list[Resource]] = {}
    for resource in typed_reads:
        by_kind.setdefault((resource.group, resource.kind), []).append(resource)
    found_by_read = {resource: _ReadObjects() for resource in typed_reads}
    for obj in objects:
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        # A kind that is read in only one version takes objects in any version.
        candidates = by_kind.get((group, str(obj.get("kind"))), [])
        matching_reads = (
            candidates
            if len({resource.version for resource in candidates}) < 2
            else [resource for resource in candidates if resource.version == version]
        )
        for resource in matching_reads:
            if not _is_in_read(resource, obj):
                continue
            try:
                decoded = codec.convert(type_of(resource), obj)
            except DecodeError as error:
                metadata = _metadata_of(obj)
                namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
                found_by_read[resource].undecoded.append(Undecodable(namespace, name, str(error)))
                continue
            keep = kept_form(resource)
            found_by_read[resource].objects.append(decoded if keep is None else keep(decoded))
    present = {
        resource
        for reads in by_kind.values()
        if any(_has_objects(found_by_read[resource_read]) for resource_read in reads)
        for resource in reads
    }
    unreadable = {
        resource: why
        for resource, found_objects in found_by_read.items()
        if not _has_objects(found_objects)
        and (
            why := OTHER_VERSION
            if (len({candidate.version for candidate in by_kind[resource.group, resource.kind]}) > 1)
            and resource in present
            else lacking(resource)
        )
    }
    return Snapshot(
        objects={
            resource: tuple(found_objects.objects)
            for resource, found_objects in found_by_read.items()
            if resource not in unreadable
        },
        unreadable=unreadable,
        undecoded={
            resource: tuple(found_objects.undecoded)
            for resource, found_objects in found_by_read.items()
            if found_objects.undecoded
        },
        incomplete={
            resource: (why,) for resource in found_by_read if resource not in unreadable and (why := partly(resource))
        },
        # That a kind without a definition is not here means that nobody looked, not that the cluster has none.
        absent=frozenset(
            resource
            for resource, why in unreadable.items()
            if why == OTHER_VERSION or absent(resource) or (has_definitions(resource.group) and not served(resource))
        ),
        complete_in={
            resource: frozenset(namespaces) for resource in found_by_read if (namespaces := complete_in(resource))
        },
    )


def _has_objects(found_objects: _ReadObjects) -> bool:
    """Returns whether any object was found, decoded or not."""
    return bool(found_objects.objects or found_objects.undecoded)


def _metadata_of(obj: JSON) -> JSON:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is_in_read(resource: Resource, obj: JSON) -> bool:
    """Returns whether the object is in the namespace of the read and has the labels that it selects."""
    metadata, namespace = _metadata_of(obj), namespace_of(resource)
    if namespace and metadata.get("namespace") != namespace:
        return False
    selector = resource.label_selector if isinstance(resource, Slim) else ""
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        # It cannot be decoded either, and is reported as such.
        return True
    # The selectors in use have the forms `!label` and `label=value`.
    label, _, value = selector.partition("=")
    return not selector or (labels.get(label) == value if value else selector.removeprefix("!") not in labels)
