"""Applies a set of objects in order, finds its members, and removes them: an inventory's reads and writes.

Objects are applied by server-side apply as `runup-install`, without force unless it is asked for: fields that another
manager has set are not overwritten by accident. Code that applies and removes other objects calls `apply_set` and
`remove_set` with an `Inventory` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls, client_sync
from kubekit.kube.api_errors import AlreadyExists, Conflict, NotFound
from kubekit.kube.clock import Clock
from runup.install.decide import inventory as inventories
from runup.install.decide.inventory import Inventory
from runup.install.decide.objects import Objects, definition, identity_of
from runup.process.served_kinds import ServedKinds
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
FIELD_MANAGER = "runup-install"
CONFIG_MAP = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
# A definition is served a moment after it was accepted.
SERVED_WITHIN_S = 60.0
POLL_S = 0.5
_NAMESPACE = ("", "Namespace")


class InstallError(Exception):
    """An object that could not be applied or removed; `message` names it and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Outcome(StrEnum):
    """Outcome for an object, in kubectl's words."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"
    DELETED = "deleted"
    LEFT = "left to its owner"


class Done(msgspec.Struct, frozen=True):
    """An object and what became of it."""

    identity: Identity
    outcome: Outcome


OnDone = Callable[[Done], None]


class ObjectSets:
    """The sets of objects of one cluster."""

    def __init__(self, client: client_sync.SyncClient, clock: Clock, *, tool_version: str) -> None:
        self._client = client
        self._clock = clock
        self.tool_version = tool_version
        self.kinds = ServedKinds(client)
        # The groups of the definitions that were applied here.
        self._defined_groups: set[str] = set()

    def installed(self, component: str) -> tuple[Inventory, ...]:
        """Returns the sets of `component` in all namespaces. Raises KubeError."""
        selector = f"{inventories.COMPONENT}={component}"
        parents = self._client.listing_raw(CONFIG_MAP, label_selector=selector).complete("ConfigMap")
        name = inventories.name_of(component)
        return tuple(inventories.read_parent(parent) for parent in parents if parent["metadata"]["name"] == name)

    def apply_set(
        self, objects: Objects, inventory: Inventory, on_done: OnDone, *, force: bool = False, dry_run: bool = False
    ) -> None:
        """Applies `objects` in order, then removes what the set has beyond them; with `dry_run` nothing is written.

        The parent is written first with all kinds, old and new, so that whatever happens then can be found. Raises
        InstallError and KubeError.
        """
        labelled = inventories.label_objects(objects, inventory)
        merged_inventory = inventories.merge_inventories(inventory, self._parent(inventory))
        # The parent comes right after its namespace, or first if that is not among the objects.
        namespace = Identity("", "Namespace", "", inventory.namespace)
        first = next((index + 1 for index, obj in enumerate(labelled) if identity_of(obj) == namespace), 0)
        for index, obj in enumerate(labelled):
            if index == first:
                self._write_parent(merged_inventory, dry_run=dry_run)
            on_done(self._apply(obj, labelled, force=force, dry_run=dry_run))
        for identity in inventories.members_to_remove(self.members(merged_inventory), labelled):
            self._delete(identity, inventory, dry_run=dry_run)
            on_done(Done(identity, Outcome.PRUNED))
        self._write_parent(inventory, dry_run=dry_run)

    def create(self, obj: JSON, on_done: OnDone, *, dry_run: bool = False) -> None:
        """Creates `obj` if it is absent; an object that exists is left as it is.

        A dry run does not create definitions, so an object of a kind that it would define counts as created. Raises
        InstallError if the cluster does not serve its kind.
        """
        identity = identity_of(obj)
        resource = self._resource(obj, wait=not dry_run)
        if resource is None:
            if not dry_run:
                raise _not_served(obj)
            on_done(Done(identity, Outcome.CREATED))
            return
        try:
            self._client.send(calls.create(resource, obj, field_manager=FIELD_MANAGER, dry_run=dry_run))
        except AlreadyExists:
            on_done(Done(identity, Outcome.UNCHANGED))
        else:
            on_done(Done(identity, Outcome.CREATED))

    def remove_set(
        self,
        inventory: Inventory,
        on_done: OnDone,
        *,
        definitions: bool,
        dry_run: bool = False,
        besides: Callable[[], Iterable[Identity]] = tuple,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        """Removes the members of the set with their dependents, then its parent; waits until they are deleted.

        `release` is called before that wait, for finalizers of a controller that is one of the members. `besides` is
        asked for objects that its members left, when these are gone. Raises InstallError and KubeError. An interrupted
        removal can be started again: the parent goes last, alone or with its namespace.
        """
        members = inventories.removal_order(self.members(inventory), definitions=definitions)
        # With its namespace the parent goes, too.
        namespaces = [member for member in members if (member.group, member.kind) == _NAMESPACE]
        self._remove_members(
            [member for member in members if member not in namespaces],
            inventory,
            on_done,
            dry_run=dry_run,
            release=release,
        )
        for identity in besides():
            self.delete(identity, dry_run=dry_run)
            on_done(Done(identity, Outcome.DELETED))
        self._remove_members(namespaces, inventory, on_done, dry_run=dry_run)
        if not dry_run:
            with suppress(NotFound):
                self._client.send(calls.delete(CONFIG_MAP, inventory.name, inventory.namespace))

    def _remove_members(
        self,
        members: Iterable[Identity],
        inventory: Inventory,
        on_done: OnDone,
        *,
        dry_run: bool,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        """Deletes the objects, reports each, and waits until all are gone, unless it is a dry run."""
        for identity in members:
            self._delete(identity, inventory, dry_run=dry_run)
            on_done(Done(identity, Outcome.DELETED))
        if not dry_run:
            release()
        for identity in () if dry_run else members:
            self._await_gone(identity)

    def remove_finalizer(self, resource: Resource, finalizer: str) -> None:
        """Removes a finalizer of a controller that is gone from all objects of a kind. Raises KubeError."""
        with suppress(NotFound):
            for item in self._client.listing_raw(resource).items:
                held = item["metadata"].get("finalizers") or []
                if finalizer in held:
                    patch = {"metadata": {"finalizers": [each for each in held if each != finalizer]}}
                    with suppress(NotFound):
                        self._client.send(calls.merge_patch(resource, item["metadata"]["name"], patch))

    def members(self, inventory: Inventory) -> Iterator[Identity]:
        """Yields the identity of each object that has the label of the set. Raises KubeError."""
        selector = f"{inventories.PART_OF}={inventory.id}"
        for group, kind in sorted(inventory.kinds):
            resource = self.kinds.preferred(group, kind)
            if resource is None:
                continue  # its definition is gone, and its objects with it
            for item in self._client.listing_raw(resource, label_selector=selector).complete(kind):
                metadata = item["metadata"]
                yield Identity(group, kind, metadata.get("namespace", ""), metadata["name"])

    def owners(self, identities: Iterable[Identity]) -> dict[Identity, str]:
        """Returns the set's ID, or "", of each of these objects that exists. Raises KubeError."""
        owners = {}
        for identity in identities:
            resource = self.kinds.preferred(identity.group, identity.kind)
            live_object = self._read_object(resource, identity) if resource is not None else None
            if live_object is not None:
                owners[identity] = (live_object["metadata"].get("labels") or {}).get(inventories.PART_OF, "")
        return owners

    def read(self, identity: Identity) -> JSON | None:
        """Returns the object as it is, None if it is not there. Raises KubeError."""
        resource = self.kinds.preferred(identity.group, identity.kind)
        return self._read_object(resource, identity) if resource is not None else None

    def named(self, group: str, kind: str, name: str) -> Iterator[Identity]:
        """Yields the objects of that name, in every namespace. Raises KubeError."""
        resource = self.kinds.preferred(group, kind)
        if resource is not None:
            for item in self._client.listing_raw(resource).complete(kind):
                if item["metadata"]["name"] == name:
                    yield Identity(group, kind, item["metadata"].get("namespace", ""), name)

    def delete(self, identity: Identity, *, dry_run: bool = False) -> None:
        """Deletes the object, regardless of who created it; does nothing if it does not exist. Raises KubeError."""
        resource = self.kinds.preferred(identity.group, identity.kind)
        if resource is not None:
            with suppress(NotFound):
                self._client.send(calls.delete(resource, identity.name, identity.namespace, dry_run=dry_run))

    def _apply(self, obj: JSON, objects: Objects, *, force: bool, dry_run: bool) -> Done:
        """Applies one object and returns the outcome.

        Raises InstallError if the cluster does not serve its kind.
        """
        identity = identity_of(obj)
        resource = self._resource(obj, wait=not dry_run)
        before = self._read_object(resource, identity) if resource is not None else None
        if resource is None or (
            dry_run
            and before is None
            and any(identity_of(obj) == Identity("", "Namespace", "", identity.namespace) for obj in objects)
        ):
            # A dry run cannot try what needs a definition or a namespace that it has not made.
            if not dry_run:
                raise _not_served(obj)
            return Done(identity, Outcome.CREATED)
        try:
            after = self._client.send(
                calls.apply(resource, obj, field_manager=FIELD_MANAGER, force=force, dry_run=dry_run)
            )
        except NotFound:
            if dry_run and before is None:
                return Done(identity, Outcome.CREATED)
            raise
        except Conflict as error:
            raise InstallError(
                f"{identity}: {error.message}\nTo set these fields all the same, add --force-conflicts"
            ) from error
        if definition(obj):
            self._defined_groups.add(obj["spec"]["group"])
            self.kinds.forget()
        if before is None:
            return Done(identity, Outcome.CREATED)
        # Not by resourceVersion: the answer to a dry run has that of the object as it is, whatever would change.
        is_unchanged = codec.encode(_content(before)) == codec.encode(_content(after))
        return Done(identity, Outcome.UNCHANGED if is_unchanged else Outcome.CONFIGURED)

    def _resource(self, obj: JSON, *, wait: bool) -> Resource | None:
        """Returns the resource of the object's kind, None if it is not served; may wait `SERVED_WITHIN_S` seconds.

        A kind of a group that nobody serves, and that was not defined here, is not waited for.
        """
        deadline = self._clock.monotonic() + SERVED_WITHIN_S
        while True:
            resource = self.kinds.resource(obj["apiVersion"], obj["kind"])
            group = obj["apiVersion"].partition("/")[0]
            # A group that is new with a definition is listed a moment after the definition was accepted.
            may_come = group in self.kinds.groups or group in self._defined_groups
            if resource is not None or not wait or not may_come:
                return resource
            if self._clock.monotonic() >= deadline:
                return None
            self._clock.pause(POLL_S)
            self.kinds.forget()

    def _read_object(self, resource: Resource, identity: Identity) -> JSON | None:
        try:
            return self._client.send(calls.get_raw(resource, identity.name, identity.namespace))
        except NotFound:
            return None

    def _parent(self, inventory: Inventory) -> Inventory | None:
        config_map = self._read_object(CONFIG_MAP, Identity("", "ConfigMap", inventory.namespace, inventory.name))
        return inventories.read_parent(config_map) if config_map is not None else None

    def _write_parent(self, inventory: Inventory, *, dry_run: bool) -> None:
        if dry_run:
            return
        parent = inventories.parent_of(inventory, self.tool_version)
        self._client.send(calls.apply(CONFIG_MAP, parent, field_manager=FIELD_MANAGER, force=True))

    def _delete(self, identity: Identity, inventory: Inventory, *, dry_run: bool) -> None:
        """Deletes one object if it still belongs to the set."""
        resource = self.kinds.preferred(identity.group, identity.kind)
        if resource is None:
            return
        live_object = self._read_object(resource, identity)
        labels = live_object["metadata"].get("labels") or {} if live_object is not None else {}
        if live_object is None or labels.get(inventories.PART_OF) != inventory.id:
            return
        with suppress(NotFound):
            # By its UID: whoever made one of that name again keeps it.
            uid = live_object["metadata"]["uid"]
            self._client.send(calls.delete(resource, identity.name, identity.namespace, uid=uid, dry_run=dry_run))

    def _await_gone(self, identity: Identity) -> None:
        """Waits until the object is gone.

        Raises InstallError, which names what holds it, after `GONE_WITHIN_S` seconds.
        """
        deadline = self._clock.monotonic() + GONE_WITHIN_S
        while (live_object := self.read(identity)) is not None:
            if live_object["metadata"].get("deletionTimestamp") is None:
                return  # somebody made another one
            if self._clock.monotonic() >= deadline:
                holders = ", ".join(live_object["metadata"].get("finalizers") or ())
                conditions = (live_object.get("status") or {}).get("conditions") or ()
                messages = [str(each.get("message")) for each in conditions if each.get("status") == "True"]
                holders = holders or "; ".join(messages) or "the server does not say why"
                raise InstallError(f"{identity} is being deleted and does not go: {holders}")
            self._clock.pause(POLL_S)
            self.kinds.forget()


GONE_WITHIN_S = 300.0


def _not_served(obj: JSON) -> InstallError:
    return InstallError(f"{identity_of(obj)}: the cluster does not serve {obj['apiVersion']} {obj['kind']}")


def _content(obj: JSON) -> JSON:
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "resourceVersion", "generation")}
    return {**obj, "metadata": metadata}
