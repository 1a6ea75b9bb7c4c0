"""Renders what a preflight found by cause, and what could not be told by what is missing. Pure.

`CauseReport` is the value that every form is made from: text, pages, Markdown, and data for programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubekit.lang.printable import printable
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import wrap_text
from runup.cli.render.text import age, sentence_case
from runup.preflight.decide import causes
from runup.preflight.decide.causes import Cause
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.missing import Missing, missing_objects

# How many of the missing kinds a text names; data, and the detailed text, have all of them.
_NAMED = 2
# How many risks that could not be told for want of objects are listed.
_LISTED = 10
_STYLES = {"critical": "1;31", "warning": "33", "info": "36", "unknown": "35"}
_NOT_KNOWN = "Not known"
_SINCE = re.compile(r" \(since (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\)(?=\.?$)")
_WHY_UNKNOWN = re.compile(r" could not be told: ")


class CauseReport(msgspec.Struct, frozen=True):
    """What a preflight found: causes of risks that apply, those that are accepted, and what could not be told.

    `unsure` are causes of risks that could not be told although everything could be read.
    """

    applying: tuple[Cause[Risk], ...]
    accepted: tuple[Cause[Risk], ...]
    unsure: tuple[Cause[Risk], ...]
    missing: Missing[Risk]

    @property
    def every(self) -> tuple[Cause[Risk], ...]:
        """The causes in the order in which they are told: those that apply, then what is not known, then accepted."""
        return (*self.applying, *self.unsure, *self.accepted)

    def number(self, name: str) -> int:
        """Returns the number of the cause that the risk belongs to, 0 if it belongs to none that applies."""
        return next((n for n, cause in enumerate(self.applying, 1) if name in (r.name for r in cause.risks)), 0)


def by_cause(found: Findings) -> CauseReport:
    """Returns the risks by cause, without those that are known not to apply."""
    standing = [risk for risk in found.risks if risk.applies != "False"]
    lacking = missing_objects(risk for risk in standing if not risk.accepted)
    absent = {risk.name for risk in lacking.risks}
    grouped = causes.group_by_cause(risk for risk in standing if risk.name not in absent)
    settled = tuple(cause for cause in grouped if all(risk.accepted for risk in cause.risks))
    others = [cause for cause in grouped if cause not in settled]
    applying = tuple(cause for cause in others if any(risk.applies == "True" for risk in cause.risks))
    return CauseReport(applying, settled, tuple(cause for cause in others if cause not in applying), lacking)


def listing(
    report: CauseReport, screen: Screen = PIPE, *, now: datetime | None, of_dump: bool = False, collect: str = ""
) -> Drawn:
    """Returns the causes, numbered, and below them what could not be told; empty if nothing was found.

    `collect` is the command that collects what a dump lacks.
    """
    parts: list[str] = []
    fixes: dict[str, int] = {}
    for number, cause in enumerate(report.applying, 1):
        parts.append(_cause(number, cause, screen, now, fixes))
    if report.accepted:
        accepted = ", ".join(_with_why(risk) for cause in report.accepted for risk in cause.risks)
        parts.append(wrap_text(f"Accepted: {accepted}", screen))
    unknown = [*_missing_lines(report.missing, screen, of_dump=of_dump, collect=collect)]
    for cause in report.unsure:
        line = wrap_text(unsure_text(cause, of_dump=of_dump), screen)
        unknown.append(_colour_words(line, screen, (_NOT_KNOWN, _STYLES["unknown"])))
        if not of_dump:
            unknown += _remedy(cause.lead.fix, screen, fixes, 0)
    return join_parts(*parts, *(["\n"] if parts and unknown else []), *unknown)


def _cause(number: int, cause: Cause[Risk], screen: Screen, now: datetime | None, fixes: dict[str, int]) -> Drawn:
    """Returns a cause with its number, its remedy, and the risks that go away with it."""
    label = severity(cause)
    text = for_people(_own_words(cause), now)
    # A node that is the cause has no risk whose name could stand first.
    first = f"{number}. {label}: " if label else f"{number}. "
    head = wrap_text(text if cause.node else f"{cause.name}: {text}", screen, first=first, indent=3)
    lines = [
        _colour_words(head, screen, (f"{label}:", _STYLES.get(label, "")), (f"{printable(cause.name)}:", "1")),
        *_remedy(fix_of(cause), screen, fixes, number),
    ]
    for risk in cause.beside:
        lines.append(wrap_text(f"{risk.name}: {for_people(risk.message, now)}", screen, first="   ", indent=3))
        lines += _remedy(risk.fix, screen, fixes, number)
    others = [*([cause.lead] if cause.node else []), *cause.follows]
    if others:
        label = "Risks" if cause.node else "Also"
        lines.append(wrap_text(f"{label}: {names_in_short(others)}", screen, first="   ", indent=3))
    lines += [
        wrap_text(sentence_case(risk.grown.text), screen, first="   ", indent=3) for risk in cause.risks if risk.grown
    ]
    return join_parts(*lines)


def _own_words(cause: Cause[Risk]) -> str:
    """Returns what is said of the cause, without the beginning that only repeats the risk's name."""
    kind, _, name = cause.name.partition("-")
    said, _, why = cause.words.partition(": ")
    repeats = kind.startswith("ClusterOperator") and said.startswith(f"Cluster operator {name} is ")
    return why if repeats and why and not cause.node else cause.words


