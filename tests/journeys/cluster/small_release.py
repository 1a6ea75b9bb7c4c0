"""A release small enough to be applied a hundred times, with everything in it that an order is about.

Four run levels of two components each, whose every object says which version it is of; a definition with an object of
its kind; a Deployment and a ClusterOperator a component, which the bench's stand-in answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.release_payload import REPORTS

from kubekit.lang import yaml as kyaml
from runup.release.control.image_build import IMAGE_REFERENCES_PATH, METADATA_PATH, release_metadata

JSON = dict[str, Any]
FIRST = "5.0.0"
LEVELS = (10, 20, 30, 50)
COMPONENTS = ("alpha", "beta")
VERSION = "tests.runup.dev/version"
"""The annotation of each object that says which release it is of."""
GROUP = "tests.runup.dev"
_INCLUDED = {"include.release.openshift.io/self-managed-high-availability": "true"}


def write(folder: Path, version: str) -> None:
    """The payload of `version`, as PAYLOAD_OVERRIDE names it."""
    for level in LEVELS:
        for component in COMPONENTS:
            for number, obj in enumerate(objects(level, component, version)):
                name = f"0000_{level}_{component}-{level}_{number:02}_{obj['kind'].lower()}.yaml"
                _put(folder / "release-manifests" / name, kyaml.dump(obj).encode())
    own = _object("v1", "ConfigMap", name="own", namespace="default", version=version, data={"of": version})
    _put(folder / "manifests" / "0000_00_cluster-version-operator_00_configmap.yaml", kyaml.dump(own).encode())
    _put(folder / METADATA_PATH, release_metadata(version, [], [], {}))
    stream = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": version}}
    _put(folder / IMAGE_REFERENCES_PATH, kyaml.dump(stream).encode())


def objects(level: int, component: str, version: str) -> list[JSON]:
    """The objects of one component, in the order of its files."""
    name = f"{component}-{level}"
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    account = [{"kind": "ServiceAccount", "name": name, "namespace": name}]
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    found = [
        _object("v1", "Namespace", name=name, namespace="", version=version),
        _object("v1", "ServiceAccount", name=name, namespace=name, version=version),
        _object("rbac.authorization.k8s.io/v1", "Role", name=name, namespace=name, version=version, rules=rules),
        _object(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            name=name,
            namespace=name,
            version=version,
            roleRef=bound,
            subjects=account,
        ),
        _object("v1", "ConfigMap", name=name, namespace=name, version=version, data={"of": version}),
    ]
    if component == "alpha" and level == 20:
        found += [
            _definition(version),
            _object(f"{GROUP}/v1", "Thing", name=name, namespace=name, version=version, spec={"of": version}),
        ]
    found += [_deployment(name, version), _operator(name, version)]
    return found


def applied(version: str) -> dict[tuple[str, str, str], int]:
    """Every object of the release that its version is seen on, as (plural, namespace, name), and its run level."""
    return {
        (f"{obj['kind'].lower()}s", obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): level
        for level in LEVELS
        for component in COMPONENTS
        for obj in objects(level, component, version)
    }


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _object(api_version: str, kind: str, name: str, namespace: str, version: str, **rest: Any) -> JSON:
    metadata: JSON = {"name": name, "annotations": _INCLUDED | {VERSION: version}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        **rest,
    }


def _deployment(name: str, version: str) -> JSON:
    container = {
        "name": "operator",
        "image": f"registry.example/{name}:{version}",
        "env": [{"name": "RELEASE_VERSION", "value": version}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    found = _object("apps/v1", "Deployment", name=name, namespace=name, version=version, spec=spec)
    found["metadata"]["labels"] = {REPORTS: name}
    return found


def _operator(name: str, version: str) -> JSON:
    status = {"versions": [{"name": "operator", "version": version}]}
    return _object(
        "config.openshift.io/v1", "ClusterOperator", name=name, namespace="", version=version, spec={}, status=status
    )


def _definition(version: str) -> JSON:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"}
    return _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        name=f"things.{GROUP}",
        namespace="",
        version=version,
        spec={"group": GROUP, "names": names, "scope": "Namespaced", "versions": [served]},
    )
