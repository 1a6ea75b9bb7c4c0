"""What a preflight came to, as one value: ClusterVersion's entry for the target joined with the stored report. Pure.

ClusterVersion decides (which risks count, whether they apply, what is accepted); the report of the same target only
adds what the API has no field for: remediation, severity, resources, checks. Everything that is printed about a
preflight, for people or programs, is made of `Findings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.advice.decide.origin import OUTDATED, is_preflights
from runup.api.config_v1 import ClusterVersion, ConditionalUpdate, ConditionalUpdateRisk
from runup.preflight.decide.conditions import COMPLETED, FAILED, RUNNING, TYPES
from runup.preflight.decide.history import History
from runup.preflight.decide.report import Report, ReportedCheck, ReportedResource, ReportedRisk
from runup.release.decide import documentation

NONE, COULD_NOT_RUN, APPLY, UNKNOWN = 0, 1, 2, 3
MODE = "Preflight"
# The names that an administrator accepted and that count, each with why.
Accepted = Mapping[str, str]


class Risk(msgspec.Struct, frozen=True):
    """One risk of one target. `applies` is the condition's status; `fix` is what the check suggests, if anything.

    `because`: why somebody accepted it, where that was recorded.
    """

    name: str
    applies: ConditionStatus
    accepted: bool
    message: str
    url: str
    reason: str = ""
    fix: str = ""
    severity: str = ""
    from_preflight: bool = False
    since: datetime | None = None
    resources: tuple[ReportedResource, ...] = ()
    because: str = ""

    @property
    def open(self) -> bool:
        """Whether it stands in the update's way."""
        return self.applies != "False" and not self.accepted


class Findings(msgspec.Struct, frozen=True):
    """A target's preflight as it stands now. `conditions` are the preflight's own three, where they are about it.

    `ended`: it had a result, and nobody looks any more whether that still holds. `of_dump`: of a cluster that is not at
    hand.
    """

    source: str
    target: str
    image: str = ""
    conditions: tuple[Condition, ...] = ()
    risks: tuple[Risk, ...] = ()
    checks: tuple[ReportedCheck, ...] = msgspec.field(default=())
    observed: datetime | None = None
    ended: bool = False
    of_dump: bool = False

    @property
    def known(self) -> bool:
        """Whether anything is: that it is asked for, what it found, what the update carries."""
        return bool(self.conditions or self.risks or self.checks or self.observed)

    @property
    def failed(self) -> Condition | None:
        """The condition that says why the preflight could not run, or None."""
        condition = find(self.conditions, FAILED)
        return condition if condition and condition.status == "True" else None

    @property
    def completed(self) -> bool:
        """Whether every check has been evaluated at least once."""
        condition = find(self.conditions, COMPLETED)
        return condition is not None and condition.status == "True"

    @property
    def running(self) -> Condition | None:
        """The condition that says how far it is, or None where there is none."""
        return find(self.conditions, RUNNING)

    @property
    def exit_code(self) -> int:
        """0 nothing in the way, 2 unaccepted risks apply, 3 something unknown, 1 the preflight could not run."""
        if self.ended:
            return UNKNOWN
        if not self.completed:
            return COULD_NOT_RUN
        still_open = {risk.applies for risk in self.risks if risk.open}
        return APPLY if "True" in still_open else UNKNOWN if still_open else NONE


def wanted(cluster: ClusterVersion) -> tuple[str, str] | None:
    """Version and image of the preflight that is asked for, or None where none is."""
    desired = cluster.spec.desired_update
    return (desired.version, desired.image) if desired is not None and desired.mode == MODE else None


def current(cluster: ClusterVersion, history: History, accepted: Accepted | None = None) -> Findings | None:
    """The preflight that is asked for, or None where none is."""
    target = wanted(cluster)
    return of_target(cluster, history, *target, accepted=accepted) if target else None


def ended_findings(cluster: ClusterVersion, history: History, accepted: Accepted | None = None) -> tuple[Findings, ...]:
    """What ended preflights of this source found, the newest first; without the target that is asked for now."""
    source, asked = cluster.status.desired.version, wanted(cluster)
    found = []
    for report in history.reports:
        version, image = report.target_version, report.target_image
        if report.source_version != source or asked in ((version, ""), (version, image), ("", image)):
            continue
        one = of_target(cluster, history, version, image, accepted=accepted)
        if any(risk.reason == OUTDATED for risk in one.risks):
            found.append(one)
    return tuple(found)


