"""Preflights of one cluster or many -> what is printed: text, one table, Markdown, JUnit, SARIF, HTML, data. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from runup import __version__
from runup.cli.render.screen import PIPE, Drawn, Screen, joined
from runup.cli.render.table import Column, Row, Table, drawn, wrapped
from runup.cli.render.text import timestamp
from runup.preflight.cli.render import preflight, preflight_page
from runup.preflight.decide.findings import APPLY, COULD_NOT_RUN, NONE, UNKNOWN, Findings, Risk, counts

LEVELS = ("critical", "warning", "info", "unknown", "never")
_GRAVITY = {"critical": 0, "warning": 1, "": 1, "info": 2}
_SARIF = {"critical": "error", "warning": "warning", "": "warning", "info": "note"}
_CONTROL = {code: None for code in range(32) if chr(code) not in "\t\n\r"}


@dataclass(frozen=True, slots=True)
class One:
    """What was found of one cluster; `where` is its name in a table.

    Of a dump, `lacking` are the kinds that it does not have in full, `collect` the command that adds them.
    """

    where: str
    found: Findings
    lacking: tuple[str, ...] = ()
    collect: str = ""


def exit_code(found: Findings, fail_on: str) -> int:
    """As for `--wait`, of what `fail_on` lets count: `unknown` all, a severity what applies and is as grave."""
    code = found.exit_code
    if code in (NONE, COULD_NOT_RUN) or fail_on == "unknown":
        return code
    if fail_on == "never":
        return NONE
    limit = _GRAVITY[fail_on]
    applying = (risk for risk in found.risks if risk.open and risk.applies == "True")
    return APPLY if any(_GRAVITY.get(risk.severity, 1) <= limit for risk in applying) else NONE


def worst(codes: Iterable[int]) -> int:
    """Of several clusters: one that could not be judged, then one with risks, then one with what is not known."""
    found = set(codes)
    return next((code for code in (COULD_NOT_RUN, APPLY, UNKNOWN) if code in found), NONE)


def text(one: One, screen: Screen = PIPE) -> Drawn:
    """One cluster, as `--wait` ends; of a dump what to collect, too."""
    told = preflight.result(one.found, screen)
    if not one.lacking:
        return told
    words, *command = _to_collect(one)
    return joined(told, "\n", wrapped(words, screen), *(f"  {line}\n" for line in command))


def _to_collect(one: One) -> tuple[str, ...]:
    several = len(one.lacking) > 1
    kinds, them = ("kinds", "them") if several else ("kind", "it")
    text = f"The dump does not have all of {len(one.lacking)} {kinds} that checks read which could not tell"
    if one.collect:
        return f"{text}. Where the cluster can be reached, add {them}, and check again:", one.collect
    return (f"{text}: {', '.join(one.lacking)}. Collect {them}, too.",)


def table_of(found: Sequence[One], screen: Screen = PIPE) -> Iterator[Drawn]:
    """Many clusters, a line each."""
    columns = (
        Column("CLUSTER"),
        Column("FROM"),
        Column("TO"),
        Column("RESULT"),
        Column("APPLY"),
        Column("UNKNOWN"),
        Column("ACCEPTED"),
        Column("GRAVEST", flows=True),
    )
    yield drawn(Table(columns, [Row(_line(one)) for one in found]), screen)


def _line(one: One) -> tuple[str, ...]:
    found = one.found
    result = preflight.RESULTS[found.exit_code]
    if found.exit_code == COULD_NOT_RUN:
        why = found.failed.message if found.failed else ""
        return one.where, found.source, found.target, result, "", "", "", why.partition("\n")[0]
    numbers = tuple(map(str, counts(found.risks)))
    gravest = [risk.name for risk in found.risks if risk.open and risk.applies == "True"][:3]
    return one.where, found.source, found.target, result, *numbers, ", ".join(gravest)


def data(one: One) -> dict[str, Any]:
    """The machine form, with the cluster's name."""
    lacking = {"lacking": list(one.lacking)} if one.lacking else {}
    return {"cluster": one.where, **preflight.as_data(one.found), **lacking}


def markdown(found: Sequence[One]) -> str:
    """A checklist for each cluster: what is left to do, and what is done with."""
    return "\n".join(line for one in found for line in _markdown(one)) + "\n"


