"""Evaluates the checks on a cluster or a dump for `runup preflight run`, without an operator, and returns the report.

The checks, their names and the report are those of the target's process in a cluster (docs/decisions/0072 D13). A
cluster is only read. A dump is read as the sandbox's import and `upgrade status --dump` read it, and what it lacks is
Unknown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as with_fields

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource
from kubekit.error_types import InputError, Terminal
from kubekit.lang.version import Version, VersionError
from runup import __version__
from runup.advice.decide.acceptance import Accepted, accepted, accepted_names
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.clusterversion_json import texts
from runup.api.config_v1 import ClusterVersion
from runup.checks.catalogue import CHECKS
from runup.checks.decide import target_manifests
from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster, is_openshifts, reads_for_cluster
from runup.checks.decide.declared_checks import declared_checks
from runup.checks.decide.engine import evaluate
from runup.checks.decide.kubernetes_path import UpdateOfKubernetes, contexts_on_the_way, steps, update_of_kubernetes
from runup.checks.decide.model import Check, Context, Snapshot
from runup.checks.decide.reads import namespace_of
from runup.checks.decide.results import Header, completed_report
from runup.checks.decide.snapshots import snapshot_of
from runup.checks.decide.stored_manifests import helm_check
from runup.clusterversion.decide.targets import check_distance
from runup.evaluation import missing_kinds as collect
from runup.facts import target_catalogs as catalogs
from runup.facts.target_release import TargetRelease, load_release, python_checks, with_kubernetes
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.process.clusterversion_client import ACCEPTED
from runup.process.operator_namespace import operator_namespace
from runup.report.report import Report, read
from runup.target.process import PreflightTarget, TargetRequest, filters_of

if TYPE_CHECKING:
    from kubekit.kube.config import ClusterConfig
    from kubekit.oci.access import Access
    from runup.dump.load import Dump

AGENT = f"runup-preflight-run/{__version__}"
FOLDERS = ("manifests", "release-manifests", "preflight-checks")
_MAX_SHOWN_NAME = 120


@dataclass(frozen=True, slots=True)
class RequestedUpdate:
    """The update to check: `target` and `source` as typed, empty for the release's or the cluster's own."""

    release: TargetRelease
    target: str = ""
    source: str = ""
    image: str = ""
    check_timeout_s: float = 10.0
    prometheus_url: str = ""
    prometheus_ca: str = ""
    # The target's CatalogSources: name -> image, whether other catalogs are read too, and with which access.
    catalogs: Mapping[str, str] = field(default_factory=dict)
    reads_catalogs: bool = False
    access: Access | None = None
    # Whether the releases that Helm keeps in the cluster are read, for which it takes the right to list Secrets.
    helm_releases: bool = False
    # Whether the API server's metrics are read, of a cluster without a ClusterVersion.
    api_metrics: bool = False


@dataclass(frozen=True, slots=True)
class EvaluatedCluster:
    """The result for one cluster: its report, or `problem`, the reason why there is none.

    `where` names the cluster or dump. `cluster` is its ClusterVersion, if it has one, `accepted` the accepted names
    that count. `notes` are warnings about the dump. `lacking` are the kinds that an Unknown check reads and that the
    dump does not have in full, `collect` is the command that collects a dump with them.
    """

    where: str
    report: Report | None = None
    cluster: ClusterVersion | None = None
    accepted: Accepted = field(default_factory=dict)
    problem: str = ""
    notes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    collect: str = ""
    of_dump: bool = False


def release_of(release_dir: str, image: str, access: Access) -> TargetRelease:
    """Returns the release in a folder or an image; without either, an empty one, so that only the built-in checks run.

    Raises Terminal if the release cannot be read, and InputError if the folder does not exist.
    """
    if release_dir:
        if not Path(release_dir).is_dir():
            raise InputError(f"--release-dir {release_dir}: there is no such folder")
        return load_release(Path(release_dir))
    if not image:
        return TargetRelease()
    from kubekit.oci.image_locations import parse_location, read_image_files

    return release_in(read_image_files(parse_location(image), FOLDERS, access)[0])


def release_in(files: Mapping[str, bytes]) -> TargetRelease:
    """Returns the release in the files of an image, by their paths. Raises Terminal if it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="runup-release-") as scratch:
        for name, data in files.items():
            # `load_release` reads only what is directly in a folder.
            if name.count("/") > 1:
                continue
            path = Path(scratch) / name
            path.parent.mkdir(exist_ok=True)
            try:
                path.write_bytes(data)
            except OSError as error:
                text = f"file {name[:_MAX_SHOWN_NAME]} of the release cannot be read: {error.strerror}"
                raise Terminal(text, reason="ReleaseInvalid") from error
        return load_release(Path(scratch))


