"""Decides from answers of Prometheus whether a risk applies, and how long each answer is valid. Pure.

The rules are evaluated in order; the first that can be evaluated decides. If Prometheus has not answered, or not
recently, the risk is Unknown with that reason, and not "does not apply".

A resolved risk must not still be shown as applying, and a new one must not be missed. So an answer "applies" counts
for a minute, "does not apply" for ten minutes. An older answer counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.error_types import Terminal
from kubekit.lang.gotext import quote_go
from kubekit.lang.text import cut
from runup.api.config_v1 import ConditionalUpdateRisk

if TYPE_CHECKING:
    from runup.updatestatus.decide.alerts import Alert


from kubekit.api.meta_v1 import Condition

PATH = "/api/v1/query"
# The time until a query is sent again, by its last answer; and the time for which an answer counts.
QUERY_INTERVAL = {True: timedelta(seconds=30), False: timedelta(minutes=5), None: timedelta(seconds=30)}
FRESH_FOR = {True: timedelta(seconds=60), False: timedelta(minutes=10)}
MAX_BYTES = 1 << 20
MAX_VALUES = 10_000
# Bytes of Prometheus' own words that are kept.
MAX_ERROR = 1024
NOT_CONFIGURED = "no Prometheus is configured to ask: the operator's flag --prometheus-url names it"
# Begins the text of a query that brought no result, as in the Go operator.
EXECUTING = "executing PromQL query: "
NOT_YET = "Prometheus has not answered yet"


class BadAnswer(Terminal):
    """The answer has no result that a matching rule can use."""


class Answer(msgspec.Struct, frozen=True):
    """The answer to a query at the time `at`: applies or not, or `error`."""

    at: datetime
    applies: bool | None = None
    error: str = ""

    def counts(self, now: datetime) -> bool:
        """Returns whether the answer is recent enough to count now; an error always counts."""
        return self.applies is None or timedelta() <= now - self.at < FRESH_FOR[self.applies]

    def is_due(self, now: datetime) -> bool:
        """Returns whether the query should be sent again."""
        return not timedelta() <= now - self.at < QUERY_INTERVAL[self.applies]


class AlertState(msgspec.Struct, frozen=True):
    """The alerts at the time `at` (None: never answered); `error` is the reason why the last request failed."""

    at: datetime | None = None
    alerts: tuple[Alert, ...] = ()
    error: str = ""


class PrometheusState(msgspec.Struct, frozen=True):
    """The answers of Prometheus. `configured`: there is a Prometheus to query."""

    configured: bool = False
    answers: Mapping[str, Answer] = {}
    alerting: AlertState = AlertState()


NOTHING = PrometheusState()


def queries(risks: Iterable[ConditionalUpdateRisk]) -> tuple[str, ...]:
    """Returns every query of these risks once, in their order."""
    rules = (rule for risk in risks for rule in risk.matching_rules)
    return tuple(dict.fromkeys(rule.promql.promql for rule in rules if rule.type == "PromQL" and rule.promql))


def evaluate(query: str, prometheus: PrometheusState, now: datetime) -> bool | str:
    """Returns whether the query's answer says that its risk applies, or the reason why that is not known."""
    if not prometheus.configured:
        return NOT_CONFIGURED
    answer = prometheus.answers.get(query)
    if answer is None:
        return NOT_YET
    if answer.applies is None:
        return answer.error
    return answer.applies if answer.counts(now) else "the last answer of Prometheus is too old"


class _Answer(Wire, frozen=True):
    status: str = ""
    error: str = ""
    error_type: str = ""
    data: msgspec.Raw = msgspec.Raw()


class _Sample(Wire, frozen=True):
    value: tuple[float, str]


class _Kind(Wire, frozen=True):
    result_type: str = msgspec.field(default="", name="resultType")


class _Vector(Wire, frozen=True):
    result: tuple[_Sample, ...] = ()


def read(body: bytes) -> bool:
    """Returns the verdict in the answer to an instant query, a vector of one sample that is 0 or 1.

    Raises BadAnswer for any other answer.
    """
    try:
        if codec.values_in(body) > MAX_VALUES:
            raise _bad_answer(f"{EXECUTING}the answer cannot be read: it has more than {MAX_VALUES} values")
        answer = codec.decode_strictly(_Answer, body)
        if answer.status != "success":
            texts = filter(None, (answer.error_type, answer.error))
            raise _bad_answer(f"{EXECUTING}{': '.join(texts) or 'it says no more than that it failed'}")
        kind = codec.decode_strictly(_Kind, bytes(answer.data)).result_type
        if kind not in ("vector", "scalar", "matrix"):
            raise _bad_answer(f"{EXECUTING}unexpected value type {quote_go(kind)}")
        if kind != "vector":
            raise _bad_answer(f"invalid PromQL result type is {kind}, not vector")
        samples = codec.decode_strictly(_Vector, bytes(answer.data)).result
    except codec.DecodeError as error:
        raise _bad_answer(f"{EXECUTING}the answer cannot be read: {error}") from error
    if len(samples) != 1:
        raise _bad_answer(f"invalid PromQL result length must be one, but is {len(samples)}")
    text = samples[0].value[1]
    try:
        value = float(text)
    except ValueError as error:
        raise _bad_answer(f"invalid PromQL result {text!r} is not a number") from error
    # The CVO accepts only these two results as well (openshift/cluster-version-operator, pkg/clusterconditions/promql).
    if math.isnan(value) or value not in (0.0, 1.0):
        raise _bad_answer(f"invalid PromQL result (must be 0 or 1): {text}")
    return value == 1.0


def _bad_answer(why: str) -> BadAnswer:
    return BadAnswer(cut(why, MAX_ERROR), reason="EvaluationFailed")


def query_for_cluster(query: str, cluster_id: str) -> str:
    """Returns `query` for one cluster of a shared Prometheus, whose ID replaces the `_id=""` of the update service."""
    return query.replace('_id=""', f'_id="{cluster_id}"') if cluster_id else query


APPLIES = "Applies"


def evaluate_rules(risk: ConditionalUpdateRisk, prometheus: PrometheusState, now: datetime) -> Condition:
    """Returns the `Applies` condition of `risk`, without a time."""
    problems: list[str] = []
    for rule in risk.matching_rules:
        answer: bool | str = f"unknown matching rule type {rule.type!r}"
        if rule.type == "Always":
            answer = True
        elif rule.type == "PromQL" and rule.promql is not None:
            answer = evaluate(rule.promql.promql, prometheus, now)
        if isinstance(answer, str):
            problems.append(answer)
            continue
        return match() if answer else Condition(type=APPLIES, status="False", reason="NotMatch")
    return unevaluated_condition(risk, "; ".join(problems) or "it has no matching rule that is known")


def match(message: str = "") -> Condition:
    """Returns the condition of a risk that applies."""
    return Condition(type=APPLIES, status="True", reason="Match", message=message)


def unevaluated_condition(risk: ConditionalUpdateRisk, why: str) -> Condition:
    """Returns the Unknown condition of a risk that could not be evaluated."""
    message = (
        f"Could not evaluate exposure to update risk {risk.name} ({why})\n"
        f"  {risk.name} description: {risk.message}\n"
        f"  {risk.name} URL: {risk.url}"
    )
    return Condition(type=APPLIES, status="Unknown", reason="EvaluationFailed", message=message)
