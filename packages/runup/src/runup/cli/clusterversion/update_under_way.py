"""Says what can be done about an update that is under way beside the current request. Pure."""

from __future__ import annotations

import msgspec

from kubekit.lang.pullspec import is_same_image
from runup.advice.decide.update_in_progress import UpdateInProgress, update_in_progress
from runup.api.config_v1 import ClusterVersion, Release, Update
from runup.cli.clusterversion.target_choice import Target, clear_patch, cleared_text
from runup.cli.preflight.render import finding_texts as rendered
from runup.cli.render.text import Output, err, out
from runup.process.clusterversion_client import Patch


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
    if update is None or not update.is_taken_back_by(version, image):
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
        return is_same_image(update.image, release.image)
    return bool(update.version) and update.version == release.version
