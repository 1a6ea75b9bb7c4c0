"""`preflight run`: of a cluster that is only read, of dumps, in every form; what it comes to is the exit code."""

from __future__ import annotations

import json
import math
import shlex
import tarfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run, Server

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError, Terminal
from kubekit.kube import calls
from kubekit.lang import yaml as kyaml
from kubekit.oci.images import Execution
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster
from runup.cli.preflight.outputs import PREFLIGHT_FORMS
from runup.cli.preflight.render import output_formats as forms
from runup.evaluation import missing as missing_kinds
from runup.evaluation import suppressions
from runup.facts.of_dump import dumps_in
from runup.facts.target_release import release_in
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import Findings, Risk, worst_code
from runup.preflight.decide.stored_reports import History
from runup.release.control.image_build import build_image, layer_of
from runup.report.report import FORMAT, Report

JSON = dict[str, Any]
OF_OPENSHIFT = checks_for_cluster(CHECKS, ClusterKind.OPENSHIFT)
SINCE = "2026-01-14T09:30:00Z"


def conditions(since: str = SINCE, **statuses: str) -> list[JSON]:
    """Conditions that have held since then; the newest of a dump is its own time."""
    return [{"type": type_, "status": status, "lastTransitionTime": since} for type_, status in statuses.items()]


CLUSTER: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version"},
    "spec": {"clusterID": "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11"},
    "status": {
        "desired": {"version": "4.15.3", "image": "quay.io/x@sha256:1"},
        "history": [{"state": "Completed", "version": "4.15.3", "image": "quay.io/x@sha256:1", "startedTime": SINCE}],
        "conditions": conditions(Available="True", Failing="False", Progressing="False"),
    },
}
OPERATOR: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterOperator",
    "metadata": {"name": "dns"},
    "status": {"conditions": conditions("2026-01-14T08:00:00Z", Available="True", Degraded="True")},
}


def dump(folder: Path, *objects: JSON) -> Path:
    """A flat dump."""
    folder.mkdir()
    for number, obj in enumerate(objects):
        (folder / f"{number}.json").write_text(json.dumps(obj))
    return folder


def listed(*objects: JSON) -> JSON:
    """What `oc get --all-namespaces -o json` prints."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(objects)}


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A dump with a degraded operator."""
    return dump(tmp_path / "one", CLUSTER, OPERATOR)


def found_in(folder: Path, run: Run, *words: str) -> JSON:
    """What `-o json` says about a dump."""
    found: JSON = json.loads(run("preflight", "run", "--dump", folder, "-o", "json", *words).out)
    return found


def test_a_dump_is_judged_for_the_next_minor(one: Path, run: Run) -> None:
    """At its own time, with every check; what it lacks is Unknown, and never silently."""
    found = found_in(one, run)
    assert (found["cluster"], found["source"], found["target"]) == ("one", "4.15.3", "4.16.0")
    assert {check["name"] for check in found["checks"]} == {check.name for check in OF_OPENSHIFT}
    applying = {risk["name"] for risk in found["risks"] if risk["applies"] == "True"}
    assert applying == {"ClusterOperatorDegraded-dns"}
    unknown = {risk["name"] for risk in found["risks"] if risk["applies"] == "Unknown"}
    assert {"SystemPodsFailingUnknown", "WebhookBlocksUpdateUnknown", "OperatorMaxOpenShiftVersionUnknown"} <= unknown
    (pods,) = [risk for risk in found["risks"] if risk["name"] == "SystemPodsFailingUnknown"]
    assert "the dump holds no pods" in pods["message"]
    assert found["exitCode"] == 2


