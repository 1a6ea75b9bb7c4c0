"""Views of one stored object through different kinds: other versions, and events.k8s.io's Events.

Custom resources convert by changing apiVersion only (`conversion.strategy: None`). Events are stored as core/v1,
HorizontalPodAutoscalers as autoscaling/v2.
"""

from __future__ import annotations

from typing import Any

from kubesandbox.apiserver.objects import autoscaling_views
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

# core/v1 Event field -> events.k8s.io/v1 Event field
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_FIELDS_BACK = {new: old for old, new in _EVENT_FIELDS.items()}


def is_view(kind: Kind, obj: JSON) -> bool:
    """Returns whether a stored object must be changed before `kind` may serve it."""
    return obj.get("apiVersion") != kind.api_version


def from_stored(kind: Kind, obj: JSON) -> JSON:
    """Returns a stored object as `kind` serves it."""
    if not is_view(kind, obj):
        return obj
    if kind.group == "events.k8s.io":
        obj = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    if kind.api_version == "autoscaling/v1":
        obj = autoscaling_views.as_v1(obj)
    return {**obj, "apiVersion": kind.api_version}


def to_stored(kind: Kind, obj: JSON) -> JSON:
    """Returns an object of `kind` in its storage version."""
    if kind.group == "events.k8s.io":
        obj = {_EVENT_FIELDS_BACK.get(key, key): value for key, value in obj.items()}
        return {**obj, "apiVersion": "v1"}
    if kind.api_version == "autoscaling/v1":
        return {**autoscaling_views.from_v1(obj), "apiVersion": "autoscaling/v2"}
    return obj
