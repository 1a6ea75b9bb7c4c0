"""Reads a live cluster for the rules of inclusion: ClusterVersion, FeatureGate, the operator's environment.

For an object that may not be read the reason is kept, by name; only ClusterVersion is required.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound, message_of
from kubekit.kube.client_sync import SyncClient
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.process import clusterversion_client as clusters
from runup.release.decide.inclusion_reasons import OPERATOR, ClusterFacts, environment_of, profile_in

T = TypeVar("T")


def read(client: SyncClient) -> ClusterFacts:
    """Returns the cluster's facts.

    Raises InputError without a ClusterVersion, KubeError if the server does not answer.
    """
    errors: dict[str, str] = {}
    version = clusters.read(client)
    gate = _try("gate", lambda: client.send(calls.get(FeatureGate, "cluster")), errors)
    resource = resource_of(Deployment)
    deployment = _try("operator", lambda: client.send(calls.get_raw(resource, OPERATOR, clusters.namespace())), errors)
    return ClusterFacts(version, gate, environment_of(deployment or {}), errors)


def profile(facts: ClusterFacts) -> str:
    """Returns the cluster's profile; the default if the operator's Deployment has none or may not be read."""
    return profile_in(facts.environment)


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


def release_image_of(version: ClusterVersion) -> str:
    """Returns the image of the release that the cluster runs or updates to; raises InputError if there is none."""
    image = version.status.desired.image
    if not image:
        raise InputError("ClusterVersion names no image under status.desired; say which release with --release IMAGE")
    return image
