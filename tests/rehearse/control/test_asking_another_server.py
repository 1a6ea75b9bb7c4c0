"""What a copy asks of the API server next to it, here one in a separate process, and how that one's programs start."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.applying.control.release_folders import NAMESPACE, config_map, manifest
from tests.kubekit.kube.apiscript import reply, scripted_api
from tests.rehearse.control.test_seeded_releases import (
    BY_WEBHOOK,
    DENY,
    OLD_STORED,
    POLICY,
    TWO_VERSIONS,
    VALUES,
    changed,
    widget,
)
from tests.rehearse.rehearsed_world import World
from tests.servers import api_server

from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import load
from runup.dump.completeness import CompleteKinds
from runup.rehearse.control.cluster_copy import open_copy
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.control.real_copy import RealCopy, rows_of_etcd
from runup.rehearse.control.real_server import RealServer, ServerPrograms, real_server
from runup.rehearse.decide.rehearsal_outcome import Action, StoredObject
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
ACCOUNT = ("default", "default")
NOWHERE = ServerPrograms(Path("/nowhere/kube-apiserver"), Path("/nowhere/etcd"), "1.34.4")
OWNED = config_map("owned", {"owner": "shop"})
ABSENT = config_map("absent", {})


def of(group: str, obj: JSON) -> JSON:
    """A definition of Widgets, or a Widget, of another group: tests share a server."""
    if obj["kind"] == "Widget":
        return {**obj, "apiVersion": f"{group}/v1"}
    return changed(changed(obj, "spec.group", group), "metadata.name", f"widgets.{group}")


class Parallel:
    """A copy that asks a server; `admin` changes what is there, `etcd` is where its kubeconfig of etcd has to be."""

    def __init__(self, copy: RealCopy, admin: World, clock: ManualClock, etcd: Path) -> None:
        self.copy, self.admin, self.clock, self.etcd = copy, admin, clock, etcd

    async def over_in(self, seconds: float, waiting: Any) -> None:
        """Waits for something while the clock jumps that far."""
        task = asyncio.create_task(waiting)
        # It has read the clock by then.
        await asyncio.sleep(0)
        self.clock.jump(seconds)
        await task


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty server."""
    with api_server(tmp_path_factory.mktemp("server") / "data") as found:
        yield found


def source(*objects: JSON) -> ClusterSource:
    """A cluster of those objects."""
    return ClusterSource(name="it", objects=list(objects), plurals={}, collected=CompleteKinds())


@asynccontextmanager
async def parallel(kubeconfig: Path, folder: Path, *objects: JSON) -> AsyncIterator[Parallel]:
    """A copy of `objects`, of which the server has none yet."""
    clock = ManualClock()
    async with AsyncExitStack() as stack:
        staged = await stack.enter_async_context(open_copy(source(*objects), clock, account=ACCOUNT, scratch=folder))
        lookups = stack.enter_context(SyncClient(load(str(kubeconfig))))
        client = await stack.enter_async_context(Client(load(str(kubeconfig))))
        admin = World(kubeconfig, client)
        await admin.apply(manifest("v1", "Namespace", NAMESPACE))
        server = RealServer(NOWHERE, folder, SystemClock(), "10.0.0.0/16")
        yield Parallel(RealCopy(staged, server, client, lookups), admin, clock, folder / "etcd.kubeconfig")


async def test_kinds_and_objects_are_the_servers(kubeconfig: Path, tmp_path: Path) -> None:
    """In the version that it prefers, also after another one is preferred; what it does not have is None."""
    group = "one.example.org"
    mine = Identity(group, "Widget", NAMESPACE, "mine")
    async with parallel(kubeconfig, tmp_path) as it:
        copy = it.copy
        await it.admin.apply(of(group, TWO_VERSIONS))
        await copy.wait_for_served_versions(of(group, TWO_VERSIONS))
        await it.admin.apply(of(group, widget()))
        served = {key: copy.kind_of(*key) for key in ((group, "Widget"), ("", "ConfigMap"), ("", "Node"))}
        assert {key: (kind.version, kind.namespaced) for key, kind in served.items() if kind} == {
            (group, "Widget"): ("v2", True),
            ("", "ConfigMap"): ("v1", True),
            ("", "Node"): ("v1", False),
        }
        assert (copy.kind_of(group, "Gadget"), copy.kind_of("no.example.org", "Widget")) == (None, None)
        found = copy.get(mine)
        assert found is not None
        assert found["apiVersion"] == f"{group}/v2"
        assert copy.get(replace(mine, name="yours")) is None
        assert copy.get(replace(mine, kind="Gadget")) is None
        assert [
            [obj["metadata"]["name"] for obj in copy.all(group, kind, namespace)]
            for kind, namespace in (("Widget", ""), ("Widget", NAMESPACE), ("Widget", "default"), ("Gadget", ""))
        ] == [["mine"], ["mine"], [], []]
        versions = copy.served_versions()
        some = {("", "v1", "Pod"), ("apps", "v1", "Deployment"), (group, "v1", "Widget"), (group, "v2", "Widget")}
        assert some <= versions
        assert not {("authentication.k8s.io", "v1", "TokenReview"), ("apps", "v1", "Scale")} & versions
        await it.admin.apply(of(group, changed(TWO_VERSIONS, "spec.versions.1.served", False)))
        found = copy.get(mine)
        assert found is not None
        assert found["apiVersion"] == f"{group}/v1"


