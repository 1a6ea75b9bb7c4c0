"""Tests what is written, when, and which waits occur: barriers, adoption, deletion, create-only, cluster values."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.applied_world import (
    CONFIG_MAPS,
    OPERATORS,
    WIDGETS,
    completed,
    eventually,
    exists,
    message,
    operator_is_at,
    state,
    there,
    until_equal,
)
from tests.applying.control.release_folders import (
    NAMESPACE,
    config_map,
    definition,
    deployment,
    manifest,
    namespace,
    operator,
    write_release,
)
from tests.operator.operator_world import NAMESPACES, Cluster, cluster, running

from kubekit.api.conditions import find
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from runup.applying.control.retry import REPORT_AFTER_ATTEMPTS

JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
GADGETS = Resource(group="example.org", version="v1", kind="Gadget", plural="gadgets", namespaced=True)
PRIORITIES = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
)
PROXIES = Resource(group="config.openshift.io", version="v1", kind="Proxy", plural="proxies", namespaced=False)
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
OTHER = "registry.example/release@sha256:" + "53" * 32
FIRST = {"manifests/0000_00_cvo_00_namespace.yaml": [namespace()]}


def job(name: str, **spec: Any) -> dict[str, Any]:
    """A Job of the release."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/job:1"}]}
    return manifest("batch/v1", "Job", name, NAMESPACE, spec={"template": {"spec": pod}, **spec})


async def job_says(world: Cluster, name: str, **status: Any) -> None:
    """What becomes of a Job."""
    await exists(world, JOBS, name, NAMESPACE)
    await world.client.send(calls.merge_patch(JOBS, name, {"status": status}, NAMESPACE, subresource="status"))


@pytest.mark.slow
async def test_a_job_is_waited_for(tmp_path: Path) -> None:
    """Later tasks do not start while a barrier runs or after it failed; earlier tasks are not repeated."""
    files = FIRST | {
        "release-manifests/0000_20_a_01_before.yaml": [config_map("before", {})],
        "release-manifests/0000_20_a_02_job.yaml": [job("migrate")],
        "release-manifests/0000_20_a_03_after.yaml": [config_map("after", {})],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    now = "2026-01-01T00:00:00Z"
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await world.until(lambda found: f"waiting on job {NAMESPACE}/migrate" in message(found, "Progressing"))
        before = await exists(world, CONFIG_MAPS, "before", NAMESPACE)
        assert await there(world, CONFIG_MAPS, "after", NAMESPACE) is None
        why = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "it crashed"}
        await job_says(world, "migrate", startTime=now, failed=1, conditions=[{**why, "lastTransitionTime": now}])
        failed = await world.condition("Failing", "True", "WorkloadNotProgressing")
        assert "it crashed" in message(failed, "Failing")
        assert await there(world, CONFIG_MAPS, "after", NAMESPACE) is None
        await world.client.send(calls.delete(JOBS, "migrate", NAMESPACE))
        await eventually(lambda: _fresh(world), "the Job is put back")
        await job_says(world, "migrate", succeeded=1, startTime=now)
        found = await world.until(completed("5.0.0"))
        same = await exists(world, CONFIG_MAPS, "before", NAMESPACE)
    assert state(found, "Failing") == ("False", "")
    assert before["metadata"]["resourceVersion"] == same["metadata"]["resourceVersion"]


