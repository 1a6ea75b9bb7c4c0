"""A preflight's findings -> the section in `runup upgrade`, the table and verdict of `--wait`, data. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from kubekit.api import codec
from runup.advice.decide.origin import OUTDATED
from runup.api.config_v1 import ClusterVersion
from runup.cli.render.screen import PIPE, Drawn, Screen, joined
from runup.cli.render.table import Column, Row, Table, drawn, wrapped
from runup.cli.render.text import Output, age, out, timestamp
from runup.preflight.decide.findings import APPLY, COULD_NOT_RUN, UNKNOWN, Findings, Risk, counts
from runup.preflight.decide.report import ReportedResource

_MAX_OBJECTS = 10
# What helps, where the condition's own message has not said it. "Over" as in docs/spec/conditions.md.
OVER = frozenset({"TargetUnsupported", "OOMKilled", "DeadlineExceeded"})
AGAIN = "To try once more, end it first: runup upgrade --clear-preflight"
HEALING = "The operator goes on trying; `runup upgrade` shows how it stands."
CORRECT = "Ask for another release, or end it: runup upgrade --clear-preflight"
RESULTS = {0: "Clear", COULD_NOT_RUN: "CouldNotRun", APPLY: "RisksApply", UNKNOWN: "Unknown"}


def section(found: Findings, screen: Screen = PIPE, *, wide: bool = False) -> Iterator[Output]:
    """What `runup upgrade` adds after everything that oc prints, where a preflight is asked for."""
    yield out(joined("\n", wrapped(f"Preflight of {found.target} from {found.source}: {summary(found)}", screen)))
    if shown := standing(found):
        yield out(joined("\n", drawn(risk_table(shown, wide=wide, indent=2), screen)))
    yield out(joined("\n", wrapped(_hint(found), screen)))


def ended(found: Sequence[Findings], screen: Screen = PIPE, *, now: datetime) -> Iterator[Output]:
    """What preflights found that have ended: how old it is, and how to check again. It holds nothing up."""
    text = "Ended preflights; what they found may have changed since and holds no update up:"
    yield out(joined("\n", wrapped(text, screen)))
    columns = (Column("TARGET"), Column("FOUND THEN", flows=True), Column("AGE"), Column("OBSERVED"))
    rows = [Row((one.target, _outdated(one), age(one.observed, now), timestamp(one.observed))) for one in found]
    yield out(joined("\n", drawn(Table(columns, rows, indent=2), screen)))
    yield out("\nCheck again: runup upgrade --mode=preflight --to=VERSION\n")


def _outdated(one: Findings) -> str:
    return ", ".join(risk.name for risk in one.risks if risk.reason == OUTDATED)


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
    return f"completed; {counted(found.risks)}"


def result(found: Findings, screen: Screen = PIPE, *, wide: bool = False) -> Drawn:
    """What `--wait` ends with: what it comes to, the table of risks, the verdict. The cause stands before the time."""
    shown = standing(found)
    told = [_told(found)]
    told += [f"{len(found.checks)} {'check' if len(found.checks) == 1 else 'checks'} done"] if found.checks else []
    told += [f"as of {timestamp(found.observed)}"] if found.observed else []
    return joined(
        "\n",
        wrapped(f"Preflight of {found.target} from {found.source}: {'; '.join(told)}", screen),
        *(("\n", drawn(risk_table(shown, wide=wide), screen)) if shown else ()),
        "\n",
        verdict_on(found, screen),
    )


def _told(found: Findings) -> str:
    if found.completed or found.ended:
        return f"{counted(found.risks, by_severity(found.risks))}{', then' if found.ended else ''}"
    return f"could not run ({found.failed.reason})" if found.failed else "no result yet"


def standing(found: Findings) -> list[Risk]:
    """The risks that are shown: all but those that are known not to apply."""
    return [risk for risk in found.risks if risk.applies != "False"]


def verdict(found: Findings) -> str:
    """One line that says what it comes to and what to do."""
    return " ".join(verdict_parts(found))


def verdict_on(found: Findings, screen: Screen) -> Drawn:
    """The same on a terminal: wrapped, and the command on a line of its own, which the terminal folds, to be copied."""
    if screen.width is None:
        return joined(verdict(found), "\n")
    text, *command = verdict_parts(found)
    return joined(wrapped(text, screen), *(f"  {line}\n" for line in command))


def verdict_parts(found: Findings) -> tuple[str, ...]:
    """The verdict, and the command that it ends with if there is one."""
    code = found.exit_code
    if found.ended:
        text = "Verdict: this preflight has ended; what it found may have changed since. Check again:"
        return text, f"runup upgrade --mode=preflight --to={found.target} --wait"
    if code == COULD_NOT_RUN:
        if found.failed is None:
            return (f"Verdict: the preflight of {found.target} has no result yet.",)
        why = f"{found.failed.reason}: {_sentence(found.failed.message)}"
        return (f"Verdict: the preflight could not run. {why} {_advice(found)}",)
    if code == 0:
        accepted = counts(found.risks)[2]
        aside = f" ({accepted} accepted)" if accepted else ""
        return (f"Verdict: nothing stands in the way of an update to {found.target}{aside}.",)
    # What a dump lacks, the cluster has: there is nothing to accept.
    names = [risk.name for risk in found.risks if risk.open and (risk.applies == "True" or not found.of_dump)]
    if not names:
        return (f"Verdict: {counted(found.risks)}.",)
    where = ", on the cluster" if found.of_dump else ""
    text = f"Verdict: {counted(found.risks)}. Fix them, or accept them by name{where}:"
    return text, f"runup upgrade accept {','.join(names)}"


def _advice(found: Findings) -> str:
    if found.failed is not None and found.failed.reason in OVER:
        return AGAIN
    return HEALING if found.running is not None and found.running.status == "True" else CORRECT


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def counted(risks: tuple[Risk, ...], aside: str = "") -> str:
    """How many apply, could not be told (`aside` is about these two), are accepted."""
    applying, unknown, accepted = counts(risks)
    parts = [f"{applying} {'risk applies' if applying == 1 else 'risks apply'}"] if applying else []
    parts += [f"{unknown} could not be told"] if unknown else []
    parts = [*parts[:-1], f"{parts[-1]}{aside}"] if parts else []
    parts += [f"{accepted} accepted"] if accepted else []
    return ", ".join(parts) or "no risks found"


def by_severity(risks: tuple[Risk, ...]) -> str:
    """` (2 critical, 6 warning)`, of those that stand in the way; nothing where there are none."""
    found = Counter(risk.severity or "of unknown severity" for risk in risks if risk.open)
    told = [f"{found[severity]} {severity}" for severity in (*SEVERITIES, "of unknown severity") if found[severity]]
    return f" ({', '.join(told)})" if told else ""


SEVERITIES = ("critical", "warning", "info")
_SEVERITY_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_STATE_STYLES = {"applies": "bold", "unknown": "magenta", "accepted": "dim"}


def state(risk: Risk) -> str:
    """A risk's state in one word."""
    if risk.accepted:
        return "accepted"
    return {"True": "applies", "False": "clear"}.get(risk.applies, "unknown")


