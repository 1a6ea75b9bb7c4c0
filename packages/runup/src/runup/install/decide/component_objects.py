"""Decides which objects a component consists of: the manifests of `deploy`, fitted to the cluster and the options.

There is one source, the manifests that a release carries: `runup install`, the kustomizations and the chart are all
made by `component_objects`.

On OpenShift the service CA issues serving certificates, by annotations. Elsewhere `runup install` makes an authority
and a certificate, or cert-manager does (https://cert-manager.io/docs/concepts/ca-injector/). With least privilege the
operator advises, checks and records, and no pod runs as root (docs/decisions/0051).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from kubekit.lang import yaml as kyaml
from runup.install.decide import plain_kubernetes
from runup.install.decide.component import OPERATOR, PLACEHOLDER, Certificates, Component, Options, Platform
from runup.install.decide.objects import (
    Objects,
    definition,
    map_texts,
    with_arguments,
    with_pod,
    without_volumes,
)
from runup.process.names import NOBODY
from runup.release.decide.payload import Values, render

JSON = dict[str, Any]
GROUP = "monitoring.coreos.com"
# The roles that Prometheus gets, and their bindings.
_ROLES = ("prometheus-k8s", "cluster-version-operator-metrics")
_DEFAULT = ("openshift-monitoring", "prometheus-k8s")


def without_monitoring(objects: Objects) -> Objects:
    """Returns `objects` without monitors, alerts, and the roles of Prometheus."""
    return tuple(
        obj for obj in objects if not (obj["apiVersion"].startswith(f"{GROUP}/") or obj["metadata"]["name"] in _ROLES)
    )


def read_by(objects: Objects, prometheus: tuple[str, str]) -> Objects:
    """Returns `objects` with the account of `prometheus` (namespace, name) in place of OpenShift's."""
    if prometheus == _DEFAULT:
        return objects
    namespace, name = prometheus
    source = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    changed = []
    for obj in objects:
        if obj["metadata"]["name"] in _ROLES and "subjects" in obj:
            subjects = [{**subject, "namespace": namespace, "name": name} for subject in obj["subjects"]]
            obj = {**obj, "subjects": subjects}
        if obj["kind"] == "NetworkPolicy":
            ingress = obj["spec"].get("ingress", ())
            rules = [{**rule, "from": [source]} if "from" in rule else rule for rule in ingress]
            obj = {**obj, "spec": {**obj["spec"], **({"ingress": rules} if rules else {})}}
        changed.append(obj)
    return tuple(changed)


_SECRET = "-serving-cert"  # noqa: S105 (the end of a name)


def with_certificates(objects: Objects, component: Component, options: Options) -> Objects:
    """Returns `objects` with what their certificate needs on a cluster that has no service CA."""
    if options.platform is Platform.OPENSHIFT or not has_service(objects):
        return objects
    api, name = "cert-manager.io/v1", secret_name(component)
    by_cert_manager = options.certificates is Certificates.CERT_MANAGER
    changed = []
    for obj in objects:
        if obj["kind"] == "ServiceMonitor":
            # Verified by the Secret's authority: OpenShift's file is not there.
            authority = {"ca": {"secret": {"name": name, "key": "ca.crt"}}}
            endpoints = [
                {**endpoint, "tlsConfig": {k: v for k, v in endpoint["tlsConfig"].items() if k != "caFile"} | authority}
                for endpoint in obj["spec"]["endpoints"]
            ]
            obj = {**obj, "spec": {**obj["spec"], "endpoints": endpoints}}
        elif by_cert_manager and _has_conversion_webhook(obj):
            source = {"cert-manager.io/inject-ca-from": f"{component.namespace}/{name}"}
            annotations = {**obj["metadata"].get("annotations", {}), **source}
            obj = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
        changed.append(obj)
    if by_cert_manager:
        metadata = {"name": name, "namespace": component.namespace}
        issuer = {"kind": "Issuer", "name": name}
        spec = {"secretName": name, "dnsNames": list(hosts(component, component.namespace)), "issuerRef": issuer}
        changed.append({"apiVersion": api, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}})
        changed.append({"apiVersion": api, "kind": "Certificate", "metadata": metadata, "spec": spec})
    return tuple(changed)


def has_service(objects: Objects) -> bool:
    """Returns whether anybody connects to a Service of `objects`."""
    return any(obj["kind"] == "Service" for obj in objects)


def secret_name(component: Component) -> str:
    """Returns the name of the Secret with the certificate, as the Deployment mounts it."""
    return component.deployment + _SECRET


def hosts(component: Component, namespace: str) -> tuple[str, ...]:
    """Returns the names by which the component's Service is asked."""
    service = f"{component.deployment}.{namespace}.svc"
    return (service, f"{service}.cluster.local")


def with_authority(objects: Objects, authority: bytes) -> Objects:
    """Returns `objects` whose conversion webhooks are trusted by `authority`, in PEM."""
    changed = []
    for obj in objects:
        if _has_conversion_webhook(obj):
            conversion = obj["spec"]["conversion"]
            client = {**conversion["webhook"]["clientConfig"], "caBundle": base64.b64encode(authority).decode()}
            webhook = {**conversion["webhook"], "clientConfig": client}
            obj = {**obj, "spec": {**obj["spec"], "conversion": {**conversion, "webhook": webhook}}}
        changed.append(obj)
    return tuple(changed)


def _has_conversion_webhook(obj: JSON) -> bool:
    return definition(obj) and obj["spec"].get("conversion", {}).get("strategy") == "Webhook"


