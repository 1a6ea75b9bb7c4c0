"""`python -m kubesandbox`: what it serves when it says that it is ready, how it ends, and what it says of bad input."""

from __future__ import annotations

import fcntl
import importlib
import importlib.metadata
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.servers import eventually

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import load
from kubesandbox.__main__ import remove_folders_of_killed

COMMAND = (sys.executable, "-m", "kubesandbox")
SHIPS = Resource(group="example.com", version="v1", kind="Ship", plural="ships", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
LEASES = Resource(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
SHIP: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ships.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Ship", "listKind": "ShipList", "plural": "ships", "singular": "ship"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
        },
    },
}

pytestmark = [pytest.mark.slow]


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The command's process and the kubeconfig that it printed."""
    process = subprocess.Popen([*COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert re.match(r"Kubernetes API server at https://127.0.0.1:\d+; Ctrl-C ends it\n", process.stdout.readline())
        (kubeconfig,) = shlex.split(process.stdout.readline().removeprefix("export KUBECONFIG="))
        yield process, Path(kubeconfig)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def client_of(kubeconfig: Path) -> SyncClient:
    """A client of the administrator."""
    return SyncClient(load(str(kubeconfig)))


def deleted(client: SyncClient, resource: Resource, name: str) -> bool:
    """Whether the object is gone."""
    try:
        client.send(calls.get_raw(resource, name))
    except NotFound:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["on Ctrl-C", "on SIGTERM"])
def test_it_ends_and_removes_its_temporary_folder(number: signal.Signals) -> None:
    """With exit code 0."""
    with started() as (process, kubeconfig):
        assert kubeconfig.is_file()
        process.send_signal(number)
        assert process.wait(90) == 0
        assert not kubeconfig.parent.exists()


def is_open(url: str) -> bool:
    """Whether a server listens at the port of a URL."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


def test_a_killed_process_group_leaves_no_process_port_or_folder(tmp_path: Path) -> None:
    """SIGKILL to the whole group, as a CI runner sends it."""
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    command = [*COMMAND, "--node"]
    with subprocess.Popen(command, env=environ, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[4].rstrip(";")
        process.stdout.readline()
        assert is_open(url)
        assert [path.name[:12] for path in tmp_path.iterdir()] == ["kubesandbox-"]
        os.killpg(process.pid, signal.SIGKILL)
    eventually(lambda: not list(tmp_path.iterdir()), "the end of the folder")
    assert not is_open(url)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert str(tmp_path) not in subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True).stdout


_PROGRAM = """
import sys, time
from kubesandbox.testing import kube_api

with kube_api(sys.argv[1]) as api:
    print(api.server, flush=True)
    time.sleep(600)
"""


def test_a_killed_parent_leaves_no_process_or_port(tmp_path: Path) -> None:
    """SIGKILL to the program that started a server alone."""
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        assert is_open(url)
        program.kill()
    eventually(lambda: not is_open(url), "the end of the port")

    def runs() -> bool:
        listed = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True).stdout
        return str(tmp_path) in listed

    eventually(lambda: not runs(), "the end of the process")


def test_it_ends_with_its_standard_input_where_that_is_asked_for() -> None:
    """A program that is killed leaves no server behind."""
    with started("--stop-with-stdin") as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert process.wait(90) == 0


def test_what_is_in_a_given_folder_is_kept(tmp_path: Path) -> None:
    """For the next start."""
    data = tmp_path / "with a blank"
    with started("--data", str(data)) as (_, kubeconfig), client_of(kubeconfig) as client:
        assert kubeconfig == data / "admin.kubeconfig"
        client.send(calls.create(NAMESPACES, {"metadata": {"name": "kept"}}))
    with started("--data", str(data)) as (_, kubeconfig), client_of(kubeconfig) as client:
        assert client.send(calls.get_raw(NAMESPACES, "kept"))["metadata"]["name"] == "kept"


def test_definitions_are_served_when_it_is_ready(tmp_path: Path) -> None:
    """Those of folders below as well, in YAML and JSON; what else lies there is ignored."""
    other = json.loads(json.dumps(SHIP).replace("hip", "heep"))
    (tmp_path / "bases" / "more").mkdir(parents=True)
    (tmp_path / "bases" / "ships.json").write_text(json.dumps(SHIP))
    (tmp_path / "bases" / "more" / "sheep.yaml").write_text(f"---\n# nothing\n---\n{json.dumps(other)}\n")
    (tmp_path / "bases" / "kustomization.yaml").write_text("resources: [ships.json]\n")
    with started("--crds", str(tmp_path)) as (_, kubeconfig), client_of(kubeconfig) as client:
        assert client.send(calls.list_raw(SHIPS)).items == ()
        listed = json.loads(client.send(calls.get_path("/apis/example.com/v1")))
        assert sorted(entry["name"] for entry in listed["resources"]) == ["sheeps", "ships"]


def test_with_a_node_a_deployment_becomes_available() -> None:
    """By declaration: nothing is run."""
    with started("--node") as (_, kubeconfig), client_of(kubeconfig) as client:
        client.send(calls.create(DEPLOYMENTS, DEPLOYMENT))
        get = calls.get_raw(DEPLOYMENTS, "web", "default")
        eventually(lambda: client.send(get).get("status", {}).get("availableReplicas") == 2, "both pods are available")


def test_the_node_reports_itself_and_completes_jobs() -> None:
    """As a kubelet does: facts of the machine, a Lease, and pods that end."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "a.b/c"}]}}
    with started("--node") as (_, kubeconfig), client_of(kubeconfig) as client:
        client.send(
            calls.create(JOBS, {"metadata": {"name": "once", "namespace": "default"}, "spec": {"template": template}})
        )
        get = calls.get_raw(JOBS, "once", "default")
        eventually(lambda: client.send(get).get("status", {}).get("succeeded") == 1, "the Job completes")
        (node,) = client.send(calls.list_raw(NODES)).items
        assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
        lease = client.send(calls.get_raw(LEASES, node["metadata"]["name"], "kube-node-lease"))
        assert lease["spec"]["holderIdentity"] == node["metadata"]["name"]


def test_without_controllers_nothing_follows_from_an_object() -> None:
    """As with envtest: a deleted namespace stays, for nobody empties it."""
    with started("--no-controllers") as (_, kubeconfig), client_of(kubeconfig) as client:
        client.send(calls.create(NAMESPACES, {"metadata": {"name": "stays"}}))
        client.send(calls.delete(NAMESPACES, "stays"))
        assert client.send(calls.get_raw(NAMESPACES, "stays"))["status"]["phase"] == "Terminating"
        audit = [json.loads(line) for line in (kubeconfig.parent / "audit.log").read_text().splitlines()]
        assert {event["user"]["username"] for event in audit} == {"kubernetes-admin"}


def test_a_namespace_takes_objects_of_a_kind_that_came_later_with_it() -> None:
    """The controllers learn of new kinds, too."""
    with started() as (_, kubeconfig), client_of(kubeconfig) as client:
        definitions = Resource(
            group="apiextensions.k8s.io",
            version="v1",
            kind=SHIP["kind"],
            plural="customresourcedefinitions",
            namespaced=False,
        )
        argo = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "argo", "namespace": "sea"}}
        client.send(calls.create(NAMESPACES, {"metadata": {"name": "sea"}}))
        client.send(calls.create(definitions, SHIP))
        # The controllers' own list of the kind is the sign that they know it.
        log = kubeconfig.parent / "audit.log"
        eventually(
            lambda: any("/apis/example.com/v1/ships?" in line and "watch" in line for line in log.open()),
            "the controllers follow the new kind",
        )
        client.send(calls.create(SHIPS, argo))
        client.send(calls.delete(NAMESPACES, "sea"))
        eventually(lambda: deleted(client, NAMESPACES, "sea"), "the namespace is gone")
        assert client.send(calls.list_raw(SHIPS)).items == ()


