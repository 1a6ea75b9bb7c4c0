"""Reads a live cluster for the rules of inclusion: ClusterVersion, FeatureGate, the operator's environment.

For an object that may not be read the reason is kept, by name; only ClusterVersion is required.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.error_types import InputError
from kubekit.kube import api_errors, calls, client_sync
from kubekit.oci.access import Access
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.process import clusterversion_client as clusters
from runup.release.control import release_location
from runup.release.decide import inclusion_reasons, payload

T = TypeVar("T")


def read(client: client_sync.SyncClient) -> inclusion_reasons.ClusterFacts:
    """Returns the cluster's facts.

    Raises InputError without a ClusterVersion, KubeError if the server does not answer.
    """
    errors: dict[str, str] = {}
    version = clusters.read(client)
    gate = _try("gate", lambda: client.send(calls.get(FeatureGate, "cluster")), errors)
    resource = resource_of(Deployment)
    deployment = _try(
        "operator",
        lambda: client.send(calls.get_raw(resource, inclusion_reasons.OPERATOR, clusters.namespace())),
        errors,
    )
    return inclusion_reasons.ClusterFacts(version, gate, inclusion_reasons.environment_of(deployment or {}), errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedOnCluster:
    """Explanations of manifests of the release in `image`, empty if it has none of that name."""

    release: payload.Payload
    image: str
    digest: str
    cluster: inclusion_reasons.DescribedCluster
    manifests: tuple[inclusion_reasons.Explained, ...]


def explain_on_cluster(
    client: client_sync.SyncClient, access: Access, *, image: str, kind: str, name: str, namespace: str
) -> ExplainedOnCluster:
    """Explains why the cluster gets the manifests of that name; without `image`, of the release that it runs.

    Raises InputError, KubeError, OciError and PayloadError.
    """
    facts = read(client)
    image = image or release_image_of(facts.cluster_version)
    release, digest = release_location.load(image, access, profile=profile(facts), keep_going=True)
    cluster = inclusion_reasons.describe(facts, major=release.metadata.semver.major)
    manifests = inclusion_reasons.manifests_named((*release.manifests, *release.checks), kind, name, namespace)
    return ExplainedOnCluster(
        release=release,
        image=image,
        digest=digest,
        cluster=cluster,
        manifests=tuple(
            inclusion_reasons.explain_manifest(each, cluster.filters, cluster.unreadable) for each in manifests
        ),
    )


def profile(facts: inclusion_reasons.ClusterFacts) -> str:
    """Returns the cluster's profile; the default if the operator's Deployment has none or may not be read."""
    return inclusion_reasons.profile_in(facts.environment)


def _try(name: str, question: Callable[[], T], errors: dict[str, str]) -> T | None:
    """Returns the result of `question`; None if there is no such object, or if it may not be read, with the reason in
    `errors`.
    """
    try:
        return question()
    except api_errors.NotFound:
        return None
    except (api_errors.ApiError, codec.DecodeError) as error:
        errors[name] = api_errors.message_of(error)
        return None


def release_image_of(version: ClusterVersion) -> str:
    """Returns the image of the release that the cluster runs or updates to; raises InputError if it does not exist."""
    image = version.status.desired.image
    if not image:
        raise InputError("ClusterVersion names no image under status.desired; say which release with --release IMAGE")
    return image
