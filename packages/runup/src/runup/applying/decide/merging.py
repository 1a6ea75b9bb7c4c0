"""Merges a manifest into the object in the cluster, field by field, by the rule that its kind has for each field.

A rule says whether what others added stays or is removed. `merge` makes the object as it should be; `concerns` decides
from field ownership alone (fieldsV1) whether a rule could remove something, so that objects that no other manager
changed need not be read. The rules of each kind: `merge_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

JSON = dict[str, Any]
Owned = Mapping[str, Any]
"""A tree of fieldsV1: names begin with `f:`, list entries with `k:` or `v:`, and `.` is the field itself.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""


class Rule(Protocol):
    """The rule that merges one field. `None` is an absent field, as is `null` in a manifest."""

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the field's new value from the manifest's and the cluster's; None if it goes."""

    def concerns(self, foreign_fields: Owned) -> bool:
        """Returns whether something in `foreign_fields`, which other managers own and we do not, might have to go."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps what others added: keys of a map, entries of a list, or the whole field.

    The manifest's values take precedence.
    """

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the live value merged with the manifest's, whose fields take precedence."""
        if manifest is None or live is None:
            return live if manifest is None else manifest
        if isinstance(manifest, dict) and isinstance(live, dict):
            return {**live, **{key: self.merge(value, live.get(key)) for key, value in manifest.items()}}
        if isinstance(manifest, list) and isinstance(live, list):
            entries = list(live)
            for entry in manifest:
                place = next((n for n, other in enumerate(live) if _is_same(entry, other)), None)
                if place is None:
                    entries.append(entry)
                else:
                    entries[place] = self.merge(entry, live[place])
            return entries
        return manifest

    def concerns(self, foreign_fields: Owned) -> bool:  # noqa: ARG002 -- as in every rule
        """Returns False: nothing goes."""
        return False


@dataclass(frozen=True, slots=True)
class Exact:
    """The field is as in the manifest, whatever others made of it. The server fills in its defaults again."""

    def merge(self, manifest: Any, live: Any) -> Any:  # noqa: ARG002 -- as in every rule
        """Returns the manifest's value."""
        return manifest

    def concerns(self, foreign_fields: Owned) -> bool:  # noqa: ARG002 -- as in every rule
        """Returns True: whatever others own of it might have to go."""
        return True


@dataclass(frozen=True, slots=True)
class Fixed:
    """An immutable field: the value in the cluster stays."""

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the live value, the manifest's if it does not exist."""
        return manifest if live is None else live

    def concerns(self, foreign_fields: Owned) -> bool:  # noqa: ARG002 -- as in every rule
        """Returns False: nothing goes."""
        return False


@dataclass(frozen=True, slots=True)
class Struct:
    """A field with members, each merged by its own rule, and all others by `other`."""

    members: Mapping[str, Rule]
    other: Rule = field(default_factory=Keep)

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the merged members; None if neither side has the field."""
        if manifest is None and live is None:
            return None
        manifest_fields, live_fields = _object(manifest), _object(live)
        names = [*live_fields, *(name for name in manifest_fields if name not in live_fields)]
        merged = {name: self._rule_for(name).merge(manifest_fields.get(name), live_fields.get(name)) for name in names}
        return {name: value for name, value in merged.items() if value is not None}

    def concerns(self, foreign_fields: Owned) -> bool:
        """Returns whether the rule of a member is concerned."""
        return any(
            self._rule_for(name[2:]).concerns(tree) for name, tree in foreign_fields.items() if name.startswith("f:")
        )

    def _rule_for(self, name: str) -> Rule:
        return self.members.get(name, self.other)


@dataclass(frozen=True, slots=True)
class GoesWhole:
    """A field that is removed if the manifest lacks it, and merged by `rule` otherwise."""

    rule: Rule

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns None if the manifest has no such field, else what `rule` makes of it."""
        return None if manifest is None else self.rule.merge(manifest, live)

    def concerns(self, foreign_fields: Owned) -> bool:  # noqa: ARG002 -- as in every rule
        """Returns True: the whole field might have to go."""
        return True


@dataclass(frozen=True, slots=True)
class IfGiven:
    """A field that is merged by `rule` where the manifest has it, and else stays as it is."""

    rule: Rule

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the live value if the manifest has no such field, else the result of `rule`."""
        return live if manifest is None else self.rule.merge(manifest, live)

    def concerns(self, foreign_fields: Owned) -> bool:
        """Returns whether `rule` could remove something; only the object shows whether the manifest has the field."""
        return self.rule.concerns(foreign_fields)


@dataclass(frozen=True, slots=True)
class Then:
    """A field that is merged by `rule`; `finish` computes its value from the result and the live value."""

    rule: Rule
    finish: Callable[[Any, Any], Any]

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the result of `finish` for the merged and the live value."""
        return self.finish(self.rule.merge(manifest, live), live)

    def concerns(self, foreign_fields: Owned) -> bool:
        """Returns whether `rule` is concerned."""
        return self.rule.concerns(foreign_fields)


