"""Decides whether a risk applies: evaluates its matching rules in order; the first that can be evaluated decides.

If Prometheus has not answered, or not recently, the risk is Unknown with that reason, and not "does not apply".
"""

from __future__ import annotations

from datetime import datetime

from kubekit.api.meta_v1 import Condition
from runup.advice.decide import promql
from runup.advice.decide.promql import PrometheusState
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule

APPLIES = "Applies"


def evaluate_rules(risk: ConditionalUpdateRisk, prometheus: PrometheusState, now: datetime) -> Condition:
    """Returns the `Applies` condition of `risk`, without a time."""
    problems: list[str] = []
    for rule in risk.matching_rules:
        answer = _evaluate(rule, prometheus, now)
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


def _evaluate(rule: MatchingRule, prometheus: PrometheusState, now: datetime) -> bool | str:
    """Returns True or False if the rule could be evaluated, else the reason why not."""
    if rule.type == "Always":
        return True
    if rule.type == "PromQL" and rule.promql is not None:
        return promql.evaluate(rule.promql.promql, prometheus, now)
    return f"unknown matching rule type {rule.type!r}"
