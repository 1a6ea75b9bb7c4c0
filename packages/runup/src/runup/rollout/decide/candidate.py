"""Decides which offered release a policy updates to, and since when releases have been offered here. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from kubekit.lang import version
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import timestamp
from kubekit.lang.version import Version
from kubekit.rules.version_skew import version_of
from runup.api.config_v1 import ClusterVersion
from runup.api.update_policy_v1alpha1 import Candidate, OfferedRelease, PolicyTarget, UpdatePolicy
from runup.rollout.decide import durations
from runup.rollout.decide.assemble import offer_of
from runup.rollout.decide.gates.cluster import is_blocked
from runup.rollout.decide.hops import Path
from runup.rollout.decide.plain_cluster import PlainCluster, is_at, release_of

MAX_OFFERED = 32
NO_UPDATE_SERVICE = (
    "The cluster has no ClusterVersion, so no update service offers releases: set spec.target.follow to Exact, and "
    "spec.target.version."
)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The release that a policy chose, or the reason why it chose none; `unknown` if that could not be determined."""

    candidate: Candidate | None = None
    reason: str = ""
    message: str = ""
    unknown: bool = False


def choose(
    target: PolicyTarget,
    cluster: ClusterVersion,
    now: datetime,
    offered: Sequence[OfferedRelease] = (),
    *,
    plain: PlainCluster | None = None,
) -> Choice:
    """Returns the newest offered release that the policy follows. A release without a digest is never chosen.

    `offered` are the releases of the policy's status. `plain` has the versions of a cluster without a ClusterVersion.
    """
    if plain is not None:
        return _named_version(target, plain)
    if target.follow == "Exact":
        return _named(target, cluster, now, offered)
    running = version.parse(cluster.status.desired.version)
    if running is None:
        return Choice(reason="GraphNotAnswering", message="The running version is not known.", unknown=True)
    if (offer := offer_of(cluster, "", now)).why_unknown:
        return Choice(reason="GraphNotAnswering", message=f"{offer.why_unknown}.", unknown=True)
    minor = _minor_of(target, running)
    followed = _followed(target, cluster)
    allowed = [release for release in followed if not is_blocked(release.version, target.block_versions)]
    if not allowed:
        if followed:
            return Choice(reason="Blocked", message="spec.target.blockVersions contains every offered release.")
        return Choice(reason="UpToDate", message=f"No newer release of {running.major}.{minor} is offered.")
    newest_minor = _newest_minor(cluster, running)
    if target.follow == "Minor" and minor + target.behind > newest_minor:
        behind = f"{target.behind} minor version{'s' if target.behind > 1 else ''} behind"
        newest = f"{running.major}.{newest_minor}"
        return Choice(reason="UpToDate", message=f"The cluster stays {behind} the newest one, {newest}.")
    ages = [(_old_enough_at(target, release, offered, now), release) for release in allowed]
    for old_enough_at, release in ages:
        if old_enough_at <= now:
            return Choice(candidate=release)
    return _too_young(*min(ages, key=lambda pair: pair[0]))


def _named(target: PolicyTarget, cluster: ClusterVersion, now: datetime, offered: Sequence[OfferedRelease]) -> Choice:
    """Returns the release that the policy names. Without an image in the policy it must be offered."""
    running, wanted = version.parse(cluster.status.desired.version), version.parse(target.version)
    offer = offer_of(cluster, target.version, now)
    release = Candidate(version=target.version, image=target.image or offer.image)
    newest = cluster.status.history[0] if cluster.status.history else None
    if newest is not None and newest.state == "Completed" and target.version == newest.version:
        return Choice(reason="UpToDate", message=f"The cluster runs {target.version}.")
    if wanted is None or running is None or wanted < running:
        text = f"{target.version} must be newer than {cluster.status.desired.version}."
        return Choice(reason="NoPath", message=text)
    if is_blocked(target.version, target.block_versions):
        return Choice(reason="Blocked", message=f"spec.target.blockVersions contains {target.version}.")
    if "@sha256:" not in release.image:
        why = offer.why_unknown or f"{target.version} is not offered"
        if target.max_hops > 1:
            why += "; the controller looks for a path in the graph of the update service"
        return Choice(reason="NoPath", message=f"No image is known: {why}.", unknown=bool(offer.why_unknown))
    old_enough_at = _old_enough_at(target, release, offered, now)
    if not target.image and old_enough_at > now:
        return _too_young(old_enough_at, release)
    return Choice(candidate=release)


