"""Finds the release that `--to`, `--to-image` and `--to-latest` mean, and decides whether to send the request. Pure.

In: ClusterVersion and flags. Out: a target with warnings, or nothing to do; or a InputError is raised. The walk over
the lists, its order and its texts are those of `oc adm upgrade` (docs/reference/cli.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from kubekit.error_types import InputError
from kubekit.lang.gotext import quote_go
from kubekit.lang.oc_pull_spec import is_same_image, pull_spec
from kubekit.lang.oc_version import newest_first, parse_as_oc
from runup.advice.decide import acceptance, lifting, preflight_reasons
from runup.api.config_v1 import ClusterVersion, ConditionalUpdate, Release, Update
from runup.preflight.decide.findings import Findings, not_recommended
from runup.process.messages import Output, err, out, reason_and_message

FORCE_WARNING = (
    "warning: --force overrides cluster verification of your supplied release image and waives any update precondition "
    "failures. Only use this if you are testing unsigned release images or you are working around a known bug in the "
    "cluster-version operator and you have verified the authenticity of the provided image yourself.\n"
)
TAG_ERROR = (
    "--to-image must be a by-digest pull spec, unless --force is also set, because release images that are not "
    "accessed via digest cannot be verified by the cluster.  Even when --force is set, using tags is not recommended, "
    "although we continue to allow it for backwards compatibility"
)
TAG_WARNING = (
    "warning: Using by-tag pull specs is dangerous, and while we still allow it in combination with --force for "
    "backward compatibility, it would be much safer to pass a by-digest pull spec instead\n"
)
EXPLICIT_WARNING = (
    "warning: The requested upgrade image is not one of the available updates. You have used --allow-explicit-upgrade "
    "for the update to proceed anyway\n"
)
_NOTES = {
    preflight_reasons.OUTDATED: (
        "what the preflight of {version} found is old, and nobody has looked since; "
        "check again with runup upgrade --mode=preflight --to={version}"
    ),
    preflight_reasons.FAILED: "the preflight of {version} has failed, so its risks are not known",
    preflight_reasons.RUNNING: (
        "the preflight of {version} has not finished; the update waits for it, at most its time limit; to go "
        "without it: runup upgrade --clear-preflight"
    ),
}


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `upgrade` that choose a target."""

    to: str = ""
    to_image: str = ""
    to_latest: bool = False
    to_multi_arch: bool = False
    clear: bool = False
    force: bool = False
    allow_explicit_upgrade: bool = False
    allow_upgrade_with_warnings: bool = False
    include_not_recommended: bool = False
    allow_not_recommended: bool = False

    @property
    def names_target(self) -> bool:
        """Returns whether any flag names another release."""
        return bool(self.to or self.to_image or self.to_latest or self.to_multi_arch)


class Target(msgspec.Struct, frozen=True):
    """The release to request; `version` is empty for an image that no list contains. `said` is printed first.

    `takes_back`: it is the release that an update under way started from, so that the guards of an update do not
    apply.
    """

    version: str
    image: str
    said: tuple[Output, ...] = ()
    takes_back: bool = False

    @property
    def name(self) -> str:
        """The target's name in the message after the request."""
        return self.version or f"release image {self.image}"


class Nothing(msgspec.Struct, frozen=True):
    """The result if there is nothing to request; `said` explains why."""

    said: tuple[Output, ...]


