"""The update to evaluate: as requested, and as the cluster and the release resolve it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.scheme import Resource
from kubekit.error_types import InputError
from kubekit.lang.version import Version, VersionError
from kubekit.oci.access import Access
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.shared.kubernetes_versions import kubernetes_minor, least_minor
from runup.checks.decide import target_manifests
from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster, is_openshifts, reads_for_cluster
from runup.checks.decide.declared_checks import declared_checks
from runup.checks.decide.kubernetes_path import UpdateOfKubernetes, update_of_kubernetes
from runup.checks.decide.model import Check, Context, Snapshot
from runup.checks.decide.reads import crosses
from runup.checks.decide.results import Header
from runup.clusterversion.decide.targets import check_distance
from runup.facts.facts import Facts
from runup.facts.target_release import TargetRelease
from runup.release.decide.capabilities import enabled_capabilities
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, feature_set_and_gates


class RequestedUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The update to check, as typed: an empty `target` or `source` represents the release's or the cluster's own.

    `catalogs` are images by the name of their CatalogSource; `reads_catalogs` adds those that the target names. An
    `access` of None means that no registry is asked. `helm_releases` are read with the right to list Secrets;
    `api_metrics` are those of the API server of a cluster without a ClusterVersion.
    """

    release: TargetRelease = TargetRelease()
    target: str = ""
    source: str = ""
    image: str = ""
    check_timeout_s: float = 10.0
    prometheus_url: str = ""
    prometheus_ca: str = ""
    catalogs: Mapping[str, str] = msgspec.field(default_factory=dict)
    reads_catalogs: bool = False
    access: Access | None = None
    helm_releases: bool = False
    api_metrics: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One update of one cluster, resolved: its versions, and whatever else decides what the checks answer.

    `source_version` and `target_version` are echoed in the report. `kubernetes` is the version of Kubernetes that the
    target ships, `manifests` are the target's for this cluster, None if they are not known. `image` is the requested
    one, `listed_image` the one that ClusterVersion lists for the target's version; both may be empty.
    """

    source: Version
    target: Version
    source_version: str
    target_version: str
    kind: ClusterKind = ClusterKind.OPENSHIFT
    kubernetes: str = ""
    image: str = ""
    listed_image: str = ""
    namespace: str = ""
    manifests: tuple[Mapping[str, Any], ...] | None = None
    objects: target_manifests.ReleaseObjects | None = None
    preflight_id: str = ""
    engine_version: str = ""
    documentation_base: str = ""
    started: datetime | None = None

    def header(self, now: datetime) -> Header:
        """Returns the fields with which each report of this request begins."""
        return Header(
            source_version=self.source_version,
            target_version=self.target_version,
            started_time=self.started or now,
            preflight_id=self.preflight_id,
            target_image=self.image,
            engine_version=self.engine_version,
            documentation_base=self.documentation_base,
            cluster_kind=self.kind.value,
        )

    def context(self, facts: Facts, now: datetime) -> Context:
        """Returns the context of the checks."""
        return Context(
            source=self.source,
            target=self.target,
            now=now,
            target_kubernetes=self.kubernetes,
            namespace=self.namespace,
            manifests=self.manifests,
            prometheus=facts.prometheus,
            target_image=self.image or self.listed_image,
            kernel_modules=facts.kernel_modules,
            catalogs=facts.catalogs,
            cluster=self.kind,
            release=self.objects,
        )

    def visible(self, snapshot: Snapshot, checks: Iterable[Check]) -> Snapshot:
        """Returns the snapshot for the checks; a cluster without OpenShift is known to have none of its kinds."""
        if self.kind is ClusterKind.OPENSHIFT:
            return snapshot
        return snapshot.without(resource for check in checks for resource in check.reads if is_openshifts(resource))


def release_request(
    release: TargetRelease,
    cluster: ClusterVersion | None,
    gate: FeatureGate | None,
    *,
    source: Version,
    target: Version,
    target_version: str,
    extra: Iterable[Check] = (),
    builtin: Iterable[Check] = CHECKS,
    profile: str = DEFAULT_PROFILE,
    image: str = "",
    namespace: str = "",
    engine_version: str = "",
) -> tuple[Request, tuple[Check, ...]]:
    """Returns the request to update a cluster to a release, and the checks for it: built-in, the release's, `extra`."""
    filters = filters_of(target_version, source, cluster, gate, profile=profile)
    manifests = release.manifests
    request = Request(
        source=source,
        target=target,
        source_version=str(source),
        target_version=target_version,
        kubernetes=release.kubernetes,
        image=image,
        listed_image=_listed_image(cluster, target_version),
        namespace=namespace,
        manifests=None if manifests is None else target_manifests.objects_for_cluster(manifests, filters),
        objects=None if release.objects is None else release.objects.for_cluster(filters),
        engine_version=engine_version,
        documentation_base=release.documentation_base,
    )
    checks = (*builtin, *declared_checks(release.check_files, filters), *extra)
    return request, checks_for_cluster(checks, request.kind)


def _listed_image(cluster: ClusterVersion | None, version: str) -> str:
    listed = cluster.status.listed_updates() if cluster is not None else ()
    return next((release.image for release in listed if release.version == version), "")


