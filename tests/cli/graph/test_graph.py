"""`runup graph`: a folder built, shown in every form, and served as clients of an update service ask for it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from tests.cli.conftest import Run
from tests.oci.registries import odd_registry

from runup.cli.graph.server import accepted, address
from runup.controllers.sources.update_service import UpdateService
from runup.domain.updates.graph import advice
from runup.domain.updates.service import Query
from runup.domain.version import Version
from runup.kube.clock import SystemClock
from runup.oci.build import build_release
from runup.oci.layout import Layout

FILES = {"release-manifests/0000_50_a.yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: b}\n"}

RISK = {
    "name": "Slow",
    "message": "It is slow.\nVery.",
    "url": "https://example.com/slow",
    "matchingRules": [{"type": "PromQL", "promql": {"promql": "up == 1"}}],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three releases in one channel: one update is free, one has a risk, one is blocked."""
    folder = tmp_path / "graph-data"
    for name in ("channels", "blocked-edges", "raw"):
        (folder / name).mkdir(parents=True)
    (folder / "version").write_text("1.1.0\n")
    told = {"name": "stable-4.2", "versions": ["4.1.0", "4.1.1", "4.2.0"]}
    (folder / "channels" / "stable-4.2.yaml").write_text(yaml.safe_dump(told))
    (folder / "blocked-edges" / "4.2.0-slow.yaml").write_text(
        yaml.safe_dump({"to": "4.2.0", "from": "4[.]1[.]1[+].*", **RISK})
    )
    (folder / "blocked-edges" / "4.2.0.yaml").write_text("to: 4.2.0\nfrom: 4[.]1[.]0[+].*\n")
    releases = [
        {"version": "4.1.0", "image": "q/r@sha256:0"},
        {"version": "4.1.1", "image": "q/r@sha256:1", "previous": ["4.1.0"], "url": "https://errata/1"},
        {"version": "4.2.0", "image": "q/r@sha256:2", "previous": ["4.1.0", "4.1.1"]},
    ]
    (tmp_path / "releases.json").write_text(json.dumps(releases))
    return folder


def _built(run: Run, data: Path) -> Path:
    graph = data.parent / "graph.json"
    ran = run("graph", "build", data, "--releases", data.parent / "releases.json", "--to", graph)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "CHANNEL      RELEASES   UPDATES   WITH RISKS   RISKS\n"
        "stable-4.2   3          1         1            1\n"
        "all          3          1         1            1\n"
        "\n1 updates are blocked altogether.\n"
    )
    return graph


def test_built_of_images(run: Run, data: Path) -> None:
    """Versions, predecessors and digests are the images' own; where a cluster cannot pull from is refused."""
    layout = data.parent / "layout"
    built = {
        "4.1.0": build_release(layout, version="4.1.0", files=FILES),
        "4.1.1": build_release(layout, version="4.1.1", files=FILES, previous=("4.1.0",)),
    }
    with odd_registry(Layout.open(layout)) as registry:
        images = [f"{registry.host}/ocp/release@{built['4.1.0'].digest}", f"{registry.host}/ocp/release:4.1.1"]
        graph = data.parent / "graph.json"
        ran = run("graph", "build", data, "--image", images[0], "--image", images[1], "--to", graph)
        lacks = "warning: 1 releases of channels are not among the releases, such as 4.2.0\n"
        assert (ran.code, ran.err) == (0, lacks)
    found = json.loads(graph.read_text())
    pinned = {version: f"{registry.host}/ocp/release@{each.digest}" for version, each in built.items()}
    assert {node["version"]: node["payload"] for node in found["nodes"]} == pinned
    assert found["edges"] == [[0, 1]]
    ran = run("graph", "build", data, "--image", f"oci:{layout}:4.1.0")
    said = f"error: oci:{layout}:4.1.0: clusters cannot pull it from there; push it to a registry first\n"
    assert (ran.code, ran.err) == (1, said)
    ran = run("graph", "build", data, "--image", images[0])
    assert ran.code == 1
    assert ran.err.startswith(f"error: {images[0]}: ")


