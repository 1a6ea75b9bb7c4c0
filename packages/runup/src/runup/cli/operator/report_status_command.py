"""`cluster-version-operator report-status`, which a Job of the hub's add-on runs in each cluster.

The command reads what `upgrade status` and `upgrade recommend` would show, once, and puts both into ConfigMap
`status-newest`, from where an agent takes them to the hub (docs/decisions/0111).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from runup import __version__
from runup.cli.errors import CommandError
from runup.fleet.decide.status_schedule import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubekit.kube.client_sync import SyncClient
    from runup.fleet.decide.newest_status import NewestStatus

AGENT = f"runup-status/{__version__}"


@click.command(COMMAND)
@click.option("--kubeconfig", default=None, help="Cluster to read, by default the one this runs in.")
@click.option("--context", default=None, help="Context of the kubeconfig.")
def report_status(kubeconfig: str | None, context: str | None) -> int:
    """Put how the update goes, and which updates there are, where an agent takes it to a hub.

    What cannot be read is told in its place; exit code 1 if nothing could be written.
    """
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.config import load

    with SyncClient(load(kubeconfig, context), user_agent=AGENT) as client:
        status = read_status(client)
        from kubekit.kube import calls
        from kubekit.kube.api_errors import NotFound
        from runup.fleet.decide import newest_status
        from runup.preflight.decide.cluster_run import CONFIG_MAP, FIELD_MANAGER, NAMESPACE

        patch = newest_status.with_status(status)
        try:
            client.send(
                calls.merge_patch(CONFIG_MAP, newest_status.NAME, patch, NAMESPACE, field_manager=FIELD_MANAGER)
            )
        except NotFound as error:
            where = f"ConfigMap {NAMESPACE}/{newest_status.NAME}"
            raise CommandError(f"{where}: {error}; the add-on of `runup fleet addon` creates it") from error
    for problem in (status.status_problem, status.advice_problem):
        if problem:
            sys.stderr.write(f"could not be read, which is told to the hub: {problem}\n")
    return 0


def read_status(client: SyncClient) -> NewestStatus:
    """Returns the status and the advice of the cluster, and of a half that cannot be read, why."""
    from runup.fleet.decide.newest_status import FORMAT, NewestStatus

    observed = client.now()
    halves: dict[str, Any] = {}
    for reading, problem in ((_read_update_status, "status_problem"), (_read_advice, "advice_problem")):
        halves |= _tried(reading, client, problem)
    return NewestStatus(format=FORMAT, observed_time=observed, **halves)


def _tried(reading: Callable[[SyncClient], dict[str, Any]], client: SyncClient, problem: str) -> dict[str, Any]:
    from runup.cli.fleet.fleet_members import failure_text

    try:
        return reading(client)
    except Exception as error:
        text = failure_text(error)
        if text is None:
            raise
        return {problem: text}


def _read_update_status(client: SyncClient) -> dict[str, Any]:
    from runup.updatestatus.control import live_status

    reading = live_status.read(client, client.now)
    return {
        "update_status": reading.obj,
        "notes": reading.notes,
        "doubt": reading.doubt,
        "worker_pools_before_master": reading.worker_pools_before_master,
    }


def _read_advice(client: SyncClient) -> dict[str, Any]:
    from runup.advice.control import recommend_input
    from runup.fleet.decide.newest_status import Precheck, for_advice

    # Who accepted which risk is in the operator's ConfigMaps, which the account may not read.
    advice = recommend_input.read_cluster(client, with_records=False)
    prechecks = (
        Precheck(
            name=check.name,
            type=check.condition.type,
            status=check.condition.status,
            reason=check.condition.reason,
            message=check.condition.message,
        )
        for check in advice.checks
    )
    return {
        "cluster_version": for_advice(advice.cluster),
        "prechecks": tuple(prechecks),
        "precheck_problem": advice.problem,
    }
