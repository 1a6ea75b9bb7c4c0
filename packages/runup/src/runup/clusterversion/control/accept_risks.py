"""Accepts risks of updates by name, and records why, by whom and until when."""

from __future__ import annotations

import msgspec

from kubekit.error_types import InputError
from kubekit.kube.api_errors import KubeError, message_of
from kubekit.kube.client_sync import SyncClient
from runup.advice.control.acceptance_records import forget_records, keep_records
from runup.advice.decide.acceptance_change import Change, names_in_spec, patch_of, warnings_of
from runup.api.config_v1 import ClusterVersion
from runup.preflight.control import cluster_records
from runup.preflight.decide.findings import known_risk_names, objects_of
from runup.process import clusterversion_client as clusters
from runup.process.clusterversion_client import Patch
from runup.process.messages import Output, Say, out


class AcceptanceReason(msgspec.Struct, frozen=True):
    """The reason and end of an acceptance as typed; empty if not given."""

    reason: str = ""
    until: str = ""


class Accepted(msgspec.Struct, frozen=True):
    """The patch that was sent, if any; the names that are accepted now; whether a record was written or removed."""

    patch: Patch | None
    names: tuple[str, ...]
    recorded: bool


def checked(change: Change, cluster: ClusterVersion) -> list[Output]:
    """Returns warnings about the names to be accepted. Raises InputError for one that no risk can have."""
    return warnings_of(change, cluster, known_risk_names(cluster))


def accept_risks(change: Change, client: SyncClient, reason: AcceptanceReason, say: Say) -> Accepted:
    """Records the reason and accepts the risks. Keeps concurrent changes of others.

    Raises InputError if a request fails.
    """
    cluster = clusters.read(client, no="no", server="")
    warnings = checked(change, cluster)
    # A record is written before its name and removed after it: a name without its record would never expire.
    history = cluster_records.read_history(client, clusters.namespace()) if change.add else None
    objects = {name: objects_of(cluster, history, name) for name in change.add} if history else {}
    say(*warnings)
    recorded = keep_records(client, change.add, reason=reason.reason, until=reason.until, objects=objects, say=say)
    try:
        # Strict: a server without the field would drop it and answer as if the risks were accepted.
        before, answer = clusters.change(
            client,
            cluster,
            lambda cluster_version: patch_of(change, cluster_version),
            send=lambda body: clusters.patch(client, body, strict=True),
        )
    except KubeError as error:
        raise InputError(f"unable to accept risks: {message_of(error)}") from error
    existing = names_in_spec(before)
    names = change.applied(existing)
    recorded = forget_records(client, set(change.left(existing)), say) or recorded
    changed = answer is not None or recorded
    say(out(f"info: Accept risks are [{', '.join(names)}]\n" if changed else "info: Accept risks are not changed\n"))
    return Accepted(patch_of(change, before) if answer else None, names, recorded)
