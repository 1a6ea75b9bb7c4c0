"""`runup graph`: a folder built, shown in every form, and served as clients of an update service ask for it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer
from tests.cli.commands import Run
from tests.kubekit.oci.registries import odd_registry

from kubekit.error_types import InputError
from kubekit.kube.clock import SystemClock
from kubekit.lang.version import Version
from kubekit.oci.layout import Layout
from runup.advice.control import graph_server
from runup.advice.control.graph_server import PATHS, Answers, app, negotiate_content_type, parse_listen_address
from runup.advice.control.graph_source import Source, load, nearest_hint
from runup.advice.control.update_service import UpdateService
from runup.advice.decide.graph import advice
from runup.advice.decide.service import Query
from runup.cli.advice.graph_command import summary
from runup.release.control.image_build import build_release

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
    seen = {"name": "stable-4.2", "versions": ["4.1.0", "4.1.1", "4.2.0"]}
    (folder / "channels" / "stable-4.2.yaml").write_text(yaml.safe_dump(seen))
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
        lacks = "warning: the channels have 1 more release, such as 4.2.0\n"
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


def test_built_of_an_image_with_a_manifest_that_cannot_be_read(run: Run, data: Path) -> None:
    """No update depends on its manifests: the release is in the graph all the same."""
    layout = data.parent / "layout"
    built = build_release(layout, version="4.1.0", files={**FILES, "release-manifests/0000_50_b.yaml": b"- a\n"})
    with odd_registry(Layout.open(layout)) as registry:
        image, graph = f"{registry.host}/ocp/release@{built.digest}", data.parent / "graph.json"
        ran = run("graph", "build", data, "--image", image, "--to", graph)
    assert ran.code == 0, ran.err
    assert [node["payload"] for node in json.loads(graph.read_text())["nodes"]] == [image]


def test_shown_as_text(run: Run, data: Path) -> None:
    """Updates, what is blocked and by which file, the way, and the risks in full."""
    ran = run("graph", "show", _built(run, data), "--from=4.1.0", "--channel=stable-4.2")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "4.1.0 in stable-4.2: 1 update, 0 with known risks, 1 blocked\n"
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
    seen = json.loads(run(*words, "-o", "json").out)
    assert [step["to"] for step in seen["way"]] == ["4.1.1", "4.2.0"]


def test_without_releases_it_says_what_it_assumes(run: Run, data: Path) -> None:
    """Enough to look into channels; nobody mistakes it for what releases say."""
    ran = run("graph", "build", data, "-o", "json")
    assert ran.err.startswith("warning: no releases were given, so every release is assumed to update the earlier ones")
    assert json.loads(ran.out)["channels"]["stable-4.2"]["nodes"] == 3
    shown = run("graph", "show", data, "--from=4.1.0", "--channel=stable-4.2")
    assert (shown.code, shown.err) == (0, ran.err)


def test_a_graph_that_was_built_is_as_good_as_its_data(run: Run, data: Path) -> None:
    """Blocked edges and assumptions survive repeated encoding."""
    first, second = data.parent / "first.json", data.parent / "second.json"
    built = run("graph", "build", data, "--to", first)
    again = run("graph", "build", first, "--to", second)
    assert (again.code, again.out, again.err) == (0, built.out, built.err)
    assert built.err.startswith("warning: no releases were given")
    assert second.read_bytes() == first.read_bytes()
    assert json.loads(first.read_text())["blockedEdges"] == [
        {"from": "4.1.0", "to": "4.2.0", "files": ["blocked-edges/4.2.0.yaml"]}
    ]


def test_a_graph_of_anybody(run: Run, data: Path) -> None:
    """Of what an update service answers only releases and edges must be there."""
    channels = {"io.openshift.upgrades.graph.release.channels": "fast-4.1,stable-4.1"}
    nodes = [
        {"version": "4.1.0", "payload": "q/r@sha256:0", "metadata": channels},
        {"version": "4.1.1", "payload": "q/r@sha256:1", "metadata": channels},
        {"version": "4.1.2", "payload": "q/r@sha256:2"},
    ]
    graph = data.parent / "theirs.json"
    graph.write_text(json.dumps({"nodes": nodes, "edges": [[0, 1], [1, 2]]}))
    ran = run("graph", "build", graph)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()[1:4]] == [
        ["fast-4.1", "2", "1", "0", "0"],
        ["stable-4.1", "2", "1", "0", "0"],
        ["all", "3", "2", "0", "0"],
    ]
    shown = run("graph", "show", graph, "--from=4.1.0", "--to=4.1.1", "--channel=fast-4.1")
    assert shown.out.endswith("\nWay to 4.1.1, 1 update:\n  4.1.0 -> 4.1.1\n")


def test_a_graph_that_cannot_be_written_leaves_nothing(run: Run, data: Path) -> None:
    """Neither the whole nor a part."""
    (data.parent / "taken" / "x").mkdir(parents=True)
    before = {path.name for path in data.parent.iterdir()}
    ran = run("graph", "build", data, "--to", data.parent / "taken")
    assert ran.code == 1
    assert {path.name for path in data.parent.iterdir()} == before


def test_what_is_near_is_told() -> None:
    """Three names at most, the nearest first; nothing where nothing is."""
    known = ["stable-4.1", "stable-4.2", "stable-4.3", "stable-4.4", "fast"]
    hint = nearest_hint("stable-4.22", known)
    assert hint.startswith("; nearest: stable-4.2, ")
    assert len(hint.partition(": ")[2].split(", ")) == 3
    assert nearest_hint("candidate", ["fast"]) == ""


def test_a_graph_in_numbers() -> None:
    """Edges with risks are counted by edge, risks by name."""

    def group(name: str, *edges: tuple[str, str]) -> dict[str, Any]:
        return {"edges": [{"from": old, "to": new} for old, new in edges], "risks": [{**RISK, "name": name}]}

    versions = ("4.1.0", "4.1.1", "4.1.2", "4.1.3")
    channels = {"io.openshift.upgrades.graph.release.channels": "stable-4.1"}
    nodes = [{"version": version, "payload": f"q/r@sha256:{version}", "metadata": channels} for version in versions]
    groups = [
        group("Slow", ("4.1.0", "4.1.1"), ("4.1.0", "4.1.2")),
        group("Slow", ("4.1.1", "4.1.2")),
        group("Old", ("4.1.2", "4.1.3")),
    ]
    document = {"version": 1, "nodes": nodes, "edges": [[0, 3]], "conditionalEdges": groups}
    seen = summary(Source(document, {("4.1.0", "4.1.3"): ("f",), ("4.1.1", "4.1.3"): ("f",)}))
    counts = {"nodes": 4, "edges": 1, "conditionalEdges": 4, "risks": ["Old", "Slow"]}
    assert seen == {**counts, "blockedEdges": 2, "channels": {"stable-4.1": counts}, "notes": []}


REFUSED = {
    "nothing there": (["build", "nowhere"], "there is no nowhere; give a folder of graph data, or a graph"),
    "no graph data": (["build", "."], ". has no file `version`, so it is not a folder of graph data"),
    "no such channel": (
        ["show", "graph-data", "--from=4.1.0", "--channel=stable-4.3"],
        "there is no channel stable-4.3 in this graph; nearest: stable-4.2",
    ),
    "no such release": (
        ["show", "graph-data", "--from=4.1.9", "--channel=stable-4.2"],
        "channel stable-4.2 has no release 4.1.9; nearest: 4.1.",
    ),
    "no such release to go to": (
        ["show", "graph-data", "--from=4.1.0", "--to=5.0.0", "--channel=stable-4.2"],
        "channel stable-4.2 has no release 5.0.0\n",
    ),
    "a channel like no other": (
        ["show", "graph-data", "--from=4.1.0", "--channel=x"],
        "there is no channel x in this graph\n",
    ),
    "a graph of nulls": (
        ["show", "nulls.json", "--from=4.1.0", "--channel=x"],
        "nulls.json: holds no release; give a graph that `runup graph build` made\n",
    ),
    "a member that is no UTF-8": (
        ["show", "no-utf-8.json", "--from=4.1.0", "--channel=x"],
        "no-utf-8.json: 'utf-8' codec",
    ),
    "a member that is nested too deep": (
        ["show", "deep.json", "--from=4.1.0", "--channel=x"],
        "deep.json: maximum recursion depth exceeded",
    ),
    "images for a graph that has them": (
        ["show", "edited.json", "--from=4.1.0", "--channel=x", "--image", "h/r:1"],
        "a graph that was built has its releases; --releases and --image are for graph data",
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
        "edited.json: Object missing required field `to` - at `$.blockedEdges[0]`; build it again with `runup graph",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error that names the input."""
    words, text = REFUSED[name]
    (data.parent / "bad.json").write_text('[{"version": 4}]')
    (data.parent / "no-utf-8.json").write_bytes(b'{"nodes": [], "edges": [], "x": "\xff"}')
    (data.parent / "deep.json").write_text(f'{{"nodes": [], "edges": [], "x": {"[" * 600}{"]" * 600}}}')
    (data.parent / "nulls.json").write_text('{"nodes": null, "edges": null, "conditionalEdges": null}')
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
    "not json, at length": (["application/json; q=0.00 ;v=1"], ""),
    "json a little": (["application/json;q=0.01"], "application/json"),
    "the first of ours that is taken": (
        ["text/html", "application/vnd.redhat.cincinnati.v1+json, Application/JSON"],
        "application/vnd.redhat.cincinnati.v1+json",
    ),
    "any of a kind": (["application/*"], "application/json"),
    "any of another kind": (["text/*"], ""),
    "a header that says nothing": ([" , "], "application/json"),
}


