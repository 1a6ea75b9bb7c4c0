"""Decides which CloudEvents a change of a run causes, and composes them. Pure.

Format: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime

import msgspec

from kubekit.api.conditions import find
from kubekit.lang.text import cut, printable, timestamp
from runup.api.update_policy_v1alpha1 import API_VERSION, EventKind, RunDecision, UpdateRun, UpdateRunStatus
from runup.rollout.decide.run_steps import BEFORE_START, GATES_OPEN

PREFIX = "dev.runup.update."
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
SIGNATURE_HEADER = "Runup-Signature-256"
# Receivers must accept events of 64 KiB: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md#size-limits
MAX_BYTES = 64 * 1024
_OF_DECISIONS: dict[str, EventKind] = {
    "Started": "started",
    "StartedUngated": "started",
    "Completed": "hop.completed",
    "WithdrawnBefore": "withdrawn",
    "WithdrawnDuring": "withdrawn",
}
_OF_GATES: dict[str, EventKind] = {
    "ApprovalMissing": "approval.needed",
    "ApprovalEnded": "approval.needed",
    "Held": "held",
}


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """An event to send: its kind, and why it happened."""

    kind: EventKind
    reason: str
    message: str
    at: datetime


def notices_of(before: UpdateRunStatus, after: UpdateRunStatus, now: datetime) -> tuple[Notice, ...]:
    """Returns the notices of a change of a run: its new decisions, and a new reason for which it waits."""
    notices = [
        Notice(kind=kind, reason=decision.reason, message=decision.message, at=decision.at)
        for decision in after.decisions
        if decision not in before.decisions and (kind := _kind_of(decision)) is not None
    ]
    old, new = find(before.conditions, GATES_OPEN), find(after.conditions, GATES_OPEN)
    is_same = old is not None and new is not None and (old.status, old.reason) == (new.status, new.reason)
    if after.step in BEFORE_START and new is not None and new.status != "True" and not is_same:
        waits_for = _OF_GATES.get(new.reason, "waiting")
        notices.append(Notice(kind=waits_for, reason=new.reason, message=new.message, at=now))
    return tuple(notices)


def _kind_of(decision: RunDecision) -> EventKind | None:
    """Returns the kind of a decision that is reported; None for the others."""
    if decision.reason in _OF_DECISIONS:
        return _OF_DECISIONS[decision.reason]
    return {"Done": "done", "Failed": "failed"}.get(decision.step)  # type: ignore[return-value]


def event_of(notice: Notice, run: UpdateRun, cluster_id: str) -> bytes:
    """Returns the CloudEvent in JSON. A repeated notice has the same ID, by which receivers recognize it."""
    name = run.metadata.name
    identity = "\n".join((run.metadata.uid, notice.kind, notice.reason, timestamp(notice.at)))
    gates = [{"name": gate.name, "state": gate.state, "reason": gate.reason} for gate in run.status.gates]
    event = {
        "specversion": "1.0",
        "id": hashlib.sha256(identity.encode()).hexdigest()[:32],
        "source": f"/clusters/{cluster_id}/apis/{API_VERSION}/updateruns/{name}",
        "type": PREFIX + notice.kind,
        "subject": name,
        "time": timestamp(notice.at),
        "datacontenttype": "application/json",
        "data": {
            "run": name,
            "clusterID": cluster_id,
            "version": run.spec.target.version,
            "image": run.spec.target.image,
            "step": run.status.step,
            "reason": notice.reason,
            "message": cut(printable(notice.message), 1024),
            "gates": gates,
        },
    }
    return json.dumps(event, separators=(",", ":")).encode()


def signature_of(body: bytes, key: bytes) -> str:
    """Returns the value of the signature header: HMAC-SHA256 of the body, in hexadecimal."""
    return f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"
