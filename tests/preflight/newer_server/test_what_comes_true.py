"""What a preflight says of a cluster of Kubernetes 1.34, and what comes true when a newer server takes its etcd over.

A cluster with planted risks and lookalikes runs on the one server, the preflight judges it for the newer version, then
the newer server takes the older one's place on the same etcd, and each plant's request is made. Every risk is named
and comes true, no lookalike is or does. It takes the programs of both versions: those of `make e2e`, and of
`RUNUP_KUBERNETES=newest make e2e`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane import build
from tests.controlplane.backends import Backends
from tests.controlplane.plane import ControlPlane
from tests.preflight.newer_server.plants import NODES, POLICIES, SERVICES, Plant, Request, made, namespace, plants

from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.kube.request import Call
from kubekit.kube.request import Request as HttpRequest
from kubesandbox.apiserver.access import certs

JSON = dict[str, Any]
RUNUP = (sys.executable, "-c", "from runup.cli.main import main; raise SystemExit(main())")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("a newer server on the same etcd"),
]
DEADLINE_S = 240.0
# All versions that the servers have, and a kind of which the older one has a version that goes, and its gate in alpha.
FLAGS = ("--runtime-config=api/all=true", "--feature-gates=AllBeta=true,StorageVersionMigrator=true")
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
PLANTS = plants(b"", b"")
RISKS = [plant.id for plant in PLANTS if plant.risk]
LOOKALIKES = [plant.id for plant in PLANTS if not plant.risk]
# The risks that this cluster's plants have; what is said of other things, such as pods without room, is not tried here.
TRIED = {plant.risk for plant in PLANTS} - {""}


@dataclass(frozen=True)
class Updated:
    """What the preflight said, and what the newer server answered to each plant's request: "" if it did it."""

    risks: tuple[JSON, ...]
    unknown: tuple[str, ...]
    before: dict[str, tuple[str, ...]]
    answers: dict[str, str]
    refused_objects: dict[str, str]


