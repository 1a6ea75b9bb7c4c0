"""Renders preflights of one or many clusters as text, one table, Markdown, JUnit, SARIF, HTML or data. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from kubekit.api import codec
from kubekit.lang.text import as_json_line, timestamp
from runup.cli.preflight.outputs import Shown
from runup.cli.preflight.render import cause_texts, finding_texts, preflight_page, report_changes, step_plan
from runup.cli.preflight.render.sarif import sarif
from runup.cli.render.html.markup import el
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import Column, Row, Table, draw_table, wrap_text
from runup.cli.render.text import machine, plain
from runup.evaluation.results import ClusterResult
from runup.preflight.decide.findings import COULD_NOT_RUN, Result, Risk, count_risks

# As many missing kinds as a checklist names.
_MOST_KINDS = 10
_CONTROL = {code: None for code in range(32) if chr(code) not in "\t\n\r"}


def text(cluster_result: ClusterResult, screen: Screen = PIPE, *, whole: bool = False) -> Drawn:
    """Returns one cluster's result as `--wait` prints it; for a dump, also how to collect what it lacks.

    `whole` adds every risk, every check, and every kind that the dump lacks.
    """
    result = Drawn(
        finding_texts.result(cluster_result.findings, screen, whole=whole, collect=cluster_result.collect).removeprefix(
            "\n"
        )
    )
    # Otherwise the kinds are named, and the command is given, where the unread ones are reported.
    told_above = any(risk.lacking and not risk.accepted for risk in cluster_result.findings.risks)
    if not cluster_result.lacking or (told_above and not whole):
        return result
    # The text about kinds that the dump lacks, and the command that collects them if there is one.
    several = len(cluster_result.lacking) > 1
    kinds, pronoun = ("kinds", "them") if several else ("kind", "it")
    text = f"The dump does not have all of {len(cluster_result.lacking)} {kinds} that checks without a result read"
    lacking_text = ", ".join(cluster_result.lacking)
    if cluster_result.collect:
        text += f": {lacking_text}" if whole else ""
        explanation = f"{text}. Where the cluster can be reached, collect a dump that has {pronoun}:"
        command = f"  {cluster_result.collect}\n"
    else:
        explanation, command = f"{text}: {lacking_text}. Collect {pronoun}, too.", ""
    return join_parts(result, "\n", wrap_text(explanation, screen), command)


def table_of(results: Iterable[ClusterResult], screen: Screen = PIPE) -> Iterator[Drawn]:
    """Yields a table with one line per cluster."""
    titles = "CLUSTER FROM TO RESULT APPLY UNKNOWN ACCEPTED"
    columns = (*(Column(title=title) for title in titles.split()), Column(title="GRAVEST", flows=True))
    rows = []
    for cluster_result in results:
        findings = cluster_result.findings
        if findings.exit_code == COULD_NOT_RUN:
            problem = findings.failed.message if findings.failed else ""
            outcome = ("", "", "", problem.partition("\n")[0])
        else:
            applying, unknown, accepted = map(str, count_risks(findings.risks))
            gravest = [risk.name for risk in findings.risks if risk.open and risk.applies == "True"][:3]
            kept = [risk.name for risk in finding_texts.risks_shown(findings) if risk.accepted]
            known = f"accepted: {', '.join(kept)}" if kept and findings.result is Result.CLEAR else ""
            outcome = (applying, unknown, accepted, ", ".join(gravest) or known)
        result = findings.result.word
        rows.append(Row((cluster_result.name, findings.source, findings.target, result, *outcome)))
    yield draw_table(Table(columns=columns, rows=rows), screen)


def data(cluster_result: ClusterResult) -> dict[str, Any]:
    """Returns the machine form, with the cluster's name."""
    lacking = {"lacking": list(cluster_result.lacking)} if cluster_result.lacking else {}
    since = {"sinceBaseline": codec.to_dict(cluster_result.since)} if cluster_result.since else {}
    notes = {"notes": list(cluster_result.notes)} if cluster_result.notes else {}
    return {
        "cluster": cluster_result.name,
        **finding_texts.as_data(cluster_result.findings),
        **lacking,
        **since,
        **notes,
    }


def markdown(results: Sequence[ClusterResult]) -> str:
    """Returns a Markdown checklist for each cluster: open risks, and accepted ones ticked."""
    return "\n".join(line for cluster_result in results for line in _markdown(cluster_result)) + "\n"


