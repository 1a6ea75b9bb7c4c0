"""The findings of a preflight as one value: ClusterVersion's entry for the target joined with the stored report.

ClusterVersion decides which risks count, whether they apply and what is accepted. The report of the same target adds
only what the API has no field for: remediation, severity, resources and checks. Everything that is printed about a
preflight, for people or programs, is made from `Findings`. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.oc_pull_spec import is_same_image
from runup.advice.decide import lifting
from runup.advice.decide import preflight_reasons as reasons
from runup.advice.decide.acceptance import Acceptance, Accepted, Growth, accepted_without_records, growth
from runup.advice.decide.update_in_progress import pending_update, update_in_progress
from runup.api.config_v1 import ClusterVersion, ConditionalUpdate
from runup.preflight.decide.preflight_conditions import COMPLETED, FAILED, RUNNING
from runup.preflight.decide.preflight_state import MODE, Phase, current_preflight, has_passed, past_phase
from runup.preflight.decide.published_risks import line_for
from runup.preflight.decide.stored_reports import History
from runup.report import documentation
from runup.report.report import (
    Kind,
    Report,
    ReportedCheck,
    ReportedResource,
    ReportedRisk,
    ReportedStep,
    severity_rank,
)


class Result(Enum):
    """The result of a preflight, with the texts that all views share.

    `code` is the exit code if everything that is open counts, `word` is for programs, `text` is for people, and `tone`
    is the class of a badge on a page. `counted` and `key` are the words and the JSON field of a number of clusters.
    """

    CLEAR = (0, "Clear", "nothing in the way", "with nothing in the way", "nothingInTheWay", "good")
    APPLY = (2, "RisksApply", "risks apply", "with risks that apply", "risksApply", "bad")
    UNKNOWN = (3, "Unknown", "not all known", "not all known", "notAllKnown", "warn")
    COULD_NOT_RUN = (1, "CouldNotRun", "could not run", "could not be evaluated", "couldNotBeJudged", "bad")
    NO_RESULT = (1, "CouldNotRun", "no result yet", "could not be evaluated", "couldNotBeJudged", "busy")
    ENDED = (3, "Unknown", "ended", "not all known", "notAllKnown", "warn")
    UNCONFIRMED = (3, "Unknown", "not confirmed", "not all known", "notAllKnown", "warn")

    def __init__(self, *row: Any) -> None:
        self.code: int
        self.word: str
        self.text: str
        self.counted: str
        self.key: str
        self.tone: str
        self.code, self.word, self.text, self.counted, self.key, self.tone = row

    @property
    def title(self) -> str:
        """The text with a capital letter."""
        return self.text[0].upper() + self.text[1:]


EXIT_CLEAR, COULD_NOT_RUN = Result.CLEAR.code, Result.COULD_NOT_RUN.code
APPLY, UNKNOWN = Result.APPLY.code, Result.UNKNOWN.code
# The results of clusters in a fleet, in which those with the same code are counted together.
RESULTS = (Result.CLEAR, Result.APPLY, Result.UNKNOWN, Result.COULD_NOT_RUN)
SUPPRESS = "runup preflight run --suppressions FILE"
_BY_NAMED = "Update by way of the releases that the message names, each with a separate preflight"
_STEPWISE = "Update by one minor version at a time, each with a separate preflight"
# Remedies of the operator's own refusals, for which the API has no field.
_OWN_REFUSALS = {
    reasons.NOT_OFFERED: "Choose a release that `runup upgrade` lists, or a channel that offers this one.",
    reasons.GIANT_HOP: f"{_STEPWISE}: `runup upgrade` lists the releases that are offered.",
    reasons.ROLLBACK: "Return with `runup upgrade rollback`, where that is supported.",
    reasons.UPGRADEABLE: "Do what the message asks for; `runup upgrade` shows the newest.",
    reasons.SIGNATURE: "Choose a signed release, or add the signature store that holds its signature.",
}


# The same where the message names the releases on the way.
_BY_WAY = {
    reasons.NOT_OFFERED: f"{_BY_NAMED}, or choose a channel that offers this one.",
    reasons.GIANT_HOP: f"{_BY_NAMED}.",
}


def _remedy_of_refusal(name: str, message: str) -> str:
    """Returns the remedy of a refusal by the operator itself, whose message is `message`."""
    fix = _OWN_REFUSALS[name]
    return _BY_WAY.get(name, fix) if reasons.BY_WAY in message else fix


class Risk(msgspec.Struct, frozen=True, kw_only=True):
    """A risk of one target. `applies` is the condition's status, `fix` is the check's suggested remedy, if any.

    `because`: the recorded reason of its acceptance. `acceptable`: whether its acceptance lets the update continue.
    `grown`: the objects that it covers now, but did not when it was accepted. `cause` and `lacking` are those of the
    report. `suppressed_by` is the command whose suppressions let the risk stay, where no ClusterVersion can carry an
    acceptance; empty where one can.
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
    resources_omitted: int = 0
    because: str = ""
    acceptable: bool = True
    grown: Growth | None = None
    cause: str = ""
    lacking: tuple[str, ...] = ()
    suppressed_by: str = ""

    @property
    def open(self) -> bool:
        """Reports whether the risk blocks the update: it may apply, is not accepted, and does not only inform."""
        return self.applies != "False" and not self.accepted and not self.informs

    @property
    def informs(self) -> bool:
        """Reports whether the risk describes a failure that the update may repair (docs/decisions/0076)."""
        return self.reason == reasons.REPAIRED

    @property
    def refuses(self) -> bool:
        """Reports whether the update is refused while the risk applies, accepted or not. Unknown refuses nothing."""
        return self.open and self.applies == "True" and not self.acceptable

    @property
    def grown_text(self) -> str:
        """The clause that says what the risk covers by now, empty if it has not grown."""
        return f"{self.name} was {self.grown.text}" if self.grown else ""

    @property
    def state(self) -> str:
        """The risk's state in one word."""
        if self.accepted:
            return "accepted"
        if self.informs:
            return "informs"
        if self.refuses:
            return "refuses"
        return {"True": "applies", "False": "clear"}.get(self.applies, "unknown")

    def accept(self, because: str) -> Risk:
        """Returns the risk as accepted, with the reason; unchanged if its acceptance would not lift it."""
        return replace(self, accepted=True, because=because) if self.acceptable else self


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The current findings about a target.

    `conditions` are the preflight's three conditions, if they are about this target. `phase` is None if no operator
    runs the preflight, or if it does not exist. `ran`: the report is that of the current attempt, or there is none, and
    the attempt was ended. `partial`: the report is not complete. `passed`: the cluster has come to the target, or
    past it. `pending_update` is the release of an update that is requested and has not begun, which a request for a
    preflight would replace. `of_dump`: the findings are about a dump, not about a cluster that can be reached.
    `guards` are conditions of ClusterVersion for which `--to` refuses. `takes_names`: risks can be accepted by name on
    this cluster. `waived`: the target ran without a verified signature. `kind` is Kubernetes for a cluster without a
    ClusterVersion, which accepts nothing; `steps` are those of its update. `manifests` says what was read if the
    findings are about manifests, which no cluster has yet. `rehearsed`: they are those of a rehearsal. `cluster_id`
    shows the cluster whatever it is called; empty if it is not known. `fail_on` is what makes the exit code not 0.
    `lapse` says since when no operator keeps the state up to date; empty if one does, or if that is not known.
    """

    source: str
    target: str
    image: str = ""
    conditions: tuple[Condition, ...] = ()
    risks: tuple[Risk, ...] = ()
    checks: tuple[ReportedCheck, ...] = msgspec.field(default=())
    observed: datetime | None = None
    phase: Phase | None = None
    ran: bool = False
    partial: bool = False
    passed: bool = False
    pending_update: str = ""
    of_dump: bool = False
    guards: tuple[Condition, ...] = ()
    takes_names: bool = True
    waived: bool = False
    kind: Kind = "OpenShift"
    steps: tuple[ReportedStep, ...] = ()
    manifests: str = ""
    rehearsed: bool = False
    cluster_id: str = ""
    fail_on: str = "unknown"
    lapse: str = ""

    @property
    def title(self) -> str:
        """A title with the evaluated cluster and the release."""
        if self.manifests:
            return f"Manifests for {self.target}"
        work = "Rehearsal" if self.rehearsed else "Preflight"
        return f"{work} of {self.target}{f' from {self.source}' if self.source else ''}"

    @property
    def grown_texts(self) -> tuple[str, ...]:
        """Texts about the objects of each risk that has grown."""
        return tuple(risk.grown_text for risk in self.risks if risk.grown)

    @property
    def known(self) -> bool:
        """Reports whether there is anything to show: a request, findings, or risks of the update."""
        return bool(self.phase or self.conditions or self.risks or self.checks or self.observed)

    @property
    def ended(self) -> bool:
        """Reports whether the findings are those of a stored report that nothing confirms any more."""
        return self.phase in (Phase.ENDED, Phase.OUTDATED)

    @property
    def failure(self) -> str:
        """A verb phrase about a failed preflight, to follow "the preflight"."""
        if not self.ran:
            return "could not run"
        if self.observed is None:
            return "was ended before its first report"
        return "failed before it was complete" if self.partial else "no longer confirms its result"

    @property
    def failed(self) -> Condition | None:
        """The condition with the reason why the preflight failed, or None."""
        condition = find(self.conditions, FAILED)
        return condition if condition and condition.status == "True" else None

    @property
    def completed(self) -> bool:
        """Reports whether every check has been evaluated at least once."""
        condition = find(self.conditions, COMPLETED)
        return condition is not None and condition.status == "True"

    @property
    def running(self) -> Condition | None:
        """The condition that reports the preflight's progress, or None."""
        return find(self.conditions, RUNNING)

    @property
    def guard_risks(self) -> tuple[Risk, ...]:
        """The guards in the form of risks, for views that list risks; they are counted with none."""
        return tuple(map(_risk_of_guard, self.guards))

    @property
    def refusals(self) -> tuple[Risk, ...]:
        """The reasons to refuse the update regardless of acceptance: conditions for `--to`, and risks."""
        return (*self.guard_risks, *(risk for risk in self.risks if risk.refuses))

    @property
    def result(self) -> Result:
        """The result of the preflight if every open risk counts.

        Source: docs/decisions/0075.
        """
        if self.ended:
            return Result.ENDED
        if self.phase is Phase.UNCONFIRMED:
            return Result.UNCONFIRMED
        if not self.completed:
            return Result.COULD_NOT_RUN if self.failed else Result.NO_RESULT
        still_open = {risk.applies for risk in self.risks if risk.open}
        if "True" in still_open or self.guards:
            return Result.APPLY
        return Result.UNKNOWN if still_open else Result.CLEAR

    @property
    def exit_code(self) -> int:
        """The exit code of every command and output, restricted by `fail_on`.

        0: `--to` is accepted, 2: risks apply or the update is refused, 3: something is unknown, 1: it could not run.
        `unknown` counts everything that is open, and a severity counts risks that apply and are at least as severe. A
        refusal counts for both. `never` counts nothing.
        """
        code = self.result.code
        if code in (EXIT_CLEAR, COULD_NOT_RUN) or self.fail_on == "unknown":
            return code
        if self.fail_on == "never":
            return EXIT_CLEAR
        applying = (risk for risk in self.risks if risk.open and risk.applies == "True")
        is_grave = any(severity_rank(risk.severity) <= severity_rank(self.fail_on) for risk in applying)
        return APPLY if is_grave or self.refusals else EXIT_CLEAR


