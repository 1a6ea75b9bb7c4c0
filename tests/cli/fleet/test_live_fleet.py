"""`runup fleet` over live API servers: contexts, folders of kubeconfigs, and servers that do not answer."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run, Server
from tests.servers import eventually

from kubekit.lang import yaml as kyaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
IMAGE = "quay.io/openshift-release-dev/ocp-release@sha256:"


@pytest.fixture
def two(server: Server, old_server: Server) -> dict[str, Server]:
    """Two clusters of different versions, of which one is updating."""
    for number, each in enumerate((server, old_server)):
        version = f"4.{15 + number}.0"
        release = {"version": version, "image": f"{IMAGE}{number:064}"}
        history = {
            "state": "Completed",
            "startedTime": "2026-11-20T01:00:00Z",
            "completionTime": "2026-11-20T02:00:00Z",
        }
        each.set_cluster_version(
            spec={"clusterID": f"4f1a8d5e-7ff2-4ef1-8f4b-6f4c3c1ac5b{number}", "channel": f"stable-{4 + number}"},
            status={
                "desired": release,
                "history": [{**release, **history, "verified": True}],
                "availableUpdates": [{"version": f"4.{15 + number}.9", "image": f"{IMAGE}{number + 7:064}"}],
            },
        )
    return {"harbour": server, "lighthouse": old_server}


@pytest.fixture
def kubeconfig(two: dict[str, Server], tmp_path: Path) -> Path:
    """One kubeconfig with a context for each cluster, a second one of the first cluster, and one without a cluster."""
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, each in two.items():
        document = kyaml.load(each.kubeconfig.read_bytes(), name=name)
        merged["clusters"].append({"name": name, "cluster": document["clusters"][0]["cluster"]})
        merged["users"].append({"name": name, "user": document["users"][0]["user"]})
        merged["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    again = {"cluster": "harbour", "user": "harbour", "namespace": "apps"}
    merged["contexts"].append({"name": "apps/harbour:6443/admin", "context": again})
    merged["contexts"].append({"name": "ruin", "context": {"cluster": "nowhere", "user": "harbour"}})
    merged["current-context"] = "harbour"
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(merged))
    return file


def test_contexts_of_two_servers(run: Run, kubeconfig: Path) -> None:
    """Each is evaluated from its own server; the risks of one are not those of the other."""
    words = ("--contexts", "harbour,lighthouse", "--kubeconfig", kubeconfig)
    ran = run("fleet", "preflight", *words, "-o", "json")
    found = {each["cluster"]: each["source"] for each in json.loads(ran.out)["clusters"]}
    assert found == {"harbour": "4.15.0", "lighthouse": "4.16.0"}


def test_all_contexts(run: Run, kubeconfig: Path) -> None:
    """Each server once; a second context of one is reported, and one without a cluster is not evaluated."""
    ran = run("fleet", "preflight", "--contexts", "all", "--kubeconfig", kubeconfig, "-o", "json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert [each["cluster"] for each in found["clusters"]] == ["harbour", "lighthouse", "ruin"]
    assert [each["cluster"] for each in found["notJudged"]] == ["ruin"]
    assert "nowhere" in found["notJudged"][0]["why"]
    assert "context apps/harbour:6443/admin leads to the server of harbour" in ran.err


def test_two_contexts_of_one_cluster_by_name(run: Run, kubeconfig: Path) -> None:
    """They are evaluated as they were typed, and it is reported that they are one."""
    names = "harbour,apps/harbour:6443/admin"
    ran = run("fleet", "preflight", "--contexts", names, "--kubeconfig", kubeconfig)
    assert ran.err == (
        "warning: apps/harbour:6443/admin, harbour are one cluster (4f1a8d5e-7ff2-4ef1-8f4b-6f4c3c1ac5b0), "
        "which counts 2 times\n"
    )


@pytest.fixture
def folder(two: dict[str, Server], tmp_path: Path) -> Path:
    """A folder of kubeconfigs, with an invalid file and one whose server is gone."""
    folder = tmp_path / "kubeconfigs"
    (folder / "old").mkdir(parents=True)
    for name, each in two.items():
        shutil.copy(each.kubeconfig, folder / f"{name}.kubeconfig")
    (folder / "notes").write_text("hello")
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        port = closed.getsockname()[1]
    gone = re.sub(r"https://[^\"'\s]+", f"https://127.0.0.1:{port}", two["harbour"].kubeconfig.read_text())
    (folder / "island.yaml").write_text(gone)
    return folder


def test_the_status_of_a_folder(run: Run, folder: Path) -> None:
    """Each reports why it could not be read: two have no operators, one no server, one is no kubeconfig."""
    ran = run("fleet", "status", "--kubeconfigs", folder)
    assert ran.code == 1
    head, lost = ran.out.split("\n\n")
    assert head == "4 clusters: 0 updating, 4 could not be read"
    assert re.findall(r"^  ([\w, ]+): ", lost, re.MULTILINE) == ["harbour, lighthouse", "island", "notes"]
    assert re.search(r"^  island: The connection to the server 127\.0\.0\.1:\d+ was refused", lost, re.MULTILINE)
    assert re.search(r"^  notes: ", lost, re.MULTILINE)
    assert f"{folder / 'old'} is a folder, not a kubeconfig, and is left out" in ran.err


def test_what_a_folder_is_offered(run: Run, folder: Path) -> None:
    """A line for each answer, with the newest version that is recommended."""
    ran = run("fleet", "recommend", "--kubeconfigs", folder)
    assert ran.code == 1
    head, table, lost = ran.out.split("\n\n")
    assert head == "Updates of 4 clusters; 2 could not be read"
    rows = sorted(line.split()[1:4] + line.split()[-1:] for line in table.splitlines()[1:])
    assert rows == [["4.15.0", "stable-4", "4.15.9", "harbour"], ["4.16.0", "stable-5", "4.16.9", "lighthouse"]]
    assert lost.count("\n  ") == 2


@pytest.fixture
def hung(two: dict[str, Server], tmp_path: Path) -> Iterator[Path]:
    """A folder with the kubeconfig of a server that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}"
        text = re.sub(r"https://[^\"'\s]+", address, two["harbour"].kubeconfig.read_text())
        (tmp_path / "hung").mkdir()
        (tmp_path / "hung" / "silent.kubeconfig").write_text(text)
        yield tmp_path / "hung"