def kubernetes_request(
    update: UpdateOfKubernetes,
    *,
    builtin: Iterable[Check] = CHECKS,
    extra: Iterable[Check] = (),
    namespace: str = "",
    engine_version: str = "",
) -> tuple[Request, tuple[Check, ...]]:
    """Returns the request to update a cluster without a ClusterVersion, and the checks for it."""
    request = Request(
        kind=ClusterKind.KUBERNETES,
        source=update.source,
        target=update.target,
        source_version=str(update.source),
        target_version=str(update.target),
        kubernetes=str(update.target),
        namespace=namespace,
        engine_version=engine_version,
    )
    return request, checks_for_cluster((*builtin, *extra), request.kind)


def reads_of(request: Request, checks: Iterable[Check]) -> tuple[Resource, ...]:
    """Returns the kinds that the checks read in this cluster for this update, each once."""
    reads = reads_for_cluster((resource for check in checks for resource in check.reads), request.kind)
    source = least_minor(request.kind, request.source, request.kubernetes)
    # Without a target, no check asks for what is read for changes of versions.
    target = kubernetes_minor(request.kubernetes) or source
    return tuple(resource for resource in reads if crosses(resource, source, target))


def filters_of(
    target_version: str,
    source: Version,
    cluster: ClusterVersion | None,
    gate: FeatureGate | None,
    *,
    profile: str = DEFAULT_PROFILE,
) -> Filters:
    """Returns the manifest rules that select the release's checks and manifests for this cluster.

    No feature set or gate is assumed if the FeatureGate is missing. The capabilities are those that the cluster will
    have: those it asks for, and those it has and cannot turn off.
    """
    feature_set, gates = feature_set_and_gates(gate, str(source))
    capabilities = None
    if cluster is not None:
        enabled = cluster.status.capabilities.enabled_capabilities
        capabilities = enabled_capabilities(cluster.spec.capabilities, gates, enabled)
    return Filters(
        feature_set=feature_set,
        gates=gates,
        major=Version(target_version).major,
        profile=profile,
        capabilities=capabilities,
        overrides=cluster.spec.overrides if cluster else (),
    )


def requested_kubernetes_update(requested: RequestedUpdate, running: str) -> UpdateOfKubernetes:
    """Returns source and target for a cluster without a ClusterVersion that runs the Kubernetes version `running`.

    Raises Terminal for versions between which no update leads, and InputError for options about releases.
    """
    if requested.image or requested.release.version or requested.release.check_files:
        raise InputError(
            "the cluster has no ClusterVersion, so no release updates it: leave out --to-image and --release-dir, and "
            "name a version of Kubernetes with --to"
        )
    return update_of_kubernetes(running, requested.source, requested.target)


def target_version(
    typed: str, typed_source: str, release: TargetRelease, image: str, cluster: ClusterVersion | None
) -> str:
    """Returns the typed version, else the release's, else the next minor version.

    Raises Terminal as the operator does, and InputError for a version that is not known.
    """
    version_text = typed or release.version
    running = cluster.status.desired.version if cluster else ""
    if version_text and not (typed_source or running):
        # Without a ClusterVersion only the process in the cluster learns what runs there.
        return str(parse_version(version_text, "target"))
    source = parse_version(typed_source or running, "source")
    if not version_text:
        return f"{source.major}.{source.minor + 1}.0"
    target = str(parse_version(version_text, "target"))
    check_distance(str(source), target, another_image=bool(image or release.version))
    return target


def parse_version(text: str, role: str) -> Version:
    """Returns the source or target version. Raises InputError that names the flag to give it with."""
    try:
        return Version(text)
    except VersionError as error:
        hint = "give it with --from" if role == "source" else "give it with --to"
        raise InputError(f"the {role} version is not known: {error}; {hint}") from error


def images_of(typed: Sequence[str]) -> dict[str, str]:
    """Returns the images as typed, by the name of their CatalogSource. Raises InputError."""
    image_by_source: dict[str, str] = {}
    for text in typed:
        source, _, image = text.partition("=")
        if not source or not image:
            raise InputError(f"--target-catalog {text}: give SOURCE=IMAGE, SOURCE being the name of a CatalogSource")
        image_by_source[source] = image
    return image_by_source


@dataclass(frozen=True, slots=True)
class JobFlags:
    """The options of `--in-cluster` as typed. An empty `image` means this release's own."""

    image: str = ""
    timeout_s: int = 600
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options as typed."""

    to: str
    from_: str
    to_image: str
    release_dir: str
    dumps: tuple[str, ...]
    # (form, file) of each output; the file of what is printed is `-`.
    outputs: tuple[tuple[str, str], ...]
    fail_on: str
    suppressions: str
    check_timeout_s: float
    prometheus_url: str = ""
    prometheus_ca: str = ""
    catalogs: tuple[str, ...] = ()
    reads_catalogs: bool = False
    verbose: bool = False
    inner_registries: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    helm_releases: bool = False
    api_metrics: bool = False
    # None: the checks run on this machine.
    job: JobFlags | None = None
    # The folder in which every report is kept, and the earlier result beyond which only what is new counts.
    store: str = ""
    baseline: str = ""
