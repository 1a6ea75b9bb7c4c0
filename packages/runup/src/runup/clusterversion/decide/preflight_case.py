"""The input of the steps of a preflight (`PreflightCase`), and their result (`Preflight`).

Determines which attempt a request belongs to and what exists of its Deployment; plans nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import Release, Update
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import Work
from runup.preflight.decide import preflight_conditions as conditions
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import Attempt, attempt_id
from runup.preflight.decide.deployment_steps import Deployed, Trust
from runup.preflight.decide.published_risks import CheckedTarget
from runup.preflight.decide.stored_reports import History
from runup.process.plan import Action
from runup.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The preflight's part of a pass.

    `checked` are the targets whose risks count, newest first; `actions` are carried out after the status is written.
    """

    conditions: tuple[Condition, ...] = ()
    checked: tuple[CheckedTarget, ...] = ()
    history: History = History()  # noqa: RUF009 -- frozen
    actions: tuple[Action, ...] = ()
    work: tuple[Work, ...] = ()
    requeue_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightCase:
    """A wanted preflight: the view, the request, the target, and the attempt that is (or would be) its own."""

    view: View
    update: Update
    target: Release
    attempt: Attempt
    check: ReleaseCheck | None

    @property
    def subject(self) -> conditions.Subject:
        """Returns what the conditions name: target and source."""
        return conditions.Subject(target=self.target.version, source=self.attempt.source_version)

    @property
    def last_good(self) -> Report | None:
        """The newest stored report of exactly this target."""
        return stored_of(self.view.history, self)

    @property
    def last_good_is_older(self) -> bool:
        """Returns whether that report is from an earlier attempt."""
        return self.last_good is not None and self.last_good.preflight_id != self.attempt.id


def stored_of(history: History, case: PreflightCase) -> Report | None:
    """Returns the newest report in `history` of exactly the target of `case`."""
    for report in history.reports:
        key = (report.source_version, report.target_version, report.target_image)
        if key == (case.attempt.source_version, case.target.version, case.target.image):
            return report
    return None


def target_of(attempt: Attempt) -> Release:
    """Returns the release that the attempt checks."""
    return Release(version=attempt.target_version, image=attempt.target_image)


def case_of(view: View, update: Update, target: Release) -> PreflightCase:
    """Returns the input of the steps, with the recorded attempt if it is for this target, else with a new one."""
    recorded = view.history.attempt
    if recorded is None or not recorded.is_for(target, view.current.version):
        recorded = None
    if recorded is not None and update.mode:
        # The request has its mode again. An attempt that made way has no workload any more: a new one replaces it.
        recorded = None if recorded.making_way else with_fields(recorded, became_update=False)
    attempt = recorded or new_attempt(view, target)
    view = replace(view, history=histories.with_attempt(view.history, attempt)) if recorded else view
    return PreflightCase(
        view=view, update=update, target=target, attempt=attempt, check=view.observed.releases.get(target.image)
    )


def new_attempt(view: View, target: Release) -> Attempt:
    """Returns a new attempt, started now, for the current generation of ClusterVersion."""
    # The ID is kept while the same target is asked for: accepting a risk changes the generation
    # (docs/decisions/0011-one-reconcile-and-a-record-in-a-configmap.md).
    source = view.current.version
    generation = view.observed.cluster_version.metadata.generation
    return Attempt(
        id=attempt_id(generation=generation, image=target.image, source=source),
        source_version=source,
        target_version=target.version,
        target_image=target.image,
        started_time=view.now,
    )


def trust_of(case: PreflightCase) -> Trust:
    """Returns whether the target's signature is verified; `force` waives that."""
    # `force` waives the signature, as it does for an update.
    if case.update.force:
        return Trust.VERIFIED
    return case.check.trust if case.check is not None else Trust.PENDING


def deployed_state(view: View, attempt: Attempt | None) -> Deployed:
    """Returns whether there is a Deployment: that of `attempt`, another one, one that is being deleted, or none."""
    deployment = view.observed.deployment
    if deployment is None:
        return Deployed.GOING if view.observed.pods else Deployed.NONE
    # A finalizer, such as that of a foreground deletion, keeps the object until its pods are gone.
    if deployment.metadata.deletion_timestamp is not None:
        return Deployed.GOING
    preflight_id = deployment.metadata.annotations.get(preflight_deployment.ID_ANNOTATION)
    return Deployed.OURS if attempt is not None and preflight_id == attempt.id else Deployed.OTHER


def was_waived(view: View) -> bool:
    """Returns whether the observed Deployment was started for a target whose signature was waived."""
    deployment = view.observed.deployment
    return deployment is not None and preflight_deployment.was_waived(deployment)
