"""Evaluates a live cluster once, as the target's process does; the cluster is only read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Forbidden, NotFound
from kubekit.kube.config import ClusterConfig
from runup import __version__
from runup.advice.decide.acceptance import accepted, accepted_names
from runup.api.config_v1 import ClusterVersion, Infrastructure
from runup.checks.decide.stored_manifests import helm_checks
from runup.evaluation.evaluate import LIVE, EvaluatedCluster
from runup.evaluation.request import RequestedUpdate, requested_kubernetes_update, target_version
from runup.facts.helm_releases import read_helm_manifests
from runup.facts.server_version import read_metrics_check, server_version
from runup.facts.target_release import TargetRelease, python_checks, with_kubernetes
from runup.kernelmodules.control.registries import ClusterRegistries, with_registries_of
from runup.process.clusterversion_client import ACCEPTED
from runup.process.names import operator_namespace
from runup.process.read_only_client import ReadOnlyClient
from runup.report.report import read
from runup.rules.hosted_side import notes_on
from runup.target.process import PreflightTarget, TargetRequest, Timing

AGENT = f"runup-preflight-run/{__version__}"


class _MemorySink:
    """A report sink that keeps the report in memory."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        """Stores `data` in memory."""
        self.data = data


class _Quiet:
    """A log that discards everything: the report names what could not be read."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_fields: None


def evaluate_cluster(config: ClusterConfig, requested: RequestedUpdate) -> EvaluatedCluster:
    """Evaluates a live cluster once. Raises the errors of the client, Terminal and InputError."""
    return asyncio.run(_evaluate_cluster(config, requested))


async def _evaluate_cluster(config: ClusterConfig, requested: RequestedUpdate) -> EvaluatedCluster:
    sink = _MemorySink()
    async with ReadOnlyClient(config, namespace=operator_namespace(), user_agent=AGENT) as client:
        cluster: ClusterVersion | None = None
        # ClusterVersion is a singleton of this name; a cluster without it is one of Kubernetes alone.
        with suppress(NotFound):
            cluster = await client.send(calls.get(ClusterVersion, "version"))
        if cluster is None:
            update = requested_kubernetes_update(requested, await server_version(client))
            target, source, release = str(update.target), str(update.source), TargetRelease()
        else:
            target = target_version(
                requested.target, requested.source, release=requested.release, image=requested.image, cluster=cluster
            )
            source, release = requested.source, with_kubernetes(requested.release, target)
        extra = python_checks()
        extra = (*extra, *helm_checks(await read_helm_manifests(client), is_required=requested.helm_releases))
        if requested.api_metrics and cluster is None:
            extra = (*extra, await read_metrics_check(client))
        registries = None
        if requested.access:
            access = with_registries_of(requested.access, requested.image, *requested.catalogs.values())
            registries = ClusterRegistries(client, access)
        # Findings are as old as the cluster says, whatever this machine's clock shows.
        clock = client.cluster_clock()
        target_process = PreflightTarget(
            client=client,
            request=TargetRequest(
                target_version=target,
                source_version=source,
                target_image=requested.image,
                engine_version=__version__,
                prometheus_url=requested.prometheus_url,
                prometheus_ca=requested.prometheus_ca,
                reads_catalogs=requested.reads_catalogs,
                catalogs=requested.catalogs,
            ),
            release=release,
            sink=sink,
            clock=clock,
            log=_Quiet(),
            extra=extra,
            timing=Timing(check_limit_s=requested.check_timeout_s),
            registries=registries,
        )
        await target_process.run(once=True)
        if cluster is None:
            uid = ""
            with suppress(NotFound, Forbidden):
                uid = (await client.send(calls.get(Namespace, "kube-system"))).metadata.uid
            return EvaluatedCluster(where=LIVE, report=read(sink.data), known_id=uid).identified()
        record: dict[str, str] = {}
        if accepted_names(cluster):
            # The acceptance records are optional: without them, every accepted name counts.
            with suppress(NotFound, Forbidden):
                record = (await client.send(calls.get(ConfigMap, ACCEPTED, operator_namespace()))).data
        hosted: tuple[str, ...] = ()
        with suppress(ApiError, codec.DecodeError):
            hosted = notes_on((await client.send(calls.get(Infrastructure, "cluster"))).status)
    return EvaluatedCluster(
        where=LIVE,
        report=read(sink.data),
        cluster=cluster,
        accepted=accepted(cluster, record, clock.now()),
        notes=hosted,
    ).identified()
