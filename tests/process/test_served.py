"""What every process of the operator serves of itself, for as long as it works."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from tests.process.tls_world import answered, certificate, create_api_server, define_api_servers

from kubekit.kube import config
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.server import ApiServer
from runup.clusterversion.control.metrics import Metrics
from runup.process.endpoint import Endpoint
from runup.process.process_server import ProcessOptions, serve_until_done
from runup.process.tls_profile import TlsProfile

MODERN = {"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Modern", "modern": {}}}
DEADLINE_S = 90.0


def _old(options: dict[str, str]) -> ssl.SSLContext:
    """A client that knows nothing newer than TLS 1.2."""
    context = ssl.create_default_context(cafile=options["serving_cert_file"])
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


async def test_the_cluster_s_profile_counts_while_the_block_lasts(tmp_path: Path) -> None:
    """An old client is answered until the cluster wants TLS 1.3; after the block nobody is."""
    files, trusting = certificate(tmp_path)
    old, endpoint, clock = _old(files), Endpoint(Metrics()), SystemClock()
    options = ProcessOptions(listen="127.0.0.1:0", **files)
    async with ApiServer(tmp_path / "data") as server, Client(config.load(str(server.kubeconfig))) as client:
        await define_api_servers(client)
        async with serve_until_done(endpoint, options, client, clock, lacking=str, caches=()):
            assert await answered(endpoint, old)
            await create_api_server(client, **MODERN)
            async with asyncio.timeout(DEADLINE_S):
                while await answered(endpoint, old):  # noqa: ASYNC110 -- what a server takes is no event
                    await asyncio.sleep(0.02)
            assert await answered(endpoint, trusting)
        assert not await answered(endpoint, trusting)


async def test_a_flag_counts_where_the_cluster_says_nothing(tmp_path: Path) -> None:
    """From the first connection on."""
    files, trusting = certificate(tmp_path)
    endpoint = Endpoint(Metrics())
    options = ProcessOptions(listen="127.0.0.1:0", serving_tls=TlsProfile("VersionTLS13"), **files)
    async with (
        ApiServer(tmp_path / "data") as server,
        Client(config.load(str(server.kubeconfig))) as client,
        serve_until_done(endpoint, options, client, SystemClock(), lacking=str, caches=()),
    ):
        assert not await answered(endpoint, _old(files))
        assert await answered(endpoint, trusting)
