"""Decides what is written to the object of an updater: the version into a field, or an annotation. Pure.

Field writes the version with server-side apply and without force, so that a field of another manager is never replaced.
RemoveAnnotation removes the annotation with which a Cluster of Cluster API waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kubekit.api.scheme import Resource
from kubekit.lang.text import timestamp
from runup.api.update_policy_v1alpha1 import ClusterReference, ObjectField, UpdateRun
from runup.rollout.decide.gates.gate import CLOSED, OPEN, UNKNOWN, Gate
from runup.rollout.decide.plain_cluster import Request, is_at, minors_between
from runup.rollout.decide.run_steps import FINISHED

NAME = "updater"
FIELD_MANAGER = "runup-update"
# https://pkg.go.dev/sigs.k8s.io/cluster-api/api/core/v1beta2#BeforeClusterUpgradeHookAnnotationPrefix
ANNOTATION = "before-upgrade.hook.cluster.cluster.x-k8s.io/runup"
# After somebody else replaced what was written, the next write is this much later.
WRITE_AGAIN_AFTER = timedelta(hours=1)
# When this controller wrote the field: it is kept with the object, so that a crash does not make a second write.
WRITTEN = "update.runup.dev/written"
# Marks a finished run after which the annotation was put back.
PUT_BACK = "update.runup.dev/annotation-put-back"


class UpdaterObject(msgspec.Struct, frozen=True, kw_only=True):
    """The object of an updater as it was read: a field's value and managers, or an annotation.

    `written` is when this controller wrote the field, `problem` why the object could not be read, and `wanted` the
    version that a Cluster waits for.
    """

    text: str
    resource: Resource | None = None
    value: str = ""
    written: datetime | None = None
    managers: tuple[str, ...] = ()
    annotated: bool = False
    wanted: str = ""
    resource_version: str = ""
    problem: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """The other managers of the field."""
        return tuple(each for each in self.managers if each != FIELD_MANAGER)


def text_of(target: ObjectField | ClusterReference) -> str:
    """Returns the name of an updater's object as it is shown."""
    kind = target.kind if isinstance(target, ObjectField) else "Cluster"
    return f"{kind} {target.namespace}/{target.name}" if target.namespace else f"{kind} {target.name}"


def field_of(target: ObjectField, obj: dict[str, Any]) -> UpdaterObject:
    """Returns the field of an object. A value that is not a text is a problem, because it would be replaced."""
    names = target.path.strip(".").split(".")
    value: Any = obj
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    problem = "" if value is None or isinstance(value, str) else f"{target.path} is not a text"
    metadata = obj.get("metadata", {})
    return UpdaterObject(
        text=text_of(target),
        value=value if isinstance(value, str) else "",
        written=_time_of((metadata.get("annotations") or {}).get(WRITTEN)),
        managers=_managers(metadata.get("managedFields") or (), names),
        resource_version=str(metadata.get("resourceVersion", "")),
        problem=problem,
    )


def _time_of(text: Any) -> datetime | None:
    """Returns a time that `apply_body` wrote; None if it is not one."""
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None


def _managers(entries: Sequence[dict[str, Any]], names: Sequence[str]) -> tuple[str, ...]:
    found = []
    for entry in entries:
        fields: Any = entry.get("fieldsV1") or {}
        for name in names:
            fields = fields.get(f"f:{name}") if isinstance(fields, dict) else None
        if fields is not None and not entry.get("subresource"):
            found.append(str(entry.get("manager", "")))
    return tuple(dict.fromkeys(found))


def cluster_of(target: ClusterReference, obj: dict[str, Any]) -> UpdaterObject:
    """Returns the annotation and the version of a Cluster. Only a Cluster with a topology waits for annotations."""
    metadata, topology = obj.get("metadata", {}), (obj.get("spec") or {}).get("topology") or {}
    wanted = str(topology.get("version") or "")
    return UpdaterObject(
        text=text_of(target),
        annotated=ANNOTATION in (metadata.get("annotations") or {}),
        wanted=wanted,
        resource_version=str(metadata.get("resourceVersion", "")),
        problem="" if wanted else "it has no spec.topology.version, so no annotation holds its update",
    )