@pytest.mark.parametrize("name", ACCEPTS)
def test_content_types(name: str) -> None:
    """What a client takes decides, and no header takes anything."""
    headers, kind = ACCEPTS[name]
    assert negotiate_content_type(headers) == kind


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("[::1]:0", ("::1", 0), id="IPv6"),
        pytest.param("localhost:8080", ("localhost", 8080), id="a name"),
        pytest.param("127.0.0.1:65535", ("127.0.0.1", 65535), id="the last port"),
        pytest.param("127.0.0.1:65536", None, id="one port more"),
        pytest.param("127.0.0.1", None, id="no port"),
        pytest.param("127.0.0.1:", None, id="an empty port"),
        pytest.param("127.0.0.1:http", None, id="a port that is a word"),
        pytest.param(":8080", None, id="no host"),
    ],
)
def test_addresses(text: str, found: tuple[str, int] | None) -> None:
    """A host and a port, or an error that has what was typed."""
    if found is not None:
        assert parse_listen_address(text) == found
        return
    with pytest.raises(InputError) as refused:
        parse_listen_address(text)
    assert refused.value.message == f'--listen must be HOST:PORT such as 127.0.0.1:8080, not "{text}"'


@pytest.fixture
def served(run: Run, data: Path) -> Iterator[str]:
    """The address of a service in a separate process."""
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
    """Serves a channel's graph, and the errors that clients expect."""
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


