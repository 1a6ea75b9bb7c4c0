"""A cluster of Kubernetes 1.34 with planted risks and lookalikes on a real server, and what a preflight says of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

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
DEADLINE_S = 240.0
# All versions that the servers have, and a kind of which the older one has a version that goes, and its gate in alpha.
FLAGS = ("--runtime-config=api/all=true", "--feature-gates=AllBeta=true,StorageVersionMigrator=true")
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


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
        sent = HttpRequest(method=request.method, path=request.path, query=query, headers=tuple(headers), body=body)
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


@contextmanager
def planted(folder: Path, programs: Path) -> Iterator[tuple[ControlPlane, tuple[Plant, ...]]]:
    """The control plane with every plant in it, on the server of `programs`."""
    now = SystemClock().now()
    ca, _ = certs.load_or_create(folder / "pki", now)
    ended = certs.new_ca(now - timedelta(days=4000))
    every = plants(ca.cert, ended.cert)
    plane = ControlPlane(
        folder,
        programs,
        disabled_admission="TaintNodesByCondition",
        kubelet=Backends(folder, SERVICES, now),
        flags=FLAGS,
    )
    _, account = namespace("kube-system")
    with plane:
        with SyncClient(config.load(str(plane.kubeconfig))) as client:
            asking = Asking(client)
            for request in (*made(account, *NODES, *POLICIES), *(each for plant in every for each in plant.planted)):
                asking.do(request)
            asking.await_aggregation()
        yield plane, every


def asked_before(kubeconfig: Path, every: Iterable[Plant]) -> dict[str, tuple[str, ...]]:
    """What the older server says to what each plant is asked before the update."""
    with SyncClient(config.load(str(kubeconfig))) as client:
        asking = Asking(client)
        return {plant.id: tuple(asking.ask(each, dry_run=True) for each in plant.before) for plant in every}


def report_of(kubeconfig: Path, target: str) -> JSON:
    """The report of a preflight of that version."""
    words = ("preflight", "run", "--kubeconfig", str(kubeconfig), "--to", target, "--api-metrics", "-o", "json")
    ran = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 2, ran.stderr
    report: JSON = json.loads(ran.stdout)
    return report


def is_named(plant: Plant, risks: Iterable[JSON]) -> bool:
    """Whether a preflight reports a plant: under its own name, of a lookalike under any that is tried."""
    if not plant.risk:
        return bool(tried_risks_about(plant, risks))
    named = [risk for risk in risks if risk["name"] == plant.risk]
    return bool(named) and all(any(is_about(risk, text) for risk in named) for text in plant.about)


def tried_risks_about(plant: Plant, risks: Iterable[JSON]) -> set[str]:
    """The names of the risks of plants' kinds that are about the plant; what is said of other things is not tried."""
    tried = {each.risk for each in plants(b"", b"")} - {""}
    named = {risk["name"] for risk in risks for text in plant.about if is_about(risk, text)}
    return {name for name in named if name in tried or name.startswith("RemovedAPIRequested-")}


def is_about(risk: JSON, text: str) -> bool:
    """Whether the risk names the object, as `Kind namespace/name`, or is named after it."""
    kind, _, key = text.partition(" ")
    space, _, name = key.rpartition("/")
    return risk["name"].endswith(f"-{text}") or any(
        (each.get("kind"), each.get("namespace", ""), each["name"]) == (kind, space, name)
        for each in risk.get("resources") or ()
    )
