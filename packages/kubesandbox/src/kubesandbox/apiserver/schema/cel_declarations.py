"""The CEL types of a schema's values (k8s.io/apiserver/pkg/cel/common/schemas.go), and of the variables of policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kubekit.lang import cel_types
from kubekit.lang.cel import RESERVED_WORDS, CelError
from kubesandbox.apiserver.schema.builtin import builtin_schema
from kubesandbox.apiserver.schema.rules import escape_property
from kubesandbox.apiserver.schema.structural import SchemaNode

# The largest request; a value without a limit may be that large (apiserver/pkg/cel/limits.go).
REQUEST_BYTES = 3 * 1024 * 1024
_LONGEST = {"duration": 32, "date": 12, "date-time": 32}
_SHORTEST = {"duration": 3, "date": 12, "date-time": 21}
_SCALARS = {
    "boolean": replace(cel_types.BOOL, least=4),
    "integer": replace(cel_types.INT, least=1),
    "number": replace(cel_types.DOUBLE, least=1),
}
_FORMATS = {
    "byte": cel_types.BYTES,
    "duration": cel_types.DURATION,
    "date": cel_types.TIMESTAMP,
    "date-time": cel_types.TIMESTAMP,
}
# What rules see of the metadata of an object (WithTypeAndObjectMeta).
_METADATA = cel_types.object_of("objectMeta", {"name": cel_types.STRING, "generateName": cel_types.STRING}.get)
_OBJECT: dict[str, cel_types.CelType] = {
    "kind": cel_types.STRING,
    "apiVersion": cel_types.STRING,
    "metadata": _METADATA,
}


def declared_type(node: SchemaNode, name: str = "selfType", *, root: bool = False) -> cel_types.CelType | None:
    """Returns the type of a node's values; `root` marks an object with a kind and metadata."""
    if node.raw.get("x-kubernetes-int-or-string"):
        return replace(cel_types.DYN, most=_text_bytes(node), least=1)
    if node.type == "string":
        form = node.raw.get("format", "")
        if form in _LONGEST:
            most = _LONGEST[form]
        elif node.raw.get("maxLength") is None and node.raw.get("enum") and form != "byte":
            most = max(len(str(value).encode()) for value in node.raw["enum"])
        else:
            most = _text_bytes(node, 1 if form == "byte" else 4)
        return replace(_FORMATS.get(form, cel_types.STRING), most=most, least=_SHORTEST.get(form, 2))
    if node.type == "array":
        items = _child_type(node.items, f"{name}.@idx")
        if items is None:
            return None
        limit, most = node.raw.get("maxItems"), (REQUEST_BYTES - 2) // (items.least + 1)
        return replace(cel_types.list_of(items), most=most if limit is None else limit, least=2)
    if node.type == "object":
        return _object_type(node, name, root=root)
    return _SCALARS.get(node.type)


def _child_type(node: SchemaNode | None, name: str) -> cel_types.CelType | None:
    root = node is not None and bool(node.raw.get("x-kubernetes-embedded-resource"))
    return None if node is None else declared_type(node, name, root=root)


def _object_type(node: SchemaNode, name: str, *, root: bool) -> cel_types.CelType | None:
    """Returns the type of an object or a map; None if the type of its values is unknown."""
    # The type that `additional` allows counts, not that there are others.
    if isinstance(node.raw.get("additionalProperties"), dict):
        values = _child_type(node.additional, f"{name}.@prop")
        if values is None:
            return None
        limit, most = node.raw.get("maxProperties"), (REQUEST_BYTES - 2) // (values.least + 6)
        return replace(cel_types.map_of(values), most=most if limit is None else limit, least=2)
    members = _members(node)
    types_by_name: dict[str, cel_types.CelType | None] = {}

    def field(key: str) -> cel_types.CelType | None:
        """Returns the CEL type of the field, or None for an unknown field."""
        if root and key in _OBJECT:
            return _OBJECT[key]
        if key not in types_by_name:
            types_by_name[key] = _child_type(members.get(key), f"{name}.{key}")
        return types_by_name[key]

    needed = [key for key in node.required if key in node.properties and not node.properties[key].has_default]
    types = ((key, _child_type(node.properties[key], key)) for key in needed)
    least = 2 + sum(len(key) + field_type.least + 4 for key, field_type in types if field_type)
    return replace(cel_types.object_of(name, field), least=least)


