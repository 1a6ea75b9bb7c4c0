"""The reports that preflights in the cluster leave: ConfigMap `preflight-history` in their own namespace.

Its entries are those of the managing operator's record (`stored_reports`), with the same limits. Several runs may add
to it at once, so it is changed by merge patches that carry the resourceVersion they were decided on. An annotation says
what became of the last scheduled run.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Wire
from kubekit.lang.text import cut, escape_in_json, printable
from runup.preflight.decide import stored_reports
from runup.preflight.decide.cluster_run import NAMESPACE, PART_OF, REPORTS_LABEL
from runup.report.changes import Change, changes
from runup.report.report import Report

NAME = stored_reports.NAME
LAST_SCHEDULED_ANNOTATION = "preflight.runup.dev/last-scheduled"
_MAX_ERROR_BYTES = 2048
_MAX_NEW_NAMES = 200
# How many grown risks the annotation names, and how many objects of each.
_MAX_GROWN, _MAX_OBJECTS = 50, 10

JSON = dict[str, Any]


class GrownRisk(Wire, frozen=True, kw_only=True):
    """A risk that has further objects; `more` counts those that are not named."""

    name: str
    objects: tuple[str, ...] = ()
    more: int = 0


class LastScheduled(Wire, frozen=True, kw_only=True):
    """The last scheduled run and its result. `new` and `grown` are the risks that it found and an earlier one did not.

    `error` says why the run has no result: then all reports are of earlier runs.
    """

    id: str = ""
    time: datetime | None = None
    target_version: str = ""
    risks: int = 0
    new: tuple[str, ...] = ()
    grown: tuple[GrownRisk, ...] = ()
    error: str = ""

    @property
    def news(self) -> tuple[str, ...]:
        """The names of the risks that are new or have grown."""
        return (*self.new, *(risk.name for risk in self.grown))


def empty_config_map() -> JSON:
    """Returns the ConfigMap as it is created, with the label by which other programs find it."""
    labels = PART_OF | stored_reports.APP_LABELS | {REPORTS_LABEL: "true"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
    }


def with_report(config_map: ConfigMap, report: Report) -> JSON:
    """Returns the merge patch that adds a report to `config_map`, and removes reports that have no room next to it.

    A report of a failed run is not added: the risks that an earlier run found still count.
    """
    if report.execution_status != "completed":
        return {}
    history = stored_reports.with_report(stored_reports.read(config_map), report, even_if_only_newer=True)
    new_data: dict[str, str] = stored_reports.config_map(history, NAMESPACE)["data"]
    changed: dict[str, str | None] = {key: text for key, text in new_data.items() if config_map.data.get(key) != text}
    removed_keys = dict.fromkeys(key for key in config_map.data if key not in new_data)
    return _versioned_patch(config_map, {"data": changed | removed_keys})


def with_scheduled(config_map: ConfigMap, report: Report, now: datetime) -> tuple[JSON, LastScheduled]:
    """Returns the merge patch for the report of a scheduled run, and the record of the run."""
    completed = report.execution_status == "completed"
    found = changes_since(config_map, report) if completed else ()
    last_run = LastScheduled(
        id=report.preflight_id,
        time=now,
        target_version=report.target_version,
        risks=len(report.risks),
        new=tuple(change.risk for change in found if change.whole)[:_MAX_NEW_NAMES],
        grown=tuple(
            GrownRisk(
                name=change.risk,
                objects=change.objects[:_MAX_OBJECTS],
                more=change.more + max(len(change.objects) - _MAX_OBJECTS, 0),
            )
            for change in found
            if not change.whole
        )[:_MAX_GROWN],
        error="" if completed else cut(printable(report.message or "its checks failed"), _MAX_ERROR_BYTES),
    )
    note = {"annotations": {LAST_SCHEDULED_ANNOTATION: escape_in_json(codec.encode(last_run).decode())}}
    patch = with_report(config_map, report) or _versioned_patch(config_map, {})
    return patch | {"metadata": patch["metadata"] | note}, last_run


def changes_since(config_map: ConfigMap, report: Report) -> tuple[Change, ...]:
    """Returns the report's risks that are new or have grown since a kept report; without one, all are new.

    That is the newest report of the same target. If there is none, it is the newest of any target: a user who follows a
    channel sees what a newer release brings.
    """
    kept = stored_reports.read(config_map).reports
    same_target = (old for old in kept if old.target_version == report.target_version)
    before = next(same_target, kept[0] if kept else None)
    return changes(report.risks, {risk.name: risk for risk in before.risks} if before else {})


def last_scheduled(config_map: ConfigMap | None) -> LastScheduled | None:
    """Returns what became of the last scheduled run; None if there was none, or its note cannot be read."""
    text = config_map.metadata.annotations.get(LAST_SCHEDULED_ANNOTATION) if config_map is not None else None
    if text is None:
        return None
    try:
        last_run = codec.decode(LastScheduled, text)
    except codec.DecodeError:
        return None
    naive = last_run.time is not None and last_run.time.utcoffset() is None
    return None if naive else last_run


def _versioned_patch(config_map: ConfigMap, content: JSON) -> JSON:
    # The server answers 409 if the ConfigMap was changed since it was read.
    return {"metadata": {"resourceVersion": config_map.metadata.resource_version}} | content
