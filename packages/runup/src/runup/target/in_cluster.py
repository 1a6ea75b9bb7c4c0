"""`runup preflight run --in-cluster`: runs the preflight as a Job of the cluster, with an account that only reads.

The command starts the Job, waits for its report, keeps the report in the cluster, removes the Job, and returns the same
value as an evaluation on this machine. ClusterVersion is read, never written.
"""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.lang.files import read_limited
from kubekit.oci.image_locations import parse_location
from kubekit.oci.reference import Reference
from kubekit.oci.registry import RegistryClient
from kubekit.rules.version_skew import is_kubernetes
from runup.advice.decide.acceptance import accepted, accepted_names
from runup.api.config_v1 import ClusterVersion
from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.api.preflight_reads_v1 import Right
from runup.checks.catalogue.own_rights import own_rights, rights_without_clusterversion
from runup.checks.decide import rights
from runup.checks.decide.kubernetes_path import update_of_kubernetes
from runup.evaluation.evaluate import LIVE, EvaluatedCluster
from runup.evaluation.request import target_version
from runup.facts.target_release import IMAGE_FOLDERS, TargetRelease, release_in
from runup.preflight.control import cluster_runs, kept_reports
from runup.preflight.control.cluster_runs import ClusterRun
from runup.preflight.decide import cluster_run, stored_reports
from runup.preflight.decide.cluster_run import NAMESPACE, Checking, Run
from runup.preflight.decide.stored_reports import History
from runup.process.clusterversion_client import ACCEPTED
from runup.process.ending_signals import exit_on_signal
from runup.process.names import default_image, operator_namespace
from runup.report.report import Report, is_of

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.evaluation.request import Flags, JobFlags
    from runup.process.connection import Connection

