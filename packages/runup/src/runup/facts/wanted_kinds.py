"""Determines the kinds that the checks need in a dump, each once, with namespaces and selector. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.model import Check
from runup.checks.decide.reads import Lookup, Slim, namespace_of

# Never collected, whatever a check of somebody else reads.
NEVER = frozenset({"secrets"})


@dataclass(frozen=True, slots=True)
class WantedKind:
    """A kind as it is to be listed.

    `versions`: its resource in the versions that checks read; the first one that is served is listed. `namespaces`: the
    only ones that are read; none means all. `lookup`: only the objects that others refer to are read, by name.
    """

    versions: tuple[Resource, ...]
    namespaces: tuple[str, ...] = ()
    selector: str = ""
    lookup: Lookup | None = None

    @property
    def name(self) -> str:
        """The resource's name, `PLURAL.GROUP`."""
        return self.versions[0].name


def kinds_read_by(checks: Iterable[Check], operator_namespace: str) -> tuple[WantedKind, ...]:
    """Returns the kinds that `checks` read, by name, and those that every check needs.

    The ConfigMaps of `operator_namespace` say which risks are accepted.
    """
    reads: dict[tuple[str, str], list[tuple[Resource, str]]] = {}
    for resource, namespace in (*_kinds_always_read(operator_namespace), *_reads_of_check(checks)):
        if resource.plural not in NEVER:
            reads.setdefault((resource.group, resource.plural), []).append((resource, namespace))
    # What is looked up by name comes after what names it.
    kinds = sorted(
        (_merge_reads(rows) for rows in reads.values()), key=lambda kind: (kind.lookup is not None, kind.name)
    )
    return tuple(kinds)


def _kinds_always_read(operator_namespace: str) -> Iterator[tuple[Resource, str]]:
    yield resource_of(ClusterVersion), ""
    yield resource_of(FeatureGate), ""
    yield resource_of(ConfigMap), operator_namespace


def _reads_of_check(checks: Iterable[Check]) -> Iterator[tuple[Resource, str]]:
    """Yields each resource that a check reads, with the namespace it is limited to (empty: all)."""
    for check in checks:
        for resource in check.reads:
            yield resource, namespace_of(resource)
            if isinstance(resource, Lookup) and resource.of is not None:
                yield resource.of, ""


def _merge_reads(rows: list[tuple[Resource, str]]) -> WantedKind:
    """Returns one kind to collect for several reads of it, wide enough for all of them."""
    versions = {resource.version: _without_selection(resource) for resource, _ in rows}
    namespaces = {namespace for _, namespace in rows}
    selectors = {resource.label_selector if isinstance(resource, Slim) else "" for resource, _ in rows}
    lookups = [resource for resource, _ in rows if isinstance(resource, Lookup)]
    return WantedKind(
        tuple(versions.values()),
        () if "" in namespaces else tuple(sorted(namespaces)),
        # Of several selectors none can be sent: one list is for all who read the kind.
        next(iter(selectors)) if len(selectors) == 1 else "",
        lookups[0] if len(lookups) == len(rows) else None,
    )


def _without_selection(resource: Resource) -> Resource:
    return Resource(resource.group, resource.version, resource.kind, resource.plural, resource.namespaced)