def severity(cause: Cause[Risk]) -> str:
    """Returns the severity of the cause, empty if nobody told it; `informs` if the update may repair what it is."""
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
    before = fixes.setdefault("\n".join(text), number)
    if not text:
        return
    if before != number:
        text = [f"as for {before}." if before else "as above."]
    yield wrap_text(text[0], screen, first="   Fix: ", indent=3)
    yield from (wrap_text(line, screen, first="   ", indent=3) for line in text[1:])


def for_people(message: str, now: datetime | None) -> str:
    """Returns a message with the time since when it holds as a length of time, if the time of the report is known."""
    match = _SINCE.search(message)
    if match is None or now is None:
        return message
    since = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return f"{message[: match.start()]} (for {age(since, now).removesuffix(' ago')}){message[match.end() :]}"


def names_in_short(risks: Sequence[Risk]) -> str:
    """Returns the names of the risks; of one family, each after the first is its object: `A-x, -y`."""
    by_family: dict[str, list[str]] = {}
    for risk in risks:
        by_family.setdefault(causes.family(risk.name), []).append(risk.name)
    return ", ".join(
        ", ".join((names[0], *(name.removeprefix(family) for name in names[1:]))) for family, names in by_family.items()
    )


def name_and_more(cause: Cause[Risk]) -> str:
    """Returns the name of the cause, and how many other risks it has."""
    more = len(cause.risks) - 1
    return f"{cause.name} and {more} more" if more else cause.name


def _with_why(risk: Risk) -> str:
    return f"{risk.name} ({risk.because})" if risk.because else risk.name


def _missing_lines(found: Missing[Risk], screen: Screen, *, of_dump: bool, collect: str = "") -> Iterator[Drawn]:
    """Yields what could not be told for lack of objects, and the command that collects them."""
    if not found.risks:
        return
    all_of = " (-v names all)" if of_dump and len(found.kinds) > _NAMED else ""
    how = f" Collect them{all_of}:" if of_dump and collect else all_of
    yield wrap_text(missing_text(found, of_dump=of_dump) + how, screen)
    if of_dump and collect:
        yield join_parts(f"  {collect}\n")
    if of_dump:
        return
    # On a cluster the first reason stands for the others: it has the right, the API or the answer that is missing.
    first = found.risks[0]
    yield wrap_text(f"{first.name}: {first.message}", screen, first="   ", indent=3)
    if len(found.risks) > 1:
        others = [risk.name for risk in found.risks[1:]]
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        yield wrap_text(f"Also: {', '.join(others[:_LISTED])}{more}", screen, first="   ", indent=3)
    if first.fix:
        yield wrap_text(first.fix.strip(), screen, first="   Fix: ", indent=3)


def missing_text(found: Missing[Risk], *, of_dump: bool, named: int = _NAMED) -> str:
    """Returns one sentence about the kinds that were not had in full, and the subjects they are needed for."""
    kinds = short_kinds(found.kinds)
    more = len(kinds) - named
    listed = ", ".join(kinds[:named]) + (f" and {more} more kinds" if more > 1 else "")
    if more == 1:
        listed = ", ".join(kinds)
    lacks = f"the dump does not have all {listed}" if of_dump else f"not all {listed} could be read"
    checks = "1 check" if len(found.risks) == 1 else f"{len(found.risks)} checks"
    return f"{checks} could not tell: {lacks}. Not fully checked: {', '.join(found.subjects)}."


def short_kinds(kinds: Sequence[str]) -> list[str]:
    """Returns the kinds by their plural alone, with the group only where two of them have the same plural."""
    plurals = Counter(kind.partition(".")[0] for kind in kinds)
    return [kind if plurals[kind.partition(".")[0]] > 1 else kind.partition(".")[0] for kind in kinds]


def unsure_text(cause: Cause[Risk], *, of_dump: bool) -> str:
    """Returns one line about risks that could not be told although everything could be read: why, of what, which."""
    # Of a dump there is nothing to accept: the name of the check says it in less.
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
    """Returns the text with the first of each word in its style, which is a terminal's number for it."""
    if not screen.colour:
        return text
    for word, style in styles:
        if style:
            text = Drawn(text.replace(word, f"\x1b[{style}m{word}\x1b[0m", 1))
    return text


def as_data(report: CauseReport) -> dict[str, Any]:
    """Returns the causes, and what is missing, for programs; all names are those of the risks."""
    return {
        "causes": [_cause_data(cause) for cause in report.every],
        "missing": {
            "kinds": sorted(report.missing.kinds),
            "subjects": list(report.missing.subjects),
            "risks": [risk.name for risk in report.missing.risks],
        },
    }


def _cause_data(cause: Cause[Risk]) -> dict[str, Any]:
    """Returns a cause for `-o json`."""
    return {
        "name": cause.name,
        "node": cause.node or None,
        "message": cause.words,
        "remediation": fix_of(cause),
        "severity": cause.severity or None,
        "risks": [risk.name for risk in cause.risks],
    }


def cause_names(report: CauseReport) -> dict[str, str]:
    """Returns the name of the cause of each risk; a risk that could not be told for want of objects has none."""
    return {risk.name: cause.name for cause in report.every for risk in cause.risks}
