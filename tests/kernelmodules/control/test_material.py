"""Tests the inputs of builds on an API server: Dockerfiles, Secrets, missing inputs, and builder images."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.kernelmodules.control.world import (
    CONFIG_MAPS,
    CRDS,
    MODULES,
    OPTIONS,
    VALIDATIONS,
    World,
    cluster_with_kernel_modules,
    module,
    running,
    validation,
)
from tests.kubekit.oci.registries import sandbox_registry

from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.api.build_v1 import Build
from runup.kernelmodules.control import answer_cache as build_inputs
from runup.kernelmodules.decide.module_state import BuildInputsQuestion

JSON = dict[str, Any]
BUILDS = resource_of(Build)


async def fill(made: World) -> None:
    for name, data in {"dockerfile": {"dockerfile": "FROM scratch\n"}, "other": {"Dockerfile": "x"}}.items():
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "drivers"},
            "data": data,
        }
        await made.create(CONFIG_MAPS, body)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key", "namespace": "drivers"},
        "data": {"key": base64.b64encode(b"a").decode()},
    }
    await made.create(build_inputs.SECRETS, secret)


MISSING = {
    BuildInputsQuestion("drivers", "no"): 'failed to get dockerfile ConfigMap drivers/no: configmaps "no" not found',
    BuildInputsQuestion("drivers", "other"): (
        "invalid Dockerfile ConfigMap drivers/other format, dockerfile key is missing"
    ),
    BuildInputsQuestion("drivers", "", (("no", ""),)): 'failed to get Secret drivers/no: secrets "no" not found',
    BuildInputsQuestion("drivers", "", (("key", "cert"),)): "Secret drivers/key has no key cert",
}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Before a Job is made that could not begin: ConfigMap, its key, Secret, its key."""

    async def story() -> None:
        async with cluster_with_kernel_modules(tmp_path) as made:
            await fill(made)
            found = {
                question: (await build_inputs.read_build_inputs(made.client, question)).problem for question in MISSING
            }
            assert found == MISSING

    asyncio.run(story())


def test_a_secret_has_a_version_that_changes_with_its_data_alone(tmp_path: Path) -> None:
    """A label is no reason to build again; a new key is."""

    async def story() -> None:
        question = BuildInputsQuestion("drivers", "dockerfile", (("key", "key"),))
        async with cluster_with_kernel_modules(tmp_path) as made:
            await fill(made)
            first = await build_inputs.read_build_inputs(made.client, question)
            labelled = calls.merge_patch(build_inputs.SECRETS, "key", {"metadata": {"labels": {"a": "b"}}}, "drivers")
            await made.send(labelled)
            assert await build_inputs.read_build_inputs(made.client, question) == first
            data = {"data": {"key": base64.b64encode(b"b").decode()}}
            await made.send(calls.merge_patch(build_inputs.SECRETS, "key", data, "drivers"))
            assert (await build_inputs.read_build_inputs(made.client, question)).versions != first.versions
            assert first.dockerfile == "FROM scratch\n"

    asyncio.run(story())


def builds_definition() -> JSON:
    """OpenShift's Build as a kind of this server."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": "builds.build.openshift.io"},
        "spec": {
            "group": BUILDS.group,
            "scope": "Namespaced",
            "names": {"kind": "Build", "plural": "builds"},
            "versions": [{**version, "subresources": {}}],
        },
    }


def test_a_cluster_with_openshift_builds_builds_by_them(tmp_path: Path) -> None:
    """The Build is made, completed as OpenShift does, and the Module is verified; no Job was made."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made:
            await fill(made)
            await made.create(CRDS, builds_definition())
            await made.create(
                MODULES,
                module("built", f"{host}/drivers/built:built", build={"dockerfileConfigMap": {"name": "dockerfile"}}),
            )
            await made.create(VALIDATIONS, validation())
            await _until_served(made)
            async with running(made, OPTIONS):
                await made.until(lambda status: status.modules and status.modules[0].running_stage == "Build")
                [build] = await _builds(made)
                assert build["spec"]["source"]["dockerfile"] == "FROM scratch\n"
                status = {"status": {"phase": "Complete"}}
                await made.send(calls.merge_patch(BUILDS, build["metadata"]["name"], status, "drivers"))
                await made.until(lambda status: status.modules[0].verification_status == "Success")
                assert await made.jobs(0) == []

    with sandbox_registry(tmp_path) as host:
        asyncio.run(story(host))


async def _builds(made: World) -> list[JSON]:
    async with asyncio.timeout(90):
        while True:
            page = await made.client.send(calls.list_raw(BUILDS))
            if page.items:
                return list(page.items)
            await asyncio.sleep(0.02)


async def _until_served(made: World) -> None:
    async with asyncio.timeout(90):
        while True:
            with suppress(NotFound):
                await made.client.send(calls.list_raw(BUILDS))
                return
            await asyncio.sleep(0.02)
