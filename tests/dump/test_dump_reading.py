"""What becomes of a dump's files: packed or not, old, malformed, said twice. Nothing costs more than itself."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from runup.dump import load
from runup.dump.dump_files import BadDump
from runup.sandbox.scenario import from_dump

JSON = dict[str, Any]
CV = """apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {desired: {version: 4.16.3}}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: good}\n"
TIMES = [f"2024-01-0{day}T00:00:00Z" for day in (1, 2)]
ETCD = """apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd}
status:
  conditions:
"""


def rows(*pairs: tuple[str, str]) -> str:
    """The conditions of a type Degraded."""
    return "".join(f"  - {{type: Degraded, status: {status!r}, lastTransitionTime: {at}}}\n" for status, at in pairs)


def names(dump: load.Dump) -> set[str]:
    """Kind and name of what was read, but the ClusterVersion."""
    found = {f"{obj['kind']} {obj['metadata']['name']}" for obj in dump.objects}
    return found - {"ClusterVersion version"}


BAD: dict[str, tuple[str, str]] = {
    "a file that is no YAML": ("a: [", "bad.yaml: "),
    "an item without a name": (
        "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {}\n- metadata: {name: other}\n",
        "item 1 left out: a Node has no metadata.name",
    ),
    "an item that is a word": ("apiVersion: v1\nkind: NodeList\nitems:\n- word\n", "item 1 left out: it is a str"),
    "a document without a kind": ("spec: {}\n", "bad.yaml: it has no apiVersion and kind"),
    "a name that is a number": ("apiVersion: v1\nkind: Node\nmetadata: {name: 7}\n", "a Node has no metadata.name"),
    "an object given twice": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: good, labels: {a: b}}\n",
        "Node good is given twice; the one read last counts",
    ),
    "conditions given twice": (
        ETCD + rows(("True", TIMES[0]), ("False", TIMES[1])),
        "ClusterOperator etcd: condition Degraded is given twice; the one that changed last counts",
    ),
    "a file of no bytes": ("", "bad.yaml: it is empty, as a collection that failed leaves it"),
    "a file with a comment only": ("# nothing\n", "bad.yaml: it is empty, as a collection that failed leaves it"),
    "a condition without a type": (ETCD + "  - {status: 'True'}\n", "a condition without a type was left out"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=list(BAD))
def test_it_is_named_and_costs_nothing_but_itself(text: str, said: str, tmp_path: Path) -> None:
    """The good node is there, and one line names what is not."""
    for name, content in (("cv.yaml", CV), ("bad.yaml", text), ("a-good.yaml", NODE)):
        (tmp_path / name).write_text(content)
    dump = load.read(tmp_path)
    assert "Node good" in names(dump)
    assert [said in problem for problem in dump.problems] == [True]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the newer one last", "the newer one first"])
def test_of_two_conditions_the_one_that_changed_last_counts(order: tuple[int, int], tmp_path: Path) -> None:
    """Whatever their order."""
    shown = (("True", TIMES[0]), ("False", TIMES[1]))
    (tmp_path / "all.yaml").write_text(CV + "---\n" + ETCD + rows(*(shown[each] for each in order)))
    operator = load.read(tmp_path).one("config.openshift.io", "ClusterOperator", "etcd")
    assert operator is not None
    assert [condition["status"] for condition in operator["status"]["conditions"]] == ["False"]


@pytest.mark.parametrize(
    ("selector", "read"),
    [
        pytest.param({"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b"}}, id="a selector stays"),
        pytest.param({}, None, id="an empty one selected nothing, and would select everything today"),
        pytest.param(None, None, id="none at all"),
    ],
)
def test_budgets_of_v1beta1_are_read_as_those_of_v1(selector: Any, read: Any, tmp_path: Path) -> None:
    """The version that Kubernetes 1.25 took away."""
    spec = {"minAvailable": 1} | ({} if selector is None else {"selector": selector})
    budget = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "n"},
    }
    (tmp_path / "pdb.json").write_text(json.dumps({**budget, "spec": spec}))
    (tmp_path / "cv.yaml").write_text(CV)
    found = next(obj for obj in load.read(tmp_path).objects if obj["kind"] == "PodDisruptionBudget")
    assert (found["apiVersion"], found["spec"].get("selector")) == ("policy/v1", read)


