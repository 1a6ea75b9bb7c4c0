"""`runup dump collect`: what the checks read, from a real API server into a folder or an archive that proves it."""

from __future__ import annotations

import json
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run, Server
from tests.cli.rights import LOOKER, let_looker

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.api.platform_v1 import LAST_APPLIED
from runup.checks.catalogue import CHECKS
from runup.dump import load
from runup.facts.collect import CollectedKind, with_known_fields
from runup.facts.listers import ProgramLister, Refused, kinds_read_by

JSON = dict[str, Any]
BUDGETS, MAPS = (
    resource_of(PodDisruptionBudget),
    Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True),
)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
VOLUMES = Resource(group="", version="v1", kind="PersistentVolume", plural="persistentvolumes", namespaced=False)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
RECORD = "runup-dump.json"
APPLIED = {
    LAST_APPLIED: json.dumps(
        {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"annotations": {"x": "hunter2"}}}
    )
}


@pytest.fixture
def cluster(server: Server) -> Iterator[Server]:
    """A cluster with a budget, a ConfigMap that checks read, one that they do not, and a Secret."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "x"}})
    spaces = ("openshift-config", "shop")
    made: tuple[tuple[Resource, JSON, str], ...] = (
        (MAPS, {"metadata": {"name": "admin-acks"}, "data": {"proxy": "apps.example.com"}}, "openshift-config"),
        (MAPS, {"metadata": {"name": "own"}, "data": {"a": "b"}}, "shop"),
        (SECRETS, {"metadata": {"name": "hidden"}, "stringData": {"password": "hunter2"}}, "shop"),
        (BUDGETS, {"metadata": {"name": "till", "annotations": APPLIED}, "spec": {"minAvailable": 1}}, "shop"),
    )
    made += SECRETIVE
    for name in spaces:
        server.client.send(calls.apply(NAMESPACES, {"metadata": {"name": name}}, field_manager="test", force=True))
    for resource, obj, namespace in made:
        body = {**obj, "metadata": {**obj["metadata"], **({"namespace": namespace} if namespace else {})}}
        server.client.send(calls.apply(resource, body, field_manager="test", force=True))
    yield server
    for resource, obj, namespace in made:
        try:
            server.client.send(calls.delete(resource, obj["metadata"]["name"], namespace))
        except NotFound:
            continue


# A password where people have them.
TOKEN = "s3cr3t-t0k3n"
_MANIFEST = json.dumps({"env": [{"name": "P", "value": TOKEN}]})
_CONTAINER = {
    "name": "c", "image": "registry.example/till:1",
    "args": [f"--password={TOKEN}"], "command": ["till", f"-p{TOKEN}"], "env": [{"name": "P", "value": TOKEN}],
    "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": TOKEN}]}},
    "startupProbe": {"exec": {"command": ["login", TOKEN]}},
}  # fmt: skip
_POD = {
    "containers": [_CONTAINER],
    "volumes": [{"name": "v", "flexVolume": {"driver": "example/v", "options": {"secret": TOKEN}}}],
}
SECRETIVE: tuple[tuple[Resource, JSON, str], ...] = (
    (
        DEPLOYMENTS,
        {
            "metadata": {"name": "till", "annotations": {"kopf.zalando.org/last-handled-configuration": _MANIFEST}},
            "spec": {
                "selector": {"matchLabels": {"app": "till"}},
                "template": {"metadata": {"labels": {"app": "till"}}, "spec": _POD},
            },
        },
        "shop",
    ),
    (MAPS, {"metadata": {"name": "own-settings"}, "data": {"password": TOKEN}}, "openshift-config"),
    (
        VOLUMES,
        {
            "metadata": {"name": "secretive"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "d.example", "volumeHandle": "h", "volumeAttributes": {"password": TOKEN}},
            },
        },
        "",
    ),
)


def states(folder: Path) -> dict[str, str]:
    """What the record says about each kind."""
    return {row["resource"]: row["state"] for row in json.loads((folder / RECORD).read_text())["kinds"]}


@pytest.mark.slow
def test_what_the_checks_read_is_collected(cluster: Server, run: Run, tmp_path: Path) -> None:
    """Complete where the server lists it, absent where it has no such kind; the dump has the cluster's results."""
    folder = tmp_path / "mine"
    ran = run("dump", "collect", folder, "--kubeconfig", cluster.kubeconfig)
    assert ran.code == 0
    assert ran.out.endswith(f"Check it: runup preflight run --dump {folder}\n")
    assert ran.err == ""
    found = states(folder)
    assert {found[kind] for kind in ("nodes", "pods", "poddisruptionbudgets.policy")} == {"complete"}
    assert found["subscriptions.operators.coreos.com"] == "absent"
    dump = load.read(folder)
    whole = dump.collected.whole
    assert {("", "nodes"), ("policy", "poddisruptionbudgets")} <= whole
    assert ("operators.coreos.com", "subscriptions") in dump.collected.absent
    assert ("", "configmaps") in dump.collected.partly
    assert dump.collected.covers(("", "configmaps"), "openshift-config")
    assert not dump.collected.covers(("", "configmaps"), "shop")
    assert dump.now is not None

    def results(*words: str | Path) -> dict[str, str]:
        report = json.loads(run("preflight", "run", "-o", "json", *words).out)
        return {check["name"]: check["result"] for check in report["checks"]}

    assert results("--dump", folder) == results("--kubeconfig", cluster.kubeconfig)