def requested_preflight(cluster: ClusterVersion) -> tuple[str, str] | None:
    """Returns version and image of the requested preflight, or None if no preflight is requested."""
    desired = cluster.spec.desired_update
    return (desired.version, desired.image) if desired is not None and desired.mode == MODE else None


def current_findings(cluster: ClusterVersion, history: History, accepted: Accepted | None = None) -> Findings | None:
    """Returns the findings of the preflight that is requested, or that an update waits for; None if there is none."""
    preflight = current_preflight(cluster, history)
    if preflight is None:
        return None
    return findings_of_target(cluster, history, preflight.version, preflight.image, accepted=accepted)


def ended_findings(cluster: ClusterVersion, history: History, accepted: Accepted | None = None) -> tuple[Findings, ...]:
    """Returns the findings of ended preflights of targets that are still ahead, the newest first."""
    ended_targets: list[Findings] = []
    for report in history.reports:
        version, image = report.target_version, report.target_image
        # The same target may have been checked from several releases: the newest findings count.
        if any((ended_target.target, ended_target.image) == (version, image) for ended_target in ended_targets):
            continue
        findings = findings_of_target(cluster, history, version, image, accepted=accepted)
        entry = entry_of(cluster, version, image)
        published = {condition.reason for risk in (entry.risks if entry else ()) for condition in risk.conditions}
        if findings.ended and reasons.OUTDATED in published:
            ended_targets.append(findings)
    return tuple(ended_targets)


