"""Which built-in kinds change versions, and the evidence that somebody writes objects in a version that ends.

Evidence is an entry of `managedFields`, or the annotation in which `kubectl apply` keeps the last applied manifest.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kubekit.api.scheme import guess_plural
from runup.api.platform_v1 import LAST_APPLIED, Managed, ManagedFieldsEntry, ManagedMeta
from runup.checks.decide.model import Snapshot, Unreadable
from runup.checks.decide.removal_tables import Life, lives, removed_versions, table, versions_of
from runup.checks.writing import Slim
from runup.report.report import Severity

ACTIVE_WITHIN = timedelta(days=30)
# The oldest Kubernetes whose removals are evidence of today's clients.
OLDEST = 22
# Managers that are the control plane itself, which is of the target when the target is there: the names are those of
# its programs, and of the parts of kube-apiserver that write FlowSchemas (apiserver, pkg/util/flowcontrol).
CONTROL_PLANE = frozenset(
    {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "cluster-policy-controller"}
    | {f"api-priority-and-fairness-config-{part}-v1" for part in ("consumer", "producer")}
)
# Requests that are not stored, and what only the control plane writes (kubernetes/kubernetes, pkg/controlplane).
_NOT_WRITTEN = frozenset(
    {"TokenReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "Eviction"}
    | {"SubjectAccessReview", "SelfSubjectReview", "LeaseCandidate"}
)
_NAMESPACED = frozenset(
    {"HorizontalPodAutoscaler", "CronJob", "PodDisruptionBudget", "Ingress", "Lease", "EndpointSlice", "Event", "Role"}
    | {"RoleBinding", "CSIStorageCapacity", "ResourceClaim", "ResourceClaimTemplate", "PodScheduling", "PodGroup"}
    | {"PodSchedulingContext", "ResourceClaimParameters", "ResourceClassParameters", "PodCertificateRequest"}
    | {"Workload", "CompositePodGroup", "EvictionRequest"}
)
# The kind by which objects of a group that has ended are read, and Events, which every other check reads by the core.
_READ_AS = {("extensions", "Ingress"): "networking.k8s.io", ("events.k8s.io", "Event"): ""}
# Kinds that are in the plural themselves (k8s.io/api, resource/v1alpha2: +genclient).
_PLURALS = {kind: kind.lower() for kind in ("ResourceClaimParameters", "ResourceClassParameters")}
# The managers as which `kubectl apply` writes, on the client's side and on the server's.
_KUBECTL = frozenset({"kubectl-client-side-apply", "kubectl"})


class _AppliedType(msgspec.Struct, rename="camel"):
    """The type that a manifest says; the rest of it is not read."""

    api_version: str = ""


def written(obj: Managed) -> Managed:
    """Returns the object with its managers, and of the manifest that was applied last the version alone.

    `fieldsV1` is kept of the entry that owns that annotation.
    """
    metadata = obj.metadata
    notes = {}
    if text := metadata.annotations.get(LAST_APPLIED):
        try:
            notes[LAST_APPLIED] = msgspec.json.decode(text, type=_AppliedType).api_version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            notes[LAST_APPLIED] = ""
    entries = (
        entry if _owns_annotation(entry) else replace(entry, fields_v1=None) for entry in metadata.managed_fields
    )
    return Managed(
        metadata=ManagedMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            resource_version=metadata.resource_version,
            annotations=notes,
            managed_fields=tuple(entries),
        )
    )


def _owns_annotation(entry: ManagedFieldsEntry) -> bool:
    return entry.fields_v1 is not None and f"f:{LAST_APPLIED}" in entry.fields_v1.metadata.annotations


def _kinds() -> Iterator[tuple[Slim, ...]]:
    """Yields the reads of every kind with an added or removed version, preferred version first.

    An older API server does not have the newest version.
    """
    by_kind: dict[tuple[str, str], dict[str, Life]] = {}
    for (group, version, kind), life in lives().items():
        key = (_READ_AS.get((group, kind), group), kind)
        if kind in _NOT_WRITTEN or max(life.introduced or 0, life.removed or 0) < OLDEST:
            continue
        versions = by_kind.setdefault(key, {})
        if group == key[0]:
            versions[version] = life
        in_group, _, replacement = life.replacement.partition(" ")[0].rpartition("/")
        if replacement and in_group == group:
            versions.setdefault(replacement, Life())
        elif group != key[0]:
            versions.setdefault("v1", Life())
    for (group, kind), versions in sorted(by_kind.items()):
        yield tuple(
            Slim(
                group=group,
                version=version,
                kind=kind,
                plural=_PLURALS.get(kind) or guess_plural(kind),
                namespaced=kind in _NAMESPACED,
                type=Managed,
                keep=written,
                changes=_changes(group, kind),
            )
            for version in sorted(versions, key=_preference, reverse=True)
        )


def _preference(version: str) -> tuple[bool, bool, str]:
    return "alpha" not in version, "beta" not in version, version


def _changes(group: str, kind: str) -> tuple[int, ...]:
    """Returns the minor versions in which a version of the kind comes or goes, and the first that no table knows.

    Only alpha and beta versions are ever removed within a major version
    (https://kubernetes.io/docs/reference/using-api/deprecation-policy/).
    """
    versions = [
        (version, life)
        for (in_group, version, its_kind), life in lives().items()
        if (_READ_AS.get((in_group, its_kind), in_group), its_kind) == (group, kind)
    ]
    minors = {minor for _, life in versions for minor in (life.introduced, life.removed) if minor is not None}
    if any(is_unstable(version) and life.removed is None for version, life in versions) or max(minors) > LAST:
        minors.add(LAST + 1)
    return tuple(sorted(minors))


def is_unstable(version: str) -> bool:
    """Returns whether an API server serves the version only if --runtime-config enables it, and may remove it.

    https://kubernetes.io/docs/reference/using-api/#api-versioning
    """
    return "alpha" in version or "beta" in version


@lru_cache(256)
def ended(read: Slim, source: int, target: int) -> frozenset[str]:
    """Returns the versions, with their groups, of a kind that are removed between two minor versions."""
    return frozenset(
        f"{group}/{version}"
        for group, version, kind in removed_versions(source, target)
        if (_READ_AS.get((group, kind), group), kind) == (read.group, read.kind)
    )


def stays(versions: Iterable[Slim], source: int, target: int) -> bool:
    """Returns whether each minor version of the way serves a version of the kind that the one before serves."""
    known = [versions_of(read.group, read.kind).get(read.version, Life()) for read in versions]
    return all(
        any((life.introduced or 0) <= minor and (life.removed is None or life.removed > minor + 1) for life in known)
        for minor in range(source, target)
    )


LAST = table("removed-apis").last
KINDS: tuple[tuple[Slim, ...], ...] = tuple(_kinds())
ALL: tuple[Slim, ...] = tuple(version for versions in KINDS for version in versions)


def cannot_list(snapshot: Snapshot, versions: tuple[Slim, ...]) -> bool:
    """Returns whether the kind can be listed in none of its versions."""
    try:
        snapshot.list_first_served(versions)
    except Unreadable:
        return True
    return False


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence that a client writes an object in a version: `manager` is empty if only a manifest shows it.

    `is_applied`: the version is that of the manifest that was applied last.
    """

    obj: Managed
    api_version: str
    manager: str = ""
    time: datetime | None = None
    is_applied: bool = False

    def severity(self, now: datetime) -> Severity:
        """Returns how much the evidence weighs: the next write fails, a next one would, or there may be none."""
        if self.time is not None and now - self.time <= ACTIVE_WITHIN:
            return "critical"
        return "warning" if self.is_applied else "info"

    @property
    def text(self) -> str:
        """The evidence in words."""
        when = f" on {self.time:%Y-%m-%d}" if self.time else ""
        if self.is_applied:
            who = "kubectl" if self.manager in ("", *_KUBECTL) else self.manager
            return f"applied by {who}{when}, from a file that says {self.api_version}"
        return f"{self.manager} in {self.api_version}{when}"


def writes_of(obj: Managed, ended: Container[str], but_of: Container[str]) -> Iterator[Write]:
    """Yields the evidence that the object is written in the `ended` versions, by other managers than `but_of`.

    Newer evidence of the same manager in another version cancels older evidence.
    """
    applied, applier = obj.metadata.annotations.get(LAST_APPLIED, ""), _applier(obj)
    by_manager: dict[str, list[ManagedFieldsEntry]] = {}
    for entry in obj.metadata.managed_fields:
        by_manager.setdefault(entry.manager, []).append(entry)
    for manager, entries in by_manager.items():
        if manager in but_of or (manager == applier and applied not in ended):
            continue
        newest = max((entry.time for entry in entries if entry.time is not None), default=None)
        # Entries of one second do not cancel each other.
        for version in [entry.api_version for entry in entries if entry.time == newest]:
            if version in ended:
                is_applied = manager == applier and version == applied
                yield Write(obj=obj, manager=manager, api_version=version, time=newest, is_applied=is_applied)
    if applied in ended and not applier:
        yield Write(obj=obj, api_version=applied, is_applied=True)


def _applier(obj: Managed) -> str:
    """Returns the manager that wrote the annotation of the manifest that was applied last; empty if none shows it."""
    if not obj.metadata.annotations.get(LAST_APPLIED):
        return ""
    entries = obj.metadata.managed_fields
    owners = [entry.manager for entry in entries if _owns_annotation(entry)]
    return next(iter(owners or [entry.manager for entry in entries if entry.manager in _KUBECTL]), "")


def recent_writes(
    objects: Iterable[Managed], versions: Container[str], but_of: Container[str], now: datetime
) -> list[Write]:
    """Returns the writes of the last days to the objects in these versions, without those of the managers `but_of`."""
    return [
        write
        for obj in objects
        for write in writes_of(obj, versions, but_of)
        if write.time is not None and now - write.time <= ACTIVE_WITHIN
    ]
