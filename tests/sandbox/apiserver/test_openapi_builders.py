"""OpenAPI documents: what kubectl looks for in them."""

from __future__ import annotations

from dataclasses import replace

import yaml

from runup.sandbox import crds
from runup.sandbox.apiserver import openapi
from runup.sandbox.apiserver.kinds import BUILTIN, Kind

CRD = yaml.safe_load(
    next(f for f in crds.of_release(generally_available=True) if "clusterversions" in f.name).read_text()
)
CLUSTER_VERSION = Kind("config.openshift.io", "v1", "ClusterVersion", "clusterversions", namespaced=False, crd=CRD)


def test_every_reference_has_its_schema() -> None:
    """A document is whole: each reference names a schema in it."""
    for document in openapi.build_v3([*BUILTIN, CLUSTER_VERSION]).values():
        schemas = document["components"]["schemas"]
        assert set(openapi._references(document)) <= schemas.keys()


def test_patch_says_that_it_validates_fields() -> None:
    """kubectl apply takes a server for strict only when PATCH of the kind has the parameter."""
    document = openapi.build_v3([CLUSTER_VERSION])["apis/config.openshift.io/v1"]
    patch = document["paths"]["/apis/config.openshift.io/v1/clusterversions/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "ClusterVersion"
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def test_the_index_follows_the_content() -> None:
    """A changed schema has another hash, so that clients ask again."""
    changed = replace(CLUSTER_VERSION, plural="others")
    first, second = (openapi.v3_index(openapi.build_v3([kind])) for kind in (CLUSTER_VERSION, changed))
    assert first != second
    assert first == openapi.v3_index(openapi.build_v3([CLUSTER_VERSION]))


def test_v2_has_no_words_of_v3() -> None:
    """References point into definitions."""
    document = openapi.build_v2([CLUSTER_VERSION])
    spec = document["definitions"]["io.openshift.config.v1.ClusterVersion"]["properties"]
    assert spec["metadata"]["$ref"].startswith("#/definitions/")
