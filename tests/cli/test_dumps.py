"""`--dump` of `upgrade`, `recommend` and `channel`: the layouts that dumps come in, and what is missing from them."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Run

from runup.dump import clusterversion_files

SINCE = "2026-01-14T09:30:00Z"
CONDITIONS = [
    {"type": "Failing", "status": "False", "lastTransitionTime": SINCE},
    {"type": "Progressing", "status": "False", "message": "Cluster version is 5.0.0", "lastTransitionTime": SINCE},
]
VERSION: dict[str, Any] = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version", "resourceVersion": "7"},
    "spec": {"channel": "stable-5.0", "clusterID": "0a1b"},
    "status": {
        "desired": {"version": "5.0.0", "channels": ["stable-5.0", "fast-5.0"]},
        "conditions": CONDITIONS,
        "availableUpdates": [{"version": "5.0.1", "image": "quay.io/ocp@sha256:1"}],
    },
}
ALERT = {"labels": {"alertname": "Bad", "severity": "critical"}, "state": "firing"}
TREE = "cluster-scoped-resources/config.openshift.io"


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value) if file.suffix == ".json" else yaml.safe_dump(value))


def _must_gather(folder: Path) -> None:
    image = folder / "must-gather.local.1" / "quay-io-sha256-1"
    _write(image / TREE / "clusterversions" / "version.yaml", VERSION)
    _write(image / "monitoring/prometheus/rules.json", {"data": {"groups": [{"rules": [{"alerts": [ALERT]}]}]}})
    # A pod's log may say anything.
    (image / "namespaces/x").mkdir(parents=True)
    (image / "namespaces/x/log.yaml").write_text("kind: ClusterVersion\n{")


def _inspect(folder: Path) -> None:
    _write(folder / TREE / "clusterversions" / "version.yaml", VERSION)


def _listed(folder: Path) -> None:
    items = {"kind": "ClusterVersionList", "items": [{k: v for k, v in VERSION.items() if k != "kind"}]}
    _write(folder / TREE / "clusterversions.yaml", items)


def _twice(folder: Path) -> None:
    older = {
        **VERSION,
        "metadata": {"name": "version", "resourceVersion": "6"},
        "spec": {"channel": "old", "clusterID": "0a1b"},
    }
    _write(folder / "a" / TREE / "clusterversions" / "version.yaml", older)
    _write(folder / "b" / TREE / "clusterversions" / "version.yaml", VERSION)


def _flat(folder: Path) -> None:
    _write(folder / "cv.yaml", {"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "n"}}, VERSION]})
    (folder / "broken.yaml").write_text("ClusterVersion: [")
    _write(folder / "alerts.json", {"data": {"alerts": [ALERT]}})


def _insights(folder: Path) -> None:
    _write(folder / "config" / "version.json", {k: v for k, v in VERSION.items() if k not in ("kind", "apiVersion")})


def _gathered_apart(folder: Path) -> None:
    _write(folder / "a" / "config" / "clusterversion" / "version.json", VERSION)
    _write(folder / "b" / "config" / "version.json", {**VERSION, "spec": {"channel": "another", "clusterID": "0a1b"}})


def _deep(folder: Path) -> None:
    _write(folder / "1" / "2" / "3" / "4" / TREE / "clusterversions" / "version.yaml", VERSION)
    _write(folder / "1" / "2" / "3" / "4" / "alerts.json", {"data": {"alerts": [ALERT]}})


def _deeper(folder: Path) -> None:
    _write(folder / "1" / "2" / "3" / "4" / "5" / TREE / "clusterversions" / "version.yaml", VERSION)
    _write(folder / "1" / "2" / "3" / "4" / "5" / "alerts.json", {"data": {"alerts": [ALERT]}})


def _newer_first(folder: Path) -> None:
    older = {
        **VERSION,
        "metadata": {"name": "version", "resourceVersion": "10"},
        "spec": {"channel": "old", "clusterID": "0a1b"},
    }
    _write(folder / "a" / TREE / "clusterversions" / "version.yaml", _newer(VERSION, "11"))
    _write(folder / "b" / TREE / "clusterversions" / "version.yaml", older)
    _write(folder / "c" / TREE / "clusterversions" / "version.yaml", _newer(older, "9"))
    _write(folder / "d" / TREE / "clusterversions" / "version.yaml", _newer(older, "x"))


def _newer(obj: dict[str, Any], number: str) -> dict[str, Any]:
    return {**obj, "metadata": {"name": "version", "resourceVersion": number}}


def _others_name(folder: Path) -> None:
    other = {
        **VERSION,
        "metadata": {"name": "other", "resourceVersion": "99"},
        "spec": {"channel": "another", "clusterID": "0a1b"},
    }
    _write(folder / TREE / "clusterversions" / "other.yaml", other)
    _write(folder / TREE / "clusterversions" / "version.yaml", VERSION)


def _alerts_in_the_second(folder: Path) -> None:
    _write(folder / "a" / TREE / "clusterversions" / "version.yaml", VERSION)
    (folder / "b" / "namespaces").mkdir(parents=True)
    _write(folder / "b" / "monitoring/prometheus/alerts.json", {"data": {"alerts": [ALERT]}})
    _write(folder / "c" / TREE / "clusterversions.json", VERSION)
    _write(folder / "c" / "alerts.json", {"data": {"alerts": []}})


def _case(folder: Path) -> None:
    _write(folder / "x-cv.yaml", VERSION)
    _write(folder / "x-alerts.json", {"data": {"alerts": [ALERT]}})


LAYOUTS = {
    "a must-gather": (_must_gather, True),
    "a tree of oc adm inspect": (_inspect, False),
    "a tree with a list": (_listed, False),
    "two images of one must-gather, the newer counts": (_twice, False),
    "a folder of YAML, a broken file among it": (_flat, True),
    "an Insights archive": (_insights, False),
    "several Insights archives, of which the first counts": (_gathered_apart, False),
    "a tree four folders down": (_deep, True),
    "one that is deeper is a folder of YAML, whose alerts lie elsewhere": (_deeper, False),
    "the newest is not the last, nor the longest word": (_newer_first, False),
    "a ClusterVersion by another name is none": (_others_name, False),
    "alerts in the second image": (_alerts_in_the_second, True),
    "one of oc's cases": (_case, True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, run: Run, tmp_path: Path) -> None:
    """Each command shows the same cluster; alerts that were not collected are not taken for none."""
    make, has_alerts = LAYOUTS[name]
    make(tmp_path)
    ran = run("upgrade", "--dump", tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Cluster version is 5.0.0\n\nUpstream is unset")
    assert "  5.0.1       quay.io/ocp@sha256:1\n" in ran.out
    ran = run("upgrade", "recommend", "--dump", tmp_path, "--version", "5.0.1")
    issue = "Bad" if has_alerts else "AlertNotCollected"
    assert (ran.code, ran.err.rpartition(": ")[2]) == (1, f"{issue}\n")
    assert run("upgrade", "channel", "--dump", tmp_path).out == (
        "Channel: stable-5.0 (available channels: stable-5.0, fast-5.0)\n"
    )


def test_an_archive(run: Run, tmp_path: Path) -> None:
    """As support gets it."""
    _must_gather(tmp_path / "mg")
    with tarfile.open(tmp_path / "mg.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "mg", "mg")
    ran = run("upgrade", "--dump", tmp_path / "mg.tar.gz", "-o", "json")
    assert json.loads(ran.out)["availableUpdates"] == VERSION["status"]["availableUpdates"]


def test_several_clusters(run: Run, tmp_path: Path) -> None:
    """Are named, rather than the newest taken for all of them."""
    for name in ("a", "b"):
        _write(tmp_path / name / "cv.yaml", {**VERSION, "spec": {"clusterID": f"id-{name}"}})
    ran = run("upgrade", "recommend", "--dump", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert (
        f"holds 2 clusters; give each of them by itself, with its own folder:\n  {tmp_path}/a: cluster id-a" in ran.err
    )
    assert f"\n  {tmp_path}/b: cluster id-b" in ran.err


REFUSED = {
    "nothing there": (["upgrade", "--dump", "nowhere"], "there is no nowhere; give the folder of a must-gather"),
    "a dump cannot be updated": (["upgrade", "--dump", ".", "--to=5.0.1"], "--to needs a cluster"),
    "a dump cannot be changed": (["upgrade", "channel", "x", "--dump", "."], "a dump cannot be brought into channel x"),
    "no ClusterVersion": (["upgrade", "recommend", "--dump", "."], "the dump . has no ClusterVersion"),
    "an archive that is none": (["upgrade", "--dump", "broken.tar.gz"], "broken.tar.gz"),
    "a file of something else": (["upgrade", "--dump", "node.yaml"], "the dump node.yaml has no ClusterVersion"),
    "a page": (["upgrade", "--dump", ".", "-o", "html"], "-o html is a page of a preflight; for a dump leave it out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is one error."""
    words, text = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.tar.gz").write_bytes(b"nothing")
    _write(tmp_path / "node.yaml", {"kind": "Node", "metadata": {"name": "n"}})
    ran = run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {text}")


