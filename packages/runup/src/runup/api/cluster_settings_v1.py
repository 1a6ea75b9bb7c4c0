"""`config.openshift.io/v1`: what an administrator sets for the whole cluster, as far as runup reads it.

These types are separate from ClusterVersion's, because most commands need none of them.
"""

from typing import Any

import msgspec

from kubekit.api.meta_v1 import LooseCondition, Object, Wire


class FeatureGateAttributes(Wire, frozen=True):
    """A feature gate by name."""

    name: str = ""


class FeatureGateDetails(Wire, frozen=True):
    """The feature gates that a version of the cluster has enabled and disabled."""

    version: str = ""
    enabled: tuple[FeatureGateAttributes, ...] = ()
    disabled: tuple[FeatureGateAttributes, ...] = ()


class CustomFeatureGates(Wire, frozen=True):
    """The feature gates that an administrator chose for the set CustomNoUpgrade."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class FeatureGateSpec(Wire, frozen=True):
    """`spec` of FeatureGate; the empty feature set is the default one."""

    feature_set: str = ""
    custom_no_upgrade: CustomFeatureGates | None = None


class FeatureGateStatus(Wire, frozen=True):
    """`status` of FeatureGate, with one entry per version."""

    feature_gates: tuple[FeatureGateDetails, ...] = ()


class FeatureGate(Object, frozen=True, kw_only=True):
    """The singleton `cluster`: feature set and feature gates."""

    spec: FeatureGateSpec = FeatureGateSpec()
    status: FeatureGateStatus = FeatureGateStatus()


class ClusterNetworkEntry(Wire, frozen=True):
    """A range of pod addresses."""

    cidr: str = ""


class NetworkSpec(Wire, frozen=True):
    """`spec` of Network."""

    network_type: str = ""
    cluster_network: tuple[ClusterNetworkEntry, ...] = ()
    service_network: tuple[str, ...] = ()


class NetworkStatus(Wire, frozen=True, kw_only=True):
    """`status` of Network: the configuration in force."""

    network_type: str = ""
    cluster_network: tuple[ClusterNetworkEntry, ...] = ()
    service_network: tuple[str, ...] = ()
    # What must be changed, while that is under way.
    migration: dict[str, Any] | None = None
    conditions: tuple[LooseCondition, ...] = ()


class Network(Object, frozen=True, kw_only=True):
    """The singleton `cluster`: pod and service networks."""

    spec: NetworkSpec = NetworkSpec()
    status: NetworkStatus = NetworkStatus()


class ConfigNodeSpec(Wire, frozen=True):
    """`spec` of the configuration of nodes; `cgroup_mode` is v1, v2 or empty for the release's own choice."""

    cgroup_mode: str = ""


class ConfigNode(Object, frozen=True):
    """The singleton `cluster`: the configuration of every node."""

    spec: ConfigNodeSpec = ConfigNodeSpec()


class RegistrySources(Wire, frozen=True):
    """Registries that nodes may pull from; where `allowed` names some, all others are refused."""

    allowed_registries: tuple[str, ...] = ()
    blocked_registries: tuple[str, ...] = ()


class ImageSpec(Wire, frozen=True):
    """`spec` of Image."""

    registry_sources: RegistrySources = RegistrySources()


class Image(Object, frozen=True):
    """The singleton `cluster`: how the cluster's nodes and builds treat images and registries."""

    spec: ImageSpec = ImageSpec()


class ImageMirrors(Wire, frozen=True):
    """The mirrors of one source; `mirror_source_policy` says whether the source itself may be asked."""

    source: str = ""
    mirrors: tuple[str, ...] = ()
    mirror_source_policy: str = ""


class ImageDigestMirrorSetSpec(Wire, frozen=True):
    """`spec` of an ImageDigestMirrorSet."""

    image_digest_mirrors: tuple[ImageMirrors, ...] = ()


class ImageDigestMirrorSet(Object, frozen=True):
    """Mirrors for images that are named by digest, as those of a release are."""

    spec: ImageDigestMirrorSetSpec = ImageDigestMirrorSetSpec()


class ConfigMapReference(Wire, frozen=True):
    """A ConfigMap of openshift-config by name."""

    name: str = ""


class ProxySpec(Wire, frozen=True):
    """`spec` of Proxy."""

    http_proxy: str = ""
    https_proxy: str = ""
    trusted_ca: ConfigMapReference = msgspec.field(default=ConfigMapReference(), name="trustedCA")


class Proxy(Object, frozen=True):
    """The singleton `cluster`: the proxy for connections from the cluster to the outside."""

    spec: ProxySpec = ProxySpec()


class SchedulerSpec(Wire, frozen=True):
    """`spec` of Scheduler; `default_node_selector` such as `a=b,c=` is for namespaces without a selector."""

    default_node_selector: str = ""


class Scheduler(Object, frozen=True):
    """The singleton `cluster`: settings of the scheduler."""

    spec: SchedulerSpec = SchedulerSpec()
