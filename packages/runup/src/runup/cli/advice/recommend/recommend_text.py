"""Renders `runup upgrade recommend` as oc prints it, byte for byte, in order and by stream. Pure.

The printed text and the final error are one value, `Advice`, because the same issues and acceptances decide both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from runup.advice.decide.alert_conditions import Check
from runup.api.clusterversion_json import Condition, Facts, Update
from runup.cli.advice.recommend.updates_by_minor import Buckets, buckets, issue, minor_of
from runup.cli.render.overview import NO_INFO, NO_UPDATES, channel_line
from runup.cli.render.text import Output, columns, err, indent_lines, out, reason_and_message

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
    lines = [
        *_cluster_state(facts, flags.accept, issues),
        *_prechecks(checks, problem, flags.accept, issues),
        *_service(facts, issues),
    ]
    offered = buckets(facts)
    lines.extend(offered.said)
    if not flags.version:
        return Advice((*lines, *_updates_by_minor(offered, outdated=flags.outdated)), frozenset(issues))
    update = _find(offered, flags.version)
    if isinstance(update, str):
        return Advice(tuple(lines), frozenset(issues), update)
    lines.extend(_one_update(update, flags, issues))
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


def _service(facts: Facts, issues: set[str]) -> Iterator[Output]:
    """Yields the update service and the channel, and adds CannotRetrieveUpdates to `issues` if it failed."""
    retrieved = facts.condition("RetrievedUpdates")
    if retrieved is not None and retrieved.status != "True":
        issues.add("CannotRetrieveUpdates")
        yield err(f"warning: Cannot refresh available updates:\n{_detail(retrieved)}\n")
    if not facts.channel:
        return
    if facts.upstream:
        yield out(f"Upstream update service: {facts.upstream}\n")
    else:
        yield out("Upstream update service is unset, so the cluster will use an appropriate default.\n")
    yield out(channel_line(facts))


def _updates_by_minor(found: Buckets, *, outdated: bool) -> Iterator[Output]:
    """Yields the updates under a heading for each minor version; with `outdated` all of them in a table."""
    if not found.by_minor:
        yield out(NO_UPDATES)
    for (major, minor), updates in found.by_minor.items():
        name = f"{major}.{minor}"
        yield out(f"\nUpdates to {name}:\n")
        yield from [out(_render_table([_HEADER, *map(_table_row, updates)]))] if outdated else _newest(name, updates)


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


def _find(found: Buckets, version: str) -> Update | str:
    """Returns the update to `version`, or the error that says which part of the version is not available."""
    major, minor = minor_of(version)
    context = f"cannot display context for the requested release {version}"
    if not found.by_minor:
        return f"no updates available, so {context}"
    if major not in {key[0] for key in found.by_minor}:
        return f"no updates to {major} available, so {context}"
    updates = found.by_minor.get((major, minor))
    if updates is None:
        return f"no updates to {major}.{minor} available, so {context}"
    missing = f"no update to {version} available, so cannot display context for the requested release"
    return next((update for update in updates if update.release.version == version), missing)


def _one_update(update: Update, flags: RecommendFlags, issues: set[str]) -> Iterator[Output]:
    """Yields the text about one update, and adds its risks as an issue."""
    release, verdict = update.release, issue(update)
    image_text = f"Image: {release.image}\nRelease URL: {release.url}\n"
    if verdict is None:
        yield out(f"\nUpdate to {release.version} has {_FINE}.\n{image_text}")
        return
    issues.add(_UMBRELLA)
    reason = f"accepted {verdict.reason} via {_UMBRELLA}" if _UMBRELLA in flags.accept else verdict.reason
    head = f"\nUpdate to {release.version} Recommended={verdict.status}:\n{image_text}"
    yield out(f"{head}Reason: {reason}\nMessage: {indent_lines(verdict.message)}\n")


def _detail(condition: Condition) -> str:
    return reason_and_message(condition.reason, condition.message) + "\n"
