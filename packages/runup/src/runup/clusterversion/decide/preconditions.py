"""Preconditions of an update: pure functions from the cluster's state and the target to an objection.

Each returns None, a blocking objection or a warning. `force` turns blocking ones into warnings. None of them stops
a preflight: its purpose must find out, even about a large jump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version, is_minor_or_major, parse, same_minor
from runup.advice.decide.preflight_reasons import GIANT_HOP, ROLLBACK, UPGRADEABLE
from runup.api.config_v1 import ClusterVersion, Release, UpdateHistory


@dataclass(frozen=True, slots=True)
class Objection:
    """A precondition that does not hold."""

    name: str
    reason: str
    message: str
    blocking: bool = True

    @property
    def text(self) -> str:
        """The sentence that conditions and events carry."""
        return f'Precondition "{self.name}" failed because of "{self.reason}": {self.message}'


@dataclass(frozen=True, slots=True, kw_only=True)
class PreconditionInput:
    """The input of a precondition. `recommended` is the target's condition, None if it is not a conditional update."""

    cluster_version: ClusterVersion
    current: Version
    target: Version
    release: Release
    available: bool = False
    recommended: Condition | None = None


Precondition = Callable[[PreconditionInput], Objection | None]


def objections(
    cluster_version: ClusterVersion, target: Release, *, available: bool, recommended: Condition | None
) -> tuple[Objection, ...]:
    """Returns all objections against updating to `target`, in the order in which they are reported."""
    target_version = parse(target.version)
    current_version = parse(cluster_version.status.desired.version)
    # An unknown target could be too far, so it blocks. An unknown current version cannot be corrected: a warning.
    if target_version is None:
        text = f"{target.version!r} is not a semantic version"
        return (Objection(GIANT_HOP, "InvalidDesiredVersion", text),)
    if current_version is None:
        text = f"{cluster_version.status.desired.version!r} is not a semantic version"
        return (Objection(GIANT_HOP, "InvalidCurrentVersion", text, blocking=False),)
    inputs = PreconditionInput(
        cluster_version=cluster_version,
        current=current_version,
        target=target_version,
        release=target,
        available=available,
        recommended=recommended,
    )
    results = (precondition(inputs) for precondition in PRECONDITIONS)
    return tuple(objection for objection in results if objection is not None)


def summary(all_objections: Iterable[Objection], *, was_forced: bool = False) -> str:
    """Returns all objections as one text."""
    texts = [objection.text for objection in all_objections]
    text = texts[0] if len(texts) == 1 else "Multiple precondition checks failed:\n* " + "\n* ".join(texts)
    return f"Forced through blocking failures: {text}" if was_forced else text


def rollback(inputs: PreconditionInput) -> Objection | None:
    """Objects to a rollback other than to the previous release within the same minor version."""
    current, target = inputs.current, inputs.target
    if target >= current:
        return None
    text = _unsupported_rollback(current, target, _previous_entry(inputs.cluster_version))
    return (
        Objection(ROLLBACK, "LowDesiredVersion", f"{target} is less than the current target {current}{text}")
        if text
        else None
    )


def may_roll_back(cluster_version: ClusterVersion, target: str) -> bool:
    """Returns whether `target` is the previous version, within the same minor version as the running one."""
    current_version, target_version = parse(cluster_version.status.desired.version), parse(target)
    if current_version is None or target_version is None or target_version >= current_version:
        return False
    return not _unsupported_rollback(current_version, target_version, _previous_entry(cluster_version))


def _unsupported_rollback(current: Version, target: Version, previous: UpdateHistory | None) -> str:
    """Returns why the cluster cannot return from `current` to the older `target`, empty if it can."""
    if previous is None or parse(previous.version) is None:
        return ", and the cluster has no previous Semantic Version"
    if parse(previous.version) != target:
        supported = f"{previous.version} ({previous.image})"
        return f", and the only supported rollback is to the cluster's previous version {supported}"
    if not same_minor(target, current):
        return (
            " and matches the cluster's previous version, "
            "but rollbacks that change major or minor versions are not recommended"
        )
    return ""


def giant_hop(inputs: PreconditionInput) -> Objection | None:
    """Objects to more than one minor version at once, and to a larger major version except 5.0 from 4."""
    return _too_far(inputs.current, inputs.target)


def allows_step(current: str, target: str) -> bool:
    """Returns whether no precondition objects to the two versions as such: the step leads on, and is not too large."""
    origin, to = parse(current), parse(target)
    return origin is not None and to is not None and origin < to and _too_far(origin, to) is None


