"""One real cluster for all tests of this folder, in their order: `make real`."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.controlplane import build as controlplane
from tests.realcluster import build, dns, images, installing, releases
from tests.realcluster.cluster import DNS, HERE, RealCluster
from tests.realcluster.kube import Kube, metadata
from tests.realcluster.machine_config import MachineConfig
from tests.realcluster.releases import ReleaseWorld
from tests.realcluster.story import FIRST, LATER, SECOND, UNREACHABLE, Story

FOLDER = Path(__file__).parent
LIMIT_S = 900


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever asks for the cluster runs only where one was asked for."""
    if item.path.is_relative_to(FOLDER) and "cluster" in getattr(item, "fixturenames", ()):
        item.add_marker("real")
        item.add_marker(pytest.mark.timeout(LIMIT_S))
        item.add_marker(pytest.mark.xdist_group("realcluster"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """Two nodes that are Ready; skips where a machine cannot have them, unless they are required."""
    try:
        build.check_machine()
        build.programs()
        build.dns()
    except controlplane.Unavailable as error:
        if os.environ.get("RUNUP_REAL") == "required":
            raise
        pytest.skip(str(error))
    with RealCluster() as made:
        print(f"\nreal cluster: {made.took}", file=sys.stderr)
        yield made


@pytest.fixture(scope="session")
def kube(cluster: RealCluster) -> Iterator[Kube]:
    """The administrator's connection."""
    made = Kube(cluster.kubeconfig)
    pullspec = cluster.registry.push(dns.image(cluster.folder / "images"), "coredns")
    made.apply(*dns.objects(pullspec, DNS))
    yield made
    made.close()


@pytest.fixture(scope="session")
def python_image(cluster: RealCluster) -> str:
    """Debian's Python with a shell, by digest."""
    return cluster.registry.push(images.python_base(), "python")


@pytest.fixture(scope="session")
def release_world(cluster: RealCluster) -> Iterator[ReleaseWorld]:
    """A registry's releases, and what serves their graph and signatures."""
    folder = cluster.folder / "releases"
    component = cluster.registry.push(releases.component_image(folder), "component")
    operator = images.operator(folder)
    with ReleaseWorld(folder, cluster.registry, HERE, operator, component) as made:
        yield made


@pytest.fixture(scope="session")
def story(cluster: RealCluster, kube: Kube, release_world: ReleaseWorld) -> Story:
    """A cluster without any release yet, and two to go to."""
    release_world.release(FIRST)
    release_world.release(SECOND, previous=(FIRST,))
    release_world.release(LATER, previous=(FIRST, SECOND))
    release_world.promise(UNREACHABLE, previous=(FIRST, SECOND))
    installing.prepare(kube, release_world, [FIRST, SECOND, LATER, UNREACHABLE])
    machines = MachineConfig(cluster, kube)
    machines.install(FIRST)
    return Story(cluster, kube, release_world, machines)


@pytest.fixture
def namespace(kube: Kube) -> Iterator[str]:
    """A namespace of the test's own, which is gone afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name)})
    kube.until(lambda: kube.get("v1", "ServiceAccount", "default", name), "the namespace's account")
    yield name
    kube.delete("v1", "Namespace", name)
