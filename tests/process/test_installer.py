"""Who installed the cluster: told once, by the note that counts; asked again only where nobody could be asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.release.control.test_registry_access import FORBIDDEN, Answers, cluster

from kubekit.kube.clock import ManualClock
from runup.process.installer import AGAIN_S, Installer

OWN, OTHER = (
    f"/api/v1/namespaces/openshift-config/configmaps/{name}"
    for name in ("openshift-install", "openshift-install-manifests")
)


def note(**data: str) -> tuple[int, Any]:
    """An installer's ConfigMap."""
    return 200, {"kind": "ConfigMap", "metadata": {"name": "n", "namespace": "openshift-config"}, "data": data}


@pytest.mark.parametrize(
    ("answers", "shown"),
    [
        pytest.param(
            {OWN: note(version="5.0.0", invoker="user")}, ("openshift-install", "5.0.0", "user"), id="its own"
        ),
        pytest.param({OTHER: note(invoker="agent")}, ("other", "<missing>", "agent"), id="somebody with its manifests"),
        pytest.param(
            {OWN: note(version="5.0.0"), OTHER: note(invoker="agent")},
            ("openshift-install", "5.0.0", "<missing>"),
            id="both",
        ),
        pytest.param({}, ("", "", ""), id="nobody left a note"),
    ],
)
async def test_who_installed(answers: Answers, shown: tuple[str, str, str]) -> None:
    """At once, and once."""
    heard: list[tuple[str, str, str]] = []
    async with cluster(answers) as client:
        async with asyncio.timeout(90):
            await Installer(client, ManualClock(), lambda *said: heard.append(said)).run()
    assert heard == [shown]


async def test_a_note_that_may_not_be_read_yet_is_asked_for_again() -> None:
    """Not knowing is not that there is none: nothing is reported until there is an answer."""
    heard: list[tuple[str, str, str]] = []
    answers: Answers = {OWN: FORBIDDEN}
    clock = ManualClock()
    async with cluster(answers) as client:
        running = asyncio.create_task(Installer(client, clock, lambda *said: heard.append(said)).run())
        async with asyncio.timeout(90):
            await clock.until_sleeping(deadline_s=90)
            answers[OWN] = note(version="5.0.0")
            await clock.advance(AGAIN_S - 1)
            assert heard == []
            await clock.advance(1)
            await running
    assert heard == [("openshift-install", "5.0.0", "<missing>")]
