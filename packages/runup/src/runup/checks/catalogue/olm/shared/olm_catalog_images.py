"""Decides which image an operator catalog will have on the target, as the platform chooses it. Pure.

Sources: operator-lifecycle-manager, `pkg/controller/registry/catalogtemplate` and `pkg/lib/catalogsource` (annotation
`olm.catalogImageTemplate` and its variables); operator-marketplace, `defaults/` (each release's own CatalogSources,
whose tags are its minor version) and `pkg/defaults` (the annotation by which it knows them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubekit.api.meta_v1 import NamespacedName, key_of
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.writing import Context, resource_of

TEMPLATE = "olm.catalogImageTemplate"
MANAGED_BY = "operatorframework.io/managed-by"
MARKETPLACE = "marketplace-operator"
# Users have copied that annotation to custom catalogs, so the names count as well.
DEFAULTS = frozenset(
    NamespacedName("openshift-marketplace", name)
    for name in ("certified-operators", "community-operators", "redhat-marketplace", "redhat-operators")
)
_VARIABLES = ("{kube_major_version}", "{kube_minor_version}", "{kube_patch_version}")
_KUBERNETES = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
_RELEASE_TAGGED_IMAGE = re.compile(r"(?P<repository>[^@]+):v\d+\.\d+")


class Expected(msgspec.Struct, frozen=True):
    """The image of a catalog on the target, or in `problem` why it is not known.

    If both are empty, the update does not change the image.
    """

    image: str = ""
    problem: str = ""


IMAGE_UNCHANGED = Expected()


def expected_image(sub: Subscription, sources: Iterable[CatalogSource], context: Context) -> Expected:
    """Returns the image that the catalog of a Subscription will have."""
    # An image that the user named counts before all others.
    if catalog_image := context.catalogs.named.get(sub.spec.source):
        return Expected(catalog_image)
    source_key = NamespacedName(sub.spec.source_namespace or sub.metadata.namespace, sub.spec.source)
    catalog_source = next((catalog for catalog in sources if key_of(catalog) == source_key), None)
    if catalog_source is None:
        return Expected(problem=f"the cluster has no CatalogSource {source_key.namespace}/{source_key.name}")
    return image_of_source(catalog_source, context)


def image_of_source(source: CatalogSource, context: Context) -> Expected:
    """Returns the image that a CatalogSource will have: by its template, else as the release or its owner chooses."""
    kind = resource_of(CatalogSource)
    release_manifest: Mapping[str, Any] = {}
    for manifest in context.manifests or ():
        metadata = _strings_at(manifest, "metadata")
        if (manifest.get("kind"), manifest.get("apiVersion")) == (kind.kind, kind.api_version) and NamespacedName(
            metadata.get("namespace", ""), metadata.get("name", "")
        ) == key_of(source):
            release_manifest = manifest
            break
    # The update applies the release's annotations over those in the cluster.
    annotations = {**source.metadata.annotations, **_strings_at(release_manifest, "metadata", "annotations")}
    if TEMPLATE in annotations:
        expected = _resolve_template(annotations[TEMPLATE], context.target_kubernetes)
    else:
        image = source.spec.image
        # The release's marketplace gives its own catalogs the tag of the release; any other keeps its image.
        is_default = key_of(source) in DEFAULTS and source.metadata.annotations.get(MANAGED_BY) == MARKETPLACE
        if is_default and (match := _RELEASE_TAGGED_IMAGE.fullmatch(image)):
            image = f"{match['repository']}:v{context.target.major}.{context.target.minor}"
        expected = Expected(_strings_at(release_manifest, "spec").get("image", "") or image)
    return IMAGE_UNCHANGED if expected.image == source.spec.image else expected


def catalog_images_of_target(
    subscriptions: Iterable[Subscription], sources: Iterable[CatalogSource], context: Context
) -> dict[str, frozenset[str]]:
    """Returns the images that the target brings, and which packages of each are installed."""
    catalog_sources = tuple(sources)
    packages_by_image: dict[str, frozenset[str]] = {}
    for sub in subscriptions:
        image = expected_image(sub, catalog_sources, context).image if sub.status.installed_csv else ""
        if image:
            packages_by_image[image] = packages_by_image.get(image, frozenset()) | {sub.spec.name}
    return packages_by_image


def _resolve_template(template: str, kubernetes: str) -> Expected:
    """Returns the image of a template with its variables replaced, or why that is not possible."""
    version = _KUBERNETES.fullmatch(kubernetes)
    if version is None and any(variable in template for variable in _VARIABLES):
        return Expected(problem=f"which Kubernetes the target has is not known, by which its {TEMPLATE} chooses")
    for variable, value in zip(_VARIABLES, version.groups() if version else (), strict=False):
        template = template.replace(variable, value)
    if "{" in template:
        return Expected(problem=f"its {TEMPLATE} has variables that only OLM knows: {template[:120]}")
    return Expected(template.strip())


def _strings_at(obj: Mapping[str, Any], *path: str) -> dict[str, str]:
    """Returns the strings of the mapping at `path`, or an empty one if there is no mapping."""
    current: Any = obj
    for name in path:
        current = current.get(name) if isinstance(current, Mapping) else None
    return (
        {key: value for key, value in current.items() if isinstance(value, str)} if isinstance(current, Mapping) else {}
    )
