"""Lists kinds that a cluster need not have, and tells "the cluster has no such kind" from "it was not read".

A kind that the server does not serve has no objects. That is only known if its definitions could be listed in full: a
dump may simply lack the kind. So a check that reads a kind that may be missing reads the definitions, too. (A dump's
reader reports a kind that is built into Kubernetes as absent only if the dump's own record says so: no definition could
tell.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from runup.checks.decide.model import Snapshot, Unreadable

K = TypeVar("K", bound=Object)
T = TypeVar("T")
DEFINITIONS = resource_of(CustomResourceDefinition)


def all_or_none(snapshot: Snapshot, kind: type[K]) -> tuple[K, ...]:
    """Returns every object of `kind`; none if the cluster has no such kind. Raises Unreadable."""
    return listed_or_none(snapshot, resource_of(kind))


def listed_or_none(snapshot: Snapshot, resource: Resource) -> tuple[Any, ...]:
    """Returns every object of `resource`; none if no definition makes such a kind. Raises Unreadable."""
    # That a kind was not found does not say by itself that the cluster has none: nobody may have looked.
    if resource in snapshot.absent and not _may_be_defined(snapshot, resource):
        return ()
    return snapshot.listed(resource)


def list_first_served(snapshot: Snapshot, versions: Sequence[Resource]) -> tuple[Any, ...]:
    """Returns every object of a kind, listed by the first of its `versions` that the server has; none without any."""
    return listed_or_none(
        snapshot,
        next(
            (version_resource for version_resource in versions if version_resource not in snapshot.absent), versions[0]
        ),
    )


def yield_from_all(*parts: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Yields the findings of all parts. One that raises Unreadable does not stop the others; it is raised at the end.

    What is known of one kind can show a risk where another kind could not be read.
    """
    lacking: Unreadable | None = None
    for part in parts:
        try:
            yield from part()
        except Unreadable as error:
            lacking = lacking or error
    if lacking is not None:
        raise lacking


def _may_be_defined(snapshot: Snapshot, resource: Resource) -> bool:
    """Returns whether there may be a definition of the kind, in whatever version. Raises Unreadable."""
    try:
        definitions = snapshot.all(CustomResourceDefinition)
    except Unreadable as lacking:
        why = f"{resource} was not found, and whether the cluster has that kind is not known: {lacking}"
        raise Unreadable(resource, lacking.lacking, why) from lacking
    if any(
        (definition.spec.group, definition.spec.names.plural) == (resource.group, resource.plural)
        for definition in definitions
    ):
        return True
    unread_definitions = snapshot.undecoded.get(DEFINITIONS) or snapshot.incomplete.get(DEFINITIONS)
    if unread_definitions:
        why = f"{resource} was not found, and not all definitions could be read"
        raise Unreadable(resource, why, f"{why}.")
    return False
