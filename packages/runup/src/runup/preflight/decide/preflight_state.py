"""The phase of a preflight, decided from ClusterVersion's conditions and the stored reports for every view.

`spec.desiredUpdate.mode` alone does not tell it: an update that waits for its preflight has no mode, and a request with
a mode may not have been taken up yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import parse
from runup.api.config_v1 import ClusterVersion
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED, RUNNING, TYPES
from runup.preflight.decide.stored_reports import History
from runup.report.report import Report

MODE = "Preflight"
# The reason of PreflightRunning since the target's first report.
_CHECKS_RUNNING = "ChecksRunning"


class Phase(Enum):
    """The phase of a preflight. An ended preflight leaves its last report; it is outdated on another release.

    One that is unconfirmed may have gone on or ended: no operator keeps its state up to date.
    """

    REQUESTED = "requested"
    WAITING = "waiting"
    RUNNING = "running"
    LIVE = "live"
    WAITED_FOR = "waited for"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"
    ENDED = "ended"
    OUTDATED = "outdated"


class CurrentPreflight(msgspec.Struct, frozen=True, kw_only=True):
    """The preflight that ClusterVersion is about: of a version, of an image, or of both."""

    version: str
    image: str
    conditions: tuple[Condition, ...]
    phase: Phase

    def is_of(self, version: str, image: str = "") -> bool:
        """Returns whether this preflight checks the release `version`, or `image` if only that is known."""
        return self.version == version if self.version else is_same_image(self.image, image)


def current_preflight(cluster: ClusterVersion, history: History) -> CurrentPreflight | None:
    """Returns the preflight that is requested or that an update waits for; None if there is neither."""
    desired, status, attempt = cluster.spec.desired_update, cluster.status, history.attempt
    if desired is None or not (desired.version or desired.image):
        return None
    conditions = tuple(condition for condition in status.conditions if condition.type in TYPES)
    # A status without the field was written by something else.
    is_taken_up = status.observed_generation >= cluster.metadata.generation or not status.observed_generation
    if not is_taken_up and not (
        # The attempt of the same target continues, for example after a change of the accepted risks.
        attempt is not None
        and desired.version in ("", attempt.target_version)
        and (not desired.image or is_same_image(desired.image, attempt.target_image))
    ):
        # The conditions are about an earlier request.
        conditions = ()
    if not conditions and desired.mode != MODE:
        return None
    phase = Phase.UNCONFIRMED if history.lapse else phase_of(conditions, update_waits=not desired.mode)
    return CurrentPreflight(version=desired.version, image=desired.image, conditions=conditions, phase=phase)


def phase_of(conditions: Sequence[Condition], *, update_waits: bool = False) -> Phase:
    """Returns the phase of an active preflight from its conditions; without conditions it is Requested.

    `update_waits`: the request is one for the update.
    """
    running = find(conditions, RUNNING)
    if status_of(conditions, FAILED) == "True":
        return Phase.FAILED
    if running is None:
        return Phase.REQUESTED
    if update_waits:
        return Phase.WAITED_FOR
    if status_of(conditions, COMPLETED) == "True":
        return Phase.LIVE
    return Phase.RUNNING if running.reason == _CHECKS_RUNNING else Phase.WAITING


def past_phase(cluster: ClusterVersion, report: Report) -> Phase:
    """Returns the phase of a preflight of which only `report` is left."""
    return Phase.ENDED if report.source_version == cluster.status.desired.version else Phase.OUTDATED


def has_passed(cluster: ClusterVersion, target: str) -> bool:
    """Returns whether the cluster has, or is being updated to, version `target` or a later one."""
    current_version, target_version = parse(cluster.status.desired.version), parse(target)
    return current_version is not None and target_version is not None and target_version <= current_version
