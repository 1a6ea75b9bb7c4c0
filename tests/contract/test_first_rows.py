"""What every client relies on, row by row: the same values on the sandbox's server and on a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contract.api import CRDS, JSON, Api
from tests.contract.conftest import define

import runup

SHIPPED = sorted((Path(runup.__file__).parent / "sandbox" / "crds").glob("*.yaml"))
WIDGET: JSON = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3, "maximum": 10},
                "mode": {"type": "string", "enum": ["Fast", "Slow"]},
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}],
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "port": {"x-kubernetes-int-or-string": True}},
                    },
                },
            },
        }
    },
}


def _map(name: str = "a", **data: str) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_missing_object(api: Api, config_maps: str) -> None:
    """The whole Status, to the word."""
    assert api.get(f"{config_maps}/none").body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "kind": "configmaps"},
        "code": 404,
    }


def test_an_object_that_is_there_already(api: Api, config_maps: str) -> None:
    """AlreadyExists."""
    api.post(config_maps, _map()).ok()
    assert api.post(config_maps, _map()).failure == (409, "AlreadyExists", 'configmaps "a" already exists')


def test_an_update_of_an_old_version(api: Api, config_maps: str) -> None:
    """Conflict, in the words that clients retry on."""
    old = api.post(config_maps, _map(x="1")).ok()
    api.merge(f"{config_maps}/a", {"data": {"x": "2"}}).ok()
    said = (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )
    assert api.put(f"{config_maps}/a", old).failure == (409, "Conflict", said)


@pytest.mark.parametrize(
    ("send", "expected"),
    [
        pytest.param(("merge", {"data": {"x": None, "y": "2"}}), {"y": "2"}, id="merge patch"),
        pytest.param(("strategic", {"data": {"y": "2"}}), {"x": "1", "y": "2"}, id="strategic patch"),
    ],
)
def test_patches(api: Api, config_maps: str, send: tuple[str, Any], expected: JSON) -> None:
    """Null removes, what is not named stays."""
    api.post(config_maps, _map(x="1")).ok()
    method, patch = send
    assert getattr(api, method)(f"{config_maps}/a", patch).ok()["data"] == expected


def test_a_json_patch_whose_test_fails(api: Api, config_maps: str) -> None:
    """Nothing is changed."""
    api.post(config_maps, _map(x="1")).ok()
    refused = api.json_patch(f"{config_maps}/a", {"op": "test", "path": "/data/x", "value": "2"})
    assert refused.code == 422
    assert api.get(f"{config_maps}/a").ok()["data"] == {"x": "1"}


def test_two_managers_of_one_field(api: Api, config_maps: str) -> None:
    """The second is refused with the first's name, and may force."""
    api.apply(f"{config_maps}/a", _map(x="1"), "first").ok()
    refused = api.apply(f"{config_maps}/a", _map(x="2"), "second")
    assert refused.failure == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "first": .data.x')
    assert api.apply(f"{config_maps}/a", _map(x="2"), "second", force="true").ok()["data"] == {"x": "2"}


def test_what_a_manager_leaves_out_is_removed(api: Api, config_maps: str) -> None:
    """Unless another owns it too."""
    api.apply(f"{config_maps}/a", _map(x="1", y="1"), "first").ok()
    api.apply(f"{config_maps}/a", _map(y="1"), "second").ok()
    assert api.apply(f"{config_maps}/a", _map(), "first").ok()["data"] == {"y": "1"}


def test_a_dry_run_leaves_nothing(api: Api, config_maps: str) -> None:
    """The answer is as if it had happened."""
    assert api.post(config_maps, _map(x="1"), dryRun="All").ok()["data"] == {"x": "1"}
    assert api.get(f"{config_maps}/a").code == 404


def test_finalizers_hold_an_object(api: Api, config_maps: str) -> None:
    """It is marked, and goes with the last of them."""
    api.post(config_maps, {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}}).ok()
    api.delete(f"{config_maps}/a").ok()
    assert "deletionTimestamp" in api.get(f"{config_maps}/a").ok()["metadata"]
    api.merge(f"{config_maps}/a", {"metadata": {"finalizers": None}}).ok()
    assert api.get(f"{config_maps}/a").code == 404


def test_a_list_in_pages(api: Api, config_maps: str) -> None:
    """`continue` continues where the page ended, and says how many remain."""
    for name in "abc":
        api.post(config_maps, _map(name)).ok()
    first = api.get(config_maps, limit=2).ok()
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    rest = api.get(config_maps, limit=2, **{"continue": first["metadata"]["continue"]}).ok()
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


def test_a_watch_tells_each_change(api: Api, config_maps: str) -> None:
    """In order, from the version of the list on."""
    start = api.get(config_maps).ok()["metadata"]["resourceVersion"]
    api.post(config_maps, _map(x="1")).ok()
    api.merge(f"{config_maps}/a", {"data": {"x": "2"}}).ok()
    api.delete(f"{config_maps}/a").ok()
    with api.watch(config_maps, resourceVersion=start) as events:
        seen = [next(events)["type"] for _ in range(3)]
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


@pytest.mark.parametrize(
    ("validation", "code", "warned"),
    [
        pytest.param("Strict", 400, False, id="strict"),
        pytest.param("Warn", 201, True, id="warn"),
        pytest.param("Ignore", 201, False, id="ignore"),
    ],
)
def test_an_unknown_field(api: Api, config_maps: str, validation: str, code: int, warned: bool) -> None:
    """Refused, warned of, or dropped."""
    answer = api.post(config_maps, {**_map(), "typo": 1}, fieldValidation=validation)
    assert answer.code == code
    assert bool(answer.warnings) == warned
    if warned:
        assert answer.warnings == ('299 - "unknown field \\"typo\\""',)