@pytest.mark.parametrize(("allowed", "code"), [(2, 1), (3, 0)], ids=["one file too many", "as many as are read"])
def test_a_folder_of_too_many_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int, code: int
) -> None:
    """It is no dump; what is neither YAML nor JSON is not counted."""
    for name in ("a.json", "b/c.yaml", "d.yml"):
        _write(tmp_path / name, VERSION if name == "a.json" else {})
    (tmp_path / "log.txt").write_text("x")
    monkeypatch.setattr(clusterversion_files, "_MAX_CANDIDATES", allowed)
    ran = run("upgrade", "--dump", tmp_path)
    said = f"error: {tmp_path} has more than {allowed} files; give the folder of one dump\n"
    assert (ran.code, ran.err) == (code, said if code else "")


def test_a_case_is_named_by_its_file(run: Run, tmp_path: Path) -> None:
    """oc's flag takes a case that holds a List, and says what is not a ClusterVersion."""
    _case(tmp_path)
    words = ("upgrade", "recommend", "--mock-clusterversion", tmp_path / "x-cv.yaml")
    refused = {
        "items: []": f"{tmp_path}/x-cv.yaml contains no ClusterVersion",
        "[]": f"{tmp_path}/x-cv.yaml contains no ClusterVersion",
        "{kind: Node}": f"{tmp_path}/x-cv.yaml contains no ClusterVersion but a Node",
        "a: [1": f"{tmp_path}/x-cv.yaml, line 2, column 1: while parsing a flow sequence, did not find "
        "expected ',' or ']'",
    }
    for text, said in refused.items():
        (tmp_path / "x-cv.yaml").write_text(text)
        ran = run(*words)
        assert (ran.code, ran.out, ran.err) == (1, "", f"error: {said}\n")
    (tmp_path / "x-cv.yaml").write_text(json.dumps({k: v for k, v in VERSION.items() if k != "kind"}))
    alone = run(*words)
    assert alone.code == 0
    # Of several the first counts.
    (tmp_path / "x-cv.yaml").write_text(json.dumps({"items": [VERSION, {**VERSION, "status": {}}]}))
    assert run(*words) == alone