def evaluate_cluster(config: ClusterConfig, requested_update: RequestedUpdate) -> EvaluatedCluster:
    """Evaluates a live cluster once, as the target's process does. Raises what the client raises."""
    import asyncio

    return asyncio.run(_evaluate_cluster(config, requested_update))


class _MemorySink:
    """A report sink that keeps the report in memory."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        """Stores `data` in memory."""
        self.data = data


async def _evaluate_cluster(config: ClusterConfig, requested_update: RequestedUpdate) -> EvaluatedCluster:
    """Runs the checks on a live cluster, which is only read."""
    from kubekit.kube import calls
    from kubekit.kube.api_errors import Forbidden, NotFound
    from runup.facts.manifest_texts import read_helm_manifests
    from runup.facts.server_metrics import read_metrics_check
    from runup.facts.server_version import server_version
    from runup.kernelmodules.control.registries import ClusterRegistries, with_registries_of
    from runup.process.read_only_client import ReadOnlyClient
    from runup.target.process import Timing

    objects_kept = _MemorySink()
    async with ReadOnlyClient(config, namespace=operator_namespace(), user_agent=AGENT) as client:
        cluster: ClusterVersion | None = None
        # ClusterVersion is a singleton of this name; a cluster without it is one of Kubernetes alone.
        with suppress(NotFound):
            cluster = await client.send(calls.get(ClusterVersion, "version"))
        if cluster is None:
            update = _kubernetes_update(requested_update, await server_version(client))
            target, source, release = str(update.target), str(update.source), TargetRelease()
        else:
            target, source = _target_version(requested_update, cluster), requested_update.source
            release = with_kubernetes(requested_update.release, target)
        request = TargetRequest(
            target,
            source,
            target_image=requested_update.image,
            engine_version=__version__,
            prometheus_url=requested_update.prometheus_url,
            prometheus_ca=requested_update.prometheus_ca,
            reads_catalogs=requested_update.reads_catalogs,
            catalogs=requested_update.catalogs,
        )
        # What was found is as old as the cluster says, whatever this machine's clock shows.
        clock = client.cluster_clock()
        timing = Timing(check_limit_s=requested_update.check_timeout_s)
        extra = python_checks()
        if requested_update.helm_releases:
            extra = (*extra, helm_check(await read_helm_manifests(client)))
        if requested_update.api_metrics and cluster is None:
            extra = (*extra, await read_metrics_check(client))
        run = PreflightTarget(
            client,
            request,
            release,
            objects_kept,
            clock,
            _Quiet(),
            extra=extra,
            timing=timing,
            registries=ClusterRegistries(
                client,
                with_registries_of(
                    requested_update.access, requested_update.image, *requested_update.catalogs.values()
                ),
            )
            if requested_update.access
            else None,
        )
        await run.run(once=True)
        if cluster is None:
            return EvaluatedCluster("the cluster", read(objects_kept.data))
        record: dict[str, str] = {}
        if accepted_names(cluster):
            # The acceptance records are optional: without them, every accepted name counts.
            with suppress(NotFound, Forbidden):
                record = (await client.send(calls.get(ConfigMap, ACCEPTED, operator_namespace()))).data
    return EvaluatedCluster("the cluster", read(objects_kept.data), cluster, accepted(cluster, record, clock.now()))


def _kubernetes_update(requested_update: RequestedUpdate, running: str) -> UpdateOfKubernetes:
    """Returns source and target for a cluster without a ClusterVersion that runs `running`.

    Raises Terminal for versions between which no update leads, and InputError for options about releases.
    """
    refuse_release(
        is_given=bool(
            requested_update.image or requested_update.release.version or requested_update.release.check_files
        )
    )
    return update_of_kubernetes(running, requested_update.source, requested_update.target)


def refuse_release(*, is_given: bool) -> None:
    """Raises InputError if a release is given for a cluster without a ClusterVersion."""
    if is_given:
        raise InputError(
            "the cluster has no ClusterVersion, so no release updates it: leave out --to-image and --release-dir, and "
            "name a version of Kubernetes with --to"
        )


class _Quiet:
    """A log that discards everything: the report names what could not be read."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_fields: None


