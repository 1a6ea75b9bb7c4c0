"""`cluster-version-operator render`, `image`, and words that it does not know: what is written, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.commands import Ran
from tests.cli.release.typed import config_map, release

from kubekit.lang import yaml
from runup.cli.operator.main import main

IMAGE = "registry.example/release@sha256:" + "5" * 64
Operator = Callable[..., Ran]


@pytest.fixture
def operator(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Operator:
    """A command of the operator of a release that has one image, `tool`, and manifests of its own."""
    root = release(tmp_path / "release", images={"tool": "registry.example/tool@sha256:1"})
    (root / "manifests").mkdir()
    own = config_map("of-{{.ClusterProfile}}", annotations={"include.release.openshift.io/single-node": "true"})
    (root / "manifests" / "0000_00_own.yaml").write_text(json.dumps(own))
    unmanaged = config_map("gated", annotations={"release.openshift.io/feature-gate": "New"})
    (root / "manifests" / "0000_01_gated.yaml").write_text(json.dumps(unmanaged))
    monkeypatch.setenv("PAYLOAD_OVERRIDE", str(root))
    monkeypatch.delenv("CLUSTER_PROFILE", raising=False)

    def go(*words: str | Path) -> Ran:
        capfd.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capfd.readouterr())

    return go


def names(folder: Path) -> list[str]:
    """Of the objects that were written below `folder`, by file."""
    return [yaml.load(path.read_bytes())["metadata"]["name"] for path in sorted((folder / "manifests").iterdir())]


def test_what_a_new_cluster_starts_with(operator: Operator, tmp_path: Path) -> None:
    """How many files, and where; of the profile that most clusters have."""
    ran = operator("render", "--output-dir", tmp_path / "out", "--release-image", IMAGE)
    assert (ran.code, ran.out, ran.err) == (0, f"1 file in {tmp_path / 'out'}\n", "")
    assert names(tmp_path / "out") == ["of-self-managed-high-availability"]
    assert (tmp_path / "out" / "bootstrap").is_dir()
    # Over what is there: an installer may ask twice.
    assert operator("render", "--output-dir", tmp_path / "out", "--release-image", IMAGE).code == 0


def test_the_profile_is_the_environments(operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the operator's Deployment has it."""
    monkeypatch.setenv("CLUSTER_PROFILE", "single-node")
    assert operator("render", "--output-dir", tmp_path / "out", "--release-image", IMAGE).code == 0
    assert names(tmp_path / "out") == ["of-single-node"]


def test_gates_and_overrides_are_those_of_the_cluster_to_be(operator: Operator, tmp_path: Path) -> None:
    """What a gate lets in is there, what is unmanaged is not."""
    gate = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": {"name": "cluster"},
        "spec": {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": ["New"]}},
        "status": {"featureGates": [{"version": "5.2.0", "enabled": [{"name": "New"}], "disabled": []}]},
    }
    entry = {"kind": "ConfigMap", "group": "", "namespace": "default", "name": "of-self-managed-high-availability"}
    version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "x", "overrides": [{**entry, "unmanaged": True}]},
    }
    flags: list[str | Path] = []
    for flag, obj in (("feature-gate", gate), ("cluster-version", version)):
        file = tmp_path / f"{flag}.yaml"
        file.write_text(json.dumps(obj))
        flags += [f"--{flag}-manifest-path", file]
    ran = operator("render", "--output-dir", tmp_path / "out", "--release-image", IMAGE, *flags)
    assert ran.code == 0, ran.err
    assert names(tmp_path / "out") == ["gated"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ("render", "--output-dir", "OUT", "--release-image", IMAGE, "--cluster-version-manifest-path", "/nowhere"),
            "error: --cluster-version-manifest-path: /nowhere cannot be read: No such file or directory\n",
            id="a ClusterVersion that is not there",
        ),
        pytest.param(
            ("render", "--output-dir", "OUT", "--release-image", IMAGE, "--feature-gate-manifest-path", "/nowhere"),
            "error: --feature-gate-manifest-path: /nowhere cannot be read: No such file or directory\n",
            id="a FeatureGate that is not there",
        ),
        pytest.param(
            ("render", "--output-dir", "/dev/null", "--release-image", IMAGE),
            "error: --output-dir: /dev/null/manifests cannot be written: Not a directory\n",
            id="a folder that is a file",
        ),
        pytest.param(("image", "nope"), "error: this release has no image nope; it has tool\n", id="another image"),
        pytest.param(
            ("upgrade",), 'error: unknown command "upgrade" for "cluster-version-operator"\n', id="another's command"
        ),
    ],
)
def test_what_is_refused(operator: Operator, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One line; nothing is written."""
    ran = operator(*(word.replace("OUT", str(tmp_path / "out")) for word in words))
    assert (ran.code, ran.out, ran.err) == (1, "", said)
    assert not (tmp_path / "out").exists()


def test_the_image_of_a_component(operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pull spec; references that cannot be read are reported with their file."""
    assert operator("image", "tool").out == "registry.example/tool@sha256:1\n"
    references = tmp_path / "release" / "release-manifests" / "image-references"
    references.write_text("{")
    ran = operator("image", "tool")
    assert ran.code == 1
    assert ran.err.startswith(f"error: {references}: ")
    references.unlink()
    assert operator("image", "tool").err == (
        f"error: image-references: {references} cannot be read: No such file or directory\n"
    )


def test_no_word_at_all_is_the_help(operator: Operator) -> None:
    """Which names every command."""
    ran = operator("--help")
    assert ran.code == 0
    assert "render" in ran.out
    assert "Write what a new cluster starts with." in ran.out


DEFAULTS = {
    "start": {
        "--release-source": "pod",
        "--payload-dir": "/etc/cvo/updatepayloads",
        "--report-dir": "/etc/cvo/preflight",
        "--report-sink": "volume",
        "--preflight-timeout": "600.0",
        "--preflight-service-account": "operator",
        "--preflight-cpu-request": "10m",
        "--preflight-memory-request": "40Mi",
        "--preflight-cpu-limit": "900m",
        "--preflight-memory-limit": "512Mi",
        "--namespace": "openshift-cluster-version-operator",
        "--service-account": "cluster-version-operator",
        "--listen": "127.0.0.1:9099",
        "--metrics-auth": "token",
        "--no-leader-elect": "leader-elect",
    },
    "preflight": {"--check-timeout": "10.0"},
}


@pytest.mark.parametrize("command", DEFAULTS)
def test_what_holds_where_a_flag_is_left_out(operator: Operator, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help says so: manifests that leave a flag out mean just that."""
    monkeypatch.setenv("COLUMNS", "200")
    words = " ".join(operator(command, "--help").out.split())
    shown = dict(re.findall(r"(--[a-z-]+)(?: (?!--[a-z])\S+)*? \[default: ([^\]]+)\]", words))
    assert {flag: shown.get(flag) for flag in DEFAULTS[command]} == DEFAULTS[command]