def test_a_dump_that_one_stands_in_has_its_folders_name(one: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed as `.`, in the machine form and where it is no dump at all."""
    monkeypatch.chdir(one)
    assert found_in(Path(), run)["cluster"] == "one"
    (one / "0.json").unlink()
    assert found_in(Path(), run)["cluster"] == "one"


NO_UPDATES: dict[str, tuple[str, str]] = {
    "back": ("4.14.9", "4.14.9 is older than 4.15.3, and no downgrade is supported; choose a newer target"),
    "nowhere": ("4.15.3", "the cluster is at 4.15.3 already; choose a newer target, or another image of it by digest"),
    "too far": ("7.0.0", "7.0.0 is more than 2 major versions away from 4.15.3; check a nearer release first"),
}


@pytest.mark.parametrize(("target", "said"), NO_UPDATES.values(), ids=list(NO_UPDATES))
def test_no_update_leads_there(one: Path, run: Run, target: str, said: str) -> None:
    """The operator refuses such a target, so nothing is evaluated for it."""
    result = run("preflight", "run", "--dump", one, "--to", target)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"error: {said}\n"


@pytest.mark.parametrize("tree", [False, True], ids=["a flat folder", "a tree of must-gather"])
def test_a_dump_says_what_to_collect(tmp_path: Path, run: Run, tree: bool) -> None:
    """In one line; with lists of all that it names, nothing is unknown for want of a list."""
    folder = tmp_path / "it's one"
    if tree:
        objects = folder / "image" / "cluster-scoped-resources" / "config.openshift.io" / "clusterversions"
        objects.parent.mkdir(parents=True)
        dump(objects, CLUSTER)
    else:
        dump(folder, CLUSTER)
    shown = run("preflight", "run", "--dump", folder)
    collecting = f"  runup dump collect {shlex.quote(f'{folder}-collected')}"
    assert shown.out.splitlines().count(collecting) == 1
    assert run("preflight", "run", "--dump", folder, "-v").out.splitlines()[-1] == collecting
    kinds = found_in(folder, run)["lacking"]
    assert {"nodes", "pods", "apiservices.apiregistration.k8s.io", "clusteroperators.config.openshift.io"} <= {*kinds}
    for kind in kinds:
        (folder / f"{kind}.json").write_text(json.dumps(listed()))
    then = found_in(folder, run)
    assert "lacking" not in then
    assert not [risk["message"] for risk in then["risks"] if "the dump holds no" in risk["message"]]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("a/b", "runup dump collect a/b-collected", id="a folder"),
        pytest.param("a dump", "runup dump collect 'a dump-collected'", id="a name with blanks"),
        pytest.param("m.tar.gz", "runup dump collect m-collected", id="an archive"),
        pytest.param("cv.yaml", "runup dump collect cv-collected", id="a file"),
        pytest.param(".", "runup dump collect collected", id="the folder where one is"),
    ],
)
def test_the_command_that_collects_a_dump(path: str, shown: str) -> None:
    """Next to the dump that lacks something; none is needed where nothing does."""
    assert missing_kinds.command(Path(path), ("nodes", "pods")) == shown
    assert missing_kinds.command(Path(path), ()) == ""


def test_several_cases_are_several_dumps(tmp_path: Path) -> None:
    """Each by its prefix, in order; what is no folder of cases is one."""
    for name in ("b-cv.yaml", "a-cv.yaml", "a-co.yaml"):
        (tmp_path / name).write_text("{}")
    assert list(dumps_in(tmp_path)) == [tmp_path / "a", tmp_path / "b"]
    (tmp_path / "dump").mkdir()
    assert list(dumps_in(tmp_path / "dump")) == [tmp_path / "dump"]
    assert list(dumps_in(tmp_path / "a-cv.yaml")) == [tmp_path / "a-cv.yaml"]


def test_what_a_dump_lacks_is_nothing_to_accept(one: Path, run: Run) -> None:
    """Only what was found can be accepted, and where it was found."""
    shown = run("preflight", "run", "--dump", one).out
    (verdict,) = [line for line in shown.splitlines() if line.startswith("Verdict: ")]
    assert verdict.endswith(
        " Fix them, or accept them by name, on the cluster: runup upgrade accept ClusterOperatorDegraded-dns"
    )


def test_a_kind_that_no_definition_makes_is_not_there(tmp_path: Path, run: Run) -> None:
    """Of a dump with all definitions it is known that there is no OLM; of pods it is not known."""
    definitions: JSON = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterversions.config.openshift.io"},
        "spec": {"group": "config.openshift.io", "names": {"kind": "ClusterVersion", "plural": "clusterversions"}},
    }
    results = {
        check["name"]: check["result"]
        for check in found_in(dump(tmp_path / "two", CLUSTER, listed(definitions)), run)["checks"]
    }
    assert results["OperatorMaxOpenShiftVersion"] == "Clear"
    assert results["SystemPodsFailing"] == "Unknown"
    assert results["APIServiceUnavailable"] == "Unknown"


def results_of(folder: Path, run: Run) -> dict[str, str]:
    """What became of each check."""
    return {check["name"]: check["result"] for check in found_in(folder, run)["checks"]}


def test_a_part_of_a_kind_makes_nothing_clear(tmp_path: Path, run: Run) -> None:
    """One definition, one node, the pods of one namespace: what is Clear without them is Clear with them."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Thing", "plural": "things"}, "versions": []},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-0"}, "status": {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "till", "namespace": "shop"}, "status": {}}
    pods = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [pod]}
    alone = results_of(dump(tmp_path / "alone", CLUSTER), run)
    with_parts = results_of(dump(tmp_path / "parts", CLUSTER, definition, node, pods), run)
    assert [name for name, result in with_parts.items() if result == "Clear" != alone[name]] == []


