"""Defines `RecommendInput`, from which `recommend` computes its advice; it is read from a cluster, a dump or a file."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from runup.advice.decide.alert_conditions import Check


class RecommendInput(msgspec.Struct, frozen=True):
    """The values read: ClusterVersion as JSON, the prechecks of alerts, and the operator's ConfigMaps as JSON.

    `problem` says why the alerts could not be read; it is empty if they could. `now` is the cluster's time, None for
    files.
    """

    cluster: dict[str, Any]
    checks: tuple[Check, ...] = ()
    problem: str = ""
    config_maps: tuple[dict[str, Any], ...] = ()
    now: datetime | None = None
