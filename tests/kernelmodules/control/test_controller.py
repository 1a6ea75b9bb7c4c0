"""The operator on an API server, with a registry: from Modules to what their validations say, and the Jobs between."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kernelmodules.control.world import (
    CONFIG_MAPS,
    KERNEL,
    MODULES,
    OCPS,
    VALIDATIONS,
    World,
    cluster_with_kernel_modules,
    ko,
    module,
    ocp,
    push,
    running,
    validation,
)
from tests.kubekit.oci.registries import sandbox_registry

from kubekit.kube import calls
from runup.api.kmm_v1beta2 import PreflightValidationOCP, PreflightValidationStatus
from runup.kernelmodules.control.answer_cache import SECRETS
from runup.kernelmodules.control.watches import ACCOUNTS

BUILD = {"build": {"dockerfileConfigMap": {"name": "dockerfile"}}}


def run(story: Any) -> None:
    asyncio.run(story)


def module_stages(status: PreflightValidationStatus) -> dict[str, tuple[str, str]]:
    """Status and stage by module."""
    return {
        each.name: (each.verification_status, each.running_stage or each.verification_stage) for each in status.modules
    }


async def dockerfile(made: World, text: str = "FROM scratch\n") -> None:
    metadata = {"name": "dockerfile", "namespace": "drivers"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dockerfile": text}}
    await made.create(CONFIG_MAPS, body)


@pytest.mark.slow
def test_good_missing_and_built(tmp_path: Path) -> None:
    """Three Modules next to each other: found, not there, and built by a Job that is then looked at."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await dockerfile(made)
            await made.create(MODULES, module("good", good))
            await made.create(MODULES, module("missing", f"{host}/drivers/missing:missing"))
            await made.create(MODULES, module("built", f"{host}/drivers/built:built", **BUILD))
            await made.create(VALIDATIONS, validation())
            found = await made.until(lambda status: module_stages(status).get("built") == ("InProgress", "Build"))
            [job] = await made.jobs()
            assert job["metadata"]["ownerReferences"][0]["kind"] == "PreflightValidation"
            await made.finish(job)
            found = await made.until(lambda status: module_stages(status).get("built") == ("Success", "Done"))
            assert module_stages(found) == {
                "good": ("Success", "Done"),
                "missing": ("Failure", "Done"),
                "built": ("Success", "Done"),
            }
            reasons = {each.name: each.status_reason for each in found.modules}
            assert reasons["missing"].startswith(
                f"image {host}/drivers/missing:missing inaccessible or does not exists"
            )
            [condition] = found.conditions
            assert (condition.type, condition.status, condition.reason) == ("Validated", "False", "NotVerified")

    with sandbox_registry(tmp_path) as host:
        run(story(host))


def test_a_failed_module_is_tried_again_when_it_is_edited(tmp_path: Path) -> None:
    """No waiting for three minutes: the edit is seen."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("good", f"{host}/drivers/wrong:wrong"))
            await made.create(VALIDATIONS, validation())
            await made.until(lambda status: module_stages(status).get("good") == ("Failure", "Done"))
            spec = module("good", good)["spec"]
            await made.send(calls.merge_patch(MODULES, "good", {"spec": spec}, "drivers"))
            await made.until(lambda status: module_stages(status).get("good") == ("Success", "Done"))

    with sandbox_registry(tmp_path) as host:
        run(story(host))


def test_modules_come_and_go_while_a_validation_runs(tmp_path: Path) -> None:
    """A new one is taken up, one that goes has no entry any more, and neither has its Job."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await dockerfile(made)
            await made.create(VALIDATIONS, validation())
            await made.until(lambda status: [each.reason for each in status.conditions] == ["NoModules"])
            await made.create(MODULES, module("built", f"{host}/drivers/built:built", **BUILD))
            await made.jobs(1)
            await made.send(calls.delete(MODULES, "built", "drivers"))
            await made.until(lambda status: not status.modules)
            await made.jobs(0)

    with sandbox_registry(tmp_path) as host:
        run(story(host))


def release_image(folder: Path, host: str, version: str, kernel: str) -> str:
    """A release whose driver toolkit says that kernel; its pull spec."""
    facts = {"KERNEL_VERSION": kernel, "RT_KERNEL_VERSION": "", "RHEL_VERSION": "9.4"}
    toolkit = push(folder, host, f"dtk:dtk-{version}", {"etc/driver-toolkit-release.json": json.dumps(facts).encode()})
    tags = [{"name": "driver-toolkit", "from": {"kind": "DockerImage", "name": toolkit}}]
    stream = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "spec": {"tags": tags}}
    return push(folder, host, f"release:{version}", {"release-manifests/image-references": json.dumps(stream).encode()})


