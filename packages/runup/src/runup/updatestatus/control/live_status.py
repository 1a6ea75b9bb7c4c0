"""Reads the status of a live cluster: the controller's UpdateStatus if there is one, else one that is computed here.

Computing it takes more requests, and start times that nobody recorded stay unknown; both are printed through the same
object. A report that nobody has confirmed for too long (`freshness`) is not believed: the cluster itself is read, and
if it may not be, the report is shown as what it is. A kind that may not be read is an `Unreadable` in the snapshot, and
so a line of the report; so is a kind that the server fails to return, if the command reads only once. Only without
ClusterVersion and operators is there no report at all.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, Wire
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Forbidden, NotFound, ServerError
from kubekit.lang.gotext import nanoseconds
from runup.api.update_v1alpha1 import NAME, UpdateStatus
from runup.process import clusterversion_client as clusters
from runup.updatestatus.control.report_age import age_of, age_sentence, read_instead, with_ago, with_current_condition
from runup.updatestatus.control.status_reading import EPOCH, StatusReading, alerts_note
from runup.updatestatus.decide.freshness import NAMESPACE, OLD, Freshness
from runup.updatestatus.decide.read_status import report as read_report
from runup.updatestatus.decide.unreadable import Unreadable

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.updatestatus.decide.report_rows import Report

JSON = dict[str, Any]
Refusals = tuple[type[ApiError], ...]

# Errors that become a line of the report instead of ending the command.
_REFUSED = (Forbidden, NotFound)


def read(
    client: SyncClient, clock: Callable[[], datetime], *, whole: bool = False, following: bool = False
) -> StatusReading:
    """Returns the status now; `whole` asks for every node, which a large cluster's object does not hold.

    With `following`, a server error for one kind is raised, because the next read follows soon: otherwise a kind that
    is briefly missing would look like a problem that is over. The time is taken after the server has answered, since it
    may be the server's.
    """
    tolerated = _REFUSED if following else (*_REFUSED, ServerError)
    stored_status = written_status(client, tolerated)
    if stored_status is None:
        return _compute_status(client, clock(), tolerated)
    age = age_of(client, clock, tolerated)
    now = clock()
    report = read_report(stored_status)
    if age.state != OLD and is_outdated(client, report, now):
        age = Freshness(OLD, age.confirmed_at, _OUTDATED)
    if age.state != OLD and not (whole and _is_incomplete(stored_status)):
        doubt = age_sentence(age)
        return StatusReading(
            with_current_condition(stored_status, age, now),
            nanoseconds(now - EPOCH),
            _notes(doubt),
            alerts_problem=_alerts_problem(stored_status),
            read=report,
            doubt=doubt,
        )
    if age.state != OLD:
        return _compute_status(client, now, tolerated, stored_status)
    try:
        computed = _compute_status(client, now, tolerated, stored_status)
    except Forbidden as error:
        doubt = f"{age_sentence(age)}. The cluster itself may not be read ({error.message}), so the old report is shown"
        computed = StatusReading(with_current_condition(stored_status, age, now), nanoseconds(now - EPOCH), read=report)
    else:
        doubt = f"{age_sentence(age)}. So the cluster itself was read; see whether the controller runs in {NAMESPACE}"
        computed = replace(computed, obj=read_instead(computed.obj, doubt, age, now))
    return replace(computed, notes=_notes(with_ago(doubt, age, now)), doubt=doubt)


def _notes(problem_text: str) -> tuple[str, ...]:
    return (f"warning: {problem_text}\n",) if problem_text else ()


def _compute_status(
    client: SyncClient, now: datetime, tolerated: Refusals, stored_status: JSON | None = None
) -> StatusReading:
    """Returns the status computed from the cluster's own objects; raises what reading ClusterVersion raises.

    Times that the cluster does not record are taken from `stored_status`, the controller's object.
    """
    # Importing the modules that compute a report takes half as long as starting Python, and most clusters have one.
    from runup.updatestatus.control.compute_status import complete_status
    from runup.updatestatus.control.read_cluster import observe

    snapshot = observe(client, now, tolerated)
    alerts = snapshot.alerts
    problem = alerts_note(alerts.why) if isinstance(alerts, Unreadable) else ""
    now_ns = nanoseconds(now - EPOCH)
    return StatusReading(complete_status(snapshot, now_ns, stored_status=stored_status), now_ns, alerts_problem=problem)


_OUTDATED = "it is older than ClusterVersion"
# A controller that was restarted, or that handles many changes, lags a few seconds behind: that is not outdated.
_BEHIND = timedelta(seconds=60)


# Only the fields of ClusterVersion that are compared: building the whole type takes a seventh of Python's start.
class _Entry(Wire, frozen=True):
    started_time: datetime


class _Status(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()
    history: tuple[_Entry, ...] = ()


class _ClusterVersion(Wire, frozen=True):
    status: _Status = _Status()


def is_outdated(client: SyncClient, report: Report, now: datetime) -> bool:
    """Reports whether ClusterVersion has contradicted the report for a minute, so that no controller maintains it.

    They can differ since Progressing changed or the newest entry of the history began, whichever is later.
    """
    try:
        document = client.send(calls.get_raw(clusters.CLUSTER_VERSION, clusters.NAME))
    except (NotFound, Forbidden):
        return False
    try:
        cluster = codec.convert(_ClusterVersion, document)
    except codec.DecodeError as error:
        raise codec.DecodeError(f"ClusterVersion {clusters.NAME} cannot be read: {error}") from error
    progressing = find(cluster.status.conditions, "Progressing")
    changed_at = progressing.last_transition_time if progressing else None
    insight = report.cluster_version
    if progressing is None or changed_at is None or report.updating is None or insight is None:
        return False
    started = insight.started_at
    if cluster.status.history:
        started = cluster.status.history[0].started_time
        # Another target during an update is a new entry, while Progressing stays as it is.
        changed_at = max(changed_at, started)
    differs = report.updating.status != progressing.status or insight.started_at != started
    return differs and now - changed_at >= _BEHIND


def written_status(client: SyncClient, refused: Refusals = _REFUSED) -> JSON | None:
    """Returns the controller's object, or None: no such API, no right to read it, or nothing written yet."""
    try:
        status_object = client.send(calls.get_raw(resource_of(UpdateStatus), NAME))
    except refused:
        return None
    return status_object if status_object.get("status") else None


def _condition(obj: JSON, type_: str) -> JSON:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next(
        (condition for condition in conditions if isinstance(condition, dict) and condition.get("type") == type_), {}
    )


def _is_incomplete(obj: JSON) -> bool:
    return _condition(obj, "Complete").get("status") == "False"


def _alerts_problem(obj: JSON) -> str:
    reachable = _condition(obj, "AlertsReachable")
    is_reachable = reachable.get("status", "True") == "True"
    return "" if is_reachable else alerts_note(str(reachable.get("message", "")))
