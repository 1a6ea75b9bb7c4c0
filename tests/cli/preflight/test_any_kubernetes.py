"""A cluster without a ClusterVersion: every command that has to do with preflights, in the words of Kubernetes.

On the sandbox's API server, and on a real kube-apiserver where one was asked for.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run
from tests.controlplane import build
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rows import SERVERS, programs
from tests.factories import node_json
from tests.servers import api_server

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client_sync import SyncClient
from runup.preflight.control import cluster_runs, kept_reports
from runup.preflight.decide import cluster_run, schedule
from runup.preflight.decide.cluster_run import CONFIG_MAP, NAMESPACE, RUN_LABEL, Checking
from runup.preflight.decide.preflight_deployment import report_map
from runup.preflight.decide.service_account import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE
from runup.report.report import read

# One server for all of them, and not one for each worker.
pytestmark = pytest.mark.xdist_group("any-kubernetes")
JSON = dict[str, Any]
FOREIGN = re.compile(
    r"open ?shift|`oc |\boc adm|cluster ?operator|machine ?config|runup upgrade|must-gather", re.IGNORECASE
)
OPERATOR = (sys.executable, "-c", "from runup.cli.operator.entry import main; raise SystemExit(main())")
NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
HOOKS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    namespaced=False,
)
HOOK: JSON = {
    "metadata": {"name": "policies"},
    "webhooks": [
        {
            "name": "all.policies.example.com",
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
            "clientConfig": {"service": {"namespace": "policies", "name": "policies", "path": "/"}},
            # Kinds that an update writes, but none that these tests or the server's own controllers write.
            "rules": [
                {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["nodes", "csidrivers"]}
            ],
        }
    ],
}


def reported_node(name: str, kubelet: str) -> JSON:
    """A Node as its kubelet reports it."""
    info = {
        **dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion"), ""),
        "containerRuntimeVersion": "containerd://2.1.4",
        "osImage": "Debian GNU/Linux 12 (bookworm)",
        "operatingSystem": "linux",
    }
    node = node_json(name, role="", kubelet=kubelet, info=info, memory="16Gi")
    return node | {"status": node["status"] | {"capacity": node["status"]["allocatable"]}}


@pytest.fixture(scope="module", params=SERVERS)
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a cluster of Kubernetes 1.34 with two nodes and a webhook that nobody answers."""
    folder = tmp_path_factory.mktemp("plain")
    if request.param == "sandbox":
        with api_server(folder / "data") as kubeconfig:
            fill(kubeconfig)
            yield kubeconfig
    elif os.environ.get(build.KUBERNETES):
        pytest.skip("these tests name targets of a cluster of Kubernetes 1.34")
    else:
        with ControlPlane(folder, programs()) as plane:
            fill(plane.kubeconfig)
            yield plane.kubeconfig


def fill(kubeconfig: Path) -> None:
    """Creates what the tests look at."""
    with SyncClient(config.load(str(kubeconfig))) as client:
        for body in (reported_node("cp-0", "v1.34.0"), reported_node("worker-0", "v1.32.3")):
            client.send(calls.create(NODES, body))
            # Of a new Node the server keeps no status that comes with it.
            status = {"status": body["status"]}
            client.send(calls.merge_patch(NODES, body["metadata"]["name"], status, subresource="status"))
        client.send(calls.create(HOOKS, HOOK))


@pytest.mark.slow
def test_a_run(plain: Path, run: Run) -> None:
    """To the next minor version, from the server's own."""
    ran = run("preflight", "run", "--kubeconfig", plain, "-o", "json")
    seen = json.loads(ran.out)
    assert (ran.code, seen["clusterKind"], seen["target"], seen["source"][:5]) == (2, "Kubernetes", "1.35.0", "1.34.")
    applying = {risk["name"] for risk in seen["risks"] if risk["applies"] == "True"}
    assert {"NodeReleasesMixed-workers", "WebhookBlocksUpdate"} <= applying
    assert [(step["part"], step["version"]) for step in seen["steps"]] == [("control plane", "1.35"), ("nodes", "1.35")]
    assert not {"ClusterVersionHealth", "MachineConfigPoolHealth", "AdminAck"} & {
        each["name"] for each in seen["checks"]
    }
    assert [each["name"] for each in seen["checks"] if each["result"] == "Unknown"] == []
    assert not FOREIGN.search(ran.out), FOREIGN.search(ran.out)


