"""Reads the operators that administrators installed with OLM, for all checks of them.

OLM copies a ClusterServiceVersion into every namespace that its operator watches; the copies are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from kubekit.lang.version import Version
from runup.api import olm_v1alpha1
from runup.api.olm_v1alpha1 import ClusterServiceVersion, InstallPlan, PackageChannel, PackageManifest, Subscription
from runup.checks.decide.reads import Lookup
from runup.checks.writing import DEFINITIONS, Context, Resource, Slim, Snapshot, resource_of, slim_metadata

# operator-framework/api, PropertiesAnnotationKey; OLM writes it on what it installs.
PROPERTIES = "operatorframework.io/properties"
# The same as authors write it in a version and as a catalog shows it: a list without the object around it.
HEAD_PROPERTIES = "olm.properties"
MAX_OPENSHIFT = "olm.maxOpenShiftVersion"
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.\d+)?(?:[-+].*)?")


_CSV = resource_of(ClusterServiceVersion)
CSVS = Slim(
    group=_CSV.group,
    version=_CSV.version,
    kind=_CSV.kind,
    plural=_CSV.plural,
    namespaced=True,
    type=ClusterServiceVersion,
    # Without the annotations that hold pictures and examples.
    keep=lambda csv: msgspec.structs.replace(
        csv,
        metadata=slim_metadata(
            csv,
            labels=csv.metadata.labels,
            annotations={key: text for key, text in csv.metadata.annotations.items() if key == PROPERTIES},
        ),
    ),
    label_selector="!olm.copiedFrom",
)
READS: tuple[Resource, ...] = (CSVS, DEFINITIONS)


def _slim_package(package: PackageManifest) -> PackageManifest:
    """Returns the package without descriptions, examples and pictures; of a channel the newest version's properties."""
    channels = []
    for channel in package.status.channels:
        properties = channel.current_csv_desc.annotations.get(HEAD_PROPERTIES)
        kept = olm_v1alpha1.HeadDescription(annotations={} if properties is None else {HEAD_PROPERTIES: properties})
        channels.append(msgspec.structs.replace(channel, current_csv_desc=kept))
    return PackageManifest(
        metadata=slim_metadata(package), status=msgspec.structs.replace(package.status, channels=tuple(channels))
    )


# A list of all packages has tens of megabytes, so only those of installed operators are requested.
PACKAGES = Lookup(
    group="packages.operators.coreos.com",
    version="v1",
    kind="PackageManifest",
    plural="packagemanifests",
    namespaced=True,
    type=PackageManifest,
    keep=_slim_package,
    of=resource_of(Subscription),
    names=lambda sub: (sub.metadata.namespace, sub.spec.name),
)


class BadMaximum(ValueError):
    """Error raised if `olm.maxOpenShiftVersion` is there and cannot be read; the message says what it is instead."""


def installed(snapshot: Snapshot) -> Sequence[ClusterServiceVersion]:
    """Returns every operator's version, in a fixed order; none if OLM is not there. Raises Unreadable."""
    csvs: Iterable[ClusterServiceVersion] = snapshot.listed_or_none(CSVS)
    return sorted(csvs, key=lambda csv: (csv.metadata.namespace, csv.metadata.name))


def max_openshift_version(properties: str) -> tuple[int, int] | None:
    """Returns the highest OpenShift minor version that the properties (JSON) allow, None for any. Raises BadMaximum.

    As OLM reads it (operator-lifecycle-manager, pkg/controller/operators/openshift/helpers.go): the highest counts, an
    empty one does not, and one that is not a version is an error.
    """
    if not properties:
        return None
    try:
        decoded = msgspec.json.decode(properties, type=olm_v1alpha1.Properties)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadMaximum(f"properties that are not JSON ({properties[:60]!r})") from error
    versions = []
    for entry in decoded.properties:
        if entry.type == MAX_OPENSHIFT and entry.value != "":
            match = _VERSION.fullmatch(entry.value.strip()) if isinstance(entry.value, str) else None
            if match is None:
                raise BadMaximum(f"{MAX_OPENSHIFT} {str(entry.value)[:60]!r}, which is not a version in quotes")
            versions.append((int(match[1]), int(match[2] or 0)))
    return max(versions, default=None)


def maximum_allows(highest: tuple[int, int] | None, target: Version) -> bool:
    """Returns whether that maximum allows the target."""
    return highest is None or target.minor_version <= highest


def installed_csv_of(csvs: Iterable[ClusterServiceVersion], sub: Subscription) -> ClusterServiceVersion | None:
    """Returns the version that a Subscription has installed, or None."""
    name = sub.status.installed_csv
    return next(
        (csv for csv in csvs if (csv.metadata.name, csv.metadata.namespace) == (name, sub.metadata.namespace)), None
    )


def head_maximum(channel: PackageChannel) -> tuple[int, int] | None:
    """Returns the highest OpenShift minor version that the newest version in a channel names, or None.

    Raises BadMaximum.
    """
    properties = channel.current_csv_desc.annotations.get(HEAD_PROPERTIES, "")
    return max_openshift_version(f'{{"properties":{properties}}}' if properties else "")


def packages_of(packages: Iterable[PackageManifest], sub: Subscription) -> tuple[PackageManifest, ...]:
    """Returns what the catalog of a Subscription has of its package: one manifest, or none."""
    return tuple(
        package
        for package in packages
        if (package.metadata.name, package.metadata.namespace) == (sub.spec.name, sub.metadata.namespace)
        and package.status.catalog_source == sub.spec.source
        and sub.spec.source_namespace in ("", package.status.catalog_source_namespace)
    )


def properties_in_plans(plans: Iterable[InstallPlan], namespace: str, csv: str) -> str | None:
    """Returns the properties with which an install plan brings `csv`, or None if no plan does."""
    for plan in plans:
        if plan.metadata.namespace == namespace:
            for lookup in plan.status.bundle_lookups:
                if lookup.identifier == csv:
                    return lookup.properties
    return None


def target_name(context: Context) -> str:
    """Returns the target's minor version as operators name it, such as 4.16."""
    return f"{context.target.major}.{context.target.minor}"
