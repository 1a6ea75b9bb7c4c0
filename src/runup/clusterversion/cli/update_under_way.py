"""Detects an update that is under way beside the current request, and decides what takes it back. Pure.

A preflight's request overwrites the update's, and ends without a trace in the spec. So the status says what is under
way (docs/decisions/0072 D23), and taking it back needs a request of its own unless the spec shows that one is removed.
"""

from __future__ import annotations

import msgspec

from runup.api.config_v1 import ClusterVersion, Release, Update
from runup.cli.clusterversion_client import Patch
from runup.cli.render.text import Output, err, out
from runup.clusterversion.cli.target_choice import Target, clear_patch, cleared, update_patch
from runup.preflight.cli.render import finding_texts as rendered

_HINT = "Take it back: runup upgrade --clear"


class UpdateInProgress(msgspec.Struct, frozen=True):
    """An accepted update that is not complete, and the release that it started from."""

    to: Release
    back_to: Release

    @property
    def taken_back(self) -> str:
        """The message about the request that takes it back."""
        return f"Taking back the update to {self.to.version}; the cluster stays at {self.back_to.version}\n"


def going_on(cluster: ClusterVersion) -> UpdateInProgress | None:
    """Returns the update under way; None if the newest entry of the history is complete or the only one."""
    status = cluster.status
    newest = status.history[0] if status.history else None
    if newest is None or newest.state != "Partial" or newest.version != status.desired.version:
        return None
    # Partial entries in between are updates that were retargeted: the cluster came from the last completed one.
    before = next((entry for entry in status.history[1:] if entry.state == "Completed" and entry.image), None)
    if before is None or _same(before.image, newest.image):
        return None
    return UpdateInProgress(status.desired, Release(version=before.version, image=before.image))


def goes_on(found: UpdateInProgress | None) -> tuple[Output, ...]:
    """Returns the message for a user who ended a preflight, or another request, during an update."""
    return (out(f"The update to {found.to.version} is under way and goes on. {_HINT}\n"),) if found else ()


def unasked(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns the message of `runup upgrade` about an update that the spec does not show."""
    update = going_on(cluster)
    desired = cluster.spec.desired_update
    if update is None or (desired is not None and not desired.mode and asks_for(desired, update.to)):
        return ()
    return (out(f"\nThe update to {update.to.version} goes on, whatever is asked for beside it. {_HINT}\n"),)


def before_a_preflight(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns warnings about the update request that a preflight's request replaces."""
    update, desired = going_on(cluster), cluster.spec.desired_update
    warnings = []
    if update is not None:
        text = (
            f"warning: the update to {update.to.version} is under way and goes on; what is found now may be different"
        )
        warnings.append(err(f"{text} when it is done\n"))
        # The spec was cleared and the operator has not seen that yet: this request overwrites it.
        if desired is None and cluster.status.observed_generation < cluster.metadata.generation:
            warnings.append(
                err("warning: a request to take it back has not been seen by the operator and is lost by this\n")
            )
    # A request that was not accepted exists in the spec alone.
    pending = desired is not None and not desired.mode and bool(desired.version or desired.image)
    running = update.to if update else cluster.status.desired
    if desired is not None and pending and not asks_for(desired, running):
        name = desired.version or desired.image
        warnings.append(
            err(f"warning: this takes the place of the request to update to {name}, which was not accepted\n")
        )
    return tuple(warnings)


def back(cluster: ClusterVersion, *, version: str, image: str) -> Target | None:
    """Returns the target that takes the update back, if `version` or `image` name the release it started from."""
    update = going_on(cluster)
    if update is None:
        return None
    meant = _same(image, update.back_to.image) if image else version == update.back_to.version
    if not meant:
        return None
    return Target(update.back_to.version, update.back_to.image, (out(update.taken_back),), takes_back=True)


class Clearing(msgspec.Struct, frozen=True):
    """The patch that `--clear` sends, if any, and the messages once the server has accepted it."""

    patch: Patch | None
    said: tuple[Output, ...]


def clearing(cluster: ClusterVersion) -> Clearing:
    """Decides what `--clear` does: ends a preflight, takes an update back, or removes another request."""
    desired, update = cluster.spec.desired_update, going_on(cluster)
    if desired is not None and desired.mode:
        return Clearing(clear_patch(desired), (out(rendered.cleared(cluster)), *goes_on(update)))
    if update is None:
        if desired is None:
            return Clearing(None, (out("info: No update in progress\n"),))
        return Clearing(clear_patch(desired), (out(cleared(desired, cluster)),))
    if desired is not None and asks_for(desired, update.back_to):
        return Clearing(None, (out(f"info: {update.taken_back}"),))
    if desired is not None and asks_for(desired, update.to):
        return Clearing(_taking_back(cluster, desired, update), (out(update.taken_back),))
    if desired is not None and (desired.version or desired.image):
        return Clearing(clear_patch(desired), (out(cleared(desired, cluster)), *goes_on(update)))
    return Clearing(_named(desired, update), (out(update.taken_back),))


def _taking_back(cluster: ClusterVersion, desired: Update, found: UpdateInProgress) -> Patch:
    """Returns the patch that takes the update back: removes a request that the operator saw, else names the release."""
    observed = cluster.status.observed_generation >= cluster.metadata.generation
    return clear_patch(desired) if observed else _named(desired, found)


def _named(desired: Update | None, found: UpdateInProgress) -> Patch:
    return update_patch(desired, version=found.back_to.version, image=found.back_to.image)


def asks_for(update: Update, release: Release) -> bool:
    """Returns whether `update` names `release`, by image if it has one."""
    if update.image:
        return _same(update.image, release.image)
    return bool(update.version) and update.version == release.version


def _same(one: str, other: str) -> bool:
    digests = one.rpartition("@")[2], other.rpartition("@")[2]
    return bool(one) and (one == other or ("@" in one and "@" in other and digests[0] == digests[1]))