@pytest.mark.parametrize("command", ["preflight", "status", "recommend"])
def test_a_server_that_never_answers(run: Run, hung: Path, command: str) -> None:
    """The evaluation is ended at its time limit, and reported as failed."""
    ran = run("fleet", command, "--kubeconfigs", hung, "--timeout", "1")
    assert ran.code == 1
    assert re.search(r"^  silent: it took longer than 1 s; give it more with --timeout$", ran.out, re.MULTILINE)


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize(("ended_by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_fleet_that_is_interrupted_leaves_nothing(
    hung: Path, tmp_path: Path, ended_by: signal.Signals, code: int
) -> None:
    """No process, no folder for what was unpacked, no half of an output, nothing in the store, no traceback."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = (
        "--kubeconfigs",
        str(hung),
        "--store",
        f"sqlite:{tmp_path / 'kept.db'}",
        "-o",
        f"json={tmp_path / 'x.json'}",
    )
    command = [sys.executable, "-m", "runup", "fleet", "preflight", *words]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        eventually(lambda: list(scratch.glob("runup-fleet-*")), "a process for the cluster")
        # As a terminal does: every process of the command.
        process.send_signal(ended_by) if ended_by is signal.SIGTERM else os.killpg(process.pid, ended_by)
        out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err.strip()) == (code, b"", b"")
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "kept.db").exists()
    assert not (tmp_path / "x.json").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
