"""`python -m kubesandbox.apiserver --data DIR --port N`: the API server as a separate process."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path

from kubekit.http.quick_imports import quick_imports

with quick_imports():
    import uvloop

    from kubesandbox.apiserver.server import ApiServer
    from kubesandbox.apiserver.store import StoreError

# Young objects between two collections. What a server of many objects makes stays in its store, so that Python's 700
# let it look through them again and again in vain (`python -m bench api`, creates).
_ALLOCATIONS = 20_000


def main() -> None:
    """Serves until SIGTERM or SIGINT; exits 1 with one line if it cannot start."""
    parser = argparse.ArgumentParser(prog="kubesandbox.apiserver", description="A Kubernetes API server on SQLite.")
    parser.add_argument("--data", type=Path, required=True, help="folder for the store, certificates and logs")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (0: any free one)")
    parser.add_argument("--audit", type=Path, default=None, help="audit log (default: DATA/audit.log)")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        uvloop.run(_run_server(arguments.data, arguments.port, arguments.audit))
    except (StoreError, OSError) as error:
        sys.exit(f"error: the API server cannot start: {error}")


async def _run_server(data: Path, port: int, audit: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with ApiServer(data, port, audit=audit) as server:
        sys.stdout.write(f"serving at {server.url}, kubeconfig {server.kubeconfig}\n")
        sys.stdout.flush()
        # The modules and the objects that were read stay, so that no collection needs to visit them.
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS)
        await stop.wait()


if __name__ == "__main__":
    main()
