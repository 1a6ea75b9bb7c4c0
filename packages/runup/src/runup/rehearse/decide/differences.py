"""Compares objects as a rehearsal left them with the objects that were stored, and who owns their fields."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runup.applying.decide.merging import EARLIER, MANAGER
from runup.rehearse.decide.rehearsal_outcome import WEIGHTS, FieldChange, Weight
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
Path = tuple[str, ...]
# Manager, and the tree of its fields.
Owners = Sequence[tuple[str, Mapping[str, Any]]]
# Writers of releases, and what the API server itself notes for objects without a record.
_OF_RELEASES = EARLIER | {MANAGER, "before-first-apply"}


def item(name: str, value: str | int) -> str:
    """Returns the segment of the list item in which the field `name` has that value."""
    return "k:" + json.dumps({name: value}, separators=(",", ":"))


def owners_of(obj: JSON) -> Owners:
    """Returns who owns which fields of the object, without those of its status."""
    entries = (obj.get("metadata") or {}).get("managedFields")
    return [
        (str(entry.get("manager") or ""), fields)
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and not entry.get("subresource")
        and isinstance(fields := entry.get("fieldsV1"), dict)
    ]


def others(owners: Owners, path: Path) -> tuple[str, ...]:
    """Returns the managers that owned the field, if no writer of releases was among them."""
    names = [name for name, fields in owners if _owns_field(fields, path)]
    return () if any(name in _OF_RELEASES for name in names) else tuple(dict.fromkeys(sorted(names)))


def _owns_field(fields: Mapping[str, Any], path: Path) -> bool:
    """Reports whether a tree of managedFields (fieldsV1) has the path."""
    at: Any = fields
    for segment in path:
        if not isinstance(at, Mapping):
            return False
        member = _member_of_fields(at, segment)
        if member is None:
            # An empty tree owns all that is below it.
            return not at
        at = member
    return True


def _member_of_fields(fields: Mapping[str, Any], segment: str) -> Any:
    """Returns the subtree of one path segment, or None."""
    if segment in fields or not segment.startswith("k:"):
        return fields.get(segment)
    keys = json.loads(segment.removeprefix("k:")).items()
    for key, below in fields.items():
        if key.startswith("k:"):
            # Items may be distinguished by more than one field: a port by its number and protocol.
            with contextlib.suppress(ValueError, RecursionError, AttributeError):
                if keys <= json.loads(key.removeprefix("k:")).items():
                    return below
    return None


# What the API server keeps itself, and the label by which the operator knows its objects again.
_SERVERS = frozenset(
    {"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp"}
    | {"deletionGracePeriodSeconds"}
)
_OWN_LABELS = frozenset({"release.openshift.io/manifest"})
# Of definitions that are being deleted; the sandbox's API server has it from the beginning.
_SERVERS_FINALIZERS = frozenset({"customresourcecleanup.apiextensions.k8s.io"})
# Fields that name an item of a list, in the order in which they are tried.
_NAMES = ("name", "containerPort", "port", "mountPath", "devicePath", "type", "key", "ip", "topologyKey")
# A schema has thousands of fields; what its change means for stored objects is reported of these.
_WHOLE = frozenset({"f:openAPIV3Schema"})
# Of these the values are not shown, whoever set them.
_SECRET = ("", "Secret")
HIDDEN = "(not shown)"
# Fields that the API server refuses to change (registry strategies and validation of k8s.io/kubernetes).
_FIXED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "ReplicaSet"): ("spec.selector",),
    ("apps", "StatefulSet"): ("spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"),
    ("batch", "Job"): ("spec.selector", "spec.template", "spec.completionMode"),
    ("", "Service"): ("spec.clusterIP", "spec.clusterIPs"),
    ("", "PersistentVolumeClaim"): ("spec.storageClassName", "spec.volumeName", "spec.accessModes"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("spec.scope", "spec.group", "spec.names.plural"),
    ("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
}


def without_server_fields(obj: JSON) -> JSON:
    """Returns the parts of an object that a release decides on: no status, nothing that only the server writes."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SERVERS}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _OWN_LABELS}
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    finalizers = [
        finalizer for finalizer in metadata.pop("finalizers", None) or () if finalizer not in _SERVERS_FINALIZERS
    ]
    if finalizers:
        metadata["finalizers"] = finalizers
    content = {key: value for key, value in obj.items() if key not in {"status", "metadata"}}
    return {**content, "metadata": metadata}


def changes(identity: Identity, before: JSON, after: JSON) -> tuple[FieldChange, ...]:
    """Returns the fields in which the object differs, the gravest first, with who owned the lost values."""
    owners = owners_of(before)
    hides = (identity.group, identity.kind) == _SECRET
    field_changes = [
        FieldChange(
            path=path_text(path),
            before=HIDDEN if hides and old is not None else old,
            after=HIDDEN if hides and new is not None else new,
            weight=weight_of_field(identity, path),
            others=others(owners, path) if old is not None else (),
        )
        for path, old, new in _differing_values(without_server_fields(before), without_server_fields(after), ())
    ]
    return tuple(sorted(field_changes, key=lambda each: (WEIGHTS.index(each.weight), each.path)))


def _differing_values(before: Any, after: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yields (path, value before, value after) for each difference, as deep as both values go."""
    if before == after:
        return
    if path and path[-1] in _WHOLE:
        yield path, before, after
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _differing_values(before.get(key), after.get(key), (*path, f"f:{key}"))
        return
    if isinstance(before, list) and isinstance(after, list) and (name := _key_field(before, after)):
        old, new = ({item[name]: item for item in items} for items in (before, after))
        for key in (*old, *(key for key in new if key not in old)):
            yield from _differing_values(old.get(key), new.get(key), (*path, item(name, key)))
        return
    yield path, before, after


def _key_field(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Returns the field that identifies the items of both lists, or an empty string."""
    for name in _NAMES:
        for items in (before, after):
            values = [item.get(name) for item in items if isinstance(item, dict)]
            plain = all(isinstance(value, str | int) for value in values)
            if len(values) != len(items) or not plain or len(set(values)) != len(values):
                break
        else:
            return name
    return ""


def weight_of_field(identity: Identity, path: Path) -> Weight:
    """Returns how much a change of that field may hurt."""
    text, segments = path_text(path), [segment.removeprefix("f:") for segment in path]
    kind = (identity.group, identity.kind)
    if any(text == fixed or text.startswith(f"{fixed}.") for fixed in _FIXED.get(kind, ())):
        return Weight.FIXED
    if segments[0] == "metadata":
        return Weight.METADATA
    if any(segment.lower().endswith("selector") for segment in segments):
        return Weight.SELECTOR
    if "replicas" in segments:
        return Weight.REPLICAS
    if segments[-1] == "image":
        return Weight.IMAGE
    if "resources" in segments and segments[0] == "spec":
        return Weight.RESOURCES
    rbac = identity.group == "rbac.authorization.k8s.io"
    return Weight.RIGHTS if rbac and segments[0] in {"rules", "subjects", "aggregationRule"} else Weight.OTHER


def path_text(path: Path) -> str:
    """Returns the path as people write it: `spec.template.spec.containers[name=web].image`."""
    text = ""
    for segment in path:
        if segment.startswith("f:"):
            key = segment.removeprefix("f:")
            text += f"[{key}]" if "." in key or "/" in key else f".{key}" if text else key
        else:
            ((name, value),) = json.loads(segment.removeprefix("k:")).items()
            text += f"[{name}={value}]"
    return text
