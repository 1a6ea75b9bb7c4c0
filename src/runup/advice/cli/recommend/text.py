"""`runup upgrade recommend` as oc prints it, byte for byte, in order and by stream. Pure.

What is printed and what the command ends with are one value: `Advice`. Which issues are counted and which were
accepted decides both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kubekit.lang.value import Value
from runup.advice.cli.recommend.alerts import Check
from runup.advice.cli.recommend.buckets import Buckets, buckets, issue, minor_of
from runup.cli.facts import Condition, Facts, Update
from runup.cli.render.overview import NO_INFO, NO_UPDATES, channel_line
from runup.cli.render.text import Output, columns, err, indented, out, reason_and_message

_UMBRELLA = "ConditionalUpdateRisk"
_FINE = "no known issues relevant to this cluster"
_SHORT = 2


class Asked(Value):
    """The flags. `version` is checked already."""

    version: str = ""
    outdated: bool = False
    quiet: bool = False
    accept: frozenset[str] = frozenset()


class Advice(Value):
    """What to print, the issues that were met, and the error to end with (empty: none)."""

    output: tuple[Output, ...]
    issues: frozenset[str]
    error: str = ""


def advise(facts: Facts, checks: Sequence[Check], problem: str, asked: Asked) -> Advice:
    """The whole answer. `problem` says why the prechecks could not be made, where they could not."""
    issues: set[str] = set()
    said = [
        *_state(facts, asked.accept, issues),
        *_prechecks(checks, problem, asked.accept, issues),
        *_service(facts, issues),
    ]
    found = buckets(facts)
    said.extend(found.said)
    if not asked.version:
        return Advice((*said, *_listed(found, outdated=asked.outdated)), frozenset(issues))
    update = _find(found, asked.version)
    if isinstance(update, str):
        return Advice(tuple(said), frozenset(issues), update)
    said.extend(_one(update, asked, issues))
    left, names = sorted(issues - asked.accept), ",".join(sorted(issues))
    if left:
        text = "issues that apply to this cluster but which were not included in --accept"
        return Advice(tuple(said), frozenset(issues), f"{text}: {','.join(left)}")
    if issues:
        said.append(out(f"Update to {asked.version} has {_FINE} other than the accepted {names}.\n"))
    return Advice(tuple(said), frozenset(issues))


def _state(facts: Facts, accept: Collection[str], issues: set[str]) -> Iterator[Output]:
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
        yield out(f"{prefix}info: {text}\n  {indented(progressing.message)}\n\n")


def _prechecks(checks: Sequence[Check], problem: str, accept: Collection[str], issues: set[str]) -> Iterator[Output]:
    if problem:
        issues.add("FailedToCompletePrecheck")
        yield out(f"Failed to check for at least some preconditions: {problem}\n")
        return
    sad = [check for check in checks if check.condition.status != "True"]
    issues.update(check.name for check in sad)
    about, where = "The following conditions found", "in updating this cluster to later releases"
    happy = sorted(f"{c.condition.type} ({c.condition.reason})" for c in checks if c.condition.status == "True")
    taken = sorted(check.condition.type for check in sad if check.name in accept)
    left = sorted(check.condition.type for check in sad if check.name not in accept)
    if happy:
        yield out(f"{about} no cause for concern {where}: {', '.join(happy)}\n\n")
    if taken:
        explained = f"{where}, but were explicitly accepted via --accept"
        yield out(f"{about} cause for concern {explained}: {', '.join(taken)}\n\n")
    if left:
        yield out(f"{about} cause for concern {where}: {', '.join(left)}\n\n")
        for check in sad:
            yield out(f"{check.condition.type}={check.condition.status}:\n\n{_detail(check.condition)}\n")


def _service(facts: Facts, issues: set[str]) -> Iterator[Output]:
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


def _listed(found: Buckets, *, outdated: bool) -> Iterator[Output]:
    if not found.by_minor:
        yield out(NO_UPDATES)
    for (major, minor), updates in found.by_minor.items():
        name = f"{major}.{minor}"
        yield out(f"\nUpdates to {name}:\n")
        yield from [out(_table([_HEADER, *map(_row, updates)]))] if outdated else _newest(name, updates)


def _newest(name: str, updates: Sequence[Update]) -> Iterator[Output]:
    """Two updates at most; a header waits for a row, and is repeated after an update that took several lines."""
    after_long, header_printed = False, False
    queue = [_HEADER]
    for number, update in enumerate(updates):
        speaks = issue(update)
        if after_long or speaks is not None:
            yield out("\n")
            if speaks is None and header_printed:
                queue.append(_HEADER)
            after_long = False
        if number == _SHORT:
            more = f"And {len(updates) - _SHORT} older {name} updates you can see with"
            yield out(f"{more} '--show-outdated-releases' or '--version VERSION'.\n")
            return
        if speaks is None:
            yield out(_table([*queue, _row(update)]))
            queue, header_printed = [], True
            continue
        release = update.release
        yield out(
            f"  Version: {release.version}\n  Image: {release.image}\n  Reason: {speaks.reason}\n"
            f"  Message: {indented(speaks.message.strip())}\n"
        )
        after_long = True


_HEADER = ("  VERSION", "ISSUES")


def _row(update: Update) -> tuple[str, str]:
    speaks = issue(update)
    return f"  {update.release.version}", speaks.reason if speaks is not None else _FINE


def _table(rows: Sequence[tuple[str, str]]) -> str:
    return columns(rows, minwidth=14, padding=1)


def _find(found: Buckets, version: str) -> Update | str:
    """The update to `version`, or the error that says how far one gets."""
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


def _one(update: Update, asked: Asked, issues: set[str]) -> Iterator[Output]:
    release, speaks = update.release, issue(update)
    where = f"Image: {release.image}\nRelease URL: {release.url}\n"
    if speaks is None:
        yield out(f"\nUpdate to {release.version} has {_FINE}.\n{where}")
        return
    issues.add(_UMBRELLA)
    reason = f"accepted {speaks.reason} via {_UMBRELLA}" if _UMBRELLA in asked.accept else speaks.reason
    head = f"\nUpdate to {release.version} Recommended={speaks.status}:\n{where}"
    yield out(f"{head}Reason: {reason}\nMessage: {indented(speaks.message)}\n")


def _detail(condition: Condition) -> str:
    return reason_and_message(condition.reason, condition.message) + "\n"
