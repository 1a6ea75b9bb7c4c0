"""What the API server itself refuses of Modules and of their validations: our definitions, on both servers."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.api import CRDS, JSON, Api
from tests.contract.converter import converter
from tests.contract.kernel_module_rows import BAD, GOOD, SHAPELESS, module
from tests.documents import document
from tests.servers import eventually

from runup.kernelmodules.decide.conversion import review

FILES = sorted((Path(__file__).parents[2] / "deploy" / "kernel-module-preflight").glob("*.crd.yaml"))
GROUP = "kmm.sigs.x-k8s.io"
SERVED = [("modules", "v1beta1")] + [
    (f"preflightvalidations{end}", version) for end in ("", "ocp") for version in ("v1beta1", "v1beta2")
]


@pytest.fixture(scope="module")
def kmm(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server that serves Modules and both kinds of validations, until the module's tests are over."""
    with converter(tmp_path_factory.mktemp("converter"), review) as hook:
        crds = [document(file) for file in FILES]
        for crd in crds:
            if "conversion" in crd["spec"]:
                crd["spec"]["conversion"] = hook.config()
            made = api.post(CRDS, crd)
            assert made.code == 201, "\n".join(str(each) for each in made.body["details"]["causes"])
        places = [f"/apis/{GROUP}/{version}/{plural}" for plural, version in SERVED]
        eventually(lambda: all(api.get(place).code == 200 for place in places), "the definitions are served")
        yield api
        for crd in crds:
            api.delete(f"{CRDS}/{crd['metadata']['name']}").ok()
        # Other tests look at all that is served.
        eventually(lambda: api.get(f"/apis/{GROUP}").code == 404, "the definitions are gone")


def _create(api: Api, spec: JSON, *, kind: str = "Module", version: str = "v1beta1") -> Any:
    plural = {"Module": "modules", "PreflightValidation": "preflightvalidations"}.get(kind, "preflightvalidationsocp")
    place = "namespaces/default/" if kind == "Module" else ""
    body = {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": f"n-{uuid.uuid4().hex[:8]}"}}
    return api.post(f"/apis/{GROUP}/{version}/{place}{plural}", {**body, "spec": spec}, fieldValidation="Strict")


@pytest.mark.parametrize("spec", GOOD)
def test_a_good_module_is_taken(kmm: Api, spec: JSON) -> None:
    """As it is written, by a client that wants to hear of every field that is not known."""
    made = _create(kmm, spec)
    assert made.code == 201, made.body
    assert made.body["spec"].keys() == spec.keys()


@pytest.mark.parametrize(("spec", "shown"), [*BAD, *SHAPELESS])
def test_a_bad_module_is_refused(kmm: Api, spec: JSON, shown: str) -> None:
    """With the words of the operator's own webhook, which need not be there."""
    refused = _create(kmm, spec)
    assert refused.code == 422, refused.body
    assert shown in refused.message


def test_a_version_neither_comes_nor_goes(kmm: Api) -> None:
    """A Module is ordered by its version or not; another version is fine."""
    made = _create(kmm, module(version="1")).ok()
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/modules/{made['metadata']['name']}"
    other = kmm.merge(path, {"spec": {"moduleLoader": {"container": {"version": "2"}}}}).ok()
    assert other["spec"]["moduleLoader"]["container"]["version"] == "2"
    for gone in (None, ""):
        refused = kmm.merge(path, {"spec": {"moduleLoader": {"container": {"version": gone}}}})
        assert refused.code == 422
        text = "cannot update to or from an empty version; please delete the Module and create it again"
        assert text in refused.message


KINDS = [
    pytest.param(version, kind, id=f"{kind} {version}")
    for version in ("v1beta1", "v1beta2")
    for kind in ("PreflightValidation", "PreflightValidationOCP")
]


@pytest.mark.parametrize(("version", "kind"), KINDS)
@pytest.mark.parametrize(
    ("kernel", "shown"),
    [
        pytest.param("5.14.0-427.50.1.el9_4.x86_64", "", id="a release's"),
        pytest.param("6.0.15-300.fc37.x86_64+rt", "", id="a real-time one"),
        pytest.param("6,1-2", "", id="three parts whatever stands between"),
        pytest.param("tesdt", "invalid kernelVersion tesdt", id="no version"),
        pytest.param("6.1", "invalid kernelVersion 6.1", id="two parts"),
        pytest.param("6.1.0/../x", "invalid kernelVersion 6.1.0/../x", id="a path"),
        pytest.param("", "kernelVersion cannot be empty", id="empty"),
        pytest.param("6.1." + "0" * 61, "may not be more than 64 bytes", id="longer than a kernel's name can be"),
    ],
)
def test_the_kernel_of_a_validation(kmm: Api, version: str, kind: str, kernel: str, shown: str) -> None:
    """The operator crashed on one that was none; here both kinds and both versions refuse it."""
    answer = _create(kmm, {"kernelVersion": kernel, "dtkImage": "quay.io/example/dtk:1"}, kind=kind, version=version)
    assert answer.code == (422 if shown else 201), answer.body
    assert not shown or shown in answer.message


RELEASE = "quay.io/example/release@sha256:00"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        pytest.param({"releaseImage": RELEASE, "pushBuiltImage": True}, "", id="a release"),
        pytest.param(
            {"releaseImage": RELEASE, "useRTKernel": True, "kernelVersion": ""}, "", id="its real-time kernel"
        ),
        pytest.param({}, "kernelVersion cannot be empty where there is no releaseImage", id="nothing"),
        pytest.param({"releaseImage": ""}, "kernelVersion cannot be empty where there is no releaseImage", id="empty"),
        pytest.param(
            {"releaseImage": RELEASE, "kernelVersion": "6.1.0"},
            "releaseImage and kernelVersion are mutually exclusive properties",
            id="a release and a kernel",
        ),
        pytest.param(
            {"releaseImage": RELEASE, "dtkImage": "a:1"}, "dtkImage goes with kernelVersion", id="two toolkits"
        ),
        pytest.param(
            {"kernelVersion": "6.1.0", "useRTKernel": True},
            "useRTKernel goes with releaseImage",
            id="a kernel and a flag",
        ),
    ],
)
def test_what_is_validated_for_a_release(kmm: Api, version: str, spec: JSON, shown: str) -> None:
    """Exactly one of the release and the kernel says which kernel is meant."""
    answer = _create(kmm, spec, kind="PreflightValidationOCP", version=version)
    assert answer.code == (422 if shown else 201), answer.body
    assert not shown or shown in answer.message


