"""Rehearsed drains beside real ones: seeded workloads on two real nodes, each drained after `runup rehearse drain`.

Told is how often both said the same, each case in which they did not with all that the API server did then, and how
long each drain was said to take and took. Needs what `make real` needs.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from tests.realcluster import drain_record, images
from tests.realcluster.cluster import RealCluster
from tests.realcluster.drain_truth import ANSWERS, Agreement, DrainTruth
from tests.realcluster.kube import Kube
from tests.realcluster.seeded_drain import SeededDrain


def run(*, drained: int = 10, drained_from: int = 1) -> dict[str, Any]:
    """Compares that many seeds."""
    agreement, begun = Agreement(), time.monotonic()
    with RealCluster(audit_rules=drain_record.RULES) as cluster:
        kube = Kube(cluster.kubeconfig)
        image = cluster.registry.push(images.python_base(), "python")
        for seed in range(drained_from, drained_from + drained):
            DrainTruth(cluster, kube, SeededDrain(seed, image)).compare(agreement)
            print(f"real_drains: up to seed {seed}: {_told(agreement)}", file=sys.stderr, flush=True)
        kube.close()
    told = _told(agreement) | {"as_it_was": agreement.as_it_was}
    return {"seeds": drained, "seconds": round(time.monotonic() - begun), **told}


def _told(agreement: Agreement) -> dict[str, Any]:
    return {
        "pods": agreement.pods,
        "same": {what: f"{agreement.same[what]} of {agreement.asked[what]}" for what in ANSWERS},
        "of_which_about_pods": {what: agreement.happened[what] for what in ANSWERS},
        "differ_and_were_named_a_race": {what: agreement.races[what] for what in ANSWERS},
        "drains_in_seconds": [{"rehearsed": said, "real": real} for said, real in agreement.seconds],
        "different": agreement.different,
    }
