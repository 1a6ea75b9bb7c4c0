"""A baseline: the risks that an earlier result named, by cluster. Only new and grown risks fail a later run. Pure.

A baseline is read from the output of `-o json` (for one cluster, several or a fleet), or from a stored report. It
counts for a cluster and target that it has. Clusters are the same by their IDs if both have one, else by their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.text import one_line
from runup.advice.decide.acceptance import Growth
from runup.evaluation.evaluate import LIVE
from runup.preflight.decide.findings import Findings, Risk
from runup.report import changes
from runup.report.report import ReportedResource, is_untold

# As many clusters or risks as a warning names.
_NAMES = 5
# Names that many clusters have: that of a stored report, and that of a live cluster.
_NO_NAMES = ("", LIVE)
_NEVER = datetime.min.replace(tzinfo=UTC)


class KnownRisk(Wire, frozen=True, kw_only=True):
    """A risk of a baseline."""

    name: str = ""
    applies: str = "True"
    resources: tuple[ReportedResource, ...] = ()
    resources_omitted: int = 0


class KnownCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of a baseline: its risks by name, for the update to `target`; unknown fields are empty."""

    name: str
    risks: Mapping[str, KnownRisk]
    cluster_id: str = ""
    target: str = ""
    observed: datetime | None = None


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters of an earlier result. `name` is what the baseline is called."""

    name: str
    clusters: tuple[KnownCluster, ...] = ()


class Since(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The changes of a cluster's risks since a baseline, by their names.

    `untold` are those of the baseline that are not found, and whose check is Unknown. `part` are the risks of
    `same` of which only the number of objects could be compared. `same` also has risks that no acceptance lifts.
    """

    new: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    part: tuple[str, ...] = ()


def read(document: Any, name: str) -> Baseline:
    """Returns the baseline in a decoded JSON document. Raises Terminal if it is none."""
    entries = document.get("clusters") if isinstance(document, dict) else document
    entries = [document] if entries is None else entries
    if not isinstance(entries, list):
        raise _bad_baseline(name)
    return read_clusters(entries, name)


def read_clusters(entries: Iterable[Any], name: str) -> Baseline:
    """Returns the baseline of clusters, each in the form of `-o json`. Raises Terminal if it is none."""
    clusters: dict[str, KnownCluster] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise _bad_baseline(name)
        cluster = _read_cluster(entry, name)
        if cluster.name in clusters:
            text = f"{name} has two clusters called {one_line(cluster.name)}, whose risks cannot be distinguished"
            raise Terminal(f"{text}; give the output of a run in which each has a different name", reason="BadBaseline")
        clusters[cluster.name] = cluster
    if not clusters:
        raise _bad_baseline(name)
    return Baseline(name=name, clusters=tuple(clusters.values()))


def _read_cluster(entry: Mapping[str, Any], name: str) -> KnownCluster:
    try:
        risks = codec.convert(tuple[KnownRisk, ...], entry["risks"])
    except (KeyError, codec.DecodeError) as error:
        raise _bad_baseline(name) from error
    try:
        observed = datetime.fromisoformat(str(entry.get("observedTime") or ""))
    except ValueError:
        observed = None
    return KnownCluster(
        name=str(entry.get("cluster") or ""),
        cluster_id=str(entry.get("clusterID") or ""),
        target=str(entry.get("target") or entry.get("targetVersion") or ""),
        observed=observed.replace(tzinfo=observed.tzinfo or UTC) if observed else None,
        risks={risk.name: risk for risk in risks if risk.name},
    )


def _bad_baseline(name: str) -> Terminal:
    text = f"{name} is not a baseline: it has neither risks nor clusters with risks"
    return Terminal(f"{text}; give what `-o json` of an earlier run printed", reason="BadBaseline")


_MISSING, _OTHER_CLUSTER, _OTHER_TARGET = "missing", "other cluster", "other target"
_PART, _REFUSED = "part", "refused"