def test_a_kernel_is_required(kmm: Api) -> None:
    """Of the plain kind, which has nothing else."""
    refused = _create(kmm, {}, kind="PreflightValidation", version="v1beta2")
    assert (refused.code, "spec.kernelVersion: Required value" in refused.message) == (422, True)


TIME = {"lastTransitionTime": "2026-01-02T03:04:05Z"}
ENTRY = {"verificationStatus": "InProgress", "verificationStage": "Image", **TIME}
OLD_ENTRY = {"verificationStatus": "False", "verificationStage": "Image", **TIME}


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        pytest.param({}, "", id="as it should be"),
        pytest.param({"verificationStatus": "Success", "verificationStage": "Done"}, "", id="verified"),
        pytest.param({"verificationStatus": "Failure", "verificationStage": "Done"}, "", id="failed"),
        pytest.param({"runningStage": "Sign"}, "", id="being signed"),
        pytest.param(
            {"verificationStatus": "True"},
            'supported values: "Success", "Failure", "InProgress"',
            id="the word of the other version",
        ),
        pytest.param({"verificationStage": "Requeued"}, '"Image", "Done"', id="its stage"),
        pytest.param({"runningStage": "Image"}, '"Build", "Sign"', id="no running stage"),
        pytest.param({"lastTransitionTime": "yesterday"}, "must be of type date-time", id="no time"),
    ],
)
def test_a_status_says_what_it_may(kmm: Api, change: JSON, shown: str) -> None:
    """The words of KMM 2.4, and which stage runs."""
    made = _create(kmm, {"kernelVersion": "6.1.0"}, kind="PreflightValidation", version="v1beta2").ok()
    path = f"/apis/{GROUP}/v1beta2/preflightvalidations/{made['metadata']['name']}/status"
    entry = {**copy.deepcopy(ENTRY), "namespace": "a", "name": "b", **change}
    answer = kmm.merge(path, {"status": {"modules": [entry]}})
    assert answer.code == (422 if shown else 200), answer.body
    assert not shown or shown in answer.message


@pytest.mark.parametrize("kind", ["PreflightValidation", "PreflightValidationOCP"])
def test_a_status_is_read_in_both_versions(kmm: Api, kind: str) -> None:
    """A client of either sees every Module; one that writes what it read changes nothing."""
    made = _create(kmm, {"kernelVersion": "6.1.0"}, kind=kind, version="v1beta1").ok()
    assert made["apiVersion"] == f"{GROUP}/v1beta1"
    plural = "preflightvalidations" if kind == "PreflightValidation" else "preflightvalidationsocp"
    old, new = (f"/apis/{GROUP}/{v}/{plural}/{made['metadata']['name']}" for v in ("v1beta1", "v1beta2"))
    modules = [{**ENTRY, "namespace": "a", "name": "x"}, {**ENTRY, "namespace": "b", "name": "y"}]
    written = kmm.merge(f"{new}/status", {"status": {"modules": modules}}).ok()
    seen = kmm.get(old).ok()
    assert seen["status"] == {"crStatuses": dict.fromkeys(("a/x", "b/y", "x", "y"), OLD_ENTRY)}
    kmm.put(f"{old}/status", seen).ok()
    assert kmm.get(new).ok()["status"] == written["status"]
    again = kmm.merge(
        f"{old}/status", {"status": {"crStatuses": {"a/x": {**OLD_ENTRY, "verificationStage": "Build"}}}}
    ).ok()
    assert again["status"]["crStatuses"]["x"]["verificationStage"] == "Build"
    assert kmm.get(new).ok()["status"]["modules"] == [{**modules[0], "runningStage": "Build"}, modules[1]]


def test_both_versions_are_listed(kmm: Api) -> None:
    """Short names, the subresource, which version is stored."""
    resources = kmm.get(f"/apis/{GROUP}/v1beta2").ok()["resources"]
    assert {each["name"]: each.get("shortNames") for each in resources if "/" not in each["name"]} == {
        "preflightvalidations": ["pfv"],
        "preflightvalidationsocp": ["pfvo"],
    }
    assert kmm.get(f"/apis/{GROUP}").ok()["preferredVersion"]["version"] == "v1beta2"
    assert kmm.get(f"{CRDS}/preflightvalidationsocp.{GROUP}").ok()["status"]["storedVersions"] == ["v1beta2"]
