"""Decides which objects a component consists of: the manifests of `deploy`, fitted to the cluster and the options.

There is one source, the manifests that a release carries: `runup install`, the kustomizations and the chart are all
made by `component_objects`.

On OpenShift the service CA issues serving certificates, by annotations. Elsewhere `runup install` makes an authority
and a certificate, or cert-manager does (https://cert-manager.io/docs/concepts/ca-injector/). With least privilege the
operator advises, checks and records, and no pod runs as root (docs/decisions/0051).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from kubekit.lang import yaml as kyaml
from runup.install.decide import plain_kubernetes
from runup.install.decide.component import OPERATOR, PLACEHOLDER, Certificates, Component, Options, Platform
from runup.install.decide.objects import (
    Objects,
    definition,
    map_texts,
    with_arguments,
    with_container,
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
    return tuple(_allow_namespace(_bind_prometheus(obj, prometheus), prometheus[0]) for obj in objects)


def _bind_prometheus(obj: JSON, prometheus: tuple[str, str]) -> JSON:
    if obj["metadata"]["name"] not in _ROLES or "subjects" not in obj:
        return obj
    namespace, name = prometheus
    return {**obj, "subjects": [{**subject, "namespace": namespace, "name": name} for subject in obj["subjects"]]}


def _allow_namespace(obj: JSON, namespace: str) -> JSON:
    """Returns a NetworkPolicy that also admits traffic from `namespace`; other objects as they are."""
    if obj["kind"] != "NetworkPolicy":
        return obj
    labels = {"kubernetes.io/metadata.name": namespace}
    rules = [
        {**rule, "from": [{"namespaceSelector": {"matchLabels": labels}}]} if "from" in rule else rule
        for rule in obj["spec"].get("ingress", ())
    ]
    return {**obj, "spec": {**obj["spec"], **({"ingress": rules} if rules else {})}}


_SECRET = "-serving-cert"  # noqa: S105 (the end of a name)


def with_certificates(objects: Objects, component: Component, options: Options) -> Objects:
    """Returns `objects` with what their certificate needs on a cluster that has no service CA."""
    if options.platform is Platform.OPENSHIFT or not has_service(objects):
        return objects
    objects = tuple(_verified_by_secret(obj, component) for obj in objects)
    if options.certificates is Certificates.CERT_MANAGER:
        api, name = "cert-manager.io/v1", secret_name(component)
        metadata = {"name": name, "namespace": component.namespace}
        issuer = {"apiVersion": api, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}
        spec = {
            "secretName": name,
            "dnsNames": list(hosts(component, component.namespace)),
            "issuerRef": {"kind": "Issuer", "name": name},
        }
        return (
            *(_inject_authority(obj, component) for obj in objects),
            *(issuer, {"apiVersion": api, "kind": "Certificate", "metadata": metadata, "spec": spec}),
        )
    return objects


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
    return tuple(_trust_authority(obj, authority) for obj in objects)


def _trust_authority(obj: JSON, authority: bytes) -> JSON:
    """Returns a definition whose conversion webhook trusts the authority; other objects as they are."""
    if not _has_conversion_webhook(obj):
        return obj
    conversion = obj["spec"]["conversion"]
    client = {**conversion["webhook"]["clientConfig"], "caBundle": base64.b64encode(authority).decode()}
    webhook = {**conversion["webhook"], "clientConfig": client}
    return {**obj, "spec": {**obj["spec"], "conversion": {**conversion, "webhook": webhook}}}


def _has_conversion_webhook(obj: JSON) -> bool:
    return definition(obj) and obj["spec"].get("conversion", {}).get("strategy") == "Webhook"


def _verified_by_secret(obj: JSON, component: Component) -> JSON:
    """Returns the monitor with the Secret's authority: OpenShift's file is not there."""
    if obj["kind"] != "ServiceMonitor":
        return obj
    authority = {"ca": {"secret": {"name": secret_name(component), "key": "ca.crt"}}}
    endpoints = [
        {**endpoint, "tlsConfig": {k: v for k, v in endpoint["tlsConfig"].items() if k != "caFile"} | authority}
        for endpoint in obj["spec"]["endpoints"]
    ]
    return {**obj, "spec": {**obj["spec"], "endpoints": endpoints}}


def _inject_authority(obj: JSON, component: Component) -> JSON:
    """Returns the definition annotated so that cert-manager injects the webhook's authority."""
    if not _has_conversion_webhook(obj):
        return obj
    source = f"{component.namespace}/{secret_name(component)}"
    annotations = {**obj["metadata"].get("annotations", {}), "cert-manager.io/inject-ca-from": source}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


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
    kept_objects = tuple(obj for obj in objects if obj["metadata"]["name"] != APPLIES)
    return tuple(_namespace(_role(with_pod(_require_scc(obj), _pod))) for obj in kept_objects)


