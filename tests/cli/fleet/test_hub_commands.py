"""Runs `runup fleet addon` and `--hub` on a server that knows the hub's kinds without their rules.

Tests with a real hub and its agents are in tests/ocm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.cli.commands import Run, Server
from tests.fleet.decide.test_hub_clusters import BY_LABEL, CONFIG_MAP, report, travelled
from tests.fleet.decide.test_newest_status import value_of
from tests.servers import CRD, eventually, serve
from tests.updatestatus.decide import builders as b

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.calls import list_kinds
from kubekit.kube.clock import SystemClock
from kubekit.lang.gotext import to_ns
from runup.api.hub_v1 import ManagedCluster, ManagedClusterSet, ManifestWork
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.fleet.decide.newest_status import FORMAT, NewestStatus, Precheck
from runup.report.report import ReportedRisk
from runup.updatestatus.control.status_reading import complete_status

pytestmark = pytest.mark.xdist_group("hub-commands")

JSON = dict[str, Any]
KINDS = tuple(resource_of(each) for each in (ManagedCluster, ManagedClusterSet, ManifestWork))
NAMES = ("harbour", "island", "lighthouse")
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
IMAGE = f"quay.io/example/runup@sha256:{'a' * 64}"
RISK = ReportedRisk(name="NodeCordoned", applies="True", message="A node takes no pods.", severity="warning")

# The control plane and all pools are at the target.
DONE = b.snapshot(
    cluster_version=b.version([b.entry(b.NEW)], progressing="False"),
    cluster_operators=(b.operator("etcd", b.NEW),),
    nodes=tuple(b.node(f"{role}-0", role, current="new", desired="new") for role in ("master", "worker")),
)


@pytest.fixture(scope="module")
def hub_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A separate server: the kinds of a hub are nothing to the tests of others."""
    yield from serve(tmp_path_factory.mktemp("hub"), "Default")


@pytest.fixture
def hub(hub_server: Server) -> Server:
    """A hub: harbour, in set `canary`, has just reported; in island a risk applies; lighthouse is silent."""
    server = hub_server
    for kind in KINDS:
        server.client.send(calls.apply(CRD, definition(kind), field_manager="tests"))
        eventually(lambda kind=kind: _is_listed(server, kind), f"{kind} is served")
    now = SystemClock().now()
    canary = {"metadata": {"name": "canary"}, "spec": {}}
    server.client.send(calls.apply(KINDS[1], canary, field_manager="tests"))
    for name in NAMES:
        _apply_cluster(server, name, now)
    return server


def status_of(name: str, now: datetime, age: timedelta = timedelta(minutes=1)) -> str:
    """Returns the status that a cluster reports: island updates to 5.1.0, the others run 5.0.0 and have updates."""
    desired = "5.1.0" if name == "island" else "5.0.0"
    progressing = {"type": "Progressing", "status": "True" if name == "island" else "False"}
    conditions = [{"type": "Failing", "status": "False"}, {"type": "RetrievedUpdates", "status": "True"}, progressing]
    risk = {"name": "SlowDrains", "message": "Drains are slow.", "url": "https://example.com/", "matchingRules": []}
    verdict = {"type": "Recommended", "status": "False", "reason": "SlowDrains", "message": "Drains are slow."}
    conditional = {"release": {"version": "5.2.0", "image": "r/5.2"}, "risks": [risk], "conditions": [verdict]}
    cluster_version = {
        "metadata": {"name": "version"},
        "spec": {"channel": "stable-5.2"},
        "status": {
            "desired": {"version": desired, "image": "r/0"},
            "conditions": conditions,
            "availableUpdates": [{"version": "5.1.3", "image": "r/5.1.3"}],
            "conditionalUpdates": [conditional],
        },
    }
    return value_of(
        NewestStatus(
            format=FORMAT,
            observed_time=now - age,
            update_status=complete_status(b.snapshot() if name == "island" else DONE, to_ns(b.NOW)),
            notes=("warning: a note\n",) if name == "harbour" else (),
            cluster_version=cluster_version,
            prechecks=(Precheck(name="NodeAlerts", type="recommended/NodeAlerts", status="True", reason="AsExpected"),),
        )
    )


