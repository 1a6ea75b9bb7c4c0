"""Chooses the release that a scheduled preflight checks, among the updates that ClusterVersion lists at that time."""

from __future__ import annotations

from kubekit.error_types import Terminal
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersion, Release

LATEST = "latest"
"""In place of a channel's name: every release that ClusterVersion lists."""
_MAX_NAMED = 5
_REASON = "NoTarget"


def newest(cluster: ClusterVersion | None, channel: str) -> Release:
    """Returns the newest release of `channel` that ClusterVersion lists as an update, whether or not it has risks.

    For `latest` on a cluster that lists no update it is the next minor version. Raises Terminal if it does not exist.
    """
    if cluster is None:
        text = "the cluster has no ClusterVersion, which lists the releases of a channel; give --to VERSION"
        raise Terminal(text, reason=_REASON)
    listed = cluster.status.listed_updates()
    if channel != LATEST:
        listed = tuple(release for release in listed if channel in release.channels)
    versions = [(version, release) for release in listed if (version := parse(release.version)) is not None]
    if versions:
        return max(versions, key=lambda pair: pair[0])[1]
    if channel != LATEST:
        channels = cluster.status.desired.channels[:_MAX_NAMED]
        text = f"ClusterVersion lists no update in channel {channel}"
        text += f" (its release is in {', '.join(channels)})" if channels else ""
        raise Terminal(f"{text}; name one of its channels, `{LATEST}`, or give --to VERSION", reason=_REASON)
    source = parse(cluster.status.desired.version)
    if source is None:
        text = "the cluster's version is not known yet, and it lists no updates; give --to VERSION"
        raise Terminal(text, reason=_REASON)
    return Release(version=f"{source.major}.{source.minor + 1}.0")
