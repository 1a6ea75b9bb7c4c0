"""Assembles what the gates are evaluated on from the objects of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node
from kubekit.error_types import InputError
from kubekit.lang.oc_pull_spec import is_same_image
from runup.advice.decide.acceptance import Accepted, accepted_names, accepted_without_records
from runup.advice.decide.update_in_progress import pending_update
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import ALWAYS, RunAcceptance, UpdateCalendar, UpdatePolicySpec
from runup.preflight.decide.findings import Findings, findings_of_report, findings_of_target, report_of
from runup.preflight.decide.stored_reports import History
from runup.rehearse.decide.update_forecast import Forecast
from runup.rollout.decide import calendar
from runup.rollout.decide.calendar import Calendar
from runup.rollout.decide.expressions import Lists, evaluate_expressions
from runup.rollout.decide.gates.cluster import health_of
from runup.rollout.decide.gates.gate import Gate
from runup.rollout.decide.gates.observed import Approvals, Holds, Observed, Offer, Wanted
from runup.rollout.decide.plain_cluster import PlainCluster, release_of, reports_for
from runup.rollout.decide.pools import Pools
from runup.rollout.decide.run_acceptances import accept, inherited
from runup.updatestatus.decide.alerts import Alert, Unreadable

# The update service may fail to answer for this long before its last answer stops counting.
GRAPH_COUNTS_FOR = timedelta(hours=1)
RIGHTS_NOT_READ = "the rights of the controller were not read"
NO_APPROVALS = Approvals(unverified="approvals are given to an UpdateRun")


class ClusterObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one cluster; `unreadable` says which of them could not be read, and why.

    `lists` are the objects that health expressions read. `why_pools_unknown`: why `pools` is not complete. `may_pause`
    is the answer whether the controller may pause pools, or why that is not known. `plain` has the versions of a
    cluster without a ClusterVersion, which `cluster` then describes.
    """

    cluster: ClusterVersion
    history: History = History()
    accepted: Accepted | None = None
    operators: Sequence[ClusterOperator] = ()
    pools: Sequence[MachineConfigPool] = ()
    nodes: Sequence[Node] = ()
    alerts: tuple[Alert, ...] | Unreadable
    forecast: Forecast | str
    unreadable: tuple[str, ...] = ()
    lists: Lists = {}
    why_pools_unknown: str = ""
    may_pause: bool | str = RIGHTS_NOT_READ
    plain: PlainCluster | None = None

    @property
    def known_pools(self) -> Pools:
        """The pools, or the reason why they are not known."""
        return self.why_pools_unknown or self.pools


def read_calendars(
    names: Sequence[str], sources: Sequence[UpdateCalendar]
) -> tuple[tuple[Calendar, ...], tuple[str, ...]]:
    """Returns the calendars that a policy names, and why others of them cannot be used."""
    by_name = {source.metadata.name: source for source in sources}
    calendars, errors = [], []
    for name in names:
        if name == ALWAYS:
            if len(names) > 1:
                errors.append(f"{ALWAYS} must be the only entry of spec.calendars")
        elif name not in by_name:
            errors.append(f"calendar {name} does not exist")
        else:
            try:
                calendars.append(calendar.read(by_name[name]))
            except InputError as error:
                errors.append(error.message)
    return tuple(calendars), tuple(errors)


def offer_of(cluster: ClusterVersion, version: str, now: datetime) -> Offer:
    """Returns whether the update service offers `version`, and as which image."""
    listed = [release for release in cluster.status.listed_updates() if release.version == version]
    retrieved = find(cluster.status.conditions, "RetrievedUpdates")
    answers = retrieved is not None and retrieved.status == "True"
    since = retrieved.last_transition_time if retrieved is not None else None
    if not answers and (since is None or now - since > GRAPH_COUNTS_FOR):
        why = retrieved.message if retrieved is not None and retrieved.message else "no answer is known"
        return Offer(why_unknown=why)
    if cluster.status.available_updates is None and not listed:
        return Offer(why_unknown="the update service has not answered yet")
    return Offer(image=listed[0].image if listed else "")