def check_flags(flags: Flags) -> tuple[Output, ...]:
    """Raises InputError for the first flags that contradict each other or cannot be parsed; returns warnings."""
    if flags.clear and flags.names_target:
        raise InputError("--clear may not be specified with any other flags")
    if flags.to_multi_arch and (flags.to or flags.to_image or flags.to_latest):
        raise InputError("--to-multi-arch may not be used with --to, --to-image, or --to-latest")
    if flags.to and flags.to_image:
        raise InputError("only one of --to or --to-image may be provided")
    if flags.to:
        try:
            parse_as_oc(flags.to)
        except ValueError as error:
            raise InputError(
                f"--to must be a semantic version (e.g. 4.0.1 or 4.1.0-nightly-20181104): {error}"
            ) from error
    if not flags.to_image:
        return ()
    start = "--to-image must be a valid image pull spec: "
    try:
        spec = pull_spec(flags.to_image)
    except ValueError as error:
        raise InputError(f"{start}{error}") from error
    if not spec.registry and not spec.namespace:
        raise InputError(f"{start}no registry or repository specified")
    if not spec.tag and not spec.digest:
        raise InputError(f"{start}no tag or digest specified")
    if spec.tag and not flags.force:
        raise InputError(TAG_ERROR)
    return (err(TAG_WARNING),) if spec.tag else ()


def choose(cluster: ClusterVersion, flags: Flags) -> Target | Nothing:
    """Returns the release that the flags mean in this cluster's lists. Raises InputError."""
    desired = cluster.status.desired
    if flags.to and flags.to == desired.version:
        return Nothing((out(f"info: Cluster is already at version {flags.to}\n"),))
    if flags.to_image and flags.to_image == desired.image:
        return Nothing((out(f"info: Cluster is already at {flags.to_image}\n"),))
    return _Walk(cluster, flags).result()


