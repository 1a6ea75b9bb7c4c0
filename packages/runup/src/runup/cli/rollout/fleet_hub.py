"""Implements `runup fleet update` with `--hub`, for a FleetUpdate that a hub's controller carries out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runup.cli.connection import connection_of
from runup.process.names import FLEET_NAMESPACE

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.api.update_policy_v1alpha1 import Control
    from runup.fleet.decide.update_view import FleetView

# By command: the value of `spec.control`, and what it does.
_CONTROLS: dict[str, tuple[Control, str]] = {
    "hold": ("Hold", "is held: nothing more is started as soon as the hub's controller has read it"),
    "resume": ("Run", "continues"),
    "abort": ("Abort", "is aborted: runs that have not begun end"),
}


@contextmanager
def _hub_client(ctx: click.Context, hub: str) -> Iterator[SyncClient]:
    """Yields a client of the hub, as the command's own user."""
    from runup.fleet.control.cluster_sources import connection_to
    from runup.fleet.decide.members import Member

    with connection_to(Member(name=hub, context=hub), connection_of(ctx)).client("fleet update") as client:
        yield client


def _named(target: str, namespace: str) -> tuple[str, str]:
    """Returns namespace and name of the FleetUpdate that a file or a name means."""
    if not Path(target).is_file():
        return namespace or FLEET_NAMESPACE, target
    from runup.rollout.control import fleet_files

    metadata = fleet_files.read_objects(target).update.metadata
    return namespace or metadata.namespace or FLEET_NAMESPACE, metadata.name


def check(ctx: click.Context, target: str, *, hub: str, namespace: str) -> tuple[str, int]:
    """Returns whether the hub can carry out a FleetUpdate of a file or of the hub, as text and as an exit code."""
    from msgspec.structs import replace

    from kubekit.lang.text import count
    from runup.fleet.control import hub_fleets
    from runup.fleet.decide.hub_update.observation import observe
    from runup.fleet.decide.hub_update.refusals import refusal
    from runup.rollout.control import fleet_files

    with _hub_client(ctx, hub) as client:
        place, name = _named(target, namespace)
        if Path(target).is_file():
            fleet = fleet_files.read_objects(target).update
            fleet = replace(fleet, metadata=replace(fleet.metadata, namespace=place))
        else:
            fleet = hub_fleets.read_fleet(client, place, name)
        observed = observe(fleet, hub_fleets.read_hub_of(client, place, (fleet,)))
    lines = [
        f"{stage.name}: {count(len(seen.members), 'cluster')}" if seen.members is not None else f"{stage.name}: unknown"
        for stage, seen in zip(fleet.spec.stages, observed.stages, strict=True)
    ]
    refused = refusal(fleet, observed.stages, observed.clusters, observed.engine)
    if refused is None:
        verdict, code = "The hub can carry out the update. Each cluster still evaluates its own gates.", 0
    else:
        verdict, code = f"{refused.reason}: {refused.message}", 3 if refused.unknown else 1
    return "".join(f"{line}\n" for line in (*lines, verdict)), code


def view(ctx: click.Context, target: str, *, hub: str, namespace: str, clusters: bool) -> FleetView:
    """Returns the view of a FleetUpdate as the controller has stored it; `clusters`: with each cluster."""
    from runup.fleet.control import hub_fleets
    from runup.fleet.decide.hub_update.hub_view import cluster_lines, hub_view

    with _hub_client(ctx, hub) as client:
        place, name = _named(target, namespace)
        fleet = hub_fleets.read_fleet(client, place, name)
        why = hub_fleets.why_unconfirmed(client, place)
        lines = cluster_lines(fleet, hub_fleets.read_clusters(client, fleet)) if clusters else ()
        return hub_view(fleet, client.now(), hub=hub, unconfirmed=why, clusters=lines)


def control(
    ctx: click.Context,
    target: str,
    *,
    hub: str,
    namespace: str,
    word: str,
    reason: str = "",
    acknowledges: bool = False,
) -> str:
    """Holds, resumes or aborts a FleetUpdate, and returns what the user reads."""
    from runup.fleet.control import hub_fleets
    from runup.fleet.decide.hub_update.hub_view import control_patch

    value, effect = _CONTROLS[word]
    with _hub_client(ctx, hub) as client:
        place, name = _named(target, namespace)
        hub_fleets.change(
            client,
            place,
            name,
            lambda fleet: control_patch(fleet, value, reason=reason.strip(), acknowledges=acknowledges),
        )
    return f"FleetUpdate {name} {effect}; `runup fleet update status {name} --hub {hub}` shows when it has\n"


def approve(
    ctx: click.Context,
    target: str,
    *,
    hub: str,
    namespace: str,
    stage: str,
    gate: str,
    reason: str,
    until: str,
) -> str:
    """Approves a stage in the name of the hub's user, and returns what the user reads."""
    from runup.cli.output import write
    from runup.fleet.control import hub_fleets
    from runup.rollout.control import run_changes
    from runup.rollout.decide.approvals import new_stage_approval

    with _hub_client(ctx, hub) as client:
        place, name = _named(target, namespace)
        fleet = hub_fleets.read_fleet(client, place, name)
        spec, created, warnings = run_changes.create_approval(
            client,
            lambda wanted: new_stage_approval(fleet, stage, wanted, client.now()),
            gate=gate,
            reason=reason,
            until=until,
        )
    write(warnings)
    version = fleet.spec.target.version
    return f"Approved {gate} of stage {stage} for {version} as {spec.approved_by} (UpdateApproval {created})\n"


def retry(ctx: click.Context, target: str, *, hub: str, namespace: str, stage: str) -> str:
    """Opens a stage again, and returns what the user reads."""
    from runup.fleet.control import hub_fleets
    from runup.fleet.decide.hub_update.hub_view import retry_patch

    with _hub_client(ctx, hub) as client:
        place, name = _named(target, namespace)
        hub_fleets.change(client, place, name, lambda fleet: retry_patch(fleet, stage))
    return f"Stage {stage} of FleetUpdate {name} is opened again: its clusters that have not ended get turns\n"
