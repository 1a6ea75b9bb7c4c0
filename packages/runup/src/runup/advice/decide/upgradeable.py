"""The `Upgradeable` condition: False while the cluster must not leave its minor version, never True."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import join_within
from runup.advice.decide import risk_names
from runup.advice.decide.risks.cluster_state import SourceRisk

UPGRADEABLE = risk_names.UPGRADEABLE
# Bytes of one message: ClusterVersion carries a dozen conditions, and a cluster has some thirty operators.
_MAX_MESSAGE = 16 * 1024
# The pattern of `reason` in metav1.Condition (k8s.io/apimachinery, pkg/apis/meta/v1).
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def upgradeable(
    risks: Sequence[SourceRisk], stored_condition: Condition | None, *, not_known: tuple[str, ...] = ()
) -> Condition | None:
    """Returns the condition, without a time, or None if it must be absent.

    `not_known` are prefixes of reasons that this operator does not evaluate: a False condition with such a reason is
    kept.
    """
    # Risks of every update, patches included, do not belong here: Upgradeable is about minor versions only.
    applying = [risk for risk in risks if not risk.everywhere]
    if (
        stored_condition is not None
        and stored_condition.status == "False"
        and stored_condition.reason.startswith(not_known)
    ):
        return stored_condition
    if len(applying) == 1:
        name = applying[0].name
        reason = name if _REASON.fullmatch(name) else "RiskNameNotCompatibleWithReasonProperty"
        return Condition(type=UPGRADEABLE, status="False", reason=reason, message=applying[0].message)
    if applying:
        head = "Cluster should not be upgraded between minor or major versions for multiple reasons:"
        text = join_within([head, *(risk.message for risk in applying)], "\n* ", _MAX_MESSAGE)
        return Condition(type=UPGRADEABLE, status="False", reason="MultipleReasons", message=text)
    return None
