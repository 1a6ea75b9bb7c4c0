"""Detects an update that is under way beside the current request, and says what can be done about it. Pure.

A preflight's request overwrites the update's, and ends without a trace in the spec. So the status says what is under
way (docs/decisions/0072 D23). An update that has begun goes on when its request is removed; only a request for the
release that it started from takes it back, within a minor version (docs/decisions/0076).
"""

from __future__ import annotations

import msgspec

from kubekit.lang.version import parse, same_minor
from runup.api.config_v1 import ClusterVersion, Release, Update
from runup.cli.clusterversion_client import Patch
from runup.cli.render.text import Output, err, out
from runup.clusterversion.cli.target_choice import Target, clear_patch, cleared_text
from runup.preflight.cli.render import finding_texts as rendered


class UpdateInProgress(msgspec.Struct, frozen=True):
    """An accepted update that is not complete, and the release that it started from.

    Both are one if an update was taken back and the cluster is not there yet.
    """

    to: Release
    back_to: Release

    @property
    def is_way_back(self) -> bool:
        """Returns whether it leads back to the release that the cluster came from."""
        return _is_same_image(self.to.image, self.back_to.image)

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
        return f"Go back: runup upgrade --to={self.back_to.version}" if self.may_go_back else self._no_way_back

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
    if before is None or (_is_same_image(before.image, newest.image) and before is status.history[1]):
        return None
    return UpdateInProgress(status.desired, Release(version=before.version, image=before.image))


def update_goes_on_message(update: UpdateInProgress | None) -> tuple[Output, ...]:
    """Returns the message for a user who ended a preflight, or another request, during an update."""
    return (out(f"The {update.name} has begun and goes on. {update.way_out}\n"),) if update else ()


def unshown_update(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns the message of `runup upgrade` about an update that the spec does not show."""
    update = update_in_progress(cluster)
    desired = cluster.spec.desired_update
    if update is None or (desired is not None and not desired.mode and asks_for(desired, update.to)):
        return ()
    return (out(f"\nThe {update.name} goes on, whatever is asked for beside it. {update.way_out}\n"),)


def before_a_preflight(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns warnings about the update request that a preflight's request replaces."""
    update, desired = update_in_progress(cluster), cluster.spec.desired_update
    warnings = []
    if update is not None:
        text = f"warning: the {update.name} is under way and goes on; what is found now may be different"
        warnings.append(err(f"{text} when it is done\n"))
    # A request that was not accepted exists in the spec alone.
    pending = desired is not None and not desired.mode and bool(desired.version or desired.image)
    running = update.to if update else cluster.status.desired
    if desired is not None and pending and not asks_for(desired, running):
        name = desired.version or desired.image
        warnings.append(
            err(f"warning: this takes the place of the request to update to {name}, which was not accepted\n")
        )
    return tuple(warnings)


def way_back(cluster: ClusterVersion, *, version: str, image: str) -> Target | None:
    """Returns the target that takes the update back, if `version` or `image` name the release it started from."""
    update = update_in_progress(cluster)
    if update is None or update.is_way_back:
        return None
    is_named = _is_same_image(image, update.back_to.image) if image else version == update.back_to.version
    if not is_named:
        return None
    return Target(update.back_to.version, update.back_to.image, (err(update.taken_back),), takes_back=True)


class Clearing(msgspec.Struct, frozen=True):
    """The patch that `--clear` sends, if any, and the messages once the server has accepted it."""

    patch: Patch | None
    said: tuple[Output, ...]


def plan_clearing(cluster: ClusterVersion) -> Clearing:
    """Decides what `--clear` does: ends a preflight, or removes a request, and says whether its update goes on.

    The patch carries the resourceVersion of `cluster`, so that an update that begins meanwhile is a conflict.
    """
    desired, update = cluster.spec.desired_update, update_in_progress(cluster)
    if desired is not None and desired.mode:
        return Clearing(clear_patch(desired), (out(rendered.cleared_text(cluster)), *update_goes_on_message(update)))
    if update is None:
        if desired is None:
            return Clearing(None, (out("info: No update in progress\n"),))
        if not _names_target(desired):
            return Clearing(None, (out(f"info: {_nothing_asked(desired)}"),))
        return Clearing(clear_patch(desired), (out(cleared_text(desired, cluster)),))
    if desired is None or not _names_target(desired):
        return Clearing(None, update_goes_on_message(update))
    if asks_for(desired, update.to):
        return Clearing(clear_patch(desired), (out("Cleared the update field\n"), *update_goes_on_message(update)))
    return Clearing(clear_patch(desired), (out(cleared_text(desired, cluster)), *update_goes_on_message(update)))


def _names_target(desired: Update) -> bool:
    return bool(desired.version or desired.image or desired.architecture)


def _nothing_asked(desired: Update) -> str:
    names = ", ".join(risk.name for risk in desired.accept_risks)
    acceptances_text = f"; accepted risks are kept: {names} (runup upgrade accept --clear ends that)" if names else ""
    return f"No update in progress{acceptances_text}\n"


def asks_for(update: Update, release: Release) -> bool:
    """Returns whether `update` names `release`, by image if it has one."""
    if update.image:
        return _is_same_image(update.image, release.image)
    return bool(update.version) and update.version == release.version


def _is_same_image(image: str, other: str) -> bool:
    digests = image.rpartition("@")[2], other.rpartition("@")[2]
    return bool(image) and (image == other or ("@" in image and "@" in other and digests[0] == digests[1]))
