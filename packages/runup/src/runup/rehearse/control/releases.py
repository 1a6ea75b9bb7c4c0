"""Loads the release that a rehearsal applies, by the options that name it, and finds the cluster's ClusterVersion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubekit.error_types import InputError
from kubekit.lang.version import parse
from runup.applying.control.loading import read_folder
from runup.facts.target_release import release_in
from runup.process.names import operator_namespace
from runup.rehearse.control.rehearsal import RehearsalTarget, cluster_version_of
from runup.rehearse.control.rehearsal_run import stuck_operators
from runup.release.decide.payload import FOLDERS, load_payload

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.api.config_v1 import ClusterVersion
    from runup.rehearse.control.cluster_source import ClusterSource


def parse_stuck(declared: Sequence[str]) -> tuple[str, ...]:
    """Returns the ClusterOperators that `--operators` declares stuck. Raises InputError."""
    try:
        return stuck_operators(declared)
    except ValueError as error:
        raise InputError(f"--operators {error}: only stuck:NAME is known, with the name of a ClusterOperator") from None


def version_of(source: ClusterSource) -> ClusterVersion:
    """Returns the ClusterVersion of a cluster that releases update. Raises InputError for another cluster."""
    version = cluster_version_of(source)
    if version is None:
        raise InputError(
            "the cluster has no ClusterVersion, so no release updates it; `runup rehearse --to-kubernetes VERSION` "
            "tells what a version of Kubernetes no longer serves"
        )
    if not parse(version.status.desired.version):
        raise InputError("the ClusterVersion does not say in status.desired which version the cluster runs")
    return version


def image_of_offered_update(version: ClusterVersion, to: str) -> str:
    """Returns the image of an update that the cluster is offered. Raises InputError if it is not."""
    updates = [
        *(version.status.available_updates or ()),
        *(conditional.release for conditional in version.status.conditional_updates),
    ]
    image = next((update.image for update in updates if update.version == to), "")
    if not image:
        raise InputError(f"the cluster is not offered {to}: name its release image with --to-image")
    return image


def load_target(
    release_dir: str, image: str, to: str, declared: tuple[str, ...], access: Callable[[], Access], *, limit_s: float
) -> RehearsalTarget:
    """Returns the update to the release in a folder or an image; `to` is what its version must be, if anything.

    Raises InputError.
    """
    if release_dir:
        if not Path(release_dir).is_dir():
            raise InputError(f"--release-dir {release_dir}: there is no such folder")
        files = read_folder(Path(release_dir))
    else:
        from kubekit.oci.image_locations import parse_location, read_image_files

        files = read_image_files(parse_location(image), FOLDERS, access().of_administrators())[0]
    payload = load_payload(files, source=image or release_dir, release_image=image)
    if to and to != payload.version:
        raise InputError(f"--to {to}: the release is {payload.version}; leave out --to, or name another release")
    missing = sorted(
        set(declared)
        - {manifest.identity.name for manifest in payload.manifests if manifest.identity.kind == "ClusterOperator"}
    )
    if missing:
        text = f"--operators stuck:{missing[0]}: the release {payload.version} has no ClusterOperator {missing[0]}"
        raise InputError(text)
    return RehearsalTarget(
        payload=payload,
        target=payload.version,
        image=image,
        kubernetes=release_in(files).kubernetes,
        stuck=declared,
        account=(operator_namespace(), "default"),
        limit_s=limit_s,
    )