def _pod(pod: JSON) -> JSON:
    pod = without_volumes(with_arguments(pod, *_ARGUMENTS), "preflight-reports", "update-payloads")
    pod = with_container(pod, _container)
    return {**pod, "securityContext": {**pod["securityContext"], "runAsNonRoot": True, "runAsUser": NOBODY}}


def _container(container: JSON) -> JSON:
    security = {k: v for k, v in container["securityContext"].items() if k not in ("runAsUser", "seLinuxOptions")}
    arguments = [arg for arg in container["args"] if not arg.startswith("--report-dir=")]
    return {**container, "args": arguments, "securityContext": security}


def _require_scc(obj: JSON) -> JSON:
    """Returns a Deployment with SecurityContextConstraints `nonroot-v2` pinned; other objects as they are."""
    if obj["kind"] != "Deployment":
        return obj
    template = obj["spec"]["template"]
    metadata = template["metadata"]
    annotations = {**metadata.get("annotations", {}), "openshift.io/required-scc": "nonroot-v2"}
    template = {**template, "metadata": {**metadata, "annotations": annotations}}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def _role(obj: JSON) -> JSON:
    if obj["kind"] != "ClusterRole":
        return obj
    return {**obj, "rules": [_without_privileged(rule) for rule in obj["rules"]]}


def _without_privileged(rule: JSON) -> JSON:
    if "securitycontextconstraints" not in rule.get("resources", ()):
        return rule
    return {**rule, "resourceNames": [name for name in rule["resourceNames"] if name != "privileged"]}


def _namespace(obj: JSON) -> JSON:
    """Returns a Namespace with the pod security level `baseline`, any other object as it is."""
    if obj["kind"] != "Namespace":
        return obj
    levels = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in _LEVELS}
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **levels}}}


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
    objects = tuple(obj for name in sorted(files) for obj in _read_manifests(name, files[name], options))
    for change in _changes(component, options):
        objects = change(objects)
    return tuple(sorted(objects, key=_rank))


def _changes(component: Component, options: Options) -> tuple[Callable[[Objects], Objects], ...]:
    """Returns the changes to the manifests for the options, in the order in which they are made."""
    on_kubernetes = options.platform is Platform.KUBERNETES
    return (
        without_release_annotations,
        *((reduce_privileges,) if component == OPERATOR and options.least_privilege else ()),
        *(() if options.monitoring else (without_monitoring,)),
        *(
            (lambda objects: plain_kubernetes.adapt_to_plain_kubernetes(objects, component, options),)
            if on_kubernetes
            else ()
        ),
        lambda objects: with_certificates(objects, component, options),
        lambda objects: read_by(objects, options.prometheus),
        lambda objects: move_to_namespace(objects, component.namespace, options.namespace),
    )


def _read_manifests(name: str, data: bytes, options: Options) -> Objects:
    """Returns the objects of one manifest file, rendered with the image that is to be installed."""
    # Only the manifests of a release are templates, by the name of their files.
    text = data.decode()
    if name.startswith("0000_"):
        text = render(text, Values(options.image, PROFILES[options.platform]))
    documents = kyaml.load_all(text, name=name)
    return tuple(_with_image(document, options.image) for document in documents if document)


def _with_image(obj: JSON, image: str) -> JSON:
    changed: JSON = map_texts(obj, lambda text: image if text == PLACEHOLDER else text)
    return changed


def without_release_annotations(objects: Objects) -> Objects:
    """Returns `objects` without the annotations that only a release's operator reads."""
    return tuple(_without_annotations(obj) for obj in objects)


def _without_annotations(obj: JSON) -> JSON:
    """Returns the object without the annotations that only release payloads use."""
    metadata = dict(obj["metadata"])
    annotations = metadata.pop("annotations", None) or {}
    kept_annotations = {
        key: value for key, value in annotations.items() if not key.partition("/")[0].endswith(_OF_RELEASES)
    }
    return {**obj, "metadata": {**metadata, **({"annotations": kept_annotations} if kept_annotations else {})}}


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