def test_several_minor_versions(plain: Path, run: Run) -> None:
    """One step after the other: the old kubelet must be updated before the control plane leaves it too far behind."""
    ran = run("preflight", "run", "--kubeconfig", plain, "--to", "1.36")
    rows = [line.split()[1:] for line in ran.out.splitlines() if re.match(r"  \d ", line)]
    assert [" ".join(row) for row in rows] == [
        "control plane 1.35 WebhookBlocksUpdate",
        "nodes 1.35 NodeReleasesMixed-workers",
        "control plane 1.36 KubeletSkew",
        "nodes 1.36 nothing",
    ]
    assert "--suppressions FILE" in ran.out
    assert not FOREIGN.search(ran.out)


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("--to", "5.1.0"), "the cluster has no ClusterVersion"),
        (("--to", "1.32"), "the only way back is to the minor version before"),
        (("--to", "1.34"), "is at 1.34."),
    ],
)
def test_targets_that_are_none(plain: Path, run: Run, words: tuple[str, ...], seen: str) -> None:
    """Not a bare 404, and with the way out."""
    ran = run("preflight", "run", "--kubeconfig", plain, *words)
    assert (ran.code, ran.out) == (1, "")
    assert seen in ran.err


@pytest.mark.slow
def test_every_form(plain: Path, run: Run) -> None:
    """For people, for CI, and for a code host, with the words of Kubernetes alone."""
    for form in ("yaml", "junit", "sarif", "markdown", "html"):
        ran = run("preflight", "run", "--kubeconfig", plain, "--to", "1.36", "-o", form)
        assert ran.code == 2, ran.err
        assert "WebhookBlocksUpdate" in ran.out
        assert not FOREIGN.search(ran.out), (form, FOREIGN.search(ran.out))
        if form == "junit":
            ElementTree.fromstring(ran.out)


def test_a_plan_to_tick_off(plain: Path, run: Run) -> None:
    """Each step with its remedies before what does it, and what must be seen after it."""
    ran = run("preflight", "run", "--kubeconfig", plain, "--to", "1.36", "-o", "plan")
    assert ran.code == 2, ran.err
    titles = re.findall(r"^\d\. (.*)$", ran.out, re.MULTILINE)
    assert titles == ["Control plane to 1.35", "Nodes to 1.35", "Control plane to 1.36", "Nodes to 1.36"]
    first = ran.out.partition("2. Nodes")[0]
    order = [first.index(words) for words in ("way back", "WebhookBlocksUpdate: ", "update the control plane to 1.35")]
    assert order == sorted(order)
    assert "[ ] See that `kubectl get nodes` shows each node Ready, with v1.36" in ran.out
    assert not FOREIGN.search(ran.out), FOREIGN.search(ran.out)
    page = run("preflight", "run", "--kubeconfig", plain, "--to", "1.36", "-o", "html").out
    assert "update the control plane to 1.35" in page


def test_the_way_back(plain: Path, run: Run) -> None:
    """To the minor version before: the nodes first, and what that version does not serve."""
    assert "Nobody supports" not in run("preflight", "run", "--kubeconfig", plain, "--to", "1.33").out
    seen = json.loads(run("preflight", "run", "--kubeconfig", plain, "--to", "1.33", "-o", "json").out)
    assert [(step["part"], step["version"]) for step in seen["steps"]] == [("nodes", "1.33"), ("control plane", "1.33")]
    (check,) = [each for each in seen["checks"] if each["name"] == "RollbackNotServed"]
    assert check["result"] == "Clear", check