NO_IMAGE = (
    "it is not known which image runs the checks in the cluster; give it with --image REGISTRY/REPOSITORY@sha256:..."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The release that is checked: pinned image, what its files say, and what its checks read.

    `runs` is whether the image has runup's checks, so that it can run them itself.
    """

    release: TargetRelease
    image: str = ""
    rights: tuple[Right, ...] = ()
    runs: bool = False
    notes: tuple[str, ...] = ()


def evaluate(connection: Connection, flags: Flags, job: JobFlags, access: Access) -> EvaluatedCluster:
    """Returns the result of a preflight in the cluster. Raises InputError if it has no report, and KubeError."""
    refused = {"--dump": flags.dumps, "--release-dir": flags.release_dir, "--target-catalog": flags.catalogs}
    for option, value in refused.items():
        if value:
            text = f"--in-cluster checks the cluster from within; {option} is about this machine: leave it out"
            raise InputError(text)
    target = _target_of(flags.to_image, access)
    with connection.client("preflight") as client:
        cluster, to, from_ = cluster_version(client), flags.to, flags.from_
        image = target.image if target.runs and not job.image else image_for_job(job.image)
        # A release of OpenShift also checks a cluster whose ClusterVersion is not there yet.
        if cluster is None and not flags.to_image and (not to or is_kubernetes(to)):
            running = client.send(calls.server_version())
            update = update_of_kubernetes(running, from_, to)
            to, from_ = str(update.target), str(update.source)
        version = target_version(to, from_, release=target.release, image=target.image, cluster=cluster)
        checking = Checking(
            image=image,
            target_version=version,
            source_version=from_,
            target_image=target.image,
            user=cluster_runs.user_of(client),
            check_timeout_s=flags.check_timeout_s,
            prometheus_url=flags.prometheus_url,
            prometheus_ca=read_limited(flags.prometheus_ca).decode() if flags.prometheus_ca else "",
            reads_catalogs=flags.reads_catalogs,
            inner_registries=flags.inner_registries,
        )
        if image == target.image:
            rights = target.rights
        else:
            rights = rights_without_clusterversion() if cluster is None else own_rights()
        run = Run(
            id=cluster_run.run_id(client.now(), secrets.token_hex(5)),
            checking=checking,
            rights=rights,
            started=client.now(),
            timeout_s=job.timeout_s,
        )
        report, notes = _report_of(client, run, keep=job.keep)
        accepting = accepted(cluster, _acceptance_records(client, cluster), client.now()) if cluster else {}
        uid = ""
        if cluster is None:
            with suppress(NotFound, Forbidden):
                uid = client.send(calls.get(Namespace, "kube-system")).metadata.uid
    notes = (*target.notes, *notes)
    return EvaluatedCluster(
        where=LIVE, report=report, cluster=cluster, accepted=accepting, notes=notes, known_id=uid
    ).identified()


def read_stored_history(client: SyncClient) -> History:
    """Returns the reports that preflights in the cluster left. Raises KubeError."""
    return stored_reports.read(kept_reports.read_kept(client))


def read_stored_result(client: SyncClient, version: str) -> EvaluatedCluster:
    """Returns the newest stored result, or the result for a version. Raises InputError if it does not exist."""
    reports = [report for report in read_stored_history(client).reports if not version or is_of(report, version)]
    if not reports:
        of = f" of {version}" if version else ""
        raise InputError(f"no preflight{of} was made in the cluster; make one: runup preflight run --in-cluster")
    cluster = cluster_version(client)
    accepting = accepted(cluster, _acceptance_records(client, cluster), client.now()) if cluster else {}
    return EvaluatedCluster(where=LIVE, report=reports[0], cluster=cluster, accepted=accepting)


def image_for_job(typed: str) -> str:
    """Returns the image that runs our checks. Raises InputError if it is not known, or no node can pull it."""
    image = typed or default_image()
    if not image:
        raise InputError(NO_IMAGE)
    if not isinstance(parse_location(image), Reference):
        raise InputError(f"--image {image}: the cluster cannot pull it; give an image in a registry")
    return image


def _target_of(image: str, access: Access) -> Target:
    """Returns the release of `--to-image`, read from its registry; without one, a release that says nothing."""
    if not image:
        return Target(release=TargetRelease())

    location = parse_location(image)
    if not isinstance(location, Reference):
        raise InputError(f"--to-image {image}: the cluster cannot pull it; give an image in a registry")
    client = RegistryClient(access.of_administrators())
    # By digest, so that the Job runs what was read here.
    pinned = location if location.digest else location.at(client.resolve(location))
    files = client.read_folders(pinned, IMAGE_FOLDERS)
    release = release_in(files)
    declared = files.get(READS_FILE)
    if declared is None:
        note = f"{pinned} has no checks of runup's ({READS_FILE} is not in it): those of runup's own image are made"
        return Target(release=release, image=str(pinned), notes=(note,))
    try:
        granted, refused = rights.rights_of_file(declared)
    except rights.BadReads as error:
        raise InputError(f"--to-image {image}: {error}") from error
    return Target(release=release, image=str(pinned), rights=granted, runs=True, notes=refused)


def _report_of(client: SyncClient, run: Run, *, keep: bool) -> tuple[Report, tuple[str, ...]]:
    """Runs the Job and returns its report, with the objects that could not be stored or removed."""
    clock = SystemClock()
    notes = list(cluster_runs.sweep(client))
    running = ClusterRun(client, run, clock, _tell_user)
    try:
        with exit_on_signal():
            running.start()
            _tell_user(f"Job {run.name} in namespace {NAMESPACE} checks the update to {run.checking.target_version}")
            end = running.follow()
    finally:
        not_removed = () if keep else running.remove()
        for problem_text in not_removed:
            _tell_user(f"could not be removed: {problem_text}")
    if end.report is None:
        raise InputError(f"the preflight in the cluster failed: {end.text}")
    try:
        kept_reports.ensure(client)
        kept_reports.add(client, end.report)
    except KubeError as error:
        notes.append(f"the report is not kept in the cluster: {error}")
    return end.report, tuple(notes)


def _tell_user(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def cluster_version(client: SyncClient) -> ClusterVersion | None:
    try:
        return client.send(calls.get(ClusterVersion, "version"))
    except NotFound:
        return None


def _acceptance_records(client: SyncClient, cluster: ClusterVersion) -> dict[str, str]:
    """Returns the acceptance records; none if nothing is accepted, or they cannot be read."""
    if accepted_names(cluster):
        # The acceptance records are optional: without them, every accepted name counts.
        with suppress(NotFound, Forbidden):
            return client.send(calls.get(ConfigMap, ACCEPTED, operator_namespace())).data
    return {}
