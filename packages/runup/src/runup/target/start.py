"""Starts the target's process from the options of `cluster-version-operator preflight` and its environment.

In: the options by name. Out: a report in the sink that the environment names, and the risks that are news.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from msgspec.structs import replace

from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig, load
from runup import __version__
from runup.api.config_v1 import ClusterVersion
from runup.facts.target_release import load_release, python_checks, with_kubernetes
from runup.preflight.decide.channel_target import newest
from runup.process.log import configure_logging
from runup.process.memory import collect_rarely
from runup.process.names import operator_namespace
from runup.process.read_only_client import ReadOnlyClient
from runup.process.shutdown import run_until_told
from runup.target.process import PreflightTarget, TargetRequest, Timing
from runup.target.rehearsal_process import RehearsalOrder
from runup.target.report_sinks import ConfigMapSink, FileSink, Sink, StreamSink

if TYPE_CHECKING:
    from runup.preflight.control.kept_reports import HistorySink

# The user agent distinguishes a target in the server's audit log from the managing operator, whose account it may use.
AGENT = f"runup-preflight/{__version__}"


async def run(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Runs the target's process until it is asked to stop, or its report is complete.

    Returns the risks that no kept report before has; none if reports are not kept.
    """
    collect_rarely()
    release = load_release(flags["release_dir"])
    request = request_of(flags, release.version)
    config = load(flags["kubeconfig"], flags["context"])
    configure_logging()
    # To stderr; stdout is the report's.
    log = structlog.get_logger("preflight")
    sink, kept = _sink(flags, request, config)
    async with ReadOnlyClient(config, namespace=request.namespace, user_agent=AGENT) as client:
        if flags["to_channel"]:
            try:
                cluster = await client.send(calls.get(ClusterVersion, "version"))
            except NotFound:
                cluster = None
            target_release = newest(cluster, flags["to_channel"])
            request = replace(request, target_version=target_release.version, target_image=target_release.image)
        # The image that is rehearsed is the one that the channel leads to.
        rehearsal = None
        if flags["rehearse"]:
            rehearsal = RehearsalOrder(
                release_dir=str(flags["release_dir"]),
                image=request.target_image,
                kubeconfig=flags["kubeconfig"],
                context=flags["context"],
                documentation_base=release.documentation_base,
                # So that what was found until then is reported, and not only that the time is over.
                apply_s=flags["rehearse_seconds"] / 2,
                memory_mib=flags["rehearse_memory_mib"],
            )
        target = PreflightTarget(
            client=client,
            request=request,
            release=with_kubernetes(release, request.target_version),
            sink=sink,
            clock=SystemClock(),
            log=log,
            extra=python_checks(),
            timing=Timing(check_limit_s=flags["check_timeout"]),
            rehearsal=rehearsal,
            rehearsal_limit_s=float(flags["rehearse_seconds"]),
        )
        running = asyncio.ensure_future(target.run(once=flags["once"]))

        async def until_cancelled() -> None:
            with suppress(asyncio.CancelledError):
                await running

        # A check that hangs in a thread must not hold up the end of its pod.
        await run_until_told(until_cancelled(), running.cancel)
    if kept is not None and kept.not_in_series:
        log.warning("the report is not among all reports", reason=kept.not_in_series)
    news = kept.last.news if kept is not None and kept.last is not None else ()
    if news:
        log.warning("risks that are new or have grown since the report before", risks=list(news))
    return news


def _sink(flags: Mapping[str, Any], request: TargetRequest, config: ClusterConfig) -> tuple[Sink, HistorySink | None]:
    """Returns where the report goes, twice if the reports are kept."""
    kind = os.environ.get("PREFLIGHT_REPORT_SINK")
    if kind == "history":
        from runup.preflight.control.kept_reports import HistorySink

        newest_too = os.environ.get("PREFLIGHT_NEWEST") == "true"
        kept = HistorySink(config, SystemClock(), os.environ.get("PREFLIGHT_CLUSTER", ""), newest=newest_too)
        return kept, kept
    if kind == "configmap":
        # For clusters that forbid hostPath volumes (docs/reference/operator.md).
        return ConfigMapSink(config, request.namespace, request.preflight_id), None
    return StreamSink(sys.stdout.buffer) if flags["report"] == "-" else FileSink(Path(flags["report"])), None


def request_of(flags: Mapping[str, Any], version: str) -> TargetRequest:
    """Returns the preflight that flags and environment variables ask for; `version` is the release's own."""
    authorities = flags["prometheus_ca"]
    # The operator passes authorities as PEM, and the HTTP client reads them from a file.
    if not authorities and (pem := os.environ.get("PREFLIGHT_PROMETHEUS_CA", "")):
        with tempfile.NamedTemporaryFile("w", prefix="prometheus-ca-", suffix=".pem", delete=False) as file:
            file.write(pem)
        authorities = file.name
    return TargetRequest(
        target_version=flags["to"] or version,
        source_version=flags["from_"],
        preflight_id=os.environ.get("PREFLIGHT_ID", ""),
        target_image=os.environ.get("PREFLIGHT_TARGET_IMAGE", ""),
        namespace=operator_namespace(),
        profile=os.environ.get("CLUSTER_PROFILE") or "self-managed-high-availability",
        engine_version=__version__,
        prometheus_url=flags["prometheus_url"],
        prometheus_ca=authorities,
        prometheus_hosted=os.environ.get("PREFLIGHT_PROMETHEUS_HOSTED") == "true",
        reads_catalogs=flags["catalogs"] == "read",
        inner_registries=frozenset(flags["inner_registry"]),
        plain_http=frozenset(flags["plain_http"]),
    )