def test_suppressions(plain: Path, run: Run, tmp_path: Path) -> None:
    """Shows the suppressed risks with their reasons."""
    file = tmp_path / "s.yaml"
    file.write_text("suppressions:\n- {risk: '*', reason: known}\n")
    ran = run("preflight", "run", "--kubeconfig", plain, "--suppressions", file)
    assert ran.code == 0, ran.out
    assert "nothing blocks an update to 1.35.0" in ran.out


def test_a_dump_says_the_same(plain: Path, run: Run, tmp_path: Path) -> None:
    """Collected and evaluated elsewhere, with the server's version in the record."""
    live = json.loads(run("preflight", "run", "--kubeconfig", plain, "-o", "json").out)
    collected = run("dump", "collect", tmp_path / "d", "--kubeconfig", plain)
    assert collected.code == 0, collected.err
    ran = run("preflight", "run", "--dump", tmp_path / "d", "-o", "json")
    seen = json.loads(ran.out)
    assert ran.code == 2, ran.err
    assert [risk["name"] for risk in seen["risks"]] == [risk["name"] for risk in live["risks"]]
    assert (seen["source"], seen["steps"]) == (live["source"], live["steps"])
    compared = run("preflight", "compare", "1.35", "1.36", "--dump", tmp_path / "d")
    assert compared.out.startswith("From 1.35.0 to 1.36.0, as checked on 1.34."), compared.err


def test_risks_are_explained(plain: Path, run: Run) -> None:
    """By their pages, without what is about OpenShift alone."""
    ran = run("preflight", "explain", "NodeCordoned", "--kubeconfig", plain)
    assert (ran.code, "kubectl uncordon" in ran.out) == (0, True)
    assert "is not known, no preflight's report is kept here: `runup preflight run` evaluates" in ran.out
    assert not FOREIGN.search(ran.out)


def test_before_any_preflight_was_kept(plain: Path, run: Run) -> None:
    """Its results are those of Jobs: there is no other place for them."""
    assert "runup preflight run --in-cluster" in run("preflight", "history", "--kubeconfig", plain).out
    shown = run("preflight", "show", "--kubeconfig", plain)
    assert (shown.code, "runup preflight run --in-cluster" in shown.err) == (1, True)


def test_prerequisites(plain: Path, run: Run) -> None:
    """`runup check` names what it is, and has nothing to complain of."""
    ran = run("check", "--kubeconfig", plain)
    assert ran.code == 0, ran.out
    assert "it has no ClusterVersion: a cluster of Kubernetes" in ran.out


def test_a_release_is_for_clusters_with_a_clusterversion(plain: Path, run: Run, tmp_path: Path) -> None:
    """The image of a release says nothing of a version of Kubernetes."""
    (tmp_path / "release-manifests").mkdir()
    metadata = {"kind": "cincinnati-metadata-v0", "version": "5.2.0", "previous": []}
    (tmp_path / "release-manifests" / "release-metadata").write_text(json.dumps(metadata))
    ran = run("preflight", "run", "--kubeconfig", plain, "--release-dir", tmp_path)
    assert (ran.code, "no release updates it" in ran.err) == (1, True), ran.err


def test_releases_that_helm_keeps(plain: Path, run: Run) -> None:
    """Only the revision that is deployed, and nothing of a Secret but kinds, versions and names."""
    release = {
        "name": "web",
        "namespace": "default",
        "chart": {"metadata": {"name": "web", "version": "1.2.3"}},
        "config": {"password": "hunter2"},
        "manifest": "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n",
    }
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode()))).decode()
    with SyncClient(config.load(str(plain))) as client:
        for revision, status in ((1, "superseded"), (2, "deployed")):
            name = f"sh.helm.release.v1.web.v{revision}"
            labels = {"owner": "helm", "name": "web", "status": status}
            body = {
                "metadata": {"name": name, "namespace": "default", "labels": labels},
                "type": "helm.sh/release.v1",
                "data": {"release": packed},
            }
            client.send(calls.apply(SECRETS, body, field_manager="helm", force=True))
    name = "RemovedAPIInHelmRelease-PodDisruptionBudget"
    for flag in ((), ("--helm-releases",)):
        ran = run("preflight", "run", "--kubeconfig", plain, *flag, "-o", "json")
        (risk,) = [each for each in json.loads(ran.out)["risks"] if each["name"] == name]
        assert risk["message"].count("release default/web of chart web-1.2.3") == 1
        assert "hunter2" not in ran.out


