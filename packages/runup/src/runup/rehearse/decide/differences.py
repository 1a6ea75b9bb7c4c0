"""Computes the fields in which an object differs before and after a release was applied, the gravest first.

Lists are compared by the field that names their items, where all items have it (containers by name, ports by number),
else as a whole, as server-side apply does with atomic lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runup.rehearse.decide import field_owners
from runup.rehearse.decide.field_owners import Path
from runup.rehearse.decide.rehearsal_outcome import WEIGHTS, FieldChange, Weight
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
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
# A schema has thousands of fields; what its change means for stored objects is told of these.
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
    owners = field_owners.owners_of(before)
    hides = (identity.group, identity.kind) == _SECRET
    field_changes = [
        FieldChange(
            path=path_text(path),
            before=HIDDEN if hides and old is not None else old,
            after=HIDDEN if hides and new is not None else new,
            weight=weight_of_field(identity, path),
            others=field_owners.others(owners, path) if old is not None else (),
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
            yield from _differing_values(old.get(key), new.get(key), (*path, field_owners.item(name, key)))
        return
    yield path, before, after


def _key_field(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Returns the field that identifies the items of both lists, or an empty string."""
    for name in _NAMES:
        if all(_is_key_field(items, name) for items in (before, after)):
            return name
    return ""


def _is_key_field(items: Sequence[Any], name: str) -> bool:
    values = [item.get(name) for item in items if isinstance(item, dict)]
    plain = all(isinstance(value, str | int) for value in values)
    return len(values) == len(items) and plain and len(set(values)) == len(values)


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
            text += field_owners.item_shown(segment)
    return text