class _Walk:
    """A walk over availableUpdates, then conditionalUpdates, that gathers candidates and warnings on the way."""

    def __init__(self, cluster: ClusterVersion, flags: Flags) -> None:
        self.status = cluster.status
        self.accepted = acceptance.accepted_names(cluster)
        self.flags = flags
        self.said: list[Output] = []
        self.candidates: list[Release] = []
        self.conditions: dict[str, Condition] = {}
        self.unoffered: list[Release] = []
        # Targets of preflights of which the update service has not said yet whether it offers them.
        self.unanswered: list[Release] = []

    def result(self) -> Target | Nothing:
        """Returns the release that the flags choose, or why there is nothing to do. Raises InputError to refuse."""
        version_and_image = (
            self._from_available_updates() or self._from_conditional_updates() or self._from_explicit_image()
        )
        self.candidates = newest_first(self.candidates, lambda release: release.version)
        if self.flags.to_latest and self.candidates:
            best = self.candidates[0]
            version_and_image = (best.version, best.image)
            if condition := self.conditions.get(best.image):
                self.said.append(_accepted_warning(best.version, condition))
        return Target(*version_and_image, tuple(self.said)) if version_and_image else self._nothing_to_do()

    def _from_available_updates(self) -> tuple[str, str] | None:
        """Returns the version and image of the named available update, None if none is named."""
        for release in self.status.available_updates or ():
            if self._is_named(release, "available updates"):
                return release.version, self.flags.to_image or release.image
            self.candidates.append(release)
        return None

    def _from_conditional_updates(self) -> tuple[str, str] | None:
        """Returns version and image of the conditional update that the flags name, None if they name none."""
        # Conditional updates that are recommended are in availableUpdates, too, and were found there.
        for update, condition in not_recommended(self.status.conditional_updates):
            # A preflight lists its target, which does not make it one that is offered (docs/decisions/0075).
            risk = next((risk for risk in update.risks if risk.name == preflight_reasons.NOT_OFFERED), None)
            if risk is not None:
                applies = find(risk.conditions, "Applies")
                is_known = applies is None or applies.status != "Unknown"
                (self.unoffered if is_known else self.unanswered).append(update.release)
                continue
            if self._is_named(update.release, "available conditional updates"):
                if notes := informs_only(update, condition, self.accepted):
                    self.said.extend(notes)
                    return update.release.version, update.release.image
                if not self.flags.allow_not_recommended:
                    raise InputError(
                        f"the update {update.release.version} is not one of the recommended updates, but is available "
                        f"as a conditional update. To accept the Recommended={condition.status} risk and to proceed "
                        "with update use --allow-not-recommended.\n"
                        f"{reason_and_message(condition.reason, condition.message)}\n"
                    )
                self.said.append(_accepted_warning(update.release.version, condition))
                return update.release.version, update.release.image
            if self.flags.allow_not_recommended:
                self.candidates.append(update.release)
                self.conditions[update.release.image] = condition
        return None

    def _from_explicit_image(self) -> tuple[str, str] | None:
        """Returns the named image, with its version if a preflight checks it: an update is told from a lost mode so."""
        if not (self.flags.to_image and self.flags.allow_explicit_upgrade):
            return None
        self.said.append(err(EXPLICIT_WARNING))
        checked = (*self.unoffered, *self.unanswered)
        version = next((each.version for each in checked if is_same_image(each.image, self.flags.to_image)), "")
        return version, self.flags.to_image

    def _is_named(self, release: Release, place: str) -> bool:
        """Returns whether the flags name `release`: by version, by image, or by the image's digest."""
        flags = self.flags
        if (flags.to and flags.to == release.version) or (flags.to_image and flags.to_image == release.image):
            return True
        if not flags.to_image:
            return False
        try:
            digests = pull_spec(flags.to_image).digest, pull_spec(release.image).digest
        except ValueError as error:
            self.said.append(err(f"warning: unable to calculate match for the update target in {place}: {error}\n"))
            return False
        # One image has many pull specs: mirrors keep the digest.
        return bool(digests[0]) and digests[0] == digests[1]

    def _nothing_to_do(self) -> Nothing:
        """Returns why no update was found. Raises InputError if the flags name one that is not offered."""
        flags = self.flags
        unanswered = next((release for release in self.unanswered if flags.to and flags.to == release.version), None)
        if unanswered is not None:
            raise InputError(
                f"whether the update service offers {unanswered.version}, which a preflight checks, is not known: it "
                "has not answered yet; try again in a minute, or see `runup upgrade` for why it does not answer"
            )
        checked = next((release for release in self.unoffered if flags.to and flags.to == release.version), None)
        if checked is not None:
            raise InputError(
                f"the update service does not offer {checked.version}, which a preflight checks: {way_to(checked)}"
            )
        option = "--allow-explicit-upgrade" if flags.to_image else "--to-image"
        following = f"{option} to continue with {'an' if flags.to_latest else 'the'} update"
        retrieved = find(self.status.conditions, "RetrievedUpdates")
        if retrieved and retrieved.status != "True":
            detail = reason_and_message(retrieved.reason, retrieved.message)
            raise InputError(f"cannot refresh available updates:\n{detail}\n\nspecify {following}.")
        if self.candidates:
            names = ", ".join(release.version for release in self.candidates)
            raise InputError(f"the update is not one of the possible targets: {names}. specify {following}.")
        advice = f"specify {following} or wait for new updates to be available."
        if flags.allow_not_recommended:
            raise InputError(f"no recommended or conditional updates, {advice}")
        # oc treats `--to-latest` without updates as success, and every other missing target as an error.
        if flags.to_latest:
            version = self.status.desired.version
            return Nothing((out(f"info: Cluster is already at the latest available version {version}\n"),))
        raise InputError(f"no recommended updates, {advice}")


def way_to(unoffered: Release) -> str:
    """Returns the ways to a release that a preflight checks and that the update service does not offer."""
    return (
        f"`runup preflight explain {preflight_reasons.NOT_OFFERED}` says how to reach it. To go there all the same, "
        f"name its image: --to-image={unoffered.image} --allow-explicit-upgrade"
    )


