"""Declares how the ConfigMaps of the cluster's configuration are read: by namespace, and only what checks look at.

`openshift-config-managed` holds megabytes of dashboards and signatures; only gates, bundles of certificate authorities
and names are kept.
"""

from __future__ import annotations

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.checks.decide.reads import Slim

BUNDLE = "ca-bundle.crt"
GATES, ACKS = "admin-gates", "admin-acks"


def _slim_config_map(config_map: ConfigMap) -> ConfigMap:
    """Returns the ConfigMap with its CA bundle only, or with all data if it holds gates or acknowledgements."""
    metadata = config_map.metadata
    keeps_all = metadata.name in (GATES, ACKS)
    return ConfigMap(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        ),
        data={key: value for key, value in config_map.data.items() if keeps_all or key == BUNDLE},
    )


def _read_of_namespace(namespace: str) -> Slim:
    """Returns the read of one namespace's ConfigMaps."""
    return Slim(
        "", "v1", "ConfigMap", "configmaps", namespaced=True, type=ConfigMap, keep=_slim_config_map, namespace=namespace
    )


CONFIG, MANAGED = _read_of_namespace("openshift-config"), _read_of_namespace("openshift-config-managed")
