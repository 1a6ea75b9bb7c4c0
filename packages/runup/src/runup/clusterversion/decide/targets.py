"""Finds the release that a request means (docs/decisions/0072 D2), or the reason why it is missing.

A preflight may check every release that the update service knows a way to, recommended or not, and any image by
digest. An update by version may name an available update, or one with risks so that these can be accepted by name.

The operator works towards its own release, or that of an accepted update (docs/decisions/0072 D23). The status
remembers an accepted update (`desired`, and the newest entry of the history), because the request is one field, which
a preflight's request overwrites. So only an explicit request for the operator's own release takes an update back. By
the time that a request is removed, the new release's operator may run already, and the result would depend on which
of the two operators sees it (docs/decisions/0076).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kubekit.error_types import Terminal, Waiting
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import Version, parse
from runup.advice.decide.current_advice import CurrentAdvice
from runup.advice.decide.graph import MULTI
from runup.api.config_v1 import ClusterVersionStatus, Release, Update
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.update_request import Request, UpdateRequest
from runup.preflight.decide.attempt import Attempt, digest_of
from runup.preflight.decide.deployment_steps import Trust

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
MAX_MAJORS = 2
RETRY_S = 60.0
# Versions listed in a message.
_MAX_SHOWN_VERSIONS = 10

UNREADABLE = "TargetUnreadable"
UNTRUSTED = "ImageVerificationFailed"
"""Reasons for refusing an image that may pass when it is looked at again."""


class VersionMismatch(Terminal):
    """The error that the requested image is release `actual` and not the requested version."""

    def __init__(self, update: Update, actual: str) -> None:
        text = f"image {update.image} is release {actual}, not {update.version}; correct one of the two"
        super().__init__(text, reason="VersionMismatch")
        self.found = actual


class Downgrade(Terminal):
    """The error that `target` is older than the running version; `older` says that alone."""

    def __init__(self, source: str, target: str) -> None:
        self.target = target
        self.older = f"{target} is older than {source}"
        text = f"{self.older}, and no downgrade is supported; choose a newer target"
        super().__init__(text, reason="TargetIsDowngrade")


def preflight_target(
    update: Update,
    *,
    current: Release,
    advised: CurrentAdvice,
    attempt: Attempt | None,
    releases: Mapping[str, ReleaseCheck],
) -> Release:
    """Returns the release to check. Raises Terminal (edit the request) or Waiting (a lookup is still running)."""
    target = _target_of_attempt(update, current, attempt) or _look_up(update, current, advised, releases)
    _check_distance(update, current, target)
    return target


def release_by_image(update: Update, known: Iterable[Release], releases: Mapping[str, ReleaseCheck]) -> Release:
    """Returns the release of an image by digest: version and texts from the graph, else from the image itself."""
    digest = digest_of(update.image)
    if not DIGEST.fullmatch(digest):
        raise Terminal(
            f"image {update.image!r} is not named by digest, so it could change between check and update; "
            "use name@sha256:... (`runup release info` prints it)",
            reason="TagNotDigest",
        )
    # The graph's text is preferred: its channels and URL are not in the image.
    for release in known:
        if digest_of(release.image) == digest:
            _check_version(update, release.version)
            return replace(release, image=update.image)
    return Release(version=_version_of(update, releases.get(update.image)), image=update.image)


def releases_by_version(version: str, releases: Iterable[Release]) -> tuple[Release, ...]:
    """Returns the releases of that version, one for each image."""
    wanted_version = parse(version)
    matching = (
        release for release in releases if release.image and parse(release.version) == wanted_version is not None
    )
    return tuple({digest_of(release.image) or release.image: release for release in matching}.values())


def known_releases(advised: CurrentAdvice) -> tuple[Release, ...]:
    """Returns every release that a preflight may check by version, the service's offers first."""
    return (*(candidate.release for candidate in advised.candidates), *advised.reachable)


def _look_up(update: Update, current: Release, advised: CurrentAdvice, releases: Mapping[str, ReleaseCheck]) -> Release:
    """Returns the release that a request means. Raises Terminal if it means none, Waiting if that is not known yet."""
    if update.image:
        return release_by_image(update, (*known_releases(advised), *advised.nodes), releases)
    if parse(update.version) is None:
        raise Terminal(
            f"version {update.version!r} is not a semantic version such as 5.2.0", reason="InvalidTargetVersion"
        )
    matching = releases_by_version(update.version, known_releases(advised))
    if len(matching) == 1:
        return matching[0]
    if len(matching) > 1:
        images = ", ".join(release.image for release in matching)
        raise Terminal(
            f"there are {len(matching)} releases of version {update.version} ({images}); name one by image",
            reason="AmbiguousTarget",
        )
    # The graph leads forwards only: an older version is refused as a downgrade rather than as not found.
    _check_distance(update, current, Release(version=update.version))
    raise _not_found(update, current, advised)