def evaluate_dump(path: Path, requested_update: RequestedUpdate, now: datetime) -> EvaluatedCluster:
    """Evaluates the dump at `path`, at the dump's own time; an error becomes the result's `problem`."""
    from runup.dump.dump_files import BadDump, name_of
    from runup.dump.load import read as read_dump
    from runup.dump.load import time_of_dump

    extra = python_checks()
    try:
        dump = read_dump(path, only=_plurals((*CHECKS, *extra), requested_update.release), any_kubernetes=True)
        evaluate_one = _evaluate_dump if dump.has_cluster_version else _evaluate_plain_dump
        evaluated = evaluate_one(dump, requested_update, time_of_dump(dump) or now, extra)
        return replace(evaluated, collect=collect.command(path, evaluated.lacking), of_dump=True)
    except BadDump as error:
        return EvaluatedCluster(name_of(path), problem=error.message)
    except (Terminal, InputError, codec.DecodeError) as error:
        return EvaluatedCluster(name_of(path), problem=getattr(error, "message", "") or str(error))


def evaluate_for_targets(path: Path, targets: Sequence[str]) -> tuple[ClusterVersion | None, History, Accepted]:
    """Evaluates a dump once for each target version. Raises InputError if it cannot be evaluated for one of them.

    Returns its ClusterVersion (None if it has none), the reports as an operator stores them, and the accepted names.
    """
    from kubekit.kube.clock import SystemClock

    results = [evaluate_dump(path, RequestedUpdate(TargetRelease(), target), SystemClock().now()) for target in targets]
    reports = tuple(result.report for result in results if result.report is not None)
    if len(reports) < len(results):
        raise InputError(next(result.problem for result in results if result.report is None))
    return results[0].cluster, History(reports=reports), results[0].accepted


def read_stored_reports(path: Path) -> tuple[ClusterVersion | None, History, Accepted]:
    """Returns a dump's ClusterVersion, the reports that its operator had stored, and the accepted names.

    ClusterVersion is None if the dump has none. Raises InputError if `path` is not a dump or cannot be decoded.
    """
    from runup.dump.dump_files import BadDump
    from runup.dump.load import read as read_dump

    try:
        dump = read_dump(path, only=("clusterversions", "configmaps"), any_kubernetes=True)
        # By name only: the operator's namespace differs between installations.
        earlier_reports = [
            obj for obj in dump.objects if (obj["kind"], obj["metadata"]["name"]) == ("ConfigMap", stored_reports.NAME)
        ]
        reports = stored_reports.read(codec.convert(ConfigMap, earlier_reports[0]) if earlier_reports else None)
        if not dump.has_cluster_version:
            return None, reports, {}
        cluster = codec.convert(ClusterVersion, dump.cluster_version)
        return cluster, reports, accepted(cluster, _acceptance_records(dump))
    except BadDump as error:
        raise InputError(error.message) from error
    except codec.DecodeError as error:
        raise InputError(f"{path}: {error}") from error


