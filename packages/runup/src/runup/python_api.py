"""Runs a preflight from Python: reads a cluster or a dump, returns `Findings`. Public: docs/reference/python-api.md.

What `runup preflight run` prints is made of the same values.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from kubekit.api.codec import DecodeError
from kubekit.error_types import InputError, RunupError
from kubekit.kube import config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.clock import SystemClock
from kubekit.oci import credentials
from kubekit.oci.access import Access
from kubekit.oci.registry_errors import OciError
from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.request import RequestedUpdate
from runup.evaluation.results import findings_of
from runup.facts.target_release import release_of
from runup.preflight.decide.findings import Findings, Risk
from runup.report.report import CheckResult, ReportedCheck, ReportedResource
from runup.target.live import evaluate_cluster

__all__ = [
    "CheckResult",
    "Findings",
    "PreflightError",
    "ReportedCheck",
    "ReportedResource",
    "Risk",
    "evaluate",
]


class PreflightError(Exception):
    """Raised if there are no findings: `message` says which input is to blame, and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def evaluate(
    *,
    dump: str | os.PathLike[str] | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str = "",
    target: str = "",
    source: str = "",
    release_image: str = "",
    release_folder: str | os.PathLike[str] = "",
    check_timeout_s: float = 10.0,
) -> Findings:
    """Returns the findings about an update; raises PreflightError if they do not exist, and nothing else on purpose.

    `dump` is a must-gather, `oc adm inspect` or folder of YAML, evaluated as of its own time. Without it a live cluster
    is read: that of `kubeconfig` and `context`, by default those of kubectl. `target` and `source` are versions; by
    default the release's (else the next minor version) and the cluster's own. `release_image` (a pull spec or
    `oci:DIR`) or `release_folder` add the checks of a release to the built-in ones. `check_timeout_s` limits each
    check of a live cluster.
    """
    if dump is not None and (kubeconfig is not None or context):
        raise PreflightError("dump, and kubeconfig or context, name two clusters: give one of them")
    if release_image and release_folder:
        raise PreflightError("release_image and release_folder both name the release: give one of them")
    if release_folder and not Path(release_folder).is_dir():
        raise PreflightError(f"release_folder {os.fspath(release_folder)}: there is no such folder")
    try:
        access = Access(credentials=credentials.load_credentials(""))
        release = release_of(os.fspath(release_folder), release_image, access)
        requested_update = RequestedUpdate(
            release=release,
            target=target,
            source=source,
            image=release_image,
            check_timeout_s=check_timeout_s,
            access=access,
        )
        if dump is not None:
            evaluated = evaluate_dump(Path(dump), requested_update, SystemClock().now())
        else:
            cluster = config.load(None if kubeconfig is None else os.fspath(kubeconfig), context or None)
            with suppress(RuntimeError):
                asyncio.get_running_loop()
                way_out = "from a coroutine, call it by asyncio.to_thread()"
                raise PreflightError(f"evaluate() runs a separate event loop: {way_out}")
            evaluated = evaluate_cluster(cluster, requested_update)
    except (InputError, RunupError, KubeError, OciError) as error:
        raise PreflightError(error.message) from error
    except (DecodeError, OSError) as error:
        raise PreflightError(str(error)) from error
    if evaluated.report is None:
        raise PreflightError(evaluated.problem)
    findings = findings_of(evaluated)
    if findings.failed is not None:
        raise PreflightError(findings.failed.message)
    return findings