def all_findings(cluster: ClusterVersion, history: History, accepted: Accepted | None = None) -> tuple[Findings, ...]:
    """Returns the findings of the requested preflight, if there is one, and then those of ended preflights."""
    current = current_findings(cluster, history, accepted)
    return (*((current,) if current else ()), *ended_findings(cluster, history, accepted))


def findings_of_target(
    cluster: ClusterVersion, history: History, version: str, image: str = "", *, accepted: Accepted | None = None
) -> Findings:
    """Returns the findings about an update to one release.

    The preflight's conditions are included only if that release is its target. If the preflight is over, the findings
    are those of its stored report. `accepted` is None if no acceptance records were read; then every name in
    `acceptRisks` counts.
    """
    source = cluster.status.desired.version
    entry = entry_of(cluster, version, image)
    version = version or (entry.release.version if entry else "")
    current, attempt = current_preflight(cluster, history), history.attempt
    preflight = current if current is not None and current.is_of(version, image) else None
    # What was found from an earlier release stays while the target is ahead, and says from where.
    sources = dict.fromkeys((source, *(() if preflight else (report.source_version for report in history.reports))))
    report = next(
        (stored_report for source in sources if (stored_report := report_of(history, source, version, image))), None
    )
    conditions = preflight.conditions if preflight is not None else ()
    phase = preflight.phase if preflight is not None else past_phase(cluster, report) if report is not None else None
    accepted = accepted_without_records(cluster) if accepted is None else accepted
    # Only a completed preflight without a failure may decide about a risk that has no verdict of its own.
    is_current = status_of(conditions, COMPLETED) == "True" and status_of(conditions, FAILED) != "True"
    is_over = preflight is None or (phase is Phase.FAILED and status_of(conditions, RUNNING) == "False")
    if report is not None and is_over:
        risks = _risks_then(report)
    else:
        risks = risks_of_update(cluster, entry, report=report, version=version, accepted=accepted, current=is_current)
    if phase is None and any(risk.reason == reasons.OUTDATED for risk in risks):
        # The report itself could not be read.
        phase = Phase.ENDED
    return Findings(
        source=report.source_version if report is not None else source,
        target=version or image,
        image=image or (entry.release.image if entry else report.target_image if report else ""),
        conditions=conditions,
        risks=risks,
        checks=report.checks if report else (),
        observed=report.observed_time if report else None,
        phase=phase,
        ran=attempt is not None and (bool(attempt.refused) if report is None else report.preflight_id == attempt.id),
        partial=report is not None and report.execution_status != "completed",
        passed=has_passed(cluster, version),
        pending_update=pending_update(cluster),
        guards=guards_of(cluster, version, image),
        # The names come with the gate that lets them be accepted.
        takes_names=entry is None or bool(entry.risk_names),
        waived=report is not None and report.signature_waived,
        cluster_id=cluster.spec.cluster_id,
        lapse=history.lapse if preflight is not None else "",
    )