async def test_a_job_that_goes_by_itself_is_not_run_again(tmp_path: Path) -> None:
    """It has succeeded; another one that somebody deletes is put back."""
    path = "release-manifests/0000_20_a_01_job.yaml"
    files = FIRST | {path: [job("once", ttlSecondsAfterFinished=60), job("kept")]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        for name in ("once", "kept"):
            await job_says(world, name, succeeded=1, startTime="2026-01-01T00:00:00Z")
        await world.until(completed("5.0.0"))
        for name in ("once", "kept"):
            await world.client.send(calls.delete(JOBS, name, NAMESPACE))
        await exists(world, JOBS, "kept", NAMESPACE)
        assert await there(world, JOBS, "once", NAMESPACE) is None


@pytest.mark.slow
async def test_what_fell_ill_while_the_release_was_on_its_way_is_told(tmp_path: Path) -> None:
    """An operator whose turn was over counts again as soon as all is applied."""
    files = FIRST | {
        "release-manifests/0000_20_a_01_x.yaml": [operator("a", "5.0.0")],
        "release-manifests/0000_20_b_01_x.yaml": [operator("b", "5.0.0")],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await operator_is_at(world, "a", "5.0.0")
        await world.until(lambda found: "waiting on b" in message(found, "Progressing"))
        await world.until(lambda found: message(found, "Progressing").rpartition(", ")[2] == "waiting on b")
        await operator_is_at(world, "a", "5.0.0", Available="False")
        await operator_is_at(world, "b", "5.0.0")
        failing = await world.condition("Failing", "True", "ClusterOperatorNotAvailable")
    assert message(failing, "Failing") == "Cluster operator a is not available"


async def _gone(world: Cluster, resource: Resource, name: str) -> bool:
    return await there(world, resource, name) is None


async def _fresh(world: Cluster) -> bool:
    found = await there(world, JOBS, "migrate", NAMESPACE)
    return found is not None and not found["status"].get("failed")


@pytest.mark.slow
async def test_an_operator_is_waited_for_where_it_stands(tmp_path: Path) -> None:
    """It is created before its turn; the next level waits for it, and the status says for whom."""
    files = FIRST | {
        "release-manifests/0000_20_a_01_x.yaml": [config_map("a", {}), operator("a", "5.0.3")],
        "release-manifests/0000_20_b_01_x.yaml": [config_map("b", {}), operator("b", "5.0.3")],
        "release-manifests/0000_30_c_01_x.yaml": [config_map("c", {})],
        "release-manifests/0000_30_d_01_x.yaml": [config_map("d", {})],
    }
    folder = write_release(tmp_path / "release", "5.0.3", files)
    old = write_release(tmp_path / "old", "5.0.0", dict(FIRST))
    async with cluster(tmp_path / "world", times=5) as (world, make):
        async with running(make(applies=True, payload=old)):
            await world.until(completed("5.0.0"))
        async with running(make(applies=True, payload=folder, release_image=OTHER)):
            await operator_is_at(world, "a", "5.0.3")
            await operator_is_at(world, "b", "5.0.0")
            await world.until(lambda found: message(found, "Progressing").endswith("waiting on b"))
            assert await there(world, CONFIG_MAPS, "c", NAMESPACE) is None
            await operator_is_at(world, "b", "5.0.0", Degraded="True")
            shown = await world.until(lambda found: "waiting up to 40 minutes on b" in message(found, "Progressing"))
            assert state(shown, "Failing") == ("False", "")
            await operator_is_at(world, "b", "5.0.3")
            await world.until(completed("5.0.3"))
            await operator_is_at(world, "b", "5.0.3", Available="False")
            failing = await world.condition("Failing", "True", "ClusterOperatorNotAvailable")
            assert message(failing, "Progressing") == (
                "Error while reconciling 5.0.3: the cluster operator b is not available"
            )
            await operator_is_at(world, "b", "5.0.3")
            await world.condition("Failing", "False")


@pytest.mark.slow
async def test_until_something_would_use_a_definition_nothing_waits_for_it(tmp_path: Path) -> None:
    """Its names are taken: what is merely there comes all the same; what runs waits, and the status says why."""
    taken = definition("Widget", "others")
    taken["spec"]["names"]["singular"] = "other"
    files = FIRST | {
        "release-manifests/0000_20_a_01_definition.yaml": [definition("Widget", "widgets")],
        "release-manifests/0000_20_a_02_definition.yaml": [definition("Gadget", "gadgets")],
        "release-manifests/0000_20_a_03_config.yaml": [config_map("a", {})],
        "release-manifests/0000_20_a_04_run.yaml": [deployment("a", "registry.example/a:1")],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.client.send(calls.create(CRDS, taken))
        async with running(make(applies=True, payload=folder)):
            await exists(world, CONFIG_MAPS, "a", NAMESPACE)
            await exists(world, CRDS, "gadgets.example.org")
            waits = "waiting on customresourcedefinition widgets.example.org is not established yet"
            await world.until(lambda found: waits in message(found, "Progressing"))
            assert await there(world, DEPLOYMENTS, "a", NAMESPACE) is None
            await world.client.send(calls.delete(CRDS, "others.example.org"))
            await eventually(lambda: _gone(world, CRDS, "others.example.org"), "the names are free")
            # The sandbox's server looks at the names again when the definition is written.
            touched = {"metadata": {"annotations": {"example.org/touched": "yes"}}}
            await world.client.send(calls.merge_patch(CRDS, "widgets.example.org", touched))
            await world.until(completed("5.0.0"))
            await exists(world, DEPLOYMENTS, "a", NAMESPACE)


async def test_what_an_earlier_operator_wrote_becomes_ours(tmp_path: Path) -> None:
    """A field that it set and the release no longer has goes; what an administrator set stays."""
    folder = write_release(
        tmp_path / "release", "5.0.0", FIRST | {"release-manifests/0000_20_a_01_x.yaml": [config_map("a", {"k": "v"})]}
    )
    before = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": NAMESPACE},
        "data": {"k": "old", "gone": "with the release"},
    }
    spaces = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.client.send(calls.create(spaces, {"metadata": {"name": NAMESPACE}}))
        await world.client.send(calls.create(CONFIG_MAPS, before, field_manager="cluster-version-operator"))
        mine = {"data": {"mine": "stays"}}
        await world.client.send(calls.merge_patch(CONFIG_MAPS, "a", mine, NAMESPACE, field_manager="kubectl-edit"))
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            await until_equal(world, "a", {"k": "v", "mine": "stays"})


async def test_a_field_that_leaves_the_release_leaves_the_object(tmp_path: Path) -> None:
    """Without a special manifest, which the Go operator would need."""
    path = "release-manifests/0000_20_a_01_x.yaml"
    old = write_release(tmp_path / "old", "5.0.0", FIRST | {path: [config_map("a", {"k": "v", "old": "1"})]})
    new = write_release(tmp_path / "new", "5.0.3", FIRST | {path: [config_map("a", {"k": "v"})]})
    async with cluster(tmp_path / "world", times=5) as (world, make):
        async with running(make(applies=True, payload=old)):
            await world.until(completed("5.0.0"))
        async with running(make(applies=True, payload=new, release_image=OTHER)):
            await until_equal(world, "a", {"k": "v"})
            await world.until(completed("5.0.3"))


@pytest.mark.slow
async def test_what_is_only_created_is_never_changed(tmp_path: Path) -> None:
    """Not when it is there before, not when somebody changes it."""
    only = {"release.openshift.io/create-only": "True"}
    path = "release-manifests/0000_20_a_01_x.yaml"
    files = FIRST | {path: [config_map("a", {"k": "v"}, annotations=only), config_map("z", {})]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            found = await exists(world, CONFIG_MAPS, "a", NAMESPACE)
            assert "controller" not in found["metadata"]["ownerReferences"][0]
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "a", {"data": {"k": "mine"}}, NAMESPACE))
            await world.client.send(calls.delete(CONFIG_MAPS, "z", NAMESPACE))
            await exists(world, CONFIG_MAPS, "z", NAMESPACE)
        async with running(make(applies=True, payload=folder, release_image=OTHER)):
            await world.until(lambda found: len(found.status.history) == 2 and completed("5.0.0")(found))
            await until_equal(world, "a", {"k": "mine"})


async def test_what_is_only_created_comes_back_whoever_made_it(tmp_path: Path) -> None:
    """It was there before the release, and somebody deletes it while the release is kept."""
    once = config_map("a", {"k": "v"}, annotations={"release.openshift.io/create-only": "true"})
    files = FIRST | {"release-manifests/0000_20_a_01_x.yaml": [once]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.client.send(calls.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}))
        await world.client.send(calls.create(CONFIG_MAPS, config_map("a", {"k": "theirs"})))
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            await until_equal(world, "a", {"k": "theirs"})
            await world.client.send(calls.delete(CONFIG_MAPS, "a", NAMESPACE))
            await until_equal(world, "a", {"k": "v"})