def test_manifests_before_they_reach_a_cluster(run: Run, tmp_path: Path) -> None:
    """Without one: for a version of Kubernetes, or the release that ships it, with the file and line for code hosts."""
    file = tmp_path / "web.yaml"
    file.write_text("---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n")
    name = "RemovedAPIInManifest-PodDisruptionBudget"
    for to in ("1.36", "4.16.0"):
        ran = run("preflight", "run", "--manifests", tmp_path, "--to", to)
        assert (ran.code, name in ran.out, f"{file}:2" in ran.out) == (2, True, True), ran.err
    # 1.24 serves it, and 1.25 does not.
    assert "DeprecatedAPIInManifest" in run("preflight", "run", "--manifests", tmp_path, "--to", "1.24").out
    ran = run("preflight", "run", "--manifests", tmp_path, "--to", "1.36", "-o", "sarif")
    (result,) = json.loads(ran.out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"].endswith("web.yaml"), place["region"]["startLine"]) == (True, 2)
    for words in (("--manifests", tmp_path), ("--manifests", tmp_path / "none", "--to", "1.36")):
        assert run("preflight", "run", *words).code == 1


@pytest.mark.parametrize("text", ["", "# nothing\n---\n", "foo: bar\n", "apiVersion: a.b/v1\nkind: C\n"])
def test_manifests_without_an_object_that_is_evaluated(run: Run, tmp_path: Path, text: str) -> None:
    """An empty input is no clean bill."""
    file = tmp_path / "a.yaml"
    file.write_text(text)
    ran = run("preflight", "run", "--manifests", file, "--to", "1.36")
    assert (ran.code, "no object of a kind that is evaluated was read" in ran.out) == (3, True), ran.err
    assert "nothing blocks" not in ran.out


def test_manifests_that_are_served(run: Run, tmp_path: Path) -> None:
    """The result says what was read, and speaks of no update."""
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    ran = run("preflight", "run", "--manifests", file, "--to", "1.36")
    assert (ran.code, "1 object in 1 text (1 Secret)" in ran.out, "update" in ran.out) == (0, True, False), ran.err
    assert ran.out.startswith("Manifests for 1.36: ")
    assert "Verdict: 1.36 serves every object that was evaluated.\n" in ran.out
    document = json.loads(run("preflight", "run", "--manifests", file, "--to", "1.36", "-o", "json").out)
    assert document["manifests"] == "1 object in 1 text (1 Secret)"


def test_the_api_servers_own_count(plain: Path, run: Run) -> None:
    """Where the server has no metrics, or nobody may read them, it is not known who asks for what."""
    seen = json.loads(run("preflight", "run", "--kubeconfig", plain, "--api-metrics", "-o", "json").out)
    (check,) = [each for each in seen["checks"] if each["name"] == "RemovedAPIRequested"]
    with SyncClient(config.load(str(plain))) as client:
        try:
            served = b"apiserver_request_total" in client.send(calls.get_path("/metrics"))
        except ApiError:
            served = False
    assert check["result"] == ("Clear" if served else "Unknown")


@pytest.mark.slow
def test_the_process_of_a_job(plain: Path, run: Run, tmp_path: Path) -> None:
    """`--in-cluster` starts the same preflight; its report is stored, and shown by every command."""
    reports = []
    for to in ("1.35.0", "1.36.0"):
        file = tmp_path / f"{to}.json"
        words = ("preflight", "--once", "--to", to, "--report", file, "--kubeconfig", plain)
        subprocess.run([*OPERATOR, *words], check=True, capture_output=True, timeout=240)
        reports.append(replace(read(file.read_bytes()), preflight_id=f"preflight-{to}"))
    assert [(each.cluster_kind, each.source_version[:5], len(each.steps)) for each in reports] == [
        ("Kubernetes", "1.34.", 2),
        ("Kubernetes", "1.34.", 4),
    ]
    with SyncClient(config.load(str(plain))) as client:
        namespaces = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
        client.send(calls.apply(namespaces, {"metadata": {"name": NAMESPACE}}, field_manager="test", force=True))
        kept_reports.ensure(client)
        for each in reports:
            kept_reports.add(client, each)
    shown = run("preflight", "show", "1.36", "--kubeconfig", plain)
    assert (shown.code, "nodes           1.36" in shown.out) == (2, True), shown.err
    assert "1.35.0" in run("preflight", "history", "--kubeconfig", plain).out
    compared = run("preflight", "compare", "1.35", "1.36", "--kubeconfig", plain)
    assert compared.out.startswith("From 1.35.0 to 1.36.0, as checked on 1.34."), compared.err
    explained = run("preflight", "explain", "KubeletSkew", "--kubeconfig", plain)
    assert "For 1.36.0:" in explained.out
    for ran in (shown, compared, explained):
        assert not FOREIGN.search(ran.out), FOREIGN.search(ran.out)


@pytest.fixture
def admin(plain: Path, run: Run) -> Iterator[SyncClient]:
    """Returns an administrator's kubeconfig, and removes the test's schedules afterwards."""
    with SyncClient(config.load(str(plain))) as client:
        yield client
    run("preflight", "schedule", "--remove", "--kubeconfig", plain)


SCHEDULE = ("preflight", "schedule", "--every", "24h", "--image", "registry.example/runup:1")


@pytest.mark.parametrize(
    ("to", "target"),
    [
        pytest.param("1.36", "1.36.0", id="a minor version"),
        pytest.param("v1.35.2+k3s1", "1.35.2", id="as a server gives it"),
        pytest.param("5.1.0", "5.1.0", id="a release for a cluster whose ClusterVersion is not there yet"),
    ],
)
def test_a_schedule_for_a_version(admin: SyncClient, plain: Path, run: Run, to: str, target: str) -> None:
    """Written as `run` takes it; the process in the Job is reported a whole version."""
    ran = run(*SCHEDULE, "--to", to, "--kubeconfig", plain)
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"a preflight of {target} runs every 24h ")
    job = admin.send(calls.get_raw(schedule.CRON_JOB, schedule.NAME, NAMESPACE))["spec"]["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert {"name": "PREFLIGHT_TARGET_VERSION", "value": target} in container["env"]


def test_a_schedule_for_no_version(plain: Path, run: Run) -> None:
    """Refused before anything is made."""
    ran = run(*SCHEDULE, "--to", "1.x", "--kubeconfig", plain)
    assert (ran.code, ran.out, "--to: " in ran.err) == (1, "", True)


def test_a_right_that_no_check_uses_any_more_is_taken_away(admin: SyncClient, plain: Path, run: Run) -> None:
    """An earlier version read another namespace; objects of others, and the Jobs that run, stay."""
    words = (*SCHEDULE, "--to", "1.36", "--kubeconfig", plain)
    assert run(*words).code == 0
    marks = {"labels": {schedule.SCHEDULED_LABEL: "true"}}
    for name, labels in ((schedule.NAME, marks), ("theirs", {})):
        admin.send(calls.create(ROLE, {"metadata": {"name": name, "namespace": "default", **labels}, "rules": []}))
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"metadata": {"name": "runs", "namespace": NAMESPACE, **marks}, "spec": {"template": {"spec": pod}}}
    admin.send(calls.create(cluster_run.JOB, job))
    assert run(*words).code == 0
    with pytest.raises(NotFound):
        admin.send(calls.get_raw(ROLE, schedule.NAME, "default"))
    admin.send(calls.get_raw(ROLE, schedule.NAME, NAMESPACE))
    admin.send(calls.delete(ROLE, "theirs", "default"))
    admin.send(calls.get_raw(cluster_run.JOB, "runs", NAMESPACE))