@pytest.mark.slow
def test_a_release_and_its_edit(tmp_path: Path) -> None:
    """The kernel is that of the release's driver toolkit; with another release all is looked at again."""

    async def story(host: str) -> None:
        other = "5.14.0-500.el9_5.x86_64"
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        first, second = (release_image(tmp_path, host, *each) for each in (("5.1.0", KERNEL), ("5.2.0", other)))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("good", good))
            await made.create(OCPS, ocp(first))
            kind = PreflightValidationOCP
            found = await made.until(lambda status: module_stages(status) == {"good": ("Success", "Done")}, kind=kind)
            assert [each.kernel_version for each in found.kernels] == [KERNEL]
            await made.send(calls.merge_patch(OCPS, "preflight", {"spec": {"releaseImage": second}}))
            found = await made.until(lambda status: module_stages(status) == {"good": ("Failure", "Done")}, kind=kind)
            assert [each.kernel_version for each in found.kernels] == [other]
            assert f"does not contain kernel module for kernel {other} on any layer" in found.modules[0].status_reason

    with sandbox_registry(tmp_path) as host:
        run(story(host))


def test_a_bad_release_is_told_in_the_status(tmp_path: Path) -> None:
    """In the condition, and at each Module."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("good", f"{host}/drivers/good:good"))
            await made.create(OCPS, ocp(f"{host}/no/release:5.1.0"))
            kind = PreflightValidationOCP
            found = await made.until(lambda status: module_stages(status) == {"good": ("Failure", "Done")}, kind=kind)
            assert f"release image {host}/no/release:5.1.0: " in found.modules[0].status_reason
            assert [(each.status, each.reason) for each in found.conditions] == [("False", "ReleaseUnusable")]
            assert await made.status() is None

    with sandbox_registry(tmp_path) as host:
        run(story(host))


@pytest.mark.slow
def test_whoever_asks_anew_is_told_how_it_is_now(tmp_path: Path) -> None:
    """An image that was pushed since a failure is found at once by another validation, not after three minutes."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("good", f"{host}/drivers/good:good"))
            await made.create(VALIDATIONS, validation("first"))
            await made.until(lambda status: module_stages(status) == {"good": ("Failure", "Done")}, "first")
            await asyncio.to_thread(push, tmp_path, host, "drivers/good:good", ko("good"))
            await made.create(VALIDATIONS, validation("second"))
            await made.until(lambda status: module_stages(status) == {"good": ("Success", "Done")}, "second")

    with sandbox_registry(tmp_path) as host:
        run(story(host))


def test_two_validations_beside_each_other(tmp_path: Path) -> None:
    """One a kernel, each with its own statuses and Jobs."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("good", good))
            await made.create(VALIDATIONS, validation("one"))
            await made.create(VALIDATIONS, validation("two", kernelVersion="6.1.0-1.x86_64"))
            await made.until(lambda status: module_stages(status) == {"good": ("Success", "Done")}, "one")
            await made.until(lambda status: module_stages(status) == {"good": ("Failure", "Done")}, "two")

    with sandbox_registry(tmp_path) as host:
        run(story(host))


@pytest.mark.slow
def test_an_edited_module_is_looked_at_again_at_once(tmp_path: Path) -> None:
    """One that was verified, too: an entry says which generation of it was looked at."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("good", good))
            await made.create(VALIDATIONS, validation())
            found = await made.until(lambda status: module_stages(status) == {"good": ("Success", "Done")})
            assert found.modules[0].observed_generation == 1
            for image, word, generation in ((f"{host}/drivers/none:1", "Failure", 2), (good, "Success", 3)):
                spec = module("good", image)["spec"]
                await made.send(calls.merge_patch(MODULES, "good", {"spec": spec}, "drivers"))
                found = await made.until(
                    lambda status, word=word: (
                        [each.verification_status for each in status.modules] == [word]
                        and status.modules[0].verification_stage == "Done"
                    )
                )
                assert found.modules[0].observed_generation == generation

    with sandbox_registry(tmp_path) as host:
        run(story(host))


@pytest.mark.slow
def test_a_secret_and_a_configmap_that_appear_are_read_at_once(tmp_path: Path) -> None:
    """The Module waits for neither three minutes nor an edit; what is of another namespace is nobody's."""
    spec = {"build": {"dockerfileConfigMap": {"name": "dockerfile"}, "secrets": [{"name": "token"}]}}

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await made.create(MODULES, module("built", f"{host}/drivers/built:built", **spec))
            await made.create(VALIDATIONS, validation())

            def lacks(what: str) -> Callable[[PreflightValidationStatus], bool]:
                return lambda status: bool(status.modules) and what in status.modules[0].status_reason

            await made.until(lacks("failed to get dockerfile ConfigMap drivers/dockerfile"))
            await dockerfile(made)
            await made.until(lacks("failed to get Secret drivers/token"))
            await made.create(SECRETS, {"metadata": {"name": "token", "namespace": "drivers"}})
            await made.jobs(1)

    with sandbox_registry(tmp_path) as host:
        run(story(host))


