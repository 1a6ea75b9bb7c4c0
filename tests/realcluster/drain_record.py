"""What became of the pods of a namespace, in the order in which the API server did it: its audit log, read.

Each line is a request that changed something: an eviction asked for and granted or refused, a pod made, placed, found
ready or gone, and what the scheduler said about one that has no place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

JSON = dict[str, Any]
# The names of pods that a controller makes, and what the scheduler said about them, are in the answers alone.
RULES: tuple[JSON, ...] = (
    {
        "level": "RequestResponse",
        "omitManagedFields": True,
        "verbs": ["create", "delete", "patch", "update"],
        "resources": [
            {"group": "", "resources": ["pods", "pods/eviction", "pods/binding", "pods/status"]},
            {"group": "", "resources": ["nodes"]},
        ],
    },
)
"""Rules of an audit policy that writes what is read here."""
_CREATED, _GONE = (200, 201), (200, 202)
_OF_NODES = "system:node:"
_SCHEDULER = "system:kube-scheduler"


@dataclass(frozen=True, slots=True)
class Step:
    """What became of a pod, or of a node's cordon, at a moment of the server's."""

    at: datetime
    name: str
    what: str

    def after(self, begun: datetime) -> str:
        """The step as a line, with the seconds since `begun`."""
        return f"{(self.at - begun).total_seconds():7.3f} s  {self.name}: {self.what}"


def steps(lines: Iterable[str], namespace: str) -> Iterator[Step]:
    """The steps that an audit log reports a namespace's pods and of all cordons, what is said again left out."""
    said: dict[str, str] = {}
    answered = (event for event in map(json.loads, lines) if event["stage"] == "ResponseComplete")
    for event in sorted(answered, key=lambda each: str(each["stageTimestamp"])):
        about = event.get("objectRef") or {}
        name, what = _object_and_text(event, about) if about.get("namespace") in (namespace, None) else ("", "")
        # Whoever waits asks again and again.
        if what and said.get(name) != what:
            said[name] = what
            yield Step(datetime.fromisoformat(event["stageTimestamp"]), name, what)


def _object_and_text(event: JSON, about: JSON) -> tuple[str, str]:
    """Whom an event is about and what it tells, "" of one that shows nothing here."""
    match about.get("resource"), about.get("subresource", ""), event["verb"]:
        case "nodes", "", "patch":
            return about["name"], _cordon(event)
        case "pods", "", "create":
            made = event.get("responseObject", {}).get("metadata", {}).get("name", "")
            return made, "made" if event["responseStatus"]["code"] in _CREATED else ""
        case "pods", "eviction", "create":
            return about["name"], _eviction(event)
        case "pods", "binding", "create":
            return about["name"], f"placed on {event['requestObject']['target']['name']}"
        case "pods", "status", "patch":
            return about["name"], _status(event)
        case "pods", "", "delete":
            return about["name"], _deletion(event)
    return "", ""


def _cordon(event: JSON) -> str:
    spec = event.get("requestObject", {}).get("spec") or {}
    if "unschedulable" not in spec:
        return ""
    return "cordoned" if spec["unschedulable"] else "takes pods again"


def _eviction(event: JSON) -> str:
    status = event["responseStatus"]
    if status["code"] in _CREATED:
        return "evicted"
    causes = (status.get("details") or {}).get("causes") or [{}]
    return f"not evicted: {causes[0].get('message') or status.get('message', '')}"


def _status(event: JSON) -> str:
    """What a change of a pod's status says: of the scheduler why there is no place, of a kubelet that it is ready."""
    pod = event.get("responseObject", {})
    stands = {each["type"]: each for each in pod.get("status", {}).get("conditions", ())}
    match event["user"]["username"]:
        case user if user == _SCHEDULER:
            scheduled = stands.get("PodScheduled", {})
            # What comes after the first sentence is about preemption.
            why = scheduled.get("message", "").partition(". ")[0]
            return f"no place: {why}" if scheduled.get("status") == "False" else ""
        case user if user.startswith(_OF_NODES):
            ends = "deletionTimestamp" in pod.get("metadata", {})
            return "ready" if stands.get("Ready", {}).get("status") == "True" and not ends else ""
    return ""


def _deletion(event: JSON) -> str:
    user = event["user"]["username"]
    if event["responseStatus"]["code"] not in _GONE:
        return ""
    if user.startswith(_OF_NODES):
        return "gone"
    return (
        "preempted" if user == _SCHEDULER else f"deleted by {user.removeprefix('system:serviceaccount:kube-system:')}"
    )
