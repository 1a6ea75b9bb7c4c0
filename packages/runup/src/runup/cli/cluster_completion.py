"""Completes versions and risk names from the cluster, if it answers at once.

Any error results in no completion: a shell that waits, or prints an error into the line, is worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from runup.cli import static_completion
from runup.cli.connection import connection_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from runup.api.config_v1 import ClusterVersion

_LIMIT_S = 2.0


def versions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Returns the versions that the cluster knows as updates, newest first, described as recommended or risky."""
    return _matching_items(_ask_cluster(ctx, _target_versions), incomplete)


def risks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Returns the names of risks, also after a comma."""
    # `upgrade accept A,B` takes several names: the last one is completed, the ones before it stay.
    typed_names, comma, last = incomplete.rpartition(",")
    start = typed_names + comma
    return [
        static_completion.item(start + candidate.value, help=candidate.help)
        for candidate in _matching_items(_ask_cluster(ctx, _risks), last)
    ]


def _matching_items(items: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [static_completion.item(name, help=text) for name, text in items if name.startswith(incomplete)]


def _target_versions(cluster: ClusterVersion) -> list[tuple[str, str]]:
    """Returns the versions that the cluster is offered, the newest first, each with a word about its risks."""
    from kubekit.lang.oc_version import newest_first

    labels_by_version = {release.version: "recommended" for release in cluster.status.available_updates or ()}
    for update in cluster.status.conditional_updates:
        # A conditional update whose risks are all accepted is in both lists: it counts as recommended.
        labels_by_version.setdefault(update.release.version, "with known risks")
    return newest_first(labels_by_version.items(), lambda pair: pair[0])


def _risks(cluster: ClusterVersion) -> list[tuple[str, str]]:
    from runup.preflight.decide.findings import known_risk_names

    return [(name, "") for name in known_risk_names(cluster)]


def _ask_cluster(ctx: click.Context, names: Callable[[ClusterVersion], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Returns the names that the cluster has; none if it does not answer within `_LIMIT_S` seconds."""
    try:
        from kubekit.kube.client_sync import SyncClient
        from kubekit.kube.transport import Timeouts
        from runup.process.clusterversion_client import read

        with SyncClient(connection_of(ctx).config(), timeouts=Timeouts(_LIMIT_S, _LIMIT_S)) as client:
            return names(read(client))
    except Exception:  # noqa: BLE001 (see the module's docstring)
        return []
