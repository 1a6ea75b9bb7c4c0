"""Decides which failure of the cluster an update within the minor version may repair (docs/decisions/0076)."""

from __future__ import annotations

from kubekit.api.conditions import status_of
from kubekit.lang.version import parse, same_minor
from runup.api.config_v1 import ClusterVersionStatus, Release


def failure(status: ClusterVersionStatus, current: Release, target: Release) -> str:
    """Returns in words the failure that an update from `current` to `target` may repair, empty if there is none."""
    current_version, target_version = parse(current.version), parse(target.version)
    if current_version is None or target_version is None or not same_minor(current_version, target_version):
        return ""
    newest = status.history[0] if status.history else None
    # The first entry of all is the installation, which no update can repair.
    if newest is not None and newest.state == "Partial" and len(status.history) > 1:
        return f"the unfinished update to {newest.version or newest.image} has it"
    if status_of(status.conditions, "Failing") == "True":
        return f"the failing {current.version} has it"
    return ""
