"""Decides what to request from the sync worker, and turns its progress into ClusterVersion's status.

The worker is asked for the release that is worked towards (`goal`), with everything that decides which of its
manifests the cluster gets. Any change of that is another request. Progress that concerns another release is ignored
(docs/reference/upstream.md 6).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from kubekit.api.conditions import Conditions, find
from kubekit.api.meta_v1 import Condition
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.version import parse
from runup.api.config_v1 import CapabilitiesStatus, ClusterVersionStatus, Release
from runup.applying.decide import failure_summary, implicit_capabilities
from runup.applying.decide.progress import ApplyReason, Loading, Problem, Progress, WantedRelease
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import ApplyRelease, LoadRelease, Work
from runup.release.decide import capabilities, inclusion

IMPLICIT = "ImplicitlyEnabledCapabilities"
SLOW = "SlowClusterOperator"
INVALID = "InvalidClusterVersion"
RETRIEVAL = "UpdatePayloadRetrievalFailed"
LOAD_RETRY_AFTER = timedelta(seconds=60)


def enabled_capabilities(view: View) -> capabilities.Capabilities:
    """Returns the cluster's capabilities: those requested, and those once enabled, which can never be disabled."""
    facts, status = view.observed.facts, view.status
    keep = (*status.capabilities.enabled_capabilities, *facts.always_enabled)
    # The FeatureGate's entry for the running version counts, also while another release is applied.
    _, gates = inclusion.feature_set_and_gates(view.observed.feature_gate, facts.release.version)
    return capabilities.enabled_capabilities(view.observed.cluster_version.spec.capabilities, gates, keep)


def filters(view: View, release: Release) -> inclusion.Filters:
    """Returns the filters that select the manifests of `release` for this cluster."""
    facts = view.observed.facts
    feature_set, gates = inclusion.feature_set_and_gates(view.observed.feature_gate, facts.release.version)
    version = parse(release.version)
    return inclusion.Filters(
        exclude_identifier=facts.exclude,
        feature_set=feature_set,
        gates=gates,
        major=version.major if version else None,
        profile=facts.profile,
        capabilities=enabled_capabilities(view),
        overrides=view.observed.cluster_version.spec.overrides,
    )


def wanted_work(view: View) -> WantedRelease:
    """Returns the release that the worker should apply now."""
    current = view.current
    return WantedRelease(
        current.image, current.version, filters(view, current), view.observed.cluster_version.metadata.uid
    )


def work(view: View) -> tuple[Work, ...]:
    """Returns the work to request, empty if the worker does it already. The payload is loaded before all else."""
    progress = view.observed.progress
    # Without the FeatureGate the manifests of another feature set would be applied: what is applied stays as it is.
    if progress is None or not view.current.image or view.observed.feature_gate_error:
        return ()
    wanted_now = wanted_work(view)
    if progress.wanted == wanted_now:
        return ()
    if _needs_loading(view):
        return load_work(view.current, view.observed.loads.get(view.current.image), view.now)
    entries = view.status.history
    if not any(entry.state == "Completed" for entry in entries):
        return (ApplyRelease(wanted_now, ApplyReason.INITIALIZING),)
    is_done = entries[0].state == "Completed" and is_same_image(entries[0].image, view.current.image)
    return (ApplyRelease(wanted_now, ApplyReason.RECONCILING if is_done else ApplyReason.UPDATING),)


def load_work(release: Release, load: Loading | None, now: datetime) -> tuple[Work, ...]:
    """Returns the work of loading `release` if it is due: at first, and again `LOAD_RETRY_AFTER` after a failure."""
    if load is not None and (load.running or load.payload is not None):
        return ()
    # A failure dated in the future is from before the clock was set back: it does not delay the retry.
    fresh = load is not None and load.at is not None and timedelta() <= now - load.at < LOAD_RETRY_AFTER
    return () if fresh else (LoadRelease(release),)


def status_from_progress(
    view: View, status: ClusterVersionStatus, *, invalid: bool
) -> tuple[ClusterVersionStatus, Conditions]:
    """Returns `status` with capabilities, hash and history from the progress, and the conditions to set.

    Without progress it returns `status` unchanged, and no conditions.
    """
    progress = view.observed.progress
    if progress is None:
        return status, ()
    current = _is_current(view, progress)
    known_capabilities = enabled_capabilities(view)
    status = replace(
        status,
        capabilities=CapabilitiesStatus(
            tuple(sorted(known_capabilities.enabled)), tuple(sorted(known_capabilities.known))
        ),
        # An empty hash means that no payload is loaded yet: the status keeps the last one.
        version_hash=(progress.version_hash if current else "") or status.version_hash,
    )
    newest = status.history[0] if status.history else None
    at_newest = newest is not None and is_same_image(newest.image, view.current.image)
    # completionTime is set once; later reconciles of the same release do not move it.
    if newest is not None and at_newest and current and progress.completed and newest.state != "Completed":
        newest = replace(newest, state="Completed", completion_time=view.now)
        status = replace(status, history=(newest, *status.history[1:]))
    problems = _problems_to_report(view, progress)
    summary, now = failure_summary.summarize(problems), view.observed.steady_now or view.now
    verdict = failure_summary.evaluate_problem(summary.problem, now=now) if summary is not None else None
    is_done = newest is not None and newest.state == "Completed" and at_newest
    reconciling = progress.state is ApplyReason.RECONCILING if current else is_done
    version = view.current.version or view.current.image
    available = find(status.conditions, "Available")
    conditions: list[Condition] = []
    # Available says that the payload was applied once; it stays True while another release is applied.
    if current and progress.completed:
        conditions.append(Condition(type="Available", status="True", message=f"Done applying {version}"))
    elif available is None:
        conditions.append(Condition(type="Available", status="False"))
    conditions.append(_failing_condition(summary, verdict, reconciling=reconciling))
    # Objects that are waited for are mentioned behind what Progressing says without them.
    waits = failure_summary.summarize(filter(failure_summary.is_wait, problems))
    awaited = waits.problem if waits is not None and (reconciling or waits != summary) else None
    conditions.append(
        _progressing_condition(
            version,
            summary,
            verdict,
            awaited,
            done=progress if current else None,
            reconciling=reconciling,
            invalid=invalid,
        )
    )
    implicit = Condition(
        type=IMPLICIT, status="False", reason="AsExpected", message="Capabilities match configured spec"
    )
    if known_capabilities.implicit:
        text = f"The following capabilities could not be disabled: {', '.join(sorted(known_capabilities.implicit))}"
        implicit = Condition(type=IMPLICIT, status="True", reason="CapabilitiesImplicitlyEnabled", message=text)
    return status, (*conditions, implicit)


