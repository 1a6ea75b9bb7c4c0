"""A live cluster read for the rules of inclusion: ClusterVersion, FeatureGate, the operator's environment.

What may not be read is kept as the reason, by name; only ClusterVersion must be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.errors import ApiError, NotFound
from runup.api.config_v1 import FeatureGate
from runup.cli import cluster as clusters
from runup.cli.errors import message_of
from runup.release.decide.cluster import PROFILE_VARIABLE, ClusterFacts
from runup.release.decide.inclusion import DEFAULT_PROFILE

OPERATOR = "cluster-version-operator"
T = TypeVar("T")


def read(client: SyncClient) -> ClusterFacts:
    """The cluster's facts; raises CommandError without a ClusterVersion, KubeError where the server does not answer."""
    errors: dict[str, str] = {}
    version = clusters.read(client)
    gate = _try("gate", lambda: client.send(calls.get(FeatureGate, "cluster")), errors)
    resource = resource_of(Deployment)
    deployment = _try("operator", lambda: client.send(calls.get_raw(resource, OPERATOR, clusters.namespace())), errors)
    return ClusterFacts(version, gate, _environment(deployment or {}), errors)


def profile(facts: ClusterFacts) -> str:
    """The cluster's profile; the usual one where the operator's Deployment names none, or may not be read."""
    return facts.environment.get(PROFILE_VARIABLE) or DEFAULT_PROFILE


def _try(name: str, question: Callable[[], T], errors: dict[str, str]) -> T | None:
    """What `question` answers; None where there is no such object, and with a reason where it may not be read."""
    try:
        return question()
    except NotFound:
        return None
    except (ApiError, codec.DecodeError) as error:
        errors[name] = message_of(error)
        return None


def _environment(deployment: dict[str, Any]) -> dict[str, str]:
    """Of the operator's container; what comes from elsewhere than the Deployment is not among them."""
    found: Any = deployment
    for key in ("spec", "template", "spec", "containers"):
        found = found.get(key) if isinstance(found, dict) else None
    return {
        str(entry["name"]): str(entry["value"])
        for container in (found if isinstance(found, list) else ())
        if isinstance(container, dict) and container.get("name") == OPERATOR
        for entry in container.get("env") or ()
        if isinstance(entry, dict) and "value" in entry
    }
