"""The parts next to the loop: what the client refuses, what a release says about itself, how a file is replaced."""

from __future__ import annotations

import importlib.metadata
import io
from pathlib import Path

import pytest
from tests.factories import context, snapshot

from kubekit.error_types import Terminal
from kubekit.kube.request import Request
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.nodes import node_health
from runup.checks.decide.engine import run_check
from runup.facts.target_release import load_release, python_checks
from runup.process.read_only_client import WriteRefused, refuse_writes
from runup.target.report_sinks import FileSink, StreamSink

NAMESPACE = "openshift-cluster-version-operator"
INSIDE = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/v1/nodes", True),
        ("GET", "/apis/config.openshift.io/v1/clusterversions/version", True),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/x/log", True),
        ("POST", INSIDE, True),
        ("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/x", True),
        ("POST", "/api/v1/namespaces/other/pods", False),
        ("PATCH", "/apis/config.openshift.io/v1/clusterversions/version/status", False),
        ("DELETE", f"/api/v1/namespaces/{NAMESPACE}", False),
        ("PUT", f"/api/v1/namespaces/{NAMESPACE}-2/pods/x", False),
        ("POST", f"/apis/x/v1/things/namespaces/{NAMESPACE}/y", False),
        ("GET", "/api/v1/namespaces/shop/pods/x/exec", False),
        ("GET", "/api/v1/namespaces/shop/services/x/proxy/admin", False),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", False),
        ("GET", "/api/v1/namespaces/shop/services/x/proxy", False),
        ("GET", "/api/v1/namespaces/proxy/pods/x", True),
        ("HEAD", "/api/v1/nodes", False),
        ("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", True),
        ("POST", f"/apis/namespaces/{NAMESPACE}/pods", False),
        ("POST", f"/api/namespaces/{NAMESPACE}/pods", False),
        ("POST", f"{INSIDE}/", True),
    ],
)
def test_only_reads_leave_the_namespace(method: str, path: str, allowed: bool) -> None:
    """Every verb but get, list and watch is refused before it is sent, except in the process's own namespace."""
    if allowed:
        refuse_writes(Request(method=method, path=path), NAMESPACE)
    else:
        with pytest.raises(WriteRefused, match=method):
            refuse_writes(Request(method=method, path=path), NAMESPACE)


def test_whoever_has_no_namespace_writes_nothing() -> None:
    """An empty name is nobody's own."""
    with pytest.raises(WriteRefused, match="a preflight only reads: refused POST"):
        refuse_writes(Request(method="POST", path="/api/v1/namespaces//pods"), "")


METADATA = '{"kind": "cincinnati-metadata-v0", "version": "5.2.0"%s}'


@pytest.mark.parametrize(
    ("metadata", "references", "expected"),
    [
        (METADATA % ', "metadata": {"io.openshift.build.versions": "kubernetes=1.38.1"}', None, "1.38.1"),
        (METADATA % "", None, ""),
        (
            METADATA % "",
            "kind: ImageStream\nspec:\n  tags:\n  - name: hyperkube\n    annotations:\n"
            "      io.openshift.build.versions: machine-os=9.8,kubernetes=1.38.2\n",
            "1.38.2",
        ),
        (
            METADATA % "",
            "kind: ImageStream\nmetadata: {annotations: {io.openshift.build.versions: kubernetes=1.38.3}}\nspec: 1\n",
            "1.38.3",
        ),
        (
            METADATA % ', "metadata": {"io.openshift.build.versions": "other=1"}',
            "spec:\n  tags:\n  - 1\n  - {annotations: 1}\n  - annotations: {io.openshift.build.versions: 7}\n"
            "  - annotations: {io.openshift.build.versions: 'a=1, kubernetes=v1.38.4'}\n",
            "1.38.4",
        ),
        (METADATA % "", "spec: {tags: 1}\n", ""),
        (METADATA % "", "- not an object\n", ""),
        (METADATA % "", "[", ""),
    ],
    ids=[
        "in the metadata",
        "nowhere",
        "at an image",
        "at the references themselves",
        "among what says something else",
        "tags that are none",
        "references that are none",
        "references that are no YAML",
    ],
)
def test_the_kubernetes_of_a_release(tmp_path: Path, metadata: str, references: str | None, expected: str) -> None:
    """What a release does not say is empty, which the check that needs it calls Unknown."""
    folder = tmp_path / "release-manifests"
    folder.mkdir()
    (folder / "release-metadata").write_text(metadata)
    if references is not None:
        (folder / "image-references").write_text(references)
    release = load_release(tmp_path)
    assert (release.version, release.kubernetes) == ("5.2.0", expected)


def test_where_the_release_has_its_documentation(tmp_path: Path) -> None:
    """Its metadata says so, and its risks lead there."""
    (tmp_path / "release-manifests").mkdir()
    metadata = METADATA % ', "metadata": {"docs.runup.dev/base": "https://docs.example/5.2"}'
    (tmp_path / "release-manifests" / "release-metadata").write_text(metadata)
    assert load_release(tmp_path).documentation_base == "https://docs.example/5.2"


def test_a_release_without_metadata_or_checks(tmp_path: Path) -> None:
    """An image without these folders is an image whose built-in checks run."""
    release = load_release(tmp_path)
    assert (release.version, release.kubernetes, release.check_files) == ("", "", {})


