"""Renders a preflight's findings: the section in `runup upgrade`, the table and verdict of `--wait`, and data. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.lang.text import count, timestamp
from runup.cli.preflight.render import cause_texts
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import Output, age, out
from runup.evaluation.missing import why_not_acceptable
from runup.preflight.decide.findings import Findings, Result, Risk, count_risks
from runup.preflight.decide.preflight_conditions import without_subject
from runup.preflight.decide.preflight_state import Phase
from runup.process.names import operator_namespace
from runup.report.causes import Cause
from runup.report.report import SEVERITIES, ReportedCheck, ReportedStep

_MAX_OBJECTS = 10
# As many risks as the verdict names where it could name the number of their cause.
_NAMED = 2
# The steps of an update by one minor version: control plane and nodes.
_ONE_MINOR = 2
STEPS = "The steps, one minor version of the control plane at a time, each with what it is the first to meet:"
_RISK_OF_GUARD = {"ClusterVersionFailing": "Failing", "ClusterVersionUpdating": "Progressing"}
# Remedies that the condition's own message lacks. "Over" as in docs/reference/spec/conditions.md.
OVER = frozenset({"TargetUnsupported", "OOMKilled", "DeadlineExceeded"})
AGAIN = "To try once more, end it first: runup upgrade --clear-preflight"
HEALING = "The operator continues to try; `runup upgrade` shows its progress."
CORRECT = "Ask for another release, or end it: runup upgrade --clear-preflight"


def section(findings: Findings, screen: Screen = PIPE, *, wide: bool = False) -> Iterator[Output]:
    """Yields what `runup upgrade` prints after oc's own output if a preflight is requested."""
    yield out(join_parts("\n", wrap_text(f"{findings.title}: {summary(findings)}", screen)))
    shown_risks = risks_shown(findings)
    if shown_risks and wide:
        yield out(join_parts("\n", draw_table(risk_table(shown_risks, wide=True, indent=2), screen)))
    elif shown_risks:
        listed = cause_texts.listing(
            cause_texts.report_causes(findings), screen, now=findings.observed, of_dump=findings.of_dump
        )
        yield out(join_parts("\n", listed))
    for text in findings.grown_texts:
        yield out(join_parts("\n", wrap_text(f"{text}.", screen)))
    # What to type next: for details if there are risks, for the update if they do not exist.
    if any(risk.applies != "False" for risk in findings.risks):
        hint_text = (
            "Every check: runup preflight show -v. Details of one risk: runup preflight explain NAME. End the "
            "preflight: runup upgrade --clear-preflight"
        )
    else:
        hint_text = "End the preflight: runup upgrade --clear-preflight"
    yield out(join_parts("\n", wrap_text(hint_text, screen)))


def ended_preflight_lines(ended: Sequence[Findings], screen: Screen = PIPE, *, now: datetime) -> Iterator[Output]:
    """Yields the findings of ended preflights, with their age and how to check again; they block no update."""
    text = "Ended preflights; what they found may have changed since and holds no update up:"
    yield out(join_parts("\n", wrap_text(text, screen)))
    columns = (
        Column(title="TARGET"),
        Column(title="FOUND THEN", flows=True),
        Column(title="AGE"),
        Column(title="OBSERVED"),
    )
    rows = []
    for findings in ended:
        names = ", ".join(risk.name for risk in findings.risks if risk.from_preflight)
        rows.append(Row((findings.target, names, age(findings.observed, now), timestamp(findings.observed))))
    yield out(join_parts("\n", draw_table(Table(columns=columns, rows=rows, indent=2), screen)))
    yield out("\nCheck again: runup upgrade --mode=preflight --to=VERSION\n")


def summary(findings: Findings) -> str:
    """Returns the preflight's state in a few words."""
    if findings.phase is Phase.UNCONFIRMED:
        return f"not confirmed any more: no operator works, {findings.lapse}"
    if findings.failed:
        return f"{findings.failure} ({findings.failed.reason}): {without_subject(findings.failed.message)}"
    waits = "; an update waits for it" if findings.phase is Phase.WAITED_FOR else ""
    if not findings.completed:
        return f"{without_subject(findings.running.message) if findings.running else 'requested'}{waits}"
    return f"completed; {counted_risks(findings.risks)}{waits}"