def findings_of_report(report: Report) -> Findings:
    """Returns the findings of a report alone, as they were when it was made."""
    condition = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")
    if report.execution_status != "completed":
        condition = Condition(type=FAILED, status="True", reason="NotJudged", message=report.message)
    return Findings(
        source=report.source_version,
        target=report.target_version,
        image=report.target_image,
        conditions=(condition,),
        risks=worst_first(risk_of_report(risk, report) for risk in report.risks),
        checks=report.checks,
        observed=report.observed_time,
        kind=report.cluster_kind,
        steps=report.steps,
    )


def guards_of(cluster: ClusterVersion, version: str, image: str = "") -> tuple[Condition, ...]:
    """Returns the conditions for which `--to` refuses, none for the way back from the update under way."""
    update = update_in_progress(cluster)
    takes_back = update is not None and update.is_taken_back_by(version, image)
    return () if takes_back else lifting.guard_conditions(cluster.status.conditions)


def _risk_of_guard(guard: Condition) -> Risk:
    return Risk(
        name=f"{guard.type}=True",
        applies="True",
        accepted=False,
        message=guard.message,
        url="",
        reason=guard.reason,
        fix="Wait until it has passed, or update with --allow-upgrade-with-warnings.",
        severity=_severity(None, acceptable=False),
        since=guard.last_transition_time,
        acceptable=False,
    )


