"""A baseline: the risks that an earlier result named, by cluster. Only what is new beyond it is to fail. Pure.

It is read from what `-o json` printed, of one cluster, of several or of a fleet, or from a report that was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.errors import Terminal
from runup.preflight.decide.findings import Risk

# What a check could not tell is known from a baseline only as that; that the risk applies is new.
_KNOWN = {"True": ("True", "Unknown"), "Unknown": ("Unknown",)}


class Baseline(msgspec.Struct, frozen=True):
    """The risks of each cluster, by name, with whether they applied. `name` is what the baseline is called."""

    name: str
    clusters: Mapping[str, Mapping[str, str]]


def read(document: Any, name: str) -> Baseline:
    """Returns the baseline in a decoded JSON document. Raises Terminal if it is none."""
    entries = document.get("clusters") if isinstance(document, dict) else document
    entries = [document] if entries is None else entries
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise _bad_baseline(name)
    clusters: dict[str, Mapping[str, str]] = {}
    for entry in entries:
        risks = entry.get("risks")
        if not isinstance(risks, list) or not all(isinstance(risk, dict) for risk in risks):
            raise _bad_baseline(name)
        found = {str(risk.get("name") or ""): str(risk.get("applies") or "True") for risk in risks}
        clusters[str(entry.get("cluster") or "")] = {risk: applies for risk, applies in found.items() if risk}
    return Baseline(name, clusters)


def _bad_baseline(name: str) -> Terminal:
    text = f"{name} is not a baseline: it has neither risks nor clusters with risks"
    return Terminal(f"{text}; give what `-o json` of an earlier run printed", reason="BadBaseline")


def of_cluster(baseline: Baseline, cluster: str, *, alone: bool) -> Mapping[str, str]:
    """Returns the known risks of a cluster; none for one that the baseline does not have.

    `alone`: it is the only one that is checked. If the baseline has one cluster, too, their names need not be the same:
    the dumps of a cluster have a new name each time.
    """
    if cluster in baseline.clusters or not (alone and len(baseline.clusters) == 1):
        return baseline.clusters.get(cluster, {})
    return next(iter(baseline.clusters.values()))


def applied(risks: Iterable[Risk], known: Mapping[str, str], name: str) -> tuple[Risk, ...]:
    """Returns the risks, with those that the baseline `name` has marked as accepted."""
    return tuple(
        replace(risk, accepted=True, because=f"known: it is in the baseline {name}")
        if risk.open and risk.applies in _KNOWN.get(known.get(risk.name, ""), ())
        else risk
        for risk in risks
    )
