"""kube-scheduler and the disruption controller next to a real kube-apiserver, and what they say about pods.

The scheduler tells all nodes that passed its filters to an extender, which is here, and which chooses one of them; of
pods that find none it shows which could make way. So both sides can be compared node by node, not only by the choice.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.controlplane.plane import ControlPlane
from tests.realcluster import build

JSON = dict[str, Any]
Key = tuple[str, str]


@dataclass
class SchedulerAnswers:
    """What the scheduler told the extender, by namespace and name of the pod; `choose` takes a node or none."""

    feasible: dict[Key, frozenset[str]] = field(default_factory=dict)
    victims: dict[Key, dict[str, frozenset[str]]] = field(default_factory=dict)
    choose: Callable[[Key, frozenset[str]], str | None] = lambda _key, nodes: min(nodes)
    changed: threading.Condition = field(default_factory=threading.Condition)


@contextmanager
def real_scheduler(data: Path) -> Iterator[tuple[ControlPlane, SchedulerAnswers]]:
    """A control plane with kube-scheduler and the disruption controller; all end after the block."""
    programs = build.programs(make=True)
    shown = SchedulerAnswers()
    with ControlPlane(data) as plane, _extender(shown) as url, (data / "others.log").open("wb") as log:
        config = data / "scheduler.json"
        config.write_text(json.dumps(_config(plane, url)))
        commands = (
            [str(programs / "kube-scheduler"), f"--config={config}", "--secure-port=0"],
            [
                str(programs / "kube-controller-manager"),
                f"--kubeconfig={plane.kubeconfig}",
                "--controllers=disruption-controller",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=500",
                "--kube-api-burst=500",
            ],
        )
        processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
        try:
            yield plane, shown
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)


def _config(plane: ControlPlane, url: str) -> JSON:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.kubeconfig), "qps": 500, "burst": 500},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "extenders": [
            {
                "urlPrefix": url,
                "filterVerb": "filter",
                "preemptVerb": "preempt",
                "nodeCacheCapable": True,
                "httpTimeout": "60s",
            }
        ],
    }


@contextmanager
def _extender(shown: SchedulerAnswers) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            metadata = asked["Pod"]["metadata"]
            key = (metadata["namespace"], metadata["name"])
            with shown.changed:
                answer = _filtered(shown, key, asked) if self.path == "/filter" else _preempted(shown, key, asked)
                shown.changed.notify_all()
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _filtered(shown: SchedulerAnswers, key: Key, asked: JSON) -> JSON:
    nodes = frozenset(asked["NodeNames"])
    shown.feasible[key] = nodes
    chosen = shown.choose(key, nodes)
    if chosen is None:
        return {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(nodes, "not chosen")}
    return {"NodeNames": [chosen]}


def _preempted(shown: SchedulerAnswers, key: Key, asked: JSON) -> JSON:
    victims = asked["NodeNameToMetaVictims"] or {}
    shown.victims[key] = {node: frozenset(pod["UID"] for pod in each["Pods"] or ()) for node, each in victims.items()}
    # Nothing is preempted: which pods it would be is what is compared.
    return {"NodeNameToMetaVictims": {}}
