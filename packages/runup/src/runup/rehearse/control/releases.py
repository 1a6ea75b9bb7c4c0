"""Loads the release that the options of `runup rehearse` name, and rehearses it or a version of Kubernetes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from kubekit.error_types import InputError
from kubekit.kube.clock import SystemClock
from kubekit.lang.version import Version, VersionError, parse
from runup.applying.control.loading import read_folder
from runup.dump.large_lists import unpacked
from runup.facts.target_release import folder_of_release, release_in
from runup.process.ending_signals import ending_signals
from runup.process.names import operator_namespace
from runup.process.steps import step
from runup.rehearse.control.rehearsal import RehearsalTarget, account_of, cluster_version_of, rehearse_kubernetes
from runup.rehearse.control.rehearsal_run import stuck_operators
from runup.rehearse.decide import served_versions
from runup.rehearse.decide.rehearsal_outcome import LeftOut, Rehearsal
from runup.release.decide.payload import FOLDERS, load_payload

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.api.config_v1 import ClusterVersion
    from runup.rehearse.control.cluster_source import ClusterSource
    from runup.rehearse.control.real_server import ServerPrograms

T = TypeVar("T")


def parse_stuck(declared: Sequence[str]) -> tuple[str, ...]:
    """Returns the ClusterOperators that `--operators` declares stuck. Raises InputError."""
    try:
        return stuck_operators(declared)
    except ValueError as error:
        raise InputError(f"--operators {error}: only stuck:NAME is known, with the name of a ClusterOperator") from None


def version_of(source: ClusterSource) -> ClusterVersion:
    """Returns the ClusterVersion of a cluster that releases update. Raises InputError for another cluster."""
    version = cluster_version_of(source)
    if version is None:
        raise InputError(
            "the cluster has no ClusterVersion, so no release updates it; `runup rehearse --to-kubernetes VERSION` "
            "shows what a version of Kubernetes no longer serves"
        )
    if not parse(version.status.desired.version):
        raise InputError("the ClusterVersion does not say in status.desired which version the cluster runs")
    return version


def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`. A signal that ends the command cancels it, so that it can clean up.

    Raises KeyboardInterrupt after SIGINT, SystemExit with 128 and the number of the signal after another one.
    """
    ended: list[int] = []

    async def guarded() -> T:
        """Returns the result of `work`; the signals cancel it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def end(number: int) -> None:
            ended.append(number)
            task.cancel()

        for number in ending_signals():
            loop.add_signal_handler(number, end, number)
        return await task

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        if signal.SIGINT in ended:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + (ended or [signal.SIGTERM])[0]) from None


def run_on_copy(work: Coroutine[Any, Any, Rehearsal]) -> Rehearsal:
    """Returns the result of a rehearsal. Raises InputError if the copy cannot be made."""
    try:
        return run_until_signal(work)
    except OSError as error:
        raise InputError(f"the copy of the cluster could not be made: {error}") from error
    except MemoryError as error:
        text = "the copy of the cluster needs more memory than there is"
        raise InputError(f"{text}: some 150 MiB for each 10,000 objects; rehearse on another machine") from error


def rehearse_without_release(
    source: ClusterSource, to_kubernetes: str, programs: ServerPrograms | None, *, limit_s: float
) -> Rehearsal:
    """Returns which of the cluster's objects are written in a version that the target Kubernetes no longer serves.

    With `programs`, those of a real API server, the objects are also applied to a copy on it, and what it refuses is
    returned too. Without them no copy is made: the objects' versions are compared with the table of removed versions.
    Raises InputError if the cluster has a ClusterVersion, or is not older than the target.
    """
    if cluster_version_of(source) is not None:
        raise InputError(
            "the cluster has a ClusterVersion, so its Kubernetes comes with a release: give --to, --to-image or "
            "--release-dir instead of --to-kubernetes"
        )
    target = _kubernetes_version(to_kubernetes, "--to-kubernetes")
    running = _kubernetes_version(source.kubernetes, "the cluster's version")
    if target.minor <= running.minor:
        raise InputError(f"--to-kubernetes {to_kubernetes}: the cluster runs {source.kubernetes} already")
    text = "whether objects of it are written in a version that the target does not serve is not known"
    kinds_not_read = tuple(
        LeftOut(f"{kind}.{group}" if group else kind, text)
        for group, kind in served_versions.kinds_losing_versions(running.minor, target.minor)
        if not source.knows(group, kind)
    )
    if programs is not None:
        work = rehearse_kubernetes(source, programs, SystemClock(), target=to_kubernetes, limit_s=limit_s)
        return replace(run_on_copy(work), source=str(running), target=str(target), unknown=kinds_not_read)
    return Rehearsal(
        account=account_of(source),
        source=str(running),
        target=str(target),
        unserved=served_versions.unserved(map(unpacked, source.objects), running.minor, target.minor),
        unknown=(*served_versions.kinds_beyond_table(target.minor), *kinds_not_read),
        kubernetes=True,
    )


def _kubernetes_version(text: str, option: str) -> Version:
    """Returns a version of Kubernetes with or without a patch version. Raises InputError that names `option`."""
    try:
        return Version(text if text.count(".") > 1 else f"{text}.0")
    except VersionError as error:
        raise InputError(f"{option} {text!r} is not a version of Kubernetes such as 1.36") from error


def image_of_offered_update(version: ClusterVersion, to: str) -> str:
    """Returns the image of an update that the cluster is offered. Raises InputError if it is not."""
    updates = [
        *(version.status.available_updates or ()),
        *(conditional.release for conditional in version.status.conditional_updates),
    ]
    image = next((update.image for update in updates if update.version == to), "")
    if not image:
        raise InputError(f"the cluster is not offered {to}: name its release image with --to-image")
    return image


def load_target(
    release_dir: str, image: str, to: str, declared: tuple[str, ...], access: Callable[[], Access], *, limit_s: float
) -> RehearsalTarget:
    """Returns the update to the release in a folder or an image; `to` is what its version must be, if anything.

    Raises InputError.
    """
    if release_dir:
        files = read_folder(folder_of_release(release_dir))
    else:
        from kubekit.oci.image_locations import parse_location, read_image_files

        with step(f"Reading image {image}"):
            files = read_image_files(parse_location(image), FOLDERS, access().of_administrators())[0]
    payload = load_payload(files, source=image or release_dir, release_image=image)
    if to and to != payload.version:
        raise InputError(f"--to {to}: the release is {payload.version}; leave out --to, or name another release")
    missing = sorted(
        set(declared)
        - {manifest.identity.name for manifest in payload.manifests if manifest.identity.kind == "ClusterOperator"}
    )
    if missing:
        text = f"--operators stuck:{missing[0]}: the release {payload.version} has no ClusterOperator {missing[0]}"
        raise InputError(text)
    return RehearsalTarget(
        payload=payload,
        target=payload.version,
        image=image,
        kubernetes=release_in(files).kubernetes,
        stuck=declared,
        account=(operator_namespace(), "default"),
        limit_s=limit_s,
    )
