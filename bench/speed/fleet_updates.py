"""`python -m bench fleet_updates`: a FleetUpdate on a hub of 100, 300 and 1,000 clusters, without the hub's engine.

The hub is the sandbox's API server. This program writes what the engine and the agents of Open Cluster Management would
write: a ManifestWork with the run of each cluster and its status, and turns for as many as the rollout allows. Of the
clusters 5 % have a red preflight, 1 % have failed, and 2 % are not heard of. The controller runs in a process of its
own. A pass is measured while nothing changes, and after one cluster in a hundred has changed.

The aims are 50 ms of a core for a pass, 150 MiB, 16 KiB for the status and 3 s for `fleet update status --hub` at 1,000
clusters, and an exponent of 1.1 at most.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.fleet.control.hub_world import CLUSTERS, NAMESPACE, NAMESPACES, HubWorld, hub_world
from tests.fleet.decide.fleet_updates import rollout, stage

from bench.aims import OF_TARGETS, exponent
from bench.measure import pace
from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.fleet.control.hub_controller import FleetController
from runup.fleet.control.hub_fleets import DECISIONS, FLEETS, LEASE, PLACEMENT_LABEL, read_hub

SIZES, WRITERS, CONCURRENCY, PASSES = (100, 300, 1000), 8, 30, 7
# The exit code of the status while updates run.
UPDATES_RUN = 2
RED, FAILED, SILENT = 0.05, 0.01, 0.02
# Placements write at most so many clusters to one PlacementDecision.
# https://open-cluster-management.io/docs/concepts/content-placement/placement/
DECISION = 100
AIM = {"pass_ms": 50, "memory_mib": 150, "status_bytes": 16 * 1024, "status_command_s": 3, "exponent": 1.1}
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
JSON = dict[str, Any]


def _name(number: int) -> str:
    return f"c{number:05}"


def _register(kubeconfig: str, numbers: range, silent: frozenset[int]) -> None:
    """Writes the ManagedClusters and their namespaces."""
    with SyncClient(config.load(kubeconfig)) as client:
        world = HubWorld(client, Path(kubeconfig))
        for number in numbers:
            available = {
                "type": "ManagedClusterConditionAvailable",
                "status": "Unknown" if number in silent else "True",
                "reason": "x",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            client.send(calls.apply(NAMESPACES, {"metadata": {"name": _name(number)}}, field_manager="bench"))
            spec = {"hubAcceptsClient": True}
            world.put(CLUSTERS, _name(number), spec=spec, status={"conditions": [available]})


def _report(kubeconfig: str, numbers: range, states: dict[int, str]) -> None:
    """Writes the works of clusters as their agents do."""
    with SyncClient(config.load(kubeconfig)) as client:
        world = HubWorld(client, Path(kubeconfig))
        sets = world.sets()
        world.sets = lambda: sets  # type: ignore[method-assign]
        for number in numbers:
            state, name = states[number], _name(number)
            if state in ("running", "failed"):
                world.report(name, "t1", {"Progressing": "True"}, done="NotYet")
            step = {"running": "ControlPlane", "failed": "Failed", "done": "Done"}.get(state, "Waiting")
            outcome = "Succeeded" if state == "done" else "NotYet"
            world.run(name, step, outcome, gates="PreflightRisks" if state == "red" else "NoTurn")


def _spread(kubeconfig: Path, total: int, work: Any, *arguments: Any) -> None:
    step = -(-total // WRITERS)
    parts = [range(first, min(first + step, total)) for first in range(0, total, step)]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda part: work(str(kubeconfig), part, *arguments), parts))


def _begin(hub: HubWorld, total: int, seed: int) -> dict[int, str]:
    """Fills the hub with the clusters of an update in progress, and returns the state of each."""
    drawn = random.Random(seed)
    numbers = list(range(total))
    drawn.shuffle(numbers)
    silent, failed, red = (int(total * share) for share in (SILENT, FAILED, RED))
    states = dict.fromkeys(numbers, "waiting")
    kinds = ["silent"] * silent + ["failed"] * failed + ["red"] * red
    kinds += ["running"] * (CONCURRENCY - failed) + ["done"] * (total // 2)
    states |= dict(zip(numbers, kinds, strict=False))
    hub.begin(stages=[stage(rollout=rollout(CONCURRENCY, maxFailures=failed))], maxFailures=failed)
    _spread(hub.kubeconfig, total, _register, frozenset(number for number in states if states[number] == "silent"))
    for page in range(0, total, DECISION):
        chosen = [{"clusterName": _name(each), "reason": ""} for each in range(page, min(page + DECISION, total))]
        labels = {"labels": {PLACEMENT_LABEL: "canary"}}
        name = f"canary-decision-{page // DECISION + 1}"
        hub.put(DECISIONS, name, NAMESPACE, metadata=labels, status={"decisions": chosen})
    hub.passes(3)
    _spread(hub.kubeconfig, total, _report, states)
    renewed = hub.client.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {"holderIdentity": "bench", "leaseDurationSeconds": 3600, "renewTime": renewed}
    hub.put(LEASES, LEASE, NAMESPACE, spec=lease)
    return states


def control(kubeconfig: str) -> int:
    """Makes passes in this process as they are asked for on stdin, and prints what each took."""

    async def serve() -> None:
        with SyncClient(config.load(kubeconfig)) as reader:
            async with Client(reader.config) as client:
                controller = FleetController(client, SystemClock(), lambda: read_hub(reader, NAMESPACE))
                for _ in sys.stdin:
                    before, began = time.process_time(), time.perf_counter()
                    await controller.make_pass()
                    took = {"cpu_ms": (time.process_time() - before) * 1000, "s": time.perf_counter() - began}
                    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                    print(json.dumps({**took, "mib": peak_mib}), flush=True)

    asyncio.run(serve())
    return 0


def _writes(hub: HubWorld, since: int) -> list[JSON]:
    lines = (hub.kubeconfig.parent / "audit.log").read_text(encoding="utf-8").splitlines()[since:]
    return [each for each in map(json.loads, lines) if each["verb"] not in ("get", "list", "watch")]


def _audited(hub: HubWorld) -> int:
    return len((hub.kubeconfig.parent / "audit.log").read_text(encoding="utf-8").splitlines())


def _command(hub: HubWorld, *words: str) -> float:
    """Returns the median of the seconds that a command takes."""
    context = config.load(str(hub.kubeconfig)).context
    line = [sys.executable, "-m", "runup", "fleet", "update", "status", "five-one", "--hub", context, *words]
    took = []
    for _ in range(3):
        began = time.perf_counter()
        ran = subprocess.run([*line, "--kubeconfig", str(hub.kubeconfig)], check=False, stdout=subprocess.DEVNULL)
        assert ran.returncode == UPDATES_RUN, ran.returncode
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def measured(total: int, seed: int, scratch: Path) -> JSON:
    """Measures one size."""
    with hub_world(scratch / f"hub-{total}") as hub:
        states = _begin(hub, total, seed)
        print(f"bench: fleet_updates: {total} clusters are on the hub", file=sys.stderr, flush=True)
        line = [sys.executable, "-m", "bench.speed.fleet_updates", "--control", str(hub.kubeconfig)]
        before = pace()
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin is not None
            assert child.stdout is not None

            def make_pass() -> JSON:
                child.stdin.write("\n")  # type: ignore[union-attr]
                child.stdin.flush()  # type: ignore[union-attr]
                found: JSON = json.loads(child.stdout.readline())  # type: ignore[union-attr]
                return found

            settle = [make_pass() for _ in range(3)]
            audited = _audited(hub)
            idle = [make_pass() for _ in range(PASSES)]
            idle_writes = len(_writes(hub, audited))
            changed, writes = [], 0
            waiting = [number for number in sorted(states) if states[number] == "waiting"]
            for number in waiting[: total // 100]:
                _report(str(hub.kubeconfig), range(number, number + 1), {number: "red"})
                audited = _audited(hub)
                changed.append(make_pass())
                writes += len(_writes(hub, audited))
            child.stdin.close()
        status = hub.fleet().status
        stored = calls.get_raw(FLEETS, "five-one", NAMESPACE)
        size = len(json.dumps(hub.client.send(stored)["status"], separators=(",", ":")))
        figures = {
            "pass_ms": statistics.median(each["cpu_ms"] for each in idle),
            "changed_pass_ms": statistics.median(each["cpu_ms"] for each in changed),
            "pass_s": statistics.median(each["s"] for each in idle),
            "memory_mib": max(each["mib"] for each in (*settle, *idle, *changed)),
            "status_bytes": size,
            "status_command_s": _command(hub),
            "status_of_clusters_command_s": _command(hub, "--clusters"),
        }
        counts = {state: getattr(status.stages[0], state) for state in ("done", "running", "failed", "unknown")}
        return {
            **{name: round(value, 3) for name, value in figures.items()},
            "writes_idle": idle_writes,
            "writes_per_changed_pass": writes / len(changed),
            "pace": round((before + pace()) / 2, 3),
            "clusters": {**counts, "waiting": status.stages[0].waiting, "ready": status.stages[0].ready},
        }


def main(words: list[str]) -> int:
    """Prints the figures of each size, their exponents, and how those of the largest compare with the aims."""
    parser = argparse.ArgumentParser(prog="python -m bench fleet_updates", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="CLUSTERS")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--control", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    flags = parser.parse_args(words)
    if flags.control:
        return control(flags.control)
    with tempfile.TemporaryDirectory(prefix="bench-fleet-updates-") as place:
        by_size = {size: measured(size, flags.seed, Path(place)) for size in flags.sizes}
    largest = max(by_size)
    # Seconds of a clock depend on what else the machine does; those of a processor hardly do.
    scaled = {size: OF_TARGETS.pace / figures["pace"] for size, figures in by_size.items()}
    costs = {
        name: {size: each[name] * (scaled[size] if name.endswith("_s") else 1) for size, each in by_size.items()}
        for name in (*AIM, "status_of_clusters_command_s")
        if name != "exponent"
    }
    grows = {name: exponent(by) for name, by in costs.items() if len(by) > 1}
    at_pace = {name: round(by[largest], 3) for name, by in costs.items() if name in AIM}
    holds = {name: value <= AIM[name] for name, value in at_pace.items()}
    holds |= {f"exponent of {name}": value <= AIM["exponent"] for name, value in grows.items()}
    result = {"sizes": by_size, "exponents": grows, "at_the_pace_of_the_targets": at_pace, "aims": AIM, "holds": holds}
    print(json.dumps(result, indent=2))
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
