"""Server-side apply: who owns what, who is in whose way, and what goes when it is applied no more."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict
from kubekit.kube.client import Client

JSON = dict[str, Any]
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)


def config(**data: str) -> JSON:
    """A ConfigMap."""
    metadata = {"name": "settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(*containers: JSON, **spec: Any) -> JSON:
    """A Deployment of these containers."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


A, B = {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}


async def apply(client: Client, obj: JSON, manager: str, *, force: bool = False, subresource: str = "") -> JSON:
    """Apply as `manager`."""
    resource = DEPLOYMENTS if obj["kind"] == "Deployment" else CONFIG_MAPS
    call = calls.apply(resource, obj, field_manager=manager, force=force, subresource=subresource)
    return await client.send(call)


def owners(obj: JSON) -> list[tuple[str, str, str]]:
    """Manager, operation and subresource of every entry."""
    fields = obj["metadata"].get("managedFields") or ()
    return [(each["manager"], each["operation"], each.get("subresource", "")) for each in fields]


async def test_what_is_no_longer_applied_is_removed(client: Client) -> None:
    """The applier's own field goes, those of others stay."""
    await apply(client, config(a="1", b="2"), "first")
    await apply(client, config(c="3"), "second")
    assert (await apply(client, config(a="1"), "first"))["data"] == {"a": "1", "c": "3"}


async def test_shared_fields_stay_until_the_last_owner_leaves(client: Client) -> None:
    """Two who apply the same value own it both."""
    await apply(client, config(a="1", b="2"), "first")
    await apply(client, config(a="1"), "second")
    assert (await apply(client, config(b="2"), "first"))["data"] == {"a": "1", "b": "2"}
    left = await apply(client, {**config(), "data": {}}, "second")
    assert left["data"] == {"b": "2"}


async def test_a_conflict_names_the_other_applier(client: Client) -> None:
    """One conflict is reported in one line, with its cause; nothing changes."""
    await apply(client, config(a="1"), "first")
    with pytest.raises(Conflict) as refused:
        await apply(client, config(a="2"), "second")
    status = refused.value.status
    assert status.message == 'Apply failed with 1 conflict: conflict with "first": .data.a'
    (cause,) = status.details.causes
    assert (cause.reason, cause.message, cause.field) == ("FieldManagerConflict", 'conflict with "first"', ".data.a")
    assert (await client.send(calls.get_raw(CONFIG_MAPS, "settings", "default")))["data"] == {"a": "1"}


async def test_a_conflict_names_the_version_that_an_update_used(client: Client) -> None:
    """Who changed it without applying is named with the API version."""
    await apply(client, deployment(A, replicas=1), "first")
    patch = {"spec": {"replicas": 3}}
    await client.send(calls.merge_patch(DEPLOYMENTS, "web", patch, "default", field_manager="kubectl-edit"))
    with pytest.raises(Conflict) as refused:
        await apply(client, deployment(A, replicas=1), "first")
    assert refused.value.status.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas'
    )


async def test_several_conflicts_are_listed_by_manager(client: Client) -> None:
    """Managers in order of their names, each with its fields."""
    await apply(client, config(a="1", b="1"), "second")
    await apply(client, config(c="1"), "first")
    with pytest.raises(Conflict) as refused:
        await apply(client, config(a="2", b="2", c="2"), "third")
    assert refused.value.status.message == (
        'Apply failed with 3 conflicts: conflicts with "first":\n- .data.c\n'
        'conflicts with "second":\n- .data.a\n- .data.b'
    )


async def test_force_takes_the_field_over(client: Client) -> None:
    """Afterwards it is the forcer's, and the former owner is the one in conflict."""
    await apply(client, config(a="1"), "first")
    taken = await apply(client, config(a="2"), "second", force=True)
    assert (taken["data"], owners(taken)) == ({"a": "2"}, [("second", "Apply", "")])
    with pytest.raises(Conflict, match=r'conflict with "second": \.data\.a'):
        await apply(client, config(a="1"), "first")


@pytest.mark.slow
async def test_the_same_value_is_no_conflict(client: Client) -> None:
    """Applying what is there already makes one more owner."""
    await apply(client, config(a="1"), "first")
    assert {name for name, *_ in owners(await apply(client, config(a="1"), "second"))} == {"first", "second"}


async def test_containers_merge_by_name(client: Client) -> None:
    """Two managers each bring a container."""
    await apply(client, deployment(A), "first")
    merged = await apply(client, deployment(B), "second")
    assert [each["name"] for each in merged["spec"]["template"]["spec"]["containers"]] == ["a", "b"]


async def test_a_container_that_is_applied_no_more_goes_whole(client: Client) -> None:
    """Its defaults, which nobody owns, go with it."""
    await apply(client, deployment(A, B), "first")
    left = await apply(client, deployment(A), "first")
    assert [each["name"] for each in left["spec"]["template"]["spec"]["containers"]] == ["a"]


async def test_an_entry_that_somebody_else_fills_keeps_its_key(client: Client) -> None:
    """A container with another's field in it stays, and stays a container."""
    await apply(client, deployment(A, B), "first")
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "b:2"}]
    await client.send(calls.json_patch(DEPLOYMENTS, "web", patch, "default", field_manager="editor"))
    left = await apply(client, deployment(A), "first")
    kept = left["spec"]["template"]["spec"]["containers"][1]
    assert (kept["name"], kept["image"]) == ("b", "b:2")


async def test_a_set_is_shared_by_its_values(client: Client) -> None:
    """Finalizers of two managers live side by side, and go one by one."""

    def with_finalizers(*names: str) -> JSON:
        obj = config(a="1")
        obj["metadata"]["finalizers"] = list(names)
        return obj

    await apply(client, with_finalizers("x.io/a", "x.io/b"), "first")
    both = await apply(client, with_finalizers("x.io/c"), "second")
    assert sorted(both["metadata"]["finalizers"]) == ["x.io/a", "x.io/b", "x.io/c"]
    left = await apply(client, with_finalizers("x.io/a"), "first")
    assert sorted(left["metadata"]["finalizers"]) == ["x.io/a", "x.io/c"]


async def test_an_atomic_list_is_one_value(client: Client) -> None:
    """Another manager's `args` are in conflict as a whole."""
    await apply(client, deployment({**A, "args": ["x", "y"]}), "first")
    with pytest.raises(Conflict) as refused:
        await apply(client, deployment({**A, "args": ["x"]}), "second")
    assert refused.value.status.message.endswith('"first": .spec.template.spec.containers[name="a"].args')


async def test_status_is_owned_apart(client: Client) -> None:
    """Fields applied to the status do not concern the manager of the spec."""
    await apply(client, deployment(A), "first")
    wish = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    done = await apply(client, {**wish, "status": {"replicas": 2}}, "controller", subresource="status")
    assert done["status"]["replicas"] == 2
    assert ("controller", "Apply", "status") in owners(done)
    kept = await apply(client, deployment(A), "first")
    assert kept["status"]["replicas"] == 2


async def test_applying_twice_changes_nothing(client: Client) -> None:
    """The revision stays."""
    first = await apply(client, deployment(A), "first")
    again = await apply(client, deployment(A), "first")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