@pytest.mark.slow
async def test_what_a_release_removes_is_removed_once(tmp_path: Path) -> None:
    """While it is on its way out, a minor update is held up; when somebody makes it again, it is left alone."""
    gone = {"release.openshift.io/delete": "true"}
    path = "release-manifests/0000_20_a_01_x.yaml"
    old = write_release(
        tmp_path / "old", "5.0.0", FIRST | {path: [config_map("a", {"k": "v"}), operator("b", "5.0.0")]}
    )
    removed = [
        config_map("a", {"k": "v"}, annotations=gone),
        config_map("never", {}, annotations=gone),
        operator("b", "5.0.3", annotations=gone),
    ]
    new = write_release(tmp_path / "new", "5.0.3", FIRST | {path: removed})
    async with cluster(tmp_path / "world", times=5) as (world, make):
        async with running(make(applies=True, payload=old)):
            await operator_is_at(world, "b", "5.0.0")
            await world.until(completed("5.0.0"))
        holds = {"metadata": {"finalizers": ["example.org/held"]}}
        await world.client.send(calls.merge_patch(CONFIG_MAPS, "a", holds, NAMESPACE))
        before = asyncio.all_tasks()
        async with running(make(applies=True, payload=new, release_image=OTHER)):
            await world.until(completed("5.0.3"))
            held = f'resources=configmap "{NAMESPACE}/a"'
            # For a moment the operator may be on its way out, too.
            found = await world.until(lambda found: state(found, "Upgradeable")[1] == "ResourceDeletionInProgress")
            assert message(found, "Upgradeable").endswith(held)
            free = {"metadata": {"finalizers": None}}
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "a", free, NAMESPACE))
            await world.until(lambda found: state(found, "Upgradeable") == ("", ""))
            assert await there(world, CONFIG_MAPS, "a", NAMESPACE) is None
            assert await there(world, OPERATORS, "b") is None
        await _until_none_is_left(before)


