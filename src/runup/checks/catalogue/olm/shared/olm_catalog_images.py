"""Which image a catalog of operators will have once the cluster is at the target: as the platform chooses it. Pure.

Sources: operator-lifecycle-manager, `pkg/controller/registry/catalogtemplate` and `pkg/lib/catalogsource` (annotation
`olm.catalogImageTemplate` and its variables); operator-marketplace, `defaults/` (each release's own CatalogSources,
whose tags are its minor version) and `pkg/defaults` (the annotation by which it knows them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.api.scheme import resource_of
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.decide.model import Context

TEMPLATE = "olm.catalogImageTemplate"
MANAGED_BY = "operatorframework.io/managed-by"
MARKETPLACE = "marketplace-operator"
# Others have copied that annotation to catalogs of their own, so the names count as well.
DEFAULTS = frozenset(
    NamespacedName("openshift-marketplace", name)
    for name in ("certified-operators", "community-operators", "redhat-marketplace", "redhat-operators")
)
_VARIABLES = ("{kube_major_version}", "{kube_minor_version}", "{kube_patch_version}")
_KUBERNETES = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
_OF_A_RELEASE = re.compile(r"(?P<repository>[^@]+):v\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Expected:
    """The image on the target; neither `image` nor `problem` (why that is not known): the update does not touch it."""

    image: str = ""
    problem: str = ""


UNTOUCHED = Expected()


def of_subscription(sub: Subscription, sources: Iterable[CatalogSource], context: Context) -> Expected:
    """What the catalog of a Subscription will be."""
    if named := context.catalogs.named.get(sub.spec.source):
        return Expected(named)
    place = NamespacedName(sub.spec.source_namespace or sub.metadata.namespace, sub.spec.source)
    found = next((each for each in sources if key_of(each) == place), None)
    if found is None:
        return Expected(problem=f"the cluster has no CatalogSource {place.namespace}/{place.name}")
    return of_source(found, context)


def of_source(source: CatalogSource, context: Context) -> Expected:
    """What a CatalogSource will be: what the release brings, else what its template or its maker chooses."""
    brought = _brought(source, context.manifests or ())
    annotations = {**source.metadata.annotations, **_texts(brought, "metadata", "annotations")}
    if TEMPLATE in annotations:
        return _changed(source, _resolved(annotations[TEMPLATE], context.target_kubernetes))
    image = _texts(brought, "spec").get("image", "")
    return _changed(source, Expected(image or _by_default(source, context)))


def wanted(
    subscriptions: Iterable[Subscription], sources: Iterable[CatalogSource], context: Context
) -> dict[str, frozenset[str]]:
    """The images that the target brings, and which packages of each are installed."""
    there = tuple(sources)
    found: dict[str, frozenset[str]] = {}
    for sub in subscriptions:
        image = of_subscription(sub, there, context).image if sub.status.installed_csv else ""
        if image:
            found[image] = found.get(image, frozenset()) | {sub.spec.name}
    return found


def _changed(source: CatalogSource, expected: Expected) -> Expected:
    return UNTOUCHED if expected.image == source.spec.image else expected


def _resolved(template: str, kubernetes: str) -> Expected:
    version = _KUBERNETES.fullmatch(kubernetes)
    if version is None and any(variable in template for variable in _VARIABLES):
        return Expected(problem=f"which Kubernetes the target has is not known, by which its {TEMPLATE} chooses")
    for variable, value in zip(_VARIABLES, version.groups() if version else (), strict=False):
        template = template.replace(variable, value)
    if "{" in template:
        return Expected(problem=f"its {TEMPLATE} has variables that only OLM knows: {template[:120]}")
    return Expected(template.strip())


def _by_default(source: CatalogSource, context: Context) -> str:
    """The image that the release's marketplace gives one of its own; any other keeps its image."""
    own = key_of(source) in DEFAULTS and source.metadata.annotations.get(MANAGED_BY) == MARKETPLACE
    match = _OF_A_RELEASE.fullmatch(source.spec.image) if own else None
    if match is None:
        return source.spec.image
    return f"{match['repository']}:v{context.target.major}.{context.target.minor}"


def _brought(source: CatalogSource, manifests: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    of_olm = resource_of(CatalogSource)
    for each in manifests:
        if (each.get("kind"), each.get("apiVersion")) != (of_olm.kind, of_olm.api_version):
            continue
        named = _texts(each, "metadata")
        if NamespacedName(named.get("namespace", ""), named.get("name", "")) == key_of(source):
            return each
    return {}


def _texts(obj: Mapping[str, Any], *path: str) -> dict[str, str]:
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, Mapping) else {}
