"""Decides which objects a component consists of: the manifests of `deploy`, fitted to the cluster and the options.

There is one source, the manifests that a release carries: `runup install`, the kustomizations and the chart are all
made by `component_objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubekit.lang import yaml as kyaml
from runup.install.decide import least_privilege, monitoring_objects, plain_kubernetes, serving_certificates
from runup.install.decide.component import OPERATOR, PLACEHOLDER, Component, Options, Platform
from runup.install.decide.objects import Objects, map_texts
from runup.release.decide.payload import Values, render

JSON = dict[str, Any]
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
        *((least_privilege.reduce_privileges,) if component == OPERATOR and options.least_privilege else ()),
        *(() if options.monitoring else (monitoring_objects.without_monitoring,)),
        *(
            (lambda objects: plain_kubernetes.adapt_to_plain_kubernetes(objects, component, options),)
            if on_kubernetes
            else ()
        ),
        lambda objects: serving_certificates.with_certificates(objects, component, options),
        lambda objects: monitoring_objects.read_by(objects, options.prometheus),
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
