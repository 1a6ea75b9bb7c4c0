"""Renders `runup upgrade recommend` as oc prints it, byte for byte, in order and by stream; and as data. Pure.

The printed text and the final error are one value, `Advice`, because the same issues and acceptances decide both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from kubekit.lang.oc_version import newest_first, parse_as_oc
from runup.advice.control.recommend_input import RecommendInput
from runup.advice.decide.alert_conditions import Check
from runup.api.clusterversion_json import Condition, Facts, Risk, Update, mapping
from runup.cli.advice.recommend_additions import Extras
from runup.cli.render.overview import NO_INFO, NO_UPDATES, channel_line
from runup.cli.render.text import Output, columns, err, indent_lines, out, reason_and_message

JSON = dict[str, Any]
Minor = tuple[int, int]
_UMBRELLA = "ConditionalUpdateRisk"
_FINE = "no known issues relevant to this cluster"
_UPDATES_PER_MINOR = 2


class RecommendFlags(msgspec.Struct, frozen=True):
    """The flags of the command. `version` is already validated."""

    version: str = ""
    outdated: bool = False
    quiet: bool = False
    accept: frozenset[str] = frozenset()


class Advice(msgspec.Struct, frozen=True):
    """The text to print, the issues that were found, and the error to end with (empty: none)."""

    output: tuple[Output, ...]
    issues: frozenset[str]
    error: str = ""


def advise(facts: Facts, checks: Sequence[Check], problem: str, flags: RecommendFlags) -> Advice:
    """Returns the whole answer. `problem` is the reason why the prechecks could not be made, if so."""
    issues: set[str] = set()
    offered = buckets(facts)
    lines = [
        *_cluster_state(facts, flags.accept, issues),
        *_prechecks(checks, problem, flags.accept, issues),
    ]
    retrieved = facts.condition("RetrievedUpdates")
    if retrieved is not None and retrieved.status != "True":
        issues.add("CannotRetrieveUpdates")
        lines.append(err(f"warning: Cannot refresh available updates:\n{_detail(retrieved)}\n"))
    if facts.channel:
        service = ": " + facts.upstream
        if not facts.upstream:
            service = " is unset, so the cluster will use an appropriate default."
        lines += [out(f"Upstream update service{service}\n"), out(channel_line(facts))]
    lines += offered.said
    if not flags.version:
        if not offered.by_minor:
            lines.append(out(NO_UPDATES))
        for (major, minor), updates in offered.by_minor.items():
            name = f"{major}.{minor}"
            lines.append(out(f"\nUpdates to {name}:\n"))
            table = (_HEADER, *map(_table_row, updates))
            lines += [out(_render_table(table))] if flags.outdated else _newest(name, updates)
        return Advice(tuple(lines), frozenset(issues))
    update = _find(offered, flags.version)
    if isinstance(update, str):
        return Advice(tuple(lines), frozenset(issues), update)
    release, verdict = update.release, issue(update)
    image_text = f"Image: {release.image}\nRelease URL: {release.url}\n"
    if verdict is None:
        lines.append(out(f"\nUpdate to {release.version} has {_FINE}.\n{image_text}"))
    else:
        issues.add(_UMBRELLA)
        reason = f"accepted {verdict.reason} via {_UMBRELLA}" if _UMBRELLA in flags.accept else verdict.reason
        head = f"\nUpdate to {release.version} Recommended={verdict.status}:\n{image_text}"
        lines.append(out(f"{head}Reason: {reason}\nMessage: {indent_lines(verdict.message)}\n"))
    unaccepted, names = sorted(issues - flags.accept), ",".join(sorted(issues))
    if unaccepted:
        text = "issues that apply to this cluster but which were not included in --accept"
        return Advice(tuple(lines), frozenset(issues), f"{text}: {','.join(unaccepted)}")
    if issues:
        lines.append(out(f"Update to {flags.version} has {_FINE} other than the accepted {names}.\n"))
    return Advice(tuple(lines), frozenset(issues))


def _cluster_state(facts: Facts, accept: Collection[str], issues: set[str]) -> Iterator[Output]:
    """Yields Failing and Progressing where they need attention, and adds their names to `issues`."""
    failing = facts.condition("Failing")
    prefix = "accepted " if "Failing" in accept else ""
    if failing is None:
        issues.add("Failing")
        yield err(prefix + NO_INFO.format(type="Failing"))
    elif failing.status != "False":
        issues.add("Failing")
        yield out(f"{prefix}Failing={failing.status}:\n\n{_detail(failing)}\n")
    progressing = facts.condition("Progressing")
    if progressing is not None and progressing.status == "True" and progressing.message:
        issues.add("Progressing")
        prefix = "accepted " if "Progressing" in accept else ""
        text = "An update is in progress.  You may wish to let this update complete before requesting a new update."
        yield out(f"{prefix}info: {text}\n  {indent_lines(progressing.message)}\n\n")


def _prechecks(checks: Sequence[Check], problem: str, accept: Collection[str], issues: set[str]) -> Iterator[Output]:
    """Yields the results of the pre-checks, as `oc` words them, and adds the names of failed ones to `issues`."""
    if problem:
        issues.add("FailedToCompletePrecheck")
        yield out(f"Failed to check for at least some preconditions: {problem}\n")
        return
    failing = [check for check in checks if check.condition.status != "True"]
    issues.update(check.name for check in failing)
    about, place_text = "The following conditions found", "in updating this cluster to later releases"
    passing = sorted(f"{c.condition.type} ({c.condition.reason})" for c in checks if c.condition.status == "True")
    accepted = sorted(check.condition.type for check in failing if check.name in accept)
    unaccepted = sorted(check.condition.type for check in failing if check.name not in accept)
    if passing:
        yield out(f"{about} no cause for concern {place_text}: {', '.join(passing)}\n\n")
    if accepted:
        explained = f"{place_text}, but were explicitly accepted via --accept"
        yield out(f"{about} cause for concern {explained}: {', '.join(accepted)}\n\n")
    if unaccepted:
        yield out(f"{about} cause for concern {place_text}: {', '.join(unaccepted)}\n\n")
        for check in failing:
            yield out(f"{check.condition.type}={check.condition.status}:\n\n{_detail(check.condition)}\n")


def _find(offered: Buckets, version: str) -> Update | str:
    """Returns the update to `version`, or in oc's words why it is missing."""
    major, minor = minor_of(version)
    context = f"cannot display context for the requested release {version}"
    if not offered.by_minor:
        return f"no updates available, so {context}"
    if major not in {key[0] for key in offered.by_minor}:
        return f"no updates to {major} available, so {context}"
    if (major, minor) not in offered.by_minor:
        return f"no updates to {major}.{minor} available, so {context}"
    missing = f"no update to {version} available, so cannot display context for the requested release"
    return next((update for update in offered.by_minor[major, minor] if update.release.version == version), missing)


