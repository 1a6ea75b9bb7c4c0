"""Plans the objects of a preflight in the cluster: its Deployment, account, Pods of checks, and reports in ConfigMaps.

Whether the preflight continues is decided elsewhere (`preflights`). In: the view, or `PreflightCase`, which has the
attempt that a request belongs to. Out: actions, and texts about Pods that are being deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from msgspec.structs import replace as with_fields

from kubekit.api import scheme
from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.workloads_v1 import Deployment
from runup.api.config_v1 import Release, Update
from runup.api.preflight_reads_v1 import Right
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import ReadImages, ReadRights, Work
from runup.preflight.decide import container_check_pods, outcome, preflight_deployment, published_risks, service_account
from runup.preflight.decide import preflight_conditions as conditions
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import Attempt, attempt_id, keeps_mode
from runup.preflight.decide.deployment_steps import Deployed, Trust
from runup.preflight.decide.stored_reports import History
from runup.process.plan import Action, Apply, Delete
from runup.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The preflight's part of a pass.

    `checked` are the targets whose risks count, newest first; `actions` are carried out after the status is written.
    """

    conditions: tuple[Condition, ...] = ()
    checked: tuple[published_risks.CheckedTarget, ...] = ()
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
    # The request has its mode again. An attempt that made way has no workload any more: a new one replaces it.
    if recorded is not None and update.mode and recorded.making_way:
        recorded = None
    attempt = recorded or new_attempt(view, target)
    if update.mode:
        running = find(view.status.conditions, conditions.RUNNING)
        is_changed = view.status.observed_generation != view.generation
        attempt = with_fields(
            attempt,
            became_update=False,
            requested_version=update.version,
            requested_image=update.image,
            kept_mode=keeps_mode(update, view.history.attempt, after_refusal=running is not None and is_changed),
        )
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
    """Returns which Deployment exists: the one of `attempt`, another one, one in deletion, or none."""
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


# Pods named in a message; the Deployment has one replica, so more are rare.
_PODS_SHOWN = 3
# A pod that is deleted is gone within its 10 seconds of grace; after this time its node is probably lost.
_OVERDUE = timedelta(seconds=60)
CONFIG_MAP = scheme.resource_of(ConfigMap)
POD = scheme.resource_of(Pod)
DEPLOYMENT = scheme.resource_of(Deployment)


def ending_text(view: View) -> str:
    """Returns a text that names the terminating pods and, if they are overdue, how to delete them; or ""."""
    pods = sorted(view.observed.pods, key=lambda pod: pod.metadata.name)
    if not pods:
        return ""
    pod_names = [f"{pod.metadata.name}{f' on node {pod.spec.node_name}' if pod.spec.node_name else ''}" for pod in pods]
    text = ", ".join(pod_names[:_PODS_SHOWN])
    due = [pod.metadata.deletion_timestamp for pod in pods if pod.metadata.deletion_timestamp is not None]
    # The kubelet confirms a pod's end: on a node that is lost, it stays until somebody forces its deletion.
    if due and view.now - min(due) >= _OVERDUE:
        text += f" since {min(due):%Y-%m-%dT%H:%M:%SZ}; if the node is lost, `kubectl -n "
        text += f"{view.observed.facts.place.namespace} delete pod -l {preflight_deployment.SELECTOR} --force`"
    return f": {text}"


def workload_gone(view: View) -> bool:
    """Returns whether neither the Deployment nor a pod of any preflight is left."""
    return deployed_state(view, None) is Deployed.NONE


def pod_settings_for(view: View, waived: bool) -> preflight_deployment.PodSettings:
    """Returns the settings of the Deployment; a target without a verified signature gets a separate account."""
    settings = view.observed.facts.place
    return with_fields(settings, service_account="dedicated") if waived else settings


def account_rights(case: PreflightCase, settings: preflight_deployment.PodSettings) -> tuple[Right, ...] | None:
    """Returns the rights of the dedicated account; empty if it is not used, None while they are being looked up."""
    # The operator's account has all rights (docs/decisions/0051-give-the-operator-cluster-admin.md).
    if settings.service_account != "dedicated":
        return ()
    if case.check is None or (case.check.rights_until is not None and case.view.now >= case.check.rights_until):
        return None
    return case.check.rights


def rights_work(case: PreflightCase) -> tuple[Work, ...]:
    """Returns the work of reading the target's rights, unless that is under way."""
    under_way = case.check is not None and case.check.asking
    return () if under_way else (ReadRights(case.target.image),)


