"""Groups the updates that a cluster is offered by minor version, with the issues of each. Pure; the rules are oc's."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from runup.api.clusterversion_json import Condition, Facts, Risk, Update
from runup.cli.render.text import Output, err, indent_lines
from runup.cli.versions import check_version, newest_first, numbers

Minor = tuple[int, int]


class Buckets(msgspec.Struct, frozen=True):
    """Updates by (major, minor), both descending, the newest first; `said` are warnings about unreadable versions."""

    by_minor: dict[Minor, list[Update]]
    said: tuple[Output, ...] = ()


def minor_of(version: str) -> Minor:
    """Returns major and minor version. Raises ValueError with oc's message."""
    check_version(version)
    return numbers(version)[:2]


def issue(update: Update) -> Condition | None:
    """Returns the condition that argues against `update`, or None; without risks there is none, as in oc."""
    if not update.risks:
        return None
    recommended = update.recommended
    if recommended is not None:
        return None if recommended.status == "True" else recommended
    # oc joins as many empty names as there are risks in front of them.
    names = ", ".join([""] * len(update.risks) + sorted(risk.name for risk in update.risks))
    text = f"Conditional update to {update.release.version} has risks ({names}), but no conditions."
    return Condition("Recommended", "Unknown", "NoConditions", text)


def buckets(facts: Facts) -> Buckets:
    """Returns every update of the cluster by minor version, with the cluster's own Upgradeable=False applied."""
    images = {update.release.image for update in facts.conditional}
    offered = [*facts.conditional, *(Update(release) for release in facts.available if release.image not in images)]
    by_minor: dict[Minor, list[Update]] = {}
    warnings: list[Output] = []
    for update in offered:
        try:
            by_minor.setdefault(minor_of(update.release.version), []).append(update)
        except ValueError as error:
            warnings.append(err(f'warning: Cannot parse SemVer available update "{update.release.version}": {error}'))
    if (upgradeable := facts.condition("Upgradeable")) is not None and upgradeable.status == "False":
        warnings.extend(_count_in(upgradeable, facts.desired.version, by_minor))
    ordered = {minor: newest_first(by_minor[minor], lambda update: update.release.version) for minor in by_minor}
    return Buckets(dict(sorted(ordered.items(), reverse=True)), tuple(warnings))


def _count_in(upgradeable: Condition, current: str, updates_by_minor: dict[Minor, list[Update]]) -> Iterator[Output]:
    """Applies Upgradeable=False to the updates that leave the minor version."""
    try:
        current_minor = minor_of(current)
    except ValueError as error:
        text = "warning: Cannot inject Upgradeable=False as a conditional update risk: cannot parse SemVer version"
        detail = f"Reason: {upgradeable.reason}\n  Message: {indent_lines(upgradeable.message)}\n\n"
        yield err(f'{text} "{current}": {error}\n\n{detail}')
        return
    for minor in updates_by_minor:
        if minor > current_minor:
            updates_by_minor[minor] = [
                _with_upgradeable_risk(upgradeable, update) for update in updates_by_minor[minor]
            ]


def _with_upgradeable_risk(upgradeable: Condition, update: Update) -> Update:
    """Returns `update` with Upgradeable=False as a risk, unless it carries the same reason already."""
    # The update may carry the same reason as a risk already.
    if any(upgradeable.message in risk.message for risk in update.risks):
        return update
    reason, message = upgradeable.reason, upgradeable.message
    if update.recommended is not None and update.recommended.status != "True":
        reason, message = "MultipleReasons", f"{message}\n\n{update.recommended.message}"
    risks = (*update.risks, Risk("UpgradeableFalse", upgradeable.message))
    return msgspec.structs.replace(update, risks=risks, recommended=Condition("Recommended", "False", reason, message))