def entry_of(cluster: ClusterVersion, version: str, image: str = "") -> ConditionalUpdate | None:
    """Returns the conditional update to this release: found by version, or by digest if only the image is known."""
    for update in cluster.status.conditional_updates:
        by_version = bool(version) and update.release.version == version
        by_image = not version and is_same_image(image, update.release.image)
        if by_version or by_image:
            return update
    return None


def report_of(history: History, source: str, version: str, image: str = "") -> Report | None:
    """Returns the newest stored report for an update from `source` to this release, or None."""
    for report in history.reports:
        same_target = report.target_version == version if version else is_same_image(image, report.target_image)
        if same_target and report.source_version == source:
            return report
    return None


def with_counted_risks(history: History) -> History:
    """Returns `history` in which each report's `risks` are all that counted for its update when it was stored.

    A report itself has only what its target found. The operator adds other risks (`Report.counted`), such as that the
    update service does not offer the update, or that another update is in progress. Those of today do not count.
    """
    reports = (replace(report, risks=report.counted) for report in history.reports)
    return History(history.attempt, tuple(map(with_severities, reports)))


def with_severities(report: Report) -> Report:
    """Returns the report with the severities that views show: a target may not know what the operator refuses."""
    risks = (replace(risk, severity=risk_of_report(risk, report).severity) for risk in report.risks)
    return replace(report, risks=tuple(risks))


def known_risk_names(cluster: ClusterVersion) -> list[str]:
    """Returns the names of all risks that some update of this cluster carries, sorted."""
    risks = [risk for update in cluster.status.conditional_updates for risk in update.risks]
    # What is kept for reference only is carried by no update.
    listed = (
        risk
        for risk in cluster.status.conditional_update_risks
        if all(condition.reason != reasons.OUTDATED for condition in risk.conditions)
    )
    names = {risk.name for risk in (*risks, *listed)}
    return sorted(names.union(*(update.risk_names for update in cluster.status.conditional_updates)))


