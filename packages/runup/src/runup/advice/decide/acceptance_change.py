"""Decides on acceptances of risks: which names a command line adds or removes, and which records that changes. Pure.

Texts on stdout are oc's. Beyond oc, a name that no update carries gets a warning with the most similar known name, and
the reason, user and end of an acceptance are recorded in a ConfigMap.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any

import msgspec

from kubekit.api.conditions import find
from kubekit.error_types import InputError
from kubekit.lang.gotext import quote_go
from runup.advice.decide import acceptance, lifting
from runup.api.config_v1 import ClusterVersion
from runup.process.messages import Output, err

# A little wider than a report's names, because the update service and the cluster name risks as well.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_NAME = 256
_SPAN = re.compile(r"([1-9][0-9]{0,5})([dhm])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Changes to the data of the ConfigMap of records; None removes a record.
Data = dict[str, str | None]


class Change(msgspec.Struct, frozen=True):
    """The requested change; `remove` and `replace` exclude each other."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replace: bool = False
    clear: bool = False

    def applied(self, existing: Sequence[str]) -> tuple[str, ...]:
        """Returns the list afterwards: kept names in their order, new names sorted at the end."""
        if self.clear:
            return ()
        kept_names = () if self.replace else tuple(name for name in existing if name not in self.remove)
        return (*kept_names, *(name for name in sorted(set(self.add)) if name not in kept_names))

    def left(self, existing: Sequence[str]) -> tuple[str, ...]:
        """Returns the names that are no longer accepted: removed from the list, or requested to be removed."""
        after = self.applied(existing)
        return tuple(name for name in dict.fromkeys((*existing, *self.remove)) if name not in after)


def parse_change(args: Sequence[str], *, replace: bool, clear: bool) -> Change:
    """Returns the change that the command line asks for. Raises ValueError with oc's message."""
    if clear and replace:
        raise ValueError("--clear and --replace are mutually exclusive")
    if clear:
        if args:
            raise ValueError(f"unknown command {quote_go(' '.join(args))}")
        return Change(clear=True)
    if not args:
        raise ValueError("no positional arguments given")
    if len(args) > 1:
        raise ValueError("multiple positional arguments given")
    items = [item.strip() for item in args[0].split(",")]
    for item in items:
        if item in ("", "-"):
            raise ValueError(f"illegal risk {quote_go(item)}")
    add = tuple(item for item in items if not item.endswith("-"))
    remove = tuple(item[:-1] for item in items if item.endswith("-"))
    if conflicting := sorted(set(add) & set(remove)):
        raise ValueError(f"requested risks with both Risk and Risk-: {','.join(conflicting)}")
    if replace and remove:
        raise ValueError("The suffix '-' on risks is not allowed if --replace is specified")
    return Change(add, remove, replace)


def check_names(change: Change, existing: Sequence[str], known_names: Sequence[str]) -> None:
    """Raises InputError for a new name that no risk can have: it would stay accepted for ever without effect."""
    for name in change.add:
        if name in known_names or name in existing or (_NAME.fullmatch(name) and len(name) <= _MAX_NAME):
            continue
        near = get_close_matches(name, known_names, n=1, cutoff=0.6)
        hint = (
            f"did you mean {quote_go(near[0])}?" if near else "see them with `runup upgrade --include-not-recommended`"
        )
        text = f"no risk can be called {quote_go(name)}: names are letters, digits, dots and dashes"
        raise InputError(f"{text}; {hint} Nothing was changed" if near else f"{text}; {hint}. Nothing was changed")


def unknown_names(change: Change, existing: Sequence[str], known_names: Sequence[str]) -> Iterator[str]:
    """Yields a warning for each new name that no update of this cluster carries now."""
    for name in sorted(set(change.add) - set(known_names) - set(existing)):
        near = get_close_matches(name, known_names, n=1, cutoff=0.6)
        hint = f"; did you mean {quote_go(near[0])}?" if near else ""
        yield f"warning: no update of this cluster has a risk {quote_go(name)} now{hint}\n"


