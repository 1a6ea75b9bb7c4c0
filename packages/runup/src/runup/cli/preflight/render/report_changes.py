"""Renders the risks that are new, grown or gone since a baseline as Markdown, for a comment on a pull request. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubekit.lang.text import count
from runup.cli.render.text import plain
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import COULD_NOT_RUN, Risk, sort_key

# The number of clusters that a line names.
_MAX_NAMED_CLUSTERS = 5
_REFUSED = "still refuses the update"
_Found = tuple[str, Risk]


def markdown(results: Iterable[ClusterResult], baseline: str) -> str:
    """Returns the new, gone and accepted risks of the clusters, compared with the baseline.

    `results` are those that were compared with it, of which only what is printed is kept.
    """
    total, targets = 0, set[str]()
    failed: list[ClusterResult] = []
    # By whether it is new, name, and state.
    open_risks: dict[tuple[str, str, str], list[_Found]] = defaultdict(list)
    accepted: dict[str, list[_Found]] = defaultdict(list)
    gone: dict[str, list[str]] = defaultdict(list)
    doubtful: dict[str, list[str]] = defaultdict(list)
    for result in results:
        total += 1
        targets.add(result.findings.target)
        if result.findings.exit_code == COULD_NOT_RUN:
            failed.append(result)
            continue
        known = set(result.since.same if result.since else ())
        # The conditions for which `--to` refuses are in no baseline.
        known |= {risk.name for risk in result.findings.guard_risks}
        for risk in (*result.findings.guard_risks, *result.findings.risks):
            if risk.open:
                label = "grown" if risk.grown and risk.grown.baseline else "new"
                label = _REFUSED if risk.name in known else label
                pairs = open_risks[label, risk.name, risk.applies]
                pairs.append((result.name, risk if risk.grown or not pairs else pairs[0][1]))
            elif risk.accepted and risk.applies != "False":
                pairs = accepted[risk.name]
                is_same = bool(pairs) and pairs[-1][1].because == risk.because
                pairs.append((result.name, pairs[-1][1] if is_same else risk))
        for risk_names, by_name in ((result.since.gone, gone), (result.since.untold, doubtful)) if result.since else ():
            for name in risk_names:
                by_name[name].append(result.name)
    of = ", ".join(sorted(target for target in targets if target))
    title = f"Preflight of {of}" if of else "Preflight"
    about = f"Since {plain(baseline)}, for {count(total, 'cluster')}."
    lines = _markdown(title, about, open_risks, accepted, gone=gone, doubtful=doubtful, failed=failed, total=total)
    return "\n".join(lines) + "\n"


def _markdown(
    title: str,
    about: str,
    open_risks: Mapping[tuple[str, str, str], Sequence[_Found]],
    accepted: Mapping[str, Sequence[_Found]],
    *,
    gone: Mapping[str, Sequence[str]],
    doubtful: Mapping[str, Sequence[str]],
    failed: Sequence[ClusterResult],
    total: int,
) -> Iterator[str]:
    """Yields the lines of a pull request's comment."""
    labels = [label for label, *_ in open_risks]
    refused = labels.count(_REFUSED)
    counts = [f"{labels.count('new')} new"]
    counts += [f"{labels.count('grown')} grown"] if "grown" in labels else []
    counts += [f"{len(gone)} gone"]
    counts += [f"{refused} still {'refuses' if refused == 1 else 'refuse'} the update"] if refused else []
    counts += [f"{len(failed)} could not be evaluated"] if failed else []
    yield f"## {title}: {', '.join(counts)}\n"
    yield f"{about}\n"
    for (label, *_), pairs in sorted(open_risks.items(), key=lambda item: sort_key(item[1][0][1])):
        yield from _open_risk(label, pairs, total)
    for label, risks in (("gone", gone), ("not reported this time, so perhaps not gone", doubtful)):
        for risk_name in sorted(risks):
            box = "x" if label == "gone" else " "
            yield f"- [{box}] {label}: {plain(risk_name)}{_clusters_text(risks[risk_name], total)}"
    for risk_name, pairs in sorted(accepted.items()):
        reasons = "; ".join(dict.fromkeys(plain(risk.because) for _, risk in pairs if risk.because))
        clusters = _clusters_text([cluster for cluster, _ in pairs], total)
        yield f"- [x] accepted: {plain(risk_name)}{clusters}{f' ({reasons})' if reasons else ''}"
    for cluster_result in failed:
        problem = cluster_result.findings.failed.message if cluster_result.findings.failed else "it has no result yet"
        yield f"- [ ] could not be evaluated: **{plain(cluster_result.name)}**: {plain(problem)}"


def _open_risk(label: str, pairs: Sequence[_Found], total: int) -> Iterator[str]:
    """Yields the lines of a risk that is new or grown, with the clusters that have it."""
    risk = pairs[0][1]
    certainty = f"({risk.severity or 'unknown severity'})" if risk.applies == "True" else "is unknown"
    clusters = _clusters_text([cluster for cluster, _ in pairs], total)
    yield f"- [ ] {label}: **{plain(risk.name)}** {certainty}{clusters}"
    for cluster, found in pairs:
        if found.grown and label == "grown":
            yield f"  {f'{plain(cluster)}: ' if total > 1 else ''}now also {plain(found.grown.listed)}"
    if risk.applies == "True":
        yield f"  {f'{plain(pairs[0][0])}: ' if len(pairs) > 1 else ''}{plain(risk.message)}"
        if risk.fix:
            yield f"  Fix: {plain(risk.fix)}"


def _clusters_text(clusters: Sequence[str], total: int) -> str:
    """Returns how many clusters have the risk, and the first of their names; empty if only one was evaluated at all."""
    if total == 1:
        return ""
    omitted = len(clusters) - _MAX_NAMED_CLUSTERS
    names = ", ".join(map(plain, clusters[:_MAX_NAMED_CLUSTERS])) + (f" and {omitted} more" if omitted > 0 else "")
    return f": {len(clusters)} of {total}: {names}"
