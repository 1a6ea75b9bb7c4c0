"""The ClusterVersion CRDs, rule by rule, and real clusters' objects against every CRD."""

from __future__ import annotations

import copy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.documents import document, documents

from kubesandbox.apiserver.schema.builtin import Definitions
from kubesandbox.apiserver.schema.crd import compile_crd
from kubesandbox.apiserver.schema.object_schema import Schema
from runup.sandbox import crds

JSON = dict[str, Any]
ROOT = Path(__file__).parents[3]
CORPUS = ROOT.parent / "shared" / "corpus"
PREVIEW = ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade")
DEFAULT = ("Default", "OKD")
TIME = "2026-11-20T10:00:00Z"
NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def _load(file: Path) -> tuple[JSON, Schema]:
    crd = document(file)
    errors, schemas = compile_crd(crd)
    assert errors == []
    return crd, schemas[crd["spec"]["versions"][0]["name"]]


FILES = crds.files()


@cache
def by_feature_set() -> dict[str, Schema]:
    """Of ClusterVersion; compiled by the process that asks, and not by all that collect tests."""
    return {
        crd["metadata"]["annotations"].get("release.openshift.io/feature-set", ""): schema
        for crd, schema in (_load(file) for file in FILES if "clusterversions" in file.name)
    }


@cache
def by_kind() -> dict[str, Schema]:
    """Of every kind of a release."""
    return {
        crd["spec"]["names"]["kind"]: schema
        for crd, schema in (_load(file) for file in crds.definition_files(generally_available=True))
    }


# Of a map in a schema the keys are names; of the rest, fields of JSONSchemaProps.
_NAMED = ("properties", "patternProperties", "definitions", "dependencies", "$defs")


def _unknown_fields(schema: Any, path: str = "") -> list[str]:
    """The paths of fields that no schema of a definition has: a server drops them without a word."""
    if isinstance(schema, list):
        return [found for item in schema for found in _unknown_fields(item, path)]
    if not isinstance(schema, dict):
        return []
    known = Definitions()["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"]["properties"]
    unknown = [f"{path}.{key}" for key in schema if key not in known]
    for key, value in schema.items():
        if key in _NAMED:
            unknown += [found for name, below in value.items() for found in _unknown_fields(below, f"{path}.{name}")]
        elif key in ("items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"):
            unknown += _unknown_fields(value, f"{path}.{key}")
    return unknown


@pytest.mark.parametrize("file", sorted(ROOT.glob("src/**/crds/*.yaml")), ids=lambda file: file.name)
def test_a_schema_has_only_fields_of_schemas(file: Path) -> None:
    """No server tells, below a list, even if asked to be strict: a comma without quotes made a field of a text."""
    versions = document(file)["spec"]["versions"]
    assert [found for version in versions for found in _unknown_fields(version["schema"]["openAPIV3Schema"])] == []


RISK = {"name": "A", "message": "m", "url": "https://example.com", "matchingRules": [{"type": "Always"}]}
APPLIES = {"type": "Applies", "status": "True", "reason": "R", "message": "", "lastTransitionTime": TIME}
STATUS = {
    "availableUpdates": None,
    "desired": {"image": "i", "version": "5.0.0"},
    "observedGeneration": 1,
    "versionHash": "",
}


def cv(spec: JSON | None = None, status: JSON | None = None) -> JSON:
    """A ClusterVersion that is valid by default."""
    obj: JSON = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    obj["spec"] = {"clusterID": "f0f0", **(spec or {})}
    if status is not None:
        obj["status"] = {**STATUS, **status}
    return obj


def faults(variant: str, obj: JSON) -> list[str]:
    """What creating `obj` says, after pruning as the server prunes."""
    schema = by_feature_set()[variant]
    return [str(error) for error in schema.validate(schema.prune(obj)[0])]


def update(**fields: Any) -> JSON:
    return cv({"desiredUpdate": fields})


def risks(*found: JSON, **more: Any) -> JSON:
    entry = {"release": {"image": "i", "version": "5.2.0"}, "risks": list(found), **more}
    return cv(status={"conditionalUpdates": [entry]})