@pytest.mark.parametrize("kind", ["KubeletConfig", "ContainerRuntimeConfig"])
def test_attempts_of_the_machine_config_operator_stay_in_order(kind: str, tmp_path: Path) -> None:
    """It adds a condition for each attempt, and the last one counts."""
    types = ["Success", "Failure", "Success"]
    conditions = [{"type": type_, "lastTransitionTime": TIMES[0]} for type_ in types]
    config = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": kind, "metadata": {"name": "c"}}
    (tmp_path / "c.json").write_text(json.dumps({**config, "status": {"conditions": conditions}}))
    (tmp_path / "cv.yaml").write_text(CV)
    dump = load.read(tmp_path)
    found = next(obj for obj in dump.objects if obj["kind"] == kind)
    assert [each["type"] for each in found["status"]["conditions"]] == types
    assert not dump.problems


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"])
def test_policies_of_v1beta1_are_read_as_those_of_v1(kind: str, tmp_path: Path) -> None:
    """Kubernetes 1.34 took that version away."""
    policy = {"apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": kind, "metadata": {"name": "p"}}
    (tmp_path / "p.json").write_text(json.dumps(policy))
    (tmp_path / "cv.yaml").write_text(CV)
    found = next(obj for obj in load.read(tmp_path).objects if obj["kind"] == kind)
    assert found["apiVersion"] == "admissionregistration.k8s.io/v1"


def insights(folder: Path) -> None:
    """An archive's layout: objects without apiVersion and kind, and things that are none."""
    files: dict[str, JSON] = {
        "version.json": {"metadata": {"name": "version"}, "status": {"desired": {"version": "4.16.3"}}},
        "clusteroperator/etcd.json": {"metadata": {"name": "etcd"}},
        "clusteroperator/operator.openshift.io/etcd/cluster.json": {"metadata": {"name": "cluster"}},
        "featuregate.json": {"metadata": {"name": "cluster"}, "spec": {}},
        "node/master-0.json": {"metadata": {"name": "master-0"}},
        "machineconfigpools/worker.json": {"metadata": {"name": "worker"}},
        "pdbs/shop/till.json": {"metadata": {"name": "till", "namespace": "shop"}},
        "pod/shop/till-0.json": {"metadata": {"name": "till-0", "namespace": "shop"}},
        "installplans.json": {"items": [], "stats": {"TOTAL_COUNT": 0}},
    }
    for name, content in files.items():
        file = folder / "config" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))