def of_target(
    cluster: ClusterVersion, history: History, version: str, image: str = "", *, accepted: Accepted | None = None
) -> Findings:
    """What is known of going to this release; the preflight's conditions only where it is the one asked for.

    `accepted`: None where nobody looked for records; then every name of the list counts.
    """
    source = cluster.status.desired.version
    entry = entry_of(cluster, version, image)
    version = version or (entry.release.version if entry else "")
    report = report_of(history, source, version, image)
    asked = wanted(cluster)
    about_it = asked is not None and (asked[0] == version or (not asked[0] and asked[1] == image))
    conditions = tuple(c for c in cluster.status.conditions if c.type in TYPES) if about_it else ()
    accepted = _every(cluster) if accepted is None else accepted
    current = status_of(conditions, COMPLETED) == "True" and status_of(conditions, FAILED) != "True"
    return Findings(
        source=source,
        target=version or image,
        image=image or (entry.release.image if entry else ""),
        conditions=conditions,
        risks=_risks(cluster, entry, report, version, accepted, current),
        checks=report.checks if report else (),
        observed=report.observed_time if report else None,
        ended=not about_it and report is not None and report.execution_status == "completed",
    )


def entry_of(cluster: ClusterVersion, version: str, image: str = "") -> ConditionalUpdate | None:
    """The conditional update of this release: by version, or by digest where only the image is known."""
    for update in cluster.status.conditional_updates:
        by_version = bool(version) and update.release.version == version
        by_image = not version and bool(image) and _digest(update.release.image) == _digest(image)
        if by_version or by_image:
            return update
    return None


def report_of(history: History, source: str, version: str, image: str = "") -> Report | None:
    """The newest stored report for this hop."""
    for report in history.reports:
        same = report.target_version == version if version else _digest(report.target_image) == _digest(image)
        if same and report.source_version == source:
            return report
    return None


def complete(cluster: ClusterVersion, history: History) -> History:
    """`history` whose reports name every risk that ClusterVersion counts for their update, whoever found it.

    A report knows what its target found; that the update is offered by nobody, or that another one is under way, counts
    as well. Reports from another release than the running one stay as they are.
    """
    return History(history.attempt, tuple(_completed(cluster, history, report) for report in history.reports))


def _completed(cluster: ClusterVersion, history: History, report: Report) -> Report:
    if report.source_version != cluster.status.desired.version:
        return report
    named = {risk.name for risk in report.risks}
    found = of_target(cluster, history, report.target_version, report.target_image).risks
    others = [
        ReportedRisk(
            name=risk.name,
            message=risk.message,
            url=risk.url,
            applies="True" if risk.applies == "True" else "Unknown",
            reason=risk.reason,
        )
        for risk in found
        if risk.name not in named and risk.applies != "False"
    ]
    return replace(report, risks=tuple(sorted((*report.risks, *others), key=lambda risk: risk.name)))


def known_risk_names(cluster: ClusterVersion) -> list[str]:
    """Every risk that some update of this cluster carries, sorted."""
    risks = [risk for update in cluster.status.conditional_updates for risk in update.risks]
    names = {risk.name for risk in (*risks, *cluster.status.conditional_update_risks)}
    return sorted(names.union(*(update.risk_names for update in cluster.status.conditional_updates)))


def accepted_names(cluster: ClusterVersion) -> frozenset[str]:
    """The names in `spec.desiredUpdate.acceptRisks`."""
    desired = cluster.spec.desired_update
    return frozenset(risk.name for risk in desired.accept_risks) if desired else frozenset()


def accepted(cluster: ClusterVersion, kept: Mapping[str, str] | None = None, now: datetime | None = None) -> Accepted:
    """The accepted names that count, each with why (empty where nobody said).

    `kept` is the data of ConfigMap `accepted-risks`, `now` None that of files: the newest that the cluster tells of.
    """
    names = dict.fromkeys(sorted(accepted_names(cluster)), "")
    if not (names and kept):
        return names
    from runup.advice.decide import acceptance

    times = [c.last_transition_time for c in cluster.status.conditions]
    moment = now or max((time for time in times if time), default=None)
    records = acceptance.read(kept)
    counting = acceptance.counting(names, records, moment) if moment else names
    return {name: records[name].reason if name in records else "" for name in names if name in counting}


def line_for(message: str, target: str) -> str:
    """`message` as it concerns `target`, for people to read: a risk of several targets has one line for each."""
    prefix = f"Preflight={target}: "
    lines = [line.removeprefix(prefix) for line in message.splitlines() if line.startswith(prefix)]
    return "\n".join(lines) or message


