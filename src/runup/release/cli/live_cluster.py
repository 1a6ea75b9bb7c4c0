"""Reads a live cluster for the rules of inclusion: ClusterVersion, FeatureGate, the operator's environment.

For an object that may not be read the reason is kept, by name; only ClusterVersion is required.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import FeatureGate
from runup.cli import clusterversion_client as clusters
from runup.cli.errors import message_of
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.inclusion_input import PROFILE_VARIABLE, ClusterFacts

OPERATOR = "cluster-version-operator"
T = TypeVar("T")


def read(client: SyncClient) -> ClusterFacts:
    """Returns the cluster's facts.

    Raises CommandError without a ClusterVersion, KubeError if the server does not answer.
    """
    errors: dict[str, str] = {}
    version = clusters.read(client)
    gate = _try("gate", lambda: client.send(calls.get(FeatureGate, "cluster")), errors)
    resource = resource_of(Deployment)
    deployment = _try("operator", lambda: client.send(calls.get_raw(resource, OPERATOR, clusters.namespace())), errors)
    return ClusterFacts(version, gate, _environment(deployment or {}), errors)


def profile(facts: ClusterFacts) -> str:
    """Returns the cluster's profile; the default if the operator's Deployment has none or may not be read."""
    return facts.environment.get(PROFILE_VARIABLE) or DEFAULT_PROFILE


def _try(name: str, question: Callable[[], T], errors: dict[str, str]) -> T | None:
    """Returns the result of `question`; None if there is no such object, or if it may not be read, with the reason in
    `errors`.
    """
    try:
        return question()
    except NotFound:
        return None
    except (ApiError, codec.DecodeError) as error:
        errors[name] = message_of(error)
        return None


def _environment(deployment: dict[str, Any]) -> dict[str, str]:
    """Returns the environment of the operator's container, without values from ConfigMaps or Secrets."""
    containers: Any = deployment
    for key in ("spec", "template", "spec", "containers"):
        containers = containers.get(key) if isinstance(containers, dict) else None
    return {
        str(entry["name"]): str(entry["value"])
        for container in (containers if isinstance(containers, list) else ())
        if isinstance(container, dict) and container.get("name") == OPERATOR
        for entry in container.get("env") or ()
        if isinstance(entry, dict) and "value" in entry
    }
