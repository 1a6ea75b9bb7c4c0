"""The components of a scenario's releases: what is in the image, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from kubesandbox.sandbox_error import SandboxError
from runup.release.decide.payload import FOLDERS, Payload, load_payload
from runup.sandbox.scenario import folder as scenario
from runup.sandbox.scenario import scenario_releases
from runup.sandbox.scenario.scenario_components import COMPONENTS

JSON = dict[str, Any]
# Run level and component, as the operator groups manifests (docs/reference/upstream.md 1.3).
NAME = re.compile(r"0000_\d+_[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*_")


def written(folder: Path, releases_: str, more: str = "components: true\n") -> scenario.Scenario:
    """A separate scenario upon the common cluster."""
    folder.mkdir()
    text = f"title: t\nbase: common\n{more}cluster: {{version: 5.0.0}}\nreleases: [{releases_}]\n"
    (folder / "scenario.yaml").write_text(text)
    return scenario.load(folder)


def loaded(made: scenario.Scenario, data: Path, version: str) -> Payload:
    """The release as an operator loads it."""
    built = scenario_releases.build(made, data, registry="127.0.0.1:1", update_service="http://127.0.0.1:2/graph")
    release = next(each for each in built if each.version == version)
    files = read_folders(open_image(Layout.open(release.built.layout), release.built.digest), FOLDERS)
    return load_payload(files, source=release.image, release_image=release.image)


def objects(payload: Payload, kind: str) -> dict[str, JSON]:
    """Those of one kind by name."""
    return {m.object["metadata"]["name"]: m.object for m in payload.manifests if m.object["kind"] == kind}


def test_each_operator_of_the_common_cluster_is_in_the_release_and_kept_by_one_component(tmp_path: Path) -> None:
    """An update waits for all that the cluster shows; one that nobody keeps would never get there."""
    made = written(tmp_path / "s", "{version: 5.0.0, kubernetes: 1.35.2}")
    shown = {obj["metadata"]["name"] for obj in made.objects if obj["kind"] == "ClusterOperator"}
    payload = loaded(made, tmp_path / "data", "5.0.0")
    kept = [name for component in COMPONENTS for name in component.operators]
    assert sorted(kept) == sorted(shown) == sorted(objects(payload, "ClusterOperator"))
    assert payload.warnings == ()
    versions = objects(payload, "ClusterOperator")["kube-apiserver"]["status"]["versions"]
    assert versions == [{"name": "operator", "version": "5.0.0"}, {"name": "kube-apiserver", "version": "1.35.2"}]


def test_its_files_are_named_as_a_releases(tmp_path: Path) -> None:
    """By run level and component; only so has an update an order."""
    payload = loaded(written(tmp_path / "s", "{version: 5.0.0}"), tmp_path / "data", "5.0.0")
    assert [m.file for m in payload.manifests if not NAME.match(m.file.rpartition("/")[2])] == []


@pytest.mark.slow
def test_two_releases_have_components_of_their_own(tmp_path: Path) -> None:
    """Image, arguments and the ClusterOperators' versions differ, and what misbehaves does in one of them."""
    made = written(tmp_path / "s", "{version: 5.0.0}, {version: 5.1.0, components: {storage: 'slow:5'}}")
    before, after = (loaded(made, tmp_path / "data", version) for version in ("5.0.0", "5.1.0"))
    containers = [
        objects(payload, "Deployment")["storage-operator"]["spec"]["template"]["spec"]["containers"][0]
        for payload in (before, after)
    ]
    assert containers[0]["image"] != containers[1]["image"]
    assert containers[0]["args"][-1] == "--operator=storage"
    assert containers[1]["args"][-1] == "--operator=storage=slow:5"
    assert after.image_references.images["storage-operator"] == containers[1]["image"]


def test_the_operator_of_each_release_is_told_of_this_machine(tmp_path: Path) -> None:
    """It is part of the release: applying it must not undo it."""
    payload = loaded(written(tmp_path / "s", "{version: 5.0.0}", ""), tmp_path / "data", "5.0.0")
    deployments = objects(payload, "Deployment")
    (container,) = deployments["cluster-version-operator"]["spec"]["template"]["spec"]["containers"]
    assert "--update-service=http://127.0.0.1:2/graph" in container["args"]
    assert [word for word in container["args"] if word.startswith("--serving-")] == []
    assert "storage-operator" not in deployments


@pytest.mark.parametrize(
    ("releases_", "message"),
    [
        pytest.param("{version: 5.0.0, components: {storrage: stuck}}", "'storrage'", id="no such component"),
        pytest.param("{version: 5.0.0, components: {storage: lazy}}", "'lazy'", id="no such behaviour"),
    ],
)
def test_what_a_release_may_not_say_of_components(tmp_path: Path, releases_: str, message: str) -> None:
    """The error names the release and what there is."""
    made = written(tmp_path / "s", releases_)
    with pytest.raises(SandboxError, match=message) as refused:
        loaded(made, tmp_path / "data", "5.0.0")
    assert "release 5.0.0" in refused.value.message


def test_behaviours_need_components(tmp_path: Path) -> None:
    """Else they would say nothing, silently."""
    with pytest.raises(scenario.ScenarioError, match=r"5\.0\.0 says how components behave"):
        written(tmp_path / "s", "{version: 5.0.0, components: {storage: stuck}}", "")
