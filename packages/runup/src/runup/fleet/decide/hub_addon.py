"""The add-on by which a hub of Open Cluster Management lets its clusters check themselves. Pure.

In: an `AddOn`. Out: the objects for the hub. An AddOnTemplate holds what `runup preflight schedule` makes in a cluster,
and which values the agent there takes back to the hub: the newest report, the newest status and a summary of each,
nothing else. A ClusterManagementAddOn names the Placements that choose the clusters (docs/decisions/0106, 0111).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kubekit.api.scheme import Resource
from runup.api.preflight_reads_v1 import Right
from runup.fleet.decide import newest_status, status_schedule
from runup.preflight.decide import kept_history, newest_report, packed_reports, schedule
from runup.preflight.decide.cluster_run import CONFIG_MAP, NAMESPACE, NAMESPACES, PART_OF, Checking, namespace_object
from runup.preflight.decide.schedule import Schedule
from runup.process.names import NOBODY

Platform = Literal["openshift", "kubernetes"]
NAMES: dict[Platform, str] = {"openshift": "runup-preflight", "kubernetes": "runup-preflight-kubernetes"}
"""The add-on of each kind of cluster: pods name no user on OpenShift, and other clusters lack its namespaces."""
TEMPLATE = Resource(
    group="addon.open-cluster-management.io",
    version="v1alpha1",
    kind="AddOnTemplate",
    plural="addontemplates",
    namespaced=False,
)
ADDON = Resource(
    group="addon.open-cluster-management.io",
    version="v1alpha1",
    kind="ClusterManagementAddOn",
    plural="clustermanagementaddons",
    namespaced=False,
)
CLUSTER_NAME = "{{CLUSTER_NAME}}"
"""What the hub replaces by the name of each cluster."""
# https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/#initial-namespaces
_EVERYWHERE = frozenset({"", "default", "kube-node-lease", "kube-public", "kube-system"})
# On an object of the hub's work: it stays in the cluster when the work goes.
_STAYS = {"addon.open-cluster-management.io/deletion-orphan": ""}

JSON = dict[str, Any]


class AddOn(msgspec.Struct, frozen=True, kw_only=True):
    """A preflight every `every`, as `cron` says in UTC, in the clusters that the `placements` choose.

    A placement is a pair of its namespace and name. `status_every` and `status_cron` say the same of the status; they
    are empty for none, which is all that a cluster without a ClusterVersion has.
    """

    platform: Platform
    every: str
    cron: str
    checking: Checking
    rights: tuple[Right, ...]
    placements: tuple[tuple[str, str], ...]
    status_every: str = ""
    status_cron: str = ""

    @property
    def name(self) -> str:
        """The name of the add-on and its template."""
        return NAMES[self.platform]


def objects(addon: AddOn) -> tuple[JSON, ...]:
    """Returns the template and the add-on, in the order in which they are applied."""
    # As values of their own: YAML of shared ones has anchors, which people would have to follow.
    # What each cluster gets: the namespace, the ConfigMaps of reports, the account, and the CronJob.
    # Of the namespaces that only OpenShift has; a Role in a namespace that is not there could never be applied.
    rights = tuple(right for right in addon.rights if addon.platform == "openshift" or right.namespace in _EVERYWHERE)
    user = None if addon.platform == "openshift" else NOBODY
    checking = msgspec.structs.replace(addon.checking, user=user)
    wanted = Schedule(
        every=addon.every, cron=addon.cron, checking=checking, rights=rights, cluster=CLUSTER_NAME, travels=True
    )
    namespace = _whole(NAMESPACES, _staying(namespace_object().object))
    kept = (kept_history.empty_config_map(), packed_reports.empty_config_map(NAMESPACE, packed_reports.SERIES))
    made = [_whole(each.resource, each.object) for each in schedule.objects(wanted, monitored=False)]
    of_status: list[JSON] = []
    if addon.status_every:
        made_of_status = status_schedule.objects(addon.status_every, addon.status_cron, addon.checking.image)
        of_status = [newest_status.empty_config_map(), *(_whole(resource, obj) for resource, obj in made_of_status)]
    manifests = [namespace, *map(_staying, kept), newest_report.empty_config_map(), *made, *of_status]
    # What the agents do otherwise than with other objects. The ConfigMaps are made once and then left to the Jobs,
    # and two values each of two of them travel.
    feedback = {newest_report.NAME: _feedback(newest_report.SUMMARY, newest_report.REPORT)}
    if addon.status_every:
        feedback[newest_status.NAME] = _feedback(newest_status.SUMMARY, newest_status.STATUS)
    agent = {
        "workload": {"manifests": manifests},
        "manifestConfigs": [
            {
                "resourceIdentifier": {
                    "group": CONFIG_MAP.group,
                    "resource": CONFIG_MAP.plural,
                    "namespace": NAMESPACE,
                    "name": name,
                },
                "updateStrategy": {"type": "CreateOnly"},
                **({"feedbackRules": feedback[name]} if name in feedback else {}),
            }
            for name in (kept_history.NAME, packed_reports.SERIES, *feedback)
        ],
    }
    return tuple(
        msgspec.json.decode(msgspec.json.encode(each))
        for each in (
            _whole(
                TEMPLATE,
                {
                    "metadata": {"name": addon.name, "labels": PART_OF},
                    "spec": {"addonName": addon.name, "agentSpec": agent},
                },
            ),
            _cluster_management_addon(addon),
        )
    )


def _feedback(text: str, packed: str) -> list[JSON]:
    """Returns the rule by which an agent takes a text and a packed value out of a ConfigMap."""
    paths = [{"name": text, "path": f".data.{text}"}, {"name": packed, "path": f".binaryData.{packed}"}]
    return [{"type": "JSONPaths", "jsonPaths": paths}]


def _cluster_management_addon(addon: AddOn) -> JSON:
    template = {"group": TEMPLATE.group, "resource": TEMPLATE.plural, "defaultConfig": {"name": addon.name}}
    spec = {
        "addOnMeta": {
            "displayName": "runup preflight",
            "description": "Checks the cluster for its next update, reports its progress, and changes nothing.",
        },
        "supportedConfigs": [template],
        "installStrategy": {
            "type": "Placements",
            "placements": [
                {"namespace": namespace, "name": name, "rolloutStrategy": {"type": "All"}}
                for namespace, name in addon.placements
            ],
        },
    }
    return _whole(ADDON, {"metadata": {"name": addon.name, "labels": PART_OF}, "spec": spec})


def _staying(obj: JSON) -> JSON:
    metadata = obj["metadata"]
    return obj | {"metadata": metadata | {"annotations": metadata.get("annotations", {}) | _STAYS}}


def _whole(resource: Resource, obj: JSON) -> JSON:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