async def test_a_definition_is_waited_for(kubeconfig: Path, tmp_path: Path) -> None:
    """For two minutes, and not where it is known that its kind is never served."""
    never = of("never.example.org", TWO_VERSIONS)
    refused = {**never, "status": {"conditions": [{"type": "NamesAccepted", "status": "False"}]}}
    accepted = {**never, "status": {"conditions": [{"type": "NamesAccepted", "status": "True"}]}}
    half = of("half.example.org", changed(TWO_VERSIONS, "spec.versions.1.served", False))
    shown = r"does not serve widgets\.never\.example\.org/v1 after 120 s"
    async with parallel(kubeconfig, tmp_path) as it:
        await it.copy.wait_until_served(refused)
        await it.copy.wait_until_served({**never, "spec": "none"})
        for definition in (never, accepted):
            with pytest.raises(Terminal, match=shown):
                await it.over_in(120.1, it.copy.wait_until_served(definition))
        await it.admin.apply(half)
        await it.copy.wait_until_served(half)


async def test_what_the_server_cannot_read_is_left_out(kubeconfig: Path, tmp_path: Path) -> None:
    """By name, with what the server says, and it goes from etcd; what it can read stays."""
    group = "broken.example.org"
    webhook = changed(BY_WEBHOOK, "webhook.clientConfig.url", "https://127.0.0.1:9/convert")
    definition = of(group, {**OLD_STORED, "spec": {**OLD_STORED["spec"], "conversion": webhook}})
    objects = (definition, of(group, widget()), VALUES)
    async with parallel(kubeconfig, tmp_path, *objects) as it, scripted_api() as etcd:
        it.etcd.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "a", "cluster": {"server": etcd.url}}],
                    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                    "users": [{"name": "a", "user": {}}],
                    "current-context": "a",
                }
            )
        )
        etcd.answers(reply({}))
        await it.admin.apply(*objects)
        # Listing it fails for ever, and is no reason to wait.
        await it.copy.wait_until_served(definition)
        await it.copy.drop_unreadable(source(*objects))
        shown = [each for each in it.copy.left_out if each.kind.startswith("Widget")]
        assert [(each.kind, each.count) for each in shown] == [("Widget mine", 1)]
        assert shown[0].why.startswith("the real API server cannot read it: conversion webhook for")
        assert it.copy.damaged == {(group, "Widget")}
        assert etcd.targets == ["POST /v3/kv/deleterange"]
        (deleted,) = etcd.bodies
        assert base64.b64decode(json.loads(deleted)["key"]).decode() == f"/registry/{group}/widgets/{NAMESPACE}/mine"


async def test_the_next_write_of_an_object(kubeconfig: Path, tmp_path: Path) -> None:
    """It is tried as a dry run, with the server's reason where it is refused; what is not there is not counted."""
    secret = manifest("v1", "Secret", "key", NAMESPACE)
    values, owned, absent = (Identity("", "ConfigMap", NAMESPACE, name) for name in ("values", "owned", "absent"))
    shown = "ValidatingAdmissionPolicy 'owned' with binding 'owned' denied request: an owner is needed"
    async with parallel(kubeconfig, tmp_path) as it:
        await it.admin.apply(VALUES, OWNED, secret, POLICY, DENY)
        cluster = source(VALUES, OWNED, ABSENT, secret, of("no.example.org", widget()))
        refused, tried = await it.copy.try_writes(cluster, it.clock.monotonic() + 1)
        assert ([each.identity for each in refused], tried) == ([values], 2)
        assert shown in refused[0].message
        it.clock.jump(2)
        assert await it.copy.try_writes(cluster, it.clock.monotonic() - 1) == ([], 0)
        stored = it.copy.get(owned)
        assert stored is not None
        assert not stored["metadata"].get("annotations", {}).keys() & {"rehearsal.runup.dev/tried"}
        # As the schema alone has it: refused already, unknown, or losing a field.
        for said in (
            StoredObject(identity=values, refused=("too large",)),
            StoredObject(identity=values, unknown="no schema"),
        ):
            assert await it.copy.evaluate_stored_object(said, values) is said
        losing = StoredObject(identity=values, pruned=("data.x",))
        evaluated = await it.copy.evaluate_stored_object(losing, values)
        assert evaluated == StoredObject(identity=values, refused=(refused[0].message,), pruned=("data.x",))
        assert await it.copy.evaluate_stored_object(None, values) == StoredObject(
            identity=values, refused=evaluated.refused
        )
        fine = StoredObject(identity=owned, pruned=("data.y",))
        assert await it.copy.evaluate_stored_object(fine, owned) is fine
        assert await it.copy.evaluate_stored_object(None, absent) is None


