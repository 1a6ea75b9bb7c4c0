"""Nine dumps of real clusters, imported and preflighted to the end: exactly the risks that a person finds in the YAML.

The table was made by reading the dumps, not by running the checks; `docs/corpus-preflight.md` has the reading, line by
line. Kinds that a dump does not hold are empty in the sandbox, so their checks find nothing there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.conftest import RUNUP, Sandbox

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "oc-status"
UPDATING = "ClusterVersionUpdating"
# The operator of the sandbox says that a cluster in the middle of an update is not upgradeable.
HELD_BACK = "ClusterVersionUpgradeable"
KUBELETS = "KubeletSkewUnknown"  # six of the dumps have nodes without nodeInfo
CASES = {
    "4.14.1-degraded": {
        "ClusterOperatorNotAvailable-control-plane-machine-set",
        "ClusterOperatorDegraded-etcd",
        "ClusterOperatorDegraded-kube-apiserver",
        "ClusterOperatorDegraded-kube-controller-manager",
        "ClusterOperatorDegraded-kube-scheduler",
        "ClusterVersionFailing",
        "EtcdMembersUnhealthy",
        "ClusterOperatorUpgradeable-control-plane-machine-set",
        "ClusterOperatorUpgradeable-machine-config",
        UPDATING,
        HELD_BACK,
        KUBELETS,
    },
    "4.14.1-paused-worker-pool": {UPDATING, HELD_BACK, "MachineConfigPoolPaused-worker", KUBELETS},
    "4.14.1-workers-started-updating-multiple-pools": {
        "ClusterOperatorNotAvailable-kube-storage-version-migrator",
        "ClusterOperatorUpgradeable-machine-config",
        "MachineConfigPoolUpdating-infra",
        "MachineConfigPoolUpdating-master",
        "MachineConfigPoolUpdating-worker",
        "NodeCordoned",
        UPDATING,
        HELD_BACK,
        KUBELETS,
    },
    "4.15.0-ec2-b02-cos-not-annotated": {
        "ClusterOperatorDegraded-cluster-api",
        "ClusterOperatorDegraded-dns",
        "ClusterOperatorUpgradeable-cluster-api",
        "ClusterOperatorUpgradeable-config-operator",
        "ClusterOperatorUpgradeable-machine-config",
        UPDATING,
        HELD_BACK,
        KUBELETS,
    },
    "4.15.0-ec2-early": {UPDATING, HELD_BACK, KUBELETS},
    "4.16.0-compact": {UPDATING, HELD_BACK},
    "4.16.0-single-node": {"ClusterOperatorDegraded-network", UPDATING, HELD_BACK},
    "no-version-upgrading": {
        "ClusterOperatorUpgradeable-machine-config",
        "MachineConfigPoolUpdating-worker",
        "NodeCordoned",
        HELD_BACK,
    },
    "not-upgrading": {KUBELETS},
}


@pytest.fixture
def imported(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox made from one dump."""
    data = Path(tempfile.mkdtemp(prefix="runup-test-import-"))
    words = ["sandbox", "start", "--import", str(CORPUS / request.param), "--data", str(data)]
    try:
        done = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 0, done.stderr
        assert "could not be created" not in done.stdout
        yield Sandbox(data)
    finally:
        subprocess.run([*RUNUP, "sandbox", "stop", "--data", str(data)], capture_output=True, check=False, timeout=60)
        shutil.rmtree(data, ignore_errors=True)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of dumps is not beside this checkout")
@pytest.mark.parametrize(("imported", "expected"), CASES.items(), ids=list(CASES), indirect=["imported"])
def test_a_dump_is_preflighted_to_the_end(imported: Sandbox, expected: set[str]) -> None:
    """No false risk, and none missed."""
    releases = json.loads(imported.run("sandbox", "status", "--data", str(imported.data), "-o", "json").out)
    target = releases["cluster"]["releases"][1]
    done = imported.run("upgrade", "--mode=preflight", f"--to={target}", "--wait", "--timeout=60s")
    assert done.code in {2, 3}, done.err
    status = imported.cluster_version().status
    names = {
        risk.name
        for risk in status.conditional_update_risks
        if any(condition.status != "False" for condition in risk.conditions if condition.type == "Applies")
    }
    of_target = next(set(entry.risk_names) for entry in status.conditional_updates if entry.release.version == target)
    assert names & of_target == expected
