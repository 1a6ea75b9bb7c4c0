"""An administrator's settings, as typed: the target's own account, no folder of the node, and a node that is full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.rows import SERVERS
from tests.journeys.conftest import Sandbox, started_sandbox
from tests.servers import eventually

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from runup.preflight.decide import preflight_deployment, service_account

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("where-it-runs")]

NAMESPACE = "openshift-cluster-version-operator"
CONFIG_MAPS = resource_of(ConfigMap)
CLASSES = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
)
QUOTAS = Resource(group="", version="v1", kind="ResourceQuota", plural="resourcequotas", namespaced=True)


@pytest.fixture(scope="module", params=SERVERS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """5.0.0, and a 5.2.0 that ships a separate check, of a kind that 5.0.0's checks do not read."""
    yield from started_sandbox("skip-level", request.param)


def set_to(sandbox: Sandbox, **data: str) -> None:
    """Write the administrator's ConfigMap."""
    metadata = {"name": preflight_deployment.SETTINGS_MAP, "namespace": NAMESPACE}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    sandbox.client.send(calls.apply(CONFIG_MAPS, obj, field_manager="admin"))


def pods(sandbox: Sandbox) -> list[Pod]:
    """The target's."""
    return sandbox.client.list_all(Pod, NAMESPACE, label_selector=preflight_deployment.SELECTOR)[0]


def accounts(sandbox: Sandbox) -> list[str]:
    """Their accounts."""
    return [pod.spec.service_account_name for pod in pods(sandbox)]


def phases(sandbox: Sandbox) -> list[str]:
    """Their phases."""
    return [pod.status.phase for pod in pods(sandbox)]


def folders(sandbox: Sandbox) -> list[Path]:
    """Reports that lie on the nodes."""
    return list(sandbox.data.glob("nodes/*/etc/cvo/preflight/*"))


def failed(sandbox: Sandbox) -> tuple[str, str]:
    """Reason and message of PreflightFailed, where it is True."""
    found = find(sandbox.cluster_version().status.conditions, "PreflightFailed")
    return (found.reason, found.message) if found is not None and found.status == "True" else ("", "")


def test_the_targets_own_check_answers_under_its_own_account(sandbox: Sandbox) -> None:
    """5.2.0's check of removed APIs reads what 5.0.0 never heard of; the report goes into a ConfigMap."""
    set_to(sandbox, serviceAccount="dedicated", reportSink="configmap")
    done = sandbox.run("upgrade", "--preflight", "--to=5.2.0", "--wait")
    assert done.code == 2, done.out + done.err
    assert "RemovedAPIInUse" in done.out
    assert "Unknown" not in done.out
    assert accounts(sandbox) == [preflight_deployment.NAME]
    assert folders(sandbox) == []
    rules: list[dict[str, Any]] = sandbox.client.send(
        calls.get_raw(service_account.CLUSTER_ROLE, preflight_deployment.NAME)
    )["rules"]
    assert {name for rule in rules for name in rule["resources"]} >= {"apirequestcounts", "nodes"}
    assert "secrets" not in {name for rule in rules for name in rule["resources"]}


def test_a_setting_changes_the_target_that_runs_and_its_folder_goes_with_it(sandbox: Sandbox) -> None:
    """Back to the node's folder without a command; clearing leaves nothing on the node."""
    set_to(sandbox)
    eventually(lambda: folders(sandbox), "the target writes its report into its folder")
    eventually(lambda: accounts(sandbox) == ["cluster-version-operator"], "the account is back")
    sandbox.clear_preflight()
    eventually(lambda: not folders(sandbox) and not pods(sandbox), "everything of it is gone")


def test_a_node_that_takes_nobody_is_told_in_the_schedulers_words(sandbox: Sandbox) -> None:
    """Within ten seconds; once the node takes pods again the preflight continues by itself."""
    node = resource_of(Node)
    where = next(n.metadata.name for n in sandbox.client.list_all(Node)[0] if _runs_the_operator(sandbox, n))
    set_to(sandbox, tolerations="[]")
    done = sandbox.run("upgrade", "--preflight", "--to=5.2.0")
    assert done.code == 0, done.out + done.err
    eventually(lambda: failed(sandbox)[0] == "Unschedulable", "the condition has the reason")
    assert "0/6 nodes are available" in failed(sandbox)[1]
    sandbox.client.send(calls.merge_patch(node, where, {"spec": {"taints": None}}))
    eventually(lambda: failed(sandbox)[0] == "" and "Running" in phases(sandbox), "it runs")
    (log,) = sandbox.data.glob(f"pods/{NAMESPACE}_cluster-version-operator-*/cluster-version-operator.log")
    story = [line for line in log.read_text().splitlines() if "preflight" in line]
    assert any("Unschedulable" in line and "5.2.0" in line for line in story)


def set_anew(sandbox: Sandbox, **data: str) -> None:
    """Settings for a preflight that is not there yet."""
    sandbox.clear_preflight()
    eventually(lambda: not pods(sandbox), "the one before is gone")
    set_to(sandbox, **data)


def refused(sandbox: Sandbox) -> str:
    """Ask for the preflight; the words of whoever refuses its pod, once the condition has them."""
    done = sandbox.run("upgrade", "--preflight", "--to=5.2.0")
    assert done.code == 0, done.out + done.err
    eventually(lambda: failed(sandbox)[0] == "FailedCreate", "the condition has the reason")
    return failed(sandbox)[1]


def completes(sandbox: Sandbox) -> None:
    """It continues by itself, and what was refused is over."""
    sandbox.until(lambda found: status_of(found.status.conditions, "PreflightCompleted") == "True", "it completes")
    assert failed(sandbox) == ("", "")


def test_a_pod_that_may_not_be_made_is_told_in_the_servers_words(sandbox: Sandbox) -> None:
    """A class of priority that is not there; as soon as it is, nothing needs to be typed."""
    set_anew(sandbox, priorityClassName="later")
    assert "no PriorityClass with name later was found" in refused(sandbox)
    sandbox.client.send(calls.create(CLASSES, {"metadata": {"name": "later"}, "value": 1}))
    completes(sandbox)


def test_a_full_quota_is_told_in_the_servers_words(sandbox: Sandbox, request: pytest.FixtureRequest) -> None:
    """Once there is room the preflight continues by itself."""
    if "kube-apiserver" not in request.node.name:
        pytest.skip("needs a real kube-apiserver: the sandbox serves no ResourceQuota")
    set_anew(sandbox)
    hard = {"pods": "0"}
    sandbox.client.send(
        calls.create(QUOTAS, {"metadata": {"name": "tight", "namespace": NAMESPACE}, "spec": {"hard": hard}})
    )
    # What a cluster's own controller counts; until then the server refuses with other words.
    counted = {"status": {"hard": hard, "used": {"pods": "0"}}}
    sandbox.client.send(calls.merge_patch(QUOTAS, "tight", counted, NAMESPACE, subresource="status"))
    assert "exceeded quota: tight" in refused(sandbox)
    sandbox.client.send(calls.delete(QUOTAS, "tight", NAMESPACE))
    completes(sandbox)


def _runs_the_operator(sandbox: Sandbox, node: Node) -> bool:
    found = sandbox.client.list_all(Pod, NAMESPACE, label_selector="k8s-app=cluster-version-operator")[0]
    return any(pod.spec.node_name == node.metadata.name for pod in found)