def choice_of(path: Path) -> Choice:
    """Returns the target of a path as the choice, or why there is no path."""
    if path.hops:
        return Choice(candidate=path.hops[-1])
    reason = "GraphNotAnswering" if path.unknown else "NoPath"
    return Choice(reason=reason, message=f"No path: {path.problem}.", unknown=path.unknown)


def _named_version(target: PolicyTarget, plain: PlainCluster) -> Choice:
    """Returns the version that the policy names: nothing else offers a version of Kubernetes."""
    if target.follow != "Exact":
        return Choice(reason="NoPath", message=NO_UPDATE_SERVICE)
    running, wanted = version_of(plain.server), version_of(target.version)
    if all(is_at(version, target.version) for version in (plain.server, *plain.kubelets)):
        return Choice(reason="UpToDate", message=f"The cluster runs {target.version}.")
    if wanted is None or running is None or wanted < running:
        return Choice(reason="NoPath", message=f"{target.version} must be newer than {plain.server}.")
    if is_blocked(target.version, target.block_versions):
        return Choice(reason="Blocked", message=f"spec.target.blockVersions contains {target.version}.")
    return Choice(candidate=release_of(target.version))


def _too_young(old_enough_at: datetime, release: Candidate) -> Choice:
    text = f"{release.version} must be offered until {timestamp(old_enough_at)} before an update to it starts."
    return Choice(reason="TooYoung", message=text)


def _minor_of(target: PolicyTarget, running: Version) -> int:
    return running.minor + (1 if target.follow == "Minor" else 0)


def _followed(target: PolicyTarget, cluster: ClusterVersion) -> list[Candidate]:
    """Returns the offered releases with a digest that the policy follows, the newest first."""
    running = version.parse(cluster.status.desired.version)
    releases = [
        (parsed, Candidate(version=release.version, image=release.image))
        for release in cluster.status.listed_updates()
        if (parsed := version.parse(release.version)) is not None and "@sha256:" in release.image
    ]
    if target.follow == "Exact":
        return [release for _, release in releases if release.version == target.version]
    if running is None:
        return []
    minor = _minor_of(target, running)
    newer = [
        pair for pair in releases if (pair[0].major, pair[0].minor) == (running.major, minor) and pair[0] > running
    ]
    return [release for _, release in sorted(newer, key=lambda pair: pair[0], reverse=True)]


def _newest_minor(cluster: ClusterVersion, running: Version) -> int:
    """Returns the newest minor version that the update service shows: of an offered release, or of a channel."""
    names = [release.version for release in cluster.status.listed_updates()]
    names += [f"{channel.rpartition('-')[2]}.0" for channel in cluster.status.desired.channels]
    found = [parsed.minor for name in names if (parsed := version.parse(name)) and parsed.major == running.major]
    return max(found, default=running.minor)


def _old_enough_at(
    target: PolicyTarget, release: Candidate, offered: Sequence[OfferedRelease], now: datetime
) -> datetime:
    """Returns when `release` has been offered here for `minAge`. A release that is not recorded yet is new."""
    seen = (each.first_seen for each in offered if _is_same(each, release))
    return next(seen, now) + durations.parse(target.min_age, "spec.target.minAge")


def _is_same(offered: OfferedRelease, release: Candidate) -> bool:
    return offered.version == release.version and is_same_image(offered.image, release.image)


def offered_releases(policy: UpdatePolicy, cluster: ClusterVersion, now: datetime) -> tuple[OfferedRelease, ...]:
    """Returns since when each followed release has been offered here. A release that was withdrawn begins again."""
    before = policy.status.offered
    if offer_of(cluster, "", now).why_unknown:
        return before
    return tuple(
        OfferedRelease(
            version=release.version,
            image=release.image,
            first_seen=next((each.first_seen for each in before if _is_same(each, release)), now),
        )
        for release in _followed(policy.spec.target, cluster)[:MAX_OFFERED]
    )
