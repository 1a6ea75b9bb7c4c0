"""A node agent as a separate process, for tests that kill it: `agent_process.py DATA REGISTRY RUNNER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from kubekit.api.whole_v1 import WholePod
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import load
from kubekit.kube.watch import Reflector
from kubesandbox.controllers.owned_pods import PODS
from kubesandbox.node.agent import NodeAgent
from kubesandbox.node.runners import runners
from kubesandbox.node.settings import NodeSettings
from kubesandbox.node.unpacked_images import ImageStore


async def serve(data: Path, registry: str, runner: str) -> None:
    """Until it is killed."""
    clock = SystemClock()
    async with Client(load(str(data / "admin.kubeconfig"))) as client:
        place = NodeSettings(
            data=data,
            runner=runners(data / "runc")[runner],
            images=ImageStore(data / "images", registry),
            server=client.config.server,
            ca=data / "pki" / "ca.crt",
        )
        pods: Cache[WholePod] = Cache(WholePod)
        agent = NodeAgent(client, pods, place, clock)
        await Reflector(client, WholePod, pods, clock=clock, resource=PODS).run()
        assert agent


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