async def test_what_reads_otherwise_on_the_server(kubeconfig: Path, tmp_path: Path) -> None:
    """Fields that it adds, lacks or changes; not of Secrets, of its own roles, or of what it does not have."""
    secret = {**manifest("v1", "Secret", "other", NAMESPACE), "stringData": {"a": "b"}}
    role = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "shop", rules=[])
    own = changed(role, "metadata.labels", {"kubernetes.io/bootstrapping": "rbac-defaults"})
    same, other = (config_map(name, {"owner": "shop"}) for name in ("same", "other"))
    async with parallel(kubeconfig, tmp_path) as it:
        await it.admin.apply(same, other, secret, own)
        cluster = source(
            same,
            changed(secret, "stringData", None),
            changed(own, "rules", [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]),
            ABSENT,
            of("no.example.org", widget()),
            # The last: what comes before it is left out alone.
            changed(other, "data.owner", "nobody"),
        )
        (change,) = it.copy.read_changes(cluster)
    assert (change.identity.name, change.action) == ("other", Action.UPDATE)
    assert [(field.path, field.before, field.after) for field in change.fields] == [("data.owner", "nobody", "shop")]


async def test_what_goes_into_etcd(tmp_path: Path) -> None:
    """The cluster's objects as they are, and none that every server makes for itself, or that needs another server."""
    service = {"name": "metrics", "namespace": "default"}
    remote, local = (
        manifest("apiregistration.k8s.io/v1", "APIService", f"v1.{name}", spec={"group": name, "version": "v1", **spec})
        for name, spec in (("away.example.org", {"service": service}), ("here.example.org", {}))
    )
    system = manifest("v1", "Namespace", "kube-system")
    cluster = source(changed(VALUES, "metadata.resourceVersion", "7"), remote, local, system)
    async with open_copy(cluster, SystemClock(), account=ACCOUNT, scratch=tmp_path) as staged:
        made = {key for _, key in staged.initial}
        rows = {key: json.loads(raw) for key, raw in rows_of_etcd(staged, cluster)}
        left = [(each.kind, each.why, each.count) for each in staged.left_out]
    assert {"default", "kube-system"} <= made
    assert sorted(rows) == [
        "/registry/apiregistration.k8s.io/apiservices/v1.here.example.org",
        f"/registry/configmaps/{NAMESPACE}/values",
        "/registry/namespaces/kube-system",
        f"/registry/namespaces/{NAMESPACE}",
    ]
    assert rows[f"/registry/configmaps/{NAMESPACE}/values"]["data"] == VALUES["data"]
    assert not any("resourceVersion" in obj["metadata"] for obj in rows.values())
    assert ("APIService v1.away.example.org", "its API server does not belong to the copy", 1) in left


def script(folder: Path, name: str, text: str) -> Path:
    """A program that does what `text` says."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        pytest.param("listen tcp: bind: address already in use", 3, id="a port that somebody took"),
        pytest.param("no space left on device", 1, id="anything else"),
    ],
)
async def test_another_port_is_tried(words: str, starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a separate folder each time; the last words are reported, and no proxy is the programs' business."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("no_proxy", "example")
    etcd = script(tmp_path, "etcd", f'env >> "$0.env"; pwd >> "$0.log"; echo "$@" >> "$0.flags"; echo {words}; exit 3')
    programs = ServerPrograms(tmp_path / "kube-apiserver", etcd, "1.34.4")
    shown = f"it ended with 3: {words}"
    with pytest.raises(Terminal, match=shown):
        async with real_server(programs, tmp_path, SystemClock(), services="10.0.0.0/16", objects=()):
            pass
    folders = [str(tmp_path / f"server-{number + 1}") for number in range(starts)]
    assert (tmp_path / "etcd.log").read_text().split() == folders
    assert [f"--data-dir={each}/etcd" for each in folders] == [
        word for word in (tmp_path / "etcd.flags").read_text().split() if word.startswith("--data-dir=")
    ]
    assert "proxy" not in (tmp_path / "etcd.env").read_text().lower()


# Both programs, as far as starting them goes: they keep their flags, demand a client's certificate, and say yes.
PROGRAM = """
import http.server, json, os, pathlib, ssl, sys
flags = dict(each.lstrip("-").partition("=")[::2] for each in sys.argv[1:])
here = pathlib.Path(sys.argv[0])
names = {"etcd": ("cert-file", "key-file", "trusted-ca-file"),
         "kube-apiserver": ("tls-cert-file", "tls-private-key-file", "client-ca-file")}[here.name]