def _markdown(cluster_result: ClusterResult) -> Iterator[str]:
    """Yields the lines of the Markdown form for one cluster."""
    findings = cluster_result.findings
    notes = "".join(f"- {plain(note)}\n" for note in cluster_result.notes)
    if not findings.completed:
        yield f"# {plain(cluster_result.name)}: could not be evaluated\n"
        yield f"{plain(findings.failed.message) if findings.failed else ''}\n"
        return
    yield f"# {plain(cluster_result.name)}: {findings.source} to {findings.target}\n"
    report = cause_texts.report_causes(findings)
    yield f"{plain(finding_texts.counted_risks(findings.risks))}, as of {timestamp(findings.observed)}.\n"
    if notes:
        yield notes
    if finding_texts.steps_on(findings):
        yield f"{finding_texts.STEPS}\n"
        for number, step in enumerate(findings.steps, 1):
            yield f"{number}. {step.part} to {step.version}: {plain(finding_texts.open_risks(findings, step))}"
        yield ""
    for refusal in findings.guard_risks:
        yield from _markdown_risk(refusal)
    if note := cause_texts.order_note(report):
        yield f"{note}\n"
    for cause in report.all_causes:
        # The entry of a cause; its other risks are entries below it, in full only with a separate remedy.
        if cause.node:
            box = "x" if all(risk.accepted for risk in cause.risks) else " "
            yield f"- [{box}] **{plain(cause.words)}** ({cause.severity or 'unknown severity'})"
            yield f"  Fix: {plain(cause_texts.fix_of(cause))}"
        else:
            yield from _markdown_risk(cause.lead)
        for risk in cause.related:
            yield from _markdown_risk(risk, indent="  ")
        for risk in (*([cause.lead] if cause.node else []), *cause.follows):
            yield from _markdown_risk(risk, indent="  ", follows=True)
    if report.missing.risks:
        yield f"\n{plain(cause_texts.missing_text(report.missing, of_dump=findings.of_dump, named_count=_MOST_KINDS))}"
        yield f"Unknown: {', '.join(risk.name for risk in report.missing.risks)}."
    if findings.steps:
        yield "\n## The plan"
        for number, planned in enumerate(step_plan.plan(findings), 1):
            yield f"\n{number}. {planned.title}"
            yield from (f"   - [ ] {plain(item)}" for item in planned.items)
    clear = [check.name for check in findings.checks if check.result == "Clear"]
    skipped = [check.name for check in findings.checks if check.result == "Skipped"]
    yield f"\nClear: {', '.join(clear) or 'none'}."
    yield f"Not for this update: {', '.join(skipped) or 'none'}.\n"


def _markdown_risk(risk: Risk, *, indent: str = "", follows: bool = False) -> Iterator[str]:
    """Yields a risk as an item of a Markdown task list, with its remedy."""
    # A ticked box of a Markdown task list: nothing is left to do about the risk.
    box = "x" if risk.accepted else " "
    gravity = risk.severity or "unknown severity"
    message_text = "" if follows else f": {plain(risk.message)}"
    yield f"{indent}- [{box}] **{risk.name}** ({gravity}, {risk.state}){message_text}"
    if risk.fix and not follows:
        yield f"{indent}  Fix: {plain(risk.fix)}"
    if risk.grown:
        yield f"{indent}  It was {plain(risk.grown.text)}"
    if risk.because:
        yield f"{indent}  Why it may stay: {plain(risk.because)}"


def junit(results: Iterable[ClusterResult]) -> Iterator[str]:
    """Yields JUnit XML: one suite per cluster, one case for each risk shown and for each check that is clear."""
    root = ElementTree.Element("testsuites", name="runup preflight")
    root.text = "\n"
    opening, _, closing = ElementTree.tostring(root, encoding="unicode", xml_declaration=True).rpartition("</")
    yield opening
    for cluster_result in results:
        suite = _suite(cluster_result)
        ElementTree.indent(suite, level=1)
        yield f"  {ElementTree.tostring(suite, encoding='unicode')}\n"
    yield f"</{closing}\n"


