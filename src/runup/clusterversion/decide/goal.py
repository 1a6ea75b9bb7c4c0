"""What the operator works towards: its own release, or the one that an accepted update goes to (decision D23).

An accepted update is remembered by the status (`desired`, and the newest entry of the history), because the request
that led to it is one field, which a preflight's request overwrites. So nothing but a request of its own takes an
update back: one for the operator's own release, or the removal of the very request that is under way. The second
looks, once done, like the removal of a preflight's request that came in between; the two are told apart by the
generation at which the update was last asked for (decision record 23).
"""

from __future__ import annotations

from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersionStatus, Release, Update
from runup.clusterversion.decide.request import Nothing, Request, UpdateRequest
from runup.preflight.decide.attempt import digest_of


def goal(
    request: Request,
    status: ClusterVersionStatus,
    own: Release,
    *,
    generation: int,
    asked_at: int,
    applied: str | None = None,
) -> Release:
    """The release to work towards. `asked_at`: the last generation seen to ask for the update under way; 0: none.

    `applied` is the image of the release that this process applies, empty where it applies none yet, None where it
    never does. A release that was applied to the end is kept though another operator runs: moving is asked for, and
    an operator of a release that the cluster has never been at is asking: somebody put it there.
    """
    found = status.desired
    if not under_way(status, own):
        if applied is not None and found.image and not _moves(request, status, own, applied):
            return _filled(found, Release(architecture=own.architecture))
        same = same_release(found, own) if applied is not None else found.version == own.version
        return _filled(found, own) if same else own
    if _taken_back(request, status, own, removed=0 < asked_at == generation - 1):
        return own
    return _filled(found, Release(architecture=own.architecture))


def under_way(status: ClusterVersionStatus, own: Release) -> bool:
    """Whether `status` says that an update from `own` was accepted and is not complete."""
    found, newest = status.desired, status.history[0] if status.history else None
    if newest is None or newest.state != "Partial" or not found.version or newest.version != found.version:
        return False
    if found.version != own.version:
        return True
    # The running version's other image: an update only where the cluster is known to come from this one.
    came_from = any(same_image(entry.image, own.image) for entry in status.history[1:])
    return came_from and same_image(newest.image, found.image) and not same_image(found.image, own.image)


def asks_for(update: Update, release: Release) -> bool:
    """Whether `update` names `release`: by image where it has one, else by version."""
    if update.image:
        return same_image(update.image, release.image)
    return parse(update.version) is not None and parse(update.version) == parse(release.version)


def same_release(one: Release, other: Release) -> bool:
    """Whether two releases are one: of the same version, and not of images that are known to differ."""
    known = bool(one.image and other.image)
    return one.version == other.version and (not known or same_image(one.image, other.image))


def same_image(one: str, other: str) -> bool:
    """Whether two pull specs are one image, wherever it is kept."""
    return one == other or (bool(digest_of(one)) and digest_of(one) == digest_of(other))


def _moves(request: Request, status: ClusterVersionStatus, own: Release, applied: str) -> bool:
    """Whether an operator of `own`, which is not on its way anywhere, leaves the release that the status names."""
    if same_image(status.desired.image, own.image):
        return True
    if same_image(status.desired.image, applied):
        return False
    asks_for_own = isinstance(request, UpdateRequest) and asks_for(request.update, own)
    return asks_for_own or not any(same_image(entry.image, own.image) for entry in status.history)


def _taken_back(request: Request, status: ClusterVersionStatus, own: Release, *, removed: bool) -> bool:
    if isinstance(request, Nothing):
        return removed
    if not isinstance(request, UpdateRequest) or not asks_for(request.update, own):
        return False
    # Of two images of one version only an image tells which is meant.
    return bool(request.update.image) or status.desired.version != own.version


def _filled(release: Release, gaps: Release) -> Release:
    return Release(
        version=release.version or gaps.version,
        image=release.image or gaps.image,
        url=release.url or gaps.url,
        architecture=release.architecture or gaps.architecture,
        channels=release.channels or gaps.channels,
    )
