"""Decides which patches `runup upgrade` sends besides an update's, and what to say about what they replace. Pure.

A preflight's request replaces an update's, although an update that has begun continues; so each message considers both.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubekit.api.conditions import find
from kubekit.error_types import InputError
from kubekit.lang.oc_pull_spec import pull_spec
from kubekit.lang.oc_version import parse_as_oc
from kubekit.lang.version import same_minor
from runup.advice.decide.preflight_reasons import NOT_OFFERED
from runup.advice.decide.update_in_progress import UpdateInProgress, asks_for, pending_update, update_in_progress
from runup.api import clusterversion_json
from runup.api.config_v1 import ClusterVersion, Release, Update
from runup.clusterversion.decide.upgrade_target import Flags, Target, clear_patch, cleared_text, update_patch, way_to
from runup.clusterversion.decide.validation import INVALID
from runup.preflight.decide.attempt import END_ANNOTATION, Attempt
from runup.preflight.decide.preflight_conditions import kept_mode_text
from runup.preflight.decide.preflight_state import MODE
from runup.process.messages import Output, err, out

GATE = "ClusterUpdatePreflight"
MULTI = "Multi"
Patch = dict[str, Any]


def check_target(flags: Flags) -> None:
    """Raises InputError unless the flags name one target of a preflight, by version or by digest."""
    if flags.to_latest:
        raise InputError("--mode=preflight checks one release: name it with --to or --to-image")
    if not (flags.to or flags.to_image or flags.to_multi_arch):
        raise InputError("--mode=preflight needs the release to check: --to VERSION or --to-image IMAGE@DIGEST")
    if flags.to_image and not pull_spec(flags.to_image).digest:
        raise InputError(
            "--to-image must be a by-digest pull spec: a preflight runs exactly the image whose signature was verified"
        )


def target_of(cluster: ClusterVersion, flags: Flags) -> Update:
    """Returns the target of a preflight: a version, an image, or the running version's multi-architecture image.

    Raises InputError if the cluster runs the multi-architecture image already.
    """
    if not flags.to_multi_arch:
        return Update(version=flags.to, image=flags.to_image)
    running = cluster.status.desired
    if running.architecture == MULTI:
        raise InputError(f"the cluster runs the multi-architecture image of {running.version} already")
    return Update(version=running.version, architecture=MULTI)


def name_of(target: Update) -> str:
    """Returns the target's name in messages."""
    return f"{target.version} (multi-architecture)" if target.architecture else target.version or target.image


def request_patch(cluster: ClusterVersion, flags: Flags) -> Patch:
    """Returns the merge patch that requests the preflight; accepted risks stay."""
    target = target_of(cluster, flags)
    body = update_patch(
        cluster.spec.desired_update,
        version=target.version,
        image=target.image,
        architecture=target.architecture,
        force=flags.force,
    )
    # The mode comes last, because `update_patch` sets it to null where the object has one.
    return {"spec": {"desiredUpdate": {**body["spec"]["desiredUpdate"], "mode": MODE}}}


def notes(cluster: ClusterVersion, flags: Flags) -> tuple[Output, ...]:
    """Returns what the administrator should know before a preflight's request replaces another request."""
    warnings: list[Output] = []
    before, now = cluster.spec.desired_update, target_of(cluster, flags)
    # There is one field for requests, so that a second preflight replaces the first.
    if (
        before
        and before.mode == MODE
        and (before.version, before.image, before.architecture) != (now.version, now.image, now.architecture)
    ):
        warnings.append(err(f"warning: this takes the place of the preflight of {name_of(before)}\n"))
    warnings.extend(before_a_preflight(cluster))
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing and progressing.status == "True" and update_in_progress(cluster) is None:
        warnings.append(err("warning: an update is in progress; what is found now may be different when it is done\n"))
    if flags.force:
        warnings.append(
            err(
                "warning: --force runs the target's image without verifying its signature, with an account that reads "
                "what the image's checks declare\n"
            )
        )
    return tuple(warnings)


