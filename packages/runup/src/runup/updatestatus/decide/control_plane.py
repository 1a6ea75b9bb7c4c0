"""Computes the state of the control plane during an update, and when it is expected to be done."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.api.workloads_v1 import Deployment
from runup.api.config_v1 import ClusterOperator, ClusterVersion, UpdateHistory

DEFAULT_BASELINE_S = 3600.0
# Seconds of progress below which the curve is dominated by chance.
_MEANINGFUL_PROGRESS_S = 300.0
# Below ten minutes seconds are shown, above it only minutes.
_PRECISE_BELOW_S = 600
_SAFETY_FACTOR = 1.2


class Estimate(msgspec.Struct, frozen=True):
    """The remaining time in seconds, negative once the update takes longer than estimated; shown by `to_precision`."""

    remaining_s: int

    @property
    def assessment(self) -> str:
        """The assessment of the update, in words."""
        return assessment_of(self.remaining_s)


def assessment_of(remaining_s: float) -> str:
    """Returns Progressing, or how far the update is beyond its estimated time."""
    if remaining_s < -600:
        return "Stalled"
    return "Progressing - Slow" if remaining_s < 0 else "Progressing"


def baseline_s(history: Sequence[UpdateHistory]) -> float:
    """Returns the seconds that the last completed update took, 3600 if none.

    Neither the current update nor the installation counts.
    """
    # The first entry is the current update, the last one is the installation.
    for entry in history[1:-1]:
        if entry.state == "Completed" and entry.completion_time:
            return (entry.completion_time - entry.started_time).total_seconds()
    return DEFAULT_BASELINE_S


def share_of_time(completion: float) -> float:
    """Returns the share of the whole time that has usually passed when this share (0..1) of operators is updated."""
    c = completion
    if c < 0.25:
        return -0.03078788 + 2.62886 * c - 3.823954 * c**2
    if c < 0.9:
        return 0.1851215 + 1.64994 * c - 4.676898 * c**2 + 5.451824 * c**3 - 2.125286 * c**4
    return 25053.32 - 107394.3 * c + 172527.2 * c**2 - 123107 * c**3 + 32921.81 * c**4


def estimate(*, baseline: float, to_last_progress_s: float, elapsed_s: float, completion: float) -> Estimate:
    """Returns the remaining time in seconds: a fifth more than the curve says, and less if overdue."""
    share = share_of_time(completion)
    meaningful = completion > 0 and share > 0 and to_last_progress_s > _MEANINGFUL_PROGRESS_S
    total = to_last_progress_s / share if meaningful else baseline
    remaining = total - elapsed_s
    return Estimate(math.trunc(remaining * _SAFETY_FACTOR if remaining >= 0 else remaining * (1 / _SAFETY_FACTOR)))


def to_precision(seconds: int) -> int:
    """Returns `seconds`, rounded to the minute (half of one upwards) above ten minutes."""
    return seconds if seconds <= _PRECISE_BELOW_S else (seconds + 30) // 60 * 60


_OF_PAYLOAD = ("include.release.openshift.io/", "exclude.release.openshift.io/")
MACHINE_CONFIG = "machine-config"
MACHINE_CONFIG_OPERATOR = "machine-config-operator"
# "..., waiting on etcd, kube-apiserver" and "waiting up to 40 minutes on machine-config", as the operator writes it.
_WAITING = re.compile(r"waiting (?:up to \d+ minutes )?on ([a-z0-9-]+(?:, [a-z0-9-]+)*)")


class OperatorState(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's progress. `progressing` is None if the operator has no such condition."""

    name: str
    updated: bool
    progressing: Condition | None
    available: Condition | None
    degraded: Condition | None

    @property
    def is_updating(self) -> bool:
        """True if the operator is updating."""
        return not self.updated and self.progressing is not None and self.progressing.status == "True"

    @property
    def is_waiting(self) -> bool:
        """True if the operator has not begun to update."""
        return not self.updated and self.progressing is not None and self.progressing.status == "False"


class ControlPlaneState(msgspec.Struct, frozen=True, kw_only=True):
    """The operators' states and the progress of the update. `end` and `started` are None without history.

    `last_progress` is None if no operator has progressed since the update began.
    """

    operators: tuple[OperatorState, ...]
    started: datetime | None
    end: datetime | None
    last_progress: datetime | None
    estimate: Estimate

    @property
    def updated(self) -> int:
        """The number of operators that report the target's version."""
        return sum(operator.updated for operator in self.operators)

    @property
    def is_done(self) -> bool:
        """True if all operators are updated."""
        return self.updated == len(self.operators)

    @property
    def completion(self) -> int:
        """The percentage of updated operators, rounded half to even as `%.0f` does; 100 only when all are updated."""
        if self.is_done:
            return 100
        return min(99, round(100 * (self.updated / len(self.operators))))