APPLIES = "cluster-version-operator-applies"
_ARGUMENTS = (
    "--record-only",
    "--release-source=registry",
    "--report-sink=configmap",
    "--preflight-service-account=dedicated",
)
_LEVELS = ("enforce", "audit", "warn")


def reduce_privileges(objects: Objects) -> Objects:
    """Returns the operator's `objects` without cluster-admin, folders of the node, and root."""
    changed = []
    for obj in objects:
        if obj["metadata"]["name"] == APPLIES:
            continue
        if obj["kind"] == "Deployment":
            template = obj["spec"]["template"]
            metadata = template["metadata"]
            annotations = {**metadata.get("annotations", {}), "openshift.io/required-scc": "nonroot-v2"}
            template = {**template, "metadata": {**metadata, "annotations": annotations}}
            obj = with_pod({**obj, "spec": {**obj["spec"], "template": template}}, _pod)
        elif obj["kind"] == "ClusterRole":
            rules = [
                {**rule, "resourceNames": [name for name in rule["resourceNames"] if name != "privileged"]}
                if "securitycontextconstraints" in rule.get("resources", ())
                else rule
                for rule in obj["rules"]
            ]
            obj = {**obj, "rules": rules}
        elif obj["kind"] == "Namespace":
            levels = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in _LEVELS}
            metadata = obj["metadata"]
            obj = {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **levels}}}
        changed.append(obj)
    return tuple(changed)


def _pod(pod: JSON) -> JSON:
    pod = without_volumes(with_arguments(pod, *_ARGUMENTS), "preflight-reports", "update-payloads")
    containers = []
    for container in pod["containers"]:
        security = {k: v for k, v in container["securityContext"].items() if k not in ("runAsUser", "seLinuxOptions")}
        arguments = [arg for arg in container["args"] if not arg.startswith("--report-dir=")]
        containers.append({**container, "args": arguments, "securityContext": security})
    security = {**pod["securityContext"], "runAsNonRoot": True, "runAsUser": NOBODY}
    return {**pod, "containers": containers, "securityContext": security}


PROFILES = {Platform.OPENSHIFT: "self-managed-high-availability", Platform.KUBERNETES: "kubernetes"}
# They tell an operator which clusters of a release get a manifest, and nobody else anything.
_OF_RELEASES = ("release.openshift.io", "capability.openshift.io")
# In which order kinds are applied; what is not listed comes before the workloads, in the order of the files.
_KINDS_APPLIED_FIRST = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role")
_KINDS_APPLIED_LAST = ("Deployment", "ServiceMonitor", "PrometheusRule")


def component_objects(component: Component, files: Mapping[str, bytes], options: Options) -> Objects:
    """Returns the objects of `component` in the order in which they are applied.

    `files` are the manifests of its folder and its definitions, by name. Raises ValueError for a file that cannot be
    read.
    """
    read: list[JSON] = []
    for name in sorted(files):
        if (name == component.of_pools and not options.with_pools) or (name == component.of_hubs and not options.hub):
            continue
        # Only the manifests of a release are templates, by the name of their files.
        text = files[name].decode()
        if name.startswith("0000_"):
            text = render(text, Values(options.image, PROFILES[options.platform]))
        read += [document for document in kyaml.load_all(text, name=name) if document]
    objects = tuple(map_texts(obj, lambda text: options.image if text == PLACEHOLDER else text) for obj in read)
    objects = without_release_annotations(objects)
    if component == OPERATOR and options.least_privilege:
        objects = reduce_privileges(objects)
    if not options.monitoring:
        objects = without_monitoring(objects)
    if options.platform is Platform.KUBERNETES:
        objects = plain_kubernetes.adapt_to_plain_kubernetes(objects, component, options)
    objects = read_by(with_certificates(objects, component, options), options.prometheus)
    return tuple(sorted(move_to_namespace(objects, component.namespace, options.namespace), key=_rank))


def without_release_annotations(objects: Objects) -> Objects:
    """Returns `objects` without the annotations that only a release's operator reads."""
    changed = []
    for obj in objects:
        metadata = dict(obj["metadata"])
        annotations = metadata.pop("annotations", None) or {}
        kept = {key: value for key, value in annotations.items() if not key.partition("/")[0].endswith(_OF_RELEASES)}
        changed.append({**obj, "metadata": {**metadata, **({"annotations": kept} if kept else {})}})
    return tuple(changed)


def move_to_namespace(objects: Objects, manifest_namespace: str, namespace: str) -> Objects:
    """Returns `objects` with `namespace` wherever they name the namespace of their manifests."""
    if manifest_namespace == namespace:
        return objects

    def move_name(text: str) -> str:
        """Returns the text with the namespace replaced, where it is a name or a Service's address."""
        if text == manifest_namespace:
            return namespace
        if text.startswith(f"{manifest_namespace}/"):
            return namespace + text.removeprefix(manifest_namespace)
        # The names of Services in certificates and monitors.
        return text.replace(f".{manifest_namespace}.svc", f".{namespace}.svc")

    return tuple(map_texts(obj, move_name) for obj in objects)


def _rank(obj: JSON) -> int:
    kind = obj["kind"]
    if kind in _KINDS_APPLIED_FIRST:
        return _KINDS_APPLIED_FIRST.index(kind)
    return (
        len(_KINDS_APPLIED_FIRST) + 1 + _KINDS_APPLIED_LAST.index(kind)
        if kind in _KINDS_APPLIED_LAST
        else len(_KINDS_APPLIED_FIRST)
    )