def _not_found(update: Update, current: Release, advised: CurrentAdvice) -> Exception:
    """Returns the error for a version that no known release has: Waiting while the update service is being asked."""
    if not advised.settled:
        return Waiting("the update service is being asked", reason="ResolvingTarget", retry_after_s=RETRY_S)
    why = ""
    if advised.condition is not None and advised.condition.status != "True":
        why = f" (RetrievedUpdates is False: {advised.condition.message})"
    texts_by_version: dict[Version, str] = {}
    for release in known_releases(advised):
        with contextlib.suppress(Terminal):
            _check_distance(Update(version=release.version), current, release)
            if (parsed := parse(release.version)) is not None:
                texts_by_version[parsed] = release.version
    versions = [texts_by_version[version] for version in sorted(texts_by_version, reverse=True)]
    more = f" and {len(versions) - _MAX_SHOWN_VERSIONS} more" if len(versions) > _MAX_SHOWN_VERSIONS else ""
    shown = f"from here it knows {', '.join(versions[:_MAX_SHOWN_VERSIONS])}{more}"
    return Terminal(
        f"the update service knows no way to version {update.version}{why}; "
        f"{shown if versions else 'it knows none from here'}; "
        "choose a version of its graph, another channel, or name the release by image and digest",
        reason="TargetNotFound",
    )


def _target_of_attempt(update: Update, current: Release, attempt: Attempt | None) -> Release | None:
    """Returns the release that the running attempt checks, if this request started it, else None.

    So the target of a running preflight stays the same, even if the graph changes.
    """
    if attempt is None or attempt.source_version != current.version:
        return None
    same_version = parse(update.version) == parse(attempt.target_version)
    if update.image != attempt.target_image if update.image else not same_version:
        return None
    if update.image and update.version and not same_version:
        return None
    return Release(version=attempt.target_version, image=attempt.target_image)


def is_trusted(update: Update, check: ReleaseCheck | None) -> bool:
    """Returns whether the image may be read: its signature was verified, or verification was waived.

    Source: docs/decisions/0072 D27.
    """
    return update.force or (check is not None and check.trust is Trust.VERIFIED)


def untrusted_text(image: str, why: str) -> str:
    """Returns the message about an image whose signature does not verify."""
    return (
        f"image {image} is not trusted, so nothing was started: {why}; "
        "name a signed release, add the store that holds its signature, or force the request"
    )


def _version_of(update: Update, check: ReleaseCheck | None) -> str:
    """Returns the version that the image states; the request's counts only if the image cannot be read."""
    if not is_trusted(update, check):
        if check is not None and check.trust is Trust.FAILED:
            raise Terminal(untrusted_text(update.image, check.error), reason=UNTRUSTED)
        raise Waiting("the signature of the image is being verified", reason="VerifyingImage", retry_after_s=RETRY_S)
    if check is not None and check.version:
        _check_version(update, check.version)
        return check.version
    if check is None or not check.unreadable:
        raise Waiting("the image's version is being read", reason="ResolvingTarget", retry_after_s=RETRY_S)
    if update.version:
        return update.version
    raise Terminal(f"the version of image {update.image} is not known: {check.unreadable}", reason=UNREADABLE)


def _check_version(update: Update, actual: str) -> None:
    if update.version and parse(update.version) != parse(actual):
        raise VersionMismatch(update, actual)


def _check_distance(update: Update, current: Release, target: Release) -> None:
    """Raises Terminal if no update leads to `target`; another image of the running version is allowed."""
    current_digest, target_digest = digest_of(current.image), digest_of(target.image)
    another_image = bool(current_digest and target_digest) and current_digest != target_digest
    if not target.image:
        another_image = update.architecture == MULTI
    check_distance(current.version, target.version, another_image=another_image)


def check_distance(source: str, target: str, *, another_image: bool) -> None:
    """Raises Terminal if no update leads from one version to the other; `another_image`: of the same version."""
    source_version, target_version = parse(source), parse(target)
    if source_version is None or target_version is None:
        raise Terminal(
            f"{source or 'the current version'} or {target or 'the target'} is not a semantic version",
            reason="InvalidTargetVersion",
        )
    # A move to the multi-architecture image keeps the version.
    if target_version == source_version and not another_image:
        raise Terminal(
            f"the cluster is at {target} already; choose a newer target, or another image of it by digest",
            reason="TargetIsCurrent",
        )
    if target_version < source_version:
        raise Downgrade(source, target)
    if (target_version.major - source_version.major) > MAX_MAJORS:
        raise Terminal(
            f"{target} is more than {MAX_MAJORS} major versions away from {source}; check a nearer release first",
            reason="TargetTooFar",
        )


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
    # If both releases have the same version, only an image shows which one is meant.
    asks_for_own = isinstance(request, UpdateRequest) and asks_for(request.update, own_release)
    names_image = isinstance(request, UpdateRequest) and bool(request.update.image)
    if asks_for_own and (names_image or status.desired.version != own_release.version):
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