def _too_far(current: Version, target: Version) -> Objection | None:
    """Returns the objection to an update over more than one minor version, or to another major version."""
    if target.major > current.major:
        if (current.major, target.major, target.minor) == (4, 5, 0):
            return None
        allowed = "within the current major version"
        ending = f"{allowed} or to 5.0 are supported" if current.major == 4 else f"{allowed} are supported"
        text = (
            f"{target} has a larger major version than the current target {current} "
            f"({target.major} > {current.major}), and only updates {ending}."
        )
        return Objection(GIANT_HOP, "MajorVersionUpdate", text)
    if target.major == current.major and target.minor > current.minor + 1:
        text = (
            f"{target} is more than one minor version beyond the current target {current} "
            f"({target.major}.{target.minor} > {current.major}.({current.minor}+1)), and only updates within "
            "the current minor version or to the next minor version are supported."
        )
        return Objection(GIANT_HOP, "MultipleMinorVersionsUpdate", text)
    return None


def upgradeable(inputs: PreconditionInput) -> Objection | None:
    """Blocks leaving the minor version unless Upgradeable is True or absent; warns about some targets within it.

    Upgradeable=Unknown is at least as strict as False. The Go operator ignores it.
    """
    version = inputs.cluster_version
    condition = find(version.status.conditions, "Upgradeable")
    if condition is None or condition.status == "True":
        return None
    current, target = inputs.current, inputs.target
    # A patch release must stay possible: it may fix what makes the cluster not upgradeable.
    if is_minor_or_major(current, target):
        return Objection(UPGRADEABLE, condition.reason, condition.message)
    if any(override.unmanaged for override in version.spec.overrides):
        text = f"Retarget from {current} to {target} is not blocked by ClusterVersionOverridesSet. {_OVERRIDES_TEXT}"
        return Objection(UPGRADEABLE, "ClusterVersionOverridesSet", text, blocking=False)
    # Another target, while an update to a new minor version is still under way, draws a warning.
    # The last completed release is where the update under way came from.
    completed = next((entry.version for entry in version.status.history if entry.state == "Completed"), "")
    origin = parse(completed)
    progressing = status_of(version.status.conditions, "Progressing") == "True"
    if origin is None or not progressing or not is_minor_or_major(origin, current):
        return None
    if not same_minor(target, current):
        return None
    size = "Major" if current.major > origin.major else "Minor"
    text = f"Retarget to {target} while a {size.lower()} version update from {origin} to {current} is in progress"
    return Objection(UPGRADEABLE, f"{size}VersionClusterUpdateInProgress", text, blocking=False)


def recommended_objection(inputs: PreconditionInput) -> Objection | None:
    """Warns if the update is not known to be recommended; never blocks."""
    current, target = inputs.current, inputs.target
    condition = inputs.recommended
    if inputs.available or (condition is not None and condition.status == "True"):
        return None
    step = f"from {current} to {target}"
    if condition is not None and condition.status == "False":
        return _not_recommended(condition.reason, f"Update {step} is not recommended:\n\n{condition.message}")
    if condition is not None:
        return _not_recommended(
            condition.reason, f"Update {step} is Recommended=Unknown: {condition.reason}: {condition.message}"
        )
    version = inputs.cluster_version
    unknown = f"so the recommended status of updating {step} is unknown."
    if not version.spec.channel:
        return _not_recommended("NoChannel", f"Configured channel is unset, {unknown}")
    retrieved = find(version.status.conditions, "RetrievedUpdates")
    if retrieved is None:
        text = f"No RetrievedUpdates, {unknown}"
    elif retrieved.status == "True":
        text = f"RetrievedUpdates=True ({retrieved.reason}), so the update {step} is probably "
        text += "neither recommended nor supported."
    else:
        text = f"RetrievedUpdates={retrieved.status} ({retrieved.reason}), {unknown}"
    return _not_recommended("UnknownUpdate", text)


# The Go operator's words (pkg/payload/precondition/clusterversion/upgradeable.go).
_OVERRIDES_TEXT = (
    "But the cluster-version operator is not managing these resources; they are currently the responsibility of the "
    "agent that set the overrides: Disabling ownership via cluster version overrides prevents upgrades between minor "
    "or major versions. Please remove overrides before requesting a minor or major version update."
)
PRECONDITIONS: tuple[Precondition, ...] = (rollback, giant_hop, upgradeable, recommended_objection)


def _not_recommended(reason: str, message: str) -> Objection:
    return Objection("ClusterVersionRecommendedUpdate", reason, message, blocking=False)


def _previous_entry(version: ClusterVersion) -> UpdateHistory | None:
    """Returns the newest history entry of another release than the desired one, None without any."""
    desired = version.status.desired
    for entry in version.status.history:
        if (entry.version, entry.image) != (desired.version, desired.image):
            return entry
    return None
