"""Reads and writes the ConfigMap that records why, by whom and until when each risk is accepted.

`plan` is pure. `accept NAME`, as oc has it, writes no record, except to renew one that has ended or to remove those of
names that are no longer accepted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, KubeError, NotFound, message_of
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance
from runup.api.clusterversion_json import texts
from runup.process import clusterversion_client as clusters

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.cli.result_output import ResultPrinter

_SPAN = re.compile(r"([1-9][0-9]{0,5})([dhm])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_REVIEWS = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
Data = dict[str, str | None]


def parse_until(text: str, now: datetime) -> datetime:
    """Returns the end of an acceptance. Raises InputError if `text` is not a time, or the time is past."""
    try:
        end = _parse_end(text, now)
    except (ValueError, OverflowError) as error:
        example = "such as 30d, 12h, 2026-12-31 or 2026-12-31T12:00:00Z"
        raise InputError(f'--until must be a span or a time {example}, not "{text}"') from error
    if end <= now:
        raise InputError(f"--until {text} is over already; it is {acceptance.stamp(now)} now")
    return end


def _parse_end(text: str, now: datetime) -> datetime:
    """Returns when an acceptance ends: after `12h` or `7d`, at a time, or with a date's last moment."""
    if match := _SPAN.fullmatch(text):
        return now + int(match[1]) * _UNITS[match[2]]
    if _DATE.fullmatch(text):
        # A date means the end of that day.
        return datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(days=1)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment.astimezone(UTC)


def plan(
    stored_records: Mapping[str, str],
    add: Iterable[str],
    new: Acceptance,
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


def forget_records(client: SyncClient, ended_names: Iterable[str], printer: ResultPrinter) -> bool:
    """Removes the records of names that are no longer accepted; returns whether there were any.

    If that fails, it only warns, because a record without its name accepts nothing.
    """
    ended_names = set(ended_names)
    document = clusters.read_record(client, acceptance.NAME) if ended_names else None
    change = removal_data(texts(document, "data"), ended_names) if document is not None else {}
    try:
        if change:
            _write_records(client, change)
    except KubeError as error:
        printer.say(("err", f"warning: the records of what is accepted no more stay: {message_of(error)}\n"))
        return False
    return bool(change)


def keep_records(
    client: SyncClient,
    add: Iterable[str],
    reason: str,
    until: str,
    objects: Mapping[str, Collection[str]] | None,
    printer: ResultPrinter,
) -> bool:
    """Writes the due records; returns whether there were any. `objects` are what each risk is about now.

    Raises InputError if --until or --reason is invalid, or a needed record cannot be written.
    """
    reason = reason.strip()
    if len(reason) > acceptance.MAX_REASON:
        raise InputError(f"--reason is longer than {acceptance.MAX_REASON} characters; give the gist and a link")
    document = clusters.read_record(client, acceptance.NAME)
    now = client.now()
    end = parse_until(until, now) if until else None
    objects = {name: items for name, items in (objects or {}).items() if items}
    if document is None and not reason and end is None and not objects:
        return False
    # The name is needed only for a record that is written.
    user = user_name(client) if reason or end or document or objects else ""
    change = plan(texts(document, "data"), tuple(add), Acceptance("", reason, user, now, end), now, objects)
    return bool(change) and _write(client, change, printer, needed=end is not None or document is not None)


def user_name(client: SyncClient) -> str:
    """Returns the user's name as the server knows it, empty for older servers without SelfSubjectReview."""
    try:
        answer = client.send(calls.create(_REVIEWS, {"kind": _REVIEWS.kind, "apiVersion": _REVIEWS.api_version}))
    except KubeError:
        return ""
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")


def _write(client: SyncClient, change: Data, printer: ResultPrinter, *, needed: bool) -> bool:
    """Writes the change and returns whether that succeeded.

    Without a namespace for the ConfigMap, a reason that is not `needed` is dropped with a warning. Raises InputError
    for other failures.
    """
    namespace = clusters.namespace()
    try:
        _write_records(client, change)
    except KubeError as error:
        # A cluster without the operator has no namespace for the record; the acceptance itself is oc's and works.
        if isinstance(error, NotFound) and not needed:
            printer.say(("err", f"warning: why could not be recorded: there is no namespace {namespace}\n"))
            return False
        text = f"ConfigMap {namespace}/{acceptance.NAME}: {message_of(error)}"
        raise InputError(f"unable to record why and until when, so nothing was accepted: {text}") from error
    return True


def _write_records(client: SyncClient, change: Data) -> None:
    """Merges `change` into the ConfigMap of acceptance records, or creates it; None removes a record."""
    # The operator watches objects with these labels, which a hand-made ConfigMap may lack.
    body = {"metadata": {"labels": acceptance.LABELS}, "data": change}
    try:
        client.send(calls.merge_patch(resource_of(ConfigMap), acceptance.NAME, body, namespace=clusters.namespace()))
    except NotFound:
        _create(client, {key: value for key, value in change.items() if value is not None})


def _create(client: SyncClient, data: Mapping[str, str]) -> None:
    """Creates the ConfigMap of acceptances with `data`, or merges `data` into one that was made meanwhile."""
    metadata = {"name": acceptance.NAME, "namespace": clusters.namespace(), "labels": acceptance.LABELS}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    try:
        client.send(calls.create(resource_of(ConfigMap), body))
    except AlreadyExists:  # another user created the ConfigMap at the same moment
        patch = calls.merge_patch(
            resource_of(ConfigMap), acceptance.NAME, {"data": dict(data)}, namespace=clusters.namespace()
        )
        client.send(patch)