def definition(kind: Resource) -> JSON:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": kind.version, "served": True, "storage": True, "schema": schema}]
    names = {"plural": kind.plural, "kind": kind.kind, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return {
        "metadata": {"name": kind.name},
        "spec": {"group": kind.group, "scope": scope, "names": names, "versions": versions},
    }


def _is_listed(server: Server, kind: Resource) -> bool:
    with suppress(NotFound):
        return any(each.plural == kind.plural for each in server.client.send(list_kinds(kind.api_version)))
    return False


def _apply_cluster(server: Server, name: str, now: datetime) -> None:
    server.client.send(calls.apply(NAMESPACES, {"metadata": {"name": name}}, field_manager="tests"))
    available = {"type": "ManagedClusterConditionAvailable", "status": "Unknown" if name == "lighthouse" else "True"}
    labels = BY_LABEL if name == "harbour" else {}
    cluster = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": True},
        "status": {"conditions": [available]},
    }
    found = replace(report(now - timedelta(minutes=1)), risks=(RISK,) if name == "island" else ())
    values = [{"name": "report", "fieldValue": {"type": "String", "string": travelled(found)}}]
    taken = {"resourceMeta": CONFIG_MAP | {"name": "preflight-newest"}, "statusFeedback": {"values": values}}
    status = {
        "resourceMeta": CONFIG_MAP | {"name": "status-newest"},
        "statusFeedback": {
            "values": [{"name": "status", "fieldValue": {"type": "String", "string": status_of(name, now)}}]
        },
    }
    cron = {
        "kind": "CronJob",
        "metadata": {"name": "runup-preflight-scheduled", "annotations": {"preflight.runup.dev/every": "1h"}},
    }
    cron_of_status = {
        "kind": "CronJob",
        "metadata": {"name": "runup-status", "annotations": {"preflight.runup.dev/every": "5m"}},
    }
    work = {
        "metadata": {
            "name": "addon-runup-preflight-deploy-0",
            "namespace": name,
            "labels": {"open-cluster-management.io/addon-name": "runup-preflight"},
        },
        "spec": {"workload": {"manifests": [cron, cron_of_status]}},
        "status": {"resourceStatus": {"manifests": [taken, status]}},
    }
    for kind, obj in ((KINDS[0], cluster), (KINDS[2], work)):
        server.client.send(calls.apply(kind, obj, field_manager="tests", force=True))


@pytest.fixture
def words(hub: Server, tmp_path: Path) -> tuple[str, ...]:
    """The command, with a kubeconfig that calls the hub `hub`."""
    content = yaml.safe_load(hub.kubeconfig.read_text())
    content["contexts"][0]["name"] = content["current-context"] = "hub"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))
    return ("fleet", "preflight", "--kubeconfig", str(tmp_path / "kubeconfig"), "--hub", "hub")


