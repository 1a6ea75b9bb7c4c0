"""Statuses that a hub's clusters tell: how they are made hostile, and what reads them; for `bench.fuzz`.

Whatever a cluster sends, `fleet status --hub` and `fleet recommend --hub` make a line of it, or say why not.
"""

from __future__ import annotations

import functools
import json
import random
import zlib
from base64 import b64encode

from bench.fuzz.changes import JSON, ODD, changed_bytes, changed_document, encoded
from bench.fuzz.outcomes import ACCEPTED, check_text
from runup.cli.advice.recommend_text import RecommendFlags
from runup.cli.fleet import recommend_command, status_command
from runup.cli.render.screen import Screen
from runup.fleet.decide import newest_status
from runup.fleet.decide.members import Member
from runup.fleet.decide.newest_status import FORMAT, BadStatus
from runup.process.connection import Connection

_PIPE = Screen(120)


def _insight(kind: str, **content: JSON) -> JSON:
    return {"uid": kind, "type": kind, **content}


@functools.cache
def _whole() -> bytes:
    """A valid status, as JSON: an update with an operator, a node and a finding; two updates, one with a risk."""
    updating = {
        "type": "Updating",
        "status": "True",
        "reason": "Progressing",
        "message": "",
        "lastTransitionTime": None,
    }
    operator = {"name": "etcd", "resource": {"resource": "clusteroperators", "name": "etcd"}, "conditions": [updating]}
    impact = {"level": "Warning", "type": "None", "summary": "A pool is paused", "description": ""}
    health = {"startedAt": "2026-01-10T01:00:00Z", "scope": {"resources": []}, "impact": impact, "remediation": {}}
    insights = [
        _insight("ClusterOperator", clusterOperator=operator),
        _insight("Health", health=health),
    ]
    informers = [{"name": "update-status-controller", "insights": insights}]
    layer = {"resource": {"name": "version"}, "conditions": [updating], "informers": informers}
    pools = [{"name": "worker", "resource": {"name": "worker"}, "informers": informers}]
    risks = [{"name": "SlowDrains", "message": "Words.", "url": "https://example.com/"}]
    verdict = {"type": "Recommended", "status": "False", "reason": "SlowDrains", "message": "Words."}
    status = {
        "desired": {"version": "5.0.0", "image": "r/0"},
        "conditions": [{"type": "Failing", "status": "False"}, {"type": "Upgradeable", "status": "False"}],
        "availableUpdates": [{"version": "5.1.0", "image": "r/1"}],
        "conditionalUpdates": [
            {"release": {"version": "5.2.0", "image": "r/2"}, "risks": risks, "conditions": [verdict]}
        ],
    }
    return encoded(
        {
            "format": FORMAT,
            "observedTime": "2026-01-10T02:00:00Z",
            "updateStatus": {
                "apiVersion": "update.openshift.io/v1alpha1",
                "kind": "UpdateStatus",
                "metadata": {"name": "cluster"},
                "status": {"controlPlane": layer, "workerPools": pools, "conditions": [updating]},
            },
            "notes": ["warning: a note"],
            "clusterVersion": {"metadata": {"name": "version"}, "spec": {"channel": "stable-5.0"}, "status": status},
            "prechecks": [{"name": "A", "type": "recommended/NodeAlerts", "status": "True"}],
        }
    )


def make(drawn: random.Random) -> bytes:
    """Returns the value that an agent takes along, changed before or after it was packed."""
    document = json.loads(_whole())
    odd = (*ODD, "5.0.0-" + "a." * 100, {"type": "Failing", "status": None}, [{"type": "Health", "health": {}}])
    data = encoded(changed_document(drawn, document, odd)) if drawn.random() < 0.8 else changed_bytes(drawn, _whole())
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    if drawn.random() < 0.1:
        packed = changed_bytes(drawn, packed, (b"\x1f\x8b\x08",), 1 << 18)
    value = b64encode(packed)
    return changed_bytes(drawn, value, (b"%", b"====", b"\xff"), 1 << 20) if drawn.random() < 0.05 else value


def read(data: bytes) -> str:
    """Shows the value as both commands do; what one of them refuses is told in words."""
    try:
        status = newest_status.unpack(data.decode(errors="replace"))
    except BadStatus as error:
        return check_text(error.message)
    member = Member(name="harbour", status=status)
    row = status_command.status_of(member, connection=Connection(), whole=True)
    "".join(map(str, status_command.text([row], _PIPE))).encode()
    advice = recommend_command.advice_of(member, connection=Connection(), flags=RecommendFlags(), whole=True)
    "".join(map(str, recommend_command.text([advice], "", _PIPE))).encode()
    for problem in filter(None, (row.problem, advice.problem)):
        check_text(problem)
    return ACCEPTED if not (row.problem and advice.problem) else check_text(row.problem)
