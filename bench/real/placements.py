"""Placements and evictions of a simulated drain beside the real kube-scheduler and eviction API.

On seeded clusters of 10 to 30 nodes with constraints of every kind. Told is how often both sides say the same, and each
case in which they do not. Needs Go once, to build the programs (`make real` has them, too).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.rehearse.reference.beside_the_scheduler import RESOURCES, Agreement, Beside
from tests.rehearse.reference.real_scheduler import real_scheduler
from tests.rehearse.reference.seeded_cluster import FIXED, SeededCluster

from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient


def run(clusters: int = 50, first: int = 1, minutes: int = 0) -> dict[str, Any]:
    """Compares that many clusters, or as many as `minutes` let."""
    agreement, done, begun = Agreement(), 0, time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="runup-placements-") as folder,
        real_scheduler(Path(folder)) as (plane, told),
        SyncClient(config.load(str(plane.kubeconfig))) as client,
    ):
        for kind, obj in FIXED:
            client.send(calls.create(RESOURCES[kind], obj))
        for number in range(first, first + clusters):
            if minutes and time.monotonic() - begun > minutes * 60:
                break
            told.feasible.clear()
            told.victims.clear()
            Beside(client, told, SeededCluster(number), agreement).compare()
            done += 1
            print(f"placements: {done} of {clusters}, {len(agreement.different)} different", file=sys.stderr)
    return {
        "clusters": done,
        "seconds": round(time.monotonic() - begun),
        "same": {what: f"{agreement.same[what]} of {asked}" for what, asked in agreement.asked.items()},
        "kinds": dict(sorted(agreement.kinds.items())),
        "different": agreement.different,
    }