def more_insights(folder: Path) -> None:
    """What archives have besides: kinds in part, keys of ConfigMaps as files, folders that a must-gather has, too."""
    insights(folder)
    files = {
        "config/persistentvolumes/pv-1.json": {"metadata": {"name": "pv-1"}, "spec": {}},
        "config/certificatesigningrequests/csr-1.json": {
            "TypeMeta": {},
            "ObjectMeta": {"name": "csr-1", "creationTimestamp": "2024-01-01T00:00:00Z"},
            "Spec": {"UID": ""},
            "Status": {"Conditions": [{"Type": "Approved"}], "Cert": None},
        },
        "config/crd/things.example.com.json": {"metadata": {"name": "things.example.com"}},
        "config/validatingwebhookconfigurations/guard.json": {"metadata": {"name": "guard"}, "webhooks": []},
        "config/clusteroperator/operator.openshift.io/kubeapiserver/cluster.json": {
            "apiVersion": "operator.openshift.io/v1",
            "kind": "KubeAPIServer",
            "name": "cluster",
            "spec": {},
        },
        "namespaces/openshift-logging/stack.json": {
            "apiVersion": "loki.grafana.com/v1",
            "kind": "LokiStack",
            "metadata": {"name": "stack", "namespace": "openshift-logging"},
        },
        "cluster-scoped-resources/nmstate.io/states/worker.json": {"summary": "no object"},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    keys = folder / "config" / "configmaps" / "openshift-config" / "user-ca-bundle"
    keys.mkdir(parents=True)
    (keys / "ca-bundle.crt").write_text("-----BEGIN")
    (keys / "other.json").write_text('"text"')


@pytest.mark.parametrize("packed", [False, True], ids=["unpacked", "as the tar archive that is uploaded"])
def test_an_insights_archive_with_all_its_folders(packed: bool, tmp_path: Path) -> None:
    """Folders of names that a must-gather has do not make it one; what it has in part is there, and in part."""
    more_insights(tmp_path / "archive")
    path = tmp_path / "archive"
    if packed:
        path = tmp_path / "insights.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in ("config", "namespaces", "cluster-scoped-resources"):
                archive.add(tmp_path / "archive" / name, arcname=name)
    dump = load.read(path)
    assert (dump.style, dump.problems) == ("insights", ())
    assert names(dump) >= {
        "PersistentVolume pv-1",
        "CertificateSigningRequest csr-1",
        "CustomResourceDefinition things.example.com",
        "ValidatingWebhookConfiguration guard",
        "KubeAPIServer cluster",
        "LokiStack stack",
        "ConfigMap user-ca-bundle",
    }
    by_kind = {obj["kind"]: obj for obj in dump.objects}
    assert by_kind["CertificateSigningRequest"]["status"] == {"conditions": [{"type": "Approved"}]}
    assert by_kind["CertificateSigningRequest"]["metadata"]["creationTimestamp"] == "2024-01-01T00:00:00Z"
    assert by_kind["ConfigMap"]["data"] == {"ca-bundle.crt": "-----BEGIN", "other": '"text"'}
    for resource in (("", "persistentvolumes"), ("", "configmaps"), ("operator.openshift.io", "kubeapiservers")):
        assert resource in dump.collected.partly


def test_what_wrote_an_object_stays(tmp_path: Path) -> None:
    """`managedFields` say in which version: evidence, except for a sandbox, whose server writes its own."""
    written = [{"manager": "old", "operation": "Update", "apiVersion": "flowcontrol.apiserver.k8s.io/v1beta2"}]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "good", "managedFields": written}}
    (tmp_path / "node.json").write_text(json.dumps(node))
    (tmp_path / "cv.yaml").write_text(CV)
    dump = load.read(tmp_path)
    assert [obj["metadata"].get("managedFields") for obj in dump.objects if obj["kind"] == "Node"] == [written]
    imported = from_dump.scenario_of(dump, base=tmp_path).objects
    assert [obj["metadata"] for obj in imported if obj["kind"] == "Node"] == [{"name": "good"}]


def test_packages_are_read(tmp_path: Path) -> None:
    """Reads the catalogs' packages; a sandbox lacks the server that computes them."""
    package = {"apiVersion": "packages.operators.coreos.com/v1", "kind": "PackageManifest"}
    package["metadata"] = {"name": "logging", "namespace": "openshift-logging"}
    (tmp_path / "package.json").write_text(json.dumps(package))
    (tmp_path / "cv.yaml").write_text(CV)
    dump = load.read(tmp_path)
    assert names(dump) == {"PackageManifest logging"}
    assert {obj["kind"] for obj in from_dump.scenario_of(dump, base=tmp_path).objects} == {"ClusterVersion"}


@pytest.mark.parametrize("packed", [False, True], ids=["unpacked", "as the tar archive that is uploaded"])
def test_an_insights_archive(packed: bool, tmp_path: Path) -> None:
    """Its paths say what its files hold."""
    insights(tmp_path / "archive")
    path = tmp_path / "archive"
    if packed:
        path = tmp_path / "insights.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(tmp_path / "archive" / "config", arcname="config")
    dump = load.read(path)
    assert (dump.style, dump.problems) == ("insights", ())
    assert names(dump) == {
        "ClusterOperator etcd",
        "FeatureGate cluster",
        "Node master-0",
        "MachineConfigPool worker",
        "PodDisruptionBudget till",
        "Pod till-0",
    }