def _newest(name: str, updates: Sequence[Update]) -> Iterator[Output]:
    """Yields at most two updates of a minor version.

    The header is printed before the first row, and repeated after an update that took several lines.
    """
    after_long, header_printed = False, False
    queue = [_HEADER]
    for number, update in enumerate(updates):
        verdict = issue(update)
        if after_long or verdict is not None:
            yield out("\n")
            if verdict is None and header_printed:
                queue.append(_HEADER)
            after_long = False
        # oc shows the two newest updates of each minor version.
        if number == _UPDATES_PER_MINOR:
            more = f"And {len(updates) - _UPDATES_PER_MINOR} older {name} updates you can see with"
            yield out(f"{more} '--show-outdated-releases' or '--version VERSION'.\n")
            return
        if verdict is None:
            yield out(_render_table([*queue, _table_row(update)]))
            queue, header_printed = [], True
            continue
        release = update.release
        yield out(
            f"  Version: {release.version}\n  Image: {release.image}\n  Reason: {verdict.reason}\n"
            f"  Message: {indent_lines(verdict.message.strip())}\n"
        )
        after_long = True


_HEADER = ("  VERSION", "ISSUES")


def _table_row(update: Update) -> tuple[str, str]:
    verdict = issue(update)
    return f"  {update.release.version}", verdict.reason if verdict is not None else _FINE


def _render_table(rows: Sequence[tuple[str, str]]) -> str:
    return columns(rows, minwidth=14, padding=1)


def _detail(condition: Condition) -> str:
    return reason_and_message(condition.reason, condition.message) + "\n"


class Buckets(msgspec.Struct, frozen=True):
    """Updates by (major, minor), both descending, the newest first; `said` are warnings about unreadable versions."""

    by_minor: dict[Minor, list[Update]]
    said: tuple[Output, ...] = ()


def minor_of(version: str) -> Minor:
    """Returns major and minor version. Raises ValueError with oc's message."""
    return parse_as_oc(version).minor_version


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
        try:
            current_minor = minor_of(facts.desired.version)
        except ValueError as error:
            head = "warning: Cannot inject Upgradeable=False as a conditional update risk: cannot parse SemVer version"
            detail = f"Reason: {upgradeable.reason}\n  Message: {indent_lines(upgradeable.message)}\n\n"
            warnings.append(err(f'{head} "{facts.desired.version}": {error}\n\n{detail}'))
        else:
            for minor in filter(lambda minor: minor > current_minor, by_minor):
                by_minor[minor] = [_with_upgradeable_risk(upgradeable, update) for update in by_minor[minor]]
    ordered = {minor: newest_first(by_minor[minor], lambda update: update.release.version) for minor in by_minor}
    return Buckets(dict(sorted(ordered.items(), reverse=True)), tuple(warnings))


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


def as_data(facts: Facts, inputs: RecommendInput, flags: RecommendFlags, advice: Advice, more: Extras) -> JSON:
    """Returns everything that is printed, and the issues that decide the exit code."""
    offered = buckets(facts)
    accepted = {row["name"] for row in more.acceptances if row["counts"]}
    updates = []
    for update in (update for minor in offered.by_minor.values() for update in minor):
        if flags.version not in ("", update.release.version):
            continue
        verdict = issue(update)
        updates.append(
            {
                "version": update.release.version,
                "image": update.release.image,
                "url": update.release.url,
                "recommended": verdict.status if verdict else "True",
                "reason": verdict.reason if verdict else None,
                "message": verdict.message if verdict else None,
                "risks": [
                    {"name": risk.name, "message": risk.message, "accepted": risk.name in accepted}
                    for risk in update.risks
                ],
            }
        )
    return {
        "desired": mapping(mapping(facts.json, "status"), "desired"),
        "channel": facts.channel,
        "channels": list(facts.channels),
        "upstream": facts.upstream,
        "conditions": [_condition_data(condition) for condition in facts.conditions],
        "prechecks": [
            {
                **_condition_data(check.condition),
                "acceptName": check.name or None,
                "accepted": check.name in flags.accept,
            }
            for check in inputs.checks
        ],
        "precheckProblem": inputs.problem or None,
        "updates": updates,
        "issues": sorted(advice.issues),
        "unacceptedIssues": sorted(advice.issues - flags.accept),
        "preflights": more.preflights,
        "acceptances": more.acceptances,
        "error": advice.error or None,
    }


def _condition_data(condition: Condition) -> JSON:
    """Returns the condition without its transition time, which changes from run to run."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