async def _until_none_is_left(before: set[asyncio.Task[Any]]) -> None:
    """Wait for the end of all tasks since then; fails with the names of those that continue."""
    left: list[str] = []
    for _ in range(1000):
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks() - before]
        # The server's connections end when their clients' do.
        left = [name for name in names if not name.startswith("RequestHandler")]
        if not left:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"still running: {left}")


async def test_a_workload_that_cannot_roll_out_is_told(tmp_path: Path) -> None:
    """In the words of its Deployment, once it stalls."""
    path = "release-manifests/0000_20_a_01_x.yaml"
    old = write_release(tmp_path / "old", "5.0.0", FIRST | {path: [deployment("a", "registry.example/a:1")]})
    now = "2026-01-01T00:00:00Z"
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=old)),
    ):
        await world.until(completed("5.0.0"))
        why = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "no pods"}
        conditions = [{**why, "lastTransitionTime": now, "lastUpdateTime": now}]
        status = {"status": {"observedGeneration": 1, "conditions": conditions}}
        await world.client.send(calls.merge_patch(DEPLOYMENTS, "a", status, NAMESPACE, subresource="status"))
        failing = await world.condition("Failing", "True", "WorkloadNotProgressing")
        assert "ProgressDeadlineExceeded" in message(failing, "Failing")
        status = {"status": {"conditions": []}}
        await world.client.send(calls.merge_patch(DEPLOYMENTS, "a", status, NAMESPACE, subresource="status"))
        await world.condition("Failing", "False")


async def test_the_proxy_reaches_whom_it_is_for(tmp_path: Path) -> None:
    """In the containers that ask for it, and again when the cluster's proxy changes."""
    wants = {"config.openshift.io/inject-proxy": "a"}
    files = FIRST | {
        "release-manifests/0000_10_a_00_crd.yaml": [_proxy_definition()],
        "release-manifests/0000_20_a_01_x.yaml": [deployment("a", "registry.example/a:1", annotations=wants)],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.client.send(calls.create(CRDS, _proxy_definition()))
        await world.until_created(PROXIES, _proxy({"httpProxy": "http://p:1"}))
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            await eventually(lambda: _env(world, {"HTTP_PROXY": "http://p:1"}), "the proxy is injected")
            change = {"status": {"httpProxy": "http://q:1", "noProxy": "here"}}
            await world.client.send(calls.merge_patch(PROXIES, "cluster", change))
            await eventually(
                lambda: _env(world, {"HTTP_PROXY": "http://q:1", "NO_PROXY": "here"}), "the new proxy is injected"
            )


async def _env(world: Cluster, wanted: dict[str, str]) -> bool:
    found = await exists(world, DEPLOYMENTS, "a", NAMESPACE)
    env = found["spec"]["template"]["spec"]["containers"][0].get("env") or []
    return {each["name"]: each["value"] for each in env} == wanted


def _proxy(status: dict[str, str]) -> dict[str, Any]:
    identity = {"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"}}
    return {**identity, "status": status}


def _proxy_definition() -> dict[str, Any]:
    found = definition("Proxy", "proxies", "config.openshift.io")
    found["spec"]["scope"] = "Cluster"
    return found