def result(
    findings: Findings, screen: Screen = PIPE, *, wide: bool = False, whole: bool = False, collect: str = ""
) -> Drawn:
    """Returns what `--wait` prints at the end: the result by cause, and the verdict.

    `wide` is the table of risks with all that is known about each instead; `whole` adds that of every risk and check.
    `collect` is the command that collects what a dump lacks.
    """
    shown_risks, report = risks_shown(findings), cause_texts.report_causes(findings)
    parts = [f"not confirmed any more: no operator works, {findings.lapse}"] if findings.lapse else []
    parts += [f"{findings.failure} ({findings.failed.reason})"] if findings.failed else []
    if findings.completed or findings.ended or (findings.phase is Phase.FAILED and findings.observed):
        applying = tuple(risk for risk in findings.risks if risk.applies == "True")
        causes = sum(any(risk.open for risk in cause.risks) for cause in report.applying)
        some = 0 < causes < sum(risk.open for risk in applying)
        of_causes = f" for {count(causes, 'cause')}" if some else ""
        text = counted_risks(findings.risks, f"{severity_counts_text(applying)}{of_causes}")
        parts += [f"{text}{'' if findings.completed else ', then'}"]
    elif not parts:
        parts = ["no result yet"]
    parts += ["an update waits for it"] if findings.phase is Phase.WAITED_FOR else []
    parts += ["not all checks were evaluated"] if findings.partial else []
    parts += [findings.manifests] if findings.manifests else []
    parts += [f"{count(len(findings.checks), 'check')} done"] if findings.checks else []
    parts += [f"as of {timestamp(findings.observed)}"] if findings.observed else []
    listed = cause_texts.listing(report, screen, now=findings.observed, of_dump=findings.of_dump, collect=collect)
    tables: list[str] = (
        [draw_table(risk_table(shown_risks, wide=wide), screen)] if shown_risks and (wide or whole) else []
    )
    tables += [draw_table(check_table(findings.checks), screen)] if findings.checks and whole else []
    return join_parts(
        "\n",
        wrap_text(f"{findings.title}: {'; '.join(parts)}", screen),
        *(("\n", wrap_text(STEPS, screen), planned) if (planned := steps_on(findings, screen)) else ()),
        *(("\n", listed) if listed and not wide else ()),
        *(part for table in tables for part in ("\n", table)),
        "\n",
        verdict_on(findings, screen),
    )


def steps_on(findings: Findings, screen: Screen = PIPE) -> str:
    """Returns the table of the update's steps; empty if the control plane is only updated by one minor version."""
    if len(findings.steps) <= _ONE_MINOR:
        return ""
    columns = (*(Column(title=title) for title in ("STEP", "UPDATE", "TO")), Column(title="FIRST MEETS", flows=True))
    rows = [
        Row((str(number), step.part, step.version, open_risks(findings, step)))
        for number, step in enumerate(findings.steps, 1)
    ]
    return draw_table(Table(columns=columns, rows=rows, indent=2), screen)


def open_risks(findings: Findings, step: ReportedStep) -> str:
    """Returns the names of the step's risks that are open, or `nothing`."""
    still_open = {risk.name for risk in findings.risks if risk.open}
    return ", ".join(name for name in step.risks if name in still_open) or "nothing"


def check_table(checks: Sequence[ReportedCheck], *, indent: int = 0) -> Table:
    """Returns the table of every check: those that apply first, those that are not for this update last."""
    order = ("Applies", "Unknown", "Clear", "Skipped")
    rows = [
        Row((check.result, check.name, check.component, check.message))
        for check in sorted(checks, key=lambda check: (order.index(check.result), check.name))
    ]
    return Table(
        columns=(
            Column(title="RESULT"),
            Column(title="CHECK", folds=True),
            Column(title="COMPONENT"),
            Column(title="MESSAGE", flows=True),
        ),
        rows=rows,
        indent=indent,
    )


def risks_shown(findings: Findings) -> list[Risk]:
    """Returns the risks that are shown: all but those that are known not to apply."""
    return [risk for risk in findings.risks if risk.applies != "False"]


def verdict(findings: Findings) -> str:
    """Returns one line with the result and what to do."""
    return " ".join(verdict_parts(findings))


def verdict_on(findings: Findings, screen: Screen) -> Drawn:
    """Returns the verdict for a terminal: wrapped, with the command unwrapped on its own line so that it can be copied.

    Without a known width it stays on one line.
    """
    if screen.width is None:
        return join_parts(verdict(findings), "\n")
    text, *command = verdict_parts(findings)
    return join_parts(wrap_text(text, screen), *(f"  {line}\n" for line in command))