def informs_only(
    update: ConditionalUpdate, condition: Condition, accepted: AbstractSet[str]
) -> tuple[Output, ...] | None:
    """Returns warnings if only a preflight's outdated, failed or unfinished results object to an update; else None.

    Such results do not block an update (docs/decisions/0072 D21, D24): the operator waits for an unfinished preflight
    by itself.
    """
    verdicts = [(risk.name, find(risk.conditions, "Applies")) for risk in update.risks]
    if any(verdict is None for _, verdict in verdicts):
        # Without the gate for accepted risks a risk has no verdict of its own.
        verdicts = [("", condition)]
    applicable = [(name, v) for name, v in verdicts if v is not None and v.status != "False" and name not in accepted]
    if not applicable or any(verdict.reason not in _NOTES for _, verdict in applicable):
        return None
    # One line for each message of a reason, with the names of the risks that have it.
    names: dict[str, dict[str, dict[str, None]]] = {}
    for name, verdict in applicable:
        names.setdefault(verdict.reason, {}).setdefault(verdict.message, {})[name or verdict.type] = None
    return tuple(
        err(
            f"warning: {_NOTES[reason].format(version=update.release.version)}\n"
            + "".join(f"  {', '.join(named)}: {message}\n" for message, named in by_message.items())
        )
        for reason, by_message in names.items()
    )


def _accepted_warning(version: str, condition: Condition) -> Output:
    return err(
        f"warning: with --allow-not-recommended you have accepted the risks with {version} and bypassed "
        f"Recommended={condition.status} {condition.reason}: {condition.message}\n"
    )


def guards(cluster: ClusterVersion) -> str:
    """Returns what objects to starting an update now, empty if nothing: invalid, failing, or updating already."""
    desired = cluster.status.desired
    target = (
        desired.version
        or desired.image
        or "ClusterVersion status.desired has neither a version nor image; please open a bug"
    )
    heads = {type_: head.format(target=quote_go(target)) for type_, head in lifting.GUARDS.items()}
    return "\n\n".join(
        f"{heads[condition.type]}\n\n{reason_and_message(condition.reason, condition.message)}"
        for condition in lifting.guard_conditions(cluster.status.conditions)
    )


def grown_warnings(findings: Findings) -> Iterator[Output]:
    """Yields a warning for each accepted risk that covers more than when it was accepted."""
    for text in findings.grown_texts:
        yield err(f"warning: {text}\n")


def check_guards(cluster: ClusterVersion, *, allow_with_warnings: bool) -> tuple[Output, ...]:
    """Returns a warning if `--allow-upgrade-with-warnings` bypasses guards. Raises InputError without the flag."""
    text = guards(cluster)
    if not text:
        return ()
    if not allow_with_warnings:
        raise InputError(f"{text}\n\nIf you want to upgrade anyway, use --allow-upgrade-with-warnings.")
    return (err(f"warning: --allow-upgrade-with-warnings is bypassing: {text}\n"),)


def update_patch(
    desired: Update | None, *, version: str = "", image: str = "", architecture: str = "", force: bool = False
) -> dict[str, Any]:
    """Returns the merge patch that requests an update: oc's four keys, accepted risks kept, a preflight's mode dropped.

    Without the explicit null a merge patch would keep `mode`, and the request would be a preflight again.
    """
    # All four keys, because a merge patch keeps the values of a previous request that it does not name.
    update: dict[str, Any] = {"architecture": architecture, "version": version, "image": image, "force": force}
    if desired is not None and desired.accept_risks:
        update["acceptRisks"] = [{"name": risk.name} for risk in desired.accept_risks]
    if desired is not None and desired.mode:
        update["mode"] = None
    return {"spec": {"desiredUpdate": update}}


def clear_patch(desired: Update) -> dict[str, Any]:
    """Returns the merge patch that takes the request back and keeps accepted risks."""
    return update_patch(desired) if desired.accept_risks else {"spec": {"desiredUpdate": None}}


def cleared_text(desired: Update, answer: ClusterVersion) -> str:
    """Returns what `--clear` prints once the server has answered."""
    now = answer.status.desired
    by_image = desired.image and now.image
    if desired.image == now.image if by_image else now.version and desired.version == now.version:
        return f"Cleared the update field, still at {now.version or now.image or '<unknown>'}\n"
    return f"Cancelled requested upgrade to {desired.version or desired.image or '<unknown>'}\n"
