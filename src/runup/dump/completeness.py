"""Determines which kinds a dump holds in full, by what its own format proves (docs/decisions/0030).

A kind without objects in the dump was empty, or was not collected. A list without items proves that it was empty, and
in trees of `oc adm inspect` the resource's own folder or file does. Of a namespaced kind such a tree holds what was
collected for a namespace: it is complete only if every namespace of the dump was collected.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from runup.dump.documents import JSON, identity
from runup.dump.dump_files import Layout
from runup.dump.dump_objects import Listed
from runup.dump.plurals import guess_plural

Resource = tuple[str, str]  # group, plural
_CORE_KINDS = """configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods
podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services"""
# File names of a case or a folder, used if a list without items does not say its kind.
_STEMS: dict[str, Resource] = {
    plural: (group, plural)
    for group, plurals in {
        "config.openshift.io": ("clusterversions", "clusteroperators", "featuregates", "infrastructures", "networks"),
        "machineconfiguration.openshift.io": ("machineconfigpools", "machineconfigs"),
        "policy": ("poddisruptionbudgets",),
        "apps": ("deployments",),
        "": _CORE_KINDS.split(),
    }.items()
    for plural in plurals
}
_PLURAL = re.compile("[a-z][a-z0-9]*")
# Short names of kubectl by which files are named, too.
_SHORT = {
    "node": "nodes",
    "co": "clusteroperators",
    "mcp": "machineconfigpools",
    "mc": "machineconfigs",
    "pdb": "poddisruptionbudgets",
    "pdbs": "poddisruptionbudgets",
}
# How `oc adm inspect` names its folders; `all` has what was listed in all namespaces at once.
_CLUSTER, _NAMESPACES, _CORE, _ALL = "cluster-scoped-resources", "namespaces", "core", "all"


MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class CompleteKinds:
    """Kinds as (group, plural). `whole`: every object is known; `partly`: only those of some namespaces.

    `namespaces` names the collected namespaces of the kinds in `partly`, where they are known.
    """

    whole: frozenset[tuple[str, str]] = frozenset()
    partly: frozenset[tuple[str, str]] = frozenset()
    namespaces: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def why_partly(self, resource: tuple[str, str]) -> str:
        """Returns what the dump has of a kind that is known in part, and what is not known because of that."""
        plural, namespaces = resource[1], sorted(self.namespaces.get(resource, ()))
        if not namespaces:
            return f"the dump has only a part of the {plural}: whether there were others is not known"
        more = f" and {len(namespaces) - MAX_NAMED} more" if len(namespaces) > MAX_NAMED else ""
        named = f"namespace{'s' if len(namespaces) > 1 else ''} {', '.join(namespaces[:MAX_NAMED])}{more}"
        return f"of {plural} the dump has only the {named}: whether there were others is not known"


def collected(
    layout: Layout,
    objects: Iterable[JSON],
    lists: Mapping[Path, tuple[Listed, ...]],
    plural_of: Mapping[tuple[str, str], str],
    broken: AbstractSet[Path],
) -> CompleteKinds:
    """Returns which kinds are complete and which are known in part.

    `plural_of` names the resource of a (group, kind); files that are `broken` prove nothing.
    """
    clusterwide: set[Resource] = set()
    namespaced: set[Resource] = set()
    for obj in objects:
        group, kind, namespace, _ = identity(obj)
        (namespaced if namespace else clusterwide).add((group, plural_of[group, kind]))
    tree = list(_places(layout.root)) if layout.style == "inspect" else []
    namespaces_of = _where(place for place in tree if place.file not in broken)
    flat_files = {file for file in {*lists, *broken} if not tree or file.parent == layout.root}
    listed = {
        *_of_lists({file: file_lists for file, file_lists in lists.items() if file in flat_files - broken}, plural_of)
    }
    proven = {*_of_tree(tree, namespaces_of, broken)} if tree else listed
    unproven = {place.resource for place in tree if place.file in broken}
    unproven |= {resource for file in flat_files & broken if (resource := _named(file))}
    # Lists beside a tree were collected again later, so they prove the kind complete.
    whole = frozenset((clusterwide | proven) - unproven | (listed if tree else set()))
    partly = frozenset(namespaced | clusterwide) - whole
    return CompleteKinds(
        whole,
        partly,
        {resource: frozenset(namespaces_of[resource] - {""}) for resource in partly & namespaces_of.keys()},
    )


def _of_lists(lists: Mapping[Path, tuple[Listed, ...]], plural_of: Mapping[tuple[str, str], str]) -> Iterator[Resource]:
    for file, file_lists in lists.items():
        for each in file_lists:
            group, kind = each.api_version.rpartition("/")[0], each.kind.removesuffix("List")
            if kind:
                yield group, plural_of.get((group, kind)) or guess_plural(kind)
            elif resource := _named(file):
                yield resource


def _named(file: Path) -> Resource | None:
    """Returns the resource that a file is named after: `poddisruptionbudgets.yaml`, `NAME-node.yaml`,
    `PLURAL.GROUP.yaml`.
    """
    for word in (file.stem, file.stem.rpartition("-")[2]):
        plural, _, group = word.lower().partition(".")
        plural = _SHORT.get(plural, plural)
        if plural in _STEMS and group in ("", _STEMS[plural][0]):
            return _STEMS[plural]
    plural, _, group = file.stem.partition(".")
    return (group, plural) if group and _PLURAL.fullmatch(plural) else None


@dataclass(frozen=True, slots=True)
class _Place:
    """A resource's file or folder in a tree, or a file in that folder; `namespace` is empty for cluster-wide."""

    resource: Resource
    namespace: str
    file: Path


def _places(root: Path) -> Iterator[_Place]:
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        top = next((index for index, part in enumerate(parts) if part in {_CLUSTER, _NAMESPACES}), None)
        if top is None:
            continue
        below = parts[top + 1 :]
        namespace, below = ("", below) if parts[top] == _CLUSTER else ("".join(below[:1]), below[1:])
        if 2 <= len(below) <= 3:
            plural = below[1] if len(below) == 3 or path.is_dir() else path.stem
            yield _Place(("" if below[0] == _CORE else below[0], plural), namespace, path)


def _where(tree: Iterable[_Place]) -> dict[Resource, set[str]]:
    """Returns the namespaces of which each resource was collected."""
    where: dict[Resource, set[str]] = defaultdict(set)
    for place in tree:
        where[place.resource].add(place.namespace)
    return where


def _of_tree(
    tree: Iterable[_Place], where: Mapping[Resource, set[str]], broken: AbstractSet[Path]
) -> Iterator[Resource]:
    """Yields the resources that a tree of must-gather or `oc adm inspect` proves complete."""
    namespaces = {
        place.file.stem
        for place in tree
        if place.resource == ("", "namespaces") and not place.namespace and place.file.suffix
        if place.file not in broken
    }
    for resource, collected_namespaces in where.items():
        # Without a list of the namespaces it is not known whether all were collected.
        if collected_namespaces & {"", _ALL} or (namespaces and namespaces <= collected_namespaces):
            yield resource
