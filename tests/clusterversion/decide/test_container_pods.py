"""The Pods of container checks, seen from ClusterVersion's reconcile: which are made, of what, and when they go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.test_preflight import started
from tests.clusterversion.decide.world import World

from runup.clusterversion.decide.work import ReadImages
from runup.preflight.decide import container_check_pods
from runup.process.plan import Apply
from runup.report.report import ReportedContainer

PINNED = "registry.example/network@sha256:" + "a" * 64
IMAGES = {"network": PINNED, "by-tag": "registry.example/network:latest"}


def wants(*images: str, run: int = 1) -> tuple[ReportedContainer, ...]:
    """A report's containers, one an image."""
    return tuple(ReportedContainer(check=f"of-{image}", image=image, run=run) for image in images)


def checking(*images: str, world: World | None = None, run: int = 1) -> World:
    """A preflight whose target wants these images run."""
    world = world or started()
    world.images = IMAGES
    return world.report(execution_status="running", containers=wants(*images, run=run)).settle()


def runs(world: World) -> dict[str, str]:
    """Which run each Pod that there is belongs to."""
    return {
        pod.metadata.name: pod.metadata.annotations[container_check_pods.RUN_ANNOTATION].partition("/")[2]
        for pod in world.observed.check_pods
    }


def test_an_image_is_run_as_the_verified_release_names_it() -> None:
    """By digest, under its own account, owned by the Deployment; the names are read when they are first needed."""
    world = started()
    assert ReadImages not in world.ran
    checking("network", world=world)
    assert world.ran.count(ReadImages) == 1
    (pod,) = world.observed.check_pods
    assert pod.spec.containers[0].image == PINNED
    assert pod.spec.service_account_name == container_check_pods.ACCOUNT
    assert world.observed.deployment is not None
    assert [owner.uid for owner in pod.metadata.owner_references] == [world.observed.deployment.metadata.uid]
    (apply,) = (a for plan in world.plans for a in plan.actions if isinstance(a, Apply) and a.resource.kind == "Pod")
    assert apply.optional
    assert apply.object["spec"]["activeDeadlineSeconds"] == 120
    # Without the account's token it could read nothing.
    assert apply.object["spec"]["automountServiceAccountToken"] is True


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("another", id="a name that the release has not"),
        pytest.param("by-tag", id="an image that is not pinned by digest"),
    ],
)
def test_nothing_else_is_run(image: str) -> None:
    """The target asks by a name; what that is the verified release says."""
    assert checking(image).observed.check_pods == ()


@pytest.mark.parametrize(
    ("images", "run", "left"),
    [
        pytest.param(("network",), 2, {container_check_pods.pod_name(0): "of-network/network/2"}, id="asked for again"),
        pytest.param(
            ("network",), 1, {container_check_pods.pod_name(0): "of-network/network/1"}, id="asked for as before"
        ),
        pytest.param((), 1, {}, id="not asked for any more"),
    ],
)
def test_what_runs_is_what_the_target_asks_for(images: tuple[str, ...], run: int, left: dict[str, str]) -> None:
    """A run that is over makes way; nothing is left that nobody asks for."""
    assert runs(checking(*images, world=checking("network"), run=run)) == left


def test_a_pod_of_another_deployment_makes_way() -> None:
    """One that an attempt before left, or somebody else put there under the name, answers for nobody."""
    world = checking("network")
    (pod,) = world.observed.check_pods
    assert world.observed.deployment is not None
    deployment = world.observed.deployment
    world.change(deployment=with_fields(deployment, metadata=with_fields(deployment.metadata, uid="new")))
    world.settle()
    (again,) = world.observed.check_pods
    assert again.metadata.uid != pod.metadata.uid
    assert [owner.uid for owner in again.metadata.owner_references] == ["new"]


def test_a_release_whose_images_cannot_be_read_runs_none_and_is_asked_again() -> None:
    """The target then says Unknown; a minute later the registry may be there."""
    world = started()
    world.images = {}
    world.report(execution_status="running", containers=wants("network")).settle()
    assert world.observed.check_pods == ()
    (image,) = (name for name, check in world.observed.releases.items() if check.images is not None)
    world.change(releases={image: replace(world.observed.releases[image], images_until=world.now)})
    world.images = IMAGES
    world.settle()
    assert len(world.observed.check_pods) == 1


def test_nothing_is_made_once_the_request_is_gone() -> None:
    """Deleting the Deployment takes its Pods with it: none is planned next to it."""
    world = checking("network").ask(None)
    before = len(world.log)
    world.settle()
    assert "delete Deployment" in world.log[before:]
    assert "apply Pod" not in world.log[before:]