def observe(
    objects: ClusterObjects,
    policy: UpdatePolicySpec,
    calendars: Sequence[UpdateCalendar],
    now: datetime,
    *,
    version: str,
    image: str = "",
    approvals: Approvals = NO_APPROVALS,
    holds: Holds | None = None,
    own_pauses: Mapping[str, datetime] | None = None,
    hop_digests: Sequence[str] = (),
    accepted_since: datetime | None = None,
    acceptances: Sequence[RunAcceptance] = (),
    updater: Gate | None = None,
) -> Observed:
    """Returns the values on which the gates of an update to `version` are evaluated.

    `image` is that of a run. Without one it is what the policy names, or what the update service offers. `own_pauses`
    are the pools that the run keeps paused, `hop_digests` the digests of its path, and
    `acceptances` its own ones. The cluster's acceptances count if they were made at or after `accepted_since`.
    """
    cluster, history = objects.cluster, objects.history
    if objects.plain is not None:
        history = reports_for(history, objects.plain, version)
        offer = Offer(image=release_of(version).image, is_named=True)
    else:
        offer = offer_of(cluster, version, now)
    named = policy.target.image if policy.target.follow == "Exact" else ""
    image = image or named or offer.image
    source = cluster.status.desired.version
    report = report_of(history, source, version, image)
    accepted = objects.accepted if objects.accepted is not None else accepted_without_records(cluster)
    accepted = inherited(accepted, accepted_since)
    findings: Findings | None
    if objects.plain is None:
        findings = accept(findings_of_target(cluster, history, version, image, accepted=accepted), acceptances)
    else:
        # The report of a Job: no operator keeps it up to date, and its age alone counts.
        findings = accept(findings_of_report(report), acceptances) if report is not None else None
    parsed, errors = read_calendars(policy.calendars, calendars)
    health = health_of(cluster if objects.plain is None else None, objects.operators, objects.pools, objects.nodes)
    if policy.gates.health.expressions:
        found = evaluate_expressions(policy.gates.health.expressions, objects.lists, now)
        health = replace(
            health, problems=(*health.problems, *found.problems), unknown=(*health.unknown, *found.unknown)
        )
    unreadable = "; ".join(objects.unreadable)
    pending = pending_update(cluster)
    ends = {name: each.until for name, each in accepted.items() if each.until is not None}
    ends |= {each.name: each.until for each in acceptances if each.until is not None}
    return Observed(
        wanted=Wanted(version=version, image=image, source=source),
        gates=policy.gates,
        target=policy.target,
        offer=offer,
        findings=findings if findings is not None and findings.known else None,
        # A name without a record counts, so the names that are missing have ended.
        ended_acceptances=accepted_names(cluster) - set(accepted) - {each.name for each in acceptances},
        acceptance_ends=ends,
        run_acceptances=tuple(each.name for each in acceptances),
        report_image=report.target_image if report is not None else "",
        health=unreadable or health,
        alerts=objects.alerts,
        forecast=objects.forecast,
        approvals=approvals,
        holds=replace(
            holds or Holds(),
            paused=policy.paused,
            paused_until=policy.paused_until,
            pause_reason=policy.pause_reason,
            other_request="" if pending in ("", version) or is_same_image(pending, image) else pending,
        ),
        calendar_names=policy.calendars,
        calendars=parsed,
        calendar_errors=errors,
        # Another updater does not wait until pools are paused.
        pools_when=policy.pools.when if policy.actuator == "ClusterVersion" else "Together",
        own_pauses=dict(own_pauses or {}),
        hop_digests=tuple(hop_digests),
        may_pause=objects.may_pause is True,
        why_pools_unknown=objects.why_pools_unknown
        or ("" if isinstance(objects.may_pause, bool) else objects.may_pause),
        updater=updater,
    )
