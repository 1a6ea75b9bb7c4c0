"""An update next to a server that is in trouble: it ends Completed once the server lets it, and every object is there.

The operator is a bare process behind a proxy that misbehaves. `RUNUP_AWAY_S` is for how long a server is away (60 for
what is promised; the default is short).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.hostile import faulty_api as faults
from bench.hostile.faulty_api import FaultyApi, faulty_api
from bench.releases_world import Operator, World, world
from tests.controlplane.build import Unavailable
from tests.controlplane.rows import SERVERS
from tests.journeys.cluster import small_release
from tests.journeys.cluster.small_release import FIRST
from tests.journeys.cluster.test_killed_updates import ALONE, missed
from tests.servers import eventually

from kubekit.kube import config

AWAY_S = float(os.environ.get("RUNUP_AWAY_S", "4"))
SHARE = 0.2
DEADLINE_S = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module", params=SERVERS)
def here(request: pytest.FixtureRequest) -> Iterator[World]:
    """A server with the small release installed; each test updates it to a separate release."""
    folder = Path(tempfile.mkdtemp(prefix="runup-test-trouble-"))
    try:
        with world(request.param, folder, small_release.write) as made, made.stand_in():
            with made.operator(FIRST, ALONE) as operator:
                made.until_completed(operator)
            yield made
    except Unavailable as why:
        pytest.skip(str(why))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def some(*kinds: faults.Fault) -> Callable[[FaultyApi], None]:
    """A share of all requests fails like this."""

    def make(api: FaultyApi) -> None:
        api.share, api.faults = SHARE, kinds

    return make


def all_watches(*kinds: faults.Fault) -> Callable[[FaultyApi], None]:
    """Every watch ends like this."""

    def make(api: FaultyApi) -> None:
        api.watches = kinds

    return make


TROUBLES = [
    pytest.param("5.0.1", some(faults.conflict), id="409 to some requests"),
    pytest.param("5.0.2", some(faults.too_many), id="429 to some requests"),
    pytest.param("5.0.3", some(faults.server_error), id="500 to some requests"),
    pytest.param("5.0.4", some(faults.answer_lost), id="answers that are lost"),
    pytest.param("5.0.5", all_watches(faults.ended_watch, faults.cut_watch), id="watches that end at once"),
    pytest.param("5.0.6", FaultyApi.storm, id="all of it at once"),
]


@pytest.mark.parametrize(("version", "trouble"), TROUBLES)
async def test_an_update_through_trouble(
    here: World, tmp_path: Path, version: str, trouble: Callable[[FaultyApi], None]
) -> None:
    """The trouble lasts until something was applied in it, and ends when the update has, or after a while."""
    async with faulty_api(config.load(str(here.kubeconfig)), seed=7) as api:
        trouble(api)
        with here.operator(version, ALONE, kubeconfig=api.kubeconfig(tmp_path / "faulty.kubeconfig")) as operator:
            await asyncio.to_thread(eventually, lambda: _failed(api) > 0, "a request fails", DEADLINE_S)
            # Some of it can be got through, and storms may be too much; then it is the calm that has to do.
            await _until(here, operator, or_after_s=20.0)
            api.calm()
            assert await _until(here, operator, or_after_s=DEADLINE_S), operator.log.read_text()[-3000:]
    assert [*missed(here, version)] == []


async def test_an_update_whose_server_is_away(here: World, tmp_path: Path) -> None:
    """For a while nothing is answered at all, from when the first objects were written on."""
    since = here.moment()
    async with faulty_api(config.load(str(here.kubeconfig)), seed=7) as api:
        with here.operator("5.0.9", ALONE, kubeconfig=api.kubeconfig(tmp_path / "away.kubeconfig")) as operator:
            await asyncio.to_thread(eventually, lambda: _written(here, since) >= 3, "it has begun", DEADLINE_S)
            api.away()
            await _until(here, operator, or_after_s=AWAY_S)
            api.calm()
            assert await _until(here, operator, or_after_s=DEADLINE_S), operator.log.read_text()[-3000:]
    assert [*missed(here, "5.0.9")] == []


def _failed(api: FaultyApi) -> int:
    """Requests that did not get through as they were."""
    return sum(number for name, number in dict(api.counted).items() if not name.endswith("pass_on"))


def _written(here: World, since: int) -> int:
    """Objects other than ClusterVersion and the lease that the operator has written."""
    sent = here.requests(since).by_kind
    own = ("leases", "clusterversions/status", "events")
    return sum(number for (verb, kind), number in sent.items() if verb in ("patch", "create") and kind not in own)


async def _until(here: World, operator: Operator, *, or_after_s: float) -> bool:
    """Whether the operator's release is Completed; False after so long.

    A process that lost its lease ends, and is started again as a kubelet would.
    """
    deadline = operator.seconds + or_after_s
    while operator.seconds < deadline:
        if await asyncio.to_thread(here.completed, operator):
            return True
        if operator.process.poll() is not None:
            operator.again()
        await asyncio.sleep(0.05)
    return False