def test_secrets_are_never_collected(cluster: Server, run: Run, tmp_path: Path) -> None:
    """Nor what no check reads, nor the manifest that was applied last; managers of objects are."""
    run("dump", "collect", tmp_path / "mine", "--kubeconfig", cluster.kubeconfig)
    texts = "".join(file.read_text() for file in (tmp_path / "mine").iterdir())
    assert "till" in texts
    assert [word for word in ("hunter2", "hidden", '"own"') if word in texts] == []
    (budget,) = json.loads((tmp_path / "mine" / "poddisruptionbudgets.policy.json").read_text())["items"]
    kept = json.loads(budget["metadata"]["annotations"][LAST_APPLIED])
    assert kept == {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget"}
    assert [entry["manager"] for entry in budget["metadata"]["managedFields"]] == ["test"]
    nosy = replace(CHECKS[0], reads=(*CHECKS[0].reads, SECRETS))
    assert "secrets" not in {kind.name for kind in kinds_read_by([nosy], "x")}


@pytest.mark.slow
def test_passwords_are_in_no_dump_and_no_report(cluster: Server, run: Run, tmp_path: Path) -> None:
    """Of the cluster and of the dump, which come to the same; `--whole-objects` collects everything, and says so."""
    folder, whole = tmp_path / "mine", tmp_path / "whole"
    at = ("--kubeconfig", cluster.kubeconfig)
    assert run("dump", "collect", folder, *at).code == 0
    texts = "".join(file.read_text() for file in folder.iterdir())
    assert "secretive" in texts
    assert "own-settings" in texts
    assert TOKEN not in texts
    assert "`--whole-objects` collects all" in json.loads((folder / RECORD).read_text())["note"]
    for form in ("json", "html", "text"):
        for source in (("--dump", folder), at):
            ran = run("preflight", "run", *source, *(("-o", form) if form != "text" else ()))
            assert TOKEN not in ran.out + ran.err
    reports = [json.loads(run("preflight", "run", "-o", "json", *words).out) for words in (("--dump", folder), at)]
    dump_risks, live_risks = ([(risk["name"], risk["applies"]) for risk in report["risks"]] for report in reports)
    assert dump_risks == live_risks
    assert run("dump", "collect", whole, *at, "--whole-objects").code == 0
    assert TOKEN in "".join(file.read_text() for file in whole.iterdir())
    assert "note" not in json.loads((whole / RECORD).read_text())


def test_words_of_the_user_are_not_in_it(cluster: Server, run: Run, tmp_path: Path) -> None:
    """The same word for the same word; the archive is the same dump, in folders that are made for it."""
    place = tmp_path / "dumps" / "today"
    ran = run(
        "dump", "collect", place / "mine", "--archive", "--kubeconfig", cluster.kubeconfig,
        "--redact", "example.com", "--redact", "till",
    )  # fmt: skip
    archive = place / "mine.tar.gz"
    assert (ran.code, [file.name for file in place.iterdir()]) == (0, [archive.name])
    with tarfile.open(archive) as tar:
        texts = "".join(tar.extractfile(member).read().decode() for member in tar if member.isfile())  # type: ignore[union-attr]
    assert "apps.redacted-1" in texts
    assert [word for word in ("example.com", '"till"') if word in texts] == []
    dump = load.read(archive)
    assert [obj["metadata"]["name"] for obj in dump.objects if obj["kind"] == "PodDisruptionBudget"] == ["redacted-2"]
    assert ("", "nodes") in dump.collected.whole


def test_what_may_not_be_listed_is_named(cluster: Server, run: Run, tmp_path: Path) -> None:
    """A list that is refused ends nothing, and is Unknown for who reads the dump."""
    let_looker(cluster.client, {"clusterversions.config.openshift.io": ("get", "list"), "nodes": ("list",)})
    ran = run("dump", "collect", tmp_path / "mine", "--kubeconfig", cluster.kubeconfig, "--as", LOOKER)
    assert ran.code == 0
    assert "\nforbidden: pods: pods is forbidden" in ran.out
    found = states(tmp_path / "mine")
    assert (found["nodes"], found["pods"]) == ("complete", "forbidden")
    # Which packages are needed, the Subscriptions say.
    assert found["subscriptions.operators.coreos.com"] == "forbidden"
    assert found["packagemanifests.packages.operators.coreos.com"] == "failed"
    collected = load.read(tmp_path / "mine").collected
    assert ("", "nodes") in collected.whole
    assert ("", "pods") not in collected.whole | collected.partly


def test_without_knowing_the_cluster_version_nothing_is_written(cluster: Server, run: Run, tmp_path: Path) -> None:
    """The applicable checks would be unknown: a refusal does not prove absence."""
    let_looker(cluster.client, {"nodes": ("list",)})
    ran = run("dump", "collect", tmp_path / "mine", "--kubeconfig", cluster.kubeconfig, "--as", LOOKER)
    assert (ran.code, ran.out) == (1, "")
    assert "whether there is a ClusterVersion is not known, and nothing was written: clusterversions" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("archive", [False, True], ids=["a folder", "an archive"])
def test_what_is_there_is_not_mixed(archive: bool, cluster: Server, run: Run, tmp_path: Path) -> None:
    """With objects of another time."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "old.yaml").write_text("kept")
    (tmp_path / "mine.tar.gz").write_text("kept")
    flags = ["--archive"] * archive
    ran = run("dump", "collect", tmp_path / "mine", *flags, "--kubeconfig", cluster.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert "exists; name a folder that does not" in ran.err
    assert (tmp_path / "mine" / "old.yaml").read_text() == (tmp_path / "mine.tar.gz").read_text() == "kept"


def test_a_broken_file_of_it_proves_nothing(cluster: Server, run: Run, tmp_path: Path) -> None:
    """Whatever the record says."""
    run("dump", "collect", tmp_path / "mine", "--kubeconfig", cluster.kubeconfig)
    (tmp_path / "mine" / "nodes.json").write_text("{")
    assert ("", "nodes") not in load.read(tmp_path / "mine").collected.whole


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_by_kubectl(cluster: Server, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, with its own login."""
    # It keeps what it discovers below HOME.
    monkeypatch.setenv("HOME", str(tmp_path))
    run("dump", "collect", tmp_path / "ours", "--kubeconfig", cluster.kubeconfig)
    ran = run("dump", "collect", tmp_path / "theirs", "--kubeconfig", cluster.kubeconfig, "--with", "kubectl")
    assert ran.code == 0
    assert states(tmp_path / "theirs") == states(tmp_path / "ours")

    def items(who: str) -> dict[str, Any]:
        return {file.name: json.loads(file.read_text()).get("items") for file in (tmp_path / who).iterdir()}

    assert items("theirs") == items("ours")


SAYS = {
    "forbidden": ("Error from server (Forbidden): pods is forbidden", "forbidden"),
    "a kind that is not there": (
        "Error from server (NotFound): the server could not find the requested resource",
        "absent",
    ),
    "anything else": ("error: You must be logged in to the server", "failed"),
}


@pytest.mark.parametrize(("says", "state"), SAYS.values(), ids=list(SAYS))
def test_what_a_program_says(says: str, state: str, cluster: Server, run: Run, tmp_path: Path) -> None:
    """Its words are the server's: all but the ClusterVersion are refused."""
    version = json.dumps({"items": [cluster.cluster_version()], "metadata": {"resourceVersion": "7"}})
    program = tmp_path / "oc"
    program.write_text(
        f"#!/bin/sh\ncase $3 in *clusterversions*) printf %s {shlex.quote(version)};;"
        f" *) echo {shlex.quote(says)} >&2; exit 1;; esac\n"
    )
    program.chmod(0o755)
    ran = run("dump", "collect", tmp_path / "mine", "--with", program)
    assert ran.code == 0, ran.err
    assert states(tmp_path / "mine")["pods"] == state
    assert states(tmp_path / "mine")["clusterversions.config.openshift.io"] == "complete"


def test_the_sample_of_the_repository(run: Run) -> None:
    """Runs the README's command: finds the cluster's risks, and knows the dump's kinds in full."""
    sample = Path(__file__).parents[3] / "examples" / "skip-level"
    ran = run("preflight", "run", "--dump", sample, "-o", "json")
    report = json.loads(ran.out)
    applying = {risk["name"] for risk in report["risks"] if risk["applies"] == "True"}
    assert ran.code == 2
    assert {"MachineConfigPoolPaused-infra", "NodeCordoned", "PodDisruptionBudgetBlocksDrain"} <= applying
    # Of what is not known a dump can have nothing: it is in the release.
    unknown = {each["name"] for each in report["checks"] if each["result"] == "Unknown"}
    assert unknown == {"CRDStoredVersionDropped", "KubeletSkew", "RemovedAPIStored"}
    held = set(states(sample)) - set(report.get("lacking", ()))
    assert held == set(states(sample))
    assert set(states(sample).values()) == {"complete", "absent"}


def _write_reduced(source: Path, folder: Path) -> None:
    """Writes a dump of whole objects again, with the fields that a dump has."""
    folder.mkdir()
    rows = json.loads((source / RECORD).read_text())["kinds"]
    for number, row in enumerate(rows):
        for file in source.glob(f"{row['resource']}*.json"):
            if file.name.removesuffix(".json").partition("@")[0] != row["resource"]:
                continue
            document = json.loads(file.read_text())
            group, _, version = document["apiVersion"].rpartition("/")
            kind, plural = document["kind"].removesuffix("List"), row["resource"].partition(".")[0]
            resource = Resource(group=group, version=version, kind=kind, plural=plural, namespaced=True)
            (kept,) = with_known_fields(
                [CollectedKind(name=row["resource"], state="complete", resource=resource, lists=(("", document),))], []
            )
            (folder / file.name).write_text(json.dumps(kept.lists[0][1]))
            rows[number] = row | {"fields": kept.fields}
    (folder / RECORD).write_text(json.dumps(json.loads((source / RECORD).read_text()) | {"kinds": rows}))


@pytest.mark.parametrize(
    "words",
    [
        ("preflight", "run", "-o", "json"),
        ("upgrade", "status"),
        ("upgrade", "forecast"),
        ("rehearse", "drain"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("sample", ["skip-level", "plain-kubernetes"])
def test_whole_objects_say_no_more(words: tuple[str, ...], sample: str, run: Run, tmp_path: Path) -> None:
    """Commands print the same without the fields that a dump omits."""
    source, folder = Path(__file__).parents[3] / "examples" / sample, tmp_path / sample
    _write_reduced(source, folder)
    assert "fields" in (folder / RECORD).read_text()
    of_whole, of_reduced = (run(*words, "--dump", each) for each in (source, folder))
    assert (of_reduced.code, of_reduced.out.replace(str(folder), str(source))) == (of_whole.code, of_whole.out)


@pytest.mark.parametrize(
    "answer", [b"{", b"[]", b'{"a": "\xff"}', b"[" * 2000], ids=["half", "a list", "no UTF-8", "deep"]
)
def test_an_object_that_a_program_prints_and_nobody_can_read(answer: bytes, tmp_path: Path) -> None:
    """Of one that is needed by its name: the kind is said to have failed, and the command continues."""
    program = tmp_path / "kubectl"
    program.write_bytes(f"#!/bin/sh\ncat {tmp_path}/answer\n".encode())
    program.chmod(0o755)
    (tmp_path / "answer").write_bytes(answer)
    with pytest.raises(Refused, match="ConfigMap a could not be read") as caught:
        ProgramLister(str(program)).named(resource_of(ConfigMap), "default", "a")
    assert caught.value.state == "failed"


def test_pages_that_a_program_prints(tmp_path: Path) -> None:
    """One list with the version of the first page, even if a server has another on each page."""
    program = tmp_path / "kubectl"
    pages = [
        '{"metadata": {"resourceVersion": "5", "continue": "t"}, "items": [{"metadata": {"name": "a"}}]}',
        '{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}}]}',
    ]
    cases = f"*continue=t*) echo '{pages[1]}' ;; *) echo '{pages[0]}' ;;"
    program.write_text(f'#!/bin/sh\ncase "$*" in {cases} esac\n')
    program.chmod(0o755)
    listing = ProgramLister(str(program)).listed(resource_of(ConfigMap), "", "")
    assert [item["metadata"]["name"] for item in listing.items] == ["a", "b"]
    assert listing.resource_version == "5"


@pytest.mark.parametrize(
    ("reason", "state"), [("NotFound", None), ("Forbidden", "forbidden"), ("InternalError", "failed")]
)
def test_an_object_that_a_program_does_not_get(reason: str, state: str | None, tmp_path: Path) -> None:
    """One that is not there is no error; any other refusal is reported by anybody who asked."""
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\necho 'Error from server ({reason}): the words of a server' >&2\nexit 1\n")
    program.chmod(0o755)
    lister = ProgramLister(str(program))
    if state is None:
        assert lister.named(resource_of(ConfigMap), "default", "a") is None
        return
    with pytest.raises(Refused) as refused:
        lister.named(resource_of(ConfigMap), "default", "a")
    assert (refused.value.state, "the words of a server" in str(refused.value)) == (state, True)