def test_several_cases(run: Run, tmp_path: Path) -> None:
    """They are listed; one is named by its prefix."""
    for name in ("x", "y"):
        _write(tmp_path / f"{name}-cv.yaml", VERSION)
    ran = run("upgrade", "--dump", tmp_path)
    assert ran.err == f"error: {tmp_path} holds 2 clusters; give one of them:\n  {tmp_path}/x\n  {tmp_path}/y\n"
    assert run("upgrade", "--dump", tmp_path / "x").code == 0


def test_a_file_alone(run: Run, tmp_path: Path) -> None:
    """Of a ClusterVersion, of a list that has one, and of one of oc's cases with what lies next to it."""
    _flat(tmp_path)
    _case(tmp_path / "case")
    (tmp_path / "broken.yaml").unlink()
    _write(tmp_path / "alone.json", VERSION)
    for name in ("cv.yaml", "alone.json", "case/x-cv.yaml"):
        ran = run("upgrade", "--dump", tmp_path / name)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("Cluster version is 5.0.0\n")
    ran = run("upgrade", "recommend", "--dump", tmp_path / "case" / "x-cv.yaml", "--version", "5.0.1")
    assert (ran.code, ran.err.rpartition(": ")[2]) == (1, "Bad\n")


@pytest.mark.parametrize(
    ("spec", "status", "said"),
    [
        pytest.param({}, {}, "", id="no preflight"),
        pytest.param(
            {"desiredUpdate": {"mode": "Preflight", "version": "5.2.0"}},
            {},
            "\nPreflight of 5.2.0 from 5.0.0: requested\n",
            id="one that is asked for",
        ),
        pytest.param({"desiredUpdate": {"version": "5.2.0"}}, {}, "", id="an update is none"),
    ],
)
def test_what_a_dump_tells_of_preflights(
    run: Run, tmp_path: Path, spec: dict[str, Any], status: dict[str, Any], said: str
) -> None:
    """Texts are as on the cluster; programs get separate field names."""
    document = {**VERSION, "spec": {**VERSION["spec"], **spec}, "status": {**VERSION["status"], **status}}
    _write(tmp_path / "cv.json", document)
    ran = run("upgrade", "--dump", tmp_path / "cv.json")
    assert (ran.code, ran.err) == (0, "")
    assert ("Preflight of" in ran.out, said in ran.out) == (bool(said), True)
    shown = json.loads(run("upgrade", "--dump", tmp_path / "cv.json", "-o", "json").out)
    assert (shown.get("preflight") or {}).get("target") == ("5.2.0" if said else None)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        pytest.param(None, True, id="nothing is asked for any more"),
        pytest.param({"version": "5.0.1", "image": "b@sha256:2"}, False, id="it is asked for"),
        pytest.param({"version": "5.2.0", "mode": "Preflight"}, True, id="a preflight is"),
    ],
)
def test_an_update_that_the_spec_does_not_show(
    run: Run, tmp_path: Path, asked: dict[str, str] | None, shown: bool
) -> None:
    """It continues, and that is said where nobody would think so."""
    desired = {"version": "5.0.1", "image": "b@sha256:2"}
    history = [
        {**desired, "state": "Partial", "startedTime": SINCE},
        {"version": "5.0.0", "image": "a@sha256:1", "state": "Completed", "startedTime": SINCE},
    ]
    spec = VERSION["spec"] | ({"desiredUpdate": asked} if asked else {})
    status = VERSION["status"] | {"desired": desired, "history": history}
    _write(tmp_path / "cv.json", {**VERSION, "spec": spec, "status": status})
    ran = run("upgrade", "--dump", tmp_path / "cv.json")
    assert (ran.code, "The update to 5.0.1 continues, whatever else is requested" in ran.out) == (0, shown)


