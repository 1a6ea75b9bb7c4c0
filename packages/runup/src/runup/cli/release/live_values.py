"""Reads the cluster's values for objects of a release: proxy, TLS profile, internal address; each once, if needed.

A value that may not be read is noted: an object that needs it would be shown other than the operator applies it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound, message_of
from kubekit.kube.client_sync import SyncClient
from runup.applying.decide.rendering import INJECT_PROXY, INJECT_TLS, ClusterValues, Proxy
from runup.process import clusterversion_client as clusters
from runup.process import tls_profile
from runup.release.decide.inclusion_reasons import OPERATOR
from runup.release.decide.manifest import Manifest

_PORT = "443"
JSON = dict[str, Any]


def read(client: SyncClient, manifests: Iterable[Manifest], owner_uid: str) -> tuple[ClusterValues, list[str]]:
    """Returns the values for `manifests`, and notes about those that could not be read."""
    annotations = [manifest.annotations or {} for manifest in manifests]
    notes: list[str] = []
    proxy: JSON = {}
    if any(INJECT_PROXY in manifest_annotations for manifest_annotations in annotations):
        proxy = _mapping_at(_object(client, "Proxy", "proxies", notes), "status")
    profile = None
    if any(manifest_annotations.get(INJECT_TLS) == "true" for manifest_annotations in annotations):
        api_server = _object(client, "APIServer", "apiservers", notes)
        profile = tls_profile.profile_of({"spec": _mapping_at(api_server, "spec")}) if api_server else None
    infrastructure = _mapping_at(_object(client, "Infrastructure", "infrastructures", notes), "status")
    host, port = _host_and_port(str(infrastructure.get("apiServerInternalURI") or ""))
    return (
        ClusterValues(
            owner_uid=owner_uid,
            proxy=Proxy(*(str(proxy.get(key) or "") for key in ("httpProxy", "httpsProxy", "noProxy"))),
            operator=(clusters.namespace(), OPERATOR),
            internal_host=host,
            internal_port=port,
            tls=profile,
        ),
        notes,
    )


def _object(client: SyncClient, kind: str, plural: str, notes: list[str]) -> JSON:
    """Returns the object `cluster` of a kind; empty with a note if it cannot be read."""
    resource = Resource("config.openshift.io", "v1", kind, plural, namespaced=False)
    try:
        return client.send(calls.get_raw(resource, "cluster"))
    except NotFound:
        return {}
    except (ApiError, codec.DecodeError) as error:
        notes.append(f"{kind} cluster could not be read, so what it gives to objects is not shown: {message_of(error)}")
        return {}


def _mapping_at(live_object: JSON, key: str) -> JSON:
    value = live_object.get(key)
    return value if isinstance(value, dict) else {}


def _host_and_port(text: str) -> tuple[str, str]:
    """Returns the host and port of a URL, the default port if it names none; both empty if it is no URL."""
    try:
        url = urlsplit(text)
        return (url.hostname, str(url.port or _PORT)) if url.hostname else ("", "")
    except ValueError:
        return "", ""
