"""Nine dumps of real clusters, imported: `upgrade status` byte for byte as oc, and a preflight to the end.

The status comes through controller, object and command, and the command runs as a user who may read UpdateStatus and
nothing else, so what it prints can only come from there. The preflight has exactly the risks that a person finds in the
YAML.

The table was made by reading the dumps, not by running the checks; `docs/explanation/corpus-preflight.md` has the
reading, line by line. Kinds that a dump does not hold are Unknown. Of the same dumps others are made, as they come:
with a separate FeatureGate and masters of the old label alone, without nodes, hosted, packed, as an Insights
archive.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys import ending
from tests.journeys.cluster.imported_status import CORPUS, oc_now, reader, settle
from tests.journeys.conftest import COMMAND_S, RUNUP, Sandbox

from kubekit.lang import yaml as kyaml
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind, clusters_of

JSON = dict[str, Any]
CONFIG = ("config.openshift.io", "v1")
MASTER = "node-role.kubernetes.io/master"
UPDATING = "ClusterVersionUpdating"
# The operator of the sandbox says that a cluster in the middle of an update is not upgradeable.
HELD_BACK = "ClusterVersionUpgradeable"
# It refuses minor updates of the others, because it cannot read the gates for acknowledgements: no dump has them.
GATES = HELD_BACK
KUBELETS = "KubeletSkewUnknown"  # six of the dumps have nodes without nodeInfo
FEATURES, BUDGETS = "FeatureSetForbidsUpdates", "PodDisruptionBudgetBlocksDrain"
PODS = "PodDisruptionBudgetPodsUnknown"
PARTLY = {f"{BUDGETS}Unknown", PODS}  # of budgets that were collected in the namespace shop only
ABSENT = {FEATURES, f"{BUDGETS}Unknown", PODS}  # of kinds that none of the nine has
# What the checks with a separate example could not tell. All dumps hold enough of what nine of them read; the
# others read webhooks, definitions, pods, operators of OLM, ..., which none has: each of them must say so.
COULD_NOT_TELL = {check.unknown_risk for check in CHECKS if check.about and ClusterKind.OPENSHIFT in clusters_of(check)}
LACKING = COULD_NOT_TELL - {
    "AdmissionPolicyRemovedVersionUnknown",  # 1.29 and 1.32 remove a version that a rule could name
    "ArchitecturesMixedUnknown",
    "ClusterVersionOverridesUnknown",
    "ContainerRuntimeTooOldUnknown",
    "MachineConfigPoolCannotMoveUnknown",
    "MaxUnavailableUnsafeUnknown",
    "NodePressureUnknown",
    "NodeReleasesMixedUnknown",  # of nodes without nodeInfo
    "NodeUninitializedUnknown",
    "PackageBasedNodesUnknown",  # matters from 4.19 on, and the one dump that goes there has what it reads
    "RemovedAPIStoredUnknown",  # 1.29 and 1.32 remove something
    "ExecNeedsCreateUnknown",  # matters for Kubernetes 1.35
    "GatewayAPIForeignUnknown",  # matters from 4.19 on
    "HeadroomShortUnknown",  # a single node is not drained
    "OSImageOverriddenUnknown",  # pools of generated MachineConfigs alone have no other image
    "SELinuxMountConflictUnknown",  # matters for a planned version of Kubernetes
}
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
    "not-upgrading": {GATES, KUBELETS},
}


def raw(case: str, part: str) -> list[JSON]:
    """The objects of a part of a case."""
    document = kyaml.load((CORPUS / f"{case}-{part}.yaml").read_bytes())
    return list(document["items"]) if "items" in document else [document]


def write(file: Path, obj: JSON) -> None:
    """One object, one file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(obj))