def dumps_in(path: Path) -> Iterator[Path]:
    """Yields the dump at `path`, or each of the cases in it if it is a folder of several."""
    marks = sorted(path.glob("*-cv.yaml")) if path.is_dir() else []
    yield from (mark.with_name(mark.name.removesuffix("-cv.yaml")) for mark in marks)
    if not marks:
        yield path


def _evaluate_dump(
    dump: Dump, requested_update: RequestedUpdate, now: datetime, extra: Sequence[Check]
) -> EvaluatedCluster:
    """Runs the checks on a dump with a ClusterVersion, as at the time `now`; `extra` are added to the built-in checks.

    Raises InputError, Terminal and DecodeError if the update or the cluster's objects cannot be read.
    """
    cluster = codec.convert(ClusterVersion, dump.cluster_version)
    raw_gate = dump.one("config.openshift.io", "FeatureGate", "cluster")
    gate = codec.convert(FeatureGate, raw_gate) if raw_gate else None
    target = _target_version(requested_update, cluster)
    release = with_kubernetes(requested_update.release, target)
    source = _parse_version(requested_update.source or cluster.status.desired.version, "source")
    request = TargetRequest(target, str(source), target_image=requested_update.image, engine_version=__version__)
    filters = filters_of(request, source, cluster, gate)
    checks = (*CHECKS, *declared_checks(release.check_files, filters), *extra)
    cluster_manifests = (
        None if release.manifests is None else target_manifests.objects_for_cluster(release.manifests, filters)
    )
    context = Context(
        source,
        _parse_version(target, "target"),
        now,
        release.kubernetes,
        operator_namespace(),
        cluster_manifests,
        target_image=requested_update.image,
    )
    checks = checks_for_cluster(checks, ClusterKind.OPENSHIFT)
    snapshot = _snapshot_of_dump(dump, (resource for check in checks for resource in check.reads))
    if requested_update.access is not None:
        target_catalogs = catalogs.read(
            requested_update.catalogs, snapshot, context, requested_update.access, reads=requested_update.reads_catalogs
        )
        context = with_fields(context, catalogs=target_catalogs)
    header = Header(
        source_version=str(source),
        target_version=target,
        started_time=now,
        target_image=requested_update.image,
        engine_version=__version__,
        documentation_base=release.documentation_base,
    )
    outcomes = evaluate(checks, snapshot, context)
    return EvaluatedCluster(
        dump.name,
        completed_report(header, outcomes, now),
        cluster,
        accepted(cluster, _acceptance_records(dump), now),
        notes=tuple(dump.problems),
        lacking=collect.kinds(outcomes, dump.collected.absent),
    )


def _evaluate_plain_dump(
    dump: Dump, requested_update: RequestedUpdate, now: datetime, extra: Sequence[Check]
) -> EvaluatedCluster:
    """Runs the checks on a dump without a ClusterVersion, for an update of Kubernetes.

    Raises InputError and Terminal if the update cannot be determined.
    """
    update = _kubernetes_update(requested_update, dump.kubernetes.version)
    kind = ClusterKind.KUBERNETES
    checks = checks_for_cluster((*CHECKS, *extra), kind)
    reads = tuple(resource for check in checks for resource in check.reads)
    snapshot = _snapshot_of_dump(dump, reads_for_cluster(reads, kind)).without(filter(is_openshifts, reads))
    context = Context(update.source, update.target, now, str(update.target), operator_namespace(), cluster=kind)
    outcomes = evaluate(checks, snapshot, context)
    earlier_steps = [
        (step_context, evaluate(checks, snapshot, step_context)) for step_context in contexts_on_the_way(context)
    ]
    header = Header(
        source_version=str(update.source),
        target_version=str(update.target),
        started_time=now,
        engine_version=__version__,
        cluster_kind=kind.value,
        steps=steps(snapshot, context, outcomes, earlier_steps),
    )
    return EvaluatedCluster(
        dump.name,
        completed_report(header, outcomes, now),
        notes=(*dump.problems, *([] if requested_update.source else dump.kubernetes.notes)),
        lacking=collect.kinds(outcomes, dump.collected.absent),
    )