_COLUMNS = (
    Column("SEVERITY", styles=_SEVERITY_STYLES),
    Column("STATE", styles=_STATE_STYLES),
    Column("RISK", folds=True),
    Column("MESSAGE", flows=True),
)


def brief_table(risks: Sequence[Risk], *, indent: int = 0) -> Table:
    """What is known of risks while their preflight runs: their severity comes with the whole report."""
    return Table(_COLUMNS[1:], [Row(_cells(risk)[1:]) for risk in risks], indent)


def risk_table(risks: Sequence[Risk], *, wide: bool = False, remedies: bool = True, indent: int = 0) -> Table:
    """Severity and state first; `wide` has what else is known, a column each, where the usual form has the remedy."""
    columns = _COLUMNS
    if not wide:
        return Table(columns, [Row(_cells(risk), _remedy(risk) if remedies else ()) for risk in risks], indent)
    more = (Column("FIX", flows=True), Column("OBJECTS", flows=True), Column("REASON"), Column("SINCE"), Column("URL"))
    return Table((*columns, *more), [Row((*_cells(risk), *_more(risk))) for risk in risks], indent=indent)


def _cells(risk: Risk) -> tuple[str, ...]:
    return risk.severity, state(risk), risk.name, risk.message


def _remedy(risk: Risk) -> tuple[str, ...]:
    lines = [line for line in risk.fix.strip().splitlines() if line.strip()]
    return tuple(f"{'     ' if place else 'Fix: '}{line}" for place, line in enumerate(lines))


def _more(risk: Risk) -> tuple[str, ...]:
    objects = ", ".join(map(resource, risk.resources[:_MAX_OBJECTS]))
    left = len(risk.resources) - _MAX_OBJECTS
    objects += f" and {left} more" if left > 0 else ""
    return risk.fix.strip(), objects, risk.reason, timestamp(risk.since), risk.url


def resource(item: ReportedResource) -> str:
    """An object as people write it: `Node worker-0`, `Pod apps/db-0`."""
    kind = f"{item.kind}.{item.group}" if item.group else item.kind
    return f"{kind} {item.namespace}/{item.name}" if item.namespace else f"{kind} {item.name}"


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
