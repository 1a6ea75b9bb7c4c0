"""`runup rehearse --server real`: the copy on a real kube-apiserver, what it says, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run
from tests.cli.rehearse.test_rehearse_command import BROKEN, DUMP, RELEASE, ROOT
from tests.controlplane.rows import programs
from tests.servers import eventually

from kubesandbox.apiserver.objects.strategies import registry_key
from kubesandbox.apiserver.served_kinds import Kind
from runup.rehearse.control.real_server import service_range

pytestmark = pytest.mark.usefixtures("at_the_root")
PLAIN = "examples/plain-kubernetes"


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Type from the root of the checkout."""
    monkeypatch.chdir(ROOT)


def on_a_real_server(test: Any) -> Any:
    """Marks a test that starts kube-apiserver and etcd."""
    return pytest.mark.e2e(pytest.mark.slow(pytest.mark.timeout(900)(test)))


def script(folder: Path, name: str, text: str) -> None:
    """A program that does what `text` says."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"{text}\n" if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


WRONG = {
    "no programs": ({}, "there is no kube-apiserver and no etcd in {bin}; name the folder that has them by --server-"),
    "one program": ({"etcd": "true"}, "there is no kube-apiserver in {bin}"),
    "a program that says nothing": (
        {"etcd": "true", "kube-apiserver": "true"},
        "{bin}/kube-apiserver --version does not say which version of Kubernetes it is",
    ),
    "a program that is none": (
        {"etcd": "true", "kube-apiserver": "#!/nowhere/at/all"},
        "{bin}/kube-apiserver does not run: [Errno 2] No such file or directory",
    ),
    "programs that end at once": (
        {"etcd": "echo no luck >&2; exit 3", "kube-apiserver": "echo Kubernetes v1.34.4"},
        "the real API server did not start: it ended with 3: no luck",
    ),
}


@pytest.mark.parametrize(("given", "shown"), WRONG.values(), ids=WRONG)
def test_errors_name_the_way_out(given: dict[str, str], shown: str, run: Run, tmp_path: Path) -> None:
    """Missing or broken programs are named, and no folder remains."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in given.items():
        script(folder, name, text)
    words = ("--release-dir", RELEASE, "--server", "real", "--server-binaries", str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(scratch))
        ran = run("rehearse", "--dump", DUMP, *words)
    assert (ran.code, shown.format(bin=folder) in ran.err) == (1, True), ran.err
    assert list(scratch.iterdir()) == []


def test_programs_without_the_server(run: Run) -> None:
    """The programs are those of `--server real`, and of nothing else."""
    ran = run("rehearse", "--dump", DUMP, "--release-dir", RELEASE, "--server-binaries", "x")
    assert (ran.code, "--server-binaries names the programs of --server real" in ran.err) == (1, True), ran.err


KEYS = {
    "a pod": (Kind(group="", version="v1", kind="Pod", plural="pods"), "/registry/pods/a/b"),
    "a node": (Kind(group="", version="v1", kind="Node", plural="nodes", namespaced=False), "/registry/minions/a/b"),
    "a service": (Kind(group="", version="v1", kind="Service", plural="services"), "/registry/services/specs/a/b"),
    "endpoints": (
        Kind(group="", version="v1", kind="Endpoints", plural="endpoints"),
        "/registry/services/endpoints/a/b",
    ),
    "an API service": (
        Kind(group="apiregistration.k8s.io", version="v1", kind="APIService", plural="apiservices", namespaced=False),
        "/registry/apiregistration.k8s.io/apiservices/a/b",
    ),
    "an ingress": (
        Kind(group="networking.k8s.io", version="v1", kind="Ingress", plural="ingresses"),
        "/registry/ingress/a/b",
    ),
    "a controller": (
        Kind(group="", version="v1", kind="ReplicationController", plural="replicationcontrollers"),
        "/registry/controllers/a/b",
    ),
    "a definition": (
        Kind(
            group="apiextensions.k8s.io",
            version="v1",
            kind="CustomResourceDefinition",
            plural="customresourcedefinitions",
        ),
        "/registry/apiextensions.k8s.io/customresourcedefinitions/a/b",
    ),
    "a custom resource": (
        Kind(group="example.org", version="v1", kind="Node", plural="nodes", crd={"spec": {}}),
        "/registry/example.org/nodes/a/b",
    ),
}