@dataclass(frozen=True, slots=True)
class Items:
    """A list whose entries are known by `keys`: in the manifest's order; entries that only others have go.

    `defaults` are the values of keys that an entry leaves out.
    """

    keys: Sequence[str]
    rule: Rule
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the manifest's entries, each merged with the live entry of its keys; None if it has no entries."""
        live_entries = {self._key(entry): entry for entry in reversed(_entries(live))}
        return [self.rule.merge(entry, live_entries.get(self._key(entry))) for entry in _entries(manifest)] or None

    def concerns(self, foreign_fields: Owned) -> bool:
        """Returns whether others own an entry, or of an entry what its rule takes away."""
        entries = (tree for name, tree in foreign_fields.items() if name != ".")
        return any("." in tree or not tree or self.rule.concerns(tree) for tree in entries)

    def _key(self, entry: JSON) -> tuple[Any, ...]:
        return tuple(str(entry.get(key, self.defaults.get(key))) for key in self.keys)


def only_others(other_fields: Owned, own_fields: Owned) -> JSON:
    """Returns the part of `other_fields` that is not in `own_fields`; shared fields have the value that we applied."""
    exclusive_fields: JSON = {}
    for name, tree in other_fields.items():
        if name not in own_fields:
            exclusive_fields[name] = tree
        elif tree and own_fields[name]:
            nested_fields = only_others(tree, own_fields[name])
            if nested_fields:
                exclusive_fields[name] = nested_fields
    return exclusive_fields


def union(first: Owned, other: Owned) -> JSON:
    """Returns the tree that has every field of both."""
    combined = dict(first)
    for name, tree in other.items():
        combined[name] = union(combined[name], tree) if name in combined else tree
    return combined


def _is_same(entry: Any, live: Any) -> bool:
    """Returns whether two entries of a list are the same one: of one name, or the live one has all of the other."""
    if isinstance(entry, dict) and isinstance(live, dict) and "name" in entry:
        return bool(entry["name"] == live.get("name"))
    return _is_contained(entry, live)


def _is_contained(part: Any, whole: Any) -> bool:
    """Reports whether `whole` has all that `part` has; lists must be of one length."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_contained(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_is_contained, part, whole))
    return bool(part == whole)


def _object(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def _entries(value: Any) -> list[JSON]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


MANAGER = "cluster-version-operator"
# The managers of earlier writers: the Go operator (by Update instead of Apply) and the installer.
EARLIER = frozenset({MANAGER, "cluster-bootstrap"})
# The server records no owner for these fields, because they identify the object.
_IDENTITY = frozenset({"apiVersion", "kind"})
_OF_METADATA = frozenset({"name", "namespace"})


def owns_all_of(fields: Mapping[str, Any], obj: JSON) -> bool:
    """Returns whether `fields` (fieldsV1 of this project entry) contain every field of `obj`."""
    for key, value in obj.items():
        if key in _IDENTITY:
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {name: member for name, member in value.items() if name not in _OF_METADATA}
            if not value:
                continue
        if not _owns_value(fields, key, value):
            return False
    return True


def is_earlier(manager: str, operation: str, subresource: str) -> bool:
    """Returns whether that entry of managedFields is of an earlier writer of manifests."""
    return operation == "Update" and not subresource and manager in EARLIER


def adopted_entries(entries: Sequence[JSON]) -> list[JSON]:
    """Returns `entries` with the fields of earlier writers of manifests merged into ours, as if we had applied them."""
    own_entry = next(
        (
            entry
            for entry in entries
            if (entry.get("manager"), entry.get("operation"), entry.get("subresource", "")) == (MANAGER, "Apply", "")
        ),
        None,
    )
    earlier = [
        entry
        for entry in entries
        if is_earlier(str(entry.get("manager")), str(entry.get("operation")), str(entry.get("subresource") or ""))
    ]
    if own_entry is None or not earlier:
        return list(entries)
    fields: JSON = dict(own_entry.get("fieldsV1") or {})
    for entry in earlier:
        fields = union(fields, entry.get("fieldsV1") or {})
    remaining_entries = [entry for entry in entries if entry is not own_entry and entry not in earlier]
    return [{**own_entry, "fieldsV1": fields}, *remaining_entries]


def _owns_value(fields: Mapping[str, Any], key: str, value: Any) -> bool:
    """Returns whether `fields` (fieldsV1) own the member `key` with everything in `value`."""
    members = fields.get(f"f:{key}")
    if members is None:
        return False
    # A leaf of fieldsV1 is owned as a whole, whatever it holds.
    inside = {name: member for name, member in members.items() if name != "."}
    if not inside or value is None:
        return True
    if isinstance(value, dict):
        return all(_owns_value(inside, name, member) for name, member in value.items())
    if isinstance(value, list):
        return all(_item(inside, item) for item in value)
    return True


def _item(inside: Mapping[str, Any], item: Any) -> bool:
    """Returns whether an item of a list is owned: by its value (`v:`, list of type set) or its keys (`k:`, type map).

    See https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy.
    """
    for name, fields in inside.items():
        if name.startswith("v:") and json.loads(name[2:]) == item:
            return True
        if name.startswith("k:") and isinstance(item, dict):
            keys = json.loads(name[2:])
            if all(item[key] == value for key, value in keys.items() if key in item):
                other_members = {key: value for key, value in item.items() if key not in keys}
                if not [key for key in fields if key != "."] or all(
                    _owns_value(fields, k, v) for k, v in other_members.items()
                ):
                    return True
    return False