def _snapshot_of_dump(dump: Dump, reads: Iterable[Resource]) -> Snapshot:
    """Returns the snapshot of a dump, in which a kind is complete only where the dump's own lists prove it.

    A kind is unreadable (`lacking`) if the dump cannot say whether there are objects of it, and partly read if the
    cluster may have had more of them (`partly`), except in the namespaces that were listed in full (`complete_in`). It
    is `absent` if the server did not serve it when the dump was collected.
    """
    return snapshot_of(
        reads,
        dump.objects,
        lacking=lambda resource: _why_lacking(dump, resource),
        partly=lambda resource: _why_partly(dump, resource),
        complete_in=lambda resource: dump.collected.namespaces.get((resource.group, resource.plural), ()),
        absent=lambda resource: (resource.group, resource.plural) in dump.collected.absent,
    )


def _acceptance_records(dump: Dump) -> dict[str, str]:
    """Returns the dump's acceptance records: why and until when risks are accepted."""
    records = (o for o in dump.objects if (o["kind"], o["metadata"]["name"]) == ("ConfigMap", ACCEPTED))
    return texts(next(records, None), "data")


def _why_lacking(dump: Dump, resource: Resource) -> str:
    """Returns why the dump cannot say which objects of a kind there were, "" if it can."""
    key = (resource.group, resource.plural)
    if dump.collected.covers(key, namespace_of(resource)):
        return ""
    if dump.collected.namespaces.get(key):
        return dump.collected.why_partly(key)
    if key in dump.collected.absent:
        return f"the cluster had no {resource.name} when the dump was collected"
    return f"the dump holds no {resource.name}: whether there were any is not known"


def _why_partly(dump: Dump, resource: Resource) -> str:
    """Returns why a dump may have only some objects of a kind, "" if it has all of them or none."""
    key = (resource.group, resource.plural)
    if key not in dump.collected.partly or dump.collected.covers(key, namespace_of(resource)):
        return ""
    return dump.collected.why_partly(key)


def _plurals(checks: Sequence[Check], release: TargetRelease) -> frozenset[str]:
    """Returns the plurals to read from a dump.

    Returns none, which means all, if the release has declarative checks: which of them count, and so what they read, is
    known only from the FeatureGate in the dump.
    """
    if release.check_files:
        return frozenset()
    # Needed for every check: versions, acceptance records and feature gates.
    always = {"clusterversions", "configmaps", "featuregates", "namespaces", "nodes", "pods"}
    return frozenset(always | {resource.plural for check in checks for resource in check.reads})


def _target_version(requested_update: RequestedUpdate, cluster: ClusterVersion) -> str:
    """Returns the version to check an update to. Raises Terminal and InputError as `target_version` does."""
    return target_version(
        requested_update.target, requested_update.source, requested_update.release, requested_update.image, cluster
    )


def target_version(
    typed: str, typed_source: str, release: TargetRelease, image: str, cluster: ClusterVersion | None
) -> str:
    """Returns the typed version, else the release's, else the next minor version.

    Raises Terminal as the operator does, and InputError for a version that is not known.
    """
    version_text = typed or release.version
    running = cluster.status.desired.version if cluster else ""
    if version_text and not (typed_source or running):
        # Without a ClusterVersion only the process in the cluster learns what runs there.
        return str(_parse_version(version_text, "target"))
    source = _parse_version(typed_source or running, "source")
    if not version_text:
        return f"{source.major}.{source.minor + 1}.0"
    target = str(_parse_version(version_text, "target"))
    check_distance(str(source), target, another_image=bool(image or release.version))
    return target


def _parse_version(text: str, version_role: str) -> Version:
    """Returns the source or target version. Raises InputError that names the flag to give it with."""
    try:
        return Version(text)
    except VersionError as error:
        hint = "give it with --from" if version_role == "source" else "give it with --to"
        raise InputError(f"the {version_role} version is not known: {error}; {hint}") from error
