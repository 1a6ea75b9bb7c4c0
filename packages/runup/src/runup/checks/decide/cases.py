"""Runs the tests that a declarative check brings: a file of cases in, a verdict on each case out.

A case is a small cluster and what the check must report on it. A check has at least one case of each kind: clear,
applies, unknown, and an empty cluster. The skeleton that `runup checks new` writes contains a word that no case may
contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from kubekit.api.meta_v1 import Wire
from kubekit.lang.version import Version, VersionError
from runup.advice.decide import promql
from runup.advice.decide.promql import NOTHING, Answer, BadAnswer, PrometheusState
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies, Check, Context
from runup.checks.decide.snapshots import snapshot_of

API_VERSION, KIND = "preflight.runup.dev/v1alpha1", "PreflightCheckTest"
UNCHANGED_MARK = "REPLACE-ME"
Expect = Literal["Clear", "Applies", "Unknown", "Skipped"]
# A fixed time, so that a case does not depend on the day on which it runs.
_NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)


class BadCases(ValueError):
    """Error raised if the file is not a file of cases; the message names the field."""


class Case(Wire, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cluster and the expected result. `lacking` are unreadable resources (`pods`, `routes.route.openshift.io`).

    `prometheus` are the values of the samples that the check's query returns, none where no query is sent. `message`,
    if given, is a part of what the risk says; `resources` are the names of all objects that it is about.
    """

    name: str
    expect: Expect
    objects: tuple[dict[str, Any], ...] = ()
    lacking: tuple[str, ...] = ()
    source: str = "5.0.0"
    target: str = "5.2.0"
    kubernetes: str = "1.38.0"
    message: str = ""
    resources: tuple[str, ...] | None = None
    prometheus: tuple[float, ...] | None = None


class Cases(Wire, frozen=True, forbid_unknown_fields=True):
    """A file of cases: `check` is the check's metadata.name."""

    api_version: str
    kind: str
    check: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one case; an empty `problem` means that it is as expected."""

    case: str
    problem: str = ""


def parse(document: Any) -> Cases:
    """Returns the cases of a file. Raises BadCases."""
    try:
        cases = msgspec.convert(document, Cases)
    except msgspec.ValidationError as error:
        raise BadCases(str(error)) from error
    if (cases.api_version, cases.kind) != (API_VERSION, KIND):
        raise BadCases(f"is not a {KIND} of {API_VERSION}")
    return cases


def evaluate_cases(check: Check, cases: Cases) -> Iterator[Verdict]:
    """Yields a verdict on each case, then one for each kind of case that the file lacks."""
    for case in cases.cases:
        yield Verdict(case.name, _case_problem(check, case))
    for lack in missing_kinds(check, cases.cases):
        yield Verdict("all cases", lack)


def missing_kinds(check: Check, cases: Sequence[Case]) -> Iterator[str]:
    """Yields which of the four kinds of cases there are none of."""
    if check.container is not None:
        return  # its image is tested where it is built
    kinds = {case.expect for case in cases}
    for expect in ("Clear", "Applies"):
        if not any(case.expect == expect and (case.objects or case.prometheus) for case in cases):
            missing_text = "an answer of prometheus" if check.query else "objects"
            yield f"there is no case with {missing_text} that expects {expect}"
    if check.query and "Unknown" not in kinds:
        yield "there is no case that expects Unknown: leave `prometheus` out, or give it no sample"
    if check.reads and "Unknown" not in kinds:
        yield "there is no case that expects Unknown: name one of the reads in `lacking`"
    if not check.query and not any(not case.objects and not case.lacking for case in cases):
        yield "there is no case of an empty cluster: one without objects"


def _case_problem(check: Check, case: Case) -> str:
    """Returns how the check's result differs from the expected one, or an empty string."""
    if UNCHANGED_MARK in msgspec.json.encode(case).decode():
        return f"the skeleton is unchanged: replace {UNCHANGED_MARK}"
    try:
        context = Context(
            source=Version(case.source),
            target=Version(case.target),
            now=_NOW,
            target_kubernetes=case.kubernetes,
            prometheus=_prometheus_state(check, case),
        )
    except VersionError as error:
        return str(error)
    if unknown := sorted(set(case.lacking) - {resource.name for resource in check.reads}):
        return f"lacking names {', '.join(unknown)}, which the check does not read"
    snapshot = snapshot_of(
        check.reads,
        case.objects,
        lacking=lambda resource: "not allowed to list it" if resource.name in case.lacking else "",
    )
    outcome = run_check(check, snapshot, context)
    if outcome.result != case.expect:
        messages = " ".join(finding.message for finding in outcome.findings)
        return f"expected {case.expect}, found {outcome.result}{f': {messages}' if messages else ''}"
    applying = [finding for finding in outcome.findings if finding.applies is Applies.YES]
    messages = " ".join(finding.message for finding in applying)
    if case.message and case.message not in messages:
        return f"expected a message with {case.message!r}, found {messages!r}"
    names = sorted({item.name for finding in applying for item in finding.resources})
    if case.resources is not None and sorted(case.resources) != names:
        expected_text, actual = (", ".join(texts) or "nothing" for texts in (sorted(case.resources), names))
        return f"expected it to be about {expected_text}, found {actual}"
    return ""


def _prometheus_state(check: Check, case: Case) -> PrometheusState:
    """Returns the answer of Prometheus in this case, parsed like a real one."""
    if case.prometheus is None:
        return NOTHING
    samples = [{"metric": {}, "value": [_NOW.timestamp(), f"{value:g}"]} for value in case.prometheus]
    body = {"status": "success", "data": {"resultType": "vector", "result": samples}}
    try:
        answer = Answer(_NOW, promql.read(msgspec.json.encode(body)))
    except BadAnswer as error:
        answer = Answer(_NOW, error=error.message)
    return PrometheusState(configured=True, answers={check.query: answer})