def before_a_preflight(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns warnings about the update request that a preflight's request replaces."""
    update = update_in_progress(cluster)
    warnings = []
    if update is not None:
        line = f"warning: the {update.name} is under way and continues; new findings may differ"
        warnings.append(err(f"{line} when it is done\n"))
    if name := pending_update(cluster):
        warnings.append(
            err(f"warning: this takes the place of the request to update to {name}, which was not accepted\n")
        )
    return tuple(warnings)


def update_goes_on_message(update: UpdateInProgress | None) -> tuple[Output, ...]:
    """Returns the message for a user who ended a preflight, or another request, during an update."""
    return (out(f"The {update.name} has begun and continues. {update.way_out}\n"),) if update else ()


def unshown_update(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns the message of `runup upgrade` about an update that the spec does not show."""
    update = update_in_progress(cluster)
    desired = cluster.spec.desired_update
    if update is None or (desired is not None and not desired.mode and asks_for(desired, update.to)):
        return ()
    return (out(f"\nThe {update.name} continues, whatever else is requested. {update.way_out}\n"),)


def kept_mode(cluster: ClusterVersion, attempt: Attempt | None) -> tuple[Output, ...]:
    """Returns the message of `runup upgrade` about a request for an update that kept a preflight's mode."""
    desired = cluster.spec.desired_update
    if attempt is None or not attempt.kept_mode or desired is None or desired.mode != MODE:
        return ()
    return (out(f"\n{kept_mode_text(attempt)}.\n"),)


def invalid_request(cluster: ClusterVersion) -> tuple[Output, ...]:
    """Returns the message of `runup upgrade` about a request that cannot be met: the cause and the ways out.

    Most often only the mode was removed from the request of a preflight, whose target need not be offered.
    """
    invalid, desired = find(cluster.status.conditions, INVALID), cluster.spec.desired_update
    if invalid is None or invalid.status != "True" or desired is None:
        return ()
    clear = "To take the request back: runup upgrade --clear"
    for update in cluster.status.conditional_updates if not (desired.image or desired.mode) else ():
        release = update.release
        if release.version == desired.version and any(risk.name == NOT_OFFERED for risk in update.risks):
            cause = "a request without mode Preflight is an update, and the update service does not offer this one"
            return (out(f"\nNo update to {release.version} starts: {cause}.\n{way_to(release)}. {clear}\n"),)
    return (out(f"\n{invalid.message}\n{clear}\n"),)


def way_back(cluster: ClusterVersion, *, version: str, image: str) -> Target | None:
    """Returns the target that takes the update back, if `version` or `image` name the release it started from."""
    update = update_in_progress(cluster)
    if update is None or not update.is_taken_back_by(version, image):
        return None
    return Target(update.back_to.version, update.back_to.image, (err(update.taken_back),), takes_back=True)


class Clearing(msgspec.Struct, frozen=True):
    """The patch that `--clear` or `--clear-preflight` sends, if any, and the messages once the server accepted it."""

    patch: Patch | None
    said: tuple[Output, ...]


def plan_clearing(cluster: ClusterVersion) -> Clearing:
    """Decides what `--clear` does: ends a preflight, or removes a request, and says whether its update continues.

    The patch carries the resourceVersion of `cluster`, so that an update that begins meanwhile is a conflict.
    """
    desired, update = cluster.spec.desired_update, update_in_progress(cluster)
    goes_on = update_goes_on_message(update)
    if desired is not None and desired.mode:
        return Clearing(clear_patch(desired), (out(_ended_text(desired)), *goes_on))
    if desired is None:
        return Clearing(None, goes_on or (out("info: No update in progress\n"),))
    if not (desired.version or desired.image or desired.architecture):
        names = ", ".join(desired.accepted_names)
        kept = f"; accepted risks are kept: {names} (runup upgrade accept --clear ends that)" if names else ""
        return Clearing(None, goes_on or (out(f"info: No update in progress{kept}\n"),))
    if update is not None and asks_for(desired, update.to):
        return Clearing(clear_patch(desired), (out("Cleared the update field\n"), *goes_on))
    return Clearing(clear_patch(desired), (out(cleared_text(desired, cluster)), *goes_on))


def end_preflight(cluster: ClusterVersion, attempt: Attempt | None, still_runs: str | None) -> Clearing:
    """Decides what `--clear-preflight` does: clears a preflight's request, or ends a preflight without one.

    If an update is requested while its preflight runs, the update waits for the findings, and its request has no mode
    that could be cleared. An annotation that names the attempt then ends the preflight and leaves the update
    (docs/decisions/0076). `attempt` is the one that the operator has recorded, `still_runs` the target of the
    Deployment that exists.
    """
    desired = cluster.spec.desired_update
    if desired is not None and desired.mode:
        return Clearing(
            clear_patch(desired), (out(_ended_text(desired)), *update_goes_on_message(update_in_progress(cluster)))
        )
    target = attempt.target_version or attempt.target_image if attempt is not None else still_runs
    if target is None:
        return Clearing(None, (out("info: No preflight is requested\n"),))
    if attempt is not None and not attempt.over and desired is not None:
        waits = asks_for(desired, Release(version=attempt.target_version, image=attempt.target_image))
        if waits and cluster.metadata.annotations.get(END_ANNOTATION) != attempt.id:
            line = f"Ended the preflight of {target}; the update to it continues without it\n"
            return Clearing({"metadata": {"annotations": {END_ANNOTATION: attempt.id}}}, (out(line),))
    line = f"The preflight of {target} is not requested any more; the operator removes what still runs of it\n"
    return Clearing(None, (out(f"info: {line}"),))


def _ended_text(desired: Update) -> str:
    names = ", ".join(desired.accepted_names)
    kept = f"; accepted risks are kept: {names}" if names else ""
    return f"Ended the preflight of {desired.version or desired.image}{kept}\n"


class Rollback(msgspec.Struct, frozen=True):
    """The previous release, and the patch that requests it."""

    previous: clusterversion_json.Release
    patch: Patch


def plan_rollback(facts: clusterversion_json.Facts) -> Rollback:
    """Returns the rollback to the release that the cluster came from, within one minor version; texts are oc's.

    Raises InputError if that is not supported.
    """
    now = facts.desired
    try:
        current_version = parse_as_oc(now.version)
    except ValueError as error:
        raise InputError(f"invalid ClusterVersion status.desired.version: {error}") from error
    before = next((r for r in facts.history if (r.version, r.image) != (now.version, now.image)), None)
    if before is None:
        current = f"{now.version} ({now.image})"
        raise InputError(f"no previous version found in ClusterVersion's status.history besides the current {current}.")
    try:
        previous_version = parse_as_oc(before.version)
    except ValueError as error:
        raise InputError(f'previous version "{before.version}" invalid SemVer: {error}') from error
    if previous_version >= current_version:
        versions_text = f"{before.version} ({before.image}) is greater than or equal to current version {now.version}"
        way_out = "Use 'oc adm upgrade ...' to update, and not this rollback command."
        raise InputError(f"previous version {versions_text} ({now.image}).  {way_out}")
    if not same_minor(previous_version, current_version):
        raise InputError(
            f"{before.version} is less than the current target {now.version} and matches the cluster's previous "
            "version, but rollbacks that change major or minor versions are not recommended."
        )
    progressing = facts.condition("Progressing")
    if progressing is None:
        raise InputError("no current Progressing info, see `oc describe clusterversion` for more details.\n")
    if progressing.status != "False":
        why = f"Progressing={progressing.status}: {progressing.reason}: {progressing.message}"
        raise InputError(f"unable to rollback while an update is {why}.")
    update: Patch = {"architecture": "", "version": before.version, "image": before.image, "force": False}
    if clusterversion_json.text(
        clusterversion_json.mapping(clusterversion_json.mapping(facts.json, "spec"), "desiredUpdate"), "mode"
    ):
        # Without it a merge patch would keep the mode, and the request would be a preflight.
        update["mode"] = None
    return Rollback(before, {"spec": {"desiredUpdate": update}})


class ChannelChange(msgspec.Struct, frozen=True):
    """The messages before the patch, and the patch; None if there is nothing to change."""

    said: tuple[Output, ...]
    patch: Patch | None


def plan_channel(facts: clusterversion_json.Facts, new: str, *, explicit: bool) -> ChannelChange:
    """Returns the messages, as oc words them, and the patch that set the channel to `new` (empty: none).

    Raises InputError for a channel that is not available, unless it is `explicit`.
    """
    current, channels = facts.channel, ", ".join(facts.channels)
    if new == current:
        state = f"Cluster is already in {current}" if current else "Cluster channel is already clear"
        return ChannelChange((out(f"info: {state} (no change)\n"),), None)
    way_out = "you must pass --allow-explicit-channel to continue\n"
    warnings: list[Output] = []
    if not facts.channels and new:
        unknown = f'No channels known to be compatible with the current version "{facts.desired.version}"'
        warnings.append(
            err(f'warning: {unknown}; unable to validate "{new}". Setting the update channel to "{new}" anyway.\n')
        )
    elif not new and current in facts.channels and not explicit:
        raise InputError(
            f'You are requesting to clear the update channel. The current channel "{current}" is one of the available '
            f"channels, {way_out}"
        )
    elif new and new not in facts.channels:
        line = f'requested channel "{new}" is not one of the available channels ({channels})'
        if not explicit:
            raise InputError(f"the {line}, {way_out}")
        used = f'You have used --allow-explicit-channel to proceed anyway. Setting the update channel to "{new}".'
        warnings.append(err(f"warning: The {line}. {used}\n"))
    if not new:
        cleared = "cluster will no longer request available update recommendations."
        warnings.append(err(f'warning: Clearing channel "{current}"; {cleared}\n'))
    return ChannelChange(tuple(warnings), {"spec": {"channel": new}})