class Asking:
    """Makes requests of a server, and returns its errors as text."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def ask(self, request: Request, *, dry_run: bool) -> str:
        """Returns what the server refused the request with, "" if it did it."""
        query = (("dryRun", "All"),) if dry_run and request.method != "GET" else ()
        headers = [("Accept", "application/json")]
        if request.body is not None:
            applied = request.method == "PATCH" and "apiVersion" in request.body
            content = (APPLY if applied else MERGE) if request.method == "PATCH" else "application/json"
            headers.append(("Content-Type", content))
            query += (("fieldManager", request.manager or "asked"), *((("force", "true"),) if applied else ()))
        body = None if request.body is None else json.dumps(request.body).encode()
        sent = HttpRequest(request.method, request.path, query, tuple(headers), body)
        try:
            self._client.send(Call(sent, bytes))
        except KubeError as error:
            return error.message
        return ""

    def do(self, request: Request) -> None:
        """Makes a request that has to succeed, once what it needs is served."""
        deadline = time.monotonic() + DEADLINE_S
        while why := self.ask(request, dry_run=False):
            assert time.monotonic() < deadline, f"{request}: {why}"
            time.sleep(0.1)

    def await_aggregation(self) -> None:
        """Wait until the aggregator has found out of both of its APIs whether somebody answers."""
        deadline = time.monotonic() + DEADLINE_S
        wanted = {"v1.gone.metrics.example.com": "False", "v1.guard.metrics.example.com": "True"}
        while True:
            found = {name: self._available(name) for name in wanted}
            if found == wanted:
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.1)

    def _available(self, name: str) -> str:
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{name}"
        conditions = json.loads(self._client.send(calls.get_path(path))).get("status", {}).get("conditions", [])
        return next((each["status"] for each in conditions if each["type"] == "Available"), "")


def programs(kubernetes: str) -> Path:
    """The programs of that version; skips where there are none, or fails where they are asked for by name."""
    if os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("KUBEBUILDER_ASSETS names programs of one version, and this takes two")
    try:
        return build.find({**os.environ, build.KUBERNETES: kubernetes})
    except build.Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required" and os.environ.get(build.KUBERNETES, "") == kubernetes:
            raise
        how = f"{build.KUBERNETES}={kubernetes} make e2e" if kubernetes else "make e2e"
        pytest.skip(f"this takes two versions of kube-apiserver, and one is not built ({how} does it): {error}")


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Updated]:
    """The cluster, judged on the older server and asked on the newer one."""
    older, newer = programs(""), programs(build.NEWEST)
    minor = build.version({build.KUBERNETES: build.NEWEST}).split(".")[1]
    folder, now = tmp_path_factory.mktemp("newer-server"), SystemClock().now()
    ca, _ = certs.load_or_create(folder / "pki", now)
    ended = certs.new_ca(now - timedelta(days=4000))
    every = plants(ca.cert, ended.cert)
    plane = ControlPlane(
        folder,
        older,
        disabled_admission="TaintNodesByCondition",
        kubelet=Backends(folder, SERVICES, now),
        flags=FLAGS,
    )
    with plane:
        with SyncClient(config.load(str(plane.kubeconfig))) as client:
            before = plant_all(Asking(client), every)
        report = judged(plane.kubeconfig, f"1.{minor}")
        plane.restart_server(programs=newer)
        with SyncClient(config.load(str(plane.kubeconfig))) as client:
            answers = asked_of(Asking(client), every)
            refused = {
                request.path: why
                for plant in every
                for request in plant.planted
                if (why := changed(Asking(client), request))
            }
    yield Updated(
        tuple(risk for risk in report["risks"] if risk["applies"] == "True"),
        tuple(check["name"] for check in report["checks"] if check["result"] == "Unknown"),
        before,
        answers,
        refused,
    )


def plant_all(asking: Asking, every: tuple[Plant, ...]) -> dict[str, tuple[str, ...]]:
    """Plants everything, and returns what the older server says to what each plant is asked before."""
    _, account = namespace("kube-system")
    for request in (*made(account, *NODES, *POLICIES), *(each for plant in every for each in plant.planted)):
        asking.do(request)
    asking.await_aggregation()
    return {plant.id: tuple(asking.ask(each, dry_run=True) for each in plant.before) for plant in every}


def judged(kubeconfig: Path, target: str) -> JSON:
    """The report of a preflight of that version."""
    words = ("preflight", "run", "--kubeconfig", str(kubeconfig), "--to", target, "--api-metrics", "-o", "json")
    ran = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 2, ran.stderr
    report: JSON = json.loads(ran.stdout)
    return report


def asked_of(asking: Asking, every: tuple[Plant, ...]) -> dict[str, str]:
    """What the server answers to each plant: to the risks until they come true, to the lookalikes after that.

    A server that has just started may not know each webhook and policy yet.
    """
    answers: dict[str, str] = {}
    deadline = time.monotonic() + DEADLINE_S
    for plant in sorted(every, key=lambda each: not each.risk):
        while True:
            answers[plant.id] = asking.ask(plant.request, dry_run=True)
            as_expected = re.search(plant.comes_true, answers[plant.id]) if plant.risk else not answers[plant.id]
            if as_expected or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    return answers


def changed(asking: Asking, request: Request) -> str:
    """What the newer server refuses a change of a planted object with."""
    if request.method != "POST" or request.body is None or "/v1beta1/" in request.path:
        return ""
    metadata: JSON = {"annotations": {"example.com/changed": "yes"}}
    path = f"{request.path}/{request.body['metadata']['name']}"
    why = asking.ask(Request("PATCH", path, {"metadata": metadata}), dry_run=True)
    return "" if "not found" in why or "could not find" in why else why


def is_about(risk: JSON, text: str) -> bool:
    """Whether the risk names the object, as `Kind namespace/name`, or is named after it."""
    kind, _, key = text.partition(" ")
    space, _, name = key.rpartition("/")
    return risk["name"].endswith(f"-{text}") or any(
        (each.get("kind"), each.get("namespace", ""), each["name"]) == (kind, space, name)
        for each in risk.get("resources") or ()
    )


BY_ID = {plant.id: plant for plant in PLANTS}


@pytest.mark.parametrize("id_", RISKS)
def test_a_risk_is_named_and_comes_true(updated: Updated, id_: str) -> None:
    """By the preflight, of the objects that it is about; and on the newer server."""
    plant = BY_ID[id_]
    named = [risk for risk in updated.risks if risk["name"] == plant.risk]
    assert named, sorted({risk["name"] for risk in updated.risks})
    assert [text for text in plant.about if not any(is_about(risk, text) for risk in named)] == []
    assert re.search(plant.comes_true, updated.answers[id_]), updated.answers[id_]


@pytest.mark.parametrize("id_", LOOKALIKES)
def test_a_lookalike_is_not_named_and_does_not_happen(updated: Updated, id_: str) -> None:
    """Neither by a risk that is tried here, nor on the newer server."""
    plant = BY_ID[id_]
    named = {risk["name"] for risk in updated.risks for text in plant.about if is_about(risk, text)}
    assert {name for name in named if name in TRIED or name.startswith("RemovedAPIRequested-")} == set()
    assert updated.answers[id_] == ""


@pytest.mark.parametrize("id_", [plant.id for plant in PLANTS if plant.before])
def test_before_the_update(updated: Updated, id_: str) -> None:
    """The older server serves the version that goes, and asks the webhook that is not asked any more."""
    for why in updated.before[id_]:
        assert ("failed calling webhook" in why) if BY_ID[id_].risk == "WebhookRemovedVersion" else why == ""


def test_what_is_stored_can_be_changed(updated: Updated) -> None:
    """No validation of the newer server refuses an object as the older one stored it, but where a webhook does."""
    others = {path: why for path, why in updated.refused_objects.items() if "failed calling webhook" not in why}
    assert others == {}


def test_everything_could_be_told(updated: Updated) -> None:
    """A live cluster, asked by its administrator."""
    assert updated.unknown == ()


def test_enough_is_planted() -> None:
    """Forty of each."""
    assert len(BY_ID) == len(PLANTS)
    assert (len(RISKS) >= 40, len(LOOKALIKES) >= 40) == (True, True)
