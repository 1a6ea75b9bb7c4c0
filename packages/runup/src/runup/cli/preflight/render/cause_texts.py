"""Groups the risks that a preflight found by cause, and renders the causes as text and as data. Pure.

In: `Findings`. Out: a `CauseReport`, from which all output formats are made (text, HTML, Markdown, SARIF, JSON), and
its text: the causes that apply, numbered and with their remedies; below them what is unknown, either because objects
could not be read (told by kind) or although everything could be read (told by cause).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubekit.lang.text import count, printable, sentence_case
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import wrap_text
from runup.cli.render.text import age
from runup.evaluation.missing import Missing, missing_objects
from runup.preflight.decide.findings import Findings, Risk
from runup.report import causes
from runup.report.causes import Cause
from runup.report.report import severity_rank

# How many of the missing kinds a text names; data, and the detailed text, have all of them.
_MAX_KINDS = 2
# How many of the risks that are unknown because objects are missing are listed.
_MAX_RISKS = 10
_STYLES = {"critical": "1;31", "warning": "33", "info": "36", "unknown": "35"}
ORDER = "In the order in which they would stop the update: at the request, in the control plane, at the nodes, later."
_NOT_KNOWN = "Not known"
_SINCE = re.compile(r" \(since (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\)(?=\.?$)")
_WHY_UNKNOWN = re.compile(r" is unknown: ")


class CauseReport(msgspec.Struct, frozen=True):
    """The risks of a preflight by cause.

    `applying` are causes with a risk that applies, `accepted` those whose risks are all accepted, and `unknown` the
    others: whether their risks apply is not known although everything could be read. `missing` are the risks that are
    unknown because objects could not be read.
    """

    applying: tuple[Cause[Risk], ...]
    accepted: tuple[Cause[Risk], ...]
    unknown: tuple[Cause[Risk], ...]
    missing: Missing[Risk]

    @property
    def all_causes(self) -> tuple[Cause[Risk], ...]:
        """The causes in the order in which they are shown: those that apply, then unknown ones, then accepted ones."""
        return (*self.applying, *self.unknown, *self.accepted)

    def number(self, name: str) -> int:
        """Returns the number of the cause that the risk belongs to, 0 if it belongs to none that applies."""
        return next(
            (number for number, cause in enumerate(self.applying, 1) if name in (risk.name for risk in cause.risks)), 0
        )


def report_causes(findings: Findings) -> CauseReport:
    """Returns the risks by cause, without those that are known not to apply."""
    relevant = [risk for risk in findings.risks if risk.applies != "False"]
    missing = missing_objects(risk for risk in relevant if not risk.accepted)
    missing_names = {risk.name for risk in missing.risks}
    grouped_causes = causes.group_by_cause(risk for risk in relevant if risk.name not in missing_names)
    accepted = tuple(cause for cause in grouped_causes if all(risk.accepted for risk in cause.risks))
    open_causes = [cause for cause in grouped_causes if cause not in accepted]
    applying = tuple(cause for cause in open_causes if any(risk.applies == "True" for risk in cause.risks))
    return CauseReport(applying, accepted, tuple(cause for cause in open_causes if cause not in applying), missing)


def listing(
    report: CauseReport, screen: Screen = PIPE, *, now: datetime | None, of_dump: bool = False, collect: str = ""
) -> Drawn:
    """Returns the numbered causes, and below them the unknown results; empty if there are no findings.

    `now` is the time from which ages are counted; None prints times as they are. With `of_dump` the texts speak of what
    the dump has, and `collect` is the command that collects what it lacks.
    """
    sections: list[str] = []
    fixes: dict[str, int] = {}
    for number, cause in enumerate(report.applying, 1):
        # A cause with its number, its remedy, and the risks that go away with it. `fixes` has the number of the cause
        # with which each remedy was printed first; new ones are added.
        label = severity(cause)
        # The message of the cause, without a beginning that only repeats the risk's name.
        kind, _, name = cause.name.partition("-")
        cause_text, _, reason = cause.words.partition(": ")
        repeats = kind.startswith("ClusterOperator") and cause_text.startswith(f"Cluster operator {name} is ")
        text = with_age_for_time((reason if repeats and reason and not cause.node else cause.words), now)
        # A node as the cause is no risk, so there is no risk's name to begin with.
        lead = f"{number}. {label}: " if label else f"{number}. "
        head = wrap_text(text if cause.node else f"{cause.name}: {text}", screen, first=lead, indent=3)
        lines = [
            _colour_words(head, screen, (f"{label}:", _STYLES.get(label, "")), (f"{printable(cause.name)}:", "1")),
            *_remedy(fix_of(cause), screen, fixes, number),
        ]
        for risk in cause.related:
            lines.append(
                wrap_text(f"{risk.name}: {with_age_for_time(risk.message, now)}", screen, first="   ", indent=3)
            )
            lines += _remedy(risk.fix, screen, fixes, number)
        other_risks = [*([cause.lead] if cause.node else []), *cause.follows]
        if other_risks:
            heading = "Risks" if cause.node else "Also"
            lines.append(wrap_text(f"{heading}: {names_in_short(other_risks)}", screen, first="   ", indent=3))
        lines += [
            wrap_text(sentence_case(risk.grown.text), screen, first="   ", indent=3)
            for risk in cause.risks
            if risk.grown
        ]
        sections.append(join_parts(*lines))
    if note := order_note(report):
        sections.insert(0, wrap_text(note, screen))
    if report.accepted:
        accepted = ", ".join(
            (f"{risk.name} ({risk.because})" if risk.because else risk.name)
            for cause in report.accepted
            for risk in cause.risks
        )
        sections.append(wrap_text(f"Accepted: {accepted}", screen))
    unknown = [*_missing_lines(report.missing, screen, of_dump=of_dump, collect=collect)]
    for cause in report.unknown:
        line = wrap_text(unknown_text(cause, of_dump=of_dump), screen)
        unknown.append(_colour_words(line, screen, (_NOT_KNOWN, _STYLES["unknown"])))
        if not of_dump:
            unknown += _remedy(cause.lead.fix, screen, fixes, 0)
    return join_parts(*sections, *(["\n"] if sections and unknown else []), *unknown)


def order_note(report: CauseReport) -> str:
    """Returns the sentence that explains the order of the causes if it is not that of their severities, else ""."""
    ranks = [severity_rank(cause.severity) for cause in report.applying]
    return ORDER if ranks != sorted(ranks) else ""


def severity(cause: Cause[Risk]) -> str:
    """Returns the severity of the cause, "" if the report has none, or `informs` if the update may repair it."""
    if all(risk.informs for risk in cause.risks if not risk.accepted):
        return "informs"
    return cause.severity


def fix_of(cause: Cause[Risk]) -> str:
    """Returns the remedy of the cause."""
    if cause.node:
        return f"Bring it back: `oc describe node {cause.node}`."
    return cause.lead.fix


def _remedy(fix: str, screen: Screen, fixes: dict[str, int], number: int) -> Iterator[Drawn]:
    """Yields the lines of a remedy; one that was given before is named by the number of its cause."""
    text = [line.strip() for line in fix.strip().splitlines() if line.strip()]
    earlier_number = fixes.setdefault("\n".join(text), number)
    if not text:
        return
    if earlier_number != number:
        text = [f"as for {earlier_number}."]
    yield wrap_text(text[0], screen, first="   Fix: ", indent=3)
    yield from (wrap_text(line, screen, first="   ", indent=3) for line in text[1:])


def with_age_for_time(message: str, now: datetime | None) -> str:
    """Returns a message with its `(since TIME)` as a length of time before `now`; None leaves it as it is."""
    match = _SINCE.search(message)
    if match is None or now is None:
        return message
    since = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return f"{message[: match.start()]} (for {age(since, now).removesuffix(' ago')}){message[match.end() :]}"


def names_in_short(risks: Sequence[Risk]) -> str:
    """Returns the names of the risks; of one family, only the first is in full: `ClusterOperatorDegraded-x, -y`."""
    by_family: dict[str, list[str]] = {}
    for risk in risks:
        by_family.setdefault(causes.family_of(risk.name), []).append(risk.name)
    return ", ".join(
        ", ".join((names[0], *(name.removeprefix(family) for name in names[1:]))) for family, names in by_family.items()
    )


def name_and_more(cause: Cause[Risk]) -> str:
    """Returns the name of the cause, and how many other risks it has."""
    others = len(cause.risks) - 1
    return f"{cause.name} and {others} more" if others else cause.name


def _missing_lines(missing: Missing[Risk], screen: Screen, *, of_dump: bool, collect: str = "") -> Iterator[Drawn]:
    """Yields the lines about risks that are unknown because objects are missing, and the command that collects them."""
    if not missing.risks:
        return
    all_of = " (-v names all)" if of_dump and len(missing.kinds) > _MAX_KINDS else ""
    hint = f" Collect them{all_of}:" if of_dump and collect else all_of
    yield wrap_text(missing_text(missing, of_dump=of_dump) + hint, screen)
    if of_dump and collect:
        yield join_parts(f"  {collect}\n")
    if of_dump:
        return
    # On a cluster the first reason represents the others: it has the right, the API or the answer that is missing.
    first_risk = missing.risks[0]
    yield wrap_text(f"{first_risk.name}: {first_risk.message}", screen, first="   ", indent=3)
    if len(missing.risks) > 1:
        other_names = [risk.name for risk in missing.risks[1:]]
        omitted = f" and {len(other_names) - _MAX_RISKS} more" if len(other_names) > _MAX_RISKS else ""
        yield wrap_text(f"Also: {', '.join(other_names[:_MAX_RISKS])}{omitted}", screen, first="   ", indent=3)
    if first_risk.fix:
        yield wrap_text(first_risk.fix.strip(), screen, first="   Fix: ", indent=3)


def missing_text(missing: Missing[Risk], *, of_dump: bool, named_count: int = _MAX_KINDS) -> str:
    """Returns a sentence about the kinds that could not be read in full, and the subjects that were not fully checked.

    `named_count` is the number of kinds that are named.
    """
    kinds = short_kinds(missing.kinds)
    omitted = len(kinds) - named_count
    listed = ", ".join(kinds[:named_count]) + (f" and {omitted} more kinds" if omitted > 1 else "")
    if omitted == 1:
        listed = ", ".join(kinds)
    lacks = f"the dump does not have all {listed}" if of_dump else f"not all {listed} could be read"
    checks = count(len(missing.risks), "check")
    have = "has" if len(missing.risks) == 1 else "have"
    return f"{checks} {have} no result: {lacks}. Not fully checked: {', '.join(missing.subjects)}."


def short_kinds(kinds: Sequence[str]) -> list[str]:
    """Returns the kinds by their plural alone, with the group only where two of them have the same plural."""
    plurals = Counter(kind.partition(".")[0] for kind in kinds)
    return [kind if plurals[kind.partition(".")[0]] > 1 else kind.partition(".")[0] for kind in kinds]


def unknown_text(cause: Cause[Risk], *, of_dump: bool) -> str:
    """Returns one line about risks that are unknown although everything could be read: the objects, why, the names."""
    # Risks of a dump are not accepted by name, so the shorter name of the check will do.
    suffix = "Unknown" if of_dump else ""
    names = ", ".join(risk.name.removesuffix(suffix) for risk in cause.risks)
    parts = _WHY_UNKNOWN.split(cause.words, maxsplit=1)
    if len(parts) == 1 or not cause.lead.resources:
        return f"{_NOT_KNOWN}: {names}: {cause.words}"
    return f"{_NOT_KNOWN} of {objects_in_short(cause)}: {parts[1].rstrip('.')} ({names})."


def objects_in_short(cause: Cause[Risk]) -> str:
    """Returns the object of the cause, or how many there are of each kind."""
    if len(cause.lead.resources) == 1:
        return cause.lead.resources[0].text
    kinds = Counter(item.kind for item in cause.lead.resources)
    return ", ".join(f"{number} {kind}s" for kind, number in kinds.items())


def _colour_words(text: Drawn, screen: Screen, *styles: tuple[str, str]) -> Drawn:
    """Returns the text with the first occurrence of each word in its style, given as the numbers of an ANSI escape."""
    if not screen.colour:
        return text
    for phrase, style in styles:
        if style:
            text = Drawn(text.replace(phrase, f"\x1b[{style}m{phrase}\x1b[0m", 1))
    return text


def as_data(report: CauseReport) -> dict[str, Any]:
    """Returns the causes and the missing kinds as data, by the names of the risks."""
    return {
        "causes": [
            {
                "name": cause.name,
                "node": cause.node or None,
                "message": cause.words,
                "remediation": fix_of(cause),
                "severity": cause.severity or None,
                "risks": [risk.name for risk in cause.risks],
            }
            for cause in report.all_causes
        ],
        "missing": {
            "kinds": sorted(report.missing.kinds),
            "subjects": list(report.missing.subjects),
            "risks": [risk.name for risk in report.missing.risks],
        },
    }


def cause_names(report: CauseReport) -> dict[str, str]:
    """Returns the name of the cause by risk; a risk that is unknown because objects are missing has none."""
    return {risk.name: cause.name for cause in report.all_causes for risk in cause.risks}
