"""The controllers and the optional node that make an API server behave as a cluster.

In: the data folder of a running server. Out: the tasks of the controllers, which are its clients over HTTPS.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import load as load_kubeconfig
from kubesandbox.controllers import assembly
from kubesandbox.sandbox_error import SandboxError

NODE = "node-1"
# The agent runs images of this registry and declares all others ready; it does not exist, so none is run.
_NO_REGISTRY = "registry.invalid"


@contextlib.asynccontextmanager
async def run_controllers(data: Path, clock: Clock, *, node: bool) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Runs the controllers of the server with the folder `data` until the block ends, and a node if `node`."""
    async with contextlib.AsyncExitStack() as stack:
        config = load_kubeconfig(str(data / "controllers.kubeconfig"))
        client = await stack.enter_async_context(Client(config, clock=clock))
        watched = assembly.Watched()
        if node:
            await _start_node(stack, data, client, watched, clock)
        tasks = assembly.start_controllers(stack, client, watched, clock)
        stack.push_async_callback(cancel_tasks, tasks)
        yield tasks


async def until_over(stop: asyncio.Event, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Waits for `stop`. Raises the exception of a task that ended, since none ends by itself.

    A cluster without its garbage collector would seem healthy, so it ends as a whole.
    """
    stopping = asyncio.create_task(stop.wait())
    try:
        completed, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    for task in completed - {stopping}:
        # Raises the task's own exception, if it has one.
        task.result()
        raise SandboxError(f"a part of the cluster ended by itself: {task.get_name()}")


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels `tasks` and waits until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _start_node(
    stack: contextlib.AsyncExitStack, data: Path, client: Client, watched: assembly.Watched, clock: Clock
) -> None:
    """Starts the node agent and registers its Node; `stack` stops it."""
    # Imported here, since the agent takes a quarter of a second to import, which a server without a node does not need.
    from kubesandbox.node.agent import NodeAgent
    from kubesandbox.node.runners import ProcessRunner
    from kubesandbox.node.settings import NodeSettings
    from kubesandbox.node.unpacked_images import ImageStore

    images = ImageStore(data / "images", _NO_REGISTRY)
    server, ca = client.config.server, data / "pki" / "ca.crt"
    place = NodeSettings(data=data, runner=ProcessRunner(), images=images, server=server, ca=ca)
    agent = NodeAgent(client, watched.pods, place, clock)
    stack.push_async_callback(agent.close)
    # As a kubelet registers itself; the Node of an earlier start stays as it is.
    labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    now, size = f"{clock.now():%Y-%m-%dT%H:%M:%SZ}", {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now,
             "reason": "KubeletReady", "message": "kubelet is posting ready status"}  # fmt: skip
    status = {"conditions": [ready], "capacity": size, "allocatable": size}
    with contextlib.suppress(AlreadyExists):
        await client.send(calls.create(assembly.NODES, {"metadata": {"name": NODE, "labels": labels}}))
        await client.send(calls.merge_patch(assembly.NODES, NODE, {"status": status}, subresource="status"))
