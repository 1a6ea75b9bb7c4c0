"""A CRD's schema out of wire types: fields, types and what is required from the types, limits from a table."""

from __future__ import annotations

import copy
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from kubekit.api.meta_v1 import Object, Wire
from runup.api import fleet_update_v1alpha1, update_policy_v1alpha1, update_v1alpha1

JSON = dict[str, Any]
_STATUSES = (update_v1alpha1.UpdateStatus, update_v1alpha1.HostedClusterUpdateStatus)
# What every object has besides its own fields; the API server validates metadata itself.
_IDENTITY = ("apiVersion", "kind", "metadata")
_SCALARS: dict[Any, JSON] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int32"},
    datetime: {"type": "string", "format": "date-time"},
}


def status_crds(source: JSON) -> list[JSON]:
    """The CRDs of the status of updates out of their source; raises KeyError for a field without an entry."""
    found = []
    for kind, given in source["kinds"].items():
        types = copy.deepcopy(source["types"])
        for name, fields in given.get("leftOut", {}).items():
            types[name]["leftOut"] = fields
        schema = _struct(getattr(update_v1alpha1, kind), types)
        status = schema["properties"]["status"]["properties"]
        for layer in ("controlPlane", "workerPools"):
            _restrict(status[layer].get("items", status[layer]), given["insights"][layer])
        # A copy, because anchors of YAML are shared.
        head: JSON = copy.deepcopy(given["head"])
        head["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
        found.append(head)
    return found


def policy_crds(source: JSON) -> list[JSON]:
    """The CRDs of update policies out of their source; raises KeyError for a field without an entry."""
    found = []
    for kind, head in source["kinds"].items():
        module = fleet_update_v1alpha1 if kind == "FleetUpdate" else update_policy_v1alpha1
        schema = _struct(getattr(module, kind), source["types"])
        version = {"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}}}
        version["schema"] = {"openAPIV3Schema": schema}
        version["additionalPrinterColumns"] = head["additionalPrinterColumns"]
        spec = {
            "group": source["group"],
            "names": head["names"],
            "scope": head.get("scope", "Cluster"),
            "versions": [version],
        }
        metadata = {"name": f"{head['names']['plural']}.{source['group']}"}
        identity = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
        found.append({**identity, "spec": spec})
    return found


def _restrict(layer: JSON, allowed: JSON) -> None:
    """Only `allowed["types"]` of insights, with the members and rules that belong to them, and so many at most."""
    insights = layer["properties"]["informers"]["items"]["properties"]["insights"]
    insights["maxItems"] = allowed["maxItems"]
    insight = insights["items"]
    members = [kind[0].lower() + kind[1:] for kind in allowed["types"]]
    properties = {
        name: value
        for name, value in insight["properties"].items()
        if name in members or name in ("uid", "acquiredAt", "type")
    }
    properties["type"] = {**properties["type"], "enum": allowed["types"]}
    insight["properties"] = properties
    insight["x-kubernetes-validations"] = [
        rule for rule in insight["x-kubernetes-validations"] if rule["message"].split(" ")[0] in members
    ]


def _struct(kind: type[Wire], types: JSON) -> JSON:
    entry = types[kind.__name__]
    hints = get_type_hints(kind)
    schema: JSON = {key: value for key, value in entry.items() if key not in ("fields", "required", "leftOut")}
    schema["type"] = "object"
    properties: JSON = {}
    required = []
    for field in msgspec.structs.fields(kind):
        wire = field.encode_name
        if wire in entry.get("leftOut", ()):
            continue
        if issubclass(kind, Object) and wire in _IDENTITY:
            properties[wire] = {"type": "object" if wire == "metadata" else "string"}
            continue
        properties[wire] = _narrowed({**_of(hints[field.name], types), **entry["fields"][wire]})
        if field.required:
            required.append(wire)
    unknown = set(entry["fields"]) - set(properties) - set(entry.get("leftOut", ()))
    if unknown:
        raise KeyError(f"{kind.__name__} has no fields {sorted(unknown)}")
    required = entry.get("required") or (["spec"] if issubclass(kind, _STATUSES) else required)
    if required:
        schema["required"] = required
    if properties:
        schema["properties"] = properties
    return schema


def _narrowed(schema: JSON) -> JSON:
    """`x-narrowed: {field: values}` becomes the enum of that field of this one place; an empty list of rules goes."""
    if not schema.get("x-kubernetes-validations", True):
        del schema["x-kubernetes-validations"]
    narrowed = schema.pop("x-narrowed", {})
    if narrowed:
        properties = {
            name: {**value, "enum": narrowed[name]} if name in narrowed else value
            for name, value in schema["properties"].items()
        }
        schema["properties"] = properties
    return schema


def _of(hint: Any, types: JSON) -> JSON:
    if set(get_args(hint)) == {int, str}:
        return {"x-kubernetes-int-or-string": True}
    if get_origin(hint) in (Union, UnionType):
        return _of(next(part for part in get_args(hint) if part is not NoneType), types)
    if get_origin(hint) is dict:
        return {"type": "object"}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _of(get_args(hint)[0], types)}
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    return _struct(hint, types)
