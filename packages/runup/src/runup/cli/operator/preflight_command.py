"""`cluster-version-operator preflight`, which a managing operator runs from the target's image.

Flags and environment in, a report out. Anything heavy is imported after the flags are validated, so that an unknown
format is refused at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runup import __version__
from runup.cli.errors import CommandError
from runup.cli.options import with_options
from runup.cli.startup.quick_imports import quick_imports
from runup.process.names import operator_namespace

if TYPE_CHECKING:
    import asyncio

    from kubekit.kube.client import Client
    from runup.target.process import TargetRequest
    from runup.target.rehearsal_process import RehearsalOrder

FORMAT = "preflight-v1-json"
# The user agent distinguishes a target in the server's audit log from the managing operator, whose account it may use.
AGENT = f"runup-preflight/{__version__}"
# The exit code of a scheduled run that found what no report before it has: its Job fails, which an alert can see.
FOUND_NEWS = 4


OPTIONS = (
    click.option("--format", "format_", default=FORMAT, show_default=True, help="The report's format."),
    click.option("--once", is_flag=True, help="Write one report, then exit."),
    click.option("--reads", is_flag=True, help="Print what the checks of this image's Python read, then exit."),
    click.option(
        "--report",
        envvar="PREFLIGHT_REPORT",
        default="-",
        show_default=True,
        metavar="FILE",
        help="File, or - for stdout.",
    ),
    click.option(
        "--release-dir",
        envvar="PAYLOAD_OVERRIDE",
        default="/",
        show_default=True,
        type=click.Path(path_type=Path),
        help="Where the release image's folders are.",
    ),
    click.option(
        "--to", envvar="PREFLIGHT_TARGET_VERSION", default="", help="Target version instead of the release's own."
    ),
    click.option(
        "--to-channel",
        envvar="PREFLIGHT_TARGET_CHANNEL",
        default="",
        metavar="CHANNEL",
        help="Check the newest release that ClusterVersion lists in this channel; `latest` is any channel.",
    ),
    click.option(
        "--from", "from_", envvar="PREFLIGHT_SOURCE_VERSION", default="", help="Source version, if not the cluster's."
    ),
    click.option("--kubeconfig", default=None, help="Cluster to check, by default the one this runs in."),
    click.option("--context", default=None, help="Context of the kubeconfig."),
    click.option(
        "--prometheus-url",
        envvar="PREFLIGHT_PROMETHEUS_URL",
        default="",
        metavar="URL",
        help="A Prometheus or Thanos for checks that are queries; '' disables queries.",
    ),
    click.option("--prometheus-ca", default="", metavar="FILE", help="Certificate authorities for it."),
    click.option(
        "--catalogs",
        envvar="PREFLIGHT_CATALOGS",
        type=click.Choice(["read", "skip"]),
        default="read",
        show_default=True,
        help="Whether the catalogs of operators that the target brings are read out of their registries.",
    ),
    click.option(
        "--inner-registry",
        envvar="PREFLIGHT_INNER_REGISTRIES",
        multiple=True,
        metavar="HOST[:PORT]",
        help="A registry on this machine, link-local, or behind a Service that the cluster's objects may name.",
    ),
    click.option(
        "--plain-http",
        envvar="PREFLIGHT_PLAIN_HTTP",
        multiple=True,
        metavar="HOST[:PORT]",
        help="A registry that speaks plain HTTP; may be given again.",
    ),
    click.option(
        "--rehearse",
        envvar="PREFLIGHT_REHEARSE",
        is_flag=True,
        help="Rehearse the update on a copy of the cluster, too, in a process beside this one.",
    ),
    click.option(
        "--rehearse-seconds",
        envvar="PREFLIGHT_REHEARSE_SECONDS",
        default=300,
        show_default=True,
        type=click.IntRange(1, 86400),
        help="Seconds that the rehearsal may take; what is not tried then is Unknown.",
    ),
    click.option(
        "--rehearse-memory-mib",
        envvar="PREFLIGHT_REHEARSE_MEMORY_MIB",
        default=0,
        type=click.IntRange(0),
        help="Memory that the rehearsal may have; 0 for any amount.",
    ),
    click.option("--check-timeout", default=10.0, show_default=True, help="Seconds that one check may take."),
)


@click.command("preflight")
@with_options(OPTIONS)
def preflight(format_: str, reads: bool, **flags: Any) -> int:
    """Check a cluster for an update to this release, changing nothing.

    Exit code 4: with the kept reports as destination, the report names risks that none before it does.
    """
    if reads:
        from runup.checks.catalogue.own_rights import own_rights
        from runup.checks.decide import rights
        from runup.facts.target_release import python_checks

        sys.stdout.buffer.write(rights.to_file(own_rights(), rights.rights_of_checks(python_checks())))
        return 0
    # A managing operator of a later release may ask for a format that this one does not know.
    if format_ != FORMAT:
        raise CommandError(f'unknown format "{format_}"; this release writes {FORMAT}')
    folder = flags["release_dir"]
    source = click.get_current_context().get_parameter_source("release_dir")
    typed = source is click.core.ParameterSource.COMMANDLINE
    if typed and not any((folder / name).is_dir() for name in ("preflight-checks", "release-manifests")):
        raise CommandError(f"--release-dir {folder} holds neither a folder preflight-checks nor release-manifests")
    import asyncio

    return asyncio.run(_run_checks(flags))


async def _run_checks(flags: Mapping[str, Any]) -> int:
    """Runs the target's process until it is told to stop, or its report is complete; returns the exit code."""
    import asyncio

    with quick_imports():
        from kubekit.kube.clock import SystemClock
        from kubekit.kube.config import load
        from runup.facts.target_release import load_release, python_checks, with_kubernetes
        from runup.process.garbage import collect_rarely
        from runup.process.read_only_client import ReadOnlyClient
        from runup.process.shutdown import run_until_told
        from runup.target.process import PreflightTarget, Timing

    collect_rarely()
    release = load_release(flags["release_dir"])
    request = request_of(flags, release.version)
    config = load(flags["kubeconfig"], flags["context"])
    report = flags["report"]
    from runup.target.report_sinks import ConfigMapSink, FileSink, StreamSink

    sink_kind = os.environ.get("PREFLIGHT_REPORT_SINK")
    if sink_kind == "history":
        from kubekit.kube.clock import SystemClock
        from runup.preflight.control.kept_reports import HistorySink

        newest = os.environ.get("PREFLIGHT_NEWEST") == "true"
        sink = HistorySink(config, SystemClock(), os.environ.get("PREFLIGHT_CLUSTER", ""), newest=newest)
    elif sink_kind == "configmap":
        # For clusters that forbid hostPath volumes (docs/operator.md).
        # For clusters that forbid hostPath volumes (docs/operator.md).
        sink = ConfigMapSink(config, request.namespace, request.preflight_id)
    else:
        sink = StreamSink(sys.stdout.buffer) if report == "-" else FileSink(Path(report))
    async with ReadOnlyClient(config, namespace=request.namespace, user_agent=AGENT) as client:
        if flags["to_channel"]:
            request = await _with_newest(client, request, flags["to_channel"])
        target = PreflightTarget(
            client=client,
            request=request,
            release=with_kubernetes(release, request.target_version),
            sink=sink,
            clock=SystemClock(),
            log=_logger(),
            extra=python_checks(),
            timing=Timing(check_limit_s=flags["check_timeout"]),
            rehearsal=_rehearsal_of(flags, request, release.documentation_base),
            rehearsal_limit_s=float(flags["rehearse_seconds"]),
        )
        running = asyncio.ensure_future(target.run(once=flags["once"]))
        # A check that hangs in a thread must not hold up the end of its pod.
        await run_until_told(_until_cancelled(running), running.cancel)
    from runup.preflight.control.kept_reports import HistorySink

    if isinstance(sink, HistorySink) and sink.not_in_series:
        _logger().warning("the report is not among all reports", reason=sink.not_in_series)
    if not isinstance(sink, HistorySink) or sink.last is None or not sink.last.new:
        return 0
    _logger().warning("risks that no report before has", risks=list(sink.last.new))
    return FOUND_NEWS