def test_broken_metadata_is_refused(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "release-manifests").mkdir()
    (tmp_path / "release-manifests" / "release-metadata").write_text("{}")
    with pytest.raises(Terminal, match=r"release-metadata cannot be used: release-metadata: unrecognized kind"):
        load_release(tmp_path)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"release-manifests/README": b"x"}, None, id="what is none"),
        pytest.param({"release-manifests/a.yaml": b"kind: [CatalogSource"}, None, id="one that cannot be read"),
        pytest.param(
            {
                "release-manifests/a.yaml": b"apiVersion: v1\nkind: CatalogSource\nmetadata: {name: a, x: '{{b}}'}\n",
                "manifests/b.json": b'{"apiVersion": "v1", "kind": "CatalogSource", "metadata": {"name": "b"}}',
                "manifests/c.yml": b"apiVersion: v1\nkind: CatalogSource\nmetadata: {name: '{{.Name}}'}\n",
            },
            ["b", "a"],
            id="the operator's own but for templates, and the release's",
        ),
    ],
)
def test_what_checks_judge_a_release_by(tmp_path: Path, files: dict[str, bytes], names: list[str] | None) -> None:
    """Its manifests; none at all is not the same as not knowing them."""
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = load_release(tmp_path).manifests
    assert (None if found is None else [each.identity.name for each in found]) == names


def test_checks_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """A file in the place of their folder: what checks there are is not known."""
    (tmp_path / "preflight-checks").write_text("x")
    with pytest.raises(Terminal, match=r"preflight-checks cannot be read: Not a directory") as caught:
        load_release(tmp_path)
    assert caught.value.reason == "ReleaseInvalid"


def test_what_a_release_calls_its_images(tmp_path: Path) -> None:
    """As its references say, none where they cannot be read."""
    folder = tmp_path / "release-manifests"
    folder.mkdir()
    (folder / "release-metadata").write_text(METADATA % "")
    assert load_release(tmp_path).images == {}
    tags = '[{"name": "tool", "from": {"kind": "DockerImage", "name": "r/t@sha256:1"}}]'
    kind = '"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "5.2.0"}'
    (folder / "image-references").write_text(f'{{{kind}, "spec": {{"tags": {tags}}}}}')
    assert load_release(tmp_path).images == {"tool": "r/t@sha256:1"}
    (folder / "image-references").write_text("{}")
    assert load_release(tmp_path).images == {}


def test_only_yaml_and_json_are_checks(tmp_path: Path) -> None:
    """A README next to the checks is no check."""
    folder = tmp_path / "preflight-checks"
    folder.mkdir()
    for name in ("b.yaml", "a.yml", "c.json", "README.md"):
        (folder / name).write_text("{}")
    assert list(load_release(tmp_path).check_files) == [
        "preflight-checks/a.yml",
        "preflight-checks/b.yaml",
        "preflight-checks/c.json",
    ]


MODULE = "runup.checks.catalogue"


@pytest.mark.parametrize(
    ("value", "names", "why"),
    [
        (f"{MODULE}.nodes.node_health:CHECK", ["NodeHealth"], ""),
        (f"{MODULE}:CHECKS", [check.name for check in CHECKS], ""),
        ("no.such.module:x", ["mine"], "no.such.module:x cannot be loaded: ModuleNotFoundError"),
        (f"{MODULE}.nodes.node_health:NOT_READY", ["mine"], "offers a str, not a Check"),
    ],
    ids=["a check", "several", "a module that is not there", "something else"],
)
def test_checks_by_entry_point(value: str, names: list[str], why: str) -> None:
    """A package that cannot be used becomes a check that says so, and does not stop the others."""
    point = importlib.metadata.EntryPoint("mine", value, "runup.preflight_checks")
    checks = python_checks([point])
    assert names == [check.name for check in checks]
    if why:
        outcome = run_check(checks[0], snapshot(), context())
        assert outcome.result == "Unknown"
        assert why in outcome.message
        assert outcome.findings[0].name == "PreflightCheckUnusable-mine"


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """Folders are made, the file is new each time, and nothing else stays in the folder."""
    path = tmp_path / "a" / "b" / "report.json"
    sink = FileSink(path)
    sink.write(b"one")
    inode = path.stat().st_ino
    with path.open("rb") as reader:
        sink.write(b"two")
        assert reader.read() == b"one"
    assert path.read_bytes() == b"two"
    assert path.stat().st_ino != inode
    assert [found.name for found in path.parent.iterdir()] == ["report.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """The error is the caller's, the old report the reader's."""
    path = tmp_path / "report.json"
    FileSink(path).write(b"good")
    (tmp_path / ".report.json.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        FileSink(path).write(b"x" * 100_000)
    assert path.read_bytes() == b"good"
    assert [found.name for found in tmp_path.iterdir()] == ["report.json"]


def test_the_built_in_checks_are_found_by_their_entry_point_group() -> None:
    """Without packages that bring checks there are none: the built-in ones are not found twice."""
    assert node_health.CHECK.name not in [check.name for check in python_checks()]


def test_a_stream_gets_every_report_at_once() -> None:
    """Whoever reads a pipe waits for no buffer to be full."""
    raw = io.BytesIO()
    sink = StreamSink(io.BufferedWriter(raw))  # type: ignore[arg-type]
    for number in (b"1\n", b"2\n"):
        sink.write(number)
    assert raw.getvalue() == b"1\n2\n"
