"""Before, during and ahead agree: the checks, the status and the forecast report the same stuck states."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME, findings
from tests.factories import context
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.hosted.hosted_objects import document
from tests.updatestatus.decide.test_stuck import (
    CONTROLLER,
    DENIED,
    MCO,
    NOW,
    ago,
    ended,
    moving,
    pod,
    updating,
    waiting,
    worker_pool,
)

from kubekit.api.core_v1 import NodeSpec
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.api.workloads_v1 import Deployment, DeploymentSpec, Lease, LeaseSpec
from runup.api.platform_v1 import (
    CertificateSigningRequest,
    CSRSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeError,
)
from runup.checks.decide.model import Applies
from runup.rehearse.decide.update_forecast import Forecast, ForecastPart, Range, with_holdups
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.holdups import holdups
from runup.updatestatus.decide.read_status import report_of_status
from runup.updatestatus.decide.snapshot import Snapshot

KNOWN = Forecast(total=Range(60, 120), parts=(ForecastPart("control plane", Range(60, 120), ()),))
CRASHING = pod(CONTROLLER, restarts=88, state=waiting("CrashLoopBackOff"), last=ended(2))
DEGRADED = Condition(type="RenderDegraded", status="True", reason="Bad", message="no", last_transition_time=ago(90))
CORDONED = replace(b.node("worker-0000"), spec=NodeSpec(unschedulable=True))
AWAY = moving("Rebooting", ready=b.cond("Ready", "Unknown", "NodeStatusUnknown", since=ago(60)))
REQUEST = CertificateSigningRequest(
    metadata=ObjectMeta(name="csr-1", creation_timestamp=ago(60)),
    spec=CSRSpec(username="system:node:worker-0000", signer_name="kubernetes.io/kubelet-serving"),
)
ATTACHED = VolumeAttachment(
    metadata=ObjectMeta(name="csi-1", creation_timestamp=ago(999), deletion_timestamp=ago(60)),
    spec=VolumeAttachmentSpec(node_name="worker-0000", source=VolumeAttachmentSource(persistent_volume_name="pv-1")),
    status=VolumeAttachmentStatus(attached=True, detach_error=VolumeError(time=ago(1), message="in use")),
)
SCALED = Deployment(
    metadata=ObjectMeta(name="machine-config-controller", namespace=MCO), spec=DeploymentSpec(replicas=0)
)
LEASE = Lease(
    metadata=ObjectMeta(name="version", namespace="openshift-cluster-version"),
    spec=LeaseSpec(holder_identity="pod-1", lease_duration_seconds=137, renew_time=ago(22)),
)
ROUTER = pod("router-default-1", "openshift-ingress", restarts=88, state=waiting("CrashLoopBackOff"), last=ended(2))
SCHEDULER = pod("openshift-kube-scheduler-master-0", "openshift-kube-scheduler", state=waiting("CreateContainerError"))
NODES = tuple(b.node(f"worker-{number:04}") for number in range(1, 3))
REFUSED = b.operator("dns", b.NEW, degraded=b.cond("Degraded", "True", "Sync", DENIED, since=ago(60)))


def done(**changes: Any) -> dict[str, Any]:
    """Returns the changes with all workers updated, so that no update is under way."""
    nodes = tuple(b.node(f"worker-{number:04}", current="new", desired="new") for number in range(3))
    return {"nodes": nodes, **changes}


# The changes of a cluster, the check of the status, whether the update certainly stalls, and the check before.
STATES: dict[str, tuple[dict[str, Any], str, bool, str]] = {
    "a component that crashes": ({"component_pods": (CRASHING,)}, "ComponentCannotAct", True, "SystemPodsFailing"),
    "a component scaled to none": (
        {"component_deployments": (SCALED,)},
        "ComponentCannotAct",
        True,
        "UpdateComponentStopped-machine-config-controller",
    ),
    "a component without a leader": (
        {"leases": (LEASE,)},
        "ComponentCannotAct",
        True,
        "UpdateComponentStopped-cluster-version-operator",
    ),
    "a pod of another operator that crashes": (
        {"component_pods": (ROUTER,)},
        "PlatformPodFailing",
        False,
        "SystemPodsFailing",
    ),
    "a scheduler that crashes": (
        {"component_pods": (SCHEDULER,)},
        "ComponentCannotAct",
        True,
        "SystemPodsFailing",
    ),
    "a degraded node that gives no reason": (
        {
            "nodes": (b.node("worker-0000", state="Degraded", desired="new"), *NODES),
            "machine_config_pools": (b.pool("master"), worker_pool(replace(DEGRADED, type="NodeDegraded"))),
        },
        "NodeDegraded",
        True,
        "MachineConfigPoolDegraded-worker",
    ),
    "a pool that is degraded": (
        {"machine_config_pools": (b.pool("master"), worker_pool(DEGRADED))},
        "MachineConfigPoolDegraded",
        True,
        "MachineConfigPoolDegraded-worker",
    ),
    "a pool whose places are used up": (
        {"nodes": (CORDONED, *NODES)},
        "MachineConfigPoolBlocked",
        True,
        "NodeCordoned",
    ),
    "a node that does not come back": ({"nodes": (AWAY, *NODES)}, "NodeNotBack", True, "NodeNotReady"),
    "a node that hangs": ({"nodes": (moving(cordoned=200), *NODES)}, "NodeUpdateLate", True, "NodeCordoned"),
    "a kubelet without a certificate": (
        {"certificate_requests": (REQUEST,)},
        "CertificateRequestsPending",
        False,
        "CertificateRequestsPending",
    ),
    "a volume that does not detach": (
        {"volume_attachments": (ATTACHED,)},
        "VolumeAttachmentStuck",
        False,
        "VolumeAttachmentStuck",
    ),
    "a webhook that refuses writes": (
        {"cluster_operators": (b.operator("machine-config", b.NEW), REFUSED)},
        "UpdateWriteRefused",
        True,
        "ClusterOperatorDegraded-dns",
    ),
}
ROWS = pytest.mark.parametrize(("changes", "check", "stalls", "before"), STATES.values(), ids=STATES)


@ROWS
def test_status_and_forecast_have_one_headline(changes: dict[str, Any], check: str, stalls: bool, before: str) -> None:
    """During an update both report the state in the same words, and the forecast promises no end."""
    snapshot = updating(**changes)
    health = report_of_status(assess(snapshot, None, NOW, watched=False)).health
    [summary] = [row.summary for row in health if row.check == check]
    held = holdups(snapshot, NOW)
    assert summary in (held.needs_help if stalls else held.unknown)
    result = with_holdups(KNOWN, held)
    assert (result.total, result.parts[0].range) == (Range(60, None), Range(60, None))
    assert bool(result.needs_help) == stalls


@pytest.mark.parametrize("state", ["a component that crashes", "a component scaled to none"])
def test_the_forecast_reports_before_an_update_what_will_stall_it(state: str) -> None:
    """The status of a cluster that is not updating does not mention it."""
    changes, check, _, _ = STATES[state]
    snapshot = updating(**done(**changes))
    report = report_of_status(assess(snapshot, None, NOW, watched=False))
    assert (report.is_updating, [row for row in report.health if row.check == check]) == (False, [])
    assert any("machine-config-controller cannot act" in text for text in holdups(snapshot, NOW).needs_help)


def test_a_forecast_is_unchanged_if_nothing_holds_the_update_up() -> None:
    """This holds before an update, and during one that makes progress."""
    for snapshot in (updating(**done()), updating()):
        assert with_holdups(KNOWN, holdups(snapshot, NOW)) == KNOWN


def test_a_forecast_promises_no_end_if_an_input_cannot_be_read() -> None:
    """Pods that cannot be read may be in any state."""
    result = with_holdups(KNOWN, holdups(updating(component_pods=Unreadable("forbidden")), NOW))
    assert (result.total, result.needs_help) == (Range(60, None), ())
    assert "could not be read" in result.unknown[0]


@ROWS
def test_checks_report_the_state_before_an_update(
    changes: dict[str, Any], check: str, stalls: bool, before: str
) -> None:
    """A check finds the same objects, where a check reads them."""
    objects, to = _objects(updating(**changes)), replace(context(), now=NOW)
    found = {
        name for each in BY_NAME for name, _, applies, _ in findings(each, *objects, to=to) if applies == Applies.YES
    }
    assert before in found, found


def _objects(snapshot: Snapshot) -> list[Any]:
    fields = ("cluster_operators", "machine_config_pools", "nodes", "component_pods", "certificate_requests")
    further = ("volume_attachments", "component_deployments", "leases")
    return [document(each) for field in (*fields, *further) for each in getattr(snapshot, field)]
