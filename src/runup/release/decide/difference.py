"""What changes from one release to another: manifests, images, checks, feature gates, and who may do what.

Pure over two loaded payloads. A manifest is the same object by its identity; where a release has several variants of
one (a definition for each feature set), those that are for the same clusters are compared. What the newer release
lacks stays on clusters that had it, unless a manifest asks for its deletion, and is told apart by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from runup.release.decide import access
from runup.release.decide.access import AccessChange
from runup.release.decide.inclusion import (
    CAPABILITY,
    EXCLUDE_PREFIX,
    FEATURE_GATE,
    FEATURE_SET,
    INCLUDE_PREFIX,
    MAJOR_VERSION,
    gates_of,
)
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.paths import Change, changes
from runup.release.decide.payload import Payload

DELETE = "release.openshift.io/delete"
State = Literal["added", "removed", "changed", "deleted"]
_FOR_WHOM = (FEATURE_SET, FEATURE_GATE, MAJOR_VERSION, CAPABILITY)


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """One object. `deleted`: the newer release asks for its deletion; `removed`: it says nothing of it any more."""

    object: str
    state: State
    file: str
    changes: tuple[Change, ...] = ()
    variant: str = ""


@dataclass(frozen=True, slots=True)
class NameChange:
    """An image, or a gate: `before` and `after` are empty where it was not, or is not any more."""

    name: str
    before: str
    after: str

    @property
    def state(self) -> State:
        """What became of it."""
        return "added" if not self.before else "removed" if not self.after else "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs; `same` counts the manifests that do not."""

    images: tuple[NameChange, ...]
    manifests: tuple[ManifestChange, ...]
    same: int
    checks: tuple[ManifestChange, ...]
    gates: tuple[NameChange, ...]
    access: tuple[AccessChange, ...]


def difference(before: Payload, after: Payload) -> Difference:
    """What an administrator of `before` gets with `after`."""
    manifests, same = _objects(before.manifests, after.manifests)
    checks, _ = _objects(before.checks, after.checks)
    return Difference(
        images=_names(before.image_references.images, after.image_references.images),
        manifests=manifests,
        same=same,
        checks=checks,
        gates=_names(_gates(before.manifests), _gates(after.manifests)),
        access=access.changed(before.manifests, after.manifests),
    )


def deletes(manifest: Manifest) -> bool:
    """Whether a manifest asks for the deletion of its object."""
    return (manifest.annotations or {}).get(DELETE) == "true"


def variant(manifest: Manifest) -> str:
    """For which clusters a manifest is, beside others of the same object; empty for one that is for all."""
    annotations = manifest.annotations or {}
    said = [f"{key.rpartition('/')[2]}={annotations[key]}" for key in _FOR_WHOM if annotations.get(key)]
    profiles = sorted(
        key.rpartition("/")[2]
        for key, value in annotations.items()
        if value == "true" and key.startswith((INCLUDE_PREFIX, EXCLUDE_PREFIX))
    )
    return " ".join([*said, *([f"profiles={','.join(profiles)}"] if profiles else [])])


Variants = dict[Identity, list[Manifest]]


def _objects(before: Iterable[Manifest], after: Iterable[Manifest]) -> tuple[tuple[ManifestChange, ...], int]:
    was, now = _by_identity(before), _by_identity(after)
    found: list[ManifestChange] = []
    same = 0
    for identity in dict.fromkeys((*now, *was)):
        pairs = _paired(was.get(identity, []), now.get(identity, []))
        several = len(pairs) > 1
        for old, new in pairs:
            change = _change(old, new, several=several)
            same += change is None
            found += [change] if change else []
    return tuple(found), same


def _by_identity(manifests: Iterable[Manifest]) -> Variants:
    found: Variants = {}
    for manifest in manifests:
        found.setdefault(manifest.identity, []).append(manifest)
    return found


def _paired(was: list[Manifest], now: list[Manifest]) -> list[tuple[Manifest | None, Manifest | None]]:
    """Those for the same clusters together; of the rest, in order, one of each."""
    left = list(was)
    pairs: list[tuple[Manifest | None, Manifest | None]] = []
    alone: list[Manifest] = []
    for new in now:
        old = next((found for found in left if variant(found) == variant(new)), None)
        if old is None:
            alone.append(new)
        else:
            left.remove(old)
            pairs.append((old, new))
    pairs += zip_longest(left, alone)
    return pairs


def _change(old: Manifest | None, new: Manifest | None, *, several: bool) -> ManifestChange | None:
    known = new or old
    assert known is not None
    told = variant(known) if several else ""
    name = str(known.identity)
    if new is None:
        return ManifestChange(name, "removed", known.file, variant=told)
    if deletes(new):
        return None if old is not None and deletes(old) else ManifestChange(name, "deleted", new.file, variant=told)
    if old is None or deletes(old):
        return ManifestChange(name, "added", new.file, variant=told)
    found = changes(old.object, new.object) if old.raw != new.raw else ()
    return ManifestChange(name, "changed", new.file, found, told) if found else None


def _names(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[NameChange, ...]:
    names = sorted({*before, *after})
    found = (NameChange(name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(change for change in found if change.before != change.after)


def _gates(manifests: Iterable[Manifest]) -> dict[str, str]:
    """Each gate that a release speaks of: the feature sets in which its FeatureGate objects have it on, and its users.

    A release brings one FeatureGate a feature set; each says under status which gates are on for it.
    """
    on: dict[str, set[str]] = {}
    users: dict[str, int] = {}
    for manifest in manifests:
        for name in gates_of(manifest.annotations or {}):
            users[name] = users.get(name, 0) + 1
        if (manifest.identity.group, manifest.identity.kind) == ("config.openshift.io", "FeatureGate"):
            feature_set = _feature_set(manifest.object)
            for name in _enabled(manifest.object):
                on.setdefault(name, set()).add(feature_set)
    return {name: _gate(on.get(name, set()), users.get(name, 0)) for name in {*on, *users}}


def _gate(on: set[str], users: int) -> str:
    sets = f"on in {', '.join(sorted(on))}" if on else "on in no feature set that the release names"
    return f"{sets}; {users} manifest{'' if users == 1 else 's'}"


def _feature_set(found: dict[str, Any]) -> str:
    spec = found.get("spec")
    value = spec.get("featureSet") if isinstance(spec, dict) else None
    return value if isinstance(value, str) and value else "Default"


def _enabled(found: dict[str, Any]) -> Iterable[str]:
    status = found.get("status")
    entries = status.get("featureGates") if isinstance(status, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        named = entry.get("enabled") if isinstance(entry, dict) else None
        for attribute in named if isinstance(named, list) else ():
            if isinstance(attribute, dict) and isinstance(attribute.get("name"), str):
                yield attribute["name"]
