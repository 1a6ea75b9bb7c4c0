"""Evaluates all gates of an update. Gates about the release and the cluster come first, gates about the time last."""

from __future__ import annotations

from datetime import datetime

from runup.rollout.decide.gates import preflight
from runup.rollout.decide.gates.cluster import evaluate_alerts, evaluate_health, evaluate_target
from runup.rollout.decide.gates.gate import Verdict, in_order
from runup.rollout.decide.gates.observed import Observed
from runup.rollout.decide.gates.permission import (
    evaluate_approvals,
    evaluate_approvals_of_pools,
    evaluate_forecast,
    evaluate_holds,
    evaluate_pools,
    evaluate_turn,
    evaluate_window,
)


def evaluate(observed: Observed, now: datetime) -> Verdict:
    """Returns the verdict on a start at `now`, the time of the cluster's API server."""
    return in_order(
        (
            evaluate_target(observed, now),
            preflight.evaluate(observed, now),
            evaluate_health(observed, now),
            evaluate_alerts(observed, now),
            evaluate_pools(observed, now),
            *evaluate_approvals(observed, now),
            observed.updater,
            evaluate_holds(observed, now),
            evaluate_window(observed, now),
            evaluate_forecast(observed, now),
            # Last: a cluster reports what else keeps it from starting before its turn.
            evaluate_turn(observed, now),
        )
    )


def evaluate_resumption(observed: Observed, pool: str, now: datetime) -> Verdict:
    """Returns the verdict on resuming a paused pool of a run whose control plane is updated.

    Alerts do not count: a pool that is paused for long causes some, such as KubeletCA alerts of the machine-config
    operator, and a gate that they close would keep the pool paused.
    """
    return in_order(
        (
            evaluate_health(observed, now),
            *evaluate_approvals_of_pools(observed, now),
            evaluate_holds(observed, now),
            evaluate_window(observed, now),
            evaluate_forecast(observed, now, pool),
        )
    )