def _config_map(name: str, namespace: str, kind: str = "ConfigMap") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def test_the_config_maps_of_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the operator's namespace: in a tree from its folder alone, in other dumps from anywhere."""
    monkeypatch.setenv("CVO_NAMESPACE", "ours")
    tree, flat = tmp_path / "tree", tmp_path / "flat"
    _inspect(tree)
    _write(tree / "namespaces/ours/core/configmaps/b.yaml", _config_map("b", "ours"))
    _write(tree / "namespaces/ours/core/configmaps/other.yaml", _config_map("other", "theirs"))
    _write(tree / "namespaces/ours/core/configmaps.yaml", {"kind": "List", "items": [_config_map("a", "ours")]})
    _write(tree / "namespaces/theirs/core/configmaps/c.yaml", _config_map("c", "ours"))
    _write(flat / "cv.yaml", VERSION)
    _write(flat / "x/a.yaml", _config_map("a", "ours"))
    _write(flat / "x/b.yaml", _config_map("b", "theirs"))
    _write(flat / "x/c.yaml", {**_config_map("c", "ours", "Secret"), "note": "no ConfigMap"})

    def names(path: Path, **wanted: bool) -> list[str]:
        return [each["metadata"]["name"] for each in clusterversion_files.dump(str(path), **wanted).config_maps]

    assert names(tree, config_maps=True) == ["b", "a"]
    assert names(flat, config_maps=True) == ["a"]
    assert names(flat) == names(tree) == []
    assert clusterversion_files.dump(str(flat), alerts=True).alerts is None