def _markdown(one: One) -> Iterator[str]:
    found = one.found
    if not found.completed:
        yield f"# {_plain(one.where)}: could not be judged\n"
        yield f"{_plain(found.failed.message) if found.failed else ''}\n"
        return
    yield f"# {_plain(one.where)}: {found.source} to {found.target}\n"
    yield f"{_plain(preflight.counted(found.risks))}, as of {timestamp(found.observed)}.\n"
    for risk in preflight.standing(found):
        box = "x" if risk.accepted else " "
        gravity = risk.severity or "unknown severity"
        yield f"- [{box}] **{risk.name}** ({gravity}, {preflight.state(risk)}): {_plain(risk.message)}"
        if risk.fix:
            yield f"  Fix: {_plain(risk.fix)}"
        if risk.because:
            yield f"  Why it may stay: {_plain(risk.because)}"
    clear = [check.name for check in found.checks if check.result == "Clear"]
    skipped = [check.name for check in found.checks if check.result == "Skipped"]
    yield f"\nClear: {', '.join(clear) or 'none'}."
    yield f"Not for this update: {', '.join(skipped) or 'none'}.\n"


def _plain(words: str) -> str:
    """Words of others in one line, their markup kept from being any."""
    line = " ".join(words.split())
    return "".join(f"\\{char}" if char in "\\*_[]<>#|`" else char for char in line)


def junit(found: Sequence[One]) -> str:
    """JUnit's XML: a suite a cluster; a case for each risk that stands, and one for each check that is clear."""
    suites = ElementTree.Element("testsuites", name="runup preflight")
    for one in found:
        _suite(suites, one)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(parent: ElementTree.Element, one: One) -> None:
    suite = ElementTree.SubElement(parent, "testsuite", name=_xml(f"{one.where}: {one.found.target}"))
    numbers = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)

    def case(name: str, kind: str = "", message: str = "", details: str = "") -> None:
        element = ElementTree.SubElement(suite, "testcase", classname=_xml(one.where), name=name)
        numbers["tests"] += 1
        if kind:
            numbers[{"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]] += 1
            ElementTree.SubElement(element, kind, message=_xml(message)).text = _xml(details)

    if not one.found.completed:
        case("preflight", "error", one.found.failed.message if one.found.failed else "no result")
    for risk in preflight.standing(one.found):
        kind = "skipped" if risk.accepted else "failure" if risk.applies == "True" else "error"
        case(risk.name, kind, f"accepted: {risk.because}" if risk.accepted else risk.message, risk.fix)
    for check in one.found.checks:
        if check.result == "Clear":
            case(check.name)
        elif check.result == "Skipped":
            case(check.name, "skipped", check.message)
    for key, number in numbers.items():
        suite.set(key, str(number))


def _xml(words: str) -> str:
    """Without the control characters that XML cannot hold."""
    return words.translate(_CONTROL)


def sarif(found: Sequence[One]) -> str:
    """SARIF 2.1.0: a result for each risk that stands, its objects as logical locations."""
    rules: dict[str, Risk] = {}
    for one in found:
        for risk in preflight.standing(one.found):
            rules.setdefault(risk.name, risk)
    run = {
        "tool": {
            "driver": {
                "name": "runup",
                "version": __version__,
                "informationUri": "https://docs.runup.example",
                "rules": [_rule(risk) for risk in rules.values()],
            }
        },
        "invocations": [_invocation(one) for one in found],
        "results": [_sarif_result(one, risk) for one in found for risk in preflight.standing(one.found)],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _invocation(one: One) -> dict[str, Any]:
    if one.found.completed:
        return {"executionSuccessful": True}
    why = one.found.failed.message if one.found.failed else "no result"
    note = {"level": "error", "message": {"text": f"{one.where}: {why}"}}
    return {"executionSuccessful": False, "toolExecutionNotifications": [note]}


def _rule(risk: Risk) -> dict[str, Any]:
    return {"id": risk.name, "helpUri": risk.url, "help": {"text": risk.fix or risk.message}}


def _sarif_result(one: One, risk: Risk) -> dict[str, Any]:
    objects = [{"fullyQualifiedName": f"{one.where}: {preflight.resource(item)}"} for item in risk.resources]
    found: dict[str, Any] = {
        "ruleId": risk.name,
        "level": _SARIF.get(risk.severity, "warning"),
        "kind": "fail" if risk.applies == "True" else "review",
        "message": {"text": f"{one.where}: {risk.message}"},
        "locations": [{"logicalLocations": objects or [{"fullyQualifiedName": one.where}]}],
    }
    if found["kind"] != "fail":
        found["level"] = "none"
    if risk.accepted:
        found["suppressions"] = [{"kind": "external", "justification": risk.because or "accepted in the cluster"}]
    return found


def html(found: Sequence[One]) -> str:
    """One page; of several clusters the command refuses it."""
    one = found[0]
    assert one.found.observed is not None
    return preflight_page.page(one.found, one.found.observed, cluster=one.where)


FORMS: dict[str, Callable[[Sequence[One]], str]] = {
    "junit": junit,
    "sarif": sarif,
    "markdown": markdown,
    "html": html,
}
