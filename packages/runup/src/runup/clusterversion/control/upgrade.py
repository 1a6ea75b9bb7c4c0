"""Carries out `runup upgrade`: requests, takes back and clears updates and preflights of a cluster, and accepts risks.

Each use case reads ClusterVersion, lets pure functions decide (`upgrade_target`, `upgrade_request`), and sends at most
one patch. Messages go to `say` as soon as they are known, so that a user reads a warning also if the request fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import BadRequest, Invalid, KubeError, message_of
from runup.advice.control.acceptance_records import forget_records, keep_records
from runup.advice.decide.acceptance_change import Change, names_in_spec, patch_of, warnings_of
from runup.advice.decide.update_in_progress import update_in_progress
from runup.api import clusterversion_json
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.clusterversion.decide import upgrade_request, upgrade_target
from runup.preflight.control import cluster_records
from runup.preflight.decide.findings import findings_of_target, known_risk_names, objects_of, requested_preflight
from runup.process import clusterversion_client as clusters
from runup.process.clusterversion_client import Patch, namespace
from runup.process.messages import Output, Say, err, out

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient


class Sent(msgspec.Struct, frozen=True):
    """The patch that was sent, None if nothing had to be changed; `details` name the requested release."""

    patch: Patch | None
    details: dict[str, str] = {}


def planned_update(
    flags: upgrade_target.Flags, client: SyncClient, say: Say
) -> tuple[upgrade_target.Target, Patch] | None:
    """Returns the release that the flags name and the patch that requests it; None if there is nothing to do.

    Says warnings, or why there is nothing to do. Raises InputError to refuse.
    """
    cluster = clusters.read(client)
    target = upgrade_request.way_back(cluster, version=flags.to, image=flags.to_image) or upgrade_target.choose(
        cluster, flags
    )
    say(*target.said)
    if isinstance(target, upgrade_target.Nothing):
        # The cluster is not there yet: the text before is oc's, which does not look.
        say(*upgrade_request.update_goes_on_message(update_in_progress(cluster)))
        return None
    if cluster.spec.desired_update is not None and cluster.spec.desired_update.accept_risks:
        history = cluster_records.read_history(client, namespace())
        accepted = cluster_records.read_accepted(client, cluster)
        findings = findings_of_target(cluster, history, target.version, target.image, accepted=accepted)
        say(*upgrade_target.grown_warnings(findings))
    if flags.force:
        say(err(upgrade_target.FORCE_WARNING))
    # Guards would refuse to end the very update that makes the cluster progress.
    if not target.takes_back:
        say(*upgrade_target.check_guards(cluster, allow_with_warnings=flags.allow_upgrade_with_warnings))
    body = upgrade_target.update_patch(
        cluster.spec.desired_update, version=target.version, image=target.image, force=flags.force
    )
    return target, body


def start_update(flags: upgrade_target.Flags, client: SyncClient, say: Say) -> Sent:
    """Requests the update that the flags name. Raises InputError to refuse."""
    planned = planned_update(flags, client, say)
    if planned is None:
        return Sent(None)
    target, body = planned
    _patch_update(client, body)
    say(out(f"Requested update to {target.name}\n"))
    return Sent(body, {"version": target.version, "image": target.image})


def request_multi_arch(flags: upgrade_target.Flags, client: SyncClient, say: Say) -> Sent:
    """Requests the update to the multi-architecture image of the running version. Raises InputError to refuse."""
    cluster = clusters.read(client)
    desired = cluster.spec.desired_update
    if desired is not None and desired.architecture == upgrade_request.MULTI:
        raise InputError("info: Update to multi cluster architecture has already been requested")
    say(*upgrade_target.check_guards(cluster, allow_with_warnings=flags.allow_upgrade_with_warnings))
    if flags.force:
        say(err(upgrade_target.FORCE_WARNING))
    version = cluster.status.desired.version
    body = upgrade_target.update_patch(desired, version=version, architecture=upgrade_request.MULTI, force=flags.force)
    _patch_update(client, body)
    say(out("Requested update to multi cluster architecture\n"))
    return Sent(body, {"version": version, "architecture": upgrade_request.MULTI})


def _patch_update(client: SyncClient, body: Patch) -> None:
    """Patches the request for an update. Raises InputError if that fails, or if it became a preflight."""
    try:
        answer = clusters.patch(client, body)
    except KubeError as error:
        raise InputError(f"Unable to upgrade: {message_of(error)}") from error
    if requested_preflight(answer):
        # The patch drops a mode that was read. This mode was set in between: the request is a preflight, not an update.
        raise InputError(
            "somebody asked for a preflight at the same moment, so no update was requested; run the command again"
        )


def clear_update(client: SyncClient, say: Say) -> Sent:
    """Takes back the request for an update. Raises InputError if that fails."""
    try:
        before, answer = clusters.change(
            client,
            clusters.read(client),
            lambda cluster_version: upgrade_request.plan_clearing(cluster_version).patch,
            send=lambda body: clusters.patch(client, body),
        )
    except KubeError as error:
        raise InputError(f"Unable to cancel current rollout: {message_of(error)}") from error
    clearing = upgrade_request.plan_clearing(before)
    say(*clearing.said)
    return Sent(clearing.patch if answer else None)


def roll_back(client: SyncClient, say: Say) -> Sent:
    """Requests the previous release. Raises InputError if that is not supported, or the server refuses it."""
    facts = clusterversion_json.read(clusters.read_raw(client, no="no"))
    rollback = upgrade_request.plan_rollback(facts)
    try:
        clusters.patch(client, rollback.patch)
    except KubeError as error:
        raise InputError(f"Unable to rollback: {message_of(error)}") from error
    say(out(f"Requested rollback from {facts.desired.version} to {rollback.previous.version}\n"))
    return Sent(rollback.patch, {"version": rollback.previous.version, "image": rollback.previous.image})


def set_channel(channel: str, client: SyncClient, say: Say, *, explicit: bool) -> Sent:
    """Sets the channel, or clears it if `channel` is empty. Raises InputError to refuse."""
    facts = clusterversion_json.read(clusters.read_raw(client, no="no"))
    change = upgrade_request.plan_channel(facts, channel, explicit=explicit)
    say(*change.said)
    if change.patch is not None:
        try:
            clusters.patch(client, change.patch)
        except KubeError as error:
            raise InputError(f"unable to set channel: {message_of(error)}") from error
    return Sent(change.patch, {"channel": channel})


def clear_preflight(client: SyncClient, say: Say) -> Sent:
    """Ends the preflight that is requested or still runs."""
    cluster = clusters.read(client)
    attempt = cluster_records.read_history(client, namespace()).attempt
    still_runs = cluster_records.read_preflight_target(client, namespace())
    before, after = clusters.change(
        client,
        cluster,
        lambda cluster_version: upgrade_request.end_preflight(cluster_version, attempt, still_runs).patch,
        send=lambda body: clusters.patch(client, body, strict=True),
    )
    ending = upgrade_request.end_preflight(before, attempt, still_runs)
    say(*ending.said)
    return Sent(ending.patch if after else None)


def request_preflight(
    client: SyncClient,
    cluster: ClusterVersion,
    flags: upgrade_target.Flags,
    say: Say,
    *,
    manager: str = clusters.FIELD_MANAGER,
) -> ClusterVersion:
    """Requests a preflight so that it can never turn into an update (docs/decisions/0072 D1); returns the new object.

    A server whose ClusterVersion has no field `mode` drops it silently; the rest of the patch would request the update
    itself. So the patch is sent as a dry run first, with strict field validation, and the answer must contain the mode.
    Raises InputError if it does not.
    """

    # Both requests carry the same resourceVersion: what the dry run accepted is what is stored.
    def try_and_patch(body: Patch) -> ClusterVersion:
        """Requests the preflight after a dry run. Raises InputError if the API server drops the mode."""
        try:
            mode_kept = (
                requested_preflight(clusters.patch(client, body, dry_run=True, strict=True, manager=manager))
                is not None
            )
        except (BadRequest, Invalid) as error:
            # The field is known and a rule of the definition rejects it (docs/decisions/0072 D22).
            causes = error.status.details.causes if error.status.details else ()
            if upgrade_request.GATE in error.message and any(
                cause.field == "spec.desiredUpdate.mode" for cause in causes
            ):
                raise _cannot_run(client, cluster, "refuses spec.desiredUpdate.mode") from error
            # A real server answers a strict patch with 422, and quotes the whole object before the fault.
            if 'unknown field "spec.desiredUpdate.mode"' not in error.message:
                raise
            mode_kept = False
        if not mode_kept:
            raise _cannot_run(
                client,
                cluster,
                "has no field spec.desiredUpdate.mode, and without that field the request would start the update "
                "itself",
            )
        answer = clusters.patch(client, body, strict=True, manager=manager)
        if not requested_preflight(answer):
            desired = answer.spec.desired_update
            raise InputError(
                "the server took the request without its mode although the dry run kept it; the ClusterVersion now "
                f"asks for {desired.version or desired.image if desired else 'nothing'}. Cancel it before it begins: "
                "runup upgrade --clear"
            )
        return answer

    before, answer = clusters.change(
        client,
        cluster,
        lambda cluster_version: upgrade_request.request_patch(cluster_version, flags),
        send=try_and_patch,
    )
    assert answer is not None
    # Of the object that the request replaced, which another command may have changed since it was read.
    say(*upgrade_request.notes(before, flags))
    return answer


def _cannot_run(client: SyncClient, cluster: ClusterVersion, why: str) -> InputError:
    """Returns the error for a cluster whose ClusterVersion has no field for preflights."""
    try:
        feature_set = client.send(calls.get(FeatureGate, "cluster")).spec.feature_set or "Default"
    except KubeError:
        feature_set = "unknown"
    version = cluster.status.desired.version or "this cluster"
    return InputError(
        f"a preflight cannot be run on {version} with the feature set {feature_set}: its ClusterVersion {why}. "
        "Nothing was changed.\n"
        f"The field comes with the feature gate {upgrade_request.GATE}: in the feature sets TechPreviewNoUpgrade, "
        "DevPreviewNoUpgrade and CustomNoUpgrade (which forbid minor updates and cannot all be left again), "
        "and in releases whose Default feature set has the gate."
    )


class AcceptanceReason(msgspec.Struct, frozen=True):
    """The reason and end of an acceptance as typed; empty if not given."""

    reason: str = ""
    until: str = ""


class Accepted(msgspec.Struct, frozen=True):
    """The patch that was sent, if any; the names that are accepted now; whether a record was written or removed."""

    patch: Patch | None
    names: tuple[str, ...]
    recorded: bool


def checked(change: Change, cluster: ClusterVersion) -> list[Output]:
    """Returns warnings about the names to be accepted. Raises InputError for one that no risk can have."""
    return warnings_of(change, cluster, known_risk_names(cluster))


def accept_risks(change: Change, client: SyncClient, reason: AcceptanceReason, say: Say) -> Accepted:
    """Records the reason and accepts the risks. Keeps concurrent changes of others.

    Raises InputError if a request fails.
    """
    cluster = clusters.read(client, no="no", server="")
    warnings = checked(change, cluster)
    # A record is written before its name and removed after it: a name without its record would never expire.
    history = cluster_records.read_history(client, clusters.namespace()) if change.add else None
    objects = {name: objects_of(cluster, history, name) for name in change.add} if history else {}
    say(*warnings)
    recorded = keep_records(client, change.add, reason=reason.reason, until=reason.until, objects=objects, say=say)
    try:
        # Strict: a server without the field would drop it and answer as if the risks were accepted.
        before, answer = clusters.change(
            client,
            cluster,
            lambda cluster_version: patch_of(change, cluster_version),
            send=lambda body: clusters.patch(client, body, strict=True),
        )
    except KubeError as error:
        raise InputError(f"unable to accept risks: {message_of(error)}") from error
    existing = names_in_spec(before)
    names = change.applied(existing)
    recorded = forget_records(client, set(change.left(existing)), say) or recorded
    changed = answer is not None or recorded
    say(out(f"info: Accept risks are [{', '.join(names)}]\n" if changed else "info: Accept risks are not changed\n"))
    return Accepted(patch_of(change, before) if answer else None, names, recorded)
