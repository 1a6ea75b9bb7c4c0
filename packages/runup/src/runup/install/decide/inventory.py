"""The inventory of an installation: an ApplySet, so that what a version no longer has is found and removed.

Each object has the label of the set; a ConfigMap in the component's namespace is its parent, which names the kinds and
namespaces in which to look. Source: https://git.k8s.io/enhancements/keps/sig-cli/3659-kubectl-apply-prune
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from runup.install.decide.objects import Objects, definition, identity_of
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
PART_OF = "applyset.kubernetes.io/part-of"
ID = "applyset.kubernetes.io/id"
TOOLING = "applyset.kubernetes.io/tooling"
KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
COMPONENT = "install.runup.dev/component"
# What never uses an upgrade: with a definition go all objects of its kind, with a namespace all that is in it.
KEPT = (("apiextensions.k8s.io", "CustomResourceDefinition"), ("", "Namespace"))


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """An installed set: its parent's name and namespace, and where its objects are.

    `kinds` are (group, kind). `data` is for people: version, image and platform.
    """

    name: str
    namespace: str
    component: str
    kinds: frozenset[tuple[str, str]] = frozenset()
    namespaces: frozenset[str] = frozenset()
    data: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def id(self) -> str:
        """The set's ID, which is computed from its parent's identity alone."""
        text = f"{self.name}.{self.namespace}.ConfigMap."
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        return f"applyset-{digest}-v1"


def name_of(component: str) -> str:
    """Returns the name of the parent of a component's set."""
    return f"runup-install-{component}"


def set_id(component: str, namespace: str) -> str:
    """Returns the ID of a component's set in `namespace`."""
    return Inventory(name=name_of(component), namespace=namespace, component=component).id


def inventory_of(component: str, namespace: str, objects: Objects, data: Mapping[str, str]) -> Inventory:
    """Returns the inventory of `objects`."""
    identities = [identity_of(obj) for obj in objects]
    kinds = frozenset((identity.group, identity.kind) for identity in identities)
    namespaces = frozenset(identity.namespace for identity in identities if identity.namespace)
    return Inventory(
        name=name_of(component),
        namespace=namespace,
        component=component,
        kinds=kinds,
        namespaces=namespaces - {namespace},
        data=data,
    )


def merge_inventories(inventory: Inventory, other: Inventory | None) -> Inventory:
    """Returns `inventory` with the kinds and namespaces of `other` besides: what counts until an upgrade is done."""
    if other is None:
        return inventory
    return msgspec.structs.replace(
        inventory, kinds=inventory.kinds | other.kinds, namespaces=inventory.namespaces | other.namespaces
    )


def parent_of(inventory: Inventory, tool_version: str) -> JSON:
    """Returns the ConfigMap that is the set's parent."""
    kinds = ",".join(sorted(f"{kind}.{group}" if group else kind for group, kind in inventory.kinds))
    annotations = {TOOLING: f"runup/v{tool_version}", KINDS: kinds, NAMESPACES: ",".join(sorted(inventory.namespaces))}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": inventory.name,
            "namespace": inventory.namespace,
            "labels": {ID: inventory.id, COMPONENT: inventory.component},
            "annotations": annotations,
        },
        "data": dict(inventory.data),
    }


def read_parent(parent: JSON) -> Inventory:
    """Returns the inventory that `parent` describes."""
    metadata = parent["metadata"]
    annotations = metadata.get("annotations") or {}
    return Inventory(
        name=metadata["name"],
        namespace=metadata["namespace"],
        component=(metadata.get("labels") or {}).get(COMPONENT, ""),
        # A text is KIND.GROUP, or KIND for the core group.
        kinds=frozenset(
            (group, kind)
            for text in annotations.get(KINDS, "").split(",")
            if text
            for kind, _, group in (text.partition("."),)
        ),
        namespaces=frozenset(text for text in annotations.get(NAMESPACES, "").split(",") if text),
        data=parent.get("data") or {},
    )


def label_objects(objects: Objects, inventory: Inventory) -> Objects:
    """Returns `objects` with the label of the set."""
    return tuple(
        {**obj, "metadata": {**obj["metadata"], "labels": {**obj["metadata"].get("labels", {}), PART_OF: inventory.id}}}
        for obj in objects
    )


def members_to_remove(existing: Iterable[Identity], wanted_objects: Objects) -> tuple[Identity, ...]:
    """Returns which members of the set an upgrade removes: what `wanted_objects` does not have, but no definition."""
    names = {identity_of(obj) for obj in wanted_objects}
    return tuple(
        identity
        for identity in sorted(existing)
        if identity not in names and (identity.group, identity.kind) not in KEPT
    )


# Workloads go before what they need, the namespace last.
_ORDER = ("Deployment", "CustomResourceDefinition")
_AT_LAST = ("ServiceAccount", "Namespace")


def removal_order(members: Iterable[Identity], *, definitions: bool) -> tuple[Identity, ...]:
    """Returns the members that an uninstallation removes, in order; definitions only if they are asked for."""
    chosen_members = [member for member in members if definitions or member.kind != "CustomResourceDefinition"]
    order = {kind: index for index, kind in enumerate((*_ORDER, "", *_AT_LAST))}
    return tuple(sorted(chosen_members, key=lambda member: (order.get(member.kind, len(_ORDER)), member)))


def without_those_of_others(
    objects: Objects, owners: Mapping[Identity, str], part_of: str
) -> tuple[Objects, tuple[Identity, ...]]:
    """Returns the `objects` to apply, and the definitions and namespaces that are left to their other owners.

    `owners` has the ID of the set, or "", of each of them that exists; `part_of` is the ID of ours.
    """
    foreign = [
        identity_of(obj)
        for obj in objects
        if (definition(obj) or obj["kind"] == "Namespace") and owners.get(identity_of(obj), part_of) != part_of
    ]
    return tuple(obj for obj in objects if identity_of(obj) not in foreign), tuple(foreign)