CAPS = {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["marketplace"]}
MARKETPLACE = (
    '<nil>: Invalid value: "object": the `marketplace` capability requires the `OperatorLifecycleManager` capability, '
    "which is neither explicitly or implicitly enabled in this cluster, please enable the `OperatorLifecycleManager` "
    "capability"
)


@pytest.mark.parametrize("variant", ["", *DEFAULT, *PREVIEW])
@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(cv(), [], id="the least object is fine"),
        pytest.param({"spec": {}}, ["spec.clusterID: Required value", NOT_CHECKED], id="clusterID is required"),
        pytest.param({}, ["spec: Required value", NOT_CHECKED], id="spec is required"),
        pytest.param(
            update(architecture="Multi", version="5.2.0", image="x"),
            ['spec.desiredUpdate: Invalid value: "object": cannot set both Architecture and Image'],
            id="architecture and image exclude each other",
        ),
        pytest.param(update(architecture="", version="5.2.0", image="x"), [], id="an empty architecture is none"),
        pytest.param(
            update(architecture="Multi"),
            ['spec.desiredUpdate: Invalid value: "object": Version must be set if Architecture is set'],
            id="architecture needs a version",
        ),
        pytest.param(update(architecture="Multi", version="5.2.0"), [], id="architecture with a version"),
        pytest.param(
            update(architecture="amd64", version="5.2.0"),
            ['spec.desiredUpdate.architecture: Unsupported value: "amd64": supported values: "Multi", ""', NOT_CHECKED],
            id="no other architecture",
        ),
        pytest.param(cv({"capabilities": CAPS}), [MARKETPLACE], id="marketplace needs the lifecycle manager"),
        pytest.param(
            cv({"capabilities": CAPS}, {"capabilities": {"enabledCapabilities": ["OperatorLifecycleManager"]}}),
            [],
            id="marketplace with the lifecycle manager already on",
        ),
        pytest.param(
            cv({"overrides": [{"kind": "K", "group": "", "namespace": "", "name": "n"}]}),
            ["spec.overrides[0].unmanaged: Required value", NOT_CHECKED],
            id="an override says all five",
        ),
        pytest.param(
            cv({"overrides": [{"kind": "K", "group": "", "namespace": "", "name": "n", "unmanaged": True}] * 2}),
            ['spec.overrides[1]: Duplicate value: {"group":"","kind":"K","name":"n","namespace":""}'],
            id="an override comes once",
        ),
        pytest.param(risks(RISK | {"conditions": [APPLIES]}), [], id="a risk with all it needs"),
        pytest.param(
            risks(),
            [
                "status.conditionalUpdates[0].risks: Invalid value: 0: status.conditionalUpdates[0].risks in body "
                "should have at least 1 items"
            ],
            id="a conditional update has a risk",
        ),
        pytest.param(
            risks(*(RISK | {"name": f"R{n}"} for n in range(201))),
            ["status.conditionalUpdates[0].risks: Too many: 201: must have at most 200 items", NOT_CHECKED],
            id="at most 200 risks",
        ),
        pytest.param(
            risks(RISK | {"url": "nowhere"}),
            [
                'status.conditionalUpdates[0].risks[0].url: Invalid value: "nowhere": '
                'status.conditionalUpdates[0].risks[0].url in body must be of type uri: "nowhere"',
                NOT_CHECKED,
            ],
            id="a risk's url is a URI",
        ),
        pytest.param(
            risks(RISK | {"matchingRules": [{"type": "Never"}]}),
            [
                'status.conditionalUpdates[0].risks[0].matchingRules[0].type: Unsupported value: "Never": '
                'supported values: "Always", "PromQL"',
                NOT_CHECKED,
            ],
            id="a rule is Always or PromQL",
        ),
        pytest.param(
            cv(status={"desired": {"version": "5.0.0"}}),
            ["status.desired.image: Required value", NOT_CHECKED],
            id="a release has an image",
        ),
    ],
)
def test_rules_of_every_feature_set(variant: str, obj: JSON, expected: list[str]) -> None:
    """The rules and limits that hold whatever the feature set."""
    assert faults(variant, copy.deepcopy(obj)) == expected


