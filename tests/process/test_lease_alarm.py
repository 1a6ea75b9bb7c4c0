"""A process whose lease runs out ends, whatever hangs in it. Each row is another process, on the machine's clock."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.kubekit.kube.apiscript import scripted_api
from tests.kubekit.kube.test_lease_election import LeaseServer

pytestmark = pytest.mark.slow

GUARD_S = 60.0
LEASE_S = 5
# Leads, then does what the row says, in the event loop of the process.
PROGRAM = f"""
import asyncio, os, resource, sys, threading, time
from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from runup.process.leader_election import Election
from runup.process.process_server import LeaderProcess, ProcessOptions

server, trouble = sys.argv[1:]

class Process(LeaderProcess):
    async def run(self):
        async with Client(self._config) as client:
            await self.lead(client, self.work, namespace="ns", lease="version")

    async def work(self):
        print("at work", flush=True)
        exec(trouble)
        await asyncio.Event().wait()

options = ProcessOptions(election=Election({LEASE_S}, 4, 0.2))
asyncio.run(Process(ClusterConfig(server=server), options).run_until_told())
"""
NO_DESCRIPTORS = """
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
try:
    while True:
        os.dup(0)
except OSError:
    pass
"""
FULL_STDERR = """
read, write = os.pipe()
os.dup2(write, 2)
while True:
    os.write(2, bytes(65536))
"""
# Without the interpreter's lock nothing of Python runs in any thread.
HOLDS_THE_LOCK = "sum(range(10**15))"


@asynccontextmanager
async def leader(trouble: str, *wrapped_by: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, LeaseServer]]:
    """A process in that trouble, once it leads."""
    leases = LeaseServer()
    async with scripted_api() as api:
        api.answers(leases.answer)  # type: ignore[arg-type]
        child = await asyncio.create_subprocess_exec(
            *wrapped_by,
            *(sys.executable, "-c", PROGRAM, api.url, trouble),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            assert child.stdout is not None
            async with asyncio.timeout(GUARD_S):
                await child.stdout.readuntil(b"at work\n")
            yield child, leases
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param("time.sleep(3600)", id="the event loop hangs"),
        pytest.param(HOLDS_THE_LOCK, id="the interpreter hangs"),
        pytest.param(FULL_STDERR, id="nobody reads the log"),
        pytest.param(f"{NO_DESCRIPTORS}\ntime.sleep(3600)", id="no descriptor is left, and the event loop hangs"),
    ],
)
async def test_a_leader_that_hangs_ends_with_its_lease(trouble: str) -> None:
    """With the number of the signal, which nothing else ends with."""
    async with leader(trouble) as (child, _):
        assert await asyncio.wait_for(child.wait(), GUARD_S) == signal.SIGALRM


FIRST_OF_A_NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def has_namespaces() -> bool:
    """Reports whether this user may create a process namespace here."""
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*FIRST_OF_A_NAMESPACE, "true"], check=False).returncode
    )


@pytest.mark.skipif(not has_namespaces(), reason="no process namespaces here")
async def test_the_first_process_of_a_container_ends_too() -> None:
    """The kernel does not carry out a signal's default action there."""
    async with leader("time.sleep(3600)", *FIRST_OF_A_NAMESPACE) as (child, _):
        assert await asyncio.wait_for(child.wait(), GUARD_S) == signal.SIGALRM


async def test_a_suspended_leader_ends_when_it_continues() -> None:
    """It writes nothing more, although the lease is still in its name."""
    async with leader("pass") as (child, leases):
        child.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE_S + 0.5)
        written = len(leases.writes)
        child.send_signal(signal.SIGCONT)
        assert await asyncio.wait_for(child.wait(), GUARD_S) == signal.SIGALRM
        assert len(leases.writes) == written


async def test_a_leader_that_renews_lives_longer_than_its_lease() -> None:
    """And ends in order when it must."""
    async with leader("pass") as (child, leases):
        await asyncio.sleep(LEASE_S + 0.5)
        assert child.returncode is None
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), GUARD_S) == 0
        assert not leases.holder()
