"""Checks before an update, insights during it and the forecast name the same cause where an update is stuck."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import messages_of
from tests.factories import context, obj
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide import test_stuck as stuck
from tests.updatestatus.decide import test_waits as waits

from kubekit.api import codec
from kubekit.api.core_v1 import NodeSpec
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.api.scheme import resource_of
from runup.api.platform_v1 import (
    CertificateSigningRequest,
    CSRSpec,
    VolumeAttachment,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
)
from runup.rehearse.decide.drain_inputs import KINDS, drained_cluster
from runup.rehearse.decide.drains.drain_result import DrainResult
from runup.rehearse.decide.drains.drained_cluster import DrainSettings
from runup.rehearse.decide.drains.simulation import simulate
from runup.updatestatus.decide.snapshot import LISTED, Snapshot, readable

IMAGE_BUILD = Condition(
    type="ImageBuildDegraded", status="True", reason="BuildFailed", last_transition_time=stuck.ago(90)
)
CORDONED = replace(b.node("worker-0001"), spec=NodeSpec(unschedulable=True))
AWAY = stuck.moving("Rebooting", ready=b.cond("Ready", "Unknown", "NodeStatusUnknown", since=stuck.ago(60)))
REQUEST = CertificateSigningRequest(
    metadata=ObjectMeta(name="csr-1", creation_timestamp=stuck.ago(50)),
    spec=CSRSpec(signer_name="kubernetes.io/kubelet-serving", username="system:node:worker-0000"),
)
ATTACHMENT = VolumeAttachment(
    metadata=ObjectMeta(name="csi-1", deletion_timestamp=stuck.ago(30)),
    spec=VolumeAttachmentSpec(node_name="worker-0000"),
    status=VolumeAttachmentStatus(attached=True),
)
CRASHING = stuck.pod(stuck.CONTROLLER, restarts=88, state=stuck.waiting("CrashLoopBackOff"))
UNCOMPUTED = waits.budget(conditions=(b.cond("DisruptionAllowed", "False", "SyncFailed", "no scale"),))
WORKERS = (b.node(), CORDONED, b.node("worker-0002"))

STATES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a degraded pool": (
        {"machine_config_pools": (b.pool("master"), stuck.worker_pool(IMAGE_BUILD))},
        "MachineConfigPoolHealth",
        "MachineConfigPoolDegraded",
        "ImageBuildDegraded",
    ),
    "cordoned nodes use up the places": (
        {"nodes": WORKERS},
        "MachineConfigPoolCannotMove",
        "MachineConfigPoolBlocked",
        "worker-0001",
    ),
    "a node is away": ({"nodes": (AWAY, b.node("worker-0001"))}, "NodeHealth", "NodeNotBack", "NodeStatusUnknown"),
    "certificates are not signed": (
        {"certificate_requests": (REQUEST,)},
        "CertificateRequestsPending",
        "CertificateRequestsPending",
        "system:node:worker-0000",
    ),
    "a volume is not detached": (
        {"volume_attachments": (ATTACHMENT,)},
        "VolumeAttachmentStuck",
        "VolumeAttachmentStuck",
        "worker-0000",
    ),
    "a component crashes": (
        {"component_pods": (CRASHING,)},
        "SystemPodsFailing",
        "ComponentCannotAct",
        "CrashLoopBackOff",
    ),
    "a budget is not computed": (
        {
            "nodes": (b.node(**waits.DRAINING), b.node("worker-0001")),
            "draining_pods": (waits.shop_pod(),),
            "pod_disruption_budgets": (UNCOMPUTED,),
        },
        "PodDisruptionBudgetBlocksDrain",
        "DrainBlocked",
        "SyncFailed: no scale",
    ),
    "a webhook does not answer": (
        {"events": (stuck.event('failed calling webhook "v.example.com": no endpoints available'),)},
        "WebhookBlocksUpdate",
        "UpdateWriteRefused",
        "v.example.com",
    ),
    "a policy denies": (
        {
            "cluster_operators": (
                b.operator(
                    "dns",
                    b.NEW,
                    degraded=b.cond(
                        "Degraded",
                        "True",
                        "Sync",
                        "deployments.apps \"dns\" is forbidden: ValidatingAdmissionPolicy 'frozen' with "
                        "binding 'frozen' denied request: frozen until Monday",
                        since=stuck.ago(60),
                    ),
                ),
            )
        },
        "AdmissionPolicyDeniesUpdate",
        "UpdateWriteRefused",
        "ValidatingAdmissionPolicy frozen",
    ),
}

# How the forecast and the simulated drains word the cause.
AHEAD = {
    "a degraded pool": "pool worker does not begin: it is degraded: ImageBuildDegraded (BuildFailed)",
    "cordoned nodes use up the places": (
        "pool worker does not begin: worker-0001 cordoned, and at most 1 of its nodes may be unavailable"
    ),
    "a node is away": (
        "pool worker does not begin: worker-0000 not ready, and at most 1 of its nodes may be unavailable"
    ),
    "a budget is not computed": (
        "pod shop/web-1 of node worker-0000 cannot be evicted: minAvailable 2: the disruption controller cannot "
        "compute it, and so it allows nothing"
    ),
}


# The configuration of what refuses writes is read before an update only; during it, components quote it.
CONFIGURATIONS: dict[str, list[dict[str, Any]]] = {
    "a webhook does not answer": [
        obj(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "v",
            webhooks=[
                {
                    "name": "v.example.com",
                    "failurePolicy": "Fail",
                    "clientConfig": {"service": {"namespace": "gone", "name": "v"}},
                    "rules": [
                        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
                    ],
                }
            ],
        ),
        obj("v1", "Namespace", "openshift-dns"),
    ],
    "a policy denies": [
        obj(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            "frozen",
            spec={
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "operations": ["*"],
                            "apiGroups": ["apps"],
                            "apiVersions": ["v1"],
                            "resources": ["deployments"],
                        }
                    ]
                },
                "validations": [{"expression": "false", "message": "frozen until Monday"}],
            },
        ),
        obj(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            "frozen",
            spec={"policyName": "frozen", "validationActions": ["Deny"]},
        ),
        obj("v1", "Namespace", "openshift-dns"),
    ],
}


@pytest.mark.parametrize(
    ("changes", "check", "insight", "cause", "configuration"),
    [(*state, CONFIGURATIONS.get(name, [])) for name, state in STATES.items()],
    ids=STATES.keys(),
)
def test_before_and_during_an_update_the_cause_is_the_same(
    changes: dict[str, Any], check: str, insight: str, cause: str, configuration: list[dict[str, Any]]
) -> None:
    """They may differ in words and severity, but never in fact."""
    snapshot = stuck.updating(**changes)
    messages = messages_of(check, *_documents(snapshot), *configuration, to=replace(context(), now=stuck.NOW))
    assert any(cause in message for message in messages), messages
    texts = [f"{row.summary} {row.description}" for row in stuck.rows(snapshot) if row.check == insight]
    assert any(cause in text for text in texts), texts


@pytest.mark.parametrize("state", AHEAD)
def test_the_simulated_drains_name_the_same_cause(state: str) -> None:
    """The update does not finish without somebody's help."""
    assert AHEAD[state] in _simulated(stuck.updating(**STATES[state][0])).needs_help