@pytest.mark.parametrize("variant", ["", *PREVIEW])
@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(update(mode="Preflight", version="5.2.0"), [], id="a preflight"),
        pytest.param(
            update(mode="Frobnicate"),
            ['spec.desiredUpdate.mode: Unsupported value: "Frobnicate": supported values: "Preflight"', NOT_CHECKED],
            id="no other mode",
        ),
        pytest.param(
            update(acceptRisks=[{"name": f"R{n}"} for n in range(1001)]),
            ["spec.desiredUpdate.acceptRisks: Too many: 1001: must have at most 1000 items", NOT_CHECKED],
            id="at most 1000 accepted risks",
        ),
        pytest.param(
            update(acceptRisks=[{"name": "x" * 257}]),
            ["spec.desiredUpdate.acceptRisks[0].name: Too long: may not be more than 256 bytes", NOT_CHECKED],
            id="a name of at most 256",
        ),
        pytest.param(
            update(acceptRisks=[{"name": "A"}, {"name": "A"}]),
            ['spec.desiredUpdate.acceptRisks[1]: Duplicate value: {"name":"A"}'],
            id="a risk is accepted once",
        ),
        pytest.param(
            risks(RISK | {"conditions": [APPLIES | {"type": "Other"}]}),
            [
                'status.conditionalUpdates[0].risks[0].conditions: Invalid value: "array": '
                "must contain a condition of type 'Applies'"
            ],
            id="a risk's conditions hold Applies",
        ),
    ],
)
def test_rules_behind_the_update_gates(variant: str, obj: JSON, expected: list[str]) -> None:
    """What the gates of preflight and accepted risks add."""
    assert faults(variant, copy.deepcopy(obj)) == expected


@pytest.mark.parametrize("variant", DEFAULT)
def test_closed_gates(variant: str) -> None:
    """acceptRisks is unknown and dropped; mode is known and refused, since the rest would ask for an update.

    Source: docs/decisions/0072 D22.
    """
    asked = update(mode="Preflight", version="5.2.0", acceptRisks=[{"name": "A"}])
    obj, unknown = by_feature_set()[variant].prune(copy.deepcopy(asked))
    assert obj["spec"]["desiredUpdate"] == {"version": "5.2.0", "mode": "Preflight"}
    assert unknown == ("spec.desiredUpdate.acceptRisks",)
    (fault,) = faults(variant, asked)
    assert fault.startswith('spec.desiredUpdate.mode: Invalid value: "string": nothing was started: ')
    assert "ClusterUpdatePreflight" in fault and "TechPreviewNoUpgrade" in fault


@pytest.mark.parametrize("variant", DEFAULT)
@pytest.mark.parametrize("fields", [{"version": "5.2.0"}, {"version": "5.2.0", "mode": ""}])
def test_closed_gates_let_updates_pass(variant: str, fields: JSON) -> None:
    """A request without a mode is an update as ever."""
    assert faults(variant, update(**fields)) == []


@pytest.mark.parametrize("variant", PREVIEW)
def test_signature_stores(variant: str) -> None:
    """A store's url is absolute."""
    assert faults(variant, cv({"signatureStores": [{"url": "https://example.com/s"}]})) == []
    assert faults(variant, cv({"signatureStores": [{"url": "example"}]})) == [
        'spec.signatureStores[0].url: Invalid value: "string": url must be a valid absolute URL'
    ]


@pytest.mark.slow
def test_generated_files_are_current() -> None:
    """What is checked in is what the generator writes."""
    command = [sys.executable, ROOT / "tools" / "generate-crds", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def _objects() -> list[tuple[str, JSON]]:
    found = []
    for file in sorted([*CORPUS.glob("oc-status/*.yaml"), *CORPUS.glob("oc-recommend/*.yaml")]):
        for listed in documents(file):
            for obj in listed.get("items", [listed]):
                found += [(file.name, obj)] if obj["kind"] in by_kind() else []
    return found


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of real dumps is not beside this checkout")
def test_real_dumps_are_valid() -> None:
    """Every object of the dumps passes the CRD of its kind."""
    objects = _objects()
    assert len(objects) > 100
    faulty = {
        f"{name} {obj['kind']}/{obj['metadata']['name']}": by_kind()[obj["kind"]].validate(obj) for name, obj in objects
    }
    assert {key: [str(e) for e in errors] for key, errors in faulty.items() if errors} == {}
