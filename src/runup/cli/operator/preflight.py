"""`cluster-version-operator preflight`: what a managing operator runs out of the target's image.

Flags and environment in, a report out. Anything heavy is imported after the flags are known to be good, so that an
unknown format is refused at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from runup import __version__
from runup.cli.errors import CommandError

FORMAT = "preflight-v1-json"
# By this the server's audit log tells a target from the managing operator, whose account it may share.
AGENT = f"runup-preflight/{__version__}"


@click.command("preflight")
@click.option("--format", "format_", default=FORMAT, show_default=True, help="The report's format.")
@click.option("--once", is_flag=True, help="Write one report, then exit.")
@click.option(
    "--report", envvar="PREFLIGHT_REPORT", default="-", show_default=True, metavar="FILE", help="File, or - for stdout."
)
@click.option(
    "--release-dir",
    envvar="PAYLOAD_OVERRIDE",
    default="/",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the release image's folders are.",
)
@click.option(
    "--to", envvar="PREFLIGHT_TARGET_VERSION", default="", help="Target version instead of the release's own."
)
@click.option(
    "--from", "from_", envvar="PREFLIGHT_SOURCE_VERSION", default="", help="Source version, if not the cluster's."
)
@click.option("--kubeconfig", default=None, help="Cluster to check, by default the one this runs in.")
@click.option("--context", default=None, help="Context of the kubeconfig.")
@click.option("--check-timeout", default=10.0, show_default=True, help="Seconds that one check may take.")
def preflight(format_: str, report: str, **options: Any) -> int:
    """Check a cluster for an update to this release, changing nothing."""
    if format_ != FORMAT:
        raise CommandError(f'unknown format "{format_}"; this release writes {FORMAT}')
    import asyncio

    return asyncio.run(_run(report, **options))


async def _run(
    report: str,
    *,
    once: bool,
    release_dir: Path,
    to: str,
    from_: str,
    kubeconfig: str | None,
    context: str | None,
    check_timeout: float,
) -> int:
    import asyncio
    import signal

    from runup.controllers.preflight_target.client import ReadOnlyClient
    from runup.controllers.preflight_target.release import load_release, python_checks
    from runup.controllers.preflight_target.sink import ConfigMapSink, FileSink, Sink, StreamSink
    from runup.controllers.preflight_target.target import PreflightTarget, Request, Timing
    from runup.kube.clock import SystemClock
    from runup.kube.config import load

    release = load_release(release_dir)
    namespace = os.environ.get("CVO_NAMESPACE") or "openshift-cluster-version-operator"
    request = Request(
        target_version=to or release.version,
        source_version=from_,
        preflight_id=os.environ.get("PREFLIGHT_ID", ""),
        target_image=os.environ.get("PREFLIGHT_TARGET_IMAGE", ""),
        namespace=namespace,
        profile=os.environ.get("CLUSTER_PROFILE") or "self-managed-high-availability",
        engine_version=__version__,
    )
    config = load(kubeconfig, context)
    sink: Sink = StreamSink(sys.stdout.buffer) if report == "-" else FileSink(Path(report))
    if os.environ.get("PREFLIGHT_REPORT_SINK") == "configmap":
        sink = ConfigMapSink(config, namespace, request.preflight_id)
    async with ReadOnlyClient(config, namespace=namespace, user_agent=AGENT) as client:
        target = PreflightTarget(
            client,
            request,
            release,
            sink,
            SystemClock(),
            _logger(),
            extra=python_checks(),
            timing=Timing(check_limit_s=check_timeout),
        )
        running = asyncio.ensure_future(target.run(once=once))
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, running.cancel)
        try:
            await running
        except asyncio.CancelledError:
            return 0
    return 0


def _logger() -> Any:
    """Lines on stderr; stdout is the report's."""
    import structlog

    from runup.cli.operator.log import configure

    configure()
    return structlog.get_logger("preflight")