def objects_of(cluster: ClusterVersion, history: History, name: str) -> tuple[str, ...]:
    """Returns the objects that risk `name` is about now.

    They are those that the requested preflight found; if it found none, those of all preflights from this version.
    """
    source, requested_version = cluster.status.desired.version, requested_preflight(cluster)
    requested = report_of(history, source, *requested_version) if requested_version else None
    by_report = {
        report.preflight_id: [item.text for risk in report.risks if risk.name == name for item in risk.resources]
        for report in history.reports
        if report.source_version == source
    }
    if requested is not None and by_report[requested.preflight_id]:
        return tuple(dict.fromkeys(by_report[requested.preflight_id]))
    return tuple(dict.fromkeys(item for items in by_report.values() for item in items))


def risks_of_update(
    cluster: ClusterVersion,
    entry: ConditionalUpdate | None,
    report: Report | None,
    version: str,
    accepted: Accepted,
    current: bool,
) -> tuple[Risk, ...]:
    """Returns the risks that ClusterVersion carries for the update to `version`, with details of the report."""
    if entry is None:
        return ()
    # Newer API versions keep risks once for all updates, and name them in each update's `riskNames`.
    everywhere = {risk.name: risk for risk in cluster.status.conditional_update_risks}
    own_risks = {risk.name: risk for risk in entry.risks}
    names = dict.fromkeys([*entry.risk_names, *own_risks])
    reported = {risk.name: risk for risk in report.risks} if report else {}
    recommended = find(entry.conditions, "Recommended")
    joined_risks = []
    for name in names:
        # The older API has conditions on the update only, and none on its risks: the risk that has its verdict counts.
        present = [risk for risk in (own_risks.get(name), everywhere.get(name)) if risk is not None]
        if not present:
            continue
        risk = next((risk for risk in present if risk.conditions), present[0])
        verdict, detail = find(risk.conditions, "Applies"), reported.get(name)
        # Without a verdict the update's condition decides, else the report while a requested preflight is complete: the
        # findings of an ended one may no longer hold.
        applies: ConditionStatus = "True" if current and detail and detail.applies == "True" else "Unknown"
        if recommended is not None and recommended.status == "True":
            applies = "False"
        acceptable = lifting.is_acceptable(cluster, version, name, verdict)
        refused = name in _OWN_REFUSALS and not acceptable
        record = accepted.get(name) if acceptable else None
        resources = detail.resources if detail else ()
        joined_risks.append(
            Risk(
                name=name,
                applies=verdict.status if verdict else applies,
                accepted=record is not None,
                # The operator's refusal says more than what the target found on the same subject.
                message=detail.message if detail and not refused else line_for(risk.message, version),
                url=risk.url,
                reason=verdict.reason if verdict else "",
                fix=_remedy_of_refusal(name, risk.message) if refused else detail.remediation if detail else "",
                severity=_severity(detail, acceptable=acceptable),
                from_preflight=reasons.is_preflights(risk),
                since=verdict.last_transition_time if verdict else None,
                resources=resources,
                resources_omitted=detail.resources_omitted if detail else 0,
                because=record.reason if record else "",
                acceptable=acceptable,
                grown=growth(record, {item.text: item.since for item in resources}),
                cause=detail.cause if detail else "",
                lacking=detail.lacking if detail else (),
            )
        )
    return worst_first(joined_risks)


def _severity(reported: ReportedRisk | None, *, acceptable: bool) -> str:
    """Returns the severity of a risk for every view: critical if acceptance does not lift it, else the report's."""
    return "critical" if not acceptable else reported.severity if reported else ""


_ORDER_OF_APPLIES = {"True": 0, "Unknown": 1, "False": 2}


