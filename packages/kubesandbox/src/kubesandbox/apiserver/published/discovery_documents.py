"""Discovery documents of the served resources: legacy (`/api`, `/apis`, resource lists) and aggregated."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import orjson

from kubesandbox.apiserver import kubernetes_version
from kubesandbox.apiserver.http.messages import Form, Response, json_response
from kubesandbox.apiserver.served_kinds import Kind, KindTable

JSON = dict[str, Any]

_MINOR = kubernetes_version.number()
VERSION: JSON = {
    "major": "1",
    "minor": str(_MINOR),
    "emulationMajor": "1",
    "emulationMinor": str(_MINOR),
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": str(_MINOR - 1),
    "gitVersion": f"v1.{_MINOR}.0+kubesandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
# The number of documents that are kept, those of earlier kinds among them.
MAX_CACHED = 500
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """The documents about a `KindTable`, rebuilt only after it changed."""

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds
        # The server sets it once it knows its port.
        self.address = ""
        self._cache: dict[tuple[str, str, int], Response] = {}

    def serve(self, path: str, form: Form) -> Response | None:
        """Returns the document at a path, or None for any other path."""
        key = (path, form.value, self._kinds.generation)
        if key not in self._cache:
            # Drops the documents of old generations of kinds.
            if len(self._cache) > MAX_CACHED:
                self._cache.clear()
            document = self._make_document(path.strip("/").split("/"), form)
            if document is None:
                return None
            self._cache[key] = document
        return self._cache[key]

    def _make_document(self, parts: list[str], form: Form) -> Response | None:
        """Returns the document at a path in parts, or None."""
        match parts:
            case ["api" | "apis" as root] if form is Form.DISCOVERY:
                return self._aggregated_document(core=root == "api")
            case ["api"]:
                addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]
                document = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
                return json_response(document)
            case ["apis"]:
                groups = [self._group_document(group) for group in self._kinds.groups() if group]
                return json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            case ["api", "v1"]:
                return self._resource_list("", "v1")
            case ["apis", group] if group and group in self._kinds.groups():
                return json_response({"kind": "APIGroup", "apiVersion": "v1", **self._group_document(group)})
            case ["apis", group, version]:
                return self._resource_list(group, version)
        return None

    def _group_document(self, group: str) -> JSON:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version} for version in self._kinds.groups()[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _kinds_of(self, group: str, version: str) -> list[Kind]:
        kinds = [kind for kind in self._kinds if (kind.group, kind.version) == (group, version)]
        return sorted(kinds, key=lambda kind: kind.plural)

    def _resource_list(self, group: str, version: str) -> Response | None:
        """Returns the APIResourceList of a group and version, None for an unknown one."""
        kinds = self._kinds_of(group, version)
        if not kinds:
            return None
        rows = [row for kind in kinds for row in _legacy_rows(kind)]
        name = f"{group}/{version}" if group else version
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}), "groupVersion": name}
        return json_response({**head, "resources": rows})

    def _aggregated_document(self, *, core: bool) -> Response:
        """Returns the APIGroupDiscoveryList of the core group, or of all others."""
        items: list[JSON] = []
        for group, versions in self._kinds.groups().items():
            if core is not (group == ""):
                continue
            metadata: JSON = {"creationTimestamp": None} if core else {"name": group, "creationTimestamp": None}
            listed = [
                {
                    "version": version,
                    "resources": [_aggregated_row(kind) for kind in self._kinds_of(group, version)],
                    "freshness": "Current",
                }
                for version in versions
            ]
            items.append({"metadata": metadata, "versions": listed})
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        return Response(status=200, body=orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE), content_type=_AGGREGATED)


def _names_of(kind: Kind) -> JSON:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in names.items() if value}


def _legacy_rows(kind: Kind) -> list[JSON]:
    """Returns the rows of a kind and its subresources in an APIResourceList."""
    row: JSON = {
        "name": kind.plural,
        "singularName": kind.singular_name,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _CUSTOM_VERBS if kind.custom else sorted(kind.verbs),
    }
    row |= _names_of(kind)
    if "create" in kind.verbs and "list" in kind.verbs:
        version = kind.version
        if kind.crd is not None:
            version = next((v["name"] for v in kind.crd["spec"]["versions"] if v.get("storage")), version)
        elif kind.kind == "CustomResourceDefinition":
            version = "v1beta1"
        digest = hashlib.sha256(f"{kind.group}/{version}/{kind.kind}".encode()).digest()
        row["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    rows = [row]
    for sub in kind.subresources:
        extra = {"group": sub.group, "version": sub.version} if sub.version else {}
        head = {"name": f"{kind.plural}/{sub.name}", "singularName": "", "namespaced": kind.namespaced}
        head |= {key: value for key, value in extra.items() if value}
        rows.append({**head, "kind": sub.kind or kind.kind, "verbs": sorted(sub.verbs)})
    return rows


# The order of apiextensions-apiserver (customresource_discovery_controller.go); built-in kinds have theirs sorted.
_CUSTOM_VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]


def _aggregated_row(kind: Kind) -> JSON:
    """Returns a kind, with its subresources, as an APIResourceDiscovery."""
    row: JSON = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular_name,
        "verbs": sorted(kind.verbs),
    }
    row |= _names_of(kind)
    if kind.subresources:
        row["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group if sub.kind else kind.group,
                    "version": sub.version or kind.version,
                    "kind": sub.kind or kind.kind,
                },
                "verbs": sorted(sub.verbs),
            }
            for sub in kind.subresources
        ]
    return row
