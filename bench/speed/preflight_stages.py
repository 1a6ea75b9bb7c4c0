"""Where the time goes from a request to its risks, and from a fix to its risk gone: moments in logs, as stages.

The moments are requests in the sandbox's audit log and lines in the log of the target's process. The audit log counts
from its server's start, of which it knows whole seconds: its times are moved so that no request of the benchmark
arrives before it is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.measure import spread

OPERATOR, TARGET = "ClusterVersionOperator", "runup-preflight"
_DEPLOYMENT = "/deployments/cluster-version-operator-preflight"


@dataclass(frozen=True, slots=True)
class Round:
    """A change that the benchmark made, and when it saw the effect, in seconds of the machine's time."""

    asked: float
    seen: float
    risk: str
    target_folder: Path | None
    started: float


@dataclass(frozen=True, slots=True)
class Request:
    """A request in the audit log."""

    received: float
    answered: float
    verb: str
    uri: str
    agent: str
    user: str


@dataclass(frozen=True, slots=True)
class Report:
    """A line of the target's log: a report was written."""

    at: float
    status: str
    risks: frozenset[str]


def target_started(data: Path) -> tuple[Path | None, float]:
    """Returns the folder of the newest target's pod, and when its log was created, which is when it was started."""
    folders = sorted(
        (data / "pods").glob("*_cluster-version-operator-preflight-*"), key=lambda path: path.stat().st_mtime
    )
    return (folders[-1], folders[-1].stat().st_mtime) if folders else (None, 0.0)


def stages(data: Path, first: Sequence[Round], gone: Sequence[Round]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the stages of all requests but the first, and of the fixes that followed them, in seconds.

    The benchmark has patched ClusterVersion twice in each round, and the pool four times: the second is the fix.
    """
    audit = [request_of(json.loads(line)) for line in (data / "audit.log").read_bytes().splitlines()]
    asks = [each for each in audit if _is_patch_of_ours(each, "/clusterversions/version")][0::2]
    fixes = [each for each in audit if _is_patch_of_ours(each, "/machineconfigpools/")][1::4]
    pairs = [*zip(first, asks, strict=True), *zip(gone, fixes, strict=True)]
    behind = max(one.asked - patch.received for one, patch in pairs)
    moved = [replace(each, received=each.received + behind, answered=each.answered + behind) for each in audit]
    return _spreads(moved, first[1:], _first_risks), _spreads(moved, gone[1:], _risk_gone)


def _is_patch_of_ours(request: Request, uri: str) -> bool:
    return request.verb == "patch" and request.user == "kubernetes-admin" and uri in request.uri


def _first_risks(one: Round, requests: list[Request], reports: list[Report]) -> dict[str, float]:
    """Returns the moments of one request, in their order; the key is what ended then."""
    deployed = _first(requests, "patch", OPERATOR, _DEPLOYMENT)
    deletions = [each.answered for each in requests if each.verb == "delete" and "/pods/cluster-version" in each.uri]
    pod = next(each for each in requests if each.verb == "create" and each.uri.split("?")[0].endswith("/pods"))
    lists = [each for each in requests if each.agent.startswith(TARGET) and each.verb == "list"]
    # The report may be noticed, and the round be over, before the target has logged that it is written.
    complete = next((report.at for report in reports if report.status == "completed"), one.seen)
    # A kind that is not served is listed again later.
    lists = list({each.uri: each for each in reversed(lists) if each.answered < complete}.values())
    last_list = max(each.answered for each in lists)
    return {
        "request": _first(requests, "patch", "runup/", "/clusterversions/version").answered,
        "the pods of the preflight before it end": max((at for at in deletions if at < deployed.received), default=0.0),
        "the operator's pass": deployed.received,
        "deployment to pod": pod.answered,
        "pod to process (node agent)": one.started,
        "runc, interpreter, imports, first report": reports[0].at,
        "two objects": min(each.received for each in lists),
        "lists": last_list,
        "evaluation, report's write": complete,
        **_told(one, requests, complete),
    }


def _risk_gone(one: Round, requests: list[Request], reports: list[Report]) -> dict[str, float]:
    """Returns the moments of one change, in their order."""
    report = next((report.at for report in reports if one.risk not in report.risks), one.seen)
    return {
        "change": _first(requests, "patch", "runup/", "/machineconfigpools/").answered,
        "watch, evaluation, report's write": report,
        **_told(one, requests, report),
    }


def _told(one: Round, requests: list[Request], reported: float) -> dict[str, float]:
    """Returns the moments from a report to its risks in the status."""
    writes = [each for each in requests if each.agent.startswith(OPERATOR) and "/leases/" not in each.uri]
    # It may notice a report before the target has logged that it is written.
    last = [each for each in writes if "/clusterversions/version/status" in each.uri][-1]
    first = next(each for each in writes if each.answered >= min(reported, last.received))
    return {
        "notice, the operator's pass": first.received,
        # A write can be read before it is answered.
        "history and status are written": min(last.answered, one.seen),
        "seen by the benchmark": one.seen,
    }


def _first(requests: list[Request], verb: str, agent: str, uri: str) -> Request:
    return next(each for each in requests if each.verb == verb and each.agent.startswith(agent) and uri in each.uri)


def _spreads(
    audit: list[Request],
    rounds: Iterable[Round],
    moments: Callable[[Round, list[Request], list[Report]], dict[str, float]],
) -> dict[str, Any]:
    """Returns the spread of each stage over all rounds."""
    found: dict[str, list[float]] = {}
    for one in rounds:
        requests = [each for each in audit if one.asked <= each.received <= one.seen]
        before = one.asked
        for name, moment in moments(one, requests, _reports(one)).items():
            found.setdefault(name, []).append(max(moment - before, 0.0))
            before = max(before, moment)
    return {name: spread(values) for name, values in found.items()}


def _reports(one: Round) -> list[Report]:
    """Returns the reports that the target wrote in this round."""
    assert one.target_folder is not None
    log = next(one.target_folder.glob("*.log"))
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    reports = [
        Report(datetime.fromisoformat(line["timestamp"]).timestamp(), line["status"], frozenset(line["risks"]))
        for line in lines
        if line["event"] == "report written"
    ]
    return [report for report in reports if one.asked <= report.at <= one.seen]


def request_of(event: dict[str, Any]) -> Request:
    """Returns the request of an audit event whose answer is complete."""
    received, answered = (
        datetime.fromisoformat(event[name]).timestamp() for name in ("requestReceivedTimestamp", "stageTimestamp")
    )
    return Request(
        received, answered, event["verb"], event["requestURI"], event["userAgent"], event["user"]["username"]
    )