def test_what_is_there_in_part_still_shows_a_risk(tmp_path: Path, run: Run) -> None:
    """A cordoned node is one, whichever other nodes there are; whether those are well is Unknown next to it."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-0"}, "spec": {"unschedulable": True}}
    risks = {each["name"]: each["applies"] for each in found_in(dump(tmp_path / "d", CLUSTER, node), run)["risks"]}
    assert (risks["NodeCordoned"], risks["NodeHealthUnknown"]) == ("True", "Unknown")


def test_a_folder_of_several_clusters_stops_a_pipeline(tmp_path: Path, run: Run) -> None:
    """As an error that names them; each by itself is evaluated."""
    for name in ("a", "b"):
        spec = {**CLUSTER["spec"], "clusterID": f"id-{name}"}
        dump(tmp_path / name, {**CLUSTER, "spec": spec})
    ran = run("preflight", "run", "--dump", tmp_path, "-o", "junit", "--fail-on", "never")
    assert ran.code == 1
    assert "holds 2 clusters" in ran.out
    assert [name for name in ("id-a", "id-b") if name not in ran.out] == []
    ran = run("preflight", "run", "--dump", tmp_path / "a", "--dump", tmp_path / "b", "--fail-on", "never")
    assert ran.code == 0


FAIL_ON = [
    pytest.param("unknown", 2, id="everything counts"),
    pytest.param("info", 2, id="what applies"),
    pytest.param("warning", 2, id="a warning applies"),
    pytest.param("critical", 0, id="nothing critical applies"),
    pytest.param("never", 0, id="nothing counts"),
]


@pytest.mark.parametrize(("level", "code"), FAIL_ON)
def test_fail_on(level: str, code: int, one: Path, run: Run) -> None:
    """The pipeline chooses its own threshold."""
    assert run("preflight", "run", "--dump", one, "--fail-on", level).code == code


STORED = Report(
    format=FORMAT,
    preflight_id="p",
    source_version="4.15.3",
    target_version="4.16.0",
    target_image="quay.io/x@sha256:2",
    execution_status="completed",
    observed_time=datetime(2026, 1, 14, tzinfo=UTC),
)


def test_several_dumps_are_one_table(one: Path, tmp_path: Path, run: Run) -> None:
    """One line for each file; an invalid one does not stop the others, and the exit code reflects it."""
    other = dump(tmp_path / "none", OPERATOR)
    ran = run("preflight", "run", "--dump", one, "--dump", other)
    lines = ran.out.splitlines()
    assert lines[0].split() == ["CLUSTER", "FROM", "TO", "RESULT", "APPLY", "UNKNOWN", "ACCEPTED", "GRAVEST"]
    assert lines[1].split()[:5] == ["one", "4.15.3", "4.16.0", "RisksApply", "1"]
    assert "CouldNotRun" in lines[2]
    assert "no ClusterVersion" in lines[2]
    assert ran.code == 1
    data = json.loads(run("preflight", "run", "--dump", one, "--dump", one, "-o", "json").out)
    assert [each["cluster"] for each in data] == ["one", "one"]


def test_a_dump_that_is_none_is_one_error(tmp_path: Path, run: Run) -> None:
    """It names the dump."""
    ran = run("preflight", "run", "--dump", tmp_path / "missing")
    assert (ran.code, ran.out) == (1, "")
    assert "missing" in ran.err


def test_forms(one: Path, run: Run) -> None:
    """Each is what its readers take: XML, SARIF 2.1.0, a checklist, a page, YAML."""

    def printed(form: str) -> str:
        ran = run("preflight", "run", "--dump", one, "-o", form)
        assert ran.code == 2
        return ran.out

    of_openshift = checks_for_cluster(CHECKS, ClusterKind.OPENSHIFT)
    suite = ElementTree.fromstring(printed("junit"))[0]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["ClusterOperatorDegraded-dns"]
    assert int(suite.get("tests", "0")) == len(suite) > len(of_openshift) - 5
    sarif = json.loads(printed("sarif"))
    assert sarif["version"] == "2.1.0"
    results = sarif["runs"][0]["results"]
    assert [each["level"] for each in results if each["ruleId"] == "ClusterOperatorDegraded-dns"] == ["warning"]
    assert {each["ruleId"] for each in results} == {rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]}
    assert "- [ ] **ClusterOperatorDegraded-dns** (warning, applies): Cluster operator dns is degraded" in printed(
        "markdown"
    )
    assert "<html" in printed("html")
    assert kyaml.load(printed("yaml"))["exitCode"] == 2


def test_where_a_result_of_sarif_is(one: Path, run: Run) -> None:
    """At each object that it is about, or at the cluster where it is about none; always somewhere."""
    (ran,) = json.loads(run("preflight", "run", "--dump", one, "-o", "sarif").out)["runs"]
    where = {
        each["ruleId"]: [at["fullyQualifiedName"] for place in each["locations"] for at in place["logicalLocations"]]
        for each in ran["results"]
    }
    assert where["ClusterOperatorDegraded-dns"] == ["one: ClusterOperator.config.openshift.io dns"]
    assert where["SystemPodsFailingUnknown"] == ["one"]


def test_where_in_a_dump_a_result_of_sarif_is(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the object's file, at the line that names it in a list; without objects, where the cluster's version is."""
    monkeypatch.chdir(tmp_path)
    folder = dump(tmp_path / "my dump", CLUSTER)
    operators = {**OPERATOR, "metadata": {"name": "network"}}, OPERATOR
    (folder / "operators.yaml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n"
        + "".join(f"- {line}" for each in operators for line in [json.dumps(each).replace(", ", ",\n  ") + "\n"])
    )
    lines = (folder / "operators.yaml").read_text().splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if '{"name": "dns"}' in text]

    def places(*words: object) -> dict[str, tuple[str, int]]:
        (ran,) = json.loads(run("preflight", "run", "--dump", *words, "-o", "sarif").out)["runs"]
        shown = {each["ruleId"]: each["locations"][0]["physicalLocation"] for each in ran["results"]}
        return {name: (at["artifactLocation"]["uri"], at["region"]["startLine"]) for name, at in shown.items()}

    found = places("my dump")
    assert found["ClusterOperatorDegraded-dns"] == ("my%20dump/operators.yaml", line)
    assert found["SystemPodsFailingUnknown"] == ("my%20dump/0.json", 1)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as packed:
        packed.add(folder, "my dump")
    assert set(places("packed.tar.gz").values()) == {("packed.tar.gz", 1)}
    monkeypatch.chdir(folder)
    assert places(tmp_path / "packed.tar.gz")["ClusterOperatorDegraded-dns"][0].startswith("file:///")