def test_what_may_not_be_listed_may_be_there(admin: SyncClient, plain: Path, run: Run) -> None:
    """To say that no preflight is scheduled would be a guess, while the CronJob runs."""
    assert run(*SCHEDULE, "--to", "1.36", "--kubeconfig", plain).code == 0
    ran = run("preflight", "schedule", "--remove", "--kubeconfig", plain, "--as", "nobody-special")
    assert (ran.code, ran.out) == (1, "")
    assert "could not be removed: any CronJob labelled preflight.runup.dev/scheduled=true: " in ran.err
    admin.send(calls.get_raw(schedule.CRON_JOB, schedule.NAME, NAMESPACE))


@pytest.mark.slow
def test_more_objects_than_a_page_has(admin: SyncClient) -> None:
    """A server may give 500 at a time."""
    cluster_runs.apply_all(admin, (cluster_run.namespace_object(),))
    names = [f"many-{number}" for number in range(501)]
    for name in names:
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {"many": "true"}}
        admin.send(calls.create(CONFIG_MAP, {"metadata": metadata}))
    assert {each["name"] for each in cluster_runs.labelled_metadata(admin, CONFIG_MAP, "many")} == set(names)
    for name in names:
        admin.send(calls.delete(CONFIG_MAP, name, NAMESPACE))