class Comparison:
    """Compares clusters with a baseline, one after the other.

    Each risk of a cluster, or of an update, that the baseline does not have counts as new; a note says so.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._by_name = {cluster.name: cluster for cluster in baseline.clusters}
        # The dumps of a cluster have a new name each time. Of several dumps of it the newest counts.
        self._by_id: dict[str, KnownCluster] = {}
        for cluster in baseline.clusters:
            other = self._by_id.get(cluster.cluster_id)
            if other is None or (cluster.observed or _NEVER) > (other.observed or _NEVER):
                self._by_id[cluster.cluster_id] = cluster
        # Why something is not compared -> the clusters or risks of which that holds, each once.
        self._notes: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)

    def compare(self, name: str, findings: Findings) -> tuple[Findings, Since]:
        """Returns the findings of a cluster with known risks marked as accepted, and what changed."""
        known, why = self._known_cluster(name, findings)
        marked, since = _since(findings, known, self._baseline.name)
        if why:
            self._notes[why][one_line(name)] = None
        self._notes[_PART,].update(dict.fromkeys(since.part))
        refused = (risk.name for risk in marked.risks if risk.open and risk.name in since.same)
        self._notes[_REFUSED,].update(dict.fromkeys(refused))
        return marked, since

    def notes(self) -> list[str]:
        """Returns notes about what could not be compared so far."""
        return [_note(self._baseline, why, _names_text(list(names))) for why, names in self._notes.items() if names]

    def _known_cluster(self, name: str, findings: Findings) -> tuple[KnownCluster | None, tuple[str, ...]]:
        """Returns the cluster of the baseline to compare with, or None and why it is missing."""
        called = self._by_name.get(name)
        known, cluster_id = called, findings.cluster_id
        if cluster_id and (called is None or called.cluster_id != cluster_id):
            known = self._by_id.get(cluster_id, called)
        if known is None:
            return None, (_MISSING,)
        if known.cluster_id and cluster_id and known.cluster_id != cluster_id:
            return None, (_OTHER_CLUSTER,)
        if name in _NO_NAMES and not (known.cluster_id and cluster_id):
            return None, (_MISSING,)
        if known.target and findings.target and known.target != findings.target:
            return None, (_OTHER_TARGET, known.target, findings.target)
        return known, ()


def _note(baseline: Baseline, why: tuple[str, ...], names: str) -> str:
    """Returns the note on what could not be compared; `names` are those of clusters or risks."""
    if why[0] == _PART:
        return f"the objects of {names} are not all named, so only their number was compared with {baseline.name}"
    if why[0] == _REFUSED:
        return f"the baseline {baseline.name} does not accept {names}, which no acceptance lifts"
    if why[0] == _OTHER_TARGET:
        text = f"the baseline {baseline.name} is of the update to {why[1]}, and this one is to {why[2]}"
        return f"{text}: each risk of {names} counts as new"
    if why[0] == _OTHER_CLUSTER:
        return f"the baseline {baseline.name} is of another cluster than {names}, of which each risk counts as new"
    by_name = "" if any(cluster.cluster_id for cluster in baseline.clusters) else "; it has no IDs of clusters"
    return f"the baseline {baseline.name} does not have {names}, of which each risk counts as new{by_name}"


def _names_text(names: Sequence[str]) -> str:
    omitted = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {omitted} more" if omitted > 0 else "")


def _since(findings: Findings, known: KnownCluster | None, baseline: str) -> tuple[Findings, Since]:
    """Returns the findings with what the baseline's cluster has marked as accepted, and what changed."""
    risks, new, grown, same, part = list[Risk](), list[str](), list[str](), list[str](), list[str]()
    for risk in findings.risks:
        earlier = known.risks.get(risk.name) if known is not None else None
        if not risk.open:
            risks.append(risk)
        elif earlier is None or not changes.is_known(earlier, risk):
            new.append(risk.name)
            risks.append(risk)
        elif (growth := _growth(earlier, risk)) is not None:
            grown.append(risk.name)
            at = known.observed if known is not None else None
            risks.append(replace(risk, grown=growth._replace(at=at, baseline=baseline)))
        else:
            same.append(risk.name)
            part += [risk.name] if earlier.resources_omitted or risk.resources_omitted else []
            risks.append(risk.accept(f"known: it is in the baseline {baseline}"))
    found = {risk.name for risk in findings.risks if risk.applies != "False"}
    lost = [
        name
        for name, risk in sorted(known.risks.items() if known is not None and findings.completed else ())
        if risk.applies != "False" and name not in found
    ]
    untold = [name for name in lost if is_untold(name, (risk.name for risk in findings.risks), findings.checks)]
    since = Since(
        new=tuple(new),
        grown=tuple(grown),
        gone=tuple(name for name in lost if name not in untold),
        untold=tuple(untold),
        same=tuple(same),
        part=tuple(part),
    )
    return replace(findings, risks=tuple(risks)), since


def _growth(earlier: KnownRisk, risk: Risk) -> Growth | None:
    """Returns the growth of the objects of `risk` since the baseline, or None."""
    before = changes.objects_of(earlier)
    names, more = changes.added(before, changes.objects_of(risk))
    return Growth(added=names, more=more, accepted_for=before.total) if names or more else None