def test_the_simulated_drains_finish_without_such_a_state() -> None:
    """The same update needs no help."""
    assert _simulated(stuck.updating()).needs_help == ()


def _simulated(snapshot: Snapshot) -> DrainResult:
    """Returns the simulated drains of the snapshot's nodes."""
    kinds = {kind.resource.kind: kind.type for kind in KINDS if kind.field != "owners"}
    objects: dict[str, list[Any]] = {}
    for document in _documents(snapshot):
        if kind := kinds.get(document["kind"]):
            objects.setdefault(document["kind"], []).append(codec.convert(kind, document))
    settings = DrainSettings(forces=True, uncordons_all=True)
    return simulate(drained_cluster(objects, {}, openshift=True), settings, stuck.NOW)


# The check of pools also reports, before an update, that another one is not over.
QUIET = sorted({check for _, check, _, _ in STATES.values()} - {"MachineConfigPoolHealth"})


@pytest.mark.parametrize("check", QUIET)
def test_neither_reports_an_update_that_moves(check: str) -> None:
    """The same update without such a state."""
    snapshot = stuck.updating()
    assert messages_of(check, *_documents(snapshot), to=replace(context(), now=stuck.NOW)) == []
    assert stuck.rows(snapshot) == []


def _documents(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Returns all objects of the snapshot as JSON."""
    fields = (*LISTED, "component_pods", "volume_attachments", "events")
    return [
        {**codec.to_dict(obj), "apiVersion": resource_of(type(obj)).api_version, "kind": resource_of(type(obj)).kind}
        for field in fields
        for obj in readable(getattr(snapshot, field))
    ]