def test_the_report_of_a_killed_command_goes_with_the_rest(admin: SyncClient) -> None:
    """The process in the pod wrote it, without a label of the run; that of a run that continues stays."""
    long_ago = admin.now() - timedelta(hours=2)
    old = cluster_run.Run(id="preflight-1-00000000ef", checking=Checking(image="i"), rights=(), started=long_ago)
    young = cluster_run.Run(id="preflight-2-00000000ef", checking=Checking(image="i"), rights=(), started=admin.now())
    for each in (old, young):
        cluster_runs.apply_all(admin, (cluster_run.namespace_object(), *cluster_run.objects(each)[:-1]))
        metadata = {"name": report_map(each.id), "namespace": NAMESPACE, "labels": {"app": "a"}}
        admin.send(calls.create(CONFIG_MAP, {"metadata": metadata}))
    assert cluster_runs.sweep(admin) == ()
    with pytest.raises(NotFound):
        admin.send(calls.get_raw(CONFIG_MAP, report_map(old.id), NAMESPACE))
    admin.send(calls.get_raw(CONFIG_MAP, report_map(young.id), NAMESPACE))
    assert cluster_runs.delete_all(admin, cluster_run.deletions(young)) == ()


def test_what_others_left_holds_nobody_up(admin: SyncClient, plain: Path) -> None:
    """Of kinds that may not be listed nothing is swept, and the rest is."""
    role = {"metadata": {"name": "lists-roles"}, "rules": []}
    role["rules"] = [{"apiGroups": [ROLE.group], "resources": ["roles"], "verbs": ["list", "delete"]}]
    subject = {"kind": "User", "apiGroup": ROLE.group, "name": "sweeper"}
    reference = {"apiGroup": ROLE.group, "kind": "ClusterRole", "name": "lists-roles"}
    binding = {"metadata": {"name": "lists-roles"}, "roleRef": reference, "subjects": [subject]}
    admin.send(calls.create(CLUSTER_ROLE, role))
    admin.send(calls.create(CLUSTER_ROLE_BINDING, binding))
    expired = {"labels": {RUN_LABEL: "x"}, "annotations": {cluster_run.EXPIRES_ANNOTATION: "2026-01-01T00:00:00Z"}}
    admin.send(calls.create(ROLE, {"metadata": {"name": "left", "namespace": "default", **expired}, "rules": []}))
    of_sweeper = replace(config.load(str(plain)), headers=(("Impersonate-User", "sweeper"),))
    with SyncClient(of_sweeper) as client:
        assert cluster_runs.sweep(client) == ()
    with pytest.raises(NotFound):
        admin.send(calls.get_raw(ROLE, "left", "default"))
    admin.send(calls.delete(CLUSTER_ROLE_BINDING, "lists-roles"))
    admin.send(calls.delete(CLUSTER_ROLE, "lists-roles"))