def accept(view: View, status: ClusterVersionStatus, release: Release) -> ClusterVersionStatus:
    """Returns `status` of an accepted update to `release`, with the capabilities that it enables implicitly."""
    load, running = view.observed.loads.get(release.image), view.observed.loads.get(view.current.image)
    if view.observed.progress is None or load is None or load.payload is None:
        return status
    before = running.payload.manifests if running is not None and running.payload is not None else ()
    version = load.payload.metadata.semver
    turned_on = implicit_capabilities.implicit_capabilities_of(
        load.payload.manifests, before, filters(view, view.current), version.major
    )
    known_capabilities = enabled_capabilities(view)
    reported = CapabilitiesStatus(
        tuple(sorted(known_capabilities.enabled | turned_on)), tuple(sorted(known_capabilities.known))
    )
    return replace(status, capabilities=reported)


def next_look(view: View) -> float | None:
    """Returns the seconds until the conditions change by the passage of time alone; None if they do not."""
    progress = view.observed.progress
    summary = failure_summary.summarize(_problems_to_report(view, progress)) if progress is not None else None
    now = view.observed.steady_now or view.now
    next_change = failure_summary.evaluate_problem(summary.problem, now=now).next_look if summary is not None else None
    return max((next_change - now).total_seconds(), 1.0) if next_change is not None else None


def _needs_loading(view: View) -> bool:
    """Reports whether the current release's payload is neither the operator's own nor loaded."""
    image = view.current.image
    if is_same_image(image, view.observed.facts.release.image):
        return False
    load = view.observed.loads.get(image)
    return load is None or load.payload is None


def _is_current(view: View, progress: Progress) -> bool:
    return progress.wanted is not None and is_same_image(progress.wanted.image, view.current.image)


def _problems_to_report(view: View, progress: Progress) -> tuple[Problem, ...]:
    """Returns the problems of the run, or of loading the release while that has not begun."""
    if _is_current(view, progress):
        return progress.problems
    if why := view.observed.feature_gate_error:
        text = f"FeatureGate cluster cannot be read, so no manifest is applied until it can: {why}"
        return (Problem(reason="FeatureGateUnreadable", message=text),)
    load = view.observed.loads.get(view.current.image)
    if load is None or not load.error or not _needs_loading(view):
        return ()
    return (Problem(reason=RETRIEVAL, message=f"Unable to download and prepare the update: {load.error}"),)


def _failing_condition(
    summary: failure_summary.Summary | None, verdict: failure_summary.Verdict | None, *, reconciling: bool
) -> Condition:
    """Returns Failing, as the Cluster Version Operator words it; without a time."""
    # Waiting for ClusterOperators is no failure of an update that still makes progress.
    reported = failure_summary.without_progress(summary) if summary is not None and not reconciling else summary
    if reported is None or verdict is None:
        return Condition(type="Failing", status="False")
    if not verdict.progressing:
        problem = reported.problem
        return Condition(type="Failing", status="True", reason=problem.reason, message=problem.message)
    # A slow ClusterOperator may recover or not, so Failing is Unknown rather than True (OCPBUGS-23514).
    if verdict.slow:
        return Condition(type="Failing", status="Unknown", reason=SLOW, message=verdict.text)
    return Condition(type="Failing", status="False")


def _progressing_condition(
    version: str,
    summary: failure_summary.Summary | None,
    verdict: failure_summary.Verdict | None,
    awaited: Problem | None,
    *,
    done: Progress | None,
    reconciling: bool,
    invalid: bool,
) -> Condition:
    """Returns Progressing: False while the cluster stays at `version`, True while it is updated to it."""
    reason = ""
    if summary is not None and verdict is not None and not verdict.progressing:
        reason = summary.problem.reason
        short = failure_summary.summary_of(summary.problem)
        text = (
            f"Error while reconciling {version}: {short}"
            if reconciling
            else f"Unable to apply {version}: {verdict.text or short}"
        )
    elif invalid:
        reason = INVALID
        text = f"{'Stopped at' if reconciling else 'Reconciling'} {version}: the cluster version is invalid"
    elif reconciling:
        reason = awaited.reason if awaited is not None else ""
        text = f"Cluster version is {version}" + (f", {awaited.message}" if awaited is not None else "")
    else:
        reason = summary.problem.reason if summary is not None else ""
        waits = (verdict.text if verdict is not None else "", awaited.message if awaited is not None else "")
        waiting = "; ".join(filter(None, waits))
        text = f"Working towards {version}"
        if done is not None and done.done:
            percent = done.done * 100 // max(done.total, 1)
            text += f": {done.done} of {done.total} done ({percent}% complete)"
            text += f", {waiting}" if waiting else ""
        elif waiting:
            text += f": {waiting}"
    return Condition(type="Progressing", status="False" if reconciling else "True", reason=reason, message=text)
