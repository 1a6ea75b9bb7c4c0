"""Judges a cluster in which processes were killed, by what its API server kept: revisions of objects and the audit log.

In: every revision of the ClusterVersion and of the release's Deployments, in the server's order, and the writes of the
audit log. Out: what must never be so, in words. Pure, so that its tests can show each fault that it is there to find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from runup.api.config_v1 import ClusterVersion, UpdateHistory

PREFLIGHT = "Preflight"
# Requests that ask or tell, and change nothing that another writer would decide on.
ASIDE = {"leases", "tokenreviews", "subjectaccessreviews", "events"}
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
OPERATOR, STATUS_CONTROLLER, TARGET = "ClusterVersionOperator", "UpdateStatusController", "runup-preflight"


class Revision(NamedTuple):
    """The ClusterVersion at one revision; `asked` is the version that an update was requested to, or empty."""

    number: int
    history: tuple[UpdateHistory, ...]
    asked: str = ""
    risks: frozenset[str] = frozenset()
    requested: bool = True

    @classmethod
    def of(cls, version: ClusterVersion, target: str) -> Revision:
        """Returns what counts of `version`; `risks` are those of `target`."""
        update = version.spec.desired_update
        entries = version.status.conditional_updates
        return cls(
            int(version.metadata.resource_version),
            version.status.history,
            update.version if update is not None and update.mode != PREFLIGHT else "",
            frozenset(name for each in entries if each.release.version == target for name in each.risk_names),
            update is not None,
        )

    @property
    def head(self) -> tuple[str, str]:
        """Version and image of the release that is being applied, or was."""
        return (self.history[0].version, self.history[0].image) if self.history else ("", "")


class Placed(NamedTuple):
    """A Deployment of the release, and the version that its manifest has."""

    number: int
    name: str
    version: str


class Write(NamedTuple):
    """A write that the server carried out; `agent` is the program, `pod` the identifier of its pod."""

    agent: str
    pod: str
    resource: str
    subresource: str = ""

    @classmethod
    def of(cls, event: dict[str, Any]) -> Write | None:
        """Returns the write of an audit event, or None for what wrote nothing."""
        if event["verb"] not in WRITES or event["responseStatus"]["code"] >= 300:
            return None
        place = event.get("objectRef", {})
        pods = event["user"].get("extra", {}).get("authentication.kubernetes.io/pod-uid", [""])
        agent = event.get("userAgent", "").partition("/")[0]
        return cls(agent, pods[0], place.get("resource", ""), place.get("subresource", ""))


def problems(
    revisions: Sequence[Revision], placed: Sequence[Placed], writes: Sequence[Write], expected: frozenset[str]
) -> Iterator[str]:
    """Yields everything that must not be so; `expected` are the risks that a completed preflight leaves."""
    yield from updates_without_a_request(revisions)
    yield from wrong_histories(revisions)
    yield from lost_risks(revisions, expected)
    yield from manifests_of_other_releases(revisions, placed)
    yield from wrong_writers(writes)


def updates_without_a_request(revisions: Sequence[Revision]) -> Iterator[str]:
    """Yields each new release in the history that `spec.desiredUpdate` did not ask for at that revision."""
    for before, after in _pairs(revisions):
        if after.head != before.head and after.head[0] != after.asked:
            wanted = after.asked or "no update"
            yield f"revision {after.number}: the update to {after.head[0]} began while {wanted} was requested"


def wrong_histories(revisions: Sequence[Revision]) -> Iterator[str]:
    """Yields each change of the history that is neither a new entry in front nor the completion of the newest one."""
    for before, after in _pairs(revisions):
        kept = after.history if after.head == before.head else after.history[1:]
        if len(kept) != len(before.history) or not all(map(_follows, before.history, kept)):
            yield f"revision {after.number}: the history went from {_told(before.history)} to {_told(after.history)}"
    for revision in revisions:
        for number, entry in enumerate(revision.history):
            ended = entry.completion_time
            if (ended is None) != (entry.state == "Partial" and number == 0):
                yield f"revision {revision.number}: {entry.version} is {entry.state} with completion time {ended}"
            elif ended is not None and ended < entry.started_time:
                yield f"revision {revision.number}: {entry.version} was completed before it was started"


def lost_risks(revisions: Sequence[Revision], expected: frozenset[str]) -> Iterator[str]:
    """Yields the revisions at which a risk that a preflight found is gone, though the cluster is where it was.

    They may go when the request is withdrawn, and when the update begins.
    """
    found: frozenset[str] = frozenset()
    for before, after in _pairs(revisions):
        if after.head != before.head or not after.requested:
            found = frozenset()
        if missing := found - after.risks:
            yield f"revision {after.number}: lost {', '.join(sorted(missing))}"
            found -= missing
        if after.history and after.history[0].state == "Completed" and after.requested:
            found |= after.risks & expected


def manifests_of_other_releases(revisions: Sequence[Revision], placed: Sequence[Placed]) -> Iterator[str]:
    """Yields each Deployment that became of another release than the one that the history then had in front."""
    heads = iter(revisions)
    head, following = ("", ""), next(heads, None)
    versions: dict[str, str] = {}
    for each in sorted(placed):
        while following is not None and following.number <= each.number:
            head, following = following.head, next(heads, None)
        was = versions.get(each.name)
        versions[each.name] = each.version
        if was not in {None, each.version} and each.version != head[0]:
            yield f"revision {each.number}: {each.name} became of {each.version} while the cluster went to {head[0]}"


def wrong_writers(writes: Iterable[Write]) -> Iterator[str]:
    """Yields who wrote what it may not: a pod after the next one had begun, a target, an operator into the spec."""
    newest: dict[str, list[str]] = {}
    for write in writes:
        if write.agent == TARGET:
            yield f"a target wrote {write.resource}"
        if write.agent not in (OPERATOR, STATUS_CONTROLLER) or write.resource in ASIDE:
            continue
        if (write.resource, write.subresource) == ("clusterversions", ""):
            yield f"{write.agent} wrote the spec of the ClusterVersion"
        pods = newest.setdefault(write.agent, [])
        if write.pod not in pods:
            pods.append(write.pod)
        elif write.pod != pods[-1]:
            yield f"{write.agent} in pod {write.pod} wrote {write.resource} after pod {pods[-1]} had begun"


def _follows(before: UpdateHistory, after: UpdateHistory) -> bool:
    """Whether an entry is the same, or has been completed or ended since."""
    same = (before.version, before.image, before.started_time) == (after.version, after.image, after.started_time)
    return same and (before.completion_time is None or before.completion_time == after.completion_time)


def _told(history: Iterable[UpdateHistory]) -> str:
    return ", ".join(f"{entry.version} {entry.state}" for entry in history) or "nothing"


def _pairs(revisions: Sequence[Revision]) -> Iterator[tuple[Revision, Revision]]:
    return pairwise(revisions)