def _command(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The same hub, for another command of a fleet."""
    return ("fleet", name, *words[2:])


@pytest.mark.slow
def test_the_status_of_a_hub(run: Run, words: tuple[str, ...]) -> None:
    """A line for each, as of clusters that are read; one that is silent neither updates nor does not."""
    ran = run(*_command(words, "status"))
    rows = {line.split()[0]: line for line in ran.out.splitlines()[3:]}
    assert (ran.code, ran.out.splitlines()[0]) == (1, "3 clusters: 1 updating, of 1 it is not known")
    assert rows["island"].split()[1:5] == ["yes", "4.14.1", "0/2", "0/1"]
    assert rows["harbour"].split()[1:5] == ["no", "4.14.1", "1/1", "1/1"]
    assert rows["lighthouse"].split()[1:6] == ["unknown", "4.14.1", "1/1", "1/1", "1"]
    assert "The hub does not hear of the cluster: it is not available" in rows["lighthouse"]
    assert ran.err == "warning: harbour: a note\n"


def test_the_status_of_a_set_for_programs(run: Run, words: tuple[str, ...]) -> None:
    """Of when it is, and the whole UpdateStatus; a set without doubts is 0."""
    ran = run(*_command(words, "status"), "--clusterset", "canary", "-o", "json")
    (harbour,) = json.loads(ran.out)["clusters"]
    assert (ran.code, harbour["cluster"], harbour["updating"], harbour["doubts"]) == (0, "harbour", "False", [])
    assert harbour["updateStatus"]["kind"] == "UpdateStatus"
    observed = datetime.fromisoformat(harbour["observedTime"])
    assert timedelta() < SystemClock().now() - observed < timedelta(minutes=15)
    (silent,) = (
        each
        for each in json.loads(run(*_command(words, "status"), "-o", "json").out)["clusters"]
        if each["cluster"] == "lighthouse"
    )
    assert [doubt["name"] for doubt in silent["doubts"]] == ["ClusterNotAvailable"]


def test_what_a_hub_is_offered(run: Run, words: tuple[str, ...]) -> None:
    """Recommended and risky updates of each, those with the same answer together; of a silent one it is an issue."""
    ran = run(*_command(words, "recommend"))
    assert (ran.code, ran.out.splitlines()[0]) == (1, "Updates of 3 clusters")
    rows = {line.split()[-1]: line.split()[1:-1] for line in ran.out.splitlines()[3:]}
    assert rows == {
        "harbour": ["5.0.0", "stable-5.2", "5.1.3", "1", "-"],
        "island": ["5.1.0", "stable-5.2", "5.1.3", "1", "-"],
        "lighthouse": ["5.0.0", "stable-5.2", "5.1.3", "1", "ClusterNotAvailable"],
    }


VERSIONS = {
    "recommended": (("--version", "5.1.3"), 0, "recommended"),
    "with a risk": (("--version", "5.2.0"), 1, "ConditionalUpdateRisk"),
    "with a risk that is accepted": (("--version", "5.2.0", "--accept", "ConditionalUpdateRisk"), 0, "recommended"),
    "not offered": (("--version", "5.1.4"), 1, "no update to 5.1.4 available"),
}


@pytest.mark.parametrize(("more", "code", "said"), VERSIONS.values(), ids=list(VERSIONS))
def test_whether_a_set_may_go_there(
    run: Run, words: tuple[str, ...], more: tuple[str, ...], code: int, said: str
) -> None:
    """As the cluster itself would answer."""
    ran = run(*_command(words, "recommend"), "--clusterset", "canary", *more)
    assert ran.code == code, ran.err
    assert said in ran.out


def test_no_accepting_of_silence(run: Run, words: tuple[str, ...]) -> None:
    """Updates of a cluster that is silent now may be outdated."""
    accepted = ("--version", "5.1.3", "--accept", "ClusterNotAvailable")
    ran = run(*_command(words, "recommend"), *accepted, "-o", "json")
    found = {each["cluster"]: each for each in json.loads(ran.out)["clusters"]}
    assert ran.code == 1
    assert [doubt["name"] for doubt in found["lighthouse"]["doubts"]] == ["ClusterNotAvailable"]
    text = run(*_command(words, "recommend"), *accepted)
    assert text.out.startswith("Update to 5.1.3 recommended: 2 of 3 clusters")


def test_a_cluster_that_could_not_read_itself(run: Run, hub: Server, words: tuple[str, ...]) -> None:
    """Each half says for itself why nothing is known about it."""
    problem = "the server is on fire"
    broken = NewestStatus(
        format=FORMAT, observed_time=SystemClock().now(), status_problem=problem, advice_problem=problem
    )
    name = "addon-runup-preflight-deploy-0"
    work = hub.client.send(calls.get_raw(KINDS[2], name, "harbour"))
    work["status"]["resourceStatus"]["manifests"][1]["statusFeedback"]["values"] = [
        {"name": "status", "fieldValue": {"type": "String", "string": value_of(broken)}}
    ]
    hub.client.send(calls.replace(KINDS[2], work))
    for command, half in (("status", "its status"), ("recommend", "its updates")):
        ran = run(*_command(words, command), "--clusterset", "canary")
        assert ran.code == 1
        assert f"  harbour: {half} could not be read there: {problem}" in ran.out


def test_the_matrix_of_a_hub(run: Run, words: tuple[str, ...]) -> None:
    """Reports the risk in one cluster, and that another one is silent."""
    ran = run(*words)
    assert ran.code == 2, ran.err
    found = json.loads(run(*words, "-o", "json").out)
    assert found["counts"] == {"nothingInTheWay": 1, "risksApply": 1, "notAllKnown": 1, "couldNotBeJudged": 0}
    risks = {each["name"]: each for each in found["risks"]}
    assert risks["NodeCordoned"]["applies"] == ["island"]
    assert risks["ClusterNotAvailable"]["unknown"] == ["lighthouse"]


def test_a_baseline_takes_away_what_was_known_and_not_silence(run: Run, words: tuple[str, ...], tmp_path: Path) -> None:
    """Else a cluster that was silent once would be fine for ever."""
    run(*words, "-o", f"json={tmp_path / 'before.json'}")
    ran = run(*words, "--baseline", str(tmp_path / "before.json"), "-o", "json")
    found = {each["cluster"]: each for each in json.loads(ran.out)["clusters"]}
    assert ran.code == 3
    assert {name: each["exitCode"] for name, each in found.items()} == {"harbour": 0, "island": 0, "lighthouse": 3}


def test_a_suppression_does_not_take_silence_away(run: Run, words: tuple[str, ...], tmp_path: Path) -> None:
    """Nor does one of everything."""
    rules = "suppressions:\n- {risk: '*', cluster: '*', reason: all is well, until: 2099-01-01}\n"
    (tmp_path / "rules.yaml").write_text(rules)
    ran = run(*words, "--suppressions", str(tmp_path / "rules.yaml"))
    assert ran.code == 3, ran.err


def test_a_set_is_a_gate(run: Run, words: tuple[str, ...]) -> None:
    """The clusters of a set alone, for one version."""
    assert run(*words, "--clusterset", "canary", "--to", "5.1.0").code == 0
    other = run(*words, "--clusterset", "canary", "--to", "5.2.0")
    assert other.code == 1
    assert "its newest report is about the update to 5.1.0, not to 5.2.0" in other.out


def test_a_report_is_kept_once(run: Run, words: tuple[str, ...], tmp_path: Path) -> None:
    """However often it is read."""
    store = ("--store", str(tmp_path / "reports"))
    for _ in range(2):
        run(*words, *store)
    history = json.loads(run("fleet", "history", *store, "-o", "json").out)
    assert sorted(each["cluster"] for each in history) == list(NAMES)


REFUSED = {
    "no such set": (("--clusterset", "main"), "has no such ManagedClusterSet; there is canary"),
    "--from": (("--from", "5.0.0"), "--from cannot change them: the add-on says what the clusters check"),
    "--to-image": (("--to-image", "oci:x"), "--to-image cannot change them"),
    "--release-dir": (("--release-dir", "x"), "--release-dir cannot change them"),
    "no label fits": (("-l", "env=production"), "no cluster has labels that fit"),
}


@pytest.mark.parametrize(("more", "said"), REFUSED.values(), ids=list(REFUSED))
def test_what_a_hub_cannot_answer(run: Run, words: tuple[str, ...], more: tuple[str, ...], said: str) -> None:
    """The error names the option and the way out."""
    ran = run(*words, *more)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_no_hub(run: Run, server: Server) -> None:
    """A cluster without the hub's kinds, and a set without a hub."""
    context = yaml.safe_load(server.kubeconfig.read_text())["current-context"]
    ran = run("fleet", "preflight", "--kubeconfig", server.kubeconfig, "--hub", context)
    assert ran.code == 1
    assert f"--hub {context}: is no hub of Open Cluster Management" in ran.err
    alone = run("fleet", "preflight", "--clusterset", "canary")
    assert alone.code == 1
    assert "is a set of a hub's clusters; give --hub CONTEXT, too" in alone.err


def test_the_add_on(run: Run) -> None:
    """Two objects that kubectl applies, with what was typed."""
    ran = run("fleet", "addon", "--placement", "fleet/all", "--every", "6h", "--to", "5.1.0", "--image", IMAGE)
    template, addon = yaml.safe_load_all(ran.out)
    assert (ran.code, template["kind"], addon["kind"]) == (0, "AddOnTemplate", "ClusterManagementAddOn")
    assert "&id" not in ran.out
    assert ran.out.count(IMAGE) == 2
    manifests = template["spec"]["agentSpec"]["workload"]["manifests"]
    checks, status = (each["metadata"] for each in manifests if each["kind"] == "CronJob")
    assert checks["annotations"] == {"preflight.runup.dev/every": "6h", "preflight.runup.dev/target": "5.1.0"}
    assert (status["name"], status["annotations"]) == ("runup-status", {"preflight.runup.dev/every": "5m"})


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(("--status-every", "never"), id="not wanted"),
        pytest.param(("--platform", "kubernetes", "--to", "1.36"), id="not an OpenShift"),
    ],
)
def test_an_add_on_without_a_status(run: Run, more: tuple[str, ...]) -> None:
    """It brings the preflight alone."""
    printed = run("fleet", "addon", *GOOD, *more)
    assert printed.code == 0, printed.err
    assert "status-newest" not in printed.out