@pytest.mark.parametrize(("kind", "expected"), KEYS.values(), ids=KEYS)
def test_keys_in_etcd(kind: Kind, expected: str) -> None:
    """An object is stored where kube-apiserver looks for it."""
    assert registry_key(kind, "a/b") == expected


RANGES = {"172.30.0.1": "172.30.0.0/16", "fd00:1::1": "fd00:1::/112", "": "10.0.0.0/16", "None": "10.0.0.0/16"}


@pytest.mark.parametrize(("address", "expected"), RANGES.items())
def test_the_range_of_services(address: str, expected: str) -> None:
    """It is around the cluster's own first Service."""
    assert service_range(iter([address])) == expected


def processes_in(folder: Path) -> list[str]:
    """The processes that name the folder in their command line, by program."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(os.fsencode(folder) in word for word in words) and Path(os.fsdecode(words[0])).name in {
                "etcd",
                "kube-apiserver",
            }:
                found.append(Path(os.fsdecode(words[0])).name)
    return sorted(found)


def rehearsed(scratch: Path, *words: str) -> Any:
    """What the command says as JSON, in a process with its own folder of temporary files, of which nothing is left."""
    scratch.mkdir()
    given = ("--server", "real", "--server-binaries", str(programs()), "-o", "json")
    ran = subprocess.run(
        [sys.executable, "-m", "runup", "rehearse", *words, *given],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode in (2, 3), ran.stderr
    assert (processes_in(scratch), list(scratch.iterdir())) == ([], [])
    return json.loads(ran.stdout)


@on_a_real_server
def test_a_release_on_a_real_server(tmp_path: Path) -> None:
    """It finds what runup's own server does, and what is refused of the stored objects."""
    data = rehearsed(tmp_path / "scratch", "--dump", DUMP, "--release-dir", RELEASE)
    # A newer server may have new defaults.
    names = {risk["name"] for risk in data["risks"] if not risk["name"].startswith("RehearsalReadsOtherwise")}
    assert names - BROKEN == {"RehearsalServerDiffers", "RehearsalStoredRefused-ConfigMap"}
    assert names >= BROKEN
    said = data["rehearsal"]["server"]
    (first, *_) = said["refused"]
    assert first["object"].startswith("ConfigMap ")
    assert "an owner is needed" in first["message"]
    assert said["written"] > 20


@on_a_real_server
def test_another_version_on_a_real_server(tmp_path: Path) -> None:
    """The cluster's own objects are written; a server of another version is reported."""
    data = rehearsed(tmp_path / "scratch", "--dump", PLAIN, "--to-kubernetes", "1.99")
    names = {risk["name"] for risk in data["risks"]}
    assert "RehearsalServerDiffers" in names
    assert data["rehearsal"]["server"]["refused"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@on_a_real_server
def test_nothing_runs_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    """Both programs end with the command, however that ends; only SIGKILL leaves the folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("--dump", DUMP, "--release-dir", RELEASE, "--server", "real", "--server-binaries", str(programs()))
    process = subprocess.Popen(
        [sys.executable, "-m", "runup", "rehearse", *words],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: processes_in(scratch) == ["etcd", "kube-apiserver"], "both programs run")
    finally:
        process.send_signal(number)
        process.wait(240)
    eventually(lambda: not processes_in(scratch), "neither runs")
    assert (list(scratch.iterdir()) == []) is (number is not signal.SIGKILL)
