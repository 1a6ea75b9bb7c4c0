"""Decides what `--clear-preflight` does: it clears a preflight's request, or ends a preflight without one. Pure.

If an update is requested while its preflight runs, the update waits for the findings, and its request has no mode that
could be cleared. An annotation that names the attempt then ends the preflight and leaves the update
(docs/decisions/0076).
"""

from __future__ import annotations

from runup.advice.decide.update_in_progress import update_in_progress
from runup.api.config_v1 import ClusterVersion, Release
from runup.cli.clusterversion.preflight_request import clear_patch
from runup.cli.clusterversion.update_under_way import Clearing, asks_for, update_goes_on_message
from runup.cli.preflight.render import finding_texts as rendered
from runup.cli.render.text import out
from runup.preflight.decide.attempt import END_ANNOTATION, Attempt


def end_preflight(cluster: ClusterVersion, attempt: Attempt | None, still_runs: str | None) -> Clearing:
    """Returns the patch and the messages.

    `attempt` is the one that the operator has recorded, `still_runs` the target of the Deployment that exists.
    """
    patch = clear_patch(cluster)
    if patch is not None:
        return Clearing(
            patch, (out(rendered.cleared_text(cluster)), *update_goes_on_message(update_in_progress(cluster)))
        )
    target = attempt.target_version or attempt.target_image if attempt is not None else still_runs
    if target is None:
        return Clearing(None, (out(rendered.cleared_text(None)),))
    if attempt is None or not _waits_for(cluster, attempt) or _is_ended(cluster, attempt):
        text = f"The preflight of {target} is not requested any more; the operator removes what still runs of it\n"
        return Clearing(None, (out(f"info: {text}"),))
    text = f"Ended the preflight of {target}; the update to it goes on without it\n"
    return Clearing({"metadata": {"annotations": {END_ANNOTATION: attempt.id}}}, (out(text),))


def _waits_for(cluster: ClusterVersion, attempt: Attempt) -> bool:
    """Returns whether the update that is requested is the one to the target of `attempt`."""
    desired = cluster.spec.desired_update
    target = Release(version=attempt.target_version, image=attempt.target_image)
    return desired is not None and not attempt.failed and asks_for(desired, target)


def _is_ended(cluster: ClusterVersion, attempt: Attempt) -> bool:
    return cluster.metadata.annotations.get(END_ANNOTATION) == attempt.id
