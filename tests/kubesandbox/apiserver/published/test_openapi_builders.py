"""OpenAPI documents: what kubectl looks for in them."""

from __future__ import annotations

import orjson
import pytest
from tests.documents import document

from kubekit.kube.clock import ManualClock
from kubesandbox.apiserver.http.messages import Request, Response
from kubesandbox.apiserver.published import openapi
from kubesandbox.apiserver.published.openapi import OpenApiDocuments
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind, KindTable
from runup.sandbox import crds

CRD = document(next(f for f in crds.definition_files(generally_available=True) if "clusterversions" in f.name))
CLUSTER_VERSION = Kind(
    group="config.openshift.io",
    version="v1",
    kind="ClusterVersion",
    plural="clusterversions",
    namespaced=False,
    crd=CRD,
)


def test_every_reference_has_its_schema() -> None:
    """A document is whole: each reference names a schema in it."""
    for kinds in openapi.by_group([*BUILTIN, CLUSTER_VERSION]).values():
        document = openapi.build_group(kinds)
        schemas = document["components"]["schemas"]
        assert set(openapi.references_in(document)) <= schemas.keys()


@pytest.mark.parametrize(
    ("kinds", "schema", "field", "text"),
    [
        # k8s.io/api/core/v1/types.go, k8s.io/apimachinery/pkg/apis/meta/v1/types.go
        pytest.param(
            BUILTIN, "io.k8s.api.core.v1.Pod", "", "Pod is a collection of containers that can run on a host. This "
            "resource is created by clients and scheduled onto hosts.", id="a kind",
        ),
        pytest.param(
            BUILTIN, "io.k8s.api.core.v1.Container", "image", "Container image name. More info: "
            "https://kubernetes.io/docs/concepts/containers/images This field is optional to allow higher level config "
            "management to default or override container images in workload controllers like Deployments and "
            "StatefulSets.", id="a field",
        ),
        pytest.param(
            [CLUSTER_VERSION], "io.openshift.config.v1.ClusterVersion", "metadata", "Standard object's metadata. More "
            "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
            id="the metadata of a custom kind",
        ),
        pytest.param(
            [CLUSTER_VERSION], "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "namespace",
            "Namespace defines the space within which each name must be unique. An empty namespace is equivalent to "
            'the "default" namespace, but "default" is the canonical representation. Not all objects are required to '
            "be scoped to a namespace - the value of this field for those objects will be empty.\n\nMust be a "
            "DNS_LABEL. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces",
            id="a field of the metadata of a custom kind",
        ),
    ],
)  # fmt: skip
def test_types_and_fields_have_kubernetes_descriptions(kinds: list[Kind], schema: str, field: str, text: str) -> None:
    """`kubectl explain` prints them; both documents have them."""
    groups = [openapi.build_group(listed)["components"]["schemas"] for listed in openapi.by_group(kinds).values()]
    for found in [next(one for one in groups if schema in one)[schema], openapi.build_v2(kinds)["definitions"][schema]]:
        assert (found["properties"][field] if field else found)["description"] == text


def test_patch_says_that_it_validates_fields() -> None:
    """kubectl apply takes a server for strict only when PATCH of the kind has the parameter."""
    document = openapi.build_group([CLUSTER_VERSION])
    patch = document["paths"]["/apis/config.openshift.io/v1/clusterversions/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "ClusterVersion"
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def _get(documents: OpenApiDocuments, address: str, etag: str = "") -> Response:
    headers = [("if-none-match", etag)] if etag else []
    found = documents.serve(Request.parse("GET", address, headers))
    assert found is not None
    return found


def test_documents_are_kept() -> None:
    """A client that has a document gets 304; another definition changes its own group's document alone."""
    kinds = KindTable()
    documents = OpenApiDocuments(kinds, ManualClock())
    etags = {path: dict(_get(documents, path).headers)["Etag"] for path in ("/openapi/v2", "/openapi/v3")}
    assert [_get(documents, path, etag).status for path, etag in etags.items()] == [304, 304]
    before = orjson.loads(_get(documents, "/openapi/v3").body)["paths"]
    kinds.set_custom("clusterversions.config.openshift.io", (CLUSTER_VERSION,))
    assert [_get(documents, path, etag).status for path, etag in etags.items()] == [200, 200]
    after = orjson.loads(_get(documents, "/openapi/v3").body)["paths"]
    assert after.keys() - before.keys() == {"apis/config.openshift.io/v1"}
    assert {key: after[key] for key in before} == before


def test_an_old_hash_leads_to_the_document() -> None:
    """By a redirection; what was asked for by its hash may be kept."""
    documents = OpenApiDocuments(KindTable(), ManualClock())
    address = orjson.loads(_get(documents, "/openapi/v3").body)["paths"]["apis/apps/v1"]["serverRelativeURL"]
    current = _get(documents, address)
    assert (current.status, dict(current.headers)["Cache-Control"]) == (200, "public, immutable")
    old = _get(documents, "/openapi/v3/apis/apps/v1?hash=ABC")
    assert (old.status, dict(old.headers)["Location"]) == (301, address)
    assert _get(documents, "/openapi/v3/apis/none/v1").status == 404


def test_v2_has_no_words_of_v3() -> None:
    """References point into definitions."""
    document = openapi.build_v2([CLUSTER_VERSION])
    spec = document["definitions"]["io.openshift.config.v1.ClusterVersion"]["properties"]
    assert spec["metadata"]["$ref"].startswith("#/definitions/")
