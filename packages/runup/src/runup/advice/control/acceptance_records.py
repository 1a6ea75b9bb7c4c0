"""Reads and writes the ConfigMap that records why, by whom and until when each risk is accepted.

`accept NAME`, as oc has it, writes no record, except to renew one that has ended or to remove those of names that are
no longer accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, KubeError, NotFound, message_of
from runup.advice.decide import acceptance
from runup.advice.decide.acceptance_change import Data, parse_until, plan_records, removal_data
from runup.api.clusterversion_json import texts
from runup.process import clusterversion_client as clusters
from runup.process.messages import Say, err

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient

_REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", kind="SelfSubjectReview", plural="selfsubjectreviews", namespaced=False
)


def forget_records(client: SyncClient, ended_names: Iterable[str], say: Say) -> bool:
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
        say(err(f"warning: the records of what is accepted no more stay: {message_of(error)}\n"))
        return False
    return bool(change)


def keep_records(
    client: SyncClient,
    add: Iterable[str],
    *,
    reason: str,
    until: str,
    objects: Mapping[str, Collection[str]] | None,
    say: Say,
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
    new = acceptance.Acceptance(name="", reason=reason, by=user, at=now, until=end)
    change = plan_records(texts(document, "data"), add, new, now=now, objects=objects)
    return bool(change) and _write(client, change, say, needed=end is not None or document is not None)


def user_name(client: SyncClient) -> str:
    """Returns the user's name as the server knows it, empty for older servers without SelfSubjectReview."""
    try:
        answer = client.send(calls.create(_REVIEWS, {"kind": _REVIEWS.kind, "apiVersion": _REVIEWS.api_version}))
    except KubeError:
        return ""
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")


def _write(client: SyncClient, change: Data, say: Say, *, needed: bool) -> bool:
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
            say(err(f"warning: why could not be recorded: there is no namespace {namespace}\n"))
            return False
        text = f"ConfigMap {namespace}/{acceptance.NAME}: {message_of(error)}"
        raise InputError(f"unable to record why and until when, so nothing was accepted: {text}") from error
    return True


def _write_records(client: SyncClient, change: Data) -> None:
    """Merges `change` into the ConfigMap of acceptance records, or creates it; None removes a record."""
    # The operator watches objects with these labels, which a hand-made ConfigMap may lack.
    body = {"metadata": {"labels": acceptance.LABELS}, "data": change}
    namespace = clusters.namespace()
    try:
        client.send(calls.merge_patch(resource_of(ConfigMap), acceptance.NAME, body, namespace=namespace))
    except NotFound:
        data = {key: value for key, value in change.items() if value is not None}
        metadata = {"name": acceptance.NAME, "namespace": namespace, "labels": acceptance.LABELS}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        try:
            client.send(calls.create(resource_of(ConfigMap), document))
        except AlreadyExists:  # another user created the ConfigMap at the same moment
            client.send(calls.merge_patch(resource_of(ConfigMap), acceptance.NAME, {"data": data}, namespace=namespace))