def _rehearsal_of(flags: Mapping[str, Any], request: TargetRequest, documentation_base: str) -> RehearsalOrder | None:
    """Returns what is to be rehearsed, or None."""
    if not flags["rehearse"]:
        return None
    from runup.target.rehearsal_process import RehearsalOrder

    return RehearsalOrder(
        release_dir=str(flags["release_dir"]),
        image=request.target_image,
        kubeconfig=flags["kubeconfig"],
        context=flags["context"],
        documentation_base=documentation_base,
        # So that what was found until then is told, and not only that the time is over.
        apply_s=flags["rehearse_seconds"] / 2,
        memory_mib=flags["rehearse_memory_mib"],
    )


async def _with_newest(client: Client, request: TargetRequest, channel: str) -> TargetRequest:
    """Returns the request for the newest release of `channel`. Raises Terminal, and KubeError."""
    from msgspec.structs import replace

    from kubekit.kube import calls
    from kubekit.kube.api_errors import NotFound
    from runup.api.config_v1 import ClusterVersion
    from runup.preflight.decide.channel_target import newest

    try:
        cluster = await client.send(calls.get(ClusterVersion, "version"))
    except NotFound:
        cluster = None
    release = newest(cluster, channel)
    return replace(request, target_version=release.version, target_image=release.image)


async def _until_cancelled(running: asyncio.Future[None]) -> None:
    import asyncio

    with suppress(asyncio.CancelledError):
        await running


def request_of(flags: Mapping[str, Any], version: str) -> TargetRequest:
    """Returns the preflight that flags and environment variables ask for; `version` is the release's own."""
    from runup.target.process import TargetRequest

    return TargetRequest(
        target_version=flags["to"] or version,
        source_version=flags["from_"],
        preflight_id=os.environ.get("PREFLIGHT_ID", ""),
        target_image=os.environ.get("PREFLIGHT_TARGET_IMAGE", ""),
        namespace=operator_namespace(),
        profile=os.environ.get("CLUSTER_PROFILE") or "self-managed-high-availability",
        engine_version=__version__,
        prometheus_url=flags["prometheus_url"],
        prometheus_ca=flags["prometheus_ca"] or _write_authorities_file(),
        prometheus_hosted=os.environ.get("PREFLIGHT_PROMETHEUS_HOSTED") == "true",
        reads_catalogs=flags["catalogs"] == "read",
        inner_registries=frozenset(flags["inner_registry"]),
        plain_http=frozenset(flags["plain_http"]),
    )


def _write_authorities_file() -> str:
    """Returns a file with the authorities that the operator passes as PEM: the HTTP client reads them from a file."""
    if not (pem := os.environ.get("PREFLIGHT_PROMETHEUS_CA", "")):
        return ""
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="prometheus-ca-", suffix=".pem", delete=False) as file:
        file.write(pem)
    return file.name


def _logger() -> Any:
    """Returns a logger to stderr; stdout is the report's."""
    import structlog

    from runup.process.log import configure_logging

    configure_logging()
    return structlog.get_logger("preflight")