def apply_body(target: ObjectField, version: str, resource_version: str, now: datetime) -> dict[str, Any]:
    """Returns the object to apply: its identity, the resourceVersion that was evaluated, the field, and the time."""
    value: Any = version
    for name in reversed(target.path.strip(".").split(".")):
        value = {name: value}
    namespace = {"namespace": target.namespace} if target.namespace else {}
    metadata: dict[str, Any] = {"name": target.name, **namespace, "resourceVersion": resource_version}
    metadata["annotations"] = {WRITTEN: timestamp(now)}
    return {"apiVersion": target.api_version, "kind": target.kind, "metadata": metadata, **value}


def request_of(run: UpdateRun, found: UpdaterObject | None) -> Request:
    """Returns what the updater's object requests, as the run sees it. None: the run has no such object."""
    if found is None or found.problem:
        return Request(resource_version=found.resource_version if found is not None else "")
    target = run.spec.target.version
    if run.spec.actuator == "RemoveAnnotation":
        # After the removal only the run's intent shows who removed the annotation.
        was_ours = run.status.intent is not None and not found.annotated
        return Request(is_ours=was_ours, resource_version=found.resource_version)
    is_ours = found.value == target and FIELD_MANAGER in found.managers
    other = "" if is_ours else found.value or "no version"
    return Request(is_ours=is_ours, other=other, resource_version=found.resource_version)


def updater_gate(
    run: UpdateRun, found: UpdaterObject | None, runs: Sequence[UpdateRun], *, running: str, now: datetime
) -> Gate | None:
    """Returns the gate of the updater's object: it can be written, and nobody else has requested another version.

    `found` is None if the run writes no such object; `running` is the version of the API server.
    """
    if found is None:
        return None
    if found.problem:
        text = f"{found.text} cannot be written: {found.problem}."
        return Gate(name=NAME, state=UNKNOWN, reason="ActuatorMissing", message=text)
    reason, message, until = "", "", None
    target, is_field = run.spec.target.version, run.spec.actuator == "Field"
    written = _last_write(run, found, runs) if is_field and FIELD_MANAGER not in found.managers else None
    if is_field and found.value != target and found.others:
        held = found.value or "an empty text"
        message = f"{found.text}: {', '.join(found.others)} manages {run_path(run)}, which is {held}."
        reason = "OtherUpdate"
    elif is_field and found.value != target and written is not None and now < written + WRITE_AGAIN_AFTER:
        message = f"{found.text}: {run_path(run)} was written at {timestamp(written)}, and somebody else removed it."
        reason, until = "OtherUpdate", written + WRITE_AGAIN_AFTER
    elif not is_field and not found.annotated and run.status.intent is None:
        message = f"{found.text} does not have the annotation {ANNOTATION}, so nothing holds its update."
        reason = "OtherUpdate"
    elif not is_field and not is_at(found.wanted, target):
        message = f"{found.text} has spec.topology.version {found.wanted}, not {target}."
        reason = "OtherUpdate"
    elif not is_field and (minors := minors_between(running, target)) > 1:
        message = f"{target} is {minors} minor versions ahead of {running}, and the annotation holds only the first."
        reason = "FirstHopOnly"
    if reason:
        return Gate(name=NAME, state=CLOSED, reason=reason, message=message, until=until)
    return Gate(name=NAME, state=OPEN, reason="Writable", message=f"{found.text} can be written.")


def run_path(run: UpdateRun) -> str:
    """Returns the path of the field that the run writes."""
    return run.spec.field.path if run.spec.field is not None else ""


def _last_write(run: UpdateRun, found: UpdaterObject, runs: Sequence[UpdateRun]) -> datetime | None:
    """Returns when a run last wrote the field: as the object says, or as earlier runs do."""
    earlier = [each.status.started for each in runs if each.spec.field == run.spec.field]
    return max((time for time in (found.written, *earlier) if time is not None), default=None)


def to_put_back(runs: Sequence[UpdateRun]) -> UpdateRun | None:
    """Returns the finished run whose annotation is not put back yet; None while another run uses the Cluster."""
    last = next((run for run in reversed(runs) if run.spec.actuator == "RemoveAnnotation"), None)
    if last is None or last.spec.cluster is None or last.status.started is None:
        return None
    return last if last.status.step in FINISHED and PUT_BACK not in last.metadata.annotations else None
