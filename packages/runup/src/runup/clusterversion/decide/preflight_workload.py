"""Plans the objects of a preflight in the cluster: its Deployment, account, Pods of checks, and reports in ConfigMaps.

Whether the preflight goes on is decided elsewhere (`preflights`). In: the case or the view. Out: actions, and texts
about Pods that are being deleted.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace as with_fields

from kubekit.api import scheme
from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.workloads_v1 import Deployment
from runup.api.preflight_reads_v1 import Right
from runup.clusterversion.decide.preflight_case import PreflightCase, deployed_state
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import ReadImages, ReadRights, Work
from runup.preflight.decide import container_check_pods, preflight_deployment, service_account
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.deployment_steps import Deployed
from runup.preflight.decide.outcome import Observations
from runup.process.plan import Action, Apply, Delete
from runup.report.report import Report

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
    """Returns the settings of the Deployment; a target without a verified signature gets an account of its own."""
    settings = view.observed.facts.place
    return with_fields(settings, service_account="dedicated") if waived else settings


def account_rights(case: PreflightCase, settings: preflight_deployment.PodSettings) -> tuple[Right, ...] | None:
    """Returns the rights of the dedicated account; empty if it is not used, None while they are being looked up."""
    # The operator's account has all rights (docs/decisions/0051-whoever-applies-a-release-has-all-rights.md).
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
    expected = preflight_deployment.report_map(attempt.id) if attempt is not None and not attempt.failed else ""
    namespace = view.observed.facts.place.namespace
    stale = (name for name in view.observed.report_maps if name not in (current, expected))
    return tuple(Delete(CONFIG_MAP, NamespacedName(namespace, name)) for name in stale)


def restart_hung_pods(scene: Observations) -> tuple[Action, ...]:
    """Plans to remove pods whose target reported nothing for the whole time limit; the Deployment replaces them."""
    return tuple(
        Delete(POD, NamespacedName(p.metadata.namespace, p.metadata.name), uid=p.metadata.uid) for p in scene.hung
    )
