"""Runs a check on a cluster that is given as JSON."""

from __future__ import annotations

from typing import Any

from tests.factories import context

from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies, Context
from runup.checks.decide.snapshots import snapshot_of

BY_NAME = {check.name: check for check in CHECKS}
# The namespaces of the cluster's configuration.
MANAGED, CONFIG = "openshift-config-managed", "openshift-config"
JSON = dict[str, Any]
# The risk, how grave, whether it applies, and the names of what it is about.
Reported = tuple[str, str, Applies, list[str]]


def messages_of(name: str, *objects: JSON, to: Context | None = None) -> list[str]:
    """What a check says about a cluster of these objects, in its words."""
    check = BY_NAME[name]
    return [found.message for found in run_check(check, snapshot_of(check.reads, objects), to or context()).findings]


def findings(name: str, *objects: JSON, to: Context | None = None) -> list[Reported]:
    """What a check finds in a cluster of these objects."""
    check = BY_NAME[name]
    found = run_check(check, snapshot_of(check.reads, objects), to or context()).findings
    return [(each.name, each.severity or "", each.applies, [it.name for it in each.resources]) for each in found]