def _every(cluster: ClusterVersion) -> Accepted:
    return dict.fromkeys(accepted_names(cluster), "")


def _risks(
    cluster: ClusterVersion,
    entry: ConditionalUpdate | None,
    report: Report | None,
    version: str,
    accepted: Accepted,
    current: bool,
) -> tuple[Risk, ...]:
    if entry is None:
        return ()
    everywhere = {risk.name: risk for risk in cluster.status.conditional_update_risks}
    own = {risk.name: risk for risk in entry.risks}
    names = dict.fromkeys([*entry.risk_names, *own])
    reported = {risk.name: risk for risk in report.risks} if report else {}
    recommended = find(entry.conditions, "Recommended")
    found = []
    for name in names:
        risk = _with_verdict(own.get(name), everywhere.get(name))
        if risk is None:
            continue
        verdict = find(risk.conditions, "Applies")
        detail = reported.get(name)
        unsaid = _unsaid(recommended, detail if current else None)
        found.append(
            Risk(
                name=name,
                applies=verdict.status if verdict else unsaid,
                accepted=name in accepted,
                message=detail.message if detail else line_for(risk.message, version),
                url=risk.url,
                reason=verdict.reason if verdict else "",
                fix=detail.remediation if detail else "",
                severity=detail.severity if detail else "",
                from_preflight=is_preflights(risk),
                since=verdict.last_transition_time if verdict else None,
                resources=detail.resources if detail else (),
                because=accepted.get(name, ""),
            )
        )
    return ordered(found)


def _unsaid(recommended: Condition | None, detail: ReportedRisk | None) -> ConditionStatus:
    """Whether a risk applies that has no verdict of its own, as in the older API: by its update's, else by the report.

    `detail`: what a preflight that is asked for and complete says of it; what ended ones said may be over.
    """
    if recommended is not None and recommended.status == "True":
        return "False"
    return "True" if detail is not None and detail.applies == "True" else "Unknown"


def _with_verdict(*risks: ConditionalUpdateRisk | None) -> ConditionalUpdateRisk | None:
    """The first that carries its verdict, else the first: the older API has no conditions beside the update."""
    there = [risk for risk in risks if risk is not None]
    return next((risk for risk in there if risk.conditions), there[0] if there else None)


_ORDER = {"True": 0, "Unknown": 1, "False": 2}
_SEVERITY = {"critical": 0, "warning": 1, "": 1, "info": 2}


def of_report(risk: ReportedRisk, report: Report, accepted: str | None = None) -> Risk:
    """A risk of a report that no ClusterVersion carries; `accepted`: why, where it is."""
    return Risk(
        name=risk.name,
        applies="True" if risk.applies == "True" else "Unknown",
        accepted=accepted is not None,
        message=risk.message,
        url=risk.url or documentation.page(risk.name),
        reason=risk.reason,
        fix=risk.remediation,
        severity=risk.severity,
        from_preflight=True,
        since=report.observed_time,
        resources=risk.resources,
        because=accepted or "",
    )


def ordered(risks: Iterable[Risk]) -> tuple[Risk, ...]:
    """What stands in the way first, the gravest on top."""
    return tuple(sorted(risks, key=weight))


def weight(risk: Risk) -> tuple[bool, int, int, str]:
    """The order in which risks are shown: what stands in the way first, of that what applies, the gravest on top."""
    return risk.accepted, _ORDER[risk.applies], _SEVERITY.get(risk.severity, 1), risk.name


def _digest(image: str) -> str:
    return image.rpartition("@")[2]


def counts(risks: Iterable[Risk]) -> tuple[int, int, int]:
    """How many apply, cannot be told, and are accepted (of those that apply or cannot be told)."""
    there = [risk for risk in risks if risk.applies != "False"]
    applying = sum(1 for risk in there if not risk.accepted and risk.applies == "True")
    unknown = sum(1 for risk in there if not risk.accepted and risk.applies == "Unknown")
    return applying, unknown, sum(1 for risk in there if risk.accepted)


def not_recommended(updates: tuple[ConditionalUpdate, ...]) -> list[tuple[ConditionalUpdate, Condition]]:
    """The conditional updates whose Recommended is there and not True, each with that condition."""
    pairs = ((update, find(update.conditions, "Recommended")) for update in updates)
    return [(update, condition) for update, condition in pairs if condition and condition.status != "True"]
