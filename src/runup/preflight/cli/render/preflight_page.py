"""Renders a preflight's findings as one self-contained HTML page. Pure.

Risks that block the update come first, the most severe on top; accepted risks follow with their reason; the checks come
last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from runup.cli.render.html.document import document
from runup.cli.render.html.markup import Child, Markup, el, join, link
from runup.cli.render.html.parts import BAD, BUSY, GOOD, IDLE, WARN, badge, facts, grid, moment
from runup.preflight.cli.render.finding_texts import SEVERITIES, by_severity, resource, state, verdict_parts
from runup.preflight.decide.findings import APPLY, COULD_NOT_RUN, EXIT_CLEAR, UNKNOWN, Findings, Risk
from runup.preflight.decide.report import ReportedCheck

_TITLES = {"critical": "Critical", "warning": "Warnings", "info": "For information", "": "Of unknown severity"}
_TONES = {"critical": BAD, "warning": WARN, "info": BUSY, "": WARN}
_RESULT_TONES = {"Applies": BAD, "Unknown": WARN, "Clear": GOOD, "Skipped": IDLE}
_NO_WHY = "No reason was recorded. Give one: runup upgrade accept {name} --reason TEXT"
_SHOWN = 20
_LONG = 6


def page(found: Findings, now: datetime, *, cluster: str = "") -> str:
    """Returns the page of `found`, as of `now`."""
    return document(f"Preflight of {found.target}", _body(found), now=now, cluster=cluster)


def _body(found: Findings) -> Markup:
    standing = [risk for risk in found.risks if risk.open]
    accepted = [risk for risk in found.risks if risk.accepted and risk.applies != "False"]
    return join(
        _head(found),
        *(_severity(severity, standing) for severity in (*SEVERITIES, "")),
        _section(f"Accepted ({len(accepted)})", accepted) if accepted else None,
        _checks(found.checks) if found.checks else None,
    )


def _head(found: Findings) -> Markup:
    # The command is shown apart from the text, so that it can be copied.
    text, *command = verdict_parts(found)
    return el(
        "section",
        el("div", el("h1", f"Preflight of {found.target} from {found.source}"), badge(*_result(found)), class_="head"),
        el("p", text),
        el("pre", el("code", command[0])) if command else None,
        facts(_facts(found)),
        el("p", f"Release image: {found.image}", class_="faint name") if found.image else None,
        class_="card",
    )


def _result(found: Findings) -> tuple[str, str]:
    code = found.exit_code
    if found.ended:
        return "Ended", WARN
    if code == COULD_NOT_RUN:
        return ("Could not run", BAD) if found.failed else ("No result yet", BUSY)
    return {EXIT_CLEAR: ("Nothing in the way", GOOD), APPLY: ("Risks apply", BAD), UNKNOWN: ("Not all known", WARN)}[
        code
    ]


def _facts(found: Findings) -> Iterable[tuple[str, Child]]:
    if found.waived:
        yield "Signature", "waived (force): nobody vouches for the image that checked"
    if any(risk.open for risk in found.risks):
        yield "In the way", by_severity(found.risks).strip(" ()")
    done = sum(check.result != "Skipped" for check in found.checks)
    skipped = len(found.checks) - done
    yield "Checks", (f"{done} done" + (f", {skipped} not for this update" if skipped else "")) if found.checks else ""
    yield "Checked", moment(found.observed) if found.observed else ""


def _severity(severity: str, risks: Sequence[Risk]) -> Markup | None:
    of_severity = [risk for risk in risks if risk.severity == severity]
    return _section(f"{_TITLES[severity]} ({len(of_severity)})", of_severity) if of_severity else None


def _section(title: str, risks: Sequence[Risk]) -> Markup:
    return el("section", el("h2", title), *map(_card, risks))


def _card(risk: Risk) -> Markup:
    tone = IDLE if risk.accepted else _TONES[risk.severity]
    grave = badge(risk.severity, _TONES[risk.severity]) if risk.accepted and risk.severity else None
    return el(
        "article",
        el("div", el("h3", risk.name), el("span", badge(state(risk), tone), grave), class_="head"),
        el("p", risk.message, class_="body"),
        facts_of(risk),
        # In print, a long card may break across pages rather than leave half a page empty.
        class_=f"card issue {tone}{' long' if len(risk.resources) > _LONG else ''}",
    )


def facts_of(risk: Risk) -> Markup:
    """Returns a list with the remedy, the evidence and how to accept the risk, or why it was accepted."""
    rows: list[tuple[str, Child]] = []
    if risk.accepted:
        rows.append(("Why accepted", risk.because or _NO_WHY.format(name=risk.name)))
    rows += [
        ("Remedy", risk.fix.strip()),
        ("Evidence", _objects(risk)),
        ("Found by", _found_by(risk)),
        ("Read on", link(risk.url, risk.url) if risk.url else ""),
    ]
    if risk.grown:
        rows.insert(1, ("Covers more", f"{risk.grown.text[0].upper()}{risk.grown.text[1:]}"))
    if not risk.acceptable:
        rows.append(("Accept it", "Accepting it does not lift it."))
    elif not risk.accepted:
        rows.append(("Accept it", el("code", f"runup upgrade accept {risk.name}")))
    pairs = (join(el("dt", name), el("dd", value)) for name, value in rows if value)
    return el("dl", *pairs, class_="rows")


def _found_by(risk: Risk) -> str:
    who = "the preflight" if risk.from_preflight else "the update service or the cluster"
    return ", ".join(part for part in (who, risk.reason, f"since {moment(risk.since)}" if risk.since else "") if part)


def _objects(risk: Risk) -> Markup | None:
    """Returns the objects that the check named; a long list ends with the number of further ones."""
    if not risk.resources:
        return None
    remaining = len(risk.resources) - _SHOWN
    items = [el("li", resource(item)) for item in risk.resources[:_SHOWN]]
    return el("ul", *items, el("li", f"and {remaining} more") if remaining > 0 else None)


def _checks(checks: Sequence[ReportedCheck]) -> Markup:
    order = tuple(_RESULT_TONES)
    ordered = sorted(checks, key=lambda check: (order.index(check.result), check.name))
    lines = (
        el(
            "tr",
            el("td", badge(check.result, _RESULT_TONES[check.result])),
            el("th", check.name, scope="row"),
            el("td", check.message, class_="wide"),
            el("td", check.component),
        )
        for check in ordered
    )
    table = grid("Every check of the release, and what it came to", ("Result", "Check", "Message", "Component"), lines)
    return el("section", el("h2", f"Checks ({len(checks)})"), el("div", table, class_="card long"))