def _members(node: SchemaNode) -> dict[str, SchemaNode]:
    """Returns the properties by their names in rules, reserved words by both of their spellings."""
    escaped = {f"__{key}__": child for key, child in node.properties.items() if key in RESERVED_WORDS}
    return {escape_property(key): child for key, child in node.properties.items()} | escaped


def _text_bytes(node: SchemaNode, bytes_each: int = 4) -> int:
    limit = node.raw.get("maxLength")
    return REQUEST_BYTES - 2 if limit is None else max(limit, 0) * bytes_each


def served_type(node: SchemaNode) -> cel_types.CelType:
    """Returns the type of a kind's whole objects, as OpenAPI documents have it; what has no type there is dyn."""
    members = _members(node)

    def field(key: str) -> cel_types.CelType | None:
        """Returns the CEL type of the field, with metadata as every object has it; None if there is no such field."""
        if key in ("kind", "apiVersion"):
            return cel_types.STRING
        if key == "metadata":
            pod = builtin_schema("", "v1", "Pod")
            assert pod is not None
            return _loose_type(pod.root.properties["metadata"])
        return _loose_type(members[key]) if key in members else None

    return cel_types.object_of("object", field)


def _loose_type(node: SchemaNode) -> cel_types.CelType:
    """Returns the type by OpenAPI alone: without list limits, and dyn where unknown fields are kept."""
    if node.raw.get("x-kubernetes-preserve-unknown-fields") and not node.properties:
        return cel_types.DYN
    if node.type == "array" and node.items is not None:
        return cel_types.list_of(_loose_type(node.items))
    if node.type != "object":
        return declared_type(node) or cel_types.DYN
    if node.properties:
        members = _members(node)
        return cel_types.object_of("object", lambda key: _loose_type(members[key]) if key in members else None)
    return cel_types.map_of(_loose_type(node.additional)) if node.additional is not None else cel_types.DYN


# -- Variables of admission policies (k8s.io/apiserver/pkg/admission/plugin/cel/compile.go) ----------------------------

_STRINGS = cel_types.list_of(cel_types.STRING)


def _kubernetes_type(type_: str, texts: str = "", /, **fields: cel_types.CelType) -> cel_types.CelType:
    """Returns an object type with the fields, and those of `texts` (names separated by blanks) as strings."""
    return cel_types.object_of(f"kubernetes.{type_}", {**dict.fromkeys(texts.split(), cel_types.STRING), **fields}.get)


_KIND = _kubernetes_type("GroupVersionKind", "group version kind")
_RESOURCE = _kubernetes_type("GroupVersionResource", "group version resource")
REQUEST = _kubernetes_type(
    "AdmissionRequest",
    "subResource requestSubResource name namespace operation",
    **dict.fromkeys(("kind", "requestKind"), _KIND),
    **dict.fromkeys(("resource", "requestResource"), _RESOURCE),
    userInfo=_kubernetes_type("UserInfo", "username uid", groups=_STRINGS, extra=cel_types.map_of(_STRINGS)),
    dryRun=cel_types.BOOL,
    options=cel_types.DYN,
)
NAMESPACE = _kubernetes_type(
    "Namespace",
    metadata=_kubernetes_type(
        "NamespaceMetadata",
        "name generateName namespace UID resourceVersion",
        **dict.fromkeys(("labels", "annotations"), cel_types.map_of(cel_types.STRING)),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), cel_types.TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), cel_types.INT),
        finalizers=_STRINGS,
    ),
    spec=_kubernetes_type("NamespaceSpec", finalizers=_STRINGS),
    status=_kubernetes_type(
        "NamespaceStatus",
        "phase",
        conditions=cel_types.list_of(
            _kubernetes_type("NamespaceCondition", "status type message reason", lastTransitionTime=cel_types.TIMESTAMP)
        ),
    ),
)


# Without those of a policy's parameters and its own variables.
POLICY_VARIABLES: dict[str, cel_types.CelType] = {
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
    "authorizer": cel_types.AUTHORIZER,
}


def variables_type(variables: Mapping[str, cel_types.CelType]) -> dict[str, cel_types.CelType]:
    """Returns the type of `variables` in a policy's expressions, by that name; nothing without variables."""
    return {"variables": cel_types.object_of("kubernetes.variables", variables.get)} if variables else {}


def type_or_dyn(text: str, types_by_name: Mapping[str, cel_types.CelType]) -> cel_types.CelType:
    """Returns the type of an expression's result; dyn for an expression that does not compile."""
    try:
        return cel_types.result_type(text, types_by_name)
    except CelError:
        return cel_types.DYN