def verdict_parts(findings: Findings) -> tuple[str, ...]:
    """Returns the verdict, and the command that it ends with if there is one."""
    if findings.ended:
        ended = "was over before it had evaluated every check" if findings.partial else "has ended"
        if findings.passed:
            return (f"Verdict: this preflight {ended}, and the cluster has come to {findings.target} or past it.",)
        again = f" in place of the request to update to {findings.pending_update}" if findings.pending_update else ""
        text = f"Verdict: this preflight {ended}; what it found may have changed since. Check again{again}:"
        return text, f"runup upgrade --mode=preflight --to={findings.target} --wait"
    if findings.phase is Phase.UNCONFIRMED:
        text = "Verdict: no operator confirms this result; what it found may have changed since. See why none works:"
        return text, f"kubectl -n {operator_namespace()} get pods"
    if not findings.completed:
        if findings.failed is None:
            return (f"Verdict: the preflight of {findings.target} has no result yet.",)
        message = without_subject(findings.failed.message)
        failure = f"{findings.failed.reason}: {message}{'' if message.endswith(('.', '!', '?')) else '.'}"
        # What to do after a preflight that could not run; empty for a cluster of Kubernetes alone.
        if findings.kind == "Kubernetes":
            next_step_text = ""
        elif findings.failed.reason in OVER:
            next_step_text = AGAIN
        else:
            next_step_text = HEALING if findings.running is not None and findings.running.status == "True" else CORRECT
        return (f"Verdict: the preflight {findings.failure}. {failure} {next_step_text}",)
    if findings.result is Result.CLEAR:
        accepted = count_risks(findings.risks)[2]
        aside = f" ({accepted} accepted)" if accepted else ""
        if findings.manifests:
            return (f"Verdict: {findings.target} serves every object that was evaluated{aside}.",)
        return (f"Verdict: nothing blocks an update to {findings.target}{aside}.{_waived_and_grown_text(findings)}",)
    if not any(risk.open for risk in findings.risks):
        # Only the state of the cluster keeps `--to` from asking for the update.
        conditions = ", ".join(f"{guard.type}=True" for guard in findings.guards)
        refuses = f"`--to` refuses while {conditions} (`runup upgrade` says why)"
        # Waiting does not help where the update may be what repairs the cluster (docs/decisions/0076).
        repairs = any(risk.informs for risk in findings.risks)
        advice = "Continue anyway with:" if repairs else "Wait for that to pass, or continue anyway:"
        text = f"Verdict: {counted_risks(findings.risks)}, but {refuses}.{_waived_and_grown_text(findings)} {advice}"
        return text, f"runup upgrade --to={findings.target} --allow-upgrade-with-warnings"
    # A risk that is Unknown only because the dump lacks objects is not one to accept.
    named_risks = [risk for risk in findings.risks if risk.open and (risk.applies == "True" or not findings.of_dump)]
    report = cause_texts.report_causes(findings)
    refused = _causes_not_acceptable(report)
    refused_names = {risk.name for cause in refused for risk in cause.risks}
    # What nobody supports, and what stands under a refusal, is not offered: it has to be fixed.
    names = [
        risk.name
        for risk in named_risks
        if risk.acceptable and risk.name not in refused_names and not why_not_acceptable(risk.name, risk.severity)
    ]
    start = f"Verdict: {_refusals(findings, report, named_risks)}{_waived_and_grown_text(findings)}"
    if not names:
        return (start,)
    if all(risk.suppressed_by for risk in named_risks):
        return (f"{start} Fix them, or give the reasons why they may stay with --suppressions FILE.",)
    pronoun = "the others" if len(names) < len(named_risks) else "them"
    if not findings.takes_names:
        warned = " --allow-upgrade-with-warnings" if findings.guards else ""
        command = f"runup upgrade --to={findings.target} --allow-not-recommended{warned}"
        # Without names to accept there is one flag for all, which is of no use while something refuses the update.
        return (
            (f"{start} Fix {pronoun}.",)
            if len(names) < len(named_risks)
            else (f"{start} Fix them, or continue:", command)
        )
    place_text = ", on the cluster" if findings.of_dump else ""
    return f"{start} Fix {pronoun}, or accept them by name{place_text}:", f"runup upgrade accept {','.join(names)}"


