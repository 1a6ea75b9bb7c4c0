"""The statuses of Modules in a validation: what was said before and what was found now, made one list. Pure.

A time moves only when status, stage or reason do. What is written fits into an object: of many long reasons the ends
are left out, never an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.lang.cut import cut, stored_bytes
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import ModuleStatus
from runup.kernelmodules.decide.looked import Looked

VERIFIED, NOT_VERIFIED = "True", "False"
# etcd takes 1.5 MiB of an object; what stands around a reason is counted by the rest.
MOST_BYTES = 768 * 1024
LONGEST_REASONS = (1024, 256, 64)


def keyed(entries: Iterable[ModuleStatus]) -> dict[NamespacedName, ModuleStatus]:
    """Entries by their Module."""
    return {NamespacedName(entry.namespace, entry.name): entry for entry in entries}


def about(old: ModuleStatus | None, module: Module) -> ModuleStatus | None:
    """`old`, unless `module` was made since: then it is about a namesake."""
    if old is None:
        return None
    made, said = module.metadata.creation_timestamp, old.last_transition_time
    return old if made is None or said is None or made <= said else None


def is_final(old: ModuleStatus | None) -> bool:
    """Whether a Module is verified for good: it is not looked at again then."""
    return old is not None and old.verification_status == VERIFIED


def entry(module: Module, looked: Looked, old: ModuleStatus | None, *, now: datetime) -> ModuleStatus:
    """What is said of `module`; while nothing is known yet, what was said of this very version of it."""
    generation = module.metadata.generation
    if looked.pending and old is not None and old.observed_generation in (0, generation):
        return old
    new = ModuleStatus(
        namespace=module.metadata.namespace,
        name=module.metadata.name,
        verification_status=VERIFIED if looked.verified else NOT_VERIFIED,
        verification_stage=looked.stage,
        status_reason=cut(looked.reason, LONGEST_REASONS[0]),
        observed_generation=generation,
    )
    return since(new, old, now=now)


def failed(key: NamespacedName, reason: str, old: ModuleStatus | None, *, now: datetime) -> ModuleStatus:
    """A Module that could not even be looked at."""
    new = ModuleStatus(
        namespace=key.namespace,
        name=key.name,
        verification_status=NOT_VERIFIED,
        verification_stage="Requeued",
        status_reason=cut(reason, LONGEST_REASONS[0]),
    )
    return since(new, old, now=now)


def since(new: ModuleStatus, old: ModuleStatus | None, *, now: datetime) -> ModuleStatus:
    """`new` with its time: the old one's where it says the same."""
    at = old.last_transition_time if old is not None and says_the_same(old, new) else None
    return replace(new, last_transition_time=at or now)


def unreadable(bad: Undecodable) -> str:
    """The reason of a Module that is not as its kind should be."""
    return f"the Module cannot be read: {bad.problem}"


def live(modules: Iterable[Module]) -> list[Module]:
    """Modules that are not being deleted, by namespace and name."""
    return sorted((each for each in modules if each.metadata.deletion_timestamp is None), key=key_of)


def fitting(entries: Sequence[ModuleStatus]) -> tuple[ModuleStatus, ...]:
    """All entries, their reasons as long as there is room."""
    for longest in LONGEST_REASONS:
        found = tuple(replace(each, status_reason=cut(each.status_reason, longest)) for each in entries)
        if sum(stored_bytes(each.status_reason) for each in found) <= MOST_BYTES:
            return found
    return found


def says_the_same(old: ModuleStatus, new: ModuleStatus) -> bool:
    """Whether nothing changed that a time is kept of."""
    return _said(old) == _said(new)


def _said(each: ModuleStatus) -> tuple[str, str, str]:
    return each.verification_status, each.verification_stage, each.status_reason
