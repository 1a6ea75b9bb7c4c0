"""A sandbox from its first start to its end, as typed: what stays, what goes, what it says about itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys import ending
from tests.journeys.conftest import RUNUP, START_S, Sandbox

from kubekit.api.core_v1 import ConfigMap, Pod
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound

NAMESPACE = "openshift-cluster-version-operator"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder for a sandbox, which is ended whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="runup-test-life-"))
    yield folder / "data"
    ending.end(folder / "data", folder)


def typed(command: str, data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`runup sandbox COMMAND --data DATA WORDS`."""
    line = [*RUNUP, "sandbox", command, "--data", str(data), *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=START_S)


def test_what_is_in_it_stays_until_a_reset(data: Path) -> None:
    """Stop and start keep objects, port and credentials; reset brings the scenario's beginning back."""
    started = typed("start", data, "--scenario", "clean")
    assert started.returncode == 0, started.stderr
    assert "API server ready" in started.stdout
    assert f"export KUBECONFIG={data / 'admin.kubeconfig'}" in started.stdout
    sandbox = Sandbox(data)
    made = {"metadata": {"name": "mine", "namespace": "default"}, "data": {"kept": "yes"}}
    sandbox.client.send(calls.create(resource_of(ConfigMap), made))
    server = json.loads(typed("status", data, "-o", "json").stdout)["settings"]["apiPort"]

    again = typed("start", data)
    assert again.returncode == 1
    assert "runs in" in again.stderr and "`runup sandbox stop` ends it" in again.stderr
    assert "made with another scenario" in _refused_after_stop(data)

    assert typed("start", data).returncode == 0
    assert json.loads(typed("status", data, "-o", "json").stdout)["settings"]["apiPort"] == server
    assert Sandbox(data).client.send(calls.get(ConfigMap, "mine", "default")).data == {"kept": "yes"}

    assert typed("reset", data).returncode == 0
    with pytest.raises(NotFound):
        Sandbox(data).client.send(calls.get(ConfigMap, "mine", "default"))
    assert typed("stop", data).stdout == "stopped\n"
    assert typed("status", data).returncode == 1
    assert _processes_of(data) == []


def _refused_after_stop(data: Path) -> str:
    typed("stop", data)
    return typed("start", data, "--scenario", "skip-level").stderr


def _processes_of(data: Path) -> list[str]:
    """Command lines of processes that still name the folder."""
    lines = (Path(entry, "cmdline") for entry in Path("/proc").glob("[0-9]*"))
    return [text for text in map(_read, lines) if str(data) in text]


def _read(file: Path) -> str:
    try:
        return file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_a_reset_without_its_dump_loses_nothing(data: Path, tmp_path: Path) -> None:
    """Files that cannot be recreated are not removed."""
    sample = Path(__file__).parents[2] / "dump" / "samples" / "inspect"
    dump = tmp_path / "dump"
    shutil.copytree(sample, dump)
    started = typed("start", data, "--import", str(dump))
    assert started.returncode == 0, started.stderr
    assert "Node, PodDisruptionBudget: what depends on them is unknown" in started.stdout
    shutil.rmtree(dump)
    done = typed("reset", data)
    assert done.returncode == 1
    assert "there is no folder" in done.stderr
    assert typed("status", data).returncode == 0


# A real server asks the node's kubelet for logs; the node agent has no port.
@pytest.mark.parametrize("clean", ["sandbox"], indirect=True)
@pytest.mark.xdist_group("clean")
def test_a_pod_s_log_through_the_api_and_the_command(clean: Sandbox) -> None:
    """`kubectl logs` and `runup sandbox logs` show the operator's own words."""
    clean.until(lambda cluster: cluster.status.available_updates, "the operator works")
    pods, _ = clean.client.list_all(Pod, NAMESPACE)
    names = [pod.metadata.name for pod in pods if "-preflight-" not in pod.metadata.name]
    name = next(name for name in names if name.startswith("cluster-version-operator-"))
    by_kubectl = subprocess.run(
        ["kubectl", "logs", "-n", NAMESPACE, name], env=clean.environment(), capture_output=True, text=True, check=False
    )
    assert by_kubectl.returncode == 0, by_kubectl.stderr
    assert "leading" in by_kubectl.stdout
    by_command = typed("logs", clean.data, f"{NAMESPACE}/{name}/cluster-version-operator")
    assert by_kubectl.stdout.splitlines()[0] in by_command.stdout
    listed = typed("logs", clean.data).stdout.split()
    assert {"apiserver", "cluster", "supervisor"} <= set(listed)
    missing = typed("logs", clean.data, "nobody")
    assert missing.returncode == 1
    assert "no log of 'nobody'" in missing.stderr