@asynccontextmanager
async def _asking(run: Run, data: Path) -> AsyncIterator[TestClient[Any, Any]]:
    served = app(load(str(_built(run, data)), None, (), "amd64"), "amd64")
    async with TestClient(TestServer(served)) as client:
        yield client


VALID = {"channel": "stable-4.2"}
QUERIES: dict[str, tuple[dict[str, str], int, int]] = {
    "a channel": (VALID, 200, 3),
    "the architecture by the kernel's name": ({**VALID, "arch": "x86_64"}, 200, 3),
    "no architecture": ({**VALID, "arch": ""}, 200, 3),
    "another architecture by the kernel's name": ({**VALID, "arch": "aarch64"}, 200, 0),
    "another architecture": ({**VALID, "arch": "s390x"}, 200, 0),
    "a channel that nobody has": ({"channel": "nobodys"}, 200, 0),
    "the longest channel": ({"channel": 100 * "a"}, 200, 0),
    "a longer one": ({"channel": 101 * "a"}, 400, 0),
    "a channel that is none": ({"channel": "a/b"}, 400, 0),
    "an empty channel": ({"channel": ""}, 400, 0),
}


@pytest.mark.parametrize("name", QUERIES)
async def test_what_a_client_gets(name: str, run: Run, data: Path) -> None:
    """On each of the paths on which update services answer."""
    query, status, releases = QUERIES[name]
    async with _asking(run, data) as client:
        for path in PATHS:
            answer = await client.get(path, params=query)
            seen = await answer.json()
            assert (answer.status, len(seen.get("nodes", ()))) == (status, releases)
            assert "kind" not in seen or seen["kind"] == ("invalid_params" if query["channel"] else "missing_params")


