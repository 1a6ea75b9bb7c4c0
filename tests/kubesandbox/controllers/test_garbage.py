"""What becomes of dependents when their owners go: by the rules of kube-controller-manager's garbage collector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from tests.kubesandbox.controllers.conftest import (
    CLASSES,
    CONFIG_MAPS,
    NAMESPACES,
    SECRETS,
    Cluster,
    namespace_of,
    reference,
)

from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubesandbox.controllers.garbage import FOREGROUND, Cut, Delete, Owner, decide_collection

# In the loop in which the cluster runs that they share.
SHARED = pytest.mark.asyncio(loop_scope="module")
JSON = dict[str, Any]
HOLD = "example.com/hold"
SOLID, DANGLING, WAITING = Owner.SOLID, Owner.DANGLING, Owner.WAITING
PLAIN = ObjectMeta(name="x")
GOING = ObjectMeta(name="y", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC), finalizers=(FOREGROUND,))


@pytest.mark.parametrize(
    ("owners", "finalizers", "dependents", "expected"),
    [
        pytest.param([], (), [], None, id="no owner: nobody's garbage"),
        pytest.param([SOLID], (), [], None, id="its owner is there"),
        pytest.param([DANGLING], (), [], Delete("Background"), id="its owner is gone"),
        pytest.param([DANGLING, DANGLING], (), [], Delete("Background"), id="all owners are gone"),
        pytest.param([SOLID, DANGLING], (), [], Cut(frozenset({"1"})), id="one of two is gone"),
        pytest.param([SOLID, WAITING], (), [], Cut(frozenset({"1"})), id="one of two goes and waits"),
        pytest.param([WAITING], (), [], Delete("Background"), id="its owner waits for it"),
        pytest.param([WAITING], (), [PLAIN], Delete("Foreground"), id="its owner waits, and it has dependents itself"),
        pytest.param([WAITING], (), [GOING], Delete("Foreground", unblock=True), id="a circle of such owners"),
        pytest.param([DANGLING, WAITING], (), [PLAIN], Delete("Foreground"), id="one is gone, one waits"),
        pytest.param([DANGLING], (), [PLAIN], Delete("Background"), id="its owner is gone, and it has dependents"),
        pytest.param([DANGLING], ("orphan",), [PLAIN], Delete("Orphan"), id="it was to leave its dependents alone"),
        pytest.param([DANGLING], (FOREGROUND,), [PLAIN], Delete("Foreground"), id="it was to go after its dependents"),
    ],
)
def test_decisions(
    owners: list[Owner], finalizers: tuple[str, ...], dependents: list[ObjectMeta], expected: Any
) -> None:
    """By attemptToDeleteItem."""
    standing = {str(number): owner for number, owner in enumerate(owners)}
    assert decide_collection(ObjectMeta(name="o", finalizers=finalizers), standing, dependents) == expected


@pytest_asyncio.fixture(loop_scope="module")
async def cluster(client_of_all: Client) -> AsyncIterator[Cluster]:
    """A namespace of a cluster that the file's other tests have, too."""
    async with namespace_of(client_of_all) as made:
        yield made


async def family(cluster: Cluster, *, blocks: bool = True, hold: bool = False) -> JSON:
    """An owner with a dependent, which has one itself; gives the owner."""
    owner = await cluster.create("owner")
    middle = await cluster.create("middle", owners=[reference(owner, blocks=blocks)], finalizers=[HOLD] if hold else [])
    await cluster.create("last", owners=[reference(middle, blocks=blocks)])
    return owner


@SHARED
async def test_background(cluster: Cluster) -> None:
    """The owner at once, its dependents after it, and theirs after them."""
    await family(cluster)
    await cluster.delete("owner")
    assert await cluster.find("owner") is None
    await cluster.until_gone("middle", "last")


@SHARED
async def test_foreground(cluster: Cluster) -> None:
    """The owner last: it waits, marked, for those that block it."""
    await family(cluster, hold=True)
    await cluster.delete("owner", "Foreground")
    await cluster.until_gone("last")
    await cluster.until(lambda found: found and "deletionTimestamp" in found["metadata"], "middle")
    owner = await cluster.find("owner")
    assert owner is not None
    assert owner["metadata"]["finalizers"] == [FOREGROUND]
    await cluster.release("middle")
    await cluster.until_gone("middle", "owner")


@SHARED
async def test_foreground_does_not_wait_for_those_that_do_not_block(cluster: Cluster) -> None:
    """They are deleted all the same."""
    await family(cluster, blocks=False, hold=True)
    await cluster.delete("owner", "Foreground")
    await cluster.until_gone("owner")
    await cluster.until(lambda found: found and "deletionTimestamp" in found["metadata"], "middle")
    await cluster.release("middle")
    await cluster.until_gone("middle", "last")


