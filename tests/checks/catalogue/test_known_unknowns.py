"""What a check cannot tell is Unknown, whatever else cannot be read; a field that is missing proves nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import context

from kubekit.lang import yaml as kyaml
from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies, Check, Finding
from runup.checks.decide.snapshots import snapshot_of

JSON = dict[str, Any]
# Examples of the checks whose files lack one.
OTHERS = {
    "DualStackIncompatible": """
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
status: {networkType: OVNKubernetes, serviceNetwork: [172.30.0.0/16, "fd02::/112"]}
""",
    "ClusterOperatorUpgradeable": """
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: network}
status: {conditions: [{type: Upgradeable, status: "False", reason: Kuryr, message: Migrate it.}]}
""",
    "ClusterOperatorHealth": """
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: network}
status:
  conditions:
  - {type: Available, status: "False", reason: Down, message: It is down., lastTransitionTime: "2026-01-10T12:00:00Z"}
  - {type: Degraded, status: "True", reason: Down, message: It is down., lastTransitionTime: "2026-01-10T12:00:00Z"}
""",
    "ClusterVersionUpdating": """
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  conditions: [{type: Progressing, status: "True", message: Working towards 5.0.1}]
  history: [{state: Partial, version: 5.0.1, startedTime: "2026-01-10T12:00:00Z"}]
""",
    "ClusterVersionHealth": """
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  conditions:
  - {type: Failing, status: "True", reason: Down, message: It fails., lastTransitionTime: "2026-01-10T12:00:00Z"}
""",
    "EtcdMembersUnhealthy": """
apiVersion: operator.openshift.io/v1
kind: Etcd
metadata: {name: cluster}
status:
  conditions:
  - {type: EtcdMembersAvailable, status: "True"}
  - {type: EtcdMembersDegraded, status: "True", reason: UnhealthyMembers, message: cp-0 is unhealthy}
""",
    "MachineConfigPoolPaused": """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {paused: true}
status: {machineCount: 3}
""",
    "MachineConfigPoolHealth": """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
status:
  machineCount: 3
  degradedMachineCount: 1
  conditions: [{type: Degraded, status: "True", reason: Down, message: It fails.}]
""",
    "NodeHealth": """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {conditions: [{type: Ready, status: "False", reason: KubeletNotReady, message: no runtime}]}
""",
    "NodePools": """
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}}
status: {machineCount: 1}
---
apiVersion: v1
kind: Node
metadata: {name: lost-0}
status: {nodeInfo: {kubeletVersion: v1.36.1}}
""",
    "KubeletSkew": """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {kubeletVersion: v1.20.0}}
""",
    "PodDisruptionBudgetBlocksDrain": """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: shop, generation: 1}
spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}
status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, labels: {app: db}, ownerReferences: [{kind: StatefulSet, name: db}]}
spec: {nodeName: worker-0}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
""",
    "PodDisruptionBudgetPods": """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: shop, generation: 1}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: db}}}
status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1, expectedPods: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, labels: {app: db}, ownerReferences: [{kind: StatefulSet, name: db}]}
spec: {nodeName: worker-0}
status: {phase: Running, conditions: [{type: Ready, status: "False"}]}
""",
    "FeatureSetForbidsUpdates": """
apiVersion: config.openshift.io/v1
kind: FeatureGate
metadata: {name: cluster}
spec: {featureSet: TechPreviewNoUpgrade}
""",
    "TargetSupportEnded": """
update: {from: 1.21.0, to: 1.22.0}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {kubeletVersion: v1.21.0}}
""",
}
BY_NAME = {check.name: replace(check, example=check.example or OTHERS[check.name]) for check in CHECKS}


def objects_of(check: Check) -> list[JSON]:
    """The objects of the check's example, and next to each a blank one, which says nothing of what is asked."""
    given: list[JSON] = [obj for obj in kyaml.load_all(check.example) if "apiVersion" in obj]
    blank = [
        {
            **{key: obj[key] for key in ("apiVersion", "kind")},
            "metadata": {**obj.get("metadata", {}), "name": f"blank-{n}"},
        }
        for n, obj in enumerate(given)
    ]
    return [*given, *blank]


