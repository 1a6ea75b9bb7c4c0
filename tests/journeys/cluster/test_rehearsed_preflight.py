"""A preflight in the cluster that rehearses its update, as typed: its risks, its limit of memory, and what is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.conftest import Sandbox
from tests.servers import eventually

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]
OPERATORS = "openshift-cluster-version-operator"
SETTINGS = "cluster-version-operator-preflight-config"
CONFIG_MAPS = resource_of(ConfigMap)
GROUP = "admissionregistration.k8s.io"
POLICIES = Resource(
    group=GROUP, version="v1", kind="ValidatingAdmissionPolicy", plural="validatingadmissionpolicies", namespaced=False
)
BINDINGS = Resource(
    group=GROUP,
    version="v1",
    kind="ValidatingAdmissionPolicyBinding",
    plural="validatingadmissionpolicybindings",
    namespaced=False,
)
# Nothing that the cluster at 5.0.0 does; what the release 5.2.0 would do.
FREEZES = "!object.spec.template.spec.containers.exists(c, has(c.args) && '--release=5.2.0' in c.args)"
POLICY: dict[str, Any] = {
    "metadata": {"name": "frozen"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["UPDATE"],
                    "resources": ["deployments"],
                    "resourceNames": ["storage-operator"],
                }
            ]
        },
        "validations": [{"expression": FREEZES, "message": "the storage team is on holiday"}],
    },
}
BINDING: dict[str, Any] = {
    "metadata": {"name": "frozen"},
    "spec": {"policyName": "frozen", "validationActions": ["Deny"]},
}
FOUND, NOT_RUN = "RehearsalRefusedByPolicy-frozen", "RehearsalNotRun"


@pytest.fixture
def frozen(skip_level: Sandbox) -> Iterator[Callable[..., Sandbox]]:
    """A cluster with a policy that refuses a Deployment of 5.2.0, and preflights that rehearse, by further settings."""
    client = skip_level.client
    skip_level.clear_preflight()
    client.send(calls.create(POLICIES, POLICY))
    client.send(calls.create(BINDINGS, BINDING))

    def rehearsing(**settings: str) -> Sandbox:
        body = {"metadata": {"name": SETTINGS, "namespace": OPERATORS}, "data": {"rehearse": "true", **settings}}
        client.send(calls.create(CONFIG_MAPS, body))
        return skip_level

    yield rehearsing
    skip_level.clear_preflight()
    for resource, name, namespace in (
        (CONFIG_MAPS, SETTINGS, OPERATORS),
        (BINDINGS, "frozen", ""),
        (POLICIES, "frozen", ""),
    ):
        try:
            client.send(calls.delete(resource, name, namespace))
        except NotFound:
            continue


def rehearsal_risks(sandbox: Sandbox) -> dict[str, str]:
    """The risks of ClusterVersion that come from a rehearsal, with their messages."""
    risks = sandbox.cluster_version().status.conditional_update_risks
    return {risk.name: risk.message for risk in risks if risk.name.startswith("Rehearsal")}


def left_over(sandbox: Sandbox) -> list[str]:
    """Rehearsals that run in the sandbox, and folders of their copies."""
    running = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and b"ordered_rehearsal" in (place / "cmdline").read_bytes():
                running += [place.name] if os.fsencode(sandbox.data) in (place / "environ").read_bytes() else []
        except OSError:
            continue
    return running + [str(folder) for folder in sandbox.data.rglob("runup-rehearse-*")]


def test_what_a_rehearsal_finds_is_a_risk(frozen: Callable[..., Sandbox]) -> None:
    """The release is refused on the copy alone: the risk names the policy, is accepted by name, and nothing is left."""
    sandbox = frozen()
    done = sandbox.run("upgrade", "--mode=preflight", "--to=5.2.0", "--wait")
    assert done.code == 2, done.out + done.err
    assert list(rehearsal_risks(sandbox)) == [FOUND]
    message = rehearsal_risks(sandbox)[FOUND]
    assert "Applying Deployment.apps openshift-storage-operator/storage-operator (" in message
    assert "the storage team is on holiday" in message
    eventually(lambda: not left_over(sandbox), "the rehearsal is gone")
    accepted = sandbox.run("upgrade", "accept", FOUND)
    assert accepted.code == 0, accepted.out + accepted.err
    assert FOUND in {risk.name for risk in sandbox.cluster_version().spec.desired_update.accept_risks}


def test_a_rehearsal_without_memory(frozen: Callable[..., Sandbox]) -> None:
    """The checks are told as ever; of the rehearsal it is told which setting to raise, and nothing of it is left."""
    sandbox = frozen(memoryLimit="224Mi")
    done = sandbox.run("upgrade", "--mode=preflight", "--to=5.2.0", "--wait")
    assert done.code == 2, done.out + done.err
    assert list(rehearsal_risks(sandbox)) == [NOT_RUN]
    assert "raise `memoryLimit` of the settings" in rehearsal_risks(sandbox)[NOT_RUN]
    eventually(lambda: not left_over(sandbox), "the rehearsal is gone")
