"""The outlook of a cluster's update: its forecast with simulated drains, and the recorded steps of its nodes. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubekit.api.core_v1 import Event
from runup.rehearse.decide.drains.drain_result import DrainResult
from runup.rehearse.decide.update_forecast import Forecast, NodeProgress


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast as of `now`: its slowest drains, the nodes that are being updated, and events about steps of nodes.

    `why_no_events` says why `events` may lack some, or all; empty if the cluster listed them.
    """

    now: datetime
    forecast: Forecast
    slow: DrainResult
    under_way: tuple[NodeProgress, ...] = ()
    events: tuple[Event, ...] = ()
    why_no_events: str = ""
    notes: tuple[str, ...] = ()