def unknown(check: Check, objects: list[JSON]) -> set[Finding]:
    """The findings that say what the check could not report objects that it has read."""
    findings = run_check(check, snapshot_of(check.reads, objects), context()).findings
    return {
        finding
        for finding in findings
        if finding.applies is Applies.UNKNOWN and finding.resources and finding.reason != "PreflightPartial"
    }


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_the_check_applies_to_its_example(name: str) -> None:
    """Else a field that is missing would prove nothing."""
    assert run_check(BY_NAME[name], *check_page.example(BY_NAME[name])).result == "Applies"


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_no_object_that_cannot_be_read_hides_an_unknown(name: str) -> None:
    """A pool that cannot be read must not keep back that a node reports no version."""
    check = BY_NAME[name]
    objects = objects_of(check)
    for index in range(len(objects)):
        odd = copy.deepcopy(objects)
        odd[index]["metadata"]["annotations"] = "odd"
        without = [obj for place, obj in enumerate(objects) if place != index]
        assert unknown(check, without) <= unknown(check, odd), objects[index]


# Fields of a status without which a check says that nothing applies, and why that is right: by kind, the field and what
# is below it, for the checks that are named. What users leave out of a spec has the API's default; a status has none.
_WRITTEN_ON_FAILURE = "its controller writes the condition only while it is true"
_OF_NO_KUBELET = "NodeHealthUnknown and KubeletSkewUnknown name a node without a kubelet's report"
ABSENCE_IS_AN_ANSWER: dict[tuple[str, str], tuple[str, frozenset[str]]] = {
    ("APIRequestCount", ""): (
        "kube-apiserver makes the object, and fills it, when the API is first requested",
        frozenset({"RemovedAPIRequested", "DeprecatedAPIRequested"}),
    ),
    ("APIRequestCount", "removedInRelease"): (
        "openshift/api, apiserver/v1: empty for an API that no release removes",
        frozenset({"DeprecatedAPIRequested"}),
    ),
    ("Certificate", ""): (
        "cert-manager, certmanager/v1: without notAfter there is no certificate yet that could end",
        frozenset({"CertificateExpires"}),
    ),
    ("ClusterOperator", ""): (
        "cluster-version-operator, pkg/risk/upgradeable: an operator without the condition may be updated",
        frozenset({"ClusterOperatorUpgradeable"}),
    ),
    ("Deployment", ""): (_WRITTEN_ON_FAILURE, frozenset({"PodsNotMade"})),
    ("InstallPlan", ""): (
        "operator-framework/api, InstallPlanPhaseNone: the empty phase is that of a plan which OLM has not handled",
        frozenset({"OperatorUpdateWaits"}),
    ),
    ("Job", ""): ("batch/v1: active counts the running pods, and is left out for none", frozenset({"JobLostByDrain"})),
    ("MachineConfigPool", ""): (
        "a pool without a configuration is not rendered, as MachineConfigPoolHealth reports if it has nodes; a new one "
        "has no machines",
        frozenset({"OSImageOverridden", "MachineConfigPoolHealth", "MachineConfigPoolPaused"}),
    ),
    ("Network", ""): (
        "NetworkTypeRemoved reports a Network without a type, and its spec counts for a status that is empty",
        frozenset({"NetworkMigrationUnfinished", "InternalSubnetOverlap"}),
    ),
    ("Node", "conditions"): (_OF_NO_KUBELET, frozenset({"NodePressure"})),
    ("Node", ""): (_OF_NO_KUBELET, frozenset({"NodePressure", "TraefikGroupRemoved", "PackageBasedNodes"})),
    ("Node", "nodeInfo"): (
        "KubeletSkewUnknown names a node without a version; from 4.19 on no node can be made of packages",
        frozenset({"TraefikGroupRemoved", "PackageBasedNodes"}),
    ),
    ("Pod", ""): (
        "kubernetes, pkg/registry/core/pod: the API server sets the phase when a pod is made; a container that does "
        "not wait has no reason",
        frozenset({"SystemPodsFailing", "StatefulSetHeldUp", "PodDisruptionBudgetPods"}),
    ),
    ("PodDisruptionBudget", ""): (
        "PodDisruptionBudgetBlocksDrain reports a budget that is not computed",
        frozenset({"PodDisruptionBudgetPods"}),
    ),
    ("ResourceQuota", ""): (
        "apiserver, pkg/admission/plugin/resourcequota: what status.hard lacks is not limited",
        frozenset({"QuotaFull"}),
    ),
    ("ResourceQuota", "hard"): (
        "apiserver, pkg/admission/plugin/resourcequota: what status.hard lacks is not limited",
        frozenset({"QuotaFull"}),
    ),
    ("Route", ""): (_WRITTEN_ON_FAILURE, frozenset({"RoutesUnservable"})),
    ("StorageVersionMigration", ""): (
        "kube-storage-version-migrator: no condition before it runs",
        frozenset({"StorageVersionMigrationFailed"}),
    ),
    ("Subscription", ""): (
        "OLM writes Deprecated conditions while a catalog says so, and installedCSV once something is installed",
        frozenset({"OperatorDeprecated", "OperatorNotInTargetCatalog"}),
    ),
    ("VirtualMachineInstance", ""): (
        "kubevirt, VmPhaseUnset: a machine without a phase does not run yet",
        frozenset({"VirtualMachineNotMigratable"}),
    ),
    ("VolumeAttachment", ""): (
        "storage.k8s.io/v1: attached is required, and an error is there only after a failure",
        frozenset({"VolumeAttachmentStuck", "CSIDriverNotReady", "ZoneLockedVolumes"}),
    ),
}
# Of a condition, its type and its status are required, and so are the fields of these two lists.
_REQUIRED = frozenset({"type", "status", "name", "byUser", "byNode", "state"})
# policy/v1 and machineconfiguration/v1 have these numbers in each status.
_REQUIRED |= {"machineCount", "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}


def paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all fields and items, the outer ones first."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, key)
        yield from paths(below, (*at, key))


def missing_fields() -> Iterator[tuple[str, int, tuple[str | int, ...]]]:
    """Each optional field of the status of an object in the example of a check."""
    for name, check in sorted(BY_NAME.items()):
        for index, document in enumerate(kyaml.load_all(check.example)):
            for path in paths(document.get("status"), ("status",)):
                if path[-1] not in _REQUIRED and not isinstance(path[-1], int):
                    yield name, index, path
            if "status" in document:
                yield name, index, ("status",)


def without_field(text: str, index: int, path: tuple[str | int, ...]) -> str:
    """The example without that field of its document of that number."""
    documents = list(kyaml.load_all(text))
    holder = documents[index]
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return kyaml.dump_all(documents)


@pytest.mark.parametrize(("name", "index", "path"), list(missing_fields()), ids=str)
def test_a_field_that_is_missing_is_no_answer(name: str, index: int, path: tuple[str | int, ...]) -> None:
    """The check still applies, or does not know; unless its absence has a meaning, which is listed with its source."""
    check = BY_NAME[name]
    snapshot, given = check_page.example(replace(check, example=without_field(check.example, index, path)))
    kind = list(kyaml.load_all(check.example))[index]["kind"]
    listed = [
        checks
        for (of, field), (_, checks) in ABSENCE_IS_AN_ANSWER.items()
        if of == kind and (not field or path[1:2] == (field,))
    ]
    is_clear = run_check(check, snapshot, given).result == "Clear"
    assert not is_clear or any(name in checks for checks in listed)