def is_of_payload(operator: ClusterOperator) -> bool:
    """Reports whether the operator belongs to the release payload."""
    return any(key.startswith(_OF_PAYLOAD) for key in operator.metadata.annotations)


def operator_image(deployment: Deployment | None) -> str:
    """Returns the image of the machine-config operator's own container, or an empty string."""
    if deployment is None:
        return ""
    containers = deployment.spec.template.spec.containers
    return next((container.image for container in containers if container.name == MACHINE_CONFIG_OPERATOR), "")


def assess_operators(operators: Sequence[ClusterOperator], version: str, image: str | None) -> list[OperatorState]:
    """Returns the states of the payload's operators.

    `image` is the machine-config operator's; None if it could not be read.
    """
    return [operator_state(operator, version, image) for operator in operators if is_of_payload(operator)]


def has_version(operators: Iterable[ClusterOperator], name: str, version: str) -> bool:
    """Returns whether the operator `name` reports `version` as its own."""
    return any(
        entry.name == "operator" and entry.version == version
        for operator in operators
        if operator.metadata.name == name
        for entry in operator.status.versions
    )


def operator_state(operator: ClusterOperator, version: str, image: str | None) -> OperatorState:
    """Returns the state of one operator on its way to `version`."""
    conditions = operator.status.conditions
    versions = operator.status.versions
    updated = has_version((operator,), operator.metadata.name, version)
    if operator.metadata.name == MACHINE_CONFIG and image is not None:
        # A migration to another architecture keeps the version, so only the image shows whether it is done.
        own_version = next((entry.version for entry in versions if entry.name == "operator-image"), None)
        updated = updated and own_version in (None, image)
    return OperatorState(
        name=operator.metadata.name,
        updated=updated,
        progressing=find(conditions, "Progressing"),
        available=find(conditions, "Available"),
        degraded=find(conditions, "Degraded"),
    )


def assess_control_plane(
    cluster: ClusterVersion, operators: Sequence[OperatorState], now: datetime
) -> ControlPlaneState:
    """Returns the progress of the control plane at `now`."""
    history = cluster.status.history
    # If only machine-config is left, returns its time, however old.
    times = {
        operator.name: operator.progressing.last_transition_time
        for operator in operators
        if operator.progressing and operator.progressing.last_transition_time
    }
    pending = [operator for operator in operators if not operator.updated]
    if len(pending) == 1 and pending[0].name == MACHINE_CONFIG and pending[0].is_updating:
        last_progress = times.get(MACHINE_CONFIG)
    else:
        last_progress = max(times.values(), default=None)
    to_last = elapsed = 0.0
    started = end = None
    if history:
        started = history[0].started_time
        last_progress = last_progress if last_progress is not None and last_progress > started else None
        completed = history[0].completion_time if history[0].state == "Completed" else None
        end = completed or now
        to_last, elapsed = ((last_progress or now) - started).total_seconds(), (end - started).total_seconds()
    updated = sum(operator.updated for operator in operators)
    time_left = estimate(
        baseline=baseline_s(history),
        to_last_progress_s=to_last,
        elapsed_s=elapsed,
        completion=updated / len(operators) if operators else 1.0,
    )
    return ControlPlaneState(
        operators=tuple(operators), started=started, end=end, last_progress=last_progress, estimate=time_left
    )


def awaited_operators(cluster: ClusterVersion) -> tuple[str, ...]:
    """Returns the operators for which the update waits, according to ClusterVersion while it is progressing."""
    progressing = find(cluster.status.conditions, "Progressing")
    if progressing is None or progressing.status != "True":
        return ()
    match = _WAITING.search(progressing.message) if "waiting " in progressing.message else None
    return tuple(dict.fromkeys(match[1].split(", "))) if match else ()


def is_progressing(cluster: ClusterVersion) -> bool:
    """Reports whether ClusterVersion says that an update is under way."""
    return status_of(cluster.status.conditions, "Progressing") == "True"


def started_at(cluster: ClusterVersion) -> datetime | None:
    """Returns when the newest update began: by the history, else when ClusterVersion's Progressing last changed."""
    if cluster.status.history:
        return cluster.status.history[0].started_time
    progressing = find(cluster.status.conditions, "Progressing")
    return progressing.last_transition_time if progressing else None
