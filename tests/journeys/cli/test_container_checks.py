"""Container checks as typed: components' images that answer, hang, crash or write nonsense; what is left of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.rows import SERVERS
from tests.journeys.conftest import Sandbox, started_sandbox
from tests.servers import eventually

from kubekit.api.conditions import status_of
from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.lang import yaml as kyaml
from runup.preflight.decide import container_check_pods, preflight_deployment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.xdist_group("container-checks")]

NAMESPACE = "openshift-cluster-version-operator"
PODS = resource_of(Pod)
READ = "6 nodes; ['preflight', '--format=preflight-v1-json']; ['Forbidden', 'Forbidden', 'OSError']"
"""Tests which objects a cluster reader reads, its arguments, and its limits."""

_HEAD = "#!/usr/bin/env python3\nimport json, os, sys, time\n"
_REPORT = """
def report(risks, **more):
    checks = [{"name": "Own", "result": "Applies" if risks else "Clear"}]
    said = {"format": "preflight-v1-json", "preflightID": os.environ["PREFLIGHT_ID"],
            "targetVersion": os.environ["PREFLIGHT_TARGET_VERSION"], "executionStatus": "completed",
            "checks": checks, "risks": risks, **more}
    print(json.dumps(said), flush=True)
"""
_ANSWERS = """
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.api_errors import KubeError

client = SyncClient(config.load(None, None))
nodes = [node.metadata.name for node in client.list_all(Node)[0]]
refused = []
secrets = Resource("", "v1", "Secret", "secrets", namespaced=True)
cordon = calls.merge_patch(Resource("", "v1", "Node", "nodes", namespaced=False), nodes[0], {})
for call in (calls.list_raw(secrets), cordon):
    try:
        client.send(call)
    except KubeError as error:
        refused.append(error.reason)
try:
    open("/here", "w")
except OSError as error:
    refused.append(type(error).__name__)
