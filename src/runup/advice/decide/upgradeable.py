"""The `Upgradeable` condition: False while the cluster itself speaks against leaving its minor version, never True."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubekit.api.meta_v1 import Condition
from kubekit.lang.cut import joined
from runup.advice.decide.risks.source import SourceRisk

UPGRADEABLE = "Upgradeable"
# Of a message; ClusterVersion has a dozen of them to carry, and a cluster some thirty operators.
_MAX_MESSAGE = 16 * 1024
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def upgradeable(
    risks: Sequence[SourceRisk], found: Condition | None, *, not_known: tuple[str, ...] = ()
) -> Condition | None:
    """The condition, without a time, or None where it is to be absent.

    `not_known` are beginnings of reasons of which this operator cannot tell: what was found of them stays.
    """
    # What speaks against every update, a patch included, is none of the minor version's affair.
    ours = [risk for risk in risks if not risk.everywhere]
    told = [risk for risk in ours if not risk.unknown]
    unknown = [risk for risk in ours if risk.unknown]
    if found is not None and found.status == "False" and found.reason.startswith(not_known):
        return found
    if told:
        return Condition(type=UPGRADEABLE, status="False", reason=_reason(told), message=_message(told))
    if unknown:
        text = "; ".join(risk.unknown for risk in unknown)
        return Condition(type=UPGRADEABLE, status="Unknown", reason="EvaluationFailed", message=text)
    return None


def _reason(risks: Sequence[SourceRisk]) -> str:
    if len(risks) > 1:
        return "MultipleReasons"
    return risks[0].name if _REASON.fullmatch(risks[0].name) else "RiskNameNotCompatibleWithReasonProperty"


def _message(risks: Sequence[SourceRisk]) -> str:
    if len(risks) == 1:
        return risks[0].message
    head = "Cluster should not be upgraded between minor or major versions for multiple reasons:"
    return joined([head, *(risk.message for risk in risks)], "\n* ", _MAX_MESSAGE)
