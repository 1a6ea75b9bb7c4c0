"""What a server says about itself next to its objects: its probes in words, and its OpenAPI documents."""

from __future__ import annotations

import uuid

import pytest
from tests.contract.api import CRDS, JSON, Api
from tests.servers import eventually


@pytest.mark.parametrize("probe", ["healthz", "livez", "readyz"])
def test_a_probe_in_words(api: Api, probe: str) -> None:
    """A line for each check, then the verdict; which hooks there are is a server's own matter."""
    answer = api.get(f"/{probe}", verbose="")
    assert (answer.code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    lines = answer.body.split("\n")
    assert lines[:3] == ["[+]ping ok", "[+]log ok", "[+]etcd ok"]
    assert all(line.startswith("[+]") and line.endswith(" ok") for line in lines[:-2])
    assert lines[-2:] == [f"{probe} check passed", ""]


def test_a_probe_without_a_check(api: Api) -> None:
    """An excluded check is reported as such; one that there is not is warned of."""
    lines = api.get("/readyz", verbose="", exclude="etcd").body.split("\n")
    assert "[+]etcd excluded: ok" in lines
    lines = api.get("/readyz", verbose="", exclude="nothing").body.split("\n")
    assert lines[-3:-1] == [
        'warn: some health checks cannot be excluded: no matches for "nothing"',
        "readyz check passed",
    ]


def test_probes_say_what_their_text_is(api: Api) -> None:
    """A browser must not guess."""
    assert [api.get(f"/{probe}").headers.get("x-content-type-options") for probe in ("healthz", "livez")] == [
        "nosniff",
        "nosniff",
    ]


@pytest.mark.parametrize("group", ["api/v1", "apis/apps/v1", "apis/autoscaling/v1"])
def test_no_empty_parameters(api: Api, group: str) -> None:
    """OpenAPI v3 has a member only where there is something in it: kube-openapi leaves empty lists out."""
    paths = api.get(f"/openapi/v3/{group}").ok()["paths"]
    assert paths
    operations = [one for item in paths.values() for one in item.values() if isinstance(one, dict)]
    assert [one for one in operations if one.get("parameters") == []] == []


def test_v2_names_no_property_where_every_field_is_kept(api: Api) -> None:
    """kubectl would take a field that is not named for unknown; OpenAPI v3 names them, and says that all are kept."""
    group = f"kept{uuid.uuid4().hex[:8]}.example.com"
    schema = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": group, "scope": "Cluster", "names": names, "versions": [version]}
    api.post(CRDS, {"metadata": {"name": f"things.{group}"}, "spec": spec}).ok()
    name = ".".join([*reversed(group.split(".")), "v1", "Thing"])

    def published() -> JSON | None:
        found: JSON = api.get("/openapi/v2").ok()["definitions"]
        return found.get(name)

    def published_v3() -> JSON | None:
        answer = api.get(f"/openapi/v3/apis/{group}/v1")
        found: JSON = answer.ok()["components"]["schemas"] if answer.code != 404 else {}
        return found.get(name)

    try:
        gvk = {"group": group, "kind": "Thing", "version": "v1"}
        assert eventually(published, "the definition is published") == {
            "type": "object",
            "x-kubernetes-group-version-kind": [gvk],
        }
        # Another controller publishes version 3, a moment earlier or later.
        of_group = eventually(published_v3, "the definition is published in version 3")
        assert sorted(of_group["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    finally:
        api.delete(f"{CRDS}/things.{group}").ok()
