"""The facts about a cluster at one time: its objects, and the answers of other servers about it."""

from __future__ import annotations

import msgspec

from runup.advice.decide.promql import NOTHING, PrometheusState
from runup.checks.decide.model import Snapshot
from runup.checks.decide.target_catalogs import NONE_READ, Catalogs
from runup.kernelmodules.decide.readiness import PreflightResults


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that the checks read, each kind complete or with the reason why it is not, and the answers of others.

    `kernel_modules` are None if nobody examined images of kernel modules.
    """

    snapshot: Snapshot
    prometheus: PrometheusState = NOTHING
    kernel_modules: PreflightResults | None = None
    catalogs: Catalogs = NONE_READ
