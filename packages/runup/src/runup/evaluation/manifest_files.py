"""`runup preflight run --manifests`: evaluates manifests before they are applied, for a version, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from kubekit.error_types import InputError
from kubekit.lang.version import Version, VersionError
from kubekit.rules.version_skew import is_kubernetes, version_of
from runup import __version__
from runup.checks.catalogue.manifest_contents import content_findings
from runup.checks.control.logged_checks import run_logged
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.model import Snapshot
from runup.checks.decide.stored_manifests import file_check
from runup.evaluation.evaluate import EvaluatedCluster, evaluate
from runup.evaluation.request import Request
from runup.facts.facts import Facts
from runup.facts.manifest_texts import STDIN, read_manifests
from runup.facts.of_dump import Place
from runup.facts.target_release import TargetRelease, with_kubernetes


def evaluate_manifests(typed: Sequence[str], to: str, now: datetime) -> tuple[EvaluatedCluster, Mapping[str, Place]]:
    """Returns the result of manifests for the version `to`, and where each object is. Raises InputError."""
    for name in typed:
        if name != STDIN and not Path(name).exists():
            raise InputError(f"--manifests {name}: there is no such file or folder; `-` reads standard input")
    if not to:
        raise InputError("--manifests: which version they are for is not known; give it with --to, for example 1.36")
    target, kind = version_of(to) if is_kubernetes(to) else None, ClusterKind.KUBERNETES
    if target is None:
        kind = ClusterKind.OPENSHIFT
        try:
            target = Version(to)
        except VersionError as error:
            raise InputError(f"--to: {error}") from error
    kubernetes = str(target) if kind is ClusterKind.KUBERNETES else with_kubernetes(TargetRelease(), to).kubernetes
    if not kubernetes:
        raise InputError(f"--to {to}: which Kubernetes it ships is not known; name that, for example 1.36")
    manifests = read_manifests(typed)
    request = Request(
        kind=kind,
        source=target,
        target=target,
        source_version="",
        target_version=to,
        kubernetes=kubernetes,
        engine_version=__version__,
    )
    checks = (file_check(manifests, content_findings),)
    report = evaluate(Facts(snapshot=Snapshot()), request, checks, now, outcome_of=run_logged)
    # The first place of each object counts.
    places: dict[str, Place] = {}
    for manifest in manifests.objects:
        file, _, line = manifest.place.rpartition(":")
        if file != "standard input":
            places.setdefault(manifest.reference.text, Place(Path(file).as_posix(), int(line)))
    return EvaluatedCluster(where=", ".join(typed), report=report, manifests=manifests.summary), places
