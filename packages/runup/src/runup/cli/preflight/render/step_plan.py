"""Renders the steps of an update as one checklist: what to pause, to remedy, to do and to look at. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runup.cli.preflight.render import finding_texts
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import Findings, Risk
from runup.report.report import CONTROL_PLANE, ReportedStep


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of the plan, and what is to be ticked off in it, in this order."""

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
    return tuple(
        PlannedStep(
            f"{step.part[0].upper()}{step.part[1:]} to {step.version}",
            tuple(
                _items(
                    step,
                    still_open,
                    "" if step.version == last_version else last_version,
                    has_back=number == first_back,
                )
            ),
        )
        for number, step in enumerate(findings.steps)
    )


def _items(step: ReportedStep, still_open: dict[str, Risk], repeat_note: str, *, has_back: bool) -> Iterator[str]:
    """Yields what is to be ticked off. `repeat_note` is the minor version that is left to check for, if there is "
    "one."""
    if has_back:
        yield f"Be sure of the way back: {step.back}"
    yield from step.before
    yield from _remedies([still_open[name] for name in step.risks if name in still_open])
    yield from step.how
    if step.part == CONTROL_PLANE:
        yield f"See that `kubectl version` tells a server of {step.version}"
    else:
        yield f"See that `kubectl get nodes` shows each node Ready, with v{step.version}"
    yield from step.after
    if repeat_note:
        yield f"Check again what is left of the way: `runup preflight run --to {repeat_note}`"


def _remedies(risks: Sequence[Risk]) -> Iterator[str]:
    """Yields the remedy of each risk; all that is unknown for lack of objects has one remedy, to read them."""
    yield from (_remedy(risk) for risk in risks if not risk.lacking)
    if names := [risk.name.removesuffix("Unknown") for risk in risks if risk.lacking]:
        yield f"Find out what could not be told, as not all objects could be read: {', '.join(names)}"


def _remedy(risk: Risk) -> str:
    risk_text = risk.name if risk.applies == "True" else f"{risk.name}, which could not be told"
    return f"{risk_text}: {' '.join((risk.fix or risk.message).split())}"


def text(results: Sequence[ClusterResult]) -> str:
    """Returns the plan of each cluster with a box before each item, for a terminal or paper."""
    return "\n".join(line for cluster_result in results for line in _lines(cluster_result)) + "\n"


def _lines(cluster_result: ClusterResult) -> Iterator[str]:
    """Yields a cluster's plan as text: each step with its items to tick off."""
    findings = cluster_result.findings
    if not findings.completed:
        yield (
            f"{cluster_result.name}: could not be judged: "
            f"{findings.failed.message if findings.failed else 'no result yet'}"
        )
        return
    yield (
        f"{cluster_result.name}: from {findings.source} to {findings.target}, "
        f"{finding_texts.counted_risks(findings.risks)}"
    )
    for number, step in enumerate(plan(findings), 1):
        yield f"\n{number}. {step.title}"
        yield from (f"   [ ] {item}" for item in step.items)