ALERTS_READ: dict[str, tuple[str, str]] = {
    "nothing but a word": ("nonsense", "invalid character 'n' looking for beginning of value"),
    "no key": ("{1: 2}", "invalid character '1' looking for beginning of object key string"),
    "no colon": ('{"a" 1}', "invalid character '1' after object key"),
    "no comma": ('{"a": 1 "b": 2}', "invalid character '\"' after object key:value pair"),
    "more than one": ("{} []", "invalid character '[' after top-level value"),
    "a text without an end": ('{"a', "unexpected end of JSON input"),
    "nothing after a colon": ('{"a": ', "unexpected end of JSON input"),
}


@pytest.mark.parametrize("name", ALERTS_READ)
def test_alerts_that_are_no_json(tmp_path: Path, name: str) -> None:
    """In Go's words, as oc has them."""
    body, said = ALERTS_READ[name]
    _flat(tmp_path)
    (tmp_path / "alerts.json").write_text(body)
    read = clusterversion_files.dump(str(tmp_path), alerts=True)
    assert (read.alerts, read.problem) == (None, f"parsing alerts: {said}")


def test_alerts_that_go_too_deep(tmp_path: Path) -> None:
    """The error is a plain sentence, not Python's."""
    _flat(tmp_path)
    (tmp_path / "alerts.json").write_text(200_000 * "[")
    assert clusterversion_files.dump(str(tmp_path), alerts=True).problem.startswith("parsing alerts: ")


def test_a_file_of_alerts_that_is_empty_is_none(tmp_path: Path) -> None:
    """Where they would have been is reported."""
    _case(tmp_path)
    (tmp_path / "x-alerts.json").write_text("")
    read = clusterversion_files.mock(str(tmp_path / "x-cv.yaml"))
    assert (read.alerts, read.problem, read.alerts_path) == (None, "", str(tmp_path / "x-alerts.json"))


def test_odd_values_count_as_absent(run: Run, tmp_path: Path) -> None:
    """A dump is anybody's text."""
    status = {"desired": [], "conditions": ["x", {"type": 1}], "availableUpdates": {}, "conditionalUpdates": [None]}
    _write(tmp_path / "cv.yaml", {**VERSION, "spec": "x", "status": status})
    ran = run("upgrade", "--dump", tmp_path)
    assert ran.code == 0
    assert "No updates available." in ran.out
    assert run("upgrade", "recommend", "--dump", tmp_path).code == 0


def test_what_reading_files_imports(tmp_path: Path) -> None:
    """Neither wire types nor client nor tables: over files these commands are quick."""
    _inspect(tmp_path)
    for words in (["upgrade"], ["upgrade", "recommend"], ["upgrade", "channel"]):
        typed = [*words, "--dump", str(tmp_path)]
        code = f"import sys; from runup.cli.main import main; main({typed!r}); print(*sys.modules, file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        heavy = {"rich", "asyncio", "aiohttp", "ssl", "httpx", "kubekit.api.codec", "kubekit.kube.calls"}
        assert not heavy.intersection(done.stderr.split()), words


@pytest.mark.parametrize("status", [{"history": [None]}, {"history": 1}, {"desired": []}], ids=str)
@pytest.mark.parametrize(
    "command", ["preflight run --to 5.1.0 --dump", "upgrade status --dump", "sandbox start --data {data} --import"]
)
def test_a_field_of_a_wrong_type_is_named_with_its_file(
    command: str, status: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    """Whichever command reads the dump, the error names the file and the field."""
    _write(tmp_path / "d" / "cv.yaml", VERSION | {"status": VERSION["status"] | status})
    ran = run(*command.format(data=tmp_path / "s").split(), str(tmp_path / "d"))
    assert ran.code == 1
    assert ran.err.startswith("error: d/cv.yaml: not a ClusterVersion: Expected `")
    assert f"$.status.{next(iter(status))}" in ran.err
