"""Limits the imports of the command line's transport, because its start-up time matters."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"aiohttp", "asyncio", "rich", "yaml", "cryptography", "subprocess", "structlog", "prometheus_client", "oras"}


def test_the_sync_client_imports_nothing_heavy() -> None:
    """No event loop, no aiohttp, no YAML until a kubeconfig is read."""
    code = "import sys, kubekit.kube.client_sync; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert HEAVY.isdisjoint(done.stdout.split())
