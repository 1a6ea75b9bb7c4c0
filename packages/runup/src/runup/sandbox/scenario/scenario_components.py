"""Builds the components of a release: for each an operator's Deployment, its RBAC, and its ClusterOperators.

A real release has one Deployment for each ClusterOperator. Here a few processes manage them all, in the run levels and
with the file names of a real release, so that an update goes through them in the same order and a machine with two
cores can run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.lang import yaml as kyaml
from kubekit.oci import images
from kubesandbox.sandbox_error import SandboxError
from runup.release.control.image_build import BuiltImage, build_image, layer_of
from runup.sandbox.component import component_process as behaviour
from runup.sandbox.scenario.folder import ReleaseSpec

JSON = dict[str, Any]
REPOSITORY = "runup/component"
PROGRAM = "usr/bin/component-operator"
_SCRIPT = b"""#!/usr/bin/env python3
from runup.sandbox.component.component_process import main

main()
"""
INCLUDED = {
    "include.release.openshift.io/self-managed-high-availability": "true",
    "include.release.openshift.io/single-node-developer": "true",
}


@dataclass(frozen=True, slots=True)
class Component:
    """An operator's Deployment by run level, and the ClusterOperators that it manages.

    Source: docs/reference/upstream.md 1.3.
    """

    level: int
    name: str
    namespace: str
    operators: tuple[str, ...]


COMPONENTS = (
    Component(12, "etcd-operator", "openshift-etcd-operator", ("etcd",)),
    Component(
        20,
        "kube-control-plane-operator",
        "openshift-kube-control-plane-operator",
        ("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    ),
    Component(
        50,
        "platform-operator",
        "openshift-platform-operator",
        (
            "authentication",
            "dns",
            "image-registry",
            "ingress",
            "monitoring",
            "network",
            "openshift-apiserver",
            "operator-lifecycle-manager",
        ),
    ),
    Component(50, "storage-operator", "openshift-storage-operator", ("storage",)),
    Component(80, "machine-config-operator", "openshift-machine-config-operator", ("machine-config",)),
)
"""The components of the common cluster; together they manage its ClusterOperators."""


def build(layout: Path, version: str) -> BuiltImage:
    """Builds the image that every component's operator of that release runs, in `layout`."""
    files = {PROGRAM: _SCRIPT, "etc/release": f"{version}\n".encode()}
    labels = {images.THIN_LABEL: "thin"}
    config = images.Execution(entrypoint=(f"/{PROGRAM}",), labels=labels)
    return build_image(layout, [layer_of(files, frozenset({PROGRAM}))], tag=f"component-{version}", config=config)


def manifests(spec: ReleaseSpec, image: str, feature_set: str) -> dict[str, bytes]:
    """Returns the components' files of a release by path in its image; raises SandboxError for an unknown behaviour.

    `feature_set` is that of the cluster, which a real operator reads from the FeatureGate.
    """
    component_names = {name for component in COMPONENTS for name in component.operators}
    for name, text in spec.components.items():
        problem = ""
        try:
            behaviour.parse(text)
        except ValueError as error:
            problem = str(error)
        if name not in component_names:
            problem = f"there is no component {name!r}; there are {', '.join(sorted(component_names))}"
        if problem:
            raise SandboxError(f"release {spec.version}: {problem}", reason="BadScenario")
    return {
        f"release-manifests/0000_{component.level}_{component.name}_{name}.yaml": kyaml.dump_all(objects).encode()
        for component in COMPONENTS
        for name, objects in _manifest_files(component, spec, image, feature_set)
    }


def references(image: str) -> dict[str, str]:
    """Returns the components' entries of `image-references`."""
    return {component.name: image for component in COMPONENTS}


def _manifest_files(
    component: Component, spec: ReleaseSpec, image: str, feature_set: str
) -> Iterator[tuple[str, list[JSON]]]:
    """Yields name and objects of each manifest file of the component."""
    yield "00_namespace", [_object("v1", "Namespace", component.namespace)]
    yield "01_serviceaccount", [_object("v1", "ServiceAccount", component.name, component.namespace)]
    yield "02_rbac", [*_rights(component)]
    yield "10_deployment", [_deployment(component, spec, image, feature_set)]
    for name in component.operators:
        versions = [{"name": "operator", "version": spec.version}]
        versions += [{"name": name, "version": version} for of, version in _operands(spec).items() if of == name]
        related = [{"group": "", "resource": "namespaces", "name": component.namespace}]
        status = {"versions": versions, "relatedObjects": related}
        yield (
            f"20_clusteroperator-{name}",
            [_object("config.openshift.io/v1", "ClusterOperator", name, spec={}, status=status)],
        )


def _rights(component: Component) -> Iterator[JSON]:
    """Yields the RBAC objects: the operator reads all ClusterOperators, writes its own's status, and manages its
    operand.
    """
    group, name = "rbac.authorization.k8s.io", f"openshift-{component.name}"
    read_verbs = ["get", "list", "watch"]
    rules = [
        {"apiGroups": ["config.openshift.io"], "resources": ["clusteroperators"], "verbs": read_verbs},
        {
            "apiGroups": ["config.openshift.io"],
            "resources": ["clusteroperators/status"],
            "resourceNames": list(component.operators),
            "verbs": ["get", "patch", "update"],
        },
    ]
    account = [{"kind": "ServiceAccount", "name": component.name, "namespace": component.namespace}]
    yield _object(f"{group}/v1", "ClusterRole", name, rules=rules)
    bound = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    yield _object(f"{group}/v1", "ClusterRoleBinding", name, roleRef=bound, subjects=account)
    rules = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": [*read_verbs, "create", "patch"]}]
    yield _object(f"{group}/v1", "Role", component.name, component.namespace, rules=rules)
    bound = {"apiGroup": group, "kind": "Role", "name": component.name}
    yield _object(f"{group}/v1", "RoleBinding", component.name, component.namespace, roleRef=bound, subjects=account)


def _deployment(component: Component, spec: ReleaseSpec, image: str, feature_set: str) -> JSON:
    """Returns the Deployment of a component, with the release's version and the behaviour that it must show."""
    labels = {"k8s-app": component.name}
    arguments = [f"--name={component.name}", f"--namespace={component.namespace}", f"--release={spec.version}"]
    arguments += [
        f"--operator={name}={spec.components[name]}" if name in spec.components else f"--operator={name}"
        for name in component.operators
    ]
    arguments += [
        f"--operand={name}={version}" for name, version in _operands(spec).items() if name in component.operators
    ]
    arguments += [f"--feature-set={feature_set}"] if feature_set else []
    container = {
        "name": component.name,
        "image": image,
        "args": arguments,
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "serviceAccountName": component.name,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    return _object(
        "apps/v1",
        "Deployment",
        component.name,
        component.namespace,
        spec={
            "replicas": 1,
            # Two operators at a time would overwrite each other's status.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": template,
        },
    )


def _operands(spec: ReleaseSpec) -> dict[str, str]:
    """Returns the versions that operators report for their operands, besides their own."""
    return {"kube-apiserver": spec.kubernetes} if spec.kubernetes else {}


def _object(api_version: str, kind: str, name: str, namespace: str = "", **other_fields: Any) -> JSON:
    metadata: JSON = {"name": name, "annotations": dict(INCLUDED)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **other_fields}
