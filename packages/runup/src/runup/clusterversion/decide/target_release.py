"""Decides which release the operator works towards: its own, or that of an accepted update (docs/decisions/0072 D23).

The status remembers an accepted update (`desired`, and the newest entry of the history), because the request that led
to it is one field, which a preflight's request overwrites. So only an explicit request takes an update back: one for
the operator's own release. Removing the request that led to it takes nothing back: by then the new release's operator
may run already, and the result would depend on which of the two operators sees it (docs/decisions/0076).
"""

from __future__ import annotations

from kubekit.lang.pullspec import is_same_image
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersionStatus, Release, Update
from runup.clusterversion.decide.update_request import Request, UpdateRequest


def goal(
    request: Request,
    status: ClusterVersionStatus,
    own_release: Release,
    *,
    applied: str | None = None,
) -> Release:
    """Returns the release to work towards.

    `applied` is the image of the release that this process applies, empty if it applies none yet, None if it never
    applies releases.

    A fully applied release is kept even if another release's operator runs now, since a move has to be requested. The
    operator of a release that the cluster has never been at counts as such a request, since it was deployed on purpose.
    """
    desired = status.desired
    if not is_update_under_way(status, own_release):
        if applied is not None and desired.image and not _moves_to_own(request, status, own_release, applied):
            return _fill_gaps(desired, Release(architecture=own_release.architecture))
        is_own = same_release(desired, own_release) if applied is not None else desired.version == own_release.version
        return _fill_gaps(desired, own_release) if is_own else own_release
    # If both releases have the same version, only an image tells which one is meant.
    if (
        False
        if not isinstance(request, UpdateRequest) or not asks_for(request.update, own_release)
        else bool(request.update.image) or status.desired.version != own_release.version
    ):
        return own_release
    return _fill_gaps(desired, Release(architecture=own_release.architecture))


def is_update_under_way(status: ClusterVersionStatus, own_release: Release) -> bool:
    """Returns whether `status` says that an update from `own_release` was accepted and is not complete."""
    desired, newest = status.desired, status.history[0] if status.history else None
    # Partial is the state of an accepted update until the last manifest is applied.
    if newest is None or newest.state != "Partial" or not desired.version or newest.version != desired.version:
        return False
    if desired.version != own_release.version:
        return True
    # Another image of the running version: an update only if the history shows that the cluster comes from this one.
    came_from = any(is_same_image(entry.image, own_release.image) for entry in status.history[1:])
    return (
        came_from and is_same_image(newest.image, desired.image) and not is_same_image(desired.image, own_release.image)
    )


def asks_for(update: Update, release: Release) -> bool:
    """Returns whether `update` names `release`: by image if it has one, else by version."""
    if update.image:
        return is_same_image(update.image, release.image)
    return parse(update.version) is not None and parse(update.version) == parse(release.version)


def same_release(release: Release, other: Release) -> bool:
    """Returns whether two releases are the same: of one version, and not of images that are known to differ."""
    both_known = bool(release.image and other.image)
    return release.version == other.version and (not both_known or is_same_image(release.image, other.image))


def _moves_to_own(request: Request, status: ClusterVersionStatus, own_release: Release, applied: str) -> bool:
    """Returns whether an operator of `own_release`, with no update under way, moves the cluster to `own_release`."""
    if is_same_image(status.desired.image, own_release.image):
        return True
    if is_same_image(status.desired.image, applied):
        return False
    asks_for_own = isinstance(request, UpdateRequest) and asks_for(request.update, own_release)
    return asks_for_own or not any(is_same_image(entry.image, own_release.image) for entry in status.history)


def _fill_gaps(release: Release, gaps: Release) -> Release:
    """Returns `release` with the fields that it lacks taken from `gaps`."""
    return Release(
        version=release.version or gaps.version,
        image=release.image or gaps.image,
        url=release.url or gaps.url,
        architecture=release.architecture or gaps.architecture,
        channels=release.channels or gaps.channels,
    )
