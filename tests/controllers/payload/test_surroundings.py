"""What the cluster gives to objects, before anybody has asked for any of it."""

from __future__ import annotations

from runup.controllers.payload.surroundings import ClusterGives
from runup.domain.payload.rendering import Surroundings
from runup.kube.client import Client
from runup.kube.clock import ManualClock
from runup.kube.config import ClusterConfig

OPERATOR = ("openshift-cluster-version-operator", "cluster-version-operator")


async def test_what_is_given_before_a_release_is_known() -> None:
    """The operator's own name and nothing else: no owner, no proxy; nobody is asked, and nobody waits."""
    changes: list[None] = []
    async with Client(ClusterConfig("http://127.0.0.1:9")) as client:
        gives = ClusterGives(client, ManualClock(), OPERATOR, lambda: changes.append(None))
        assert gives.surroundings == Surroundings(operator=OPERATOR)
        await gives.settled()
        assert gives.surroundings == Surroundings(operator=OPERATOR)
        gives.wanted((), "uid-of-version")
        assert gives.surroundings == Surroundings(operator=OPERATOR, owner_uid="uid-of-version")
        await gives.close()
    assert changes == []