def _causes_not_acceptable(report: cause_texts.CauseReport) -> list[Cause[Risk]]:
    """Returns the causes for which the operator refuses the update whatever is accepted."""
    not_accepted = (*report.applying, *report.unknown)
    return [cause for cause in not_accepted if any(risk.refuses for risk in cause.risks)]


def _refusals(findings: Findings, report: cause_texts.CauseReport, named_risks: Sequence[Risk]) -> str:
    """Returns sentences on risks that cannot be accepted, unsupported targets, and refusals of `--to`."""
    refused = _causes_not_acceptable(report)
    text = f"{counted_risks(findings.risks)}."
    if refused:
        # The causes by their numbers, or the risks by name if they are few.
        numbers = [report.number(cause.name) for cause in refused]
        names = [risk.name for cause in refused for risk in cause.risks if risk.refuses]
        shown, plural = enumeration(names), len(names) != 1
        if all(numbers) and len(names) > _NAMED and any(len(cause.risks) > 1 for cause in report.applying):
            plural = len(numbers) > 1
            shown = f"cause{'s' if plural else ''} {enumeration(list(map(str, numbers)))}"
            if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
                shown = f"causes {numbers[0]} to {numbers[-1]}"
        text = f"the update is refused while {shown} {'apply' if plural else 'applies'}, accepted or not."
    refused_names = {risk.name for cause in refused for risk in cause.risks}
    if unlifted := [risk.name for risk in named_risks if not risk.acceptable and risk.name not in refused_names]:
        verb, pronoun = ("is", "it") if len(unlifted) == 1 else ("are", "them")
        text += f" {enumeration(unlifted)} {verb} unknown, and acceptance does not lift {pronoun}."
    # What only informs is in the way of nothing.
    grave = [risk for risk in named_risks if risk.name not in refused_names and risk.severity != "info"]
    if unsupported := {risk.name: why for risk in grave if (why := why_not_acceptable(risk.name, risk.severity))}:
        refusal_text = "; ".join(dict.fromkeys(unsupported.values()))
        text += f" Nobody supports an update with {', '.join(unsupported)}: {refusal_text}."
    # Under a refusal the flag does not help, and a condition that a listed risk is about would be said twice.
    listed = {_RISK_OF_GUARD.get(risk.name) for risk in findings.risks if risk.open} if refused else set()
    if guards := [f"{guard.type}=True" for guard in findings.guards if guard.type not in listed]:
        refusal_text = ", ".join(guards)
        text += f" `--to` also wants --allow-upgrade-with-warnings while {refusal_text}."
    return text


def enumeration(items: Sequence[str]) -> str:
    """Returns `a`, `a and b`, or `a, b and c`."""
    return " and ".join(text for text in (", ".join(items[:-1]), *items[-1:]) if text)


def _waived_and_grown_text(findings: Findings) -> str:
    """Returns what the reader must know besides: a waived signature, and what accepted risks cover by now."""
    waived = " Its signature was waived (force): nobody vouches for the image that checked." if findings.waived else ""
    return f"{waived}{''.join(f' {text}.' for text in findings.grown_texts)}"


def counted_risks(risks: tuple[Risk, ...], aside: str = "") -> str:
    """Returns how many risks apply (`aside` is appended to these), are unknown and are accepted."""
    applying, unknown, accepted = count_risks(risks)
    texts = [f"{applying} {'risk applies' if applying == 1 else 'risks apply'}{aside}"] if applying else []
    texts += [f"{unknown} unknown"] if unknown else []
    texts += [f"{accepted} accepted"] if accepted else []
    informing = sum(1 for risk in risks if risk.informs and not risk.accepted and risk.applies != "False")
    texts += [f"{informing} {'describes' if informing == 1 else 'describe'} what this may repair"] if informing else []
    return ", ".join(texts) or "no risks found"


def severity_counts_text(risks: tuple[Risk, ...]) -> str:
    """Returns ` (2 critical, 6 warning)` for the risks that block the update; empty if they do not exist."""
    by_name = Counter(risk.severity or "of unknown severity" for risk in risks if risk.open)
    counts = [
        f"{by_name[severity]} {severity}" for severity in (*SEVERITIES, "of unknown severity") if by_name[severity]
    ]
    return f" ({', '.join(counts)})" if counts else ""


_SEVERITY_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_STATE_STYLES = {"applies": "bold", "refuses": "bold", "unknown": "magenta", "accepted": "dim"}


