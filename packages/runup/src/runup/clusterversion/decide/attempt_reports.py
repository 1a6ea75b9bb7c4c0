"""Decides which reports of preflights are stored, and which targets' findings count.

In: the view, with the stored reports and the running one. Out: the history to be stored, and the checked targets whose
risks ClusterVersion gets.
"""

from __future__ import annotations

from msgspec.structs import replace as with_fields

from kubekit.lang.pullspec import is_same_image
from kubekit.lang.version import parse
from runup.advice.decide.candidates import JudgedRisk
from runup.api.config_v1 import Release
from runup.clusterversion.decide import assemble
from runup.clusterversion.decide.preflight_case import PreflightCase, target_of, was_waived
from runup.clusterversion.decide.target_release import same_release
from runup.clusterversion.decide.view import View
from runup.preflight.decide import published_risks
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.outcome import usable_report
from runup.preflight.decide.published_risks import CheckedTarget
from runup.preflight.decide.stored_reports import History
from runup.report.report import Report


def with_last_report(view: View) -> History:
    """Returns the history with the running attempt's newest report, whose time from now on dates the findings."""
    attempt = view.history.attempt
    report = usable_report(attempt, view.observed.report)[0] if attempt is not None else None
    # A partial report would replace complete findings.
    if report is None or report.execution_status != "completed":
        return view.history
    assert attempt is not None
    # The request that ended it may accept other risks, or come from another release: what counted before was stored.
    stored = next((report for report in view.history.reports if report.preflight_id == attempt.id), None)
    if stored is not None:
        waived = stored.signature_waived or was_waived(view)
        last = with_fields(report, others=stored.others, accepted=stored.accepted, signature_waived=waived)
    else:
        last = with_fields(report, signature_waived=was_waived(view))
        last = with_others(view, last, applicable_risks(view, attempt, last))
    return histories.with_report(view.history, last, even_if_only_newer=True)


def applicable_risks(view: View, attempt: Attempt, report: Report) -> tuple[JudgedRisk, ...]:
    """Returns the risks of an update to the target of `attempt`, from every source, that apply or are unknown."""
    checked = CheckedTarget(target_of(attempt), attempt.source_version, report, waived=report.signature_waived)
    return assemble.applicable_risks(view, checked)


def with_others(view: View, report: Report, risks: tuple[JudgedRisk, ...]) -> Report:
    """Returns `report` as it is stored: with the risks that others found, and the risks that are accepted now.

    So later changes of the cluster do not change it. `risks` are those of `applicable_risks`.
    """
    own_names = {risk.name for risk in report.risks}
    return with_fields(
        report,
        others=tuple(
            published_risks.as_reported(risk, report.target_version) for risk in risks if risk.name not in own_names
        ),
        accepted=tuple(risk.name for risk in risks if risk.accepted(view.accepted)),
    )


def with_kept_targets(case: PreflightCase, checked: CheckedTarget) -> tuple[CheckedTarget, ...]:
    """Returns `checked`, then the other targets whose dated findings count."""
    return (checked, *kept_targets(case.view, case.view.history, case.target))


def kept_targets(view: View, history: History, wanted_release: Release | None) -> tuple[CheckedTarget, ...]:
    """Returns the dated findings of ended preflights of targets that are still ahead, one for each target.

    Source: docs/decisions/0072 D7, D24; openshift/enhancements#1930, "Upgrading FROM a cluster with preflight support".
    """
    targets: list[CheckedTarget] = []
    for report in history.reports:
        release = Release(version=report.target_version, image=report.target_image)
        if not release.image or not _is_still_ahead(view, report):
            continue
        # The same target may have been checked from several releases: the newest findings count.
        if any(same_release(target.release, release) for target in targets):
            continue
        if wanted_release is not None and (release.version, release.image) == (
            wanted_release.version,
            wanted_release.image,
        ):
            continue
        targets.append(CheckedTarget(release, report.source_version, report, ended=True))
    return tuple(targets[: histories.MAX_REPORTS - (wanted_release is not None)])


def _is_still_ahead(view: View, report: Report) -> bool:
    """Returns whether the report's target is yet to be reached from the release that runs."""
    current_version, target_version = parse(view.current.version), parse(report.target_version)
    if current_version is None or target_version is None or current_version == target_version:
        # Another image of the running version is ahead until the cluster runs that.
        other = not is_same_image(report.target_image, view.current.image)
        return report.source_version == view.current.version and other
    return target_version > current_version
