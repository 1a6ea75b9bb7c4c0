"""A baseline: the risks that an earlier result named, by cluster. Only further risks fail a later run. Pure.

A baseline is read from the output of `-o json` (for one cluster, several or a fleet), or from a stored report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.error_types import Terminal
from kubekit.lang.text import one_line
from runup.preflight.decide.findings import Risk

# What a check could not tell is known from a baseline only as that; that the risk applies is new.
_KNOWN = {"True": ("True", "Unknown"), "Unknown": ("Unknown",)}
# As many clusters as a warning names.
_NAMES = 5


class Baseline(msgspec.Struct, frozen=True):
    """The risks of each cluster, by name, with whether they applied. `name` is what the baseline is called.

    `targets` are the versions to which the clusters were checked, as far as the baseline says it.
    """

    name: str
    clusters: Mapping[str, Mapping[str, str]]
    targets: Mapping[str, str] = {}


def read(document: Any, name: str) -> Baseline:
    """Returns the baseline in a decoded JSON document. Raises Terminal if it is none."""
    entries = document.get("clusters") if isinstance(document, dict) else document
    entries = [document] if entries is None else entries
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise _bad_baseline(name)
    clusters: dict[str, Mapping[str, str]] = {}
    targets: dict[str, str] = {}
    for entry in entries:
        risks = entry.get("risks")
        if not isinstance(risks, list) or not all(isinstance(risk, dict) for risk in risks):
            raise _bad_baseline(name)
        applies_by_name = {str(risk.get("name") or ""): str(risk.get("applies") or "True") for risk in risks}
        cluster = str(entry.get("cluster") or "")
        if cluster in clusters:
            text = f"{name} has two clusters called {one_line(cluster)}, whose risks could not be told apart"
            raise Terminal(
                f"{text}; give the output of a run in which each has a name of its own", reason="BadBaseline"
            )
        targets[cluster] = str(entry.get("target") or entry.get("targetVersion") or "")
        clusters[cluster] = {risk: applies for risk, applies in applies_by_name.items() if risk}
    return Baseline(name, clusters, targets)


def _bad_baseline(name: str) -> Terminal:
    text = f"{name} is not a baseline: it has neither risks nor clusters with risks"
    return Terminal(f"{text}; give what `-o json` of an earlier run printed", reason="BadBaseline")


def target_mismatches(baseline: Baseline, targets: Mapping[str, str]) -> list[str]:
    """Returns warnings about clusters that the baseline does not have, or has with another target.

    `targets` has the target of each cluster that is checked now, empty for a cluster that could not be judged.
    """
    # A single cluster may be called otherwise than in the baseline: with one on both sides it is the same one.
    alone = len(targets) == 1 and len(baseline.clusters) == 1
    missing = [] if alone else [one_line(name) for name in targets if name not in baseline.clusters]
    moved = defaultdict(list)
    for name, now in targets.items():
        target_before = next(iter(baseline.targets.values()), "") if alone else baseline.targets.get(name, "")
        if now and target_before and now != target_before:
            moved[target_before, now].append(one_line(name))
    warnings = []
    if missing:
        text = f"the baseline {baseline.name} does not have {_names_text(missing)}, of which every risk counts as new"
        warnings.append(text)
    for (target_before, now), names in moved.items():
        text = f"the baseline {baseline.name} is of the update to {target_before}, and this one to {now}"
        warnings.append(f"{text}: {_names_text(names)}")
    return warnings


def _names_text(names: Sequence[str]) -> str:
    omitted = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {omitted} more" if omitted > 0 else "")


def baseline_of_cluster(baseline: Baseline, cluster: str, *, alone: bool) -> Mapping[str, str]:
    """Returns the known risks of a cluster; none for one that the baseline does not have.

    `alone`: it is the only one that is checked. If the baseline has one cluster, too, their names need not be the same:
    the dumps of a cluster have a new name each time.
    """
    if cluster in baseline.clusters or not (alone and len(baseline.clusters) == 1):
        return baseline.clusters.get(cluster, {})
    return next(iter(baseline.clusters.values()))


def mark_known_risks(risks: Iterable[Risk], baseline_risks: Mapping[str, str], name: str) -> tuple[Risk, ...]:
    """Returns the risks, with those that the baseline `name` has marked as accepted."""
    return tuple(
        replace(risk, accepted=True, because=f"known: it is in the baseline {name}")
        if risk.open and risk.applies in _KNOWN.get(baseline_risks.get(risk.name, ""), ())
        else risk
        for risk in risks
    )
