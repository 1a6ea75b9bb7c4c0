"""The command `runup preflight run`: a preflight without an operator, of a cluster that is only read, or of dumps.

Takes the flags, evaluates each cluster (`evaluate`), makes one `Findings` per cluster, and prints them in one form. The
exit code is that of `--wait`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace as dataclass_replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubekit.kube.clock import SystemClock
from runup.cli.errors import CommandError
from runup.cli.output import screen_of, write
from runup.cli.preflight import outputs
from runup.cli.preflight.render import output_formats as forms
from runup.cli.render.text import err, out
from runup.dump.dump_files import cluster_name
from runup.evaluation.baseline import Baseline
from runup.evaluation.dumps import evaluate_dump
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.request import RequestedUpdate, images_of
from runup.evaluation.results import (
    ClusterResult,
    ReportKeeper,
    baseline_in,
    results_of,
    suppressions_in,
)
from runup.facts.of_dump import dumps_in
from runup.facts.target_release import release_of
from runup.preflight.decide.findings import COULD_NOT_RUN, worst_code

if TYPE_CHECKING:
    from kubekit.oci.access import Access
    from runup.evaluation.request import Flags
    from runup.preflight.control.stores import Store
    from runup.process.connection import Connection


def run(connection: Connection, flags: Flags, access: Callable[[], Access]) -> int:
    """Evaluates and prints the findings, and returns the exit code of the worst cluster."""
    if flags.to_image and flags.release_dir:
        raise CommandError("--to-image and --release-dir both name the release; give one of them")
    if flags.dumps and flags.prometheus_url:
        raise CommandError(
            "--prometheus-url: what Prometheus says now is about a cluster, not about a dump; leave it out"
        )
    rules, baseline = suppressions_in(flags.suppressions), baseline_in(flags.baseline)
    store = store_of(flags.store, connection)
    now = SystemClock().now()
    if flags.manifests:
        # What is wrong with manifests that no cluster has yet.
        from runup.evaluation.manifest_files import evaluate_manifests

        evaluated, places = evaluate_manifests(flags.manifests, flags.to, now)
        clusters, notes = results_of([evaluated], rules, baseline, now, fail_on=flags.fail_on)
        clusters = [dataclass_replace(cluster_result, places=places) for cluster_result in clusters]
        _print(clusters, notes, flags, several=False, baseline=baseline)
        return clusters[0].findings.exit_code
    paths = [path for typed in flags.dumps for path in dumps_in(Path(typed))] if flags.job is None else []
    if flags.store or flags.baseline:
        # Raises CommandError for dumps that a store or a baseline could not tell apart.
        by_name: dict[str, Path] = {}
        for path in paths:
            name = cluster_name(path)
            if name in by_name:
                problem = f"{by_name[name]} and {path} are both called {name}"
                raise CommandError(
                    f"{problem}, and --store and --baseline use the name; rename one, or give one at a time"
                )
            by_name[name] = path
    evaluated_clusters = _evaluate_all(connection, flags, access=access(), paths=paths, now=now)
    keeper = ReportKeeper(store, flags.to, now)
    if store is not None:
        # A live cluster's reports are kept under the name of the context, as `runup fleet` has it.
        names = [evaluated.where for evaluated in evaluated_clusters]
        if not flags.dumps:
            config = connection.config()
            names = [config.context or config.address]
        for name, evaluated in zip(names, evaluated_clusters, strict=True):
            keeper.keep(name, evaluated, of_dump=bool(flags.dumps))
    clusters, notes = results_of(evaluated_clusters, rules, baseline, now, fail_on=flags.fail_on)
    notes += keeper.notes()
    if flags.dumps and outputs.shows_places(flags.outputs):
        clusters = [placed(path, cluster_result) for path, cluster_result in zip(paths, clusters, strict=True)]
    _print(clusters, notes, flags, several=len(evaluated_clusters) > 1, problems=keeper.problems, baseline=baseline)
    return worst_code(cluster_result.findings.exit_code for cluster_result in clusters)


def store_of(typed: str, connection: Connection) -> Store | None:
    """Returns the store, None without one; whether it can be written is looked at before anything is read.

    Raises Terminal.
    """
    if not typed:
        return None
    from runup.preflight.control import stores

    store = stores.open_store(typed, connection.config)
    store.check()
    return store


def _evaluate_all(
    connection: Connection, flags: Flags, access: Access, paths: Sequence[Path], now: datetime
) -> list[EvaluatedCluster]:
    """Evaluates the dumps, or the cluster: from here, or as a separate Job."""
    if flags.job is not None:
        from runup.target import in_cluster

        return [in_cluster.evaluate(connection, flags, flags.job, access)]
    release = release_of(flags.release_dir, flags.to_image, access.of_administrators())
    requested_update = RequestedUpdate(
        release=release,
        target=flags.to,
        source=flags.from_,
        image=flags.to_image,
        check_timeout_s=flags.check_timeout_s,
        prometheus_url=flags.prometheus_url,
        prometheus_ca=flags.prometheus_ca,
        catalogs=images_of(flags.catalogs),
        reads_catalogs=flags.reads_catalogs,
        access=access,
        helm_releases=flags.helm_releases,
        api_metrics=flags.api_metrics,
    )
    if flags.dumps:
        return with_distinct_names([evaluate_dump(path, requested_update, now) for path in paths], paths)
    from runup.target.live import evaluate_cluster

    return [evaluate_cluster(connection.config(), requested_update)]


def with_distinct_names(evaluated: list[EvaluatedCluster], paths: Sequence[Path]) -> list[EvaluatedCluster]:
    """Returns the results with the path as the name of dumps that have the same name."""
    # One that is given twice is the same cluster.
    names = Counter(name for name, _ in {(each.where, path) for each, path in zip(evaluated, paths, strict=True)})
    return [
        replace(each, where=str(path.with_name(cluster_name(path)))) if names[each.where] > 1 else each
        for each, path in zip(evaluated, paths, strict=True)
    ]


def placed(path: Path, cluster_result: ClusterResult) -> ClusterResult:
    """Returns the result with the places of its objects in the dump."""
    from runup.facts.of_dump import find_places

    if not cluster_result.findings.completed:
        return cluster_result
    return dataclass_replace(
        cluster_result,
        places=find_places(path, [item for risk in cluster_result.findings.risks for item in risk.resources]),
    )


def _print(
    results: Sequence[ClusterResult],
    notes: Sequence[str],
    flags: Flags,
    *,
    several: bool,
    problems: Sequence[str] = (),
    baseline: Baseline | None = None,
) -> None:
    """Writes each output to its file, and prints those for the terminal, by default the text.

    Raises CommandError after that, for `problems` and files that could not be written.
    """
    shown = outputs.Shown(results=results, several=several, baseline=baseline)
    problems = [*problems, *outputs.write_files(flags.outputs, shown)]
    printed = [out(part) for part in outputs.render_for_stdout(flags.outputs, shown)]
    if not printed and several:
        printed = [out(text) for text in forms.table_of(results, screen_of(sys.stdout))]
    elif not printed:
        # A single target that could not be evaluated is an error of the command, as with --wait.
        if results[0].findings.exit_code == COULD_NOT_RUN and results[0].findings.failed:
            raise CommandError(results[0].findings.failed.message)
        printed = [out(forms.text(results[0], screen_of(sys.stdout), whole=flags.verbose))]
    write([*(err(f"warning: {note}\n") for note in notes), *printed])
    if problems:
        raise CommandError("\n".join(problems))
