"""Seeded releases applied to a copy of a cluster and to the cluster itself, which is a real kube-apiserver.

Told is how often both refuse the same in the same words, and change and create the same, and each case in which they do
not. Needs Go once, to build the programs (`make e2e` has them, too).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.controlplane import build
from tests.controlplane.plane import ControlPlane
from tests.rehearse.reference.beside_the_server import Agreement, compare
from tests.rehearse.reference.seeded_release import seeded_release
from tests.rehearse.rehearsed_world import CLUSTER_VERSION, populated

from kubekit.kube import calls


def run(releases: int = 50, seed_from: int = 1) -> dict[str, Any]:
    """Compares that many releases."""
    begun = time.monotonic()
    agreement = Agreement()
    with (
        tempfile.TemporaryDirectory(prefix="runup-rehearsals-") as folder,
        ControlPlane(Path(folder) / "plane", build.build()) as plane,
    ):
        asyncio.run(_compare_all(plane, range(seed_from, seed_from + releases), agreement))
    verdicts = agreement.asked["the same verdict"]
    return {
        "kubernetes": build.version(),
        "seconds": round(time.monotonic() - begun),
        "releases": agreement.releases,
        "releasesAlike": agreement.releases_alike,
        "objects": verdicts,
        "agreement": f"{agreement.same['the same verdict'] / max(verdicts, 1):.1%}",
        "same": {what: f"{agreement.same[what]} of {number}" for what, number in agreement.asked.items()},
        "different": agreement.different,
    }


async def _compare_all(plane: ControlPlane, seeds: range, agreement: Agreement) -> None:
    async with populated(plane.kubeconfig) as cluster:
        resource = await cluster.resource(CLUSTER_VERSION)
        uid = (await cluster.client.send(calls.get_raw(resource, "version")))["metadata"]["uid"]
        for number in seeds:
            await compare(cluster, seeded_release(number), agreement, uid)
            print(f"rehearsals: seed {number}, {len(agreement.different)} different", file=sys.stderr, flush=True)
