"""A preflight's findings -> the section in `runup upgrade`, the table and verdict of `--wait`, data. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from runup.api import codec
from runup.api.config_v1 import ClusterVersion
from runup.cli.findings import APPLY, COULD_NOT_RUN, UNKNOWN, Findings, Risk, counts
from runup.cli.render.text import Output, age, out, shortened, table, timestamp
from runup.domain.preflight.results import OUTDATED

_SHORT = 100
# What helps, where the condition's own message has not said it. "Over" as in docs/spec/conditions.md.
OVER = frozenset({"TargetUnsupported", "OOMKilled", "DeadlineExceeded"})
AGAIN = "To try once more, end it first: runup upgrade --clear-preflight"
HEALING = "The operator goes on trying; `runup upgrade` shows how it stands."
CORRECT = "Ask for another release, or end it: runup upgrade --clear-preflight"
RESULTS = {0: "Clear", COULD_NOT_RUN: "CouldNotRun", APPLY: "RisksApply", UNKNOWN: "Unknown"}


def section(found: Findings) -> Iterator[Output]:
    """What `runup upgrade` adds after everything that oc prints, where a preflight is asked for."""
    yield out(f"\nPreflight of {found.target} from {found.source}: {summary(found)}\n")
    shown = [risk for risk in found.risks if risk.applies != "False"]
    if shown:
        yield out("\n" + _indented(_table(shown, details=False)))
    yield out(f"\n{_hint(found)}\n")


def ended(found: Sequence[Findings], *, now: datetime) -> Iterator[Output]:
    """What preflights found that have ended: how old it is, and how to check again. It holds nothing up."""
    yield out("\nEnded preflights; what they found may have changed since and holds no update up:\n\n")
    rows = [("  TARGET", "OBSERVED", "AGE", "FOUND THEN")]
    for one in found:
        names = ", ".join(risk.name for risk in one.risks if risk.reason == OUTDATED)
        rows.append((f"  {one.target}", timestamp(one.observed), age(one.observed, now), shortened(names, _SHORT)))
    yield out(table(rows))
    yield out("\nCheck again: runup upgrade --mode=preflight --to=VERSION\n")


def _hint(found: Findings) -> str:
    if any(risk.applies != "False" for risk in found.risks):
        return "Details of one: runup preflight explain NAME. End the preflight: runup upgrade --clear-preflight"
    return "End the preflight: runup upgrade --clear-preflight"


def summary(found: Findings) -> str:
    """The preflight in half a line."""
    if found.failed:
        return f"could not run ({found.failed.reason}): {found.failed.message}"
    if not found.completed:
        return found.running.message if found.running else "requested"
    return f"completed; {_counted(found.risks)}"


def result(found: Findings) -> str:
    """The risk table and the verdict that `--wait` ends with."""
    shown = [risk for risk in found.risks if risk.applies != "False"]
    head = f"Preflight of {found.target} from {found.source}"
    when = f", as of {timestamp(found.observed)}" if found.observed else ""
    body = f"\n{_table(shown, details=True)}" if shown else ""
    return f"\n{head}{when}\n{body}\n{verdict(found)}\n"


def verdict(found: Findings) -> str:
    """One line that says what it comes to and what to do."""
    code = found.exit_code
    if code == COULD_NOT_RUN:
        if found.failed is None:
            return f"Verdict: the preflight of {found.target} has no result yet."
        why = f"{found.failed.reason}: {_sentence(found.failed.message)}"
        return f"Verdict: the preflight could not run. {why} {_advice(found)}"
    if code == 0:
        accepted = counts(found.risks)[2]
        aside = f" ({accepted} accepted)" if accepted else ""
        return f"Verdict: nothing stands in the way of an update to {found.target}{aside}."
    names = ",".join(risk.name for risk in found.risks if risk.open)
    return f"Verdict: {_counted(found.risks)}. Fix them, or accept them by name: runup upgrade accept {names}"


def _advice(found: Findings) -> str:
    if found.failed is not None and found.failed.reason in OVER:
        return AGAIN
    return HEALING if found.running is not None and found.running.status == "True" else CORRECT


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _counted(risks: tuple[Risk, ...]) -> str:
    applying, unknown, accepted = counts(risks)
    parts = [f"{applying} {'risk applies' if applying == 1 else 'risks apply'}"] if applying else []
    parts += [f"{unknown} could not be told"] if unknown else []
    parts += [f"{accepted} accepted"] if accepted else []
    return ", ".join(parts) or "no risks found"


def _table(risks: list[Risk], *, details: bool) -> str:
    rows: list[tuple[str, ...]] = [("RISK", "APPLIES", "ACCEPTED", "MESSAGE")]
    for risk in risks:
        accepted = "yes" if risk.accepted else "no"
        rows.append((risk.name, risk.applies, accepted, shortened(risk.message, _SHORT)))
        if details:
            rows += [("", "", "", f"Fix: {line}") for line in _lines(risk.fix)[:1]]
            rows += [("", "", "", f"     {line}") for line in _lines(risk.fix)[1:]]
            rows.append(("", "", "", risk.url))
    return table(rows)


def _lines(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if line.strip()]


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())


def cleared(before: ClusterVersion | None) -> str:
    """What `--clear-preflight` prints; `before` is what was there, or None where nothing was asked for."""
    desired = before.spec.desired_update if before else None
    if desired is None:
        return "info: No preflight is requested\n"
    names = ", ".join(risk.name for risk in desired.accept_risks)
    kept = f"; accepted risks are kept: {names}" if names else ""
    return f"Ended the preflight of {desired.version or desired.image}{kept}\n"


def as_data(found: Findings) -> dict[str, Any]:
    """The machine form: everything, with the exit code that `--wait` would have."""
    return {
        "source": found.source,
        "target": found.target,
        "image": found.image,
        "result": RESULTS[found.exit_code],
        "exitCode": found.exit_code,
        "observedTime": timestamp(found.observed) or None,
        "conditions": codec.to_dict(found.conditions),
        "risks": [risk_data(risk) for risk in found.risks],
        "checks": codec.to_dict(found.checks),
    }


def risk_data(risk: Risk) -> dict[str, Any]:
    """One risk for programs."""
    return {
        "name": risk.name,
        "applies": risk.applies,
        "reason": risk.reason,
        "accepted": risk.accepted,
        "message": risk.message,
        "url": risk.url,
        "remediation": risk.fix,
        "severity": risk.severity or None,
        "fromPreflight": risk.from_preflight,
        "since": timestamp(risk.since) or None,
        "resources": codec.to_dict(risk.resources),
    }