def risk_of_report(risk: ReportedRisk, report: Report, accepted: Acceptance | None = None) -> Risk:
    """Returns a risk of a report that is not in ClusterVersion. `accepted` is its record, None if not accepted.

    Which risks acceptance lifts follows from the operator's rules, whatever ClusterVersion says: it may be older.
    """
    source, target = report.source_version, report.target_version
    acceptable = lifting.lifts(risk.name, risk.applies, source=source, target=target)
    accepted = accepted if acceptable else None
    return Risk(
        name=risk.name,
        applies="True" if risk.applies == "True" else "Unknown",
        accepted=accepted is not None,
        message=risk.message,
        url=risk.url or documentation.page(risk.name),
        reason=risk.reason,
        fix=risk.remediation,
        severity=_severity(risk, acceptable=acceptable),
        from_preflight=True,
        since=report.observed_time,
        resources=risk.resources,
        resources_omitted=risk.resources_omitted,
        because=accepted.reason if accepted else "",
        acceptable=acceptable,
        grown=growth(accepted, {item.text: item.since for item in risk.resources}),
        cause=risk.cause,
        lacking=risk.lacking,
        suppressed_by=SUPPRESS if report.cluster_kind == "Kubernetes" else "",
    )


def _risks_then(report: Report) -> tuple[Risk, ...]:
    """Returns all risks that counted when `report`, that of a preflight that is over, was stored."""
    own_names = {risk.name for risk in report.risks}
    return worst_first(
        replace(
            shown,
            accepted=shown.acceptable and shown.name in report.accepted,
            reason=reasons.OUTDATED,
            from_preflight=shown.name in own_names,
        )
        for shown in (risk_of_report(risk, report) for risk in report.counted)
    )


def risk_of_refusal(name: str, message: str, report: Report) -> Risk:
    """Returns the risk `name` of a guard that refuses the update, found when `report` was made.

    It is for `preflight run`, which evaluates without the operator that would report the risk. It cannot be accepted.
    """
    return Risk(
        name=name,
        applies="True",
        accepted=False,
        message=message,
        url=documentation.page(name),
        reason=reasons.PRECONDITION,
        fix=_remedy_of_refusal(name, message),
        severity=_severity(None, acceptable=False),
        since=report.observed_time,
        acceptable=False,
    )


def worst_first(risks: Iterable[Risk]) -> tuple[Risk, ...]:
    """Returns the risks with those that block the update first, the most severe on top."""
    return tuple(sorted(risks, key=sort_key))


def sort_key(risk: Risk) -> tuple[bool, int, int, str]:
    """Returns the sort key of a risk: blocking risks first, among them those that apply, the most severe on top."""
    return risk.accepted, _ORDER_OF_APPLIES[risk.applies], severity_rank(risk.severity), risk.name


def count_risks(risks: Iterable[Risk]) -> tuple[int, int, int]:
    """Returns how many risks apply, are unknown, and are accepted (of those that apply or are unknown)."""
    relevant = [risk for risk in risks if risk.applies != "False"]
    applying = sum(1 for risk in relevant if risk.open and risk.applies == "True")
    unknown = sum(1 for risk in relevant if risk.open and risk.applies == "Unknown")
    return applying, unknown, sum(1 for risk in relevant if risk.accepted)


def not_recommended(updates: tuple[ConditionalUpdate, ...]) -> list[tuple[ConditionalUpdate, Condition]]:
    """Returns the conditional updates whose Recommended condition is present and not True, each with that condition."""
    pairs = ((update, find(update.conditions, "Recommended")) for update in updates)
    return [(update, condition) for update, condition in pairs if condition and condition.status != "True"]


def worst_code(codes: Iterable[int]) -> int:
    """Returns the worst exit code of several clusters: could not run, then risks apply, then something unknown."""
    distinct = set(codes)
    return next((code for code in (COULD_NOT_RUN, APPLY, UNKNOWN) if code in distinct), EXIT_CLEAR)
