"""`operators.coreos.com/v1alpha1` and `olm.operatorframework.io/v1`: the operators that administrators install."""

from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.meta_v1 import Condition, LooseCondition, Object, Wire


class CRDDescription(Wire, frozen=True):
    """A kind that an operator owns or needs; `name` is that of its CustomResourceDefinition."""

    name: str = ""
    version: str = ""
    kind: str = ""


class CRDDescriptions(Wire, frozen=True):
    """`spec.customresourcedefinitions` of a ClusterServiceVersion."""

    owned: tuple[CRDDescription, ...] = ()
    required: tuple[CRDDescription, ...] = ()


class NativeAPI(Wire, frozen=True):
    """An API that is not a custom resource and that an operator requires."""

    group: str = ""
    version: str = ""
    kind: str = ""


class ClusterServiceVersionSpec(Wire, frozen=True):
    """`spec` of a ClusterServiceVersion; `replaces` names the version before it."""

    version: str = ""
    replaces: str = ""
    customresourcedefinitions: CRDDescriptions = CRDDescriptions()
    native_apis: tuple[NativeAPI, ...] = msgspec.field(default=(), name="nativeAPIs")


class ClusterServiceVersionStatus(Wire, frozen=True):
    """`status` of a ClusterServiceVersion; `phase` is Succeeded if the operator runs."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ClusterServiceVersion(Object, frozen=True, kw_only=True):
    """A version of an operator, as OLM installed it."""

    spec: ClusterServiceVersionSpec = ClusterServiceVersionSpec()
    status: ClusterServiceVersionStatus = ClusterServiceVersionStatus()


class SubscriptionSpec(Wire, frozen=True, kw_only=True):
    """`spec` of a Subscription; `name` is the package's."""

    name: str = ""
    channel: str = ""
    source: str = ""
    source_namespace: str = ""
    install_plan_approval: str = ""


class SubscriptionStatus(Wire, frozen=True):
    """`status` of a Subscription; `state` is AtLatestKnown, UpgradeAvailable, UpgradePending or UpgradeFailed."""

    state: str = ""
    current_csv: str = msgspec.field(default="", name="currentCSV")
    installed_csv: str = msgspec.field(default="", name="installedCSV")
    conditions: tuple[LooseCondition, ...] = ()


class Subscription(Object, frozen=True, kw_only=True):
    """The package that an administrator wants, with its catalog and channel."""

    spec: SubscriptionSpec = SubscriptionSpec()
    status: SubscriptionStatus = SubscriptionStatus()


class InstallPlanSpec(Wire, frozen=True):
    """`spec` of an InstallPlan."""

    approval: str = ""
    approved: bool = False
    cluster_service_version_names: tuple[str, ...] = ()


class BundleLookup(Wire, frozen=True):
    """A bundle that a plan installs; `properties` is JSON: `{"properties": [{"type": ..., "value": ...}]}`."""

    identifier: str = ""
    replaces: str = ""
    properties: str = ""


class InstallPlanStatus(Wire, frozen=True):
    """`status` of an InstallPlan; `phase` is Complete, RequiresApproval, Installing, Planning or Failed."""

    phase: str = ""
    message: str = ""
    bundle_lookups: tuple[BundleLookup, ...] = ()


class InstallPlan(Object, frozen=True, kw_only=True):
    """The operators that OLM is going to install, or has installed."""

    spec: InstallPlanSpec = InstallPlanSpec()
    status: InstallPlanStatus = InstallPlanStatus()


class HeadDescription(Wire, frozen=True):
    """A catalog's description of the newest version in a channel."""

    annotations: dict[str, str] = {}


class PackageChannel(Wire, frozen=True):
    """A channel of a package, and the newest version in it."""

    name: str = ""
    current_csv: str = msgspec.field(default="", name="currentCSV")
    current_csv_desc: HeadDescription = msgspec.field(default_factory=HeadDescription, name="currentCSVDesc")


class PackageManifestStatus(Wire, frozen=True):
    """`status` of a PackageManifest."""

    catalog_source: str = ""
    catalog_source_namespace: str = ""
    default_channel: str = ""
    channels: tuple[PackageChannel, ...] = ()


class PackageManifest(Object, frozen=True):
    """A package in a catalog on the cluster (packages.operators.coreos.com/v1); each catalog has its own.

    Those of several catalogs may share a name. It can be listed and read, but not watched (operator-lifecycle-manager,
    pkg/package-server/storage).
    """

    status: PackageManifestStatus = PackageManifestStatus()


class ConnectionState(Wire, frozen=True):
    """The state of OLM's connection to a catalog: READY, CONNECTING, TRANSIENT_FAILURE, ..."""

    last_observed_state: str = ""


class CatalogSourceStatus(Wire, frozen=True):
    """`status` of a CatalogSource."""

    connection_state: ConnectionState | None = None
    message: str = ""


class CatalogSourceSpec(Wire, frozen=True):
    """`spec` of a CatalogSource; `image` is empty for a catalog that is not served from an image."""

    image: str = ""


class CatalogSource(Object, frozen=True, kw_only=True):
    """A catalog of operators."""

    spec: CatalogSourceSpec = CatalogSourceSpec()
    status: CatalogSourceStatus = CatalogSourceStatus()


class ClusterExtensionStatus(Wire, frozen=True):
    """`status` of a ClusterExtension."""

    conditions: tuple[Condition, ...] = ()


class ClusterExtension(Object, frozen=True):
    """An operator that OLM v1 installed."""

    status: ClusterExtensionStatus = ClusterExtensionStatus()


class Property(Wire, frozen=True):
    """A property of a bundle; `value` is any JSON."""

    type: str = ""
    value: Any = None


class Properties(Wire, frozen=True):
    """The text of annotation `operatorframework.io/properties`, and of a bundle's lookup."""

    properties: tuple[Property, ...] = ()
