"""The files of a dump in, the cluster's objects out, with an account of what could not be used.

A broken file never ends an import: it is named and counted. Only a dump without a ClusterVersion is no cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from runup.sandbox.dump.layout import BadDump, Layout
from runup.sandbox.scenario.manifests import JSON, BadManifest, identity, objects_in

# What belongs to the server that held the object, or would tie the copy to it. An owner is named by its uid, which is
# another one here: the garbage collector would take every copy for an orphan.
_DROPPED_METADATA = (
    "ownerReferences",
    "resourceVersion",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
# Kinds that a cluster writes by the thousand and that say nothing about an update, or that must not be copied.
_SKIPPED_KINDS = frozenset({"Event", "Secret", "EndpointSlice", "Endpoints", "Lease", "ControllerRevision"})
_PLURAL = re.compile(r"[a-z][a-z0-9]*")
_SCALAR_LISTS = frozenset({"PackageManifest", "PodMetrics", "NodeMetrics"})


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be used, and why."""

    file: str
    message: str


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump as read. `plurals` names the resource of a (group, kind) where a folder of the dump told it."""

    name: str
    style: str
    objects: tuple[JSON, ...]
    plurals: dict[tuple[str, str], str]
    problems: tuple[Problem, ...] = ()
    skipped: int = 0

    def one(self, group: str, kind: str, name: str) -> JSON | None:
        """The cluster-scoped object of that identity, if the dump has it."""
        return next((obj for obj in self.objects if identity(obj) == (group, kind, "", name)), None)

    @property
    def cluster_version(self) -> JSON:
        """The ClusterVersion, which every dump has."""
        found = self.one("config.openshift.io", "ClusterVersion", "version")
        assert found is not None
        return found


def load(layout: Layout) -> Dump:
    """Read every file of `layout`; raises BadDump where no ClusterVersion is among them."""
    objects: dict[tuple[str, str, str, str], JSON] = {}
    plurals: dict[tuple[str, str], str] = {}
    problems: list[Problem] = []
    skipped = 0
    for file in layout.files:
        try:
            found = objects_in(file)
        except BadManifest as error:
            problems.append(Problem(str(file), error.message))
            continue
        for obj in found:
            group, kind, _namespace, _name = key = identity(obj)
            if kind in _SKIPPED_KINDS or kind in _SCALAR_LISTS:
                skipped += 1
                continue
            objects[key] = cleaned(obj)
            plural = _plural_of(file, layout)
            if plural:
                plurals.setdefault((group, kind), plural)
    dump = Dump(layout.name, layout.style, tuple(objects.values()), plurals, tuple(problems), skipped)
    if dump.one("config.openshift.io", "ClusterVersion", "version") is None:
        raise BadDump(_without_cluster_version(layout, problems), reason="NoClusterVersion")
    return dump


def cleaned(obj: JSON) -> JSON:
    """The object without what only its old server could mean; status, labels, owners and times stay."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _DROPPED_METADATA}
    if metadata.get("namespace") == "":
        del metadata["namespace"]
    return {**obj, "metadata": metadata}


def _plural_of(file: Path, layout: Layout) -> str:
    """`.../<group>/<plural>/<name>.yaml`, or `.../<group>/<plural>.yaml` for a list, in a tree of `oc adm inspect`."""
    if layout.style != "inspect":
        return ""
    parts = file.parts
    root = max(index for index, part in enumerate(parts) if part in {"cluster-scoped-resources", "namespaces"})
    below = parts[root + 1 :] if parts[root] == "cluster-scoped-resources" else parts[root + 2 :]
    candidate = below[1] if len(below) == 3 else Path(below[-1]).stem if len(below) == 2 else ""
    return candidate if _PLURAL.fullmatch(candidate) else ""


def _without_cluster_version(layout: Layout, problems: list[Problem]) -> str:
    text = f"the dump {layout.name} ({len(layout.files)} files) has no ClusterVersion 'version', so it is no cluster"
    return "\n".join([text, *(f"  {problem.message}" for problem in problems[:5])])


def guess_plural(kind: str) -> str:
    """The plural that a kind most likely has, where nothing tells it (the rule of apimachinery's UnsafeGuess)."""
    lower = kind.lower()
    if lower.endswith("s"):
        return lower + "es"
    if lower.endswith("y"):
        return lower[:-1] + "ies"
    return lower + "s"
