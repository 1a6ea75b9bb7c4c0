"""Finds the kinds that a check lacked: kinds that the check reads, and that the snapshot does not have in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.scheme import Resource, resource_of
from runup.checks.decide.model import Applies, Finding, Snapshot

_DEFINITIONS = resource_of(CustomResourceDefinition)


def with_lacking_kinds(
    findings: Sequence[Finding], risk: str, reads: Iterable[Resource], snapshot: Snapshot
) -> tuple[Finding, ...]:
    """Returns `findings`, with `lacking` set in each Unknown finding named `risk`: the kinds that the check lacked.

    These are the kinds of `reads` that the snapshot does not have in full. If it has everything that the check asked
    for, nothing is set: the content of an object left the check in doubt.
    """
    unsure = [finding for finding in findings if finding.applies is Applies.UNKNOWN and finding.name == risk]
    if not unsure or all(is_whole(snapshot, resource) for resource in snapshot.asked):
        return tuple(findings)
    lacking = tuple(sorted({resource.name for resource in reads if not is_whole(snapshot, resource)}))
    return tuple(replace(finding, lacking=lacking) if finding in unsure else finding for finding in findings)


def is_whole(snapshot: Snapshot, resource: Resource) -> bool:
    """Returns whether the snapshot has all objects of the kind, or proof that the cluster has no such kind."""
    if resource in snapshot.unreadable or resource not in snapshot.objects:
        return resource in snapshot.absent and _is_undefined(snapshot, resource)
    return resource not in snapshot.incomplete


def _is_undefined(snapshot: Snapshot, resource: Resource) -> bool:
    """Returns whether all definitions are known, and none makes the kind."""
    if any(_DEFINITIONS in resources for resources in (snapshot.unreadable, snapshot.undecoded, snapshot.incomplete)):
        return False
    definitions = snapshot.objects.get(_DEFINITIONS)
    return definitions is not None and not any(
        (definition.spec.group, definition.spec.names.plural) == (resource.group, resource.plural)
        for definition in definitions
    )
