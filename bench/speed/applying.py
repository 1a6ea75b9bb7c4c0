"""A release of 900 manifests installed, kept and updated by the operator as a bare process, on both servers.

On each: the install, the steady state over `window` seconds, drift repaired, `foreign` ConfigMaps and as many Secrets
of others beside ours, and the update in which 140 manifests differ. The table of docs/explanation/applying.md was made
by `python -m bench aims`, which runs this.
"""

from __future__ import annotations

import concurrent.futures
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.release_payload import FIRST, SECOND
from bench.releases_world import NAMESPACES, SERVERS, Operator, World, world
from bench.speed import drift
from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import AlreadyExists
from kubekit.kube.client_sync import SyncClient

CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
OTHERS = "somebody-else"
HOUR_S = 3600.0


def run(*, window: int = 120, foreign: int = 2_000, servers: int = len(SERVERS)) -> dict[str, Any]:
    """Both servers in turn; the real one needs to be built (`make e2e`), else it says so."""
    from tests.controlplane.build import Unavailable

    found: dict[str, Any] = {}
    for server in SERVERS[len(SERVERS) - servers :]:
        try:
            found[server] = measure(server, window=window, foreign=foreign)
        except Unavailable as error:
            found[server] = {"skipped": str(error)}
    return found


def measure(server: str, *, window: int, foreign: int) -> dict[str, Any]:
    """Every row of the table on one server."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, world(server, Path(folder)) as here, here.stand_in():
        written = here.payload(FIRST), here.payload(SECOND)
        assert all(each.is_dir() for each in written), "writing them is no part of what is measured"
        with here.operator(FIRST) as operator:
            found["install"] = _reached(here, operator)
            _tell(server, "install", found["install"])
            found["steady"] = _steady(here, operator, window)
            _tell(server, "steady", found["steady"])
            found["drift"] = drift.measure(here)
            _tell(server, "drift", found["drift"])
            if foreign:
                found["foreign"] = _beside(here, operator, foreign)
                _tell(server, "foreign", found["foreign"])
            found["memory"] = _memory(operator)
        with here.operator(SECOND) as operator:
            found["update"] = _reached(here, operator) | {"memory": _memory(operator)}
            _tell(server, "update", found["update"])
    return found


def installed(here: World) -> dict[str, Any]:
    """What `measure` has of the installation, and of the operator's memory after it."""
    assert here.payload(FIRST).is_dir(), "writing it is no part of what is measured"
    with here.operator(FIRST) as operator:
        return {"install": _reached(here, operator), "memory": _memory(operator)}


def _reached(here: World, operator: Operator) -> dict[str, Any]:
    """From the operator's start until its release is Completed."""
    since = here.moment()
    wall = here.until_completed(operator)
    sent, used = here.requests(since), operator.usage()
    return {
        "seconds": round(wall, 1),
        "requests": sent.all,
        "cpu_seconds": round(used.cpu_seconds, 1),
        "most_requests": sent.most(),
    }


def _steady(here: World, operator: Operator, window: int) -> dict[str, Any]:
    """What it sends while nothing happens, as if it went on for an hour."""
    _settled(here)
    since, before, began = here.moment(), operator.usage(), time.perf_counter()
    time.sleep(window)
    seconds = time.perf_counter() - began
    sent, after = here.requests(since), operator.usage()
    return {
        "window_seconds": round(seconds),
        "requests_an_hour_without_lease": round(sent.without_lease * HOUR_S / seconds),
        "requests_an_hour": round(sent.all * HOUR_S / seconds),
        "cpu_seconds_an_hour": round((after.cpu_seconds - before.cpu_seconds) * HOUR_S / seconds, 1),
        "most_requests": sent.most(),
    }


def _settled(here: World, quiet_s: float = 5.0) -> None:
    """Wait until nothing but the lease has been sent for a while; a minute at most, or it never settles."""
    deadline = time.perf_counter() + 60
    while time.perf_counter() < deadline:
        since = here.moment()
        time.sleep(quiet_s)
        if not here.requests(since).without_lease:
            return


def _beside(here: World, operator: Operator, foreign: int) -> dict[str, Any]:
    """So many ConfigMaps and as many Secrets of others come, are there, and drift is repaired among them."""
    before, since = operator.usage(), here.moment()
    with _clients(here) as each:
        seconds = _create_foreign(here, each, foreign)
    _settled(here)
    after, sent = operator.usage(), here.requests(since)
    return {
        "objects": 2 * foreign,
        "created_in_seconds": round(seconds, 1),
        "cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 1),
        "more_mib": round(after.mib - before.mib, 1),
        "requests": sent.without_lease,
        "secrets_read": sum(
            number for (verb, kind), number in sent.by_kind.items() if (verb, kind) == ("get", "secrets")
        ),
        "drift": drift.measure(here, seed=2),
    }


@contextmanager
def _clients(here: World, count: int = 8) -> Iterator[list[SyncClient]]:
    made = [SyncClient(config.load(str(here.kubeconfig)), user_agent="bench/1") for _ in range(count)]
    try:
        yield made
    finally:
        for client in made:
            client.close()


def _create_foreign(here: World, clients: list[SyncClient], foreign: int) -> float:
    began = time.perf_counter()
    name = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}}
    try:
        here.client.send(calls.create(NAMESPACES, name))
    except AlreadyExists:
        return 0.0

    def some(part: int) -> None:
        for number in range(part, foreign, len(clients)):
            metadata = {"name": f"theirs-{number:05}", "namespace": OTHERS}
            clients[part].send(calls.create(CONFIG_MAPS, {"metadata": metadata, "data": {"text": "x" * 1000}}))
            clients[part].send(calls.create(SECRETS, {"metadata": metadata, "stringData": {"text": "y" * 1000}}))

    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(some, range(len(clients))))
    return time.perf_counter() - began


def _memory(operator: Operator) -> dict[str, float]:
    used = operator.usage()
    held = {"own_mib_at_the_end": used.own_mib, "mib_at_the_end": used.mib, "mib_peak": used.peak_mib}
    return {name: round(mib, 1) for name, mib in held.items()}


def _tell(server: str, part: str, found: dict[str, Any]) -> None:
    shown: Callable[[Any], str] = lambda value: str(value)[:300]  # noqa: E731
    print(f"bench: {server}: {part}: {shown(found)}", file=sys.stderr, flush=True)