@pytest.mark.slow
def test_the_builders_pull_secrets_count_as_soon_as_they_appear(tmp_path: Path) -> None:
    """Also those that no Module names: a Secret that is made, and another that the account names from now on."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            metadata = {"name": "builder", "namespace": "drivers"}
            await made.create(ACCOUNTS, {"metadata": metadata, "imagePullSecrets": [{"name": "login"}]})
            await made.create(MODULES, module("gone", f"{host}/drivers/gone:gone"))
            await made.create(VALIDATIONS, validation())

            def lacks(secret: str) -> Callable[[PreflightValidationStatus], bool]:
                missing = {f"the pull secret drivers/{secret} is not there"} if secret else set()
                every = {f"the pull secret drivers/{name} is not there" for name in ("login", "other")}
                return lambda status: (
                    bool(status.modules)
                    and status.modules[0].status_reason != ""
                    and {each for each in every if each in status.modules[0].status_reason} == missing
                )

            await made.until(lacks("login"))
            await made.create(SECRETS, _login("login"))
            await made.until(lacks(""))
            names = {"imagePullSecrets": [{"name": "other"}]}
            await made.send(calls.merge_patch(ACCOUNTS, "builder", names, "drivers"))
            await made.until(lacks("other"))
            await made.create(SECRETS, _login("other"))
            await made.until(lacks(""))

    with sandbox_registry(tmp_path) as host:
        run(story(host))


def _login(name: str) -> dict[str, Any]:
    data = {".dockerconfigjson": base64.b64encode(b'{"auths": {}}').decode()}
    return {"metadata": {"name": name, "namespace": "drivers"}, "type": "kubernetes.io/dockerconfigjson", "data": data}


@pytest.mark.slow
def test_a_restarted_operator_starts_nothing_twice(tmp_path: Path) -> None:
    """The Job that was started is found again, and its end is taken in."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made:
            await dockerfile(made)
            await made.create(MODULES, module("built", f"{host}/drivers/built:built", **BUILD))
            await made.create(VALIDATIONS, validation())
            async with running(made):
                [job] = await made.jobs(1)
            await made.finish(job, failed=True)
            async with running(made):
                found = await made.until(lambda status: module_stages(status) == {"built": ("Failure", "Done")})
                assert "error build failed: BackoffLimitExceeded" in found.modules[0].status_reason
                [same] = await made.jobs(1)
            assert same["metadata"]["uid"] == job["metadata"]["uid"]

    with sandbox_registry(tmp_path) as host:
        run(story(host))


@pytest.mark.slow
def test_a_run_that_is_refused_is_told_at_its_module(tmp_path: Path) -> None:
    """A node selector that is none; the other Modules continue."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made):
            await dockerfile(made)
            await made.create(MODULES, module("built", f"{host}/drivers/built:built", **BUILD_WITH_BAD_SELECTOR))
            await made.create(MODULES, module("good", good))
            await made.create(VALIDATIONS, validation())
            found = await made.until(
                lambda status: module_stages(status) == {"built": ("Failure", "Done"), "good": ("Success", "Done")}
            )
            assert "Failed to verify build for module built" in found.modules[0].status_reason
            assert "was refused" in found.modules[0].status_reason

    with sandbox_registry(tmp_path) as host:
        run(story(host))


BUILD_WITH_BAD_SELECTOR = {"build": {**BUILD["build"], "selector": {"not a label!": "x"}}}


@pytest.mark.slow
def test_metrics_tell_what_each_validation_says(tmp_path: Path) -> None:
    """One series a Module; that of a Module that is gone goes."""

    async def story(host: str) -> None:
        async with cluster_with_kernel_modules(tmp_path) as made, running(made) as process:

            def value() -> float | None:
                labels = {"preflight": "preflight", "namespace": "drivers", "name": "gone", "status": "Failure"}
                return process.metrics.registry.get_sample_value("kmm_preflight_module_status", labels)

            await made.create(MODULES, module("gone", f"{host}/drivers/gone:gone"))
            await made.create(VALIDATIONS, validation())
            await made.until(lambda _: value() == 1.0)
            await made.send(calls.delete(MODULES, "gone", "drivers"))
            await made.until(lambda _: value() is None)

    with sandbox_registry(tmp_path) as host:
        run(story(host))


@pytest.mark.slow
@pytest.mark.parametrize("count", [50])
def test_fifty_modules_at_once(tmp_path: Path, count: int) -> None:
    """All of them, with few writes: one patch a pass."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", {**ko("m0"), **ko("m1")})
        async with cluster_with_kernel_modules(tmp_path) as made:
            for at in range(count):
                await made.create(MODULES, module(f"m{at}", good))
            async with running(made) as process:
                await made.create(VALIDATIONS, validation())
                found = await made.until(
                    lambda status: (
                        len(status.modules) == count
                        and all(each.running_stage or each.verification_stage == "Done" for each in status.modules)
                    )
                )
                verified = [each.name for each in found.modules if each.verification_status == "Success"]
                assert verified == ["m0", "m1"]
                writes = process.metrics.registry.get_sample_value(
                    "kernel_module_preflight_writes_total", {"kind": "PreflightValidation"}
                )
                assert writes is not None
                assert writes <= count

    with sandbox_registry(tmp_path) as host:
        run(story(host))