port = flags.get("secure-port") or flags["listen-client-urls"].rpartition(":")[2]
here.with_suffix(".json").write_text(json.dumps({"flags": flags, "pid": os.getpid()}))
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=flags[names[2]])
context.verify_mode = ssl.CERT_REQUIRED
context.load_cert_chain(flags[names[0]], flags[names[1]])
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.command == "POST":
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with here.with_suffix(".asked").open("ab") as file:
                file.write(self.path.encode() + b" " + body + b"\\n")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    do_POST = do_GET
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
OF_ETCD = ("cert-file", "key-file", "trusted-ca-file", "client-cert-file", "client-key-file")
OF_SERVER = ("etcd-cafile", "etcd-certfile", "etcd-keyfile", "tls-cert-file", "tls-private-key-file", "client-ca-file")
OF_ACCOUNTS = ("service-account-signing-key-file", "service-account-key-file", "egress-selector-config-file")


def are_files(*paths: str) -> bool:
    """Whether all of them are there."""
    return all(Path(each).is_file() for each in paths)


async def test_how_the_programs_are_started(tmp_path: Path) -> None:
    """With TLS for all and a way out to nobody; the objects are in etcd before the server begins. Both end."""
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).write_text(f"#!{sys.executable} -ES{PROGRAM}")
        (tmp_path / name).chmod(0o755)
    programs = ServerPrograms(tmp_path / "kube-apiserver", tmp_path / "etcd", "1.34.4")
    objects = [(f"/registry/configmaps/a/{number}", f"{number}".encode()) for number in range(300)]
    async with real_server(programs, tmp_path, SystemClock(), services="172.30.0.0/16", objects=objects) as server:
        etcd, api = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("etcd", "kube-apiserver"))
        folder = tmp_path / "server-1"
        flags = etcd["flags"]
        files = [flags[name] for name in (*OF_ETCD, *(f"peer-{name}" for name in OF_ETCD[:3]))]
        assert {Path(each).parent for each in files} == {folder / "pki"}
        assert are_files(*files)
        assert {"client-cert-auth", "peer-client-cert-auth"} <= flags.keys()
        assert flags["data-dir"] == str(folder / "etcd")
        assert flags["advertise-client-urls"] == flags["listen-client-urls"]
        peer = flags["listen-peer-urls"]
        assert (flags["initial-advertise-peer-urls"], flags["initial-cluster"]) == (peer, f"default={peer}")
        served = api["flags"]
        assert are_files(*(served[name] for name in (*OF_SERVER, *OF_ACCOUNTS)))
        assert served["etcd-servers"] == flags["listen-client-urls"]
        assert (served["service-cluster-ip-range"], served["anonymous-auth"]) == ("172.30.0.0/16", "false")
        assert served["cert-dir"] == str(folder / "pki")
        assert {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} < {
            *served["disable-admission-plugins"].split(",")
        }
        ways = json.loads((folder / "egress.json").read_text())["egressSelections"]
        assert served["egress-selector-config-file"] == str(folder / "egress.json")
        assert {each["name"] for each in ways} == {"cluster", "controlplane"}
        sockets = {each["connection"]["transport"]["uds"]["udsName"] for each in ways}
        assert not are_files(*sockets)
        assert server.url == f"https://127.0.0.1:{served['secure-port']}"
        for name, user in (("admin", None), ("shop", "system:serviceaccount:default:shop")):
            path = folder / "admin.kubeconfig" if user is None else server.kubeconfig_for(name, user, ("some",))
            async with Client(load(str(path))) as client:
                assert await client.send(calls.get_path("/readyz")) == b"{}"
    asked = [line.partition(" ")[::2] for line in (tmp_path / "etcd.asked").read_text().splitlines()]
    assert {path for path, _ in asked} == {"/v3/kv/txn"}
    puts = [[each["requestPut"] for each in json.loads(body)["success"]] for _, body in asked]
    assert [len(each) for each in puts] == [256, 44]
    assert [
        (base64.b64decode(put["key"]).decode(), base64.b64decode(put["value"])) for each in puts for put in each
    ] == objects
    for each in (etcd, api):
        with pytest.raises(ProcessLookupError):
            os.kill(each["pid"], 0)