def _suite(cluster_result: ClusterResult) -> ElementTree.Element:
    """Returns the test suite of one cluster in JUnit's XML: a failure for each risk, an error without a result."""
    suite = ElementTree.Element("testsuite", name=_xml(f"{cluster_result.name}: {cluster_result.findings.target}"))
    if cluster_id := cluster_result.findings.cluster_id:
        suite.set("id", _xml(cluster_id))
    numbers = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)

    def case(name: str, kind: str = "", message: str = "", details: str = "", *, state: str = "") -> None:
        """Adds a test case to the JUnit suite; `kind` is failure, error, skipped, or empty for a passed one.

        `state` is that of a risk.
        """
        element = ElementTree.SubElement(suite, "testcase", classname=_xml(cluster_result.name), name=name)
        numbers["tests"] += 1
        if kind:
            numbers[{"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]] += 1
            attributes = {"message": _xml(message), **({"type": state} if state else {})}
            ElementTree.SubElement(element, kind, attributes).text = _xml(details)

    if not cluster_result.findings.completed:
        case(
            "preflight",
            "error",
            cluster_result.findings.failed.message if cluster_result.findings.failed else "no result",
        )
    for refusal in cluster_result.findings.guard_risks:
        case(refusal.name, "failure", refusal.message, refusal.fix, state=refusal.state)
    report = cause_texts.report_causes(cluster_result.findings)
    for cause in report.all_causes:
        for risk in cause.risks:
            kind = "skipped" if risk.accepted else "failure" if risk.applies == "True" else "error"
            risk_message = f"accepted: {risk.because}" if risk.accepted else risk.message
            # The remedy, below the cause if that is another risk or a node.
            cause_text = (
                f"Cause: {cause.words}" if cause.node else f"Cause: {cause.name}" if cause.lead is not risk else ""
            )
            fix = cause_texts.fix_of(cause) if cause.node else risk.fix
            details = "\n".join(text for text in (cause_text, fix, risk.grown_text) if text)
            case(risk.name, kind, risk_message, details, state=risk.state)
    for risk in report.missing.risks:
        message = f"not all could be read: {', '.join(risk.lacking)}"
        case(risk.name, "error", message, risk.message, state=risk.state)
    for check in cluster_result.findings.checks:
        if check.result == "Clear":
            case(check.name)
        elif check.result == "Skipped":
            case(check.name, "skipped", check.message)
    for key, number in numbers.items():
        suite.set(key, str(number))
    return suite


def _xml(text: str) -> str:
    """Returns the text without the control characters that XML cannot hold."""
    return text.translate(_CONTROL)


def html(results: Sequence[ClusterResult]) -> str:
    """Returns the page of the first cluster; the command rejects this form for several clusters."""
    first_result = results[0]
    notes = [el("li", note) for note in first_result.notes]
    return preflight_page.page(
        first_result.findings,
        first_result.findings.observed or first_result.tried,
        cluster=first_result.name,
        extra_section=el("section", el("h2", "Notes"), el("div", el("ul", *notes), class_="card")) if notes else None,
    )


# The renderers of `outputs.FORMS`.


def as_json(shown: Shown, form: str = "json") -> str:
    """Returns one cluster's result as a JSON object, or several as a list."""
    value: Any = [data(result) for result in shown.results] if shown.several else data(shown.results[0])
    return machine(value, form)


def as_yaml(shown: Shown) -> str:
    """Returns the same as YAML."""
    return as_json(shown, "yaml")


def as_json_lines(shown: Shown) -> Iterator[str]:
    """Yields the result of each cluster on one line, with its labels if it is one of a fleet."""
    for result in shown.results:
        labels = {"labels": dict(shown.labels[result.name])} if result.name in shown.labels else {}
        yield as_json_line({**data(result), **labels})


def as_junit(shown: Shown) -> Iterator[str]:
    """Yields JUnit XML."""
    return junit(shown.results)


def as_sarif(shown: Shown) -> Iterator[str]:
    """Yields SARIF."""
    return sarif(shown.results)


def as_markdown(shown: Shown) -> str:
    """Returns a checklist, or the changes since a baseline."""
    return report_changes.markdown(shown.results, shown.baseline.name) if shown.baseline else markdown(shown.results)


def as_html(shown: Shown) -> str:
    """Returns a web page."""
    return html(shown.results)


def as_plan(shown: Shown) -> Iterator[str]:
    """Yields the plan of the update."""
    return step_plan.text(shown.results)
