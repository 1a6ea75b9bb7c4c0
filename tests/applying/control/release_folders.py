"""Releases as folders, out of a few lines: what a test's operator applies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubekit.lang import yaml as kyaml
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded, read_folder
from runup.release.decide.payload import Payload, load_payload

JSON = dict[str, Any]
PROFILE = "include.release.openshift.io/self-managed-high-availability"
NAMESPACE = "openshift-example"


def write_release(root: Path, version: str, files: dict[str, list[JSON]]) -> Path:
    """A release of `version` in `root`; `files` are paths in the image and their objects."""
    for path, objects in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(kyaml.dump_all(objects))
    manifests = root / "release-manifests"
    manifests.mkdir(parents=True, exist_ok=True)
    metadata = {"kind": "cincinnati-metadata-v0", "version": version}
    (manifests / "release-metadata").write_text(json.dumps(metadata))
    references = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": version},
        "spec": {"tags": []},
    }
    (manifests / "image-references").write_text(json.dumps(references))
    return root


class Folders:
    """A `ReleaseLoader` of releases in folders, by pull spec."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders

    async def load(self, release: Release) -> Payload:
        """Returns the payload in the folder of that pull spec; raises NotLoaded."""
        folder = self.folders.get(release.image)
        if folder is None:
            raise NotLoaded(f"there is no folder for {release.image}", reason="RetrievePayload")
        return load_payload(read_folder(folder), source=str(folder), release_image=release.image)


def manifest(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> JSON:
    """An object that every cluster of the default profile gets; `annotations` come on top."""
    annotations = {PROFILE: "true", **fields.pop("annotations", {})}
    metadata: JSON = {"name": name, "annotations": annotations} | ({"namespace": namespace} if namespace else {})
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def namespace(name: str = NAMESPACE) -> JSON:
    """A namespace."""
    return manifest("v1", "Namespace", name)


def config_map(name: str, data: dict[str, str], **fields: Any) -> JSON:
    """A ConfigMap in the release's namespace."""
    return manifest("v1", "ConfigMap", name, NAMESPACE, data=data, **fields)


def operator(name: str, version: str, **fields: Any) -> JSON:
    """A ClusterOperator that must come to `version`."""
    status = {
        "versions": [{"name": "operator", "version": version}],
        "relatedObjects": [{"group": "", "resource": "namespaces", "name": NAMESPACE}],
    }
    return manifest("config.openshift.io/v1", "ClusterOperator", name, spec={}, status=status, **fields)


def definition(kind: str, plural: str, group: str = "example.org", **schema: Any) -> JSON:
    """A definition of a namespaced kind that takes anything."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **schema}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": open_schema}}
    return manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{group}",
        spec={
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    )


def deployment(name: str, image: str, **fields: Any) -> JSON:
    """A Deployment in the release's namespace."""
    labels = {"app": name}
    container = {"name": name, "image": image, "ports": [{"containerPort": 8080}]}
    return manifest(
        "apps/v1",
        "Deployment",
        name,
        NAMESPACE,
        spec={
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
        **fields,
    )
