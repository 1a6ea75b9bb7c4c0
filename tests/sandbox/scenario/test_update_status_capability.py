"""Which clusters run the update status controller: those with the gate UpdateStatus, and with the capability."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from runup.dump import load
from runup.dump.documents import JSON
from runup.sandbox.scenario import folder as scenario
from runup.sandbox.scenario import from_dump, scenario_releases
from runup.sandbox.setup import scenario_objects as setup

ALL = {
    "Deployment",
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "NetworkPolicy",
    "Service",
    "ServiceMonitor",
    "PrometheusRule",
}


OPEN = ", gates: [UpdateStatus]"


def cluster(folder: Path, capabilities: JSON | None, extra: str = OPEN) -> scenario.Scenario:
    """A scenario whose ClusterVersion asks for these capabilities; by default its gate is open."""
    (folder / "cluster").mkdir(parents=True)
    text = f"title: t\nbase: common\ncluster: {{version: 5.0.0{extra}}}\nreleases: [{{version: 5.0.0}}]\n"
    (folder / "scenario.yaml").write_text(text)
    version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "x"} | ({"capabilities": capabilities} if capabilities else {}),
    }
    (folder / "cluster" / "version.yaml").write_text(yaml.safe_dump(version))
    return scenario.load(folder)


def objects(made: scenario.Scenario, data: Path) -> list[JSON]:
    """What its release brings."""
    (release,) = scenario_releases.build(made, data, registry="127.0.0.1:1", update_service="http://127.0.0.1:2/graph")
    return setup.release_objects(made, release)


def of_update_status(found: list[JSON]) -> set[str]:
    """The kinds of those objects that belong to the controller."""
    return {obj["kind"] for obj in found if "update" in obj["metadata"]["name"] and "status" in obj["metadata"]["name"]}


@pytest.mark.parametrize(
    ("capabilities", "has_it"),
    [
        pytest.param(None, True, id="a cluster that says nothing"),
        pytest.param({"baselineCapabilitySet": "vCurrent"}, True, id="the current set"),
        pytest.param({"baselineCapabilitySet": "None"}, False, id="no capability"),
        pytest.param({"baselineCapabilitySet": "v4.18"}, False, id="the set of a release that did not know it"),
        pytest.param(
            {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["UpdateStatus"]},
            True,
            id="none but this one",
        ),
    ],
)
def test_the_capability_decides(tmp_path: Path, capabilities: JSON | None, has_it: bool) -> None:
    """All of its objects, its definition among them, or none."""
    found = of_update_status(objects(cluster(tmp_path / "scenario", capabilities), tmp_path / "data"))
    assert found == (ALL | {"CustomResourceDefinition"} if has_it else set())


@pytest.mark.parametrize(
    "gates",
    [
        pytest.param("", id="no gate"),
        pytest.param(", gates: [ClusterUpdatePreflight]", id="another gate"),
        pytest.param(", disabledGates: [UpdateStatus]", id="a closed one"),
    ],
)
def test_without_the_gate_there_is_nothing_of_it(tmp_path: Path, gates: str) -> None:
    """Whatever the capabilities say: neither its definition nor its rights."""
    assert of_update_status(objects(cluster(tmp_path / "scenario", None, gates), tmp_path / "data")) == set()


def test_a_dump_with_a_feature_gate_of_its_own_has_it(tmp_path: Path) -> None:
    """The gate is opened for the sandbox's operator, whatever the cluster's own says."""
    dump = tmp_path / "dump"
    dump.mkdir()
    for name, kind, status in (
        ("version", "ClusterVersion", {"desired": {"version": "4.16.3"}}),
        ("cluster", "FeatureGate", {"featureGates": [{"version": "4.16.3", "disabled": [{"name": "UpdateStatus"}]}]}),
    ):
        obj = {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name}, "status": status}
        (dump / f"{kind}.yaml").write_text(yaml.safe_dump(obj))
    made = from_dump.scenario_of(load.read(dump), base=scenario.BUNDLED / "common")
    built = scenario_releases.build(
        made, tmp_path / "data", registry="127.0.0.1:1", update_service="http://127.0.0.1:2/graph"
    )
    running = next(each for each in built if each.version == "4.16.3")
    found = setup.release_objects(made, running)
    assert of_update_status(found) == ALL | {"CustomResourceDefinition"}


def test_a_cluster_out_of_a_dump_has_its_own_time(tmp_path: Path) -> None:
    """The controller gets the setting; nobody is asked for alerts in a sandbox."""
    made = cluster(tmp_path / "scenario", None, OPEN + ', now: "2023-11-03T17:26:01.000368Z"')
    found = objects(made, tmp_path / "data")
    deployments = {obj["metadata"]["name"]: obj for obj in found if obj["kind"] == "Deployment"}
    arguments = deployments["update-status-controller"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments == ["update-status-controller", "--lease=20,15,0.5", "--mock-now=2023-11-03T17:26:01.000368Z"]
    operator = deployments["cluster-version-operator"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--update-service=http://127.0.0.1:2/graph" in operator
    assert not [word for word in operator if "mock-now" in word]