def test_a_result_of_sarif_is_the_same_in_every_run(one: Path, run: Run) -> None:
    """By cluster and name; a service that gets it again neither closes nor doubles it."""

    def prints(folder: Path) -> dict[str, str]:
        (ran,) = json.loads(run("preflight", "run", "--dump", folder, "-o", "sarif").out)["runs"]
        assert ran["automationDetails"] == {"id": "runup-preflight/"}
        assert [ran["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] for each in ran["results"]] == [
            each["ruleId"] for each in ran["results"]
        ]
        return {each["ruleId"]: each["partialFingerprints"]["primaryLocationLineHash"] for each in ran["results"]}

    first = prints(one)
    assert len(set(first.values())) == len(first)
    (one / "0.json").write_text(json.dumps({**CLUSTER, "spec": {"clusterID": "another"}}))
    assert prints(one) == first


def test_suppressed_is_still_listed(one: Path, tmp_path: Path, run: Run) -> None:
    """By globs, with its reason; an entry that is over counts no more, one that matches nothing is named."""
    file = tmp_path / "suppressions.yaml"
    file.write_text(
        "suppressions:\n"
        "- {risk: ClusterOperatorDegraded-*, reason: known flake, until: 2099-12-31}\n"
        "- {risk: '*Unknown', reason: a small dump}\n"
        "- {risk: FeatureSetForbidsUpdates, reason: a small dump, cluster: o*}\n"
        "- {risk: NodeNotRaedy, reason: a typo}\n"
    )
    ran = run("preflight", "run", "--dump", one, "--suppressions", file)
    assert ran.code == 0
    assert "accepted" in ran.out
    assert "ClusterOperatorDegraded-dns" in ran.out
    assert "warning: NodeNotRaedy suppresses nothing: no such risk was found" in ran.err
    found = found_in(one, run, "--suppressions", str(file))
    assert {risk["accepted"] for risk in found["risks"]} == {True}
    file.write_text("suppressions:\n- {risk: ClusterOperatorDegraded-*, reason: r, until: 2020-01-01}\n")
    ran = run("preflight", "run", "--dump", one, "--suppressions", file, "--fail-on", "warning")
    assert ran.code == 2
    assert "was suppressed until 2020-01-01, and counts again" in ran.err


BAD = [
    pytest.param("suppressions: [{risk: A, reason: b}, x]", "f.yaml: suppressions[1]: is not a map", id="the second"),
    pytest.param("suppressions: [{risk: A, reason: ' '}]", "suppressions[0]: reason is missing", id="a blank reason"),
    pytest.param("suppressions: [{risk: 1, reason: b}]", "suppressions[0]: risk is missing", id="a number for a risk"),
    pytest.param("suppressions: {risk: A}", "has no list `suppressions`", id="a map for a list"),
    pytest.param(
        "suppressions: [{risk: A, reason: b, who: 1, when: 2}]",
        "does not know when, who; it has cluster, reason, risk, until",
        id="two typos",
    ),
    pytest.param("[]", "has no list `suppressions`", id="no list"),
    pytest.param("", "--suppressions f.yaml: has no list `suppressions`", id="an empty file"),
    pytest.param("# later\n", "an item is for example {risk: NAME, reason: WHY", id="comments"),
    pytest.param("suppressions: [x]", "suppressions[0]: is not a map", id="no map"),
    pytest.param("suppressions: [{risk: A}]", "suppressions[0]: reason is missing", id="no reason"),
    pytest.param("suppressions: [{reason: A}]", "suppressions[0]: risk is missing", id="no risk"),
    pytest.param("suppressions: [{risk: A, reason: b, utnil: x}]", "does not know utnil", id="a typo"),
    pytest.param("suppressions: [{risk: A, reason: b, until: soon}]", "until 'soon' is not a day", id="no day"),
    pytest.param("suppressions: [", "f.yaml", id="no YAML"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_file_of_suppressions_that_cannot_be_used(text: str, words: str) -> None:
    """It says which entry, and which field: a typo must not hide a risk."""
    with pytest.raises(InputError) as caught:
        suppressions.parse(text, "f.yaml")
    assert words in caught.value.message


def test_the_last_day_still_counts() -> None:
    """And the day after does not."""
    rules = suppressions.parse("suppressions: [{risk: A, reason: r, until: 2026-03-31}]", "f")
    risk = Risk(name="A", applies="True", accepted=False, message="m", url="u")
    (kept,), over = suppressions.apply_suppressions([risk], rules, "c", date(2026, 3, 31))
    assert (kept.accepted, kept.because, over) == (True, "suppressed: r (until 2026-03-31)", ())
    (back,), over = suppressions.apply_suppressions([risk], rules, "c", date(2026, 4, 1))
    assert back == risk
    assert over == ("A was suppressed until 2026-03-31, and counts again",)


def test_which_clusters_a_suppression_is_for() -> None:
    """By glob; elsewhere the risk stands, and the entry suppresses nothing."""
    rules = suppressions.parse(
        "suppressions: [{risk: A*, reason: r, cluster: east-*}, {risk: B, reason: s}, {risk: A, reason: t}]", "f"
    )
    risks = [Risk(name=name, applies="True", accepted=False, message="m", url="u") for name in ("A", "B", "C")]
    east, over = suppressions.apply_suppressions(risks, rules, "east-1", date(2026, 1, 1))
    assert ([risk.because for risk in east], over) == (["suppressed: r", "suppressed: s", ""], ())
    assert [risk.accepted for risk in east] == [True, True, False]
    west, _ = suppressions.apply_suppressions(risks[:1], rules[:1], "west-1", date(2026, 1, 1))
    assert west == tuple(risks[:1])
    unused = suppressions.unused_entries(rules, "west-1", risks)
    assert list(map(str, unused)) == ["A* (east-*)"]
    assert suppressions.unused_entries(unused, "east-1", risks) == []


def test_what_the_cluster_accepts_keeps_its_reason() -> None:
    """A suppression is for what is open; of several the first that counts has the word."""
    rules = suppressions.parse(
        "suppressions: [{risk: A, reason: old, until: 2025-01-01}, {risk: A, reason: new, until: 2027-01-01}]", "f"
    )
    taken = Risk(name="A", applies="True", accepted=True, message="m", url="u", because="CHG-7")
    (kept,), over = suppressions.apply_suppressions([taken], rules, "c", date(2026, 1, 1))
    assert (kept, over) == (taken, ("A was suppressed until 2025-01-01, and counts again",))
    (counted,), _ = suppressions.apply_suppressions([replace(taken, accepted=False)], rules, "c", date(2026, 1, 1))
    assert counted.because == "suppressed: new (until 2027-01-01)"


REQUESTED: JSON = {
    "apiVersion": "apiserver.openshift.io/v1",
    "kind": "APIRequestCount",
    "metadata": {"name": "flowschemas.v1beta2.flowcontrol.apiserver.k8s.io"},
    "status": {
        "removedInRelease": "1.29",
        "requestCount": 3,
        "last24h": [{"byNode": [{"byUser": [{"username": "deployer", "userAgent": "kubectl", "requestCount": 3}]}]}],
    },
}


@pytest.mark.parametrize(
    ("source", "target", "soon", "now"),
    [
        pytest.param("4.11.0", "4.12.0", "Clear", "Clear", id="four before: nobody looks so far ahead"),
        pytest.param("4.12.0", "4.13.0", "Applies", "Clear", id="three before"),
        pytest.param("4.14.0", "4.15.0", "Applies", "Clear", id="one before"),
        pytest.param("4.15.0", "4.16.0", "Clear", "Applies", id="the one that goes without"),
        pytest.param("5.0.0", "5.1.0", "Unknown", "Unknown", id="a release that does not say"),
    ],
)
def test_which_kubernetes_a_release_ships(
    tmp_path: Path, run: Run, source: str, target: str, soon: str, now: str
) -> None:
    """4.y has Kubernetes 1.(y+13): what 1.29 removes goes with 4.16; of other majors nobody knows."""
    subject = dump(tmp_path / "counted", CLUSTER, listed(REQUESTED))
    found = found_in(subject, run, "--from", source, "--to", target)
    results = {check["name"]: check["result"] for check in found["checks"]}
    assert (found["source"], found["target"]) == (source, target)
    assert (results["DeprecatedAPIRequested"], results["RemovedAPIRequested"]) == (soon, now)


def test_the_record_of_a_dump_says_what_counts(tmp_path: Path, run: Run) -> None:
    """An acceptance that expired before the dump does not count; history and risks are reported with the reasons."""
    risk = "ClusterOperatorDegraded-dns"
    asked = {**CLUSTER["spec"], "desiredUpdate": {"acceptRisks": [{"name": risk}]}}
    cluster = {**CLUSTER, "spec": asked}

    def accepted(until: str) -> JSON:
        record = json.dumps({"name": risk, "reason": "CHG-7", "until": until})
        metadata = {"name": "accepted-risks", "namespace": "openshift-cluster-version-operator"}
        kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {risk: record}}
        folder = dump(tmp_path / until.replace(":", ""), cluster, OPERATOR, kept)
        found = found_in(folder, run)
        return next(each for each in found["risks"] if each["name"] == risk)

    assert accepted("2026-01-14T09:30:00Z")["accepted"] is False
    assert accepted("2026-01-14T09:30:02Z")["accepted"] is True


def test_what_could_not_be_judged_is_the_worst() -> None:
    """Of many clusters one number."""
    assert [worst_code(codes) for codes in ([], [0, 0], [0, 3], [3, 2, 0], [2, 1])] == [0, 0, 3, 2, 1]
    assert Findings(source="", target="", fail_on="never").exit_code == 1


def test_words_of_others_stay_words() -> None:
    """Markdown and XML are not made by a cluster."""
    risk = Risk(
        name="A", applies="True", accepted=False, message="<b>x</b> [y](http://z)\n# h\x1b", url="u", severity="warning"
    )
    odd = forms.ClusterResult(name="a<b", findings=Findings(source="1", target="2", risks=(risk,)))
    assert ElementTree.fromstring("".join(forms.junit([odd]))) is not None


def test_a_live_cluster_is_only_read(server: Server, run: Run) -> None:
    """The same report as the target's process would write, without an operator."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "quay.io/x@sha256:1"}})
    ran = run("preflight", "run", "--kubeconfig", server.kubeconfig, "--to", "5.2.0", "-o", "json")
    found = json.loads(ran.out)
    assert (found["source"], found["target"], found["result"]) == ("5.0.0", "5.2.0", "RisksApply")
    refused = {risk["name"]: risk["acceptable"] for risk in found["risks"] if not risk["acceptable"]}
    assert refused == {"ClusterVersionGiantHop": False}
    assert {check["name"] for check in found["checks"]} >= {check.name for check in OF_OPENSHIFT}
    results = {check["name"]: check["result"] for check in found["checks"]}
    assert results["OperatorMaxOpenShiftVersion"] == "Clear"
    assert results["SystemPodsFailing"] == "Clear"


def test_what_a_live_cluster_accepts_counts(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its list of names, and the record of one that has ended."""
    monkeypatch.setenv("CVO_NAMESPACE", "default")
    desired = {"version": "5.0.0", "image": "quay.io/x@sha256:1"}

    def risks() -> dict[str, bool]:
        ran = run("preflight", "run", "--kubeconfig", server.kubeconfig, "--to", "5.2.0", "-o", "json")
        return {risk["name"]: risk["accepted"] for risk in json.loads(ran.out)["risks"]}

    server.set_cluster_version(status={"desired": desired})
    name = min(before := risks())
    assert set(before.values()) == {False}
    server.patch_spec(desiredUpdate={"acceptRisks": [{"name": name}]})
    assert {risk for risk, accepted in risks().items() if accepted} == {name}
    ended = json.dumps({"name": name, "until": "2020-01-01T00:00:00Z"})
    metadata = {"name": "accepted-risks", "namespace": "default"}
    server.client.send(calls.create(resource_of(ConfigMap), {"metadata": metadata, "data": {name: ended}}))
    try:
        assert set(risks().values()) == {False}
    finally:
        server.client.send(calls.delete(resource_of(ConfigMap), "accepted-risks", "default"))


WRONG = [
    pytest.param(("--from", "soon"), "--from: 'soon' is not a semantic version", id="a source that is none"),
    pytest.param(("--to", "soon"), "--to: 'soon' is not a semantic version", id="a version that is none"),
    pytest.param(("--to-image", "x", "--release-dir", "y"), "give one of them", id="two releases"),
    pytest.param(("--release-dir", "/nowhere"), "there is no such folder", id="a folder that is not there"),
    pytest.param(("--release-dir", "/"), "--release-dir /: there is no file in manifests/,", id="no release"),
    pytest.param(("--suppressions", "/nowhere"), "cannot be read", id="a file that is not there"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_what_cannot_be_asked(words: tuple[str, ...], message: str, one: Path, run: Run) -> None:
    """One line, exit code 1, nothing printed."""
    ran = run("preflight", "run", "--dump", one, *words)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err


@pytest.mark.parametrize("content", [(), ("manifests/",), ("a.yaml", "release/a.yaml")])
def test_refuses_a_folder_without_a_release(content: tuple[str, ...], one: Path, tmp_path: Path, run: Run) -> None:
    """Empty folders and foreign files would otherwise count as a release without checks and manifests."""
    release = tmp_path / "release"
    release.mkdir()
    for name in content:
        (release / name).parent.mkdir(exist_ok=True)
        (release / name).mkdir() if name.endswith("/") else (release / name).write_text("services: {}\n")
    ran = run("preflight", "run", "--dump", one, "--release-dir", release)
    assert (ran.code, ran.out) == (1, "")
    assert f"--release-dir {release}: there is no file in manifests/, release-manifests/, preflight-checks/" in ran.err
    assert "runup release extract" in ran.err


def test_a_release_folder_brings_its_own_checks(one: Path, tmp_path: Path, run: Run) -> None:
    """Its declarative checks are run, and its manifests judged by."""
    release = tmp_path / "release"
    (release / "preflight-checks").mkdir(parents=True)
    (release / "preflight-checks" / "a.yaml").write_text(
        "apiVersion: preflight.runup.dev/v1alpha1\nkind: PreflightCheck\n"
        "metadata: {name: mine, annotations: {include.release.openshift.io/self-managed-high-availability: 'true'}}\n"
        "spec:\n  component: dns\n  reads:\n"
        "  - {name: operators, group: config.openshift.io, version: v1, kind: ClusterOperator, fields: [status]}\n"
        "  for: operators\n  expression: object.metadata.name == 'dns'\n  risk: {name: MyRisk, message: It is there.}\n"
    )
    found = found_in(one, run, "--release-dir", str(release), "--to", "4.16.1")
    assert [risk["applies"] for risk in found["risks"] if risk["name"] == "MyRisk"] == ["True"]


def test_a_release_is_read_directly_in_its_folders() -> None:
    """Deeper folders are not read, however long their names; an invalid folder name is reported as the release's."""
    deep = f"manifests/deep/{'x' * 300}.yaml"
    assert release_in({deep: b"{}"}).manifests is None
    with pytest.raises(Terminal) as error:
        release_in({f"manifests/{'x' * 300}.yaml": b"{}"})
    assert error.value.message == f"file manifests/{'x' * 110} of the release cannot be read: File name too long"


def test_the_other_commands_take_a_dump(one: Path, run: Run) -> None:
    """Two targets compared, one risk explained, and what an operator had stored."""
    compared = json.loads(run("preflight", "compare", "4.15.9", "4.16.0", "--dump", one, "-o", "json").out)
    assert "ClusterOperatorDegraded-dns" in json.dumps(compared)
    shown = run("preflight", "explain", "ClusterOperatorDegraded-dns", "--dump", one).out
    assert "Cluster operator dns is degraded" in shown
    assert "About this risk:" in shown
    near = run("preflight", "explain", "ClusterOperatorDegraded-dnss", "--dump", one)
    assert near.code == 0 or "did you mean" in near.err
    ran = run("preflight", "history", "--dump", one, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert run("preflight", "compare", "4.15.9", "soon", "--dump", one).code == 1
    assert "there is no folder" in run("preflight", "history", "--dump", one / "x").err


def test_what_an_operator_had_stored_is_read_of_a_dump(tmp_path: Path, run: Run) -> None:
    """Its own ConfigMap among others; without one there is no history."""
    shown = stored_reports.config_map(History(reports=(STORED,)), "openshift-cluster-version-operator")
    kept = {"apiVersion": "v1", "kind": "ConfigMap", **json.loads(codec.encode(shown))}
    other: JSON = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {}}
    subject = dump(tmp_path / "stored", CLUSTER, other, kept)
    reports = json.loads(run("preflight", "history", "--dump", subject, "-o", "json").out)
    assert [(report["sourceVersion"], report["targetVersion"]) for report in reports] == [("4.15.3", "4.16.0")]
    empty = dump(tmp_path / "empty", CLUSTER, other)
    assert json.loads(run("preflight", "history", "--dump", empty, "-o", "json").out) == []


def test_what_prometheus_says_now_is_not_asked_about_a_dump(one: Path, run: Run) -> None:
    """It would be an answer about another time."""
    ran = run("preflight", "run", "--dump", one, "--prometheus-url", "http://127.0.0.1:9")
    assert ran.code == 1
    assert "--prometheus-url" in ran.err
    assert "leave it out" in ran.err


SUBSCRIPTION: JSON = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "metadata": {"name": "logging", "namespace": "openshift-logging"},
    "spec": {"name": "cluster-logging", "channel": "stable-5", "source": "redhat-operators"},
    "status": {"installedCSV": "logging.v5.8.1", "currentCSV": "logging.v5.8.1"},
}


def test_operators_are_looked_up_in_the_catalog_of_the_target(tmp_path: Path, run: Run) -> None:
    """Out of the image's packages; one that is no catalog, or not there, is Unknown, and a typo is refused."""
    subject = dump(tmp_path / "olm", CLUSTER, SUBSCRIPTION)
    parts = (
        {"schema": "olm.package", "name": "cluster-logging", "defaultChannel": "stable-6"},
        {"schema": "olm.channel", "package": "cluster-logging", "name": "stable-6", "entries": [{"name": "l.v6"}]},
    )
    data = "\n".join(json.dumps(part) for part in parts).encode()
    layout = tmp_path / "index"
    for tag, path in (("next", "configs/cluster-logging/catalog.json"), ("none", "database/index.db")):
        build_image(layout, [layer_of({path: data})], tag=tag, config=Execution())

    def catalog_messages(image: str) -> str:
        words = ("--dump", subject, "--to", "4.16.0", "--target-catalog", f"redhat-operators={image}", "-o", "json")
        found = json.loads(run("preflight", "run", *words).out)
        return " ".join(risk["message"] for risk in found["risks"] if "InTargetCatalog" in risk["name"])

    assert "it has no channel stable-5, but stable-6" in catalog_messages(f"oci:{layout}:next")
    assert "it is not a file-based catalog: it has no folder configs" in catalog_messages(f"oci:{layout}:none")
    assert f"{tmp_path}/gone" in catalog_messages(f"oci:{tmp_path}/gone:next")
    for typed in ("redhat-operators", "redhat-operators=", f"=oci:{layout}:next"):
        ran = run("preflight", "run", "--dump", subject, "--target-catalog", typed)
        said = f"--target-catalog {typed}: give SOURCE=IMAGE, SOURCE being the name of a CatalogSource"
        assert (ran.code, ran.err) == (1, f"error: {said}\n")


@pytest.mark.parametrize("form", [None, *PREFLIGHT_FORMS])
def test_what_is_no_cluster_is_told_in_every_form(form: str | None, tmp_path: Path, run: Run) -> None:
    """The reason is in what is printed, and nothing reads as if no risk applied."""
    folder = dump(tmp_path / "operators", OPERATOR)
    ran = run("preflight", "run", "--dump", folder, *(("-o", form) if form else ()))
    assert ran.code == 1
    assert "has no ClusterVersion" in ran.out + ran.err
    assert "Nothing in the way" not in ran.out


def test_a_degraded_cluster_is_told_on_one_screen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty-one lines of eighty columns: causes, not the checks that saw them."""
    degraded = Path(__file__).parents[4] / "shared" / "corpus" / "oc-status" / "4.14.1-degraded"
    if not degraded.parent.is_dir():
        pytest.skip("the corpus of dumps is not beside this checkout")
    # By its name alone: the dump's path is printed, and a checkout in a long path would need one line more.
    monkeypatch.chdir(degraded.parent)
    lines = run("preflight", "run", "--dump", degraded.name).out.splitlines()
    assert "ClusterOperatorDegraded" in "\n".join(lines)
    assert sum(max(1, math.ceil(len(line) / 80)) for line in lines) <= 31
