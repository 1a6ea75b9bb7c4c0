"""Defines a check: its name, the kinds it reads, the updates it applies to, and a function from a snapshot to findings.

A check receives one `Snapshot` and one `Context` and yields `Finding`s; if it yields none, it is clear. A kind that
could not be read raises `Unreadable`, which the engine turns into Unknown: not being able to tell is never the same as
fine. A single object that does not match the type of its kind is not in the snapshot's lists; the engine reports
Unknown for that object alone, and likewise for objects that a list may lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar, cast

import msgspec

from kubekit.api.codec import Undecodable
from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.version import Version
from runup.advice.decide.promql import NOTHING, PrometheusState
from runup.checks.decide.cluster_kinds import ClusterKind, Clusters
from runup.checks.decide.target_catalogs import NONE_READ, Catalogs
from runup.checks.decide.target_manifests import ReleaseObjects
from runup.kernelmodules.decide.readiness import PreflightResults
from runup.report.report import ReportedResource, Severity

K = TypeVar("K", bound=Object)
# A check that reads a kind that a cluster need not have reads these, too.
DEFINITIONS = resource_of(CustomResourceDefinition)


class Applies(Enum):
    """The answer of a finding about this cluster. A risk that does not apply is not a finding."""

    YES = "True"
    UNKNOWN = "Unknown"


class Finding(msgspec.Struct, frozen=True):
    """A risk that a check found. `name` is stable and unique to the cause: administrators accept it by name.

    `lacking` are the kinds, as `PLURAL.GROUP`, without which the check could not tell; the engine sets them.
    """

    name: str
    message: str
    applies: Applies = Applies.YES
    url: str = ""  # empty: the page of runup's documentation for this name
    reason: str = ""
    severity: Severity = "warning"
    resources: tuple[ReportedResource, ...] = ()
    remediation: str = ""
    lacking: tuple[str, ...] = ()


class Unreadable(Exception):
    """Error raised if a kind could not be listed. `lacking` is the missing RBAC rule or API."""

    def __init__(self, resource: Resource, lacking: str, message: str = "") -> None:
        super().__init__(message or f"{resource} could not be listed: {lacking}")
        self.resource = resource
        self.lacking = lacking


class UnreadableObject(Unreadable):
    """Error raised if the requested object exists but does not match the type of its kind."""

    def __init__(self, resource: Resource, undecodable: Undecodable) -> None:
        super().__init__(resource, undecodable.problem, f"{resource.kind} {undecodable}")
        self.bad = undecodable


class CheckFailure(Exception):
    """Error raised by a check that cannot answer, for a reason that is no bug of it: it is reported without a place."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects that checks may look at: all those of the requested kinds, or why a kind could not be read.

    `undecoded` holds the objects that exist but could not be decoded; `objects` does not contain them. `incomplete`
    maps a kind to the reasons why its list may lack objects, `complete_in` to the namespaces of which it lacks none
    all the same. `absent` holds the unreadable kinds that were not found at all: the definitions show whether the
    cluster has no such kind or nobody looked.
    `asked` collects the kinds that a check requested.
    """

    objects: Mapping[Resource, tuple[Any, ...]] = field(default_factory=dict)
    unreadable: Mapping[Resource, str] = field(default_factory=dict)
    undecoded: Mapping[Resource, tuple[Undecodable, ...]] = field(default_factory=dict)
    incomplete: Mapping[Resource, tuple[str, ...]] = field(default_factory=dict)
    absent: frozenset[Resource] = frozenset()
    complete_in: Mapping[Resource, frozenset[str]] = field(default_factory=dict)
    asked: set[Resource] = field(default_factory=set, compare=False, repr=False)

    def all(self, kind: type[K]) -> tuple[K, ...]:
        """Returns every object of `kind`. Raises Unreadable if it could not be listed."""
        return cast("tuple[K, ...]", self.listed(resource_of(kind)))

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """Returns the object of that name, or None if the cluster has none. Raises Unreadable if that is not known."""
        return cast("K | None", self.named(resource_of(kind), name, namespace))

    def named(self, resource: Resource, name: str, namespace: str = "") -> Any:
        """Returns the object of that name, or None if the cluster has none. Raises Unreadable if that is not known."""
        for obj in self.listed(resource):
            if obj.metadata.name == name and obj.metadata.namespace == namespace:
                return obj
        # An object of that name that could not be decoded does exist: None would be wrong.
        for undecodable in self.undecoded.get(resource, ()):
            if (undecodable.name, undecodable.namespace) == (name, namespace):
                raise UnreadableObject(resource, undecodable)
        # In an incomplete list the absence of an object proves nothing.
        if explanation := self.gap(resource, namespace):
            raise Unreadable(
                resource, explanation, f"{resource.kind} {name} is not in the list, which is incomplete: {explanation}"
            )
        return None

    def all_or_none(self, kind: type[K]) -> tuple[K, ...]:
        """Returns every object of `kind`; none if the cluster has no such kind. Raises Unreadable."""
        return cast("tuple[K, ...]", self.listed_or_none(resource_of(kind)))

    def listed_or_none(self, resource: Resource) -> tuple[Any, ...]:
        """Returns every object of `resource`, or none if no definition has such a kind in any version.

        A kind that was not found need not be one that the cluster lacks: a dump may simply not have it. So the check
        must read the DEFINITIONS, too. They do not have the kinds that are built into Kubernetes: a dump's reader
        reports such a kind as absent only if the dump's own record says so. Raises Unreadable.
        """
        if resource not in self.absent:
            return self.listed(resource)
        try:
            definitions = self.listed(DEFINITIONS)
        except Unreadable as lacking:
            why = f"{resource} was not found, and whether the cluster has that kind is not known: {lacking}"
            raise Unreadable(resource, lacking.lacking, why) from lacking
        specs = [definition.spec for definition in definitions]
        if any((spec.group, spec.names.plural) == (resource.group, resource.plural) for spec in specs):
            return self.listed(resource)
        if self.undecoded.get(DEFINITIONS) or self.incomplete.get(DEFINITIONS):
            why = f"{resource} was not found, and not all definitions could be read"
            raise Unreadable(resource, why, f"{why}.")
        return ()

    def list_first_served(self, versions: Sequence[Resource]) -> tuple[Any, ...]:
        """Returns every object of a kind by the first of its `versions` that the server has; none without any."""
        served = [version for version in versions if version not in self.absent]
        return self.listed_or_none(served[0] if served else versions[0])

    def without(self, kinds: Iterable[Resource]) -> Snapshot:
        """Returns the snapshot of a cluster that is known to have none of `kinds`."""
        return replace(self, objects={**self.objects, **dict.fromkeys(kinds, ())})

    def gap(self, resource: Resource, namespace: str = "") -> str:
        """Returns why the list of `resource` may lack objects, in `namespace` if one is given; empty if it has all.

        What a check concludes from the absence of an object holds only if this is empty.
        """
        if namespace and namespace in self.complete_in.get(resource, ()):
            return ""
        return "; ".join(self.incomplete.get(resource, ()))

    def has_all(self, resource: Resource, namespace: str = "") -> bool:
        """Returns whether every object of `resource` is in its list, or every one of `namespace` if one is given.

        If not, a check that would conclude from an object's absence yields nothing: the engine adds, for each kind that
        was requested, the Unknown finding that objects of the kind may be missing.
        """
        try:
            self.require_all(resource, namespace)
        except Unreadable:
            return False
        return True

    def require_all(self, resource: Resource, namespace: str = "") -> None:
        """Raises Unreadable if the list of `resource` may lack objects, in `namespace` if one is given.

        An object that could not be decoded exists, and is not in the list.
        """
        if explanation := self.gap(resource, namespace):
            raise Unreadable(resource, explanation, f"not every {resource.kind} is known: {explanation}")
        for undecodable in self.undecoded.get(resource, ()):
            if not namespace or undecodable.namespace in ("", namespace):
                raise UnreadableObject(resource, undecodable)

    def listed(self, resource: Resource) -> tuple[Any, ...]:
        """Returns every object of `resource`, decoded as its API type, or as the smaller type that the check asks for.

        A check asks for a smaller type by a `Read` or a `Slim` in its `reads`. Raises Unreadable if the kind could not
        be listed, or if the check does not name it in `reads`.
        """
        # Noted before it may fail: the outcome depends on kinds that could not be read, too.
        self.asked.add(resource)
        if resource in self.unreadable:
            raise Unreadable(resource, self.unreadable[resource])
        if resource not in self.objects:
            raise Unreadable(resource, "it was not read; the check must name it in `reads`")
        return self.objects[resource]


class Context(msgspec.Struct, frozen=True):
    """The update to be evaluated, and the time.

    `target_kubernetes` is the Kubernetes version of the target, such as 1.36.0. In a cluster without a ClusterVersion
    source and target are versions of Kubernetes themselves.
    """

    source: Version
    target: Version
    now: datetime
    target_kubernetes: str = ""
    namespace: str = ""
    # The target's own manifests of the kinds in `manifests.KINDS`; None where they could not be read.
    manifests: tuple[Mapping[str, Any], ...] | None = None
    # Prometheus's answers to the checks' queries.
    prometheus: PrometheusState = NOTHING
    # The target's pull spec, if known, and what is known about the kernel modules for it; None: nobody looked.
    target_image: str = ""
    kernel_modules: PreflightResults | None = None
    # The operator catalogs that the target brings.
    catalogs: Catalogs = NONE_READ
    cluster: ClusterKind = ClusterKind.OPENSHIFT
    # All objects of the target for this cluster; None where its manifests could not be read.
    release: ReleaseObjects | None = None


class Container(msgspec.Struct, frozen=True):
    """The container that answers a check in its own Pod; `image` is a name in the release's image-references."""

    image: str
    timeout_s: int


CheckFunction = Callable[[Snapshot, Context], Iterable[Finding]]


class Check(msgspec.Struct, frozen=True):
    """A check as the engine runs it.

    `severity` is the highest that it reports, `updates` describes in words the updates that it is for, `about` is the
    text of its page, and `example` is YAML of objects to which the risk applies.
    """

    name: str
    component: str
    reads: tuple[Resource, ...]
    run: CheckFunction
    applies_to: Callable[[Context], bool] = lambda _context: True
    # The name of the risk that is reported if the check could not tell.
    unknown_risk: str = ""
    severity: Severity = "warning"
    updates: str = "all"
    about: str = ""
    example: str = ""
    # The PromQL query whose answer `run` needs; empty if it needs none.
    query: str = ""
    # None: `run` answers. Otherwise a container does, and `run` reports Unknown where containers are not run.
    container: Container | None = None
    # The kinds of cluster that it is for; None: as its reads say (`cluster_kinds.clusters_of`).
    clusters: Clusters | None = None