def run_check_containers(case: PreflightCase, report: Report | None) -> tuple[tuple[Action, ...], tuple[Work, ...]]:
    """Returns the Pods that the target's checks want, and the work of reading the release's images if they need it."""
    owner, check = case.view.observed.deployment, case.check
    if report is None or owner is None:
        return (), ()
    images = check.images if check is not None else None
    expired = check is not None and check.images_until is not None and case.view.now >= check.images_until
    asking = check is not None and check.listing
    due = bool(report.containers) and (images is None or expired) and not asking
    pod_actions = container_check_pods.actions(
        case.attempt,
        case.view.observed.facts.place,
        owner=owner,
        wanted_containers=report.containers,
        pods_found=case.view.observed.check_pods,
        images=images,
    )
    return tuple(pod_actions), (ReadImages(case.target.image),) if due else ()


def reapply_if_changed(case: PreflightCase) -> tuple[tuple[Action, ...], tuple[Work, ...]]:
    """Plans to apply a Deployment that differs from the desired one: a moved operator, a setting, a manual edit."""
    deployment = case.view.observed.deployment
    assert deployment is not None
    waived = preflight_deployment.was_waived(deployment)
    settings = pod_settings_for(case.view, waived)
    if preflight_deployment.is_as_wanted(
        deployment, preflight_deployment.deployment(case.attempt, settings, waived=waived)
    ):
        return (), ()
    rights = account_rights(case, settings)
    if rights is None:
        return (), rights_work(case)
    roles = {*service_account.role_namespaces(settings, rights), *preflight_deployment.roles_of(deployment)}
    # The setting changed from a dedicated account to the operator's: the account's objects go.
    if settings.account != preflight_deployment.NAME:
        apply_deployment = Apply(resource=DEPLOYMENT, object=preflight_deployment.deployment(case.attempt, settings))
        return (apply_deployment, *_without_account(case.view, deployment)), ()
    apply_deployment = Apply(
        resource=DEPLOYMENT, object=preflight_deployment.deployment(case.attempt, settings, waived=waived, roles=roles)
    )
    return (*service_account.account_objects(settings, case.attempt.id, rights), apply_deployment), ()


def stop_workload(view: View) -> tuple[Action, ...]:
    """Plans to remove the dedicated account's objects, then the Deployment: while it exists, that is repeated."""
    deployment = view.observed.deployment
    if deployment is None or deployment.metadata.deletion_timestamp is not None:
        return ()
    settings = view.observed.facts.place
    deletion = Delete(
        DEPLOYMENT, NamespacedName(settings.namespace, preflight_deployment.NAME), uid=deployment.metadata.uid
    )
    return (*_without_account(view, deployment), deletion)


def _without_account(view: View, deployment: Deployment) -> tuple[Action, ...]:
    """Plans to remove the dedicated account's objects, if the Deployment has that account."""
    if deployment.spec.template.spec.service_account_name != preflight_deployment.NAME:
        return ()
    preflight_id = deployment.metadata.annotations.get(preflight_deployment.ID_ANNOTATION, "")
    return service_account.account_deletions(
        view.observed.facts.place, preflight_id, preflight_deployment.roles_of(deployment)
    )


def remove_stale_reports(view: View, attempt: Attempt | None) -> tuple[Action, ...]:
    """Plans to remove reports in ConfigMaps that are no longer written.

    The report of `attempt`, which is recorded, stays: its Deployment may exist already without being observed.
    """
    deployment = view.observed.deployment
    if deployment is None and view.observed.pods:
        return ()
    current = (
        preflight_deployment.report_map(deployment.metadata.annotations.get(preflight_deployment.ID_ANNOTATION, ""))
        if deployment
        else ""
    )
    expected = preflight_deployment.report_map(attempt.id) if attempt is not None and not attempt.over else ""
    namespace = view.observed.facts.place.namespace
    stale = (name for name in view.observed.report_maps if name not in (current, expected))
    return tuple(Delete(CONFIG_MAP, NamespacedName(namespace, name)) for name in stale)


def restart_hung_pods(scene: outcome.Observations) -> tuple[Action, ...]:
    """Plans to remove pods whose target reported nothing for the whole time limit; the Deployment replaces them."""
    return tuple(
        Delete(POD, NamespacedName(p.metadata.namespace, p.metadata.name), uid=p.metadata.uid) for p in scene.hung
    )
