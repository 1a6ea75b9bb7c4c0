"""Stores the objects of a cluster in the copy, and finds the webhooks that would admit the release's writes."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from kubekit.lang.version import parse
from kubekit.rules.policy_evaluation import Write, is_exempt, matches_criteria
from kubesandbox.apiserver.custom import custom_kinds
from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.schema.object_schema import Schema, compile_schema
from kubesandbox.apiserver.schema.structural import SchemaError
from kubesandbox.apiserver.schema.typed import DecodeError
from kubesandbox.apiserver.store import Entry
from runup.rehearse.control.cluster_copy import ClusterCopy
from runup.rehearse.decide.rehearsal_outcome import Action, DefinitionOutcome, ObjectChange, StoredObject, Webhook
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_OPERATIONS = {Action.CREATE: "CREATE", Action.UPDATE: "UPDATE", Action.DELETE: "DELETE"}


def webhooks(
    copied: ClusterCopy,
    configurations: Iterable[JSON],
    changes: Iterable[tuple[ObjectChange, JSON | None, JSON | None]],
) -> Iterator[Webhook]:
    """Yields every webhook that one of `changes` (with the object before and after) would be sent to."""
    writes: list[tuple[Identity, Write]] = []
    for change, before, after in changes:
        operation, identity = _OPERATIONS.get(change.action), change.identity
        kind = copied.kind_of(identity.group, identity.kind)
        # Without an operation nothing is written, and webhooks do not see exempt kinds.
        if operation is not None and kind is not None and not is_exempt(kind):
            write = Write(
                operation=operation,
                kind=kind,
                namespace=identity.namespace,
                name=identity.name,
                user=User(""),
                obj=after if operation != "DELETE" else None,
                old=before,
            )
            writes.append((Identity(kind.group, kind.kind, identity.namespace, identity.name), write))
    labels = {obj["metadata"]["name"]: obj["metadata"].get("labels") or {} for obj in copied.all("", "Namespace")}
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            rules = webhook.get("rules") or ()
            conditions = ("namespaceSelector", "objectSelector", "matchPolicy")
            criteria = {"resourceRules": rules, **{key: webhook[key] for key in conditions if key in webhook}}
            reached = tuple(
                identity
                for identity, write in writes
                if rules
                and matches_criteria(criteria, write, labels.get(write.namespace, {}) if write.namespace else None)
            )
            if reached:
                yield Webhook(
                    configuration=configuration["metadata"]["name"],
                    kind=configuration["kind"],
                    name=str(webhook.get("name") or ""),
                    ignores=webhook.get("failurePolicy") == "Ignore",
                    conditions=bool(webhook.get("matchConditions")),
                    writes=reached,
                )


# The first minor version of Kubernetes that lets unchanged fields pass (CRDValidationRatcheting, beta and on).
_RATCHETS_FROM = 30
# The time of a condition of a definition that is never stored.
_NEVER = datetime.min.replace(tzinfo=UTC)
_PATH_STEP = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class Definition:
    """A definition with the compiled schemas of its versions."""

    def __init__(self, definition: JSON) -> None:
        self.definition = definition
        self.spec: JSON = definition["spec"]
        self._schemas: dict[str, Schema | None] = {}

    @property
    def served(self) -> tuple[str, ...]:
        """The versions that are served."""
        return tuple(version["name"] for version in self.spec.get("versions") or () if version.get("served"))

    @property
    def storage(self) -> str:
        """The version that objects are stored in."""
        return next((version["name"] for version in self.spec.get("versions") or () if version.get("storage")), "")

    @property
    def converts_by_webhook(self) -> bool:
        """Returns whether a webhook converts between the versions."""
        return (self.spec.get("conversion") or {}).get("strategy") == "Webhook"

    def schema(self, version: str) -> Schema | None:
        """Returns the compiled schema of a version, or None."""
        if version not in self._schemas:
            version_spec: JSON = next(
                (candidate for candidate in self.spec.get("versions") or () if candidate["name"] == version), {}
            )
            schema = (version_spec.get("schema") or {}).get("openAPIV3Schema")
            self._schemas[version] = compile_schema(schema) if schema else None
        return self._schemas[version]


def try_stored_objects(
    before: Definition | None, target: JSON, entries: Iterable[Entry], *, kubernetes: str, complete: bool
) -> DefinitionOutcome:
    """Returns the effect of the release's definition `target` on the stored objects of the kind.

    `before` is the cluster's own definition, None if the copy does not have it. `kubernetes` is the target's version.
    """
    completed = copy.deepcopy(target)
    names = completed["spec"]["names"]
    custom_kinds.complete_definition(completed, _NEVER)
    new = Definition(completed)
    removed_versions = tuple(sorted(set(before.served) - set(new.served))) if before is not None else ()
    group = str(new.spec["group"])
    gone = {f"{group}/{version}" for version in removed_versions}
    objects: list[StoredObject] = []
    writers: list[tuple[str, Identity]] = []
    version = parse(kubernetes)
    ratchets = version is None or version.minor >= _RATCHETS_FROM
    tried = 0
    for entry in entries:
        tried += 1
        identity = Identity(group, str(names["kind"]), entry.namespace, entry.name)
        obj = entry.load()
        managed_fields = (obj.get("metadata") or {}).get("managedFields") or ()
        in_gone = [each for each in managed_fields if isinstance(each, dict) and each.get("apiVersion") in gone]
        writers += [(str(each.get("manager") or ""), identity) for each in in_gone]
        stored_object = _try_object(identity, obj, before, new, ratchets=ratchets)
        if stored_object is not None:
            objects.append(stored_object)
    name = str(target["metadata"]["name"])
    return DefinitionOutcome(
        name=name,
        group=group,
        kind=str(names["kind"]),
        plural=str(names["plural"]),
        tried=tried,
        objects=tuple(objects),
        gone=removed_versions,
        writers=tuple(writers),
        complete=complete,
    )


def _try_object(
    identity: Identity, obj: JSON, before: Definition | None, new: Definition, *, ratchets: bool
) -> StoredObject | None:
    """Returns what the new definition refuses or drops of a stored object, None if nothing."""
    # As in the API server, an object is read in its own version while that is served, else in the storage version.
    version = str(obj["apiVersion"]).rpartition("/")[2]
    target = version if version in new.served else new.storage
    if target != version and new.converts_by_webhook:
        text = f"version {version} goes, and the webhook that converts it to {target} cannot be called from a copy"
        return StoredObject(identity=identity, unknown=text)
    converted = {**obj, "apiVersion": f"{identity.group}/{target}"}
    try:
        old_schema = before.schema(version) if before is not None else None
        old_decoded, dropped_before = _decode_as_server(old_schema, obj)
        old_faults = {text for _, text in _schema_faults(old_schema, old_decoded)}
    except DecodeError as error:
        # Then it is no effect of the release whether the new schema refuses it.
        return StoredObject(
            identity=identity, unknown=f"it cannot be read under the definition that the cluster has: {error}"
        )
    except SchemaError as error:
        return StoredObject(
            identity=identity, unknown=f"the cluster's schema of version {version} cannot be read: {error}"
        )
    try:
        decoded, dropped = _decode_as_server(new.schema(target), converted)
        faults = _schema_faults(new.schema(target), decoded)
    except DecodeError as error:
        return StoredObject(identity=identity, refused=(str(error),))
    except SchemaError as error:
        return StoredObject(identity=identity, unknown=f"the schema of version {target} cannot be read: {error}")
    # Only what the release changes is its effect: fields that are dropped, and faults that exist, today are not.
    pruned = tuple(path for path in dropped if path not in dropped_before)
    fresh = [(path, text) for path, text in faults if text not in old_faults]
    tolerated = tuple(text for path, text in fresh if ratchets and _is_leaf(decoded, path))
    refused = tuple(text for path, text in fresh if text not in tolerated)
    if not (pruned or refused or tolerated):
        return None
    return StoredObject(identity=identity, refused=refused, tolerated=tolerated, pruned=pruned)


def _decode_as_server(schema: Schema | None, obj: JSON) -> tuple[JSON, list[str]]:
    """Returns the object as a server reads it, and the paths of the fields that it drops. Raises DecodeError."""
    if schema is None:
        return obj, []
    coerced, unknown = schema.coerce(copy.deepcopy(obj))
    pruned, dropped = schema.prune(coerced)
    return schema.default(schema.drop_nulls(pruned)), [*unknown, *dropped]


def _schema_faults(schema: Schema | None, obj: JSON) -> list[tuple[str, str]]:
    """Returns path and text of each fault of an object."""
    if schema is None:
        return []
    return [(str(getattr(fault, "path", "")), str(fault)) for fault in schema.validate(obj, None)]


def _is_leaf(obj: JSON, path: str) -> bool:
    """Returns whether the path leads to a scalar. A server that ratchets accepts an update that leaves it unchanged."""
    at: Any = obj
    for step in _PATH_STEP.findall(path):
        if step.startswith("["):
            key = step[1:-1].strip('"')
            at = (
                at[int(key)]
                if isinstance(at, list) and key.isdigit() and int(key) < len(at)
                else _member_or_none(at, key)
            )
        else:
            at = _member_or_none(at, step)
        if at is None:
            return False
    return not isinstance(at, dict | list)


def _member_or_none(at: Any, key: str) -> Any:
    return at.get(key) if isinstance(at, dict) else None
