"""What a cluster says of registries: its logins and mirrors; what cannot be used is told, and hides nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import scripted_api, status

from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from kubekit.oci.reference import parse
from kubekit.oci.registry_errors import BadCredentials
from runup.release.control.registry_access import cluster_credentials, cluster_mirrors
from runup.release.control.release_images import ReleaseImages, ReleaseUnreadable

SECRET = "/api/v1/namespaces/openshift-config/secrets/pull-secret"
DIGESTS = "/apis/config.openshift.io/v1/imagedigestmirrorsets"
POLICIES = "/apis/operator.openshift.io/v1alpha1/imagecontentsourcepolicies"
AUTHS = {"registry.example": {"auth": base64.b64encode(b"ann:word").decode()}}
FORBIDDEN = (403, status(403, "Forbidden", "you may not"))
IMAGE = "127.0.0.1:1/ocp/release@sha256:" + "5" * 64
Answers = dict[str, tuple[int, Any]]


@asynccontextmanager
async def cluster(answers: Answers) -> AsyncIterator[Client]:
    """A client of an API server with these objects by path, and nothing else."""

    async def answer(request: web.Request) -> web.StreamResponse:
        code, body = answers.get(request.path, (404, status(404, "NotFound", "no such object")))
        return web.json_response(body, status=code)

    async with scripted_api() as api:
        api.answers(answer)
        async with Client(ClusterConfig(server=api.url)) as client:
            yield client


def secret(**data: str) -> Answers:
    """The pull secret; two underscores are a dot."""
    held = {key.replace("__", "."): value for key, value in data.items()}
    return {SECRET: (200, {"kind": "Secret", "metadata": {"name": "pull-secret"}, "data": held})}


def encoded(value: Any) -> str:
    """As a Secret holds it."""
    return base64.b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    ("answers", "user", "notes"),
    [
        pytest.param(secret(__dockerconfigjson=encoded({"auths": AUTHS})), "ann", [], id="a pull secret"),
        pytest.param(secret(__dockercfg=encoded(AUTHS)), "ann", [], id="one of the older type"),
        pytest.param(
            secret(__dockerconfigjson=encoded({"auths": AUTHS}), __dockercfg="?"),
            "ann",
            [],
            id="both: the newer counts",
        ),
        pytest.param(secret(other="x"), None, [], id="one without logins"),
        pytest.param({}, None, [], id="none"),
        pytest.param(
            {SECRET: FORBIDDEN},
            None,
            ["the pull secret openshift-config/pull-secret could not be read: you may not"],
            id="one that nobody may read",
        ),
    ],
)
async def test_whose_logins_count(answers: Answers, user: str | None, notes: list[str]) -> None:
    """A registry may be open to everybody: what could not be read is a note, for when it is not."""
    shown: list[str] = []
    async with cluster(answers) as client:
        found = await cluster_credentials(client, shown)
    login = found.login(parse("registry.example/a:1"))
    assert (login.user if login else None, shown) == (user, notes)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param(secret(__dockerconfigjson="?"), ".dockerconfigjson is not base64", id="no base64"),
        pytest.param(secret(__dockerconfigjson="\N{SNOWMAN}"), ".dockerconfigjson is not base64", id="not even ASCII"),
        pytest.param({SECRET: (200, {"kind": "Secret", "data": ["x"]})}, "data is not an object", id="data in a list"),
        pytest.param(secret(__dockercfg="e30=="), ".dockercfg is not base64", id="too much of it"),
        pytest.param(secret(__dockercfg=base64.b64encode(b"{").decode()), ".dockercfg is not JSON", id="no JSON"),
    ],
)
async def test_logins_that_cannot_be_used(answers: Answers, said: str) -> None:
    """The Secret and its key are named, also to who asks for a release; its content is nobody's business."""
    async with cluster(answers) as client:
        with pytest.raises(BadCredentials, match=f"^Secret openshift-config/pull-secret: {said}$"):
            await cluster_credentials(client, [])
        with pytest.raises(
            ReleaseUnreadable, match=rf"{said}; correct the pull secret openshift-config/pull-secret, or choose"
        ):
            await ReleaseImages(client).references(IMAGE)


async def test_mirrors_of_both_kinds_count_and_bad_ones_are_noted() -> None:
    """A set that cannot be used, and a kind that may not be listed."""
    good = {
        "metadata": {"name": "good"},
        "spec": {"imageDigestMirrors": [{"source": "registry.example", "mirrors": ["mirror.example"]}]},
    }
    bad = {"metadata": {"name": "bad"}, "spec": {"imageDigestMirrors": 1}}
    notes: list[str] = []
    async with cluster({DIGESTS: (200, {"metadata": {}, "items": [bad, good]}), POLICIES: FORBIDDEN}) as client:
        found = await cluster_mirrors(client, notes)
    assert [(each.source, each.mirrors) for each in found] == [("registry.example", ("mirror.example",))]
    assert notes == [
        "ImageDigestMirrorSet bad: spec.imageDigestMirrors is not a list",
        "imagecontentsourcepolicies could not be listed: you may not",
    ]


async def test_a_cluster_without_such_kinds_has_no_mirrors() -> None:
    """That is no note."""
    notes: list[str] = []
    async with cluster({}) as client:
        assert (await cluster_mirrors(client, notes), notes) == ((), [])


async def test_why_a_release_could_not_be_read_has_all_that_might_be_the_cause() -> None:
    """The registry is away; that its mirrors are not known may be why."""
    async with cluster({DIGESTS: FORBIDDEN}) as client:
        with pytest.raises(ReleaseUnreadable) as raised:
            await ReleaseImages(client).references(IMAGE)
    assert "127.0.0.1:1 cannot be reached" in raised.value.message
    assert " (imagedigestmirrorsets could not be listed: you may not); " in raised.value.message
    assert raised.value.message.endswith(
        "make the registry reachable, or name a mirror in an ImageDigestMirrorSet, or choose another target"
    )


async def test_an_answer_of_the_cluster_that_is_none_is_told() -> None:
    """It is read again: nobody has to correct anything."""
    async with cluster({SECRET: (200, [])}) as client:
        with pytest.raises(
            ReleaseUnreadable, match=r"an answer of the API server could not be read: .*; it is read again, or"
        ):
            await ReleaseImages(client).references(IMAGE)
