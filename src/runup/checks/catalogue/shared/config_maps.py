"""The ConfigMaps of the cluster's configuration, by namespace, and of each only what checks look at.

`openshift-config-managed` holds dashboards and signatures by the megabyte; what is kept are gates, bundles of
certificate authorities, and names.
"""

from __future__ import annotations

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.checks.decide.reads import Slim

BUNDLE = "ca-bundle.crt"
GATES, ACKS = "admin-gates", "admin-acks"


def _slim(config_map: ConfigMap) -> ConfigMap:
    metadata = config_map.metadata
    whole = metadata.name in (GATES, ACKS)
    return ConfigMap(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        ),
        data={key: value for key, value in config_map.data.items() if whole or key == BUNDLE},
    )


def _of(namespace: str) -> Slim:
    return Slim("", "v1", "ConfigMap", "configmaps", namespaced=True, type=ConfigMap, keep=_slim, namespace=namespace)


CONFIG, MANAGED = _of("openshift-config"), _of("openshift-config-managed")
