"""Determines which kinds a dump holds in full, for the cluster or for a namespace, by what its format proves.

What each format proves, and its source, is in docs/decisions/0080. An answer of the API server proves its kind: a list
that has the metadata of a list and was not cut off. Such a list covers the cluster if it reaches across namespaces or
has objects that are in none, else the one namespace of its objects or of its folder. Objects on their own prove
nothing, unless the tool that wrote them is known to have listed their kind (`collectors`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from runup.api.kinds import RESOURCES
from runup.dump.collectors import ALL, has_namespaces, place_of, proven_by_tool, read_record, resource_collected
from runup.dump.documents import JSON, Resource, guess_plural, identity, resource_named
from runup.dump.dump_files import Layout
from runup.dump.dump_objects import Listed

MAX_NAMED = 5
# The layouts in which files were collected together, as far as anyone knows.
_FLAT = ("folder", "case")
_NAMESPACES: Resource = ("", "namespaces")
_NODES: Resource = ("", "nodes")
_POOLS: Resource = ("machineconfiguration.openshift.io", "machineconfigpools")
# Kinds of which the API has one object, of a fixed name (the APIs' own documentation: "the canonical name is").
_CONFIGS = """apiservers authentications builds consoles dnses featuregates images infrastructures ingresses networks
nodes oauths proxies schedulers"""
_OPERATORS = """authentications cloudcredentials configs consoles csisnapshotcontrollers etcds kubeapiservers
kubecontrollermanagers kubeschedulers kubestorageversionmigrators networks openshiftapiservers
openshiftcontrollermanagers storages"""
_SINGLETONS: dict[Resource, str] = {
    ("config.openshift.io", "clusterversions"): "version",
    ("imageregistry.operator.openshift.io", "configs"): "cluster",
    **{("config.openshift.io", plural): "cluster" for plural in _CONFIGS.split()},
    **{("operator.openshift.io", plural): "cluster" for plural in _OPERATORS.split()},
}
_IS_NAMESPACED = {(resource.group, resource.plural): resource.namespaced for resource in RESOURCES.values()}


@dataclass(frozen=True, slots=True)
class CompleteKinds:
    """Kinds as (group, plural). `whole`: every object is known; `partly`: only some are, or those of some namespaces.

    `namespaces` names the namespaces for which a kind in `partly` is known in full. `absent`: the server did not have
    the kind.
    """

    whole: frozenset[Resource] = frozenset()
    partly: frozenset[Resource] = frozenset()
    namespaces: Mapping[Resource, frozenset[str]] = field(default_factory=dict)
    absent: frozenset[Resource] = frozenset()

    def covers(self, resource: Resource, namespace: str = "") -> bool:
        """Returns whether every object of a kind is known, in `namespace` or (if that is empty) in the cluster."""
        return resource in self.whole or (namespace != "" and namespace in self.namespaces.get(resource, ()))

    def why_partly(self, resource: Resource) -> str:
        """Returns what the dump has of a kind that is known in part, and what is not known because of that."""
        plural, namespaces = resource[1], sorted(self.namespaces.get(resource, ()))
        if not namespaces:
            return f"the dump has only a part of the {plural}: whether there were others is not known"
        more = f" and {len(namespaces) - MAX_NAMED} more" if len(namespaces) > MAX_NAMED else ""
        namespaces_text = f"namespace{'s' if len(namespaces) > 1 else ''} {', '.join(namespaces[:MAX_NAMED])}{more}"
        return f"of {plural} the dump has only the {namespaces_text}: whether there were others is not known"


def complete_kinds(
    layout: Layout,
    objects: Iterable[JSON],
    lists: Mapping[Path, tuple[Listed, ...]],
    plural_of: Mapping[tuple[str, str], str],
    broken: AbstractSet[Path],
) -> CompleteKinds:
    """Returns which kinds are complete and which are known in part.

    `plural_of` names the resource of a (group, kind); files that are `broken` prove nothing.
    """
    objects = tuple(objects)
    held_namespaces: dict[Resource, set[str]] = defaultdict(set)
    for obj in objects:
        group, kind, namespace, _ = identity(obj)
        held_namespaces[group, plural_of[group, kind]].add(namespace)

    def plural(group: str, kind: str) -> Resource:
        return group, plural_of.get((group, kind)) or guess_plural(kind)

    numbers = Counter(
        (group, kind, reach) for group, kind, namespace, _ in map(identity, objects) for reach in (namespace, ALL)
    )
    proofs = _by_answers(
        layout, {file: kept_lists for file, kept_lists in lists.items() if file not in broken}, plural, numbers
    )
    record = read_record(layout.root)
    if record is not None:
        # It was written with the lists and knows what was asked for, as these do not.
        unread = {resource_collected(file) for file in broken}
        proofs = defaultdict(set)
        for resource, proven_namespace in record.known:
            proofs[resource] |= set() if resource in unread else {proven_namespace}
    else:
        for resource, proven_namespace in proven_by_tool(layout, objects, broken):
            proofs[resource].add(proven_namespace)
    _by_listed_namespaces(proofs, objects)
    if ALL in proofs.get(_POOLS, ()) and _machines(objects) == numbers["", "Node", ALL]:
        proofs[_NODES].add(ALL)
    whole = frozenset(
        {resource for resource, namespaces in proofs.items() if ALL in namespaces}
        | set(_singleton_kinds(layout, objects, plural))
    )
    namespaces = {
        resource: frozenset(namespaces)
        for resource, namespaces in proofs.items()
        if resource not in whole and namespaces
    }
    partly = (frozenset(held_namespaces) | frozenset(namespaces)) - whole
    return CompleteKinds(whole, partly, namespaces, record.absent if record else frozenset())


Plural = Callable[[str, str], Resource]
Proofs = dict[Resource, set[str]]


def _by_answers(
    layout: Layout,
    lists: Mapping[Path, tuple[Listed, ...]],
    plural: Plural,
    numbers: Mapping[tuple[str, str, str], int],
) -> Proofs:
    """Returns for each kind the namespaces that answers of the API server cover, with ALL for the cluster.

    `numbers` counts the dump's objects by (group, kind, namespace or ALL): a list that lacks some was not of all.
    """
    # Folders are looked at once each: a dump may have a list in every one of thousands.
    is_parent = cache(has_namespaces)
    placed = [
        (file, file_list, place_of(file, layout, is_parent))
        for file, file_lists in lists.items()
        for file_list in file_lists
    ]
    # In the place where `oc adm inspect` puts a list, nothing else is written.
    answers = [
        placed_list
        for placed_list in placed
        if placed_list[1].is_answer or (placed_list[2] is not None and not placed_list[1].is_cut)
    ]
    # Whether lists that were collected together are of one namespace only, as by a context's namespace.
    reached = [
        answer.namespaces
        for answer in (listed for _file, listed, place in answers if place is None)
        if answer.namespaces
    ]
    limited = bool(reached) and all(len(namespaces) == 1 for namespaces in reached)
    proofs: Proofs = defaultdict(set)
    empty: dict[Resource, list[str | None]] = defaultdict(list)
    for file, listed, place in answers:
        if not listed.held:
            # The kind of a list without items: the list says it, or the file is named after it.
            group, kind = listed.api_version.rpartition("/")[0], listed.kind.removesuffix("List")
            if resource := (plural(group, kind) if kind else resource_named(file)):
                empty[resource].append(place)
            continue
        for group, kind in listed.held:
            reach = _namespaces_reached(listed, (group, kind), place)
            # Beside a tree it was collected later, when some objects of the tree may have been gone.
            if layout.style in _FLAT and any(listed.counts[group, kind] < numbers[group, kind, ns] for ns in reach):
                continue
            proofs[plural(group, kind)] |= reach
    held_namespaces: dict[Resource, set[str]] = defaultdict(set)
    for group, kind, namespace in numbers:
        held_namespaces[plural(group, kind)].add(namespace)
    for resource, places in empty.items():
        held = held_namespaces.get(resource, set())
        known_places = {place or ALL for place in places if place is not None}
        proofs[resource] |= known_places - held if layout.style in _FLAT else known_places
        # An empty list does not say where it looked, so that an object elsewhere in the dump, also in a tree, shows
        # that it may have been another namespace. Beside other lists of its kind it is one of several parts.
        alone = not known_places and len(places) == 1 and not proofs[resource] and not held
        if alone and not (limited and _IS_NAMESPACED.get(resource, True)):
            proofs[resource].add(ALL)
    return proofs


def _namespaces_reached(listed: Listed, kind: tuple[str, str], place: str | None) -> AbstractSet[str]:
    """Returns the namespaces in which a list has every object of one of its kinds."""
    if place:
        return {place}
    # What has objects in several namespaces was asked for in all of them: a request is about one or about all.
    return {ALL} if len(listed.namespaces) > 1 else listed.held[kind] - {""} or {ALL}


def _by_listed_namespaces(proofs: Proofs, objects: Iterable[JSON]) -> None:
    """Adds the cluster to every kind that is known in each of its namespaces, if these are known to be all."""
    if ALL not in proofs.get(_NAMESPACES, ()):
        return
    all_namespaces = {identity(obj)[3] for obj in objects if identity(obj)[:2] == ("", "Namespace")}
    for proven in proofs.values():
        if all_namespaces and all_namespaces <= proven:
            proven.add(ALL)


def _machines(objects: Iterable[JSON]) -> int | None:
    """Returns how many nodes the machine config pools have together, or None if one does not say it.

    A node is counted in one pool (docs/decisions/0080).
    """
    counts = [
        (obj.get("status") or {}).get("machineCount") for obj in objects if identity(obj)[1] == "MachineConfigPool"
    ]
    whole = [count for count in counts if isinstance(count, int)]
    return sum(whole) if whole and len(whole) == len(counts) else None


def _singleton_kinds(layout: Layout, objects: Iterable[JSON], plural: Plural) -> Iterator[Resource]:
    """Yields the singleton kinds whose object is in the dump."""
    for obj in objects:
        # Of an operator's own configuration an Insights archive has the spec only.
        if layout.style == "insights" and "status" not in obj:
            continue
        group, kind, namespace, name = identity(obj)
        if not namespace and _SINGLETONS.get(resource := plural(group, kind)) == name:
            yield resource
