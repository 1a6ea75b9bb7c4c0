"""Renders the risks that are new or gone since a baseline as Markdown, for a comment on a pull request. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from runup.cli.render.text import plain
from runup.evaluation import baseline as baselines
from runup.evaluation.baseline import Baseline
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import COULD_NOT_RUN, Risk
from runup.report.report import is_untold

# The number of clusters that a line names.
_MAX_NAMED_CLUSTERS = 5
_SEVERITIES = ("critical", "warning", "info")


def markdown(results: Sequence[ClusterResult], baseline: Baseline) -> str:
    """Returns what the clusters have that the baseline does not, and the other way round.

    `results` have what the baseline knows marked as accepted.
    """
    failed: list[ClusterResult] = []
    new_by_risk: dict[tuple[str, str], list[tuple[str, Risk]]] = defaultdict(list)
    missing_by_name: dict[str, list[str]] = defaultdict(list)
    doubtful: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if result.findings.exit_code == COULD_NOT_RUN:
            failed.append(result)
            continue
        risks, checks = result.findings.risks, result.findings.checks
        for risk in risks:
            if risk.open:
                new_by_risk[risk.name, risk.applies].append((result.name, risk))
        now = {risk.name for risk in risks if risk.applies != "False"}
        in_baseline = baselines.baseline_of_cluster(baseline, result.name, alone=len(results) == 1)
        for name in sorted(name for name, applies in in_baseline.items() if applies != "False" and name not in now):
            in_doubt = is_untold(name, (risk.name for risk in risks), checks)
            (doubtful if in_doubt else missing_by_name)[name].append(result.name)

    def gravity(group: list[tuple[str, Risk]]) -> tuple[bool, int, str]:
        """Returns the sort key: risks that apply before unknown ones, the gravest first."""
        risk = group[0][1]
        grade = _SEVERITIES.index(risk.severity) if risk.severity in _SEVERITIES else 1
        return risk.applies != "True", grade, risk.name

    new = sorted(new_by_risk.values(), key=gravity)
    lines = _markdown(results, new, missing_by_name, doubtful=doubtful, failed=failed, name=baseline.name)
    return "\n".join(lines) + "\n"


def _markdown(
    results: Sequence[ClusterResult],
    new: Sequence[Sequence[tuple[str, Risk]]],
    missing_by_name: dict[str, list[str]],
    doubtful: dict[str, list[str]],
    failed: Sequence[ClusterResult],
    name: str,
) -> Iterator[str]:
    """Yields the lines of a pull request's comment: risks that are new, gone or doubtful since the baseline."""
    total = len(results)
    targets = sorted({cluster_result.findings.target for cluster_result in results if cluster_result.findings.target})
    of = f" of {', '.join(targets)}" if targets else ""
    lines = [
        f"{len(new)} new",
        f"{len(missing_by_name)} gone",
        *([f"{len(failed)} could not be judged"] if failed else []),
    ]
    yield f"## Preflight{of}: {', '.join(lines)}\n"
    yield f"Since {plain(name)}, for {total} {'cluster' if total == 1 else 'clusters'}.\n"
    for pairs in new:
        risk = pairs[0][1]
        certainty = f"({risk.severity or 'unknown severity'})" if risk.applies == "True" else "could not be told"
        yield (
            f"- [ ] new: **{plain(risk.name)}** "
            f"{certainty}{_clusters_text([cluster_name for cluster_name, _ in pairs], total)}"
        )
        if risk.applies == "True":
            cluster_prefix = f"{plain(pairs[0][0])}: " if len(pairs) > 1 else ""
            yield f"  {cluster_prefix}{plain(risk.message)}"
            if risk.fix:
                yield f"  Fix: {plain(risk.fix)}"
    for label, risks in (("gone", missing_by_name), ("not told this time, so perhaps not gone", doubtful)):
        for risk_name in sorted(risks):
            box = "x" if label == "gone" else " "
            yield f"- [{box}] {label}: {plain(risk_name)}{_clusters_text(risks[risk_name], total)}"
    for cluster_result in failed:
        problem = cluster_result.findings.failed.message if cluster_result.findings.failed else "it has no result yet"
        yield f"- [ ] could not be judged: **{plain(cluster_result.name)}**: {plain(problem)}"


def _clusters_text(clusters: Sequence[str], total: int) -> str:
    """Returns how many clusters have the risk, and the first of their names; empty if only one was judged at all."""
    if total == 1:
        return ""
    omitted = len(clusters) - _MAX_NAMED_CLUSTERS
    names = ", ".join(map(plain, clusters[:_MAX_NAMED_CLUSTERS])) + (f" and {omitted} more" if omitted > 0 else "")
    return f": {len(clusters)} of {total}: {names}"