def test_shown_as_text(run: Run, data: Path) -> None:
    """Updates, what is blocked and by which file, the way, and the risks in full."""
    ran = run("graph", "show", _built(run, data), "--from=4.1.0", "--channel=stable-4.2")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "4.1.0 in stable-4.2: 1 updates, 0 with known risks, 1 blocked\n"
        "\nUpdates:\n  VERSION   RISKS\n  4.1.1     -\n"
        "\nBlocked:\n  VERSION   BLOCKED BY\n  4.2.0     blocked-edges/4.2.0.yaml\n"
        "\nWay to 4.2.0, 2 updates:\n  4.1.0 -> 4.1.1\n  4.1.1 -> 4.2.0   risks: Slow\n"
        "\nRisks:\n  Slow: It is slow.\n      Very.\n    https://example.com/slow\n    applies: PromQL\n      up == 1\n"
    )


def test_shown_as_dot_and_svg(run: Run, data: Path) -> None:
    """The same lines; the picture is well-formed."""
    graph = _built(run, data)
    words = ("graph", "show", graph, "--from=4.1.0", "--channel=stable-4.2")
    dot = run(*words, "-o", "dot").out.splitlines()
    assert '  "4.1.0" -> "4.2.0" [label="blocked-edges/4.2.0.yaml", style=dotted, color=red];' in dot
    assert '  "4.1.1" -> "4.2.0" [label="Slow", style=dashed, color=orange];' in dot
    picture = ET.fromstring(run(*words, "-o", "svg").out)
    space = "{http://www.w3.org/2000/svg}"
    assert sorted(each.get("class") or "" for each in picture.iter(f"{space}path")) == ["blocked", "plain", "risky"]
    assert len(list(picture.iter(f"{space}circle"))) == 3
    told = json.loads(run(*words, "-o", "json").out)
    assert [step["to"] for step in told["way"]] == ["4.1.1", "4.2.0"]


def test_without_releases_it_says_what_it_assumes(run: Run, data: Path) -> None:
    """Enough to look into channels; nobody mistakes it for what releases say."""
    ran = run("graph", "build", data, "-o", "json")
    assert ran.err.startswith("warning: no releases were given, so every release is assumed to update the earlier ones")
    assert json.loads(ran.out)["channels"]["stable-4.2"]["nodes"] == 3


