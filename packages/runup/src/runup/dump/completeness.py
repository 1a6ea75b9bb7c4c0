"""Determines which kinds a dump holds in full, for the cluster or for a namespace, by what its format proves.

What each format proves, and its source, is in docs/decisions/0080. An answer of the API server proves its kind: a list
that has the metadata of a list and was not cut off. Such a list covers the cluster if it reaches across namespaces or
has objects that are in none, else the one namespace of its objects or of its folder. Objects on their own prove
nothing, unless the tool that wrote them is known to have listed their kind (`proven_by_tool`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kubekit.api.scheme import guess_plural
from kubekit.lang.files import read_limited
from runup.api.clusterversion_json import mapping, mappings
from runup.api.kinds import RESOURCES
from runup.dump import dump_files as bundles
from runup.dump.documents import JSON, Resource, identity, resource_named
from runup.dump.dump_files import COLLECTED, Layout
from runup.dump.dump_objects import Listed
from runup.dump.dump_time import read_text, timestamps

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteKinds:
    """Kinds as (group, plural). `whole`: every object is known; `partly`: only some are, or those of some namespaces.

    `namespaces` names the namespaces for which a kind in `partly` is known in full. `absent`: the server did not have
    the kind, `served`: it did, whether or not the dump has its objects. `fields`: those that the dump has of a kind, in
    the form of its record; a kind without has all.
    """

    whole: frozenset[Resource] = frozenset()
    partly: frozenset[Resource] = frozenset()
    namespaces: Mapping[Resource, frozenset[str]] = field(default_factory=dict)
    absent: frozenset[Resource] = frozenset()
    served: frozenset[Resource] = frozenset()
    fields: Mapping[Resource, str] = field(default_factory=dict)

    def covers(self, resource: Resource, namespace: str = "") -> bool:
        """Returns whether every object of a kind is known, in `namespace` or (if that is empty) in the cluster."""
        return resource in self.whole or (namespace != "" and namespace in self.namespaces.get(resource, ()))

    def why_partly(self, resource: Resource) -> str:
        """Returns a text about the known part of an incomplete kind, and the resulting unknowns."""
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
    items_in = {file: sum(sum(each.counts.values()) for each in kept_lists) for file, kept_lists in lists.items()}
    record = read_record(layout.root, {file: number for file, number in items_in.items() if file not in broken})
    if record is not None:
        # It was written with the lists and knows what was asked for, as these do not.
        proofs = defaultdict(set)
        for resource, proven_namespace in record.known:
            proofs[resource].add(proven_namespace)
    else:
        for resource, proven_namespace in proven_by_tool(layout, objects, broken):
            proofs[resource].add(proven_namespace)
    # A kind that is known in each namespace is known in the cluster, if these are known to be all.
    all_namespaces = {identity(obj)[3] for obj in objects if identity(obj)[:2] == ("", "Namespace")}
    for proven in proofs.values() if ALL in proofs.get(_NAMESPACES, ()) else ():
        if all_namespaces and all_namespaces <= proven:
            proven.add(ALL)
    # The nodes are known if there are as many as the machine config pools count: each is counted in one pool
    # (docs/decisions/0080).
    pools = [obj for obj in objects if identity(obj)[1] == "MachineConfigPool"]
    machines = [mapping(pool, "status").get("machineCount") for pool in pools]
    counts = [count for count in machines if isinstance(count, int)]
    are_counted = bool(counts) and len(counts) == len(machines)
    if ALL in proofs.get(_POOLS, ()) and are_counted and sum(counts) == numbers["", "Node", ALL]:
        proofs[_NODES].add(ALL)
    known = {resource for resource, namespaces in proofs.items() if ALL in namespaces}
    for obj in objects:
        group, kind, namespace, name = identity(obj)
        # A kind of one object is known if that is there. Of an operator's own configuration an Insights archive has
        # the spec only.
        if not namespace and _SINGLETONS.get(plural(group, kind)) == name:
            known |= {plural(group, kind)} if layout.style != "insights" or "status" in obj else set()
    whole = frozenset(known)
    namespaces = {
        resource: frozenset(namespaces)
        for resource, namespaces in proofs.items()
        if resource not in whole and namespaces
    }
    partly = (frozenset(held_namespaces) | frozenset(namespaces)) - whole
    known_kinds = CompleteKinds(whole=whole, partly=partly, namespaces=namespaces)
    return (
        replace(known_kinds, absent=record.absent, served=record.served, fields=record.fields)
        if record
        else known_kinds
    )


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
            # What has objects in several namespaces was asked for in all of them: a request is about one or about all.
            everywhere = len(listed.namespaces) > 1
            reach = {place} if place else {ALL} if everywhere else listed.held[group, kind] - {""} or {ALL}
            # Next to a tree it was collected later, when some objects of the tree may have been gone.
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
        # that it may have been another namespace. Next to other lists of its kind it is one of several parts.
        alone = not known_places and len(places) == 1 and not proofs[resource] and not held
        if alone and not (limited and _IS_NAMESPACED.get(resource, True)):
            proofs[resource].add(ALL)
    return proofs


# Stands for every namespace, and for the cluster.
ALL = "*"
# How `oc adm inspect` names its folders; `all` has what was listed in all namespaces at once.
CLUSTER, NAMESPACES, _CORE, _EVERYWHERE = "cluster-scoped-resources", "namespaces", "core", "all"
# What must-gather's own image writes first into its folder (collection-scripts/gather).
_IMAGE = "openshift/must-gather"
_CLUSTER_OPERATORS: Resource = ("config.openshift.io", "clusteroperators")
# What its script has `oc adm inspect` list by kind, in every release whose image writes that file.
_LISTED: frozenset[Resource] = frozenset(
    {
        ("", "nodes"),
        ("", "persistentvolumes"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        _CLUSTER_OPERATORS,
        ("config.openshift.io", "clusterversions"),
        ("operator.openshift.io", "networks"),
        *(("storage.k8s.io", plural) for plural in ("csidrivers", "csinodes", "storageclasses", "volumeattachments")),
        *(
            ("operators.coreos.com", plural)
            for plural in ("catalogsources", "clusterserviceversions", "installplans", "subscriptions")
        ),
    }
)
# What later releases list, and earlier ones collect by name: an object that every cluster has and nobody asks for.
_LISTED_WITH: dict[Resource, str] = {
    ("apiregistration.k8s.io", "apiservices"): "v1.apps",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "exempt",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "exempt",
}
# Operators of every cluster that has its own control plane: whoever inspected all of them inspected the kind.
_CORE_OPERATORS = """authentication config-operator dns etcd kube-apiserver kube-controller-manager kube-scheduler
machine-config network openshift-apiserver"""
_EVERY_CLUSTERS = frozenset(_CORE_OPERATORS.split())
# Gatherers of the Insights operator that record every object of a kind, with their folder below `config`. Of budgets,
# pods, volumes, requests and definitions it records some only.
_GATHERERS: dict[str, tuple[Resource, str]] = {
    "clusterconfig/nodes": (("", "nodes"), "node"),
    "clusterconfig/operators": (_CLUSTER_OPERATORS, "clusteroperator"),
    "clusterconfig/machine_config_pools": (
        ("machineconfiguration.openshift.io", "machineconfigpools"),
        "machineconfigpools",
    ),
}


def place_of(file: Path, layout: Layout, has_namespaces: Callable[[Path], bool]) -> str | None:
    """Returns the namespace of a file by its path: empty for cluster-scoped objects, ALL, or None if unknown.

    `has_namespaces` returns whether a folder has a folder for each namespace.
    """
    parts = file.relative_to(layout.root).parts if file.is_relative_to(layout.root) else file.parts
    if layout.style == "bundle":
        return bundles.place_of(file, layout.root)
    if layout.style == "inspect":
        for index, part in enumerate(parts[:-1]):
            if part == CLUSTER:
                return ""
            if part == NAMESPACES and len(parts) > index + 2:
                return ALL if parts[index + 1] == _EVERYWHERE else parts[index + 1]
    if layout.style == "folder" and len(parts) > 1 and has_namespaces(layout.root / Path(*parts[:-2])):
        return parts[-2]
    return None


def has_namespaces(folder: Path) -> bool:
    """Returns whether `kubectl cluster-info dump` wrote to `folder`: nodes, and a folder for each namespace."""
    return any((folder / f"nodes{suffix}").is_file() for suffix in (".json", ".yaml")) and any(
        next(folder.glob(f"*/replication-controllers{suffix}"), None) for suffix in (".json", ".yaml")
    )


def proven_by_tool(
    layout: Layout, objects: Iterable[JSON], broken: AbstractSet[Path]
) -> Iterator[tuple[Resource, str]]:
    """Yields the kinds that the tool is known to have listed, each with the namespace or ALL."""
    if layout.style == "inspect":
        # The kinds that trees of `oc adm inspect` hold completely, each with the namespace that this holds for.
        names: dict[Path, dict[Resource, set[str]]] = defaultdict(lambda: defaultdict(set))
        places: set[tuple[Path, Resource, str]] = set()
        spoilt: set[tuple[Path, Resource]] = set()
        for file in layout.files:
            if (placed := _place_in_tree(file, layout.root)) is None:
                continue
            root, resource, namespace = placed
            names[root][resource].add(file.stem)
            places.add((root, resource, namespace))
            if file in broken:
                spoilt.add((root, resource))
        # `oc adm inspect` lists a kind because a ClusterOperator relates to all of its objects.
        related: dict[str, set[tuple[Resource, str]]] = {}
        for operator in (obj for obj in objects if obj["kind"] == "ClusterOperator"):
            related[identity(operator)[3]] = {
                ((str(row.get("group") or ""), str(row["resource"])), str(row.get("namespace") or "") or ALL)
                for row in mappings(mapping(operator, "status"), "relatedObjects")
                if row.get("resource") and not row.get("name")
            }
        for root, of_kind in names.items():
            requests = {
                related_objects
                for name in of_kind.get(_CLUSTER_OPERATORS, ())
                for related_objects in related.get(name, ())
            }
            if of_kind.get(_CLUSTER_OPERATORS, set()) >= _EVERY_CLUSTERS:
                requests.add((_CLUSTER_OPERATORS, ALL))
            if is_must_gather(root, layout.root):
                for folder in (root / CLUSTER).glob("*/*"):
                    if folder.is_dir() and not any(folder.iterdir()):
                        group = folder.parent.name
                        of_kind.setdefault(("" if group == _CORE else group, folder.name), set())
                requests |= {(resource, ALL) for resource in _LISTED}
                requests |= {
                    (resource, ALL) for resource, name in _LISTED_WITH.items() if name in of_kind.get(resource, ())
                }
            # Of a kind without an object there is no file: it was empty, or its listing failed.
            yield from (
                (resource, namespace)
                for resource, namespace in requests
                if (resource in of_kind if namespace == ALL else (root, resource, namespace) in places)
                if (root, resource) not in spoilt
            )
    elif layout.style == "insights":
        # The archive's own record says what was gathered without an error; a kind with a broken file is not complete.
        for row in _rows_of_record(layout.root / "insights-operator" / "gathers.json", "status_reports"):
            gathered, below = _GATHERERS.get(str(row.get("name")), (None, ""))
            is_spoilt = any(file.is_relative_to(layout.root / "config" / below) for file in broken)
            if gathered and not is_spoilt and not row.get("errors") and not row.get("panic"):
                yield gathered, ALL


def _place_in_tree(file: Path, top: Path) -> tuple[Path, Resource, str] | None:
    """Returns the tree's root, the resource and the namespace of a file `GROUP/PLURAL/NAME.yaml`; None for any other.

    The namespace of what is in none is empty.
    """
    parts = file.relative_to(top).parts
    start = next((index for index, part in enumerate(parts) if part in {CLUSTER, NAMESPACES}), None)
    if start is None:
        return None
    namespace, below = ("", parts[start + 1 :]) if parts[start] == CLUSTER else (parts[start + 1], parts[start + 2 :])
    if len(below) != 3:
        return None
    return top.joinpath(*parts[:start]), ("" if below[0] == _CORE else below[0], below[1]), namespace


def is_must_gather(root: Path, top: Path) -> bool:
    """Returns whether must-gather's own image wrote the tree at `root`, and came to its end.

    `oc adm must-gather` notes its start and its end in a file next to the folder of the image.
    """
    if root != top and (times := timestamps(root.parent)) is not None and len(times) < 2:
        return False
    version = root / "version"
    if version.is_file():
        return read_text(version).partition("\n")[0].strip() == _IMAGE
    # Images of before that file: the folder is one of `oc adm must-gather` all the same.
    return root != top and timestamps(root.parent) is not None


class Recorded(NamedTuple):
    """Record of `runup dump collect`: kinds that are known, each with the namespace or ALL.

    The server did not have the kinds in `absent`, and had those in `served`. `fields` are those that the objects of a
    kind have, if they are not whole.
    """

    known: tuple[tuple[Resource, str], ...]
    absent: frozenset[Resource]
    served: frozenset[Resource]
    fields: Mapping[Resource, str]


def read_record(root: Path, items_in: Mapping[Path, int]) -> Recorded | None:
    """Returns the record of `runup dump collect` in the folder `root`, or None without one.

    `items_in` has the number of items of each list that could be read. A kind whose lists are not all there, or have
    another number of items than the record says, is not known: a copy of the dump may not be finished.
    """
    if not (root / COLLECTED).is_file():
        return None
    recorded: list[tuple[Resource, str]] = []
    absent: set[Resource] = set()
    served: set[Resource] = set()
    fields: dict[Resource, str] = {}
    for row in _rows_of_record(root / COLLECTED, "kinds"):
        plural, _, group = str(row.get("resource") or "").partition(".")
        if isinstance(row.get("fields"), str):
            fields[group, plural] = row["fields"]
        namespaces = row.get("namespaces")
        if row.get("state") == "complete":
            namespaces_read = namespaces if isinstance(namespaces, list) and namespaces else [ALL]
            of_resource = f"{plural}.{group}" if group else plural
            suffixes = ["" if namespace == ALL else f"@{namespace}" for namespace in namespaces_read]
            files = [root / f"{of_resource}{suffix}.json" for suffix in suffixes]
            # The command writes no links: the objects behind one are of another time.
            held = [items_in[file] for file in files if file in items_in and not file.is_symlink()]
            if len(held) == len(files) and row.get("count", sum(held)) == sum(held):
                recorded += [((group, plural), str(namespace)) for namespace in namespaces_read]
        (absent if row.get("state") == "absent" else served).add((group, plural))
    return Recorded(tuple(recorded), frozenset(absent), frozenset(served), fields)


def _rows_of_record(file: Path, key: str) -> list[dict[str, Any]]:
    """Returns the rows below `key` of a JSON file; none if the file cannot be read."""
    try:
        record = json.loads(read_limited(file))
    except (OSError, ValueError, RecursionError):
        return []
    rows = record.get(key) if isinstance(record, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
