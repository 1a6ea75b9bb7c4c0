"""The webhook that converts validations of kernel modules, for a sandbox: beside its registry and update service.

In a cluster the operator's Service answers, with a certificate of the cluster's own authority. A sandbox has neither,
and its pods share the machine's ports; so it answers itself, and the definitions name where.
"""

from __future__ import annotations

import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from runup.controllers.kernelmodules import webhooks
from runup.domain.kernelmodules.conversion import DEFINITIONS
from runup.kube import calls
from runup.kube.client import Client
from runup.kube.clock import machine_now
from runup.kube.errors import NotFound
from runup.sandbox.apiserver.access import certs
from runup.sandbox.setup.objects import CRDS

JSON = dict[str, Any]
_STOP_S = 1.0


@contextlib.asynccontextmanager
async def converting(folder: Path) -> AsyncIterator[JSON]:
    """Serve until the block ends; `clientConfig` for who is to ask. Its authority is kept in `folder`."""
    authority, _ = certs.load_or_create(folder, machine_now())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    app = web.Application(client_max_size=webhooks.LONGEST_QUESTION)
    app.router.add_routes(webhooks.ROUTES)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}{webhooks.PATH}"
        yield {"url": url, "caBundle": base64.b64encode(authority.cert).decode(), "service": None}
    finally:
        await runner.cleanup()


async def name_it(client: Client, config: JSON) -> None:
    """Let the definitions ask there; one that somebody removed stays away. Raises KubeError."""
    for name in DEFINITIONS:
        patch = {"spec": {"conversion": {"webhook": {"clientConfig": config}}}}
        with contextlib.suppress(NotFound):
            await client.send(calls.merge_patch(CRDS, name, patch))