def test_the_account_may_read_what_the_checks_of_its_kind_of_cluster_read(run: Run) -> None:
    """Checks of plain Kubernetes clusters read additional kinds, and a namespace that every cluster has."""
    printed = run("fleet", "addon", *GOOD, "--platform", "kubernetes", "--to", "1.36").out
    template = next(yaml.safe_load_all(printed))
    made = template["spec"]["agentSpec"]["workload"]["manifests"]
    (everywhere,) = (each for each in made if each["kind"] == "ClusterRole")
    read = {(group, name) for rule in everywhere["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    for right in own_rights(ClusterKind.KUBERNETES):
        assert right.namespace or (right.group, right.resource) in read
    assert ("scheduling.k8s.io", "podgroups") in read
    assert {each["metadata"]["namespace"] for each in made if each["kind"] == "Role"} == {
        "runup-preflight",
        "kube-system",
    }


GOOD = ("--placement", "fleet/all", "--every", "6h", "--image", IMAGE)
UNFIT = {
    "a placement without a namespace": (
        ("--placement", "all", "--every", "6h"),
        "--placement all: names no Placement; give NAMESPACE/NAME",
    ),
    "an interval that no CronJob keeps": (
        ("--placement", "a/b", "--every", "5h"),
        "--every '5h' is not an interval that a CronJob can keep",
    ),
    "an image of this machine": (
        (*GOOD[:4], "--image", "oci:here"),
        "--image oci:here: the cluster cannot pull it; give an image in a registry",
    ),
    "two targets": ((*GOOD, "--to", "5.1.0", "--to-channel", "stable-5.1"), "--to and --to-channel both name"),
    "no version": ((*GOOD, "--to", "soon"), "--to: "),
    "Kubernetes without a target": ((*GOOD, "--platform", "kubernetes"), "give --to MINOR, such as --to 1.36"),
    "a status more often than a CronJob can": (
        (*GOOD, "--status-every", "7m"),
        "--status-every '7m' is not an interval that a CronJob can keep",
    ),
    "a status of a cluster that has none": (
        (*GOOD, "--platform", "kubernetes", "--to", "1.36", "--status-every", "5m"),
        "--status-every 5m with --platform kubernetes: the add-on reports no status of such a cluster",
    ),
    "Kubernetes with OpenShift's": (
        (*GOOD, "--platform", "kubernetes", "--to", "5.1.0"),
        "give --to MINOR, such as --to 1.36",
    ),
}


@pytest.mark.parametrize(("words", "said"), UNFIT.values(), ids=list(UNFIT))
def test_an_add_on_that_could_not_work(run: Run, words: tuple[str, ...], said: str) -> None:
    """It is refused before anything is printed."""
    ran = run("fleet", "addon", *words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
