"""Selects, sorts and groups the clusters of a fleet and their risks, as the query of an address says. Pure.

A filter narrows the view. It never changes a cluster's result, and a cluster without a result is never filtered out by
its risks, which nobody knows: it is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from runup.fleet.decide.members import fits_labels
from runup.preflight.decide.findings import Findings, Result, Risk
from runup.report.report import SEVERITIES, severity_rank

STATES = ("refuses", "applies", "unknown", "accepted", "informs")
SORTS = ("severity", "state", "name", "label", "area")
_ORDER = {result.code: place for place, result in enumerate((Result.COULD_NOT_RUN, Result.APPLY, Result.UNKNOWN))}


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What the query of an address asks for; empty fields ask for everything.

    `severity` is the least that is shown, `label` a selector, `text` a part of a name or a message. `group` is the key
    of a label. `problems` say which parts of the query are not known, and were ignored.
    """

    severity: str = ""
    area: str = ""
    label: str = ""
    state: str = ""
    text: str = ""
    sort: str = SORTS[0]
    group: str = ""
    problems: tuple[str, ...] = ()

    @property
    def by_risk(self) -> bool:
        """Whether risks are left out."""
        return bool(self.severity or self.area or self.state)


def selection_of(query: Mapping[str, str], areas: Sequence[str]) -> Selection:
    """Returns the selection of a query; a value that is not known is ignored, and named."""
    known = {"severity": SEVERITIES, "area": areas, "state": STATES, "sort": SORTS}
    fields, problems = {}, []
    for name in ("severity", "area", "label", "state", "text", "sort", "group"):
        value = query.get(name, "").strip()
        if value and value not in known.get(name, (value,)):
            problems.append(f"{name}={value} is not known and was ignored; use one of {', '.join(known[name])}")
        elif value:
            fields[name] = value
    return Selection(**fields, problems=tuple(problems))


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster with the risks that fit, the gravest first."""

    name: str
    findings: Findings
    labels: Mapping[str, str]
    risks: tuple[Risk, ...]


class SelectedFleet(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters that fit, in groups by the value of a label, and the names of their risks, the gravest first.

    `omitted` is the number of clusters that do not fit. `unevaluated` is the number of clusters without a result.
    """

    groups: tuple[tuple[str, tuple[FleetRow, ...]], ...]
    risks: tuple[str, ...]
    omitted: int
    unevaluated: int


def select(
    results: Sequence[tuple[str, Findings]],
    labels: Mapping[str, Mapping[str, str]],
    selection: Selection,
    area_of: Callable[[str], str],
) -> SelectedFleet:
    """Returns what fits; `labels` are those of each cluster by its name."""
    rows = []
    for name, findings in results:
        of_cluster = labels.get(name, {})
        if not fits_labels(of_cluster, selection.label):
            continue
        evaluated = findings.result.code != Result.COULD_NOT_RUN.code
        all_risks = (*findings.guard_risks, *findings.risks) if evaluated else ()
        risks = [risk for risk in all_risks if risk.applies != "False" and _fits(risk, selection, area_of)]
        wanted = selection.text.casefold()
        if wanted and wanted not in _words(name, of_cluster):
            risks = [risk for risk in risks if wanted in f"{risk.name} {risk.message}".casefold()]
            if not risks:
                continue
        if selection.by_risk and evaluated and not risks:
            continue
        rows.append(FleetRow(name=name, findings=findings, labels=of_cluster, risks=tuple(sorted(risks, key=_gravity))))
    rows.sort(key=lambda row: _sort_key(row, selection.sort, area_of))
    groups: dict[str, list[FleetRow]] = {}
    for row in rows:
        value = row.labels.get(selection.group) if selection.group else None
        label = f"{selection.group}={value}" if value is not None else f"no label {selection.group}"
        groups.setdefault(label if selection.group else "", []).append(row)
    # A column for each risk: the gravest that it is anywhere, then the one of most clusters.
    gravest: dict[str, tuple[tuple[bool, int], int]] = {}
    for row in rows:
        for risk in row.risks:
            gravity, count = gravest.get(risk.name, (_gravity(risk)[:2], 0))
            gravest[risk.name] = min(gravity, _gravity(risk)[:2]), count + 1
    return SelectedFleet(
        groups=tuple((label, tuple(groups[label])) for label in sorted(groups)),
        risks=tuple(sorted(gravest, key=lambda name: (gravest[name][0], -gravest[name][1], name))),
        omitted=len(results) - len(rows),
        unevaluated=sum(row.findings.result.code == Result.COULD_NOT_RUN.code for row in rows),
    )


def _fits(risk: Risk, selection: Selection, area_of: Callable[[str], str]) -> bool:
    """Returns whether a risk fits; one of an unknown severity counts as a warning."""
    return (
        (not selection.severity or severity_rank(risk.severity) <= severity_rank(selection.severity))
        and selection.state in ("", risk.state)
        and (not selection.area or area_of(risk.name) == selection.area)
    )


def _words(name: str, labels: Mapping[str, str]) -> str:
    return " ".join((name, *(f"{key}={value}" for key, value in labels.items()))).casefold()


def _gravity(risk: Risk) -> tuple[bool, int, str]:
    """Returns the sort key of a risk: open ones first, the gravest on top."""
    return not risk.open, severity_rank(risk.severity), risk.name


def _sort_key(row: FleetRow, sort: str, area_of: Callable[[str], str]) -> tuple[object, ...]:
    name = row.name
    state = _ORDER.get(row.findings.result.code, len(_ORDER))
    if sort == "name":
        return (name,)
    if sort == "state":
        return state, name
    if sort == "label":
        return _words("", row.labels), name
    if sort == "area":
        return min((area_of(risk.name) for risk in row.risks), default="~"), name
    # By severity: how many open risks of each there are, and clusters without a result on top.
    counts = [0] * len(SEVERITIES)
    for risk in row.risks:
        counts[severity_rank(risk.severity)] += risk.open
    return state > 0, *(-count for count in counts), state, name
