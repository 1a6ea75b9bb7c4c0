"""Requests a preflight so that it can never turn into an update (docs/decisions/0072 D1).

A server whose ClusterVersion has no field `mode` drops it silently; the rest of the patch would request the update
itself. So the patch is sent as a dry run first, with strict field validation, and the answer must contain the mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubekit.api.conditions import find
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, BadRequest, Invalid, KubeError
from kubekit.lang.oc_pull_spec import pull_spec
from runup.advice.decide.update_in_progress import update_in_progress
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion, Update
from runup.cli.clusterversion.target_choice import Flags, update_patch
from runup.cli.clusterversion.update_under_way import before_a_preflight
from runup.cli.errors import CommandError
from runup.cli.render.text import Output, err
from runup.evaluation.findings import MODE, requested_preflight
from runup.process import clusterversion_client as clusters
from runup.process.clusterversion_client import Patch

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

DEFAULT_TIMEOUT_S = 15 * 60.0
GATE = "ClusterUpdatePreflight"
MULTI = "Multi"
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_FORCED = (
    "warning: --force runs the target's image without verifying its signature, with an account that reads what "
    "the image's checks declare\n"
)


def parse_timeout(text: str | None) -> float:
    """Returns the seconds of a duration such as 90s, 15m or 1h30m. Raises CommandError."""
    if text is None:
        return DEFAULT_TIMEOUT_S
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise CommandError(f'--timeout must be a duration such as 90s, 15m or 1h30m, not "{text}"')
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def check_target(flags: Flags) -> None:
    """Raises CommandError unless the flags name one target, by version or by digest."""
    if flags.to_latest:
        raise CommandError("--mode=preflight checks one release: name it with --to or --to-image")
    if not (flags.to or flags.to_image or flags.to_multi_arch):
        raise CommandError("--mode=preflight needs the release to check: --to VERSION or --to-image IMAGE@DIGEST")
    if flags.to_image and not pull_spec(flags.to_image).digest:
        raise CommandError(
            "--to-image must be a by-digest pull spec: a preflight runs exactly the image whose signature was verified"
        )


def target_of(cluster: ClusterVersion, flags: Flags) -> Update:
    """Returns the target that the flags name: a version, an image, or the running version's multi-architecture image.

    Raises CommandError if the cluster runs the multi-architecture image already.
    """
    if not flags.to_multi_arch:
        return Update(version=flags.to, image=flags.to_image)
    running = cluster.status.desired
    if running.architecture == MULTI:
        raise CommandError(f"the cluster runs the multi-architecture image of {running.version} already")
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
    update = body["spec"]["desiredUpdate"]
    # The mode comes last, because `update_patch` sets it to null where the object has one.
    return {"spec": {"desiredUpdate": {**update, "mode": MODE}}}


def notes(cluster: ClusterVersion, flags: Flags) -> tuple[Output, ...]:
    """Returns what the administrator should know before the request replaces another."""
    warnings = []
    before, now = cluster.spec.desired_update, target_of(cluster, flags)
    # There is one field for requests, so that a second preflight replaces the first.
    if before and before.mode == MODE and _requested_target(before) != _requested_target(now):
        warnings.append(err(f"warning: this takes the place of the preflight of {name_of(before)}\n"))
    warnings.extend(before_a_preflight(cluster))
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing and progressing.status == "True" and update_in_progress(cluster) is None:
        warnings.append(err("warning: an update is in progress; what is found now may be different when it is done\n"))
    if flags.force:
        warnings.append(err(_FORCED))
    return tuple(warnings)


def _requested_target(update: Update) -> tuple[str, str, str]:
    return update.version, update.image, update.architecture


def send(client: SyncClient, cluster: ClusterVersion, flags: Flags) -> tuple[ClusterVersion, ClusterVersion]:
    """Sends a dry run, then the patch; returns the object before and after. Raises CommandError if `mode` is not known.

    The object before is newer than `cluster` if somebody changed it meanwhile.
    """

    # Both requests carry the same resourceVersion: what the dry run accepted is what is stored.
    def try_and_patch(body: Patch) -> ClusterVersion:
        """Requests the preflight after a dry run. Raises CommandError if the API server drops the mode."""
        _require_mode(lambda: clusters.patch(client, body, dry_run=True, strict=True), client, cluster)
        answer = clusters.patch(client, body, strict=True)
        if not requested_preflight(answer):
            raise CommandError(_mode_lost_text(answer))
        return answer

    before, answer = clusters.change(
        client, cluster, lambda cluster_version: request_patch(cluster_version, flags), send=try_and_patch
    )
    assert answer is not None
    return before, answer


def clear_patch(cluster: ClusterVersion) -> Patch | None:
    """Returns the merge patch that ends the preflight and keeps accepted risks; None if none is requested."""
    desired = cluster.spec.desired_update
    if desired is None or not desired.mode:
        return None
    return update_patch(desired) if desired.accept_risks else {"spec": {"desiredUpdate": None}}


def _require_mode(dry_run: Callable[[], ClusterVersion], client: SyncClient, cluster: ClusterVersion) -> None:
    """Raises CommandError unless the server would store `mode`: it may reject the field, or drop it from its answer."""
    try:
        mode_kept = requested_preflight(dry_run()) is not None
    except (BadRequest, Invalid) as error:
        if _is_refused(error):
            raise CommandError(_cannot_run_text(cluster, _feature_set(client), _REFUSED)) from error
        # A real server answers a strict patch with 422, and quotes the whole object before the fault.
        if 'unknown field "spec.desiredUpdate.mode"' not in error.message:
            raise
        mode_kept = False
    if not mode_kept:
        raise CommandError(_cannot_run_text(cluster, _feature_set(client), _UNKNOWN))


def _is_refused(error: ApiError) -> bool:
    """Returns whether the field is known and a rule of the definition rejects it (docs/decisions/0072 D22)."""
    causes = error.status.details.causes if error.status.details else ()
    return any(cause.field == "spec.desiredUpdate.mode" for cause in causes) and GATE in error.message


def _feature_set(client: SyncClient) -> str:
    try:
        return client.send(calls.get(FeatureGate, "cluster")).spec.feature_set or "Default"
    except KubeError:
        return "unknown"


_REFUSED = "refuses spec.desiredUpdate.mode"
_UNKNOWN = "has no field spec.desiredUpdate.mode, and without that field the request would start the update itself"


def _cannot_run_text(cluster: ClusterVersion, feature_set: str, why: str) -> str:
    """Returns the error for a cluster whose ClusterVersion has no field for preflights."""
    version = cluster.status.desired.version or "this cluster"
    return (
        f"a preflight cannot be run on {version} with the feature set {feature_set}: its ClusterVersion {why}. "
        "Nothing was changed.\n"
        f"The field comes with the feature gate {GATE}: in the feature sets TechPreviewNoUpgrade, "
        "DevPreviewNoUpgrade and CustomNoUpgrade (which forbid minor updates and cannot all be left again), "
        "and in releases whose Default feature set has the gate."
    )


def _mode_lost_text(answer: ClusterVersion) -> str:
    """Returns the error text for a server that stored the request without its mode, which asks for an update."""
    desired = answer.spec.desired_update
    requested_target = desired.version or desired.image if desired else "nothing"
    return (
        "the server took the request without its mode although the dry run kept it; the ClusterVersion now asks for "
        f"{requested_target}. Cancel it before it begins: runup upgrade --clear"
    )
