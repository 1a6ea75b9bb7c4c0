"""Detects an update that is under way next to the current request, and the way back from it.

A preflight's request overwrites the update's, and ends without a trace in the spec. So the status says what is under
way (docs/decisions/0072 D23). An update that has begun continues when its request is removed; only a request for the
release that it started from takes it back, within a minor version (docs/decisions/0076).
"""

from __future__ import annotations

import msgspec

from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import parse, same_minor
from runup.api.config_v1 import ClusterVersion, Release, Update


class UpdateInProgress(msgspec.Struct, frozen=True):
    """An accepted update that is not complete, and the release that it started from.

    Both are one if an update was taken back and the cluster is not there yet.
    """

    to: Release
    back_to: Release

    @property
    def is_way_back(self) -> bool:
        """Returns whether it leads back to the release that the cluster came from."""
        return is_same_image(self.to.image, self.back_to.image)

    def is_taken_back_by(self, version: str, image: str) -> bool:
        """Returns whether a request for this version or image takes it back."""
        if self.is_way_back:
            return False
        return is_same_image(image, self.back_to.image) if image else version == self.back_to.version

    @property
    def name(self) -> str:
        """Its name in a sentence."""
        return f"{'way back' if self.is_way_back else 'update'} to {self.to.version}"

    @property
    def taken_back(self) -> str:
        """The message about the request that takes it back."""
        text = f"Asking to go from {self.to.version}, whose update has begun, back to {self.back_to.version}\n"
        return text if self.may_go_back else f"{text}warning: {self._no_way_back}\n"

    @property
    def way_out(self) -> str:
        """The sentence on what can be done about it."""
        if self.is_way_back:
            return "Follow it: runup upgrade status"
        return f"Revert it: runup upgrade --to={self.back_to.version}" if self.may_go_back else self._no_way_back

    @property
    def may_go_back(self) -> bool:
        """Returns whether both are of one minor version: no other way back is supported."""
        source_version, earlier_version = parse(self.to.version), parse(self.back_to.version)
        return (
            source_version is not None and earlier_version is not None and same_minor(source_version, earlier_version)
        )

    @property
    def _no_way_back(self) -> str:
        return f"{self.back_to.version} is of another minor version, and no way back to it is supported"


def update_in_progress(cluster: ClusterVersion) -> UpdateInProgress | None:
    """Returns the update under way; None if the newest entry of the history is complete or the only one."""
    status = cluster.status
    newest = status.history[0] if status.history else None
    if newest is None or newest.state != "Partial" or newest.version != status.desired.version:
        return None
    # Partial entries in between are updates that were retargeted: the cluster came from the last completed one.
    before = next((entry for entry in status.history[1:] if entry.state == "Completed" and entry.image), None)
    # Of the same image in two entries that follow each other the newer one is no update, and no way back either.
    if before is None or (is_same_image(before.image, newest.image) and before is status.history[1]):
        return None
    return UpdateInProgress(status.desired, Release(version=before.version, image=before.image))


def asks_for(update: Update, release: Release) -> bool:
    """Returns whether `update` names `release`, by image if it has one."""
    if update.image:
        return is_same_image(update.image, release.image)
    return bool(update.version) and update.version == release.version


def pending_update(cluster: ClusterVersion) -> str:
    """Returns the release of an update that is requested and was not accepted, which a new request would replace."""
    # Such a request exists in the spec alone.
    desired = cluster.spec.desired_update
    if desired is None or desired.mode or asks_for(desired, cluster.status.desired):
        return ""
    return desired.version or desired.image