def test_a_packed_must_gather(tmp_path: Path) -> None:
    """Logs stay packed; its time is when it ended."""
    root = tmp_path / "must-gather.local.1"
    folder = root / "image" / "cluster-scoped-resources" / "config.openshift.io" / "clusterversions"
    folder.mkdir(parents=True)
    (folder / "version.yaml").write_text(CV)
    (root / "image" / "pod.log").write_text("x")
    (root / "timestamp").write_text("2024-01-01 00:00:00.1 +0000 UTC m=+0.1\n2024-01-01 01:02:03.4 +0100 CET m=+9.1\n")
    with tarfile.open(tmp_path / "m.tar.gz", "w:gz") as archive:
        archive.add(root, arcname=root.name)
    dump = load.read(tmp_path / "m.tar.gz")
    assert dump.cluster_version["status"]["desired"]["version"] == "4.16.3"
    assert dump.now is not None
    assert dump.now.isoformat() == "2024-01-01T00:02:03+00:00"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("notes.txt", b"hello", id="a file that is no archive"),
        pytest.param("cut.tar.gz", b"\x1f\x8b\x08\x00cut", id="an archive that was cut off"),
    ],
)
def test_what_cannot_be_unpacked_is_one_error(name: str, content: bytes, tmp_path: Path) -> None:
    """It names the file and the way out."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadDump, match=rf"{name} is not a readable archive .*give a folder"):
        load.read(tmp_path / name)


@pytest.mark.parametrize("name", ["must-gather.zip", "must-gather.tar.gz", "must-gather"])
def test_refuses_a_zip_archive_by_its_format(name: str, tmp_path: Path) -> None:
    """The content decides, not the name: a zip archive would otherwise be read as a broken tar archive."""
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("cv.yaml", CV)
    with pytest.raises(BadDump, match=rf"{name} is a zip archive, which runup cannot read; unpack it"):
        load.read(tmp_path / name)


@pytest.mark.parametrize(
    ("begins", "kind"),
    [
        (b"PK\x05\x06", "zip"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!\x1a\x07\x01", "rar"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ],
)
def test_refuses_archives_of_other_formats(begins: bytes, kind: str, tmp_path: Path) -> None:
    """The numbers are those of `file`'s magic database; an empty zip archive has only an end record."""
    (tmp_path / "d.bin").write_bytes(begins + bytes(600))
    with pytest.raises(BadDump, match=rf"d.bin is a {kind} archive"):
        load.read(tmp_path / "d.bin")


def test_an_archive_writes_nothing_outside_of_its_folder(tmp_path: Path) -> None:
    """A member that climbs out is refused."""
    (tmp_path / "evil.yaml").write_text(CV)
    with tarfile.open(tmp_path / "d.tar", "w") as archive:
        archive.add(tmp_path / "evil.yaml", arcname="../../outside.yaml")
    with pytest.raises(BadDump, match=r"is not a readable archive .*leads out of it"):
        load.read(tmp_path / "d.tar")
    assert not list(tmp_path.parent.rglob("outside.yaml"))


MACHINE = "apiVersion: v1\nkind: Node\nmetadata: {{name: {}}}\n"


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([f"nodes/{'n' * 300}.yaml"], id="a name that is too long"),
        pytest.param([f"nodes/{'ü' * 130}.yaml"], id="a name of too many bytes"),
        pytest.param([f"{'f' * 300}/one.yaml", f"{'f' * 300}/two.yaml"], id="a folder whose name is too long"),
        pytest.param(["/".join(["d" * 200] * 20) + "/one.yaml"], id="a path that is too long"),
        pytest.param(["nodes/a.yaml", "nodes/a.yaml/b.yaml"], id="a file, then a folder of its name"),
        pytest.param(["nodes/a.yaml/b.yaml", "nodes/a.yaml"], id="a folder, then a file of its name"),
    ],
)
def test_names_that_no_file_can_have(members: list[str], tmp_path: Path) -> None:
    """The objects count, with all others."""
    with tarfile.open(tmp_path / "d.tar", "w") as archive:
        texts = {"cluster.yaml": CV, "nodes/good.yaml": NODE}
        for number, name in enumerate(members):
            texts[name] = MACHINE.format(f"odd-{number}")
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    dump = load.read(tmp_path / "d.tar")
    assert names(dump) == {"Node good", *(f"Node odd-{number}" for number in range(len(members)))}
    assert dump.problems == ()


def test_an_archive_whose_paths_begin_at_the_root(tmp_path: Path) -> None:
    """They are read below the folder, as tar itself does it."""
    (tmp_path / "cv.yaml").write_text(CV)
    with tarfile.open(tmp_path / "d.tar", "w") as archive:
        member = archive.gettarinfo(tmp_path / "cv.yaml")
        member.name = "/rooted/cv.yaml"
        with (tmp_path / "cv.yaml").open("rb") as file:
            archive.addfile(member, file)
    assert load.read(tmp_path / "d.tar").cluster_version["status"]["desired"]["version"] == "4.16.3"


def test_one_file_is_a_dump_too(tmp_path: Path) -> None:
    """What `kubectl get ... -o yaml` prints."""
    (tmp_path / "all.yaml").write_text(CV + "---\n" + NODE)
    assert names(load.read(tmp_path / "all.yaml")) == {"Node good"}