def test_custom_resources(api: Api) -> None:
    """Defaults are filled in, unknown fields pruned, enums and limits refused in the real words."""
    path = define(api, WIDGET)
    made = api.post(path, {"apiVersion": path.split("/", 2)[2].rpartition("/")[0], "kind": "Widget",
                           "metadata": {"name": "w"}, "spec": {"fixed": "a", "pruned": 1}}).ok()  # fmt: skip
    assert made["spec"] == {"fixed": "a", "size": 3}
    refused = api.merge(f"{path}/w", {"spec": {"mode": "Odd"}})
    assert refused.code == 422
    assert 'spec.mode: Unsupported value: "Odd": supported values: "Fast", "Slow"' in refused.message
    too_large = api.merge(f"{path}/w", {"spec": {"size": 11}})
    assert "spec.size in body should be less than or equal to 10" in too_large.message
    refused = api.merge(f"{path}/w", {"spec": {"fixed": "b"}})
    assert refused.failure == (
        422,
        "Invalid",
        "Widget." + path.split("/")[2] + ' "w" is invalid: spec.fixed: Invalid value: "string": stays',
    )


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_our_definitions_are_accepted_without_a_warning(api: Api, file: Path) -> None:
    """Each variant, as a dry run: several have one name."""
    answer = api.post(CRDS, yaml.safe_load(file.read_text()), dryRun="All", fieldValidation="Strict")
    answer.ok()
    assert answer.warnings == ()


CLOSED = [file for file in SHIPPED if file.name.endswith(("-Default.crd.yaml", "-OKD.crd.yaml"))]


@pytest.mark.parametrize("file", CLOSED, ids=lambda file: file.name)
def test_a_closed_gate_refuses_the_mode(api: Api, file: Path) -> None:
    """By hand, and without strict validation; what would be left of the patch is an update's request.

    Source: docs/decisions/0072 D22.
    """
    (served,) = yaml.safe_load(file.read_text())["spec"]["versions"]
    path = define(api, served["schema"]["openAPIV3Schema"])
    group = path.split("/")[2]
    version = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "version"}}
    api.post(path, {**version, "spec": {"clusterID": "f0f0"}}).ok()
    answer = api.merge(f"{path}/version", {"spec": {"desiredUpdate": {"version": "5.2.0", "mode": "Preflight"}}})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    (cause,) = answer.body["details"]["causes"]
    assert cause["field"] == "spec.desiredUpdate.mode"
    assert "nothing was started: a preflight takes the feature gate ClusterUpdatePreflight" in cause["message"]
    assert "desiredUpdate" not in api.get(f"{path}/version").ok()["spec"]
    api.merge(f"{path}/version", {"spec": {"desiredUpdate": {"version": "5.2.0"}}}).ok()


(FEATURE_GATES,) = [file for file in SHIPPED if "featuregates" in file.name]


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        pytest.param("", "TechPreviewNoUpgrade", "", id="a preview is turned on"),
        pytest.param("", "OKD", "", id="OKD's is turned on"),
        pytest.param("OKD", "TechPreviewNoUpgrade", "", id="from OKD's to a preview"),
        pytest.param("TechPreviewNoUpgrade", "", "TechPreviewNoUpgrade may not be changed", id="a preview is unset"),
        pytest.param(
            "TechPreviewNoUpgrade",
            "DevPreviewNoUpgrade",
            "TechPreviewNoUpgrade may not be changed",
            id="from one preview to another",
        ),
        pytest.param("DevPreviewNoUpgrade", "", "DevPreviewNoUpgrade may not be changed", id="an early one is unset"),
        pytest.param("CustomNoUpgrade", "", "CustomNoUpgrade may not be changed", id="gates of one's own are unset"),
        pytest.param("OKD", "", "OKD cannot transition to Default", id="OKD's is unset"),
        pytest.param("TechPreviewNoUpgrade", None, ".spec.featureSet cannot be removed", id="a preview is removed"),
        pytest.param(
            "CustomNoUpgrade", None, ".spec.featureSet cannot be removed", id="gates of one's own are removed"
        ),
        pytest.param("", None, ".spec.featureSet cannot be removed", id="the default set is removed"),
        pytest.param("", "LatencySensitive", "Unsupported value", id="a set that was given up"),
        pytest.param("", "Default", "Unsupported value", id="the default set by its name in annotations"),
    ],
)
def test_a_feature_set_that_forbids_updates_stays(api: Api, before: str, after: str | None, refused: str) -> None:
    """It cannot be undone. Source: openshift/api, config/v1/types_feature.go."""
    (served,) = yaml.safe_load(FEATURE_GATES.read_text())["spec"]["versions"]
    path = define(api, served["schema"]["openAPIV3Schema"], status=True)
    gate = {"apiVersion": f"{path.split('/')[2]}/v1", "kind": "Widget", "metadata": {"name": "cluster"}}
    api.post(path, {**gate, "spec": {"featureSet": before}}).ok()
    answer = api.merge(f"{path}/cluster", {"spec": {"featureSet": after}})
    stored = api.get(f"{path}/cluster").ok()["spec"]
    if refused:
        assert (answer.code, answer.body["reason"]) == (422, "Invalid")
        assert refused in answer.message
        assert stored == {"featureSet": before}
    else:
        assert stored == {"featureSet": after}
    # Whatever the set is, other changes of the object pass.
    api.merge(f"{path}/cluster", {"metadata": {"labels": {"a": "b"}}}).ok()