@pytest.mark.slow
async def test_a_fault_of_one_component_leaves_the_others_alone(tmp_path: Path) -> None:
    """An undefined kind is reported after a few attempts; all other objects are applied, and this one when possible."""
    files = FIRST | {
        "release-manifests/0000_20_a_01_x.yaml": [manifest("example.org/v1", "Widget", "w", NAMESPACE, spec={})],
        "release-manifests/0000_20_b_01_x.yaml": [config_map("b", {"k": "v"})],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=15) as (world, make),
        running(make(applies=True, payload=folder)) as manager,
    ):
        failing = await world.condition("Failing", "True", "UpdatePayloadResourceTypeMissing")
        shown = manager.metrics.registry.get_sample_value("cluster_operator_payload_errors", {"version": "5.0.0"})
        assert shown is not None
        assert shown >= REPORT_AFTER_ATTEMPTS
        assert message(failing, "Failing").startswith(
            f'Could not update widget "{NAMESPACE}/w" (2 of 3): the server does not recognize this resource'
        )
        assert message(failing, "Progressing") == (
            "Unable to apply 5.0.0: a required extension is not available to update"
        )
        await until_equal(world, "b", {"k": "v"})
        await world.client.send(calls.create(CRDS, definition("Widget", "widgets")))
        await world.until(completed("5.0.0"))
        await world.condition("Failing", "False")


@pytest.mark.slow
async def test_what_the_server_drops_is_written_once(tmp_path: Path) -> None:
    """A PriorityClass whose default is said in so many words: neither this process nor the next one writes it again."""
    priority = manifest("scheduling.k8s.io/v1", "PriorityClass", "p", value=1000, globalDefault=False, description="")
    path = "release-manifests/0000_20_a_01_x.yaml"
    folder = write_release(tmp_path / "release", "5.0.0", FIRST | {path: [priority, config_map("last", {"k": "v"})]})
    seen: list[str] = []
    async with cluster(tmp_path / "world", times=5) as (world, make):
        for number in range(2):
            async with running(make(applies=True, payload=folder)):
                await world.until(completed("5.0.0"))
                # What is put back later than that was looked at before.
                await world.client.send(calls.merge_patch(CONFIG_MAPS, "last", {"data": {"k": str(number)}}, NAMESPACE))
                await until_equal(world, "last", {"k": "v"})
            seen.append((await exists(world, PRIORITIES, "p"))["metadata"]["resourceVersion"])
    assert seen[0] == seen[1]


@pytest.mark.slow
async def test_what_needs_a_later_manifest_holds_up_nobody(tmp_path: Path) -> None:
    """An object whose kind is defined behind a Job, or behind itself: it is reported, and done when it can be."""
    files = FIRST | {
        "manifests/0000_90_cvo_02_monitor.yaml": [manifest("example.org/v1", "Widget", "w", NAMESPACE, spec={})],
        "manifests/0000_90_cvo_03_gadget.yaml": [manifest("example.org/v1", "Gadget", "g", NAMESPACE, spec={})],
        "manifests/0000_90_cvo_04_definition.yaml": [definition("Gadget", "gadgets")],
        "release-manifests/0000_20_a_02_job.yaml": [job("migrate")],
        "release-manifests/0000_30_a_01_definition.yaml": [definition("Widget", "widgets")],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await exists(world, JOBS, "migrate", NAMESPACE)
        await exists(world, GADGETS, "g", NAMESPACE)
        why = 'waiting on customresourcedefinition "widgets.example.org" (6 of 6), which comes after widget'
        waiting = await world.until(lambda found: why in message(found, "Progressing"))
        assert state(waiting, "Failing") == ("False", "")
        await job_says(world, "migrate", succeeded=1)
        await world.until(completed("5.0.0"))
        await exists(world, WIDGETS, "w", NAMESPACE)


async def test_operators_that_are_there_are_not_created_again(tmp_path: Path) -> None:
    """What one says about itself survives the release that brings it."""
    files = FIRST | {"release-manifests/0000_20_a_01_x.yaml": [operator("a", "5.0.0")]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        found = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "a"}}
        await world.until_created(OPERATORS, found)
        await operator_is_at(world, "a", "5.0.0")
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            kept = await exists(world, OPERATORS, "a")
    assert kept["status"]["versions"] == [{"name": "operator", "version": "5.0.0"}]
    assert "relatedObjects" not in kept["status"]