def must_gather(folder: Path) -> Path:
    """Packed, with a default cluster's FeatureGate, masters of the old label only, and thirty budgets of v1beta1."""
    case, scoped = "not-upgrading", folder / "image" / "cluster-scoped-resources"
    config, pools = scoped / "config.openshift.io", scoped / "machineconfiguration.openshift.io"
    write(config / "clusterversions" / "version.json", named(raw(case, "cv")[0], *CONFIG, "ClusterVersion"))
    for obj in raw(case, "co"):
        write(config / "clusteroperators" / file_of(obj), named(obj, *CONFIG, "ClusterOperator"))
    for obj in raw(case, "mcp"):
        write(pools / "machineconfigpools" / file_of(obj), obj)
    for obj in raw(case, "node"):
        obj["metadata"]["labels"].pop("node-role.kubernetes.io/control-plane", None)
        write(scoped / "core" / "nodes" / file_of(obj), named(obj, "", "v1", "Node"))
    details = [{"version": "4.14.1", "enabled": [{"name": "Other"}], "disabled": [{"name": "ClusterUpdatePreflight"}]}]
    gate: JSON = {"metadata": {"name": "cluster"}, "spec": {}, "status": {"featureGates": details}}
    write(config / "featuregates" / "cluster.json", named(gate, *CONFIG, "FeatureGate"))
    items = [blocking(f"budget-{number}") for number in range(30)]
    budgets: JSON = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudgetList", "items": items}
    write(folder / "image" / "namespaces" / "shop" / "policy" / "poddisruptionbudgets.json", budgets)
    (folder / "image" / "version").write_text("openshift/must-gather\n4.14.1\n")
    with tarfile.open(folder / "must-gather.tar.gz", "w:gz") as archive:
        archive.add(folder / "image", arcname="must-gather.local.1/image")
    return folder / "must-gather.tar.gz"


def blocking(name: str) -> JSON:
    """A budget that never allows an eviction, by the counts that came with it."""
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
        "status": {**counts, "observedGeneration": 1},
    }


def without_nodes(folder: Path) -> Path:
    """A case of which somebody left the nodes out."""
    for part in ("cv", "co", "mcp"):
        (folder / f"less-{part}.yaml").write_bytes((CORPUS / f"not-upgrading-{part}.yaml").read_bytes())
    return folder / "less"


LISTED: JSON = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}}


def hosted(folder: Path) -> Path:
    """A cluster whose control plane runs elsewhere: no masters, and no pools, which an empty list says."""
    workers = [obj for obj in raw("not-upgrading", "node") if MASTER not in obj["metadata"]["labels"]]
    topology = {"controlPlaneTopology": "External", "infrastructureTopology": "HighlyAvailable"}
    infrastructure: JSON = {"metadata": {"name": "cluster"}, "spec": {}, "status": topology}
    write(folder / "cv.json", named(raw("not-upgrading", "cv")[0], *CONFIG, "ClusterVersion"))
    write(folder / "infrastructure.json", named(infrastructure, *CONFIG, "Infrastructure"))
    write(folder / "nodes.json", {**LISTED, "items": workers})
    write(folder / "machineconfigpools.json", {**LISTED, "items": []})
    write(folder / "poddisruptionbudgets.json", {**LISTED, "items": []})
    (folder / "clusteroperators.yaml").write_bytes((CORPUS / "not-upgrading-co.yaml").read_bytes())
    return folder


def insights(folder: Path) -> Path:
    """As the Insights operator packs it: no object says what it is."""
    config = folder / "config"
    write(config / "version.json", bare(raw("4.16.0-single-node", "cv")[0]))
    for part, name in (("co", "clusteroperator"), ("mcp", "machineconfigpools"), ("node", "node")):
        for obj in raw("4.16.0-single-node", part):
            write(config / name / file_of(obj), bare(obj))
    write(config / "featuregate.json", {"metadata": {"name": "cluster"}, "spec": {}, "status": {}})
    write(config / "pdbs" / "shop" / "till.json", blocking("till"))
    gatherers = ("nodes", "operators", "machine_config_pools")
    reports = [{"name": f"clusterconfig/{name}", "errors": None, "panic": None} for name in gatherers]
    write(folder / "insights-operator" / "gathers.json", {"status_reports": reports})
    with tarfile.open(folder / "insights.tar.gz", "w:gz") as archive:
        for name in ("config", "insights-operator"):
            archive.add(folder / name, arcname=name)
    return folder / "insights.tar.gz"


def named(obj: JSON, group: str, version: str, kind: str) -> JSON:
    """With what a separate file has to say."""
    return {**obj, "apiVersion": f"{group}/{version}" if group else version, "kind": kind}