print("a line of a log", file=sys.stderr, flush=True)
report([{"name": "ComponentSaysSo", "message": f"{len(nodes)} nodes; {sys.argv[1:]}; {refused}", "severity": "info"}])
print('{"event": "over"}', flush=True)
"""
ENTRIES = {
    "answers.py": _HEAD + _REPORT + _ANSWERS,
    "finds-nothing.py": _HEAD + _REPORT + "report([])\n",
    "hangs.py": _HEAD + "time.sleep(600)\n",
    "crashes.py": _HEAD + "print('no such table: widgets', flush=True)\nsys.exit(3)\n",
    "writes-nonsense.py": _HEAD + "print('all is well', flush=True)\n",
    "another-target.py": _HEAD + _REPORT + 'report([], targetVersion="4.0.0")\n',
}
"""Maps the image to the name of its script, without the ending."""


def check(image: str, timeout_s: int = 300) -> dict[str, Any]:
    """The PreflightCheck that an image answers."""
    risk = "".join(part.title() for part in image.split("-"))
    return {
        "apiVersion": "preflight.runup.dev/v1alpha1",
        "kind": "PreflightCheck",
        "metadata": {
            "name": image,
            "annotations": {"include.release.openshift.io/self-managed-high-availability": "true"},
        },
        "spec": {
            "component": "widgets",
            "container": {"image": image, "timeoutSeconds": timeout_s},
            "risk": {"name": risk, "message": "Whether widgets are well.", "remediation": "Look at the widgets."},
        },
    }


def scenario(folder: Path) -> Path:
    """5.0.0; a 5.1.0 whose containers go wrong in every way, and a 5.1.1 of which one hangs as long as it may."""
    images = {name.removesuffix(".py"): name for name in ENTRIES}
    releases = [
        {"version": "5.0.0", "kubernetes": "1.35.2", "channels": ["stable-5.1"]},
        {"version": "5.1.0", "kubernetes": "1.36.1", "channels": ["stable-5.1"], "images": images},
        {"version": "5.1.1", "kubernetes": "1.36.1", "channels": ["stable-5.1"], "images": images},
    ]
    document = {
        "title": "Checks in containers",
        "base": "common",
        "cluster": {
            "version": "5.0.0",
            "channel": "stable-5.1",
            "gates": ["ClusterUpdatePreflight", "ClusterUpdateAcceptRisks"],
        },
        "releases": releases,
        "graph": {"edges": [["5.0.0", "5.1.0"], ["5.0.0", "5.1.1"]]},
    }
    checks = {
        "5.1.0": [*(check(name, 3 if name == "hangs" else 300) for name in images), check("not-in-the-release")],
        "5.1.1": [check("finds-nothing"), check("hangs", 300)],
    }
    (folder / "entries").mkdir(parents=True)
    for name, text in ENTRIES.items():
        (folder / "entries" / name).write_text(text)
    for version, found in checks.items():
        path = folder / "releases" / version / "preflight-checks" / "0000_50_widgets_checks.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(kyaml.dump_all(found))
    (folder / "scenario.yaml").write_text(kyaml.dump(document))
    return folder


@pytest.fixture(scope="module", params=SERVERS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A cluster of that scenario."""
    folder = Path(tempfile.mkdtemp(prefix="runup-scenario-"))
    try:
        yield from started_sandbox(str(scenario(folder / "containers")), request.param)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pods(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """The Pods of container checks, by name."""
    found = sandbox.client.send(calls.list_raw(PODS, NAMESPACE, label_selector=container_check_pods.SELECTOR))
    return {item["metadata"]["name"]: item for item in found.items}


def accounts(sandbox: Sandbox) -> set[str]:
    """Those that the target's Pods have."""
    found = sandbox.client.list_all(Pod, NAMESPACE, label_selector=preflight_deployment.SELECTOR)[0]
    return {pod.spec.service_account_name for pod in found}


def preflighted(sandbox: Sandbox) -> str:
    """What the command says once every container of 5.1.0's checks has ended."""
    assert sandbox.run("upgrade", "--preflight", "--to=5.1.0").code == 0
    sandbox.until(
        lambda version: status_of(version.status.conditions, "PreflightCompleted") == "True",
        "every container has ended",
    )
    done = sandbox.run("upgrade", "--preflight", "--to=5.1.0", "--wait")
    assert done.code == 2, done.out + done.err
    return " ".join(done.out.split())


def test_each_container_costs_its_own_check_alone(sandbox: Sandbox) -> None:
    """One answers with what a cluster reader sees; five others are Unknown, each with its reason."""
    said = preflighted(sandbox)
    for words in (
        READ,
        "Whether hangs applies is unknown: its container did not end in 3 s",
        "Whether crashes applies is unknown: its container ended with exit code 3 (Error): no such table",
        "Whether writes-nonsense applies is unknown: its container wrote no line of JSON of format",
        "Whether another-target applies is unknown: its container's report is of another preflight, for 4.0.0.",
        "Whether not-in-the-release applies is unknown: the release's image-references name no image",
    ):
        assert words in said, (words, said)
    # What had nothing to say is clear, and its check is named nowhere.
    assert "FindsNothing" not in said


def test_the_pods_are_small_and_only_read(sandbox: Sandbox) -> None:
    """Account, limits and deadline, as they are in the cluster."""
    expected = [container_check_pods.pod_name(number) for number in range(6)]
    # What was Unknown is run again after two minutes, and for a moment its Pod is missing.
    found = eventually(lambda: found if sorted(found := pods(sandbox)) == expected else None, "all six are there")
    for pod in found.values():
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["serviceAccountName"] == container_check_pods.ACCOUNT
        assert pod["spec"]["activeDeadlineSeconds"] in (3, 300)
        assert container["resources"]["limits"]["memory"] == "512Mi"
        assert "@sha256:" in container["image"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_another_target_supersedes_them_and_clearing_leaves_none(sandbox: Sandbox) -> None:
    """While one of 5.1.1's hangs, the rest is known, and the request is cleared."""
    assert sandbox.run("upgrade", "--preflight", "--to=5.1.1").code == 0
    eventually(
        lambda: len(pods(sandbox)) == 2 and {_version(pod) for pod in pods(sandbox).values()} == {"5.1.1"},
        "5.1.1's two containers are there, and none of 5.1.0's",
    )
    sandbox.clear_preflight()
    eventually(lambda: not pods(sandbox), "none is left")


def test_the_targets_own_account_may_read_what_they_wrote(sandbox: Sandbox) -> None:
    """With `serviceAccount: dedicated` the generated rights have the logs of these Pods."""
    metadata = {"name": preflight_deployment.SETTINGS_MAP, "namespace": NAMESPACE}
    settings = {"metadata": metadata, "data": {"serviceAccount": "dedicated"}}
    sandbox.client.send(calls.apply(resource_of(ConfigMap), settings, field_manager="admin"))
    assert READ in preflighted(sandbox)
    # A Pod of the preflight before may still be about to end.
    eventually(lambda: accounts(sandbox) == {preflight_deployment.NAME}, "only a target of its own account runs")


def _version(pod: dict[str, Any]) -> str:
    env = {item["name"]: item["value"] for item in pod["spec"]["containers"][0]["env"]}
    return env["PREFLIGHT_TARGET_VERSION"]