REFUSED = {
    "nothing there": (["build", "nowhere"], "there is no nowhere; give a folder of graph data, or a graph"),
    "no graph data": (["build", "."], ". has no file `version`, so it is no folder of graph data"),
    "no such channel": (
        ["show", "graph-data", "--from=4.1.0", "--channel=stable-4.3"],
        "there is no channel stable-4.3 in this graph; nearest: stable-4.2",
    ),
    "no such release": (
        ["show", "graph-data", "--from=4.1.9", "--channel=stable-4.2"],
        "channel stable-4.2 has no release 4.1.9; nearest: 4.1.",
    ),
    "no releases": (["build", "graph-data", "--releases", "bad.json"], "bad.json: release 1: "),
    "no address": (["serve", "graph-data", "--listen", "8080"], "--listen must be HOST:PORT such as"),
    "a file that is no graph": (["show", "bad.json", "--from=4.1.0", "--channel=x"], "bad.json: the update service's"),
    "releases for a graph that has them": (
        ["show", "edited.json", "--from=4.1.0", "--channel=x", "--releases", "bad.json"],
        "a graph that was built has its releases; --releases and --image are for graph data",
    ),
    "a channel that is no YAML": (["build", "no-yaml"], "no-yaml/channels/a.yaml"),
    "graph data that nobody can build": (["build", "no-version"], "no-version: "),
    "no credentials": (
        ["build", "graph-data", "--image", "h/r:1", "--registry-config", "/gone"],
        "/gone: the credential file cannot be read",
    ),
    "a graph that somebody edited": (
        ["show", "edited.json", "--from=4.1.0", "--channel=x"],
        "edited.json: Object missing required field `to` - at `$.blockedEdges[0]`; build it anew with `runup graph",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error that names the input."""
    words, text = REFUSED[name]
    (data.parent / "bad.json").write_text('[{"version": 4}]')
    (data.parent / "edited.json").write_text('{"nodes": [], "edges": [], "blockedEdges": [{"from": "4.1.0"}]}')
    for name, channel in (("no-yaml", "name: ["), ("no-version", "name: a\nversions: [x]")):
        (data.parent / name / "channels").mkdir(parents=True)
        (data.parent / name / "version").write_text("1.2.0\n")
        (data.parent / name / "channels" / "a.yaml").write_text(channel)
    monkeypatch.chdir(data.parent)
    ran = run("graph", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {text}")


ACCEPTS = {
    "nothing": ([], "application/json"),
    "json": (["application/json"], "application/json"),
    "anything": (["*/*"], "application/json"),
    "a browser": (["text/html, application/xhtml+xml, */*;q=0.8"], "application/json"),
    "its own type": (["application/vnd.redhat.cincinnati.v1+json"], "application/vnd.redhat.cincinnati.v1+json"),
    "something else": (["text/html"], ""),
    "not json": (["application/json;q=0, text/html"], ""),
}


@pytest.mark.parametrize("name", ACCEPTS)
def test_content_types(name: str) -> None:
    """What a client takes decides, and no header takes anything."""
    headers, kind = ACCEPTS[name]
    assert accepted(headers) == kind


def test_addresses() -> None:
    """IPv6 too."""
    assert address("[::1]:0") == ("::1", 0)


@pytest.fixture
def served(run: Run, data: Path) -> Iterator[str]:
    """The address of a service in a process of its own."""
    graph = _built(run, data)
    command = [sys.executable, "-m", "runup", "graph", "serve", str(graph), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving 3 releases at http://127.0.0.1:")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(60)


def _asked(url: str, **headers: str) -> tuple[int, Any, Any]:
    try:
        with urlopen(Request(url, headers=headers), timeout=90) as answer:
            return answer.status, answer.headers, json.loads(answer.read())
    except HTTPError as error:
        body = error.read()
        return error.code, error.headers, json.loads(body) if body else None


def test_served(served: str) -> None:
    """A channel's graph, told once; the errors that clients expect."""
    status, headers, graph = _asked(f"{served}?channel=stable-4.2&arch=amd64&version=4.1.0&id=x")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "application/json")
    assert (len(graph["nodes"]), graph["edges"]) == (3, [[0, 1]])
    assert set(graph) == {"version", "nodes", "edges", "conditionalEdges"}
    status, again, body = _asked(f"{served}?channel=stable-4.2", **{"If-None-Match": headers["ETag"]})
    assert (status, again["ETag"], body) == (304, headers["ETag"], None)
    assert _asked(f"{served}?channel=nobodys")[2]["nodes"] == []
    assert _asked(f"{served}?channel=stable-4.2&arch=s390x")[2]["nodes"] == []
    assert len(_asked(f"{served}?channel=stable-4.2&arch=x86_64")[2]["nodes"]) == 3
    missing = {"kind": "missing_params", "value": "mandatory client parameters missing: channel"}
    assert _asked(served)[::2] == (400, missing)
    assert _asked(f"{served}?channel=a%2Fb")[2]["kind"] == "invalid_params"
    refused = {"kind": "invalid_content_type", "value": "invalid Content-Type requested"}
    assert _asked(f"{served}?channel=a", Accept="text/html")[::2] == (406, refused)


def test_the_operator_s_client_is_answered(served: str) -> None:
    """What one end serves the other reads."""

    async def ask() -> UpdateService:
        answered = asyncio.Event()
        service = UpdateService(SystemClock(), answered.set)
        service.ask(Query(served, "stable-4.2", "amd64", "x", "4.1.1"))
        await asyncio.wait_for(answered.wait(), 90)
        return service

    service = asyncio.run(ask())
    assert service.state.failure is None
    assert service.state.graph is not None
    found = advice(service.state.graph, current=Version("4.1.1"), channel="stable-4.2")
    assert [(update.release.version, update.risks[0].name) for update in found.conditional] == [("4.2.0", "Slow")]
