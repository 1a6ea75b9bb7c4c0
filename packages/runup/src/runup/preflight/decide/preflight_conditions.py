"""The conditions PreflightRunning, PreflightCompleted and PreflightFailed of ClusterVersion.

All three are absent if no preflight is requested. Each message names the target, the source and, where there are
findings, the time of the findings.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.text import timestamp
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.outcome import AttemptOutcome, AttemptState

RUNNING = "PreflightRunning"
COMPLETED = "PreflightCompleted"
FAILED = "PreflightFailed"
TYPES = (RUNNING, COMPLETED, FAILED)
# The reason of PreflightRunning once a complete target watches the cluster.
WATCHING = "Watching"
_ABOUT = re.compile(r"Preflight of \S+ from \S+: ")
WAIVED = "the signature of its image was waived (force)"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The target and source of a preflight. `observed_at` is the time of the findings, if there are any.

    `waived`: the target runs although the signature of its image was not verified. `grown`: the accepted risks that
    cover more than when they were accepted.
    """

    target: str
    source: str
    observed_at: datetime | None = None
    waived: bool = False
    grown: str = ""

    @property
    def text(self) -> str:
        """The target and source as text: `5.2.0 from 5.0.0`."""
        return f"{self.target} from {self.source}"

    @property
    def when(self) -> str:
        """The time of the findings, to be appended to a message: a message that is cut short loses it first."""
        besides = f"; {WAIVED}" if self.waived else ""
        besides += f"; {self.grown}" if self.grown else ""
        return f"{besides} (as of {self.observed_at:%Y-%m-%dT%H:%M:%SZ})" if self.observed_at else besides


def kept_mode_text(attempt: Attempt) -> str:
    """Returns what to say about a request for an update that kept the mode of a preflight, with the ways out."""
    target = attempt.target_version or attempt.target_image
    return (
        f"No update to {target} starts: a client that does not know spec.desiredUpdate.mode, such as an older `oc adm "
        "upgrade`, asked for it, and its request kept mode Preflight. To update use "
        f"`runup upgrade --to={target}`, or remove the mode"
    )


def with_kept_mode(conditions: tuple[Condition, ...], attempt: Attempt | None) -> tuple[Condition, ...]:
    """Returns `conditions`, PreflightRunning with `kept_mode_text` if the request kept its mode."""
    if attempt is None or not attempt.kept_mode:
        return conditions
    more = f" {kept_mode_text(attempt)}."
    return tuple(replace(c, message=f"{c.message}{more}") if c.type == RUNNING else c for c in conditions)


def without_subject(message: str) -> str:
    """Returns the message of a condition without its beginning that names the target and the source."""
    return message[match.end() :] if (match := _ABOUT.match(message)) else message


def refused_conditions(reason: str, message: str, ended: Subject | None = None) -> tuple[Condition, ...]:
    """Returns the conditions of a request that is refused; `ended` is its preflight if that had started before."""
    text = f"The preflight of {ended.text} was ended{ended.when}" if ended is not None else "No preflight was started"
    return (
        _condition(RUNNING, "False", reason, f"{text}."),
        _condition(COMPLETED, "False", reason, f"{text}."),
        _condition(FAILED, "True", reason, f"{text}: {message}" if ended is not None else message),
    )


def preparing_conditions(subject: Subject, reason: str, message: str) -> tuple[Condition, ...]:
    """Returns the conditions of a request that is being prepared while nothing of the target runs yet."""
    waived = f"; {WAIVED}" if subject.waived else ""
    return (
        _condition(RUNNING, "True", reason, f"Preflight of {subject.text}: {message}{waived}."),
        _condition(COMPLETED, "False", reason, f"Preflight of {subject.text} has not completed."),
        _condition(FAILED, "False", "AsExpected", ""),
    )


def waits_text(until: datetime | None) -> str:
    """Returns a sentence with the time until which an update waits for the preflight, empty if it does not wait."""
    return f" An update waits for the preflight to finish, until {timestamp(until)} at the latest." if until else ""


def conditions_of_outcome(
    subject: Subject,
    outcome: AttemptOutcome,
    *,
    kept_time: datetime | None = None,
    completed: bool = False,
    until: datetime | None = None,
) -> tuple[Condition, ...]:
    """Returns the conditions for the outcome of an attempt.

    `kept_time` is the time of the last good result, if that is shown instead. `completed`: the attempt had a result.
    `until`: the time until which an update waits for one that failed.
    """
    way_out = f"; {outcome.way_out}" if outcome.way_out else ""
    text = f"Preflight of {subject.text}: {outcome.message}{subject.when}{way_out}"
    if outcome.state is AttemptState.COMPLETED:
        return (
            _condition(RUNNING, "True", WATCHING, f"{text}; the target continues to watch the cluster."),
            _condition(COMPLETED, "True", outcome.reason, f"{text}."),
            _condition(FAILED, "False", "AsExpected", ""),
        )
    if outcome.state is AttemptState.FAILED:
        still = f" The result of {kept_time:%Y-%m-%dT%H:%M:%SZ} is kept." if kept_time else ""
        running: ConditionStatus = "False" if outcome.final else "True"
        not_complete = f"Preflight of {subject.text} has not completed."
        if completed:
            confirmed = "completed, and what it found is not confirmed any more"
            not_complete = f"Preflight of {subject.text} {confirmed}{subject.when}."
        return (
            _condition(RUNNING, running, outcome.reason, f"{text}."),
            _condition(COMPLETED, "False", outcome.reason, not_complete),
            _condition(FAILED, "True", outcome.reason, f"{text}.{waits_text(until)}{still}"),
        )
    # Starting and checking are both reported as running.
    return preparing_conditions(subject, outcome.reason, outcome.message)


def _condition(type_: str, status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message)