_COLUMNS = (
    Column(title="SEVERITY", styles=_SEVERITY_STYLES),
    Column(title="STATE", styles=_STATE_STYLES),
    Column(title="RISK", folds=True),
    Column(title="MESSAGE", flows=True),
)


def brief_table(causes: Sequence[Cause[Risk]], *, indent: int = 0) -> Table:
    """Returns the table of causes while their preflight runs, without severity, which comes with the complete report.

    A cause of several risks has the name of the leading one, and how many there are besides.
    """
    rows = [Row((cause.lead.state, cause_texts.name_and_more(cause), cause.words)) for cause in causes]
    return Table(columns=_COLUMNS[1:], rows=rows, indent=indent)


def risk_table(risks: Sequence[Risk], *, wide: bool = False, remedies: bool = True, indent: int = 0) -> Table:
    """Returns the table of risks, with the remedy below each; `wide` has columns for the remedy and everything else."""
    columns, rows, shown_remedies = list(_COLUMNS), [], set[str]()
    if wide:
        flowing = [Column(title="FIX", flows=True), Column(title="OBJECTS", flows=True)]
        columns += [*flowing, *(Column(title=title) for title in ("REASON", "SINCE", "URL"))]
    for risk in risks:
        cells = (risk.severity, risk.state, risk.name, risk.message)
        if wide:
            omitted = len(risk.resources) - _MAX_OBJECTS
            objects = ", ".join(item.text for item in risk.resources[:_MAX_OBJECTS])
            objects += f" and {omitted} more" if omitted > 0 else ""
            rows.append(Row((*cells, risk.fix.strip(), objects, risk.reason, timestamp(risk.since), risk.url)))
            continue
        lines = [line for line in risk.fix.strip().splitlines() if line.strip()]
        below = [f"{'     ' if number else 'Fix: '}{line}" for number, line in enumerate(lines)]
        below += [] if risk.acceptable else ["Accepting it does not lift it."]
        below += [f"{risk.grown.text[0].upper()}{risk.grown.text[1:]}"] if risk.grown else []
        # The remedy for missing objects is shown only where it comes first.
        is_first = not risk.lacking or risk.fix not in shown_remedies
        shown_remedies.add(risk.fix)
        rows.append(Row(cells, tuple(below) if remedies and is_first else ()))
    return Table(columns=tuple(columns), rows=rows, indent=indent)


def as_data(findings: Findings) -> dict[str, Any]:
    """Returns the findings for programs, with the exit code of the command."""
    report = cause_texts.report_causes(findings)
    cause_of = cause_texts.cause_names(report)
    return {
        "clusterID": findings.cluster_id,
        "source": findings.source,
        "target": findings.target,
        "image": findings.image,
        "state": findings.phase.value if findings.phase else None,
        "partial": findings.partial,
        "result": findings.result.word,
        "exitCode": findings.exit_code,
        "observedTime": timestamp(findings.observed) or None,
        **({"unconfirmedBecause": findings.lapse} if findings.lapse else {}),
        "conditions": codec.to_dict(findings.conditions),
        "risks": [{**risk_data(risk), "cause": cause_of.get(risk.name)} for risk in findings.risks],
        "checks": codec.to_dict(findings.checks),
        **({"manifests": findings.manifests} if findings.manifests else {}),
        "refusedWhile": [
            *(guard.type for guard in findings.guards),
            *(risk.name for risk in findings.risks if risk.refuses),
        ],
        "signatureWaived": findings.waived,
        **cause_texts.as_data(report),
        **(
            {"clusterKind": findings.kind, "steps": codec.to_dict(findings.steps)}
            if findings.kind == "Kubernetes"
            else {}
        ),
    }


def risk_data(risk: Risk) -> dict[str, Any]:
    """Returns one risk for programs; `grown` is what it has gained since its acceptance, or since a baseline."""
    grown = risk.grown and {
        "objects": list(risk.grown.added),
        "more": risk.grown.more,
        "since": timestamp(risk.grown.since) or None,
        "acceptedFor": risk.grown.accepted_for,
        "acceptedAt": timestamp(risk.grown.at) or None,
        **({"baseline": risk.grown.baseline} if risk.grown.baseline else {}),
    }
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
        "acceptable": risk.acceptable,
        "state": risk.state,
        "grown": grown,
        "lacking": list(risk.lacking),
        **({"resourcesOmitted": risk.resources_omitted} if risk.resources_omitted else {}),
        **({"because": risk.because} if risk.because else {}),
    }