def without_effect(change: Change, cluster: ClusterVersion) -> Iterator[str]:
    """Yields a warning for each new name whose acceptance does not lift the risk, for those updates."""
    for name in sorted(set(change.add)):
        targets = [
            update.release.version
            for update in cluster.status.conditional_updates
            for risk in update.risks
            if risk.name == name
            and not lifting.is_acceptable(cluster, update.release.version, name, find(risk.conditions, "Applies"))
        ]
        if targets:
            yield (
                f"warning: accepting {name} does not lift it for {', '.join(targets)}: "
                f"see `runup preflight explain {name}`\n"
            )


def warnings_of(change: Change, cluster: ClusterVersion, known_names: Sequence[str]) -> list[Output]:
    """Returns warnings about the names to be accepted. Raises InputError for one that no risk can have."""
    existing = names_in_spec(cluster)
    check_names(change, existing, known_names)
    return [err(line) for line in (*unknown_names(change, existing, known_names), *without_effect(change, cluster))]


def names_in_spec(cluster: ClusterVersion) -> tuple[str, ...]:
    """Returns the names in `spec.desiredUpdate.acceptRisks`, in their order."""
    desired = cluster.spec.desired_update
    return desired.accepted_names if desired else ()


def patch_of(change: Change, cluster: ClusterVersion) -> dict[str, Any] | None:
    """Returns the merge patch that makes the list as requested; None if it already is."""
    existing = names_in_spec(cluster)
    after = change.applied(existing)
    if after == existing:
        return None
    return {"spec": {"desiredUpdate": {"acceptRisks": [{"name": name} for name in after] or None}}}


def parse_until(text: str, now: datetime) -> datetime:
    """Returns the end of an acceptance. Raises InputError if `text` is not a time, or the time is past."""
    try:
        if match := _SPAN.fullmatch(text):
            end = now + int(match[1]) * _UNITS[match[2]]
        elif _DATE.fullmatch(text):
            # A date means the end of that day.
            end = datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(days=1)
        else:
            end = datetime.fromisoformat(text)
            if end.tzinfo is None:
                raise ValueError("no zone")
            end = end.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        example = "such as 30d, 12h, 2026-12-31 or 2026-12-31T12:00:00Z"
        raise InputError(f'--until must be a span or a time {example}, not "{text}"') from error
    if end <= now:
        raise InputError(f"--until {text} is over already; it is {acceptance.stamp(now)} now")
    return end


def plan_records(
    stored_records: Mapping[str, str],
    add: Iterable[str],
    new: acceptance.Acceptance,
    *,
    now: datetime,
    objects: Mapping[str, Collection[str]] | None = None,
) -> Data:
    """Returns the changes to the records for the names that are added; `new` has the reason, user and end.

    `objects` are what each risk is about now, which its record keeps. A name without any of these gets a record only to
    replace one that has ended: otherwise accepting it again would change nothing. A record that has not ended keeps its
    reason and end if no others are given.
    """
    records, objects = acceptance.read(stored_records), objects or {}
    has_details = bool(new.reason or new.until)
    change: Data = {}
    for name in add:
        record = new._replace(name=name)
        before = acceptance.record_of(name, records)
        if before is not None and not has_details and not before.ended(now):
            record = before._replace(by=new.by, at=new.at)
        if current := objects.get(name):
            record = record.covering(current)
        is_new = before is None or before.ended(now) or (record.objects, record.total) != (before.objects, before.total)
        if has_details or (is_new and (record.total or before is not None)):
            change[acceptance.key_of(name)] = acceptance.encode_record(record)
    return change


def removal_data(records: Mapping[str, str], ended_names: Iterable[str]) -> Data:
    """Returns the removal of the records of those names that are no longer accepted, and of no others.

    A record without its name may be of an acceptance in progress, which writes the name next.
    """
    # One by one: an unreadable record is named by its key, and removed under that name.
    names = {key: next(iter(acceptance.read({key: text}))) for key, text in records.items()}
    ended = {form for name in ended_names for form in (name, acceptance.key_of(name))}
    return {key: None for key, name in names.items() if name in ended}
