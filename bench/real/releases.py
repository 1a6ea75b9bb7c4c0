"""Rehearsed releases beside real ones: seeded, on a cluster of two real nodes, applied after `runup rehearse`.

Told is how often both said the same, and each case in which they did not. Needs what `make real` needs.
"""

from __future__ import annotations

import time
from typing import Any

from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import Kube
from tests.realcluster.release_truth import measured


def run(*, applied: int = 6, applied_from: int = 1) -> dict[str, Any]:
    """Compares the releases of that many seeds."""
    begun = time.monotonic()
    with RealCluster() as cluster:
        kube = Kube(cluster.kubeconfig)
        told = measured(cluster, kube, range(applied_from, applied_from + applied))
        kube.close()
    return {"seeds": applied, "seconds": round(time.monotonic() - begun), **told}
