"""What a check is: a name, what it reads, for which updates it is, and a function from a snapshot to findings.

A check sees one `Snapshot` and one `Context`, and yields `Finding`s: none means clear. What it could not read raises
`Unreadable`, which the engine turns into Unknown: not being able to tell is never the same as fine. A single object
that is not as its kind should be is not in the snapshot's lists; the engine says Unknown for it, and for nothing else.
The same goes for what a list may lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar, cast

from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.lang.version import Version
from runup.advice.decide.promql import NOTHING, Known
from runup.checks.decide.target_catalogs import NONE_READ, Catalogs
from runup.kernelmodules.decide.verdict import Seen
from runup.preflight.decide.report import ReportedResource, Severity

K = TypeVar("K", bound=Object)


class Applies(Enum):
    """Whether a risk applies to this cluster. A risk that does not apply is not a finding."""

    YES = "True"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One risk. `name` is stable and unique to the cause: administrators accept it by name."""

    name: str
    message: str
    applies: Applies = Applies.YES
    url: str = ""  # empty: the page of our documentation for this name
    reason: str = ""
    severity: Severity = "warning"
    resources: tuple[ReportedResource, ...] = ()
    remediation: str = ""


class Unreadable(Exception):
    """A kind could not be listed. `lacking` says what is missing: the RBAC rule, or the API."""

    def __init__(self, resource: Resource, lacking: str, message: str = "") -> None:
        super().__init__(message or f"{resource} could not be listed: {lacking}")
        self.resource = resource
        self.lacking = lacking


class UnreadableObject(Unreadable):
    """The one object that was asked for is there and is not as its kind should be."""

    def __init__(self, resource: Resource, bad: Undecodable) -> None:
        super().__init__(resource, bad.problem, f"{resource.kind} {bad}")
        self.bad = bad


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the checks may look at: every object of the kinds that were asked for, or why a kind could not be read.

    `undecoded` are single objects that are there and could not be read; `objects` does not have them. `incomplete` says
    of a kind why there may be objects that were not listed. `absent` are those of the unreadable that were not found at
    all: whether the cluster has no such kind, or nobody looked, its definitions tell (`catalogue.shared.presence`).
    `asked` fills with the kinds that were asked for.
    """

    objects: Mapping[Resource, tuple[Any, ...]] = field(default_factory=dict)
    unreadable: Mapping[Resource, str] = field(default_factory=dict)
    undecoded: Mapping[Resource, tuple[Undecodable, ...]] = field(default_factory=dict)
    incomplete: Mapping[Resource, tuple[str, ...]] = field(default_factory=dict)
    absent: frozenset[Resource] = frozenset()
    asked: set[Resource] = field(default_factory=set, compare=False, repr=False)

    def all(self, kind: type[K]) -> tuple[K, ...]:
        """Every object of `kind`; raises Unreadable."""
        return cast("tuple[K, ...]", self.listed(resource_of(kind)))

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """The object of that name, or None where the cluster has none; raises Unreadable where that is not known."""
        for obj in self.all(kind):
            if obj.metadata.name == name and obj.metadata.namespace == namespace:
                return obj
        resource = resource_of(kind)
        for bad in self.undecoded.get(resource, ()):
            if (bad.name, bad.namespace) == (name, namespace):
                raise UnreadableObject(resource, bad)
        if why := self.incomplete.get(resource):
            told = "; ".join(why)
            raise Unreadable(resource, told, f"{resource.kind} {name} is not in the list, which is incomplete: {told}")
        return None

    def listed(self, resource: Resource) -> tuple[Any, ...]:
        """Every object of `resource`, as a wire type, or as a dict for the reads of declarative checks."""
        self.asked.add(resource)
        if resource in self.unreadable:
            raise Unreadable(resource, self.unreadable[resource])
        if resource not in self.objects:
            raise Unreadable(resource, "it was not read; the check must name it in `reads`")
        return self.objects[resource]


@dataclass(frozen=True, slots=True)
class Context:
    """Which update is judged, and when. `target_kubernetes` is the Kubernetes that the target ships, e.g. 1.36.0."""

    source: Version
    target: Version
    now: datetime
    target_kubernetes: str = ""
    namespace: str = ""
    # The target's own manifests of the kinds in `manifests.KINDS`; None where they could not be read.
    manifests: tuple[Mapping[str, Any], ...] | None = None
    # What Prometheus answered to the checks' queries.
    prometheus: Known = NOTHING
    # The target's pull spec, where it is known, and what its kernels' modules are known to be; None: nobody looked.
    target_image: str = ""
    kernel_modules: Seen | None = None
    # The catalogs of operators that the target brings.
    catalogs: Catalogs = NONE_READ


@dataclass(frozen=True, slots=True)
class Container:
    """What answers a check in a Pod of its own: `image` is its name in the release's image-references."""

    image: str
    timeout_s: int


CheckFunction = Callable[[Snapshot, Context], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check as the engine runs it.

    `severity` is the gravest that it reports, `updates` says in words for which updates it is, `about` is what its page
    is made of, and `example` is YAML of objects to which it applies.
    """

    name: str
    component: str
    reads: tuple[Resource, ...]
    run: CheckFunction
    applies_to: Callable[[Context], bool] = lambda _context: True
    # The risk that stands for this check when it could not tell.
    unknown_risk: str = ""
    severity: Severity = "warning"
    updates: str = "all"
    about: str = ""
    example: str = ""
    # What is to be asked of Prometheus before `run`.
    query: str = ""
    # None: `run` answers. Else a container does, and `run` says why there is none.
    container: Container | None = None
