"""`python -m bench fleet_hub`: `fleet preflight --hub` with thousands of clusters, and one that sends another's report.

The hub is the sandbox's API server with a ManagedCluster and a ManifestWork for each cluster, as the agents of Open
Cluster Management leave them (`tests/ocm` has the real ones). Each report has ten risks. The report of one cluster has
the ID of another: it must be named, and all others must be evaluated.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace
from tests.cli.fleet.test_hub_commands import KINDS, NAMESPACES, definition
from tests.fleet.decide.test_hub_clusters import report, travelled, work
from tests.servers import CRD, eventually, serve

from bench.aims import OF_TARGETS
from bench.measure import pace
from kubekit.api import codec
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.report.report import Report, ReportedCheck, ReportedRisk

RISKS, WRITERS = 10, 8
FORGED = "c00001"
JSON = dict[str, Any]


def _report(number: int) -> Report:
    """Returns a report with the cluster's ID; that of FORGED has the ID of another cluster."""
    risks = tuple(
        ReportedRisk(name=f"Risk{each}", applies="True", message=f"It is so in cluster {number}.", severity="warning")
        for each in range(RISKS)
    )
    cluster_id = _cluster_id(0 if f"c{number:05}" == FORGED else number)
    checks = (ReportedCheck(name="Risk0", result="Applies"),)
    observed = SystemClock().now() - timedelta(minutes=1)
    return replace(report(observed), risks=risks, checks=checks, cluster_id=cluster_id)


def _cluster_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _write(kubeconfig: str, numbers: range) -> None:
    """Writes the objects of some clusters."""
    with SyncClient(config.load(kubeconfig)) as client:
        for number in numbers:
            name = f"c{number:05}"
            cluster = {
                "metadata": {"name": name},
                "spec": {"hubAcceptsClient": True},
                "status": {
                    "conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True"}],
                    "clusterClaims": [{"name": "id.openshift.io", "value": _cluster_id(number)}],
                },
            }
            addon_work = codec.to_dict(work(travelled(_report(number)), name))
            for kind, obj in (
                (NAMESPACES, {"metadata": {"name": name}}),
                (KINDS[0], cluster),
                (KINDS[2], addon_work),
            ):
                client.send(calls.apply(kind, obj, field_manager="bench"))


def _served(client: SyncClient) -> bool:
    try:
        return all(client.send(calls.list_raw(kind)) is not None for kind in KINDS)
    except NotFound:
        return False


def _measured(kubeconfig: Path, scratch: Path) -> JSON:
    """Runs the command, and returns what it found and took."""
    lines = scratch / "jsonl"
    words = [sys.executable, "-m", "runup", "fleet", "preflight", "--kubeconfig", str(kubeconfig), "--hub", "hub"]
    before, started = pace(), time.perf_counter()
    peak_kib = 0
    errors = scratch / "stderr"
    with errors.open("wb") as stderr:
        with subprocess.Popen([*words, "-o", f"jsonl={lines}"], stdout=subprocess.DEVNULL, stderr=stderr) as process:
            while process.poll() is None:
                status = Path(f"/proc/{process.pid}/status")
                try:
                    peak_kib = max(peak_kib, *map(int, re.findall(r"VmHWM:\s+(\d+)", status.read_text())), 0)
                except OSError:
                    break  # it has ended
                time.sleep(0.1)
        seconds = time.perf_counter() - started
    results = [json.loads(line) for line in lines.read_text().splitlines()]
    failed = [each for each in results if each["result"] == "CouldNotRun"]
    return {
        "seconds": round(seconds, 1),
        "pace": round((before + pace()) / 2, 3),
        "parent_mib": round(peak_kib / 1024, 1),
        "evaluated": len(results) - len(failed),
        "not evaluated": {each["cluster"]: each["conditions"][0]["message"] for each in failed},
        "stderr": errors.read_text()[-500:],
    }


def main(words: list[str]) -> int:
    """Fills the hub, and prints the figures; 1 if another cluster than the forged one has no result."""
    parser = argparse.ArgumentParser(prog="python -m bench fleet_hub", description=__doc__)
    parser.add_argument("--clusters", type=int, default=5000)
    flags = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="bench-hub-") as place:
        scratch = Path(place)
        server = next(servers := serve(scratch / "server", "Default"))
        try:
            for kind in KINDS:
                server.client.send(calls.apply(CRD, definition(kind), field_manager="bench"))
            eventually(partial(_served, server.client), "the kinds of the hub are served")
            step = -(-flags.clusters // WRITERS)
            parts = [range(first, min(first + step, flags.clusters)) for first in range(0, flags.clusters, step)]
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(partial(_write, str(server.kubeconfig)), parts))
            print(f"bench: fleet_hub: {flags.clusters} clusters are on the hub", file=sys.stderr, flush=True)
            content = yaml.safe_load(server.kubeconfig.read_text())
            content["contexts"][0]["name"] = content["current-context"] = "hub"
            (scratch / "kubeconfig").write_text(yaml.safe_dump(content))
            result = _measured(scratch / "kubeconfig", scratch)
        finally:
            servers.close()
    at_pace_s = round(result["seconds"] * OF_TARGETS.pace / result["pace"], 1)
    print(json.dumps({"clusters": flags.clusters, **result, "seconds_at_the_pace_of_the_targets": at_pace_s}, indent=2))
    return 0 if list(result["not evaluated"]) == [FORGED] else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