def bare(obj: JSON) -> JSON:
    """Without it."""
    return {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}


def file_of(obj: JSON) -> str:
    """The file that an object lies in."""
    return f"{obj['metadata']['name']}.json"


MADE: dict[str, tuple[Callable[[Path], Path], set[str]]] = {
    "a packed must-gather with its FeatureGate and masters of the old label": (
        must_gather,
        {BUDGETS, *PARTLY, GATES, KUBELETS},
    ),
    "a dump without nodes": (without_nodes, {*ABSENT, GATES, KUBELETS, "NodeHealthUnknown", "NodePoolsUnknown"}),
    "a hosted cluster": (hosted, {FEATURES, GATES, KUBELETS}),
    "an Insights archive": (insights, {"ClusterOperatorDegraded-network", UPDATING, HELD_BACK, BUDGETS, *PARTLY}),
}


@pytest.fixture(scope="module")
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox made from one dump: one of the nine, or one that is made of them. It is the world of all its tests."""
    data = Path(tempfile.mkdtemp(prefix="runup-test-import-"))
    source = request.param(tmp_path_factory.mktemp("dump")) if callable(request.param) else CORPUS / request.param
    words = ["sandbox", "start", "--import", str(source), "--data", str(data)]
    try:
        done = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 0, done.stderr
        assert "left out, in part or whole" not in done.stdout
        assert "are open for the sandbox's operator" in done.stdout
        yield Sandbox(data)
    finally:
        ending.end(data)


def _one_world(case: str) -> pytest.MarkDecorator:
    return pytest.mark.xdist_group(f"import-{case}")


# Of one sandbox the status comes first: it is as oc has it while nobody has asked for anything.
STATUS = [pytest.param(case, case, id=case, marks=_one_world(case)) for case in CASES]
EVERY = [
    *(pytest.param(case, expected | ABSENT, id=case, marks=_one_world(case)) for case, expected in CASES.items()),
    *(pytest.param(make, expected, id=name, marks=_one_world(name)) for name, (make, expected) in MADE.items()),
]
WITHOUT_CORPUS = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of dumps is not beside this checkout")


@WITHOUT_CORPUS
def test_every_case_of_oc_is_imported() -> None:
    """None was added to the corpus that is not looked at here."""
    assert {file.name.removesuffix(".output") for file in CORPUS.glob("*.output")} == CASES.keys()


@WITHOUT_CORPUS
@pytest.mark.parametrize(("imported", "case"), STATUS, indirect=["imported"], scope="module")
def test_the_object_tells_what_oc_tells(imported: Sandbox, case: str) -> None:
    """Both outputs of each case."""
    settle(imported)
    environment = {**os.environ, "KUBECONFIG": str(reader(imported))}
    for output, flags in (("output", ()), ("detailed-output", ("--details=all",))):
        words = [*RUNUP, "upgrade", "status", *flags, "--mock-now", oc_now(case)]
        done = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=COMMAND_S)
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode() == (CORPUS / f"{case}.{output}").read_text(), done.stderr


@WITHOUT_CORPUS
@pytest.mark.parametrize(("imported", "expected"), EVERY, indirect=["imported"], scope="module")
def test_a_dump_is_preflighted_to_the_end(imported: Sandbox, expected: set[str]) -> None:
    """No false risk, none missed, and what the dump lacks is Unknown."""
    releases = json.loads(imported.run("sandbox", "status", "--data", str(imported.data), "-o", "json").out)
    target = releases["cluster"]["releases"][1]
    done = imported.run("upgrade", "--mode=preflight", f"--to={target}", "--wait", "--timeout=4m")
    assert done.code in {2, 3}, done.err
    status = imported.cluster_version().status
    names = {
        risk.name
        for risk in status.conditional_update_risks
        if any(condition.status != "False" for condition in risk.conditions if condition.type == "Applies")
    }
    of_target = next(set(entry.risk_names) for entry in status.conditional_updates if entry.release.version == target)
    found = names & of_target
    assert found - COULD_NOT_TELL == expected
    assert LACKING - found == set()