async def test_what_a_client_has_already_is_not_told_again(run: Run, data: Path) -> None:
    """By its tag, among others, or by any; another tag gets the whole."""
    async with _asking(run, data) as client:

        async def status(tag: str) -> tuple[int, str]:
            answer = await client.get(PATHS[0], params=VALID, headers={"If-None-Match": tag})
            return answer.status, await answer.text()

        whole = await client.get(PATHS[0], params=VALID)
        assert (whole.headers["Cache-Control"], whole.headers["Vary"]) == ("no-cache", "Accept")
        tag = whole.headers["ETag"]
        for known in (tag, f'"x", {tag}', "*"):
            assert await status(known) == (304, "")
        assert await status('"x"') == (200, await whole.text())
        assert (await client.get(PATHS[0], params={"channel": "x"})).headers["ETag"] != tag


async def test_a_client_that_takes_no_json(run: Run, data: Path) -> None:
    """The answer is an error in JSON."""
    async with _asking(run, data) as client:
        answer = await client.get(PATHS[0], params=VALID, headers={"Accept": "text/html"})
        refused = {"kind": "invalid_content_type", "value": "invalid Content-Type requested"}
        assert (answer.status, await answer.json()) == (406, refused)
        answer = await client.get(
            PATHS[0], params=VALID, headers={"Accept": "application/vnd.redhat.cincinnati.v1+json"}
        )
        assert answer.content_type == "application/vnd.redhat.cincinnati.v1+json"


async def test_whoever_asks_whether_it_is_well_is_told(run: Run, data: Path) -> None:
    """For probes."""
    async with _asking(run, data) as client:
        answer = await client.get("/healthz")
        assert (answer.status, await answer.text()) == (200, "ok\n")


def test_an_answer_is_made_once(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a channel that there is; others, and more than can be kept, are recreated."""
    document = load(str(_built(run, data)), None, (), "amd64").document
    for node in document["nodes"]:
        node["metadata"]["io.openshift.upgrades.graph.release.channels"] = "a,b,c"
    monkeypatch.setattr(graph_server, "_MAX_KEPT", 2)
    answers = Answers(document, "amd64")
    assert {name: answers.of(name, "amd64")[0] is answers.of(name, "amd64")[0] for name in "abcx"} == {
        "a": True,
        "b": True,
        "c": False,
        "x": False,
    }
    assert answers.of("a", "amd64") == answers.of("c", "amd64")
    assert answers.of("a", "arm64") == answers.of("x", "amd64")


def test_the_operator_s_client_is_answered(served: str) -> None:
    """What one end serves the other reads."""

    async def ask() -> UpdateService:
        answered = asyncio.Event()
        service = UpdateService(SystemClock(), answered.set)
        service.ask(Query(url=served, channel="stable-4.2", architecture="amd64", cluster_id="x", version="4.1.1"))
        await asyncio.wait_for(answered.wait(), 90)
        return service

    service = asyncio.run(ask())
    assert service.state.failure is None
    assert service.state.graph is not None
    found = advice(service.state.graph, current=Version("4.1.1"), channel="stable-4.2")
    assert [(update.release.version, update.risks[0].name) for update in found.conditional] == [("4.2.0", "Slow")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}", id="an empty object"),
        pytest.param('{"editor.tabSize": 2}', id="the settings of another tool"),
        pytest.param('{"nodes": [], "edges": []}', id="no releases"),
    ],
)
@pytest.mark.parametrize("words", [("show", "--from=4.1.0", "--channel=stable-4.2"), ("serve",)], ids=["show", "serve"])
def test_refuses_a_graph_without_releases(words: tuple[str, ...], text: str, run: Run, tmp_path: Path) -> None:
    """A cluster that is served an empty graph looks as if there was no update for it."""
    (tmp_path / "graph.json").write_text(text)
    ran = run("graph", words[0], tmp_path / "graph.json", *words[1:])
    assert (ran.code, ran.out) == (1, "")
    assert "graph.json: holds no release; give a graph that `runup graph build` made" in ran.err
