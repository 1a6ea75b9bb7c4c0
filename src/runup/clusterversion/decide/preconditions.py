"""What must hold before an update is accepted: pure functions from the cluster's state and the target to an objection.

Each yields nothing, a blocking objection or a warning. `force` turns blocking ones into warnings. None of them stops
a preflight: finding out about a large jump is what it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version, is_minor_or_major, parse
from runup.api.config_v1 import ClusterVersion, Release, UpdateHistory


@dataclass(frozen=True, slots=True)
class Objection:
    """One precondition that does not hold."""

    name: str
    reason: str
    message: str
    blocking: bool = True

    @property
    def text(self) -> str:
        """The sentence that conditions and events carry."""
        return f'Precondition "{self.name}" failed because of "{self.reason}": {self.message}'


@dataclass(frozen=True, slots=True)
class Question:
    """The cluster as it is, the target, and its `Recommended` condition (None where it is not a conditional update)."""

    cluster_version: ClusterVersion
    current: Version
    target: Version
    release: Release
    available: bool = False
    recommended: Condition | None = None


Precondition = Callable[[Question], Objection | None]


def objections(
    cluster_version: ClusterVersion, target: Release, *, available: bool, recommended: Condition | None
) -> tuple[Objection, ...]:
    """Everything that speaks against updating to `target`, in the order in which it is reported."""
    there = parse(target.version)
    here = parse(cluster_version.status.desired.version)
    if there is None:
        text = f"{target.version!r} is no semantic version"
        return (Objection("ClusterVersionGiantHop", "InvalidDesiredVersion", text),)
    if here is None:
        text = f"{cluster_version.status.desired.version!r} is no semantic version"
        return (Objection("ClusterVersionGiantHop", "InvalidCurrentVersion", text, blocking=False),)
    question = Question(cluster_version, here, there, target, available, recommended)
    found = (precondition(question) for precondition in PRECONDITIONS)
    return tuple(objection for objection in found if objection is not None)


def summary(found: Iterable[Objection], *, was_forced: bool = False) -> str:
    """All objections in one text."""
    texts = [objection.text for objection in found]
    text = texts[0] if len(texts) == 1 else "Multiple precondition checks failed:\n* " + "\n* ".join(texts)
    return f"Forced through blocking failures: {text}" if was_forced else text


def rollback(question: Question) -> Objection | None:
    """Only the release that the cluster came from may be gone back to, within its minor version."""
    here, there = question.current, question.target
    if there >= here:
        return None
    previous = _previous(question.cluster_version)
    low = f"{there} is less than the current target {here}"
    if previous is None or parse(previous.version) is None:
        text = f"{low}, and the cluster has no previous Semantic Version"
    elif parse(previous.version) != there:
        text = (
            f"{low}, and the only supported rollback is to the cluster's previous version "
            f"{previous.version} ({previous.image})"
        )
    elif (there.major, there.minor) != (here.major, here.minor):
        text = (
            f"{low} and matches the cluster's previous version, "
            "but rollbacks that change major or minor versions are not recommended"
        )
    else:
        return None
    return Objection("ClusterVersionRollback", "LowDesiredVersion", text)


def giant_hop(question: Question) -> Objection | None:
    """At most the next minor version; the one larger major that may be entered is 5.0, from 4."""
    here, there = question.current, question.target
    name = "ClusterVersionGiantHop"
    if there.major > here.major:
        if (here.major, there.major, there.minor) == (4, 5, 0):
            return None
        allowed = "within the current major version"
        ending = f"{allowed} or to 5.0 are supported" if here.major == 4 else f"{allowed} are supported"
        text = (
            f"{there} has a larger major version than the current target {here} "
            f"({there.major} > {here.major}), and only updates {ending}."
        )
        return Objection(name, "MajorVersionUpdate", text)
    if there.major == here.major and there.minor > here.minor + 1:
        text = (
            f"{there} is more than one minor version beyond the current target {here} "
            f"({there.major}.{there.minor} > {here.major}.{here.minor + 1}), and only updates within "
            "the current minor version or to the next minor version are supported."
        )
        return Objection(name, "MultipleMinorVersionsUpdate", text)
    return None


def upgradeable(question: Question) -> Objection | None:
    """Upgradeable=False blocks leaving the minor version, and warns about some retargeting within it."""
    version = question.cluster_version
    found = find(version.status.conditions, "Upgradeable")
    if found is None or found.status != "False":
        return None
    name = "ClusterVersionUpgradeable"
    here, there = question.current, question.target
    if is_minor_or_major(here, there):
        return Objection(name, found.reason, found.message)
    if any(override.unmanaged for override in version.spec.overrides):
        text = f"Retarget from {here} to {there} is not blocked by ClusterVersionOverridesSet. But {found.message}"
        return Objection(name, "ClusterVersionOverridesSet", text, blocking=False)
    return _retarget(question, name)


def recommended(question: Question) -> Objection | None:
    """Never blocks: says what the update service and the risks think of the update."""
    here, there = question.current, question.target
    found = question.recommended
    if question.available or (found is not None and found.status == "True"):
        return None
    step = f"from {here} to {there}"
    if found is not None and found.status == "False":
        return _not_recommended(found.reason, f"Update {step} is not recommended:\n\n{found.message}")
    if found is not None:
        return _not_recommended(found.reason, f"Update {step} is Recommended=Unknown: {found.reason}: {found.message}")
    version = question.cluster_version
    if not version.spec.channel:
        text = f"Configured channel is unset, so the recommended status of updating {step} is unknown."
        return _not_recommended("NoChannel", text)
    return _not_recommended("UnknownUpdate", _unlisted(find(version.status.conditions, "RetrievedUpdates"), step))


PRECONDITIONS: tuple[Precondition, ...] = (rollback, giant_hop, upgradeable, recommended)


def _unlisted(retrieved: Condition | None, step: str) -> str:
    if retrieved is None:
        return f"No RetrievedUpdates, so the recommended status of updating {step} is unknown."
    if retrieved.status == "True":
        return (
            f"RetrievedUpdates=True ({retrieved.reason}), so the update {step} is probably "
            "neither recommended nor supported."
        )
    text = f"RetrievedUpdates={retrieved.status} ({retrieved.reason})"
    return f"{text}, so the recommended status of updating {step} is unknown."


def _not_recommended(reason: str, message: str) -> Objection:
    return Objection("ClusterVersionRecommendedUpdate", reason, message, blocking=False)


def _retarget(question: Question, name: str) -> Objection | None:
    version = question.cluster_version
    here, there = question.current, question.target
    completed = next((entry.version for entry in version.status.history if entry.state == "Completed"), "")
    origin = parse(completed)
    progressing = status_of(version.status.conditions, "Progressing") == "True"
    if origin is None or not progressing or not is_minor_or_major(origin, here):
        return None
    if (there.major, there.minor) != (here.major, here.minor):
        return None
    size = "Major" if here.major > origin.major else "Minor"
    text = f"Retarget to {there} while a {size.lower()} version update from {origin} to {here} is in progress"
    return Objection(name, f"{size}VersionClusterUpdateInProgress", text, blocking=False)


def _previous(version: ClusterVersion) -> UpdateHistory | None:
    desired = version.status.desired
    for entry in version.status.history:
        if (entry.version, entry.image) != (desired.version, desired.image):
            return entry
    return None
