"""Renders a preflight's findings as one self-contained HTML page. Pure.

Causes come with the most severe first, each with its risks and a folded explanation. After them come
what is unknown, the accepted risks with their reasons, and every check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from runup.checks import risk_pages
from runup.checks.decide.kubernetes_words import page_for_kubernetes
from runup.cli.preflight.render import finding_texts
from runup.cli.preflight.render.cause_texts import (
    CauseReport,
    fix_of,
    missing_text,
    report_causes,
    short_kinds,
)
from runup.cli.preflight.render.step_plan import plan
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import (
    BAD,
    GOOD,
    IDLE,
    SEVERITY_TONES,
    WARN,
    Child,
    Markup,
    badge,
    el,
    facts,
    grid,
    join,
    link,
    minute_text,
)
from runup.cli.render.html.prose import markdown, prose
from runup.evaluation.missing import why_not_acceptable
from runup.preflight.decide.findings import Findings, Result, Risk, count_risks
from runup.report import documentation
from runup.report.causes import Cause, most_severe_first
from runup.report.report import ReportedCheck, ReportedResource

_RESULT_TONES = {"Applies": BAD, "Unknown": WARN, "Clear": GOOD, "Skipped": IDLE}
_NO_WHY = "No reason was recorded. Give one: runup upgrade accept {name} --reason TEXT"
_ACCEPTED = (
    "The update may start although the risk applies, also if it names further objects later. Every report lists it, "
    "with the reason, and says if it has grown. An update policy waits until a risk that has grown is accepted again."
)
# docs/reference/update-policy.md: an accepted risk that has grown closes the gate of an update policy.
_GROWN = "The acceptance still counts for `runup upgrade`. An update policy waits until the risk is accepted again:"
_STAYS = (
    "The exit code no longer counts the risk, until the last day in FILE. It stays in every report, with the reason."
)
_ORDER = "The most severe come first; those of one severity are in the order in which they stop the update."
_SHOWN = 20
# A box to tick off on paper: the page has no form.
BOX = "\u2610"
_LONG = 6


def page(
    findings: Findings,
    now: datetime,
    *,
    cluster: str = "",
    explain: Callable[[str], str] = risk_pages.find,
    extra_section: Markup | None = None,
) -> str:
    """Returns the page of `findings`, as of `now`; `explain` returns the documentation of a risk, in Markdown.

    `extra_section` is a section that a command adds at the end.
    """
    body = join(page_body(findings, explain), extra_section)
    return document(findings.title, body, now=now, cluster=cluster)


ShowObject = Callable[[ReportedResource], Child]


def page_body(
    findings: Findings,
    find_page: Callable[[str], str] = risk_pages.find,
    show_object: ShowObject = lambda item: item.text,
) -> Markup:
    """Returns the body of the page.

    `find_page` returns the documentation of a risk, in Markdown; `show_object` how an object is shown, such as a link.
    """
    explain = (lambda name: page_for_kubernetes(find_page(name))) if findings.kind == "Kubernetes" else find_page
    report = report_causes(findings)

    def card(cause: Cause[Risk], number: int = 0) -> Markup:
        return _cause(cause, explain, show_object, number)

    # The section on what is unknown: the missing kinds once for all risks, then the risks that lacked none.
    cards = [_missing_card(report, of_dump=findings.of_dump)] if report.missing.risks else []
    lines = (
        el(
            "tr",
            el("th", f"{step.part} to {step.version}", scope="row"),
            el("td", finding_texts.open_risks(findings, step), class_="wide"),
        )
        for step in findings.steps
    )
    steps = el(
        "section",
        el("h2", "Steps"),
        el("div", grid(finding_texts.STEPS, ("Step", "First meets"), lines), class_="card long"),
    )
    # With boxes to tick off on screen or paper.
    articles = (
        el(
            "article",
            el("h3", f"{number}. {step.title}"),
            el("ul", *(el("li", f"{BOX} ", prose(item)) for item in step.items)),
            class_="card long",
        )
        for number, step in enumerate(plan(findings), 1)
    )
    planned = el("section", el("h2", "The plan"), *articles)
    result = findings.result
    title = findings.failure.capitalize() if result is Result.COULD_NOT_RUN else result.title
    # The head of the page: source and target, result, verdict and its command.
    # The command is shown apart from the text, so that it can be copied.
    text, *command = finding_texts.verdict_parts(findings)
    return join(
        el(
            "section",
            el(
                "div",
                el("h1", findings.title),
                badge(title, result.tone),
                class_="head",
            ),
            el("p", text),
            el("pre", el("code", command[0], class_="command")) if command else None,
            facts(_facts(findings)),
            el("p", f"Release image: {findings.image}", class_="faint name") if findings.image else None,
            class_="card",
        ),
        steps if finding_texts.steps_on(findings) else None,
        _titled_section(
            "Findings",
            [card(cause, number) for number, cause in enumerate(most_severe_first(report.applying), 1)],
            note=_ORDER if len(report.applying) > 1 else "",
        ),
        _titled_section("Unknown results", [*cards, *map(card, most_severe_first(report.unknown))]),
        _titled_section("Accepted", [card(cause) for cause in report.accepted]),
        planned if findings.steps else None,
        _checks(findings.checks) if findings.checks else None,
    )


def _checks(checks: Sequence[ReportedCheck]) -> Markup:
    """Returns the table of all checks, those that found something first."""
    order = tuple(_RESULT_TONES)
    rows = [
        el(
            "tr",
            el("td", badge(check.result, _RESULT_TONES[check.result])),
            el("th", check.name, scope="row"),
            el("td", check.message, class_="wide"),
            el("td", check.component),
        )
        for check in sorted(checks, key=lambda check: (order.index(check.result), check.name))
    ]
    caption, titles = "Every check of the release, and what it came to", ("Result", "Check", "Message", "Component")
    return el("section", el("h2", f"Checks ({len(rows)})"), el("div", grid(caption, titles, rows), class_="card long"))


def _missing_card(report: CauseReport, *, of_dump: bool) -> Markup:
    """Returns the card about risks that are unknown for lack of objects."""
    absent = report.missing
    lines = (
        el("tr", el("th", risk.name, scope="row"), el("td", ", ".join(short_kinds(risk.lacking)), class_="wide"))
        for risk in absent.risks
    )
    return el(
        "article",
        el("p", missing_text(absent, of_dump=of_dump, named_count=len(absent.kinds)), class_="body"),
        el(
            "details",
            el("summary", "Unknown risks"),
            grid("Each risk, and the kinds it lacked", ("Risk", "Kinds"), lines),
        ),
        class_=f"card issue {WARN} long",
    )


def _facts(findings: Findings) -> Iterable[tuple[str, Child]]:
    """Yields the facts below the verdict: blocking risks, the number of checks, and the time."""
    if findings.waived:
        yield "Signature", "waived (force): nobody vouches for the image that checked"
    yield "Refused while", ", ".join(risk.name for risk in findings.refusals)
    if any(risk.open for risk in findings.risks):
        applying = tuple(risk for risk in findings.risks if risk.applies == "True")
        unknown = count_risks(findings.risks)[1]
        counts = (finding_texts.severity_counts_text(applying).strip(" ()"), f"{unknown} not known" if unknown else "")
        yield "In the way", "; ".join(text for text in counts if text)
    checks_run = sum(check.result != "Skipped" for check in findings.checks)
    skipped = len(findings.checks) - checks_run
    yield (
        "Checks",
        (f"{checks_run} done" + (f", {skipped} not for this update" if skipped else "")) if findings.checks else "",
    )
    yield "Checked", minute_text(findings.observed) if findings.observed else ""


def _titled_section(title: str, cards: Sequence[Markup], note: str = "") -> Markup | None:
    heading = el("h2", f"{title} ({len(cards)})")
    return el("section", heading, el("p", note, class_="faint") if note else None, *cards) if cards else None


def _cause(cause: Cause[Risk], explain: Callable[[str], str], show_object: ShowObject, number: int) -> Markup:
    """Returns the card of a cause: its own words first, then the risks about the same object, then what follows."""
    settled = all(risk.accepted for risk in cause.risks)
    tone = IDLE if settled else SEVERITY_TONES.get(cause.severity, WARN)
    grave = (
        badge(cause.severity, SEVERITY_TONES[cause.severity])
        if cause.severity in SEVERITY_TONES and cause.severity
        else None
    )
    title = f"Node {cause.node}" if cause.node else cause.name
    lead = (
        el("dl", *_definition_row("Remedy", prose(fix_of(cause), commands=True)), class_="rows")
        if cause.node
        else facts_of(cause.lead, show_object)
    )
    # The risks that go away with the cause, folded: each with its message, and how it is accepted.
    followers = (*([cause.lead] if cause.node else []), *cause.follows)
    followers_text = "1 risk follows" if len(followers) == 1 else f"{len(followers)} risks follow"
    summary = el("summary", f"{followers_text} from it: {', '.join(risk.name for risk in followers)}")
    items = (
        el("div", el("h4", risk.name), el("p", prose(risk.message), class_="body"), facts_of(risk, show_object))
        for risk in followers
    )
    # The documentation of the risk, folded.
    explained = explain(cause.lead.name)
    # On paper it is left out: it would be longer than what was found.
    return el(
        "article",
        el(
            "div",
            el("h3", f"{number}. {title}" if number else title),
            el("span", badge(cause.lead.state, tone), grave),
            class_="head",
        ),
        el("p", prose(cause.words), class_="body"),
        lead,
        *(
            join(el("h4", risk.name), el("p", prose(risk.message), class_="body"), facts_of(risk, show_object))
            for risk in cause.related
        ),
        el("details", summary, *items) if followers else None,
        el("details", el("summary", "What this risk means"), markdown(explained), class_="about")
        if explained
        else None,
        # In print, a long card may break across pages rather than leave half a page empty.
        class_=f"card issue {tone}{' long' if len(cause.lead.resources) > _LONG or len(cause.risks) > 1 else ''}",
    )


def _definition_row(name: str, value: Child) -> tuple[Markup, Markup]:
    return el("dt", name), el("dd", value)


def facts_of(risk: Risk, show_object: ShowObject) -> Markup:
    """Returns a list with the remedy, the evidence and how to accept the risk, or why it was accepted."""
    rows: list[tuple[str, Child]] = []
    if risk.accepted:
        rows.append(("Why accepted", risk.because or _NO_WHY.format(name=risk.name)))
    finder = "the preflight" if risk.from_preflight else "the update service or the cluster"
    omitted = len(risk.resources) - _SHOWN
    objects = [el("li", show_object(item)) for item in risk.resources[:_SHOWN]]
    objects += [el("li", f"and {omitted} more")] if omitted > 0 else []
    rows += [
        ("Remedy", prose(risk.fix.strip(), commands=True) if risk.fix.strip() else ""),
        ("Evidence", el("ul", *objects) if objects else None),
        (
            "Found by",
            ", ".join(
                text for text in (finder, risk.reason, f"since {minute_text(risk.since)}" if risk.since else "") if text
            ),
        ),
        # The placeholder is nobody's address; the explanation is in the page.
        ("Read on", link(risk.url, risk.url) if risk.url and not risk.url.startswith(documentation.BUILT_IN) else ""),
    ]
    if risk.grown:
        grown: list[Child] = [f"{risk.grown.text[0].upper()}{risk.grown.text[1:]}"]
        if risk.accepted and not risk.grown.baseline:
            again = el("code", f"runup upgrade accept {risk.name} --reason TEXT", class_="command")
            grown += [el("p", prose(_GROWN)), again]
        rows.insert(1, ("Covers more", join(*grown)))
    if not risk.acceptable:
        rows.append(("Accept it", "Accepting it does not lift it."))
    elif (
        not risk.accepted and risk.severity != "info" and (unsupported := why_not_acceptable(risk.name, risk.severity))
    ):
        rows.append(("Accept it", f"Nobody supports an update with it: {unsupported}."))
    elif not risk.accepted and risk.suppressed_by:
        rows.append(("Let it stay", join(el("code", risk.suppressed_by, class_="command"), el("p", _STAYS))))
    elif not risk.accepted:
        command = el("code", f"runup upgrade accept {risk.name}", class_="command")
        rows.append(("Accept it", join(command, el("p", _ACCEPTED))))
    return el("dl", *(cell for name, value in rows if value for cell in _definition_row(name, value)), class_="rows")