@SHARED
async def test_orphan(cluster: Cluster) -> None:
    """The ties are cut, below the dependents all stays as it was."""
    await family(cluster)
    await cluster.delete("owner", "Orphan")
    await cluster.until_gone("owner")
    await cluster.settled()
    middle, last = await cluster.find("middle"), await cluster.find("last")
    assert middle is not None
    assert last is not None
    assert "ownerReferences" not in middle["metadata"]
    assert [each["name"] for each in last["metadata"]["ownerReferences"]] == ["middle"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@SHARED
async def test_another_owner_keeps_it(cluster: Cluster, propagation: str) -> None:
    """Only the reference to the owner that goes is cut."""
    going, staying = await cluster.create("going"), await cluster.create("staying")
    await cluster.create("shared", owners=[reference(going, blocks=True), reference(staying, blocks=True)])
    await cluster.delete("going", propagation)
    await cluster.until_gone("going")
    shared = await cluster.until(lambda found: found and len(found["metadata"]["ownerReferences"]) == 1, "shared")
    assert shared["metadata"]["ownerReferences"][0]["name"] == "staying"
    assert "deletionTimestamp" not in shared["metadata"]


@SHARED
async def test_an_owner_that_never_was(cluster: Cluster) -> None:
    """It is asked for, and not found."""
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "no", "uid": "00000000-0000-0000-0000-000000000000"}
    await cluster.create("child", owners=[gone])
    await cluster.until_gone("child")


@SHARED
async def test_a_namesake_of_the_owner(cluster: Cluster) -> None:
    """The uid counts, not the name."""
    first = await cluster.create("owner")
    await cluster.delete("owner", "Orphan")
    await cluster.until_gone("owner")
    await cluster.create("owner")
    await cluster.create("child", owners=[reference(first)])
    await cluster.until_gone("child")
    assert await cluster.find("owner") is not None


@SHARED
async def test_an_owner_in_another_namespace(cluster: Cluster) -> None:
    """Is none: it is looked for next to the dependent. Its own deletion does not wait for strangers."""
    await cluster.create("other", resource=NAMESPACES)
    owner = await cluster.create("owner", namespace="other")
    await cluster.create("child", owners=[reference(owner, blocks=True)])
    await cluster.until_gone("child")
    assert await cluster.find("owner", namespace="other") is not None


@SHARED
async def test_a_namespaced_owner_of_something_cluster_wide(cluster: Cluster) -> None:
    """It cannot be looked up, so the dependent is left alone, whether the owner is there or not."""
    owner = await cluster.create("owner")
    await cluster.create("class", resource=CLASSES, owners=[reference(owner)])
    await cluster.delete("owner")
    await cluster.settled()
    found = await cluster.find("class", CLASSES)
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize("resource", [CLASSES, CONFIG_MAPS], ids=["cluster-wide", "in a namespace"])
@SHARED
async def test_a_cluster_wide_owner(cluster: Cluster, resource: Resource) -> None:
    """May own either."""
    owner = await cluster.create("owner", resource=CLASSES)
    await cluster.create("child", resource=resource, owners=[reference(owner)])
    await cluster.delete("owner", resource=CLASSES)
    await cluster.until_gone("child", resource=resource)


@SHARED
async def test_an_owner_of_a_kind_that_is_not_served(cluster: Cluster) -> None:
    """Not being able to look is no proof that it is gone."""
    unknown = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "name": "t",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    await cluster.create("child", owners=[unknown])
    await cluster.settled()
    child = await cluster.find("child")
    assert child is not None
    assert "deletionTimestamp" not in child["metadata"]


@SHARED
async def test_a_circle_of_owners(cluster: Cluster) -> None:
    """Each blocks the other; deleting one in the foreground takes both away."""
    one = await cluster.create("one")
    two = await cluster.create("two", owners=[reference(one, blocks=True)])
    patch = {"metadata": {"ownerReferences": [reference(two, blocks=True)]}}
    await cluster.client.send(calls.merge_patch(CONFIG_MAPS, "one", patch, cluster.namespace))
    await cluster.settled()
    await cluster.delete("one", "Foreground")
    await cluster.until_gone("one", "two")


@SHARED
async def test_a_dependent_that_lets_its_owner_go(cluster: Cluster) -> None:
    """One that no longer names the owner does not block it any more."""
    owner = await cluster.create("owner")
    await cluster.create("child", owners=[reference(owner, blocks=True)], finalizers=[HOLD])
    await cluster.delete("owner", "Foreground")
    await cluster.until(lambda found: found and "deletionTimestamp" in found["metadata"], "child")
    patch = {"metadata": {"ownerReferences": None}}
    await cluster.client.send(calls.merge_patch(CONFIG_MAPS, "child", patch, cluster.namespace))
    await cluster.until_gone("owner")
    await cluster.release("child")


@SHARED
async def test_dependents_of_other_kinds(cluster: Cluster) -> None:
    """Every kind that discovery shows is collected."""
    owner = await cluster.create("owner", resource=SECRETS)
    await cluster.create("child", owners=[reference(owner)])
    await cluster.delete("owner", resource=SECRETS)
    await cluster.until_gone("child")