@pytest.mark.slow
async def test_what_others_add_is_taken_away(tmp_path: Path) -> None:
    """A paused Deployment without replicas, with a sidecar and a privilege: as Go's merge has it; a label stays."""
    files = FIRST | {"release-manifests/0000_20_a_01_deployment.yaml": [deployment("a", "registry.example/a:1")]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await world.until(completed("5.0.0"))
        before = await exists(world, DEPLOYMENTS, "a", NAMESPACE)
        (container,) = before["spec"]["template"]["spec"]["containers"]
        pod = {"containers": [{**container, "securityContext": {"privileged": True}}, {"name": "b", "image": "b"}]}
        spec = {"paused": True, "replicas": 0, "template": {"spec": pod | {"hostNetwork": True}}}
        change = {"metadata": {"labels": {"mine": "x"}}, "spec": spec}
        call = calls.merge_patch(DEPLOYMENTS, "a", change, NAMESPACE, field_manager="somebody")
        changed = await world.client.send(call)

        async def back() -> Any:
            found = await exists(world, DEPLOYMENTS, "a", NAMESPACE)
            newer = found["metadata"]["resourceVersion"] != changed["metadata"]["resourceVersion"]
            return found if newer and found["spec"] == before["spec"] else None

        found = await eventually(back, "the Deployment is as it was")
    assert found["metadata"]["labels"]["mine"] == "x"


@pytest.mark.slow
async def test_a_field_that_the_server_does_not_know_is_left_out(tmp_path: Path) -> None:
    """A release's first manifests meet the API server of the release before it; the rest of the object counts."""
    newer = deployment("a", "registry.example/a:1")
    newer["spec"]["template"]["spec"]["ofTheNextRelease"] = "yes"
    files = FIRST | {"release-manifests/0000_20_a_01_deployment.yaml": [newer]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        found = await world.until(completed("5.0.0"))
        made = await exists(world, DEPLOYMENTS, "a", NAMESPACE)
        change = {"spec": {"paused": True}}
        await world.client.send(calls.merge_patch(DEPLOYMENTS, "a", change, NAMESPACE, field_manager="somebody"))

        async def back() -> Any:
            return "paused" not in (await exists(world, DEPLOYMENTS, "a", NAMESPACE))["spec"]

        await eventually(back, "it is put back without a patch, too")
        (shown,) = await events(world, "ReleaseFieldsDropped")
    assert shown == (
        f'deployment "{NAMESPACE}/a" (2 of 2) is not as the release has it, because this API server does not know or '
        'keep all of it: unknown field "spec.template.spec.ofTheNextRelease"'
    )
    assert "ofTheNextRelease" not in made["spec"]["template"]["spec"]
    assert state(found, "Failing") == ("False", "")


@pytest.mark.slow
async def test_who_keeps_changing_an_object_is_told(tmp_path: Path) -> None:
    """Another controller that puts its sidecar back each second: it is named, and the object put back ever later."""
    files = FIRST | {"release-manifests/0000_20_a_01_deployment.yaml": [deployment("a", "registry.example/a:1")]}
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=20) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await world.until(completed("5.0.0"))
        (container,) = (await exists(world, DEPLOYMENTS, "a", NAMESPACE))["spec"]["template"]["spec"]["containers"]
        sidecars = {"spec": {"template": {"spec": {"containers": [container, {"name": "mesh", "image": "mesh"}]}}}}
        insists = calls.merge_patch(DEPLOYMENTS, "a", sidecars, NAMESPACE, field_manager="mesh-controller")
        changes = 0

        async def contested_events() -> Any:
            nonlocal changes
            found = await exists(world, DEPLOYMENTS, "a", NAMESPACE)
            if len(found["spec"]["template"]["spec"]["containers"]) == 1:
                changes += 1
                await world.client.send(insists)
            return await events(world, "ReleaseObjectContested")

        (text,) = await eventually(contested_events, "an event tells of it")
        condition = find((await world.version()).status.conditions, "Progressing")
    assert text == (
        f'deployment "{NAMESPACE}/a" (2 of 2) is changed by "mesh-controller" as often as it is put back, so it is put '
        "back ever later, at most once a minute. End what changes it, or take the object away from the operator: "
        "spec.overrides"
    )
    assert 5 <= changes <= 6, "shown with the fifth repair in a row"
    assert condition is not None
    assert condition.status == "False"


async def events(world: Cluster, reason: str) -> list[str]:
    """What the events on ClusterVersion of that reason say."""
    page = await world.client.send(calls.list_raw(EVENTS, "default"))
    uid = (await world.version()).metadata.uid
    about = [event for event in page.items if event["involvedObject"].get("uid") == uid]
    return [event["message"] for event in about if event["reason"] == reason]


EVENTS = Resource(group="", version="v1", kind="Event", plural="events", namespaced=True)