INVALID = {**SHIP, "metadata": {"name": "boats.example.com"}}
TAKEN = json.loads(json.dumps(SHIP).replace("hips", "hipz").replace("shipz", "ships", 0))


@pytest.mark.parametrize(
    ("files", "words", "said"),
    [
        pytest.param(
            {}, ("--crds", "{}/none"), "{}/none: there is no such file or folder", id="a folder that is not there"
        ),
        pytest.param(
            {"a.yaml": "a: [\n"}, ("--crds", "{}"), "{}/a.yaml, line 2, column 1: ", id="a file that is not YAML"
        ),
        pytest.param(
            {"a.yaml": "{{ if .Values.crds }}\n{{ end }}\n"}, ("--crds", "{}"), "{}/a.yaml, line 1", id="a template"
        ),
        pytest.param({"a.yaml": "- a\n"}, ("--crds", "{}"), "a document is not an object but list", id="a list"),
        pytest.param(
            {"a.yaml": "a: 1\n"}, ("--crds", "{}"), "{}: there is no CustomResourceDefinition in it", id="none"
        ),
        pytest.param(
            {"a.json": json.dumps(INVALID)},
            ("--crds", "{}"),
            "{}/a.json: CustomResourceDefinition boats.example.com: CustomResourceDefinition.apiextensions.k8s.io "
            '"boats.example.com" is invalid: metadata.name',
            id="a definition that the server refuses",
        ),
        pytest.param(
            {"a.json": json.dumps(SHIP), "b.json": json.dumps(TAKEN)},
            ("--crds", "{}"),
            '{}/b.json: CustomResourceDefinition shipz.example.com: "Ship" is already in use',
            id="a definition whose names are taken",
        ),
        pytest.param({"file": ""}, ("--data", "{}/file"), "{}/file: ", id="a data folder that is a file"),
        pytest.param(
            {"file": ""},
            ("--data", "{}/a", "--audit", "{}/file/x"),
            "{}/file: File exists; give another place with --audit",
            id="an audit log below a file",
        ),
        pytest.param({}, ("--node", "--no-controllers"), "leave out --no-controllers", id="a node without controllers"),
    ],
)
def test_bad_input_is_named(files: dict[str, str], words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """In one line, with exit code 1."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [*COMMAND, *(word.replace("{}", str(tmp_path)) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert said.replace("{}", str(tmp_path)) in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_named() -> None:
    """And the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == f"error: port {port} is in use; give another with --port, or end what uses it\n"


@pytest.mark.parametrize(
    "port", ["65536", "-1", "http", "８"], ids=["too large", "negative", "a word", "another digit"]
)
def test_a_port_is_a_number_that_a_port_can_have(port: str) -> None:
    """The operating system would take the rest of a division."""
    done = subprocess.run([*COMMAND, f"--port={port}"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "is not a port; give a number from 0 (any free port) to 65535" in done.stderr


def test_a_folder_that_another_server_uses_is_named(tmp_path: Path) -> None:
    """Two servers on one store would lose writes."""
    with started("--data", str(tmp_path)):
        done = subprocess.run(
            [*COMMAND, "--data", str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 1
    assert "is in use by another process; give another folder with --data" in done.stderr


def test_the_folder_of_a_killed_server_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """The folder of a server that runs is kept."""
    for name, is_held in (("kubesandbox-killed", False), ("kubesandbox-running", True), ("other-killed", False)):
        (tmp_path / name / "pki").mkdir(parents=True)
        lock = (tmp_path / name / "store.lock").open("w")
        if is_held:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held = lock
        else:
            lock.close()
    remove_folders_of_killed(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kubesandbox-running", "other-killed"]
    held.close()


@pytest.mark.slow
def test_ends_at_once_without_an_input() -> None:
    """A standard input that is /dev/null, as of a job of CI, has ended when the server is ready."""
    ran = subprocess.run([*COMMAND, "--no-controllers", "--stop-with-stdin"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False, timeout=240)  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not Path(ran.stdout.splitlines()[1].removeprefix("export KUBECONFIG=")).exists()


def test_has_a_program_of_its_name() -> None:
    """As `uvx kubesandbox` and `pipx run kubesandbox` start it."""
    package = tomllib.loads((Path(__file__).parents[2] / "packages/kubesandbox/pyproject.toml").read_text())
    module, _, name = package["project"]["scripts"]["kubesandbox"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("help",), "usage: python -m kubesandbox "),
        (("--help",), "usage: python -m kubesandbox "),
        (("--version",), f"kubesandbox {importlib.metadata.version('kubesandbox')}\n"),
    ],
)
def test_prints_help_and_version(words: tuple[str, ...], printed: str) -> None:
    """The word `help` prints the same as `--help`, as in runup; no server is started."""
    ran = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(printed)
