"""Renders the steps of an update as one checklist: what to pause, to remedy, to do and to look at. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from runup.cli.preflight.render import finding_texts
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import Findings, Risk
from runup.report.report import CONTROL_PLANE


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of the plan, and what must be ticked off in it, in this order."""

    title: str
    items: tuple[str, ...]


def plan(findings: Findings) -> tuple[PlannedStep, ...]:
    """Returns the plan of the update; of an OpenShift, whose operator does the steps itself, one step."""
    if not findings.steps:
        items = _remedies([risk for risk in findings.risks if risk.open])
        return (PlannedStep(f"The cluster to {findings.target}", (*items, f"`runup upgrade --to={findings.target}`")),)
    still_open = {risk.name: risk for risk in findings.risks if risk.open}
    last_version = findings.steps[-1].version
    first_back = next((number for number, step in enumerate(findings.steps) if step.back), -1)
    planned = []
    for number, step in enumerate(findings.steps):
        items = [f"Be sure of the way back: {step.back}"] if number == first_back else []
        remedies = _remedies([still_open[name] for name in step.risks if name in still_open])
        items += [*step.before, *remedies, *step.how]
        if step.part == CONTROL_PLANE:
            items.append(f"See that `kubectl version` shows a server of {step.version}")
        else:
            items.append(f"See that `kubectl get nodes` shows each node Ready, with v{step.version}")
        items += step.after
        if step.version != last_version:
            items.append(f"Check again what is left of the way: `runup preflight run --to {last_version}`")
        planned.append(PlannedStep(f"{step.part[0].upper()}{step.part[1:]} to {step.version}", tuple(items)))
    return tuple(planned)


def _remedies(risks: Sequence[Risk]) -> list[str]:
    """Returns the remedy of each risk; all that is unknown for lack of objects has one remedy, to read them."""
    items = []
    for risk in (risk for risk in risks if not risk.lacking):
        name = risk.name if risk.applies == "True" else f"{risk.name}, which is unknown"
        items.append(f"{name}: {' '.join((risk.fix or risk.message).split())}")
    if names := [risk.name.removesuffix("Unknown") for risk in risks if risk.lacking]:
        items.append(f"Find out what is unknown, as not all objects could be read: {', '.join(names)}")
    return items


def text(results: Iterable[ClusterResult]) -> Iterator[str]:
    """Yields the plan of each cluster with a box before each item, for a terminal or paper."""
    for result in results:
        findings = result.findings
        if not findings.completed:
            problem = findings.failed.message if findings.failed else "no result yet"
            yield f"{result.name}: could not be evaluated: {problem}\n"
            continue
        risks = finding_texts.counted_risks(findings.risks)
        yield f"{result.name}: from {findings.source} to {findings.target}, {risks}\n"
        for number, step in enumerate(plan(findings), 1):
            yield f"\n{number}. {step.title}\n"
            yield from (f"   [ ] {item}\n" for item in step.items)
