"""Reads how the update of a cluster goes and which updates there are, and puts both where an agent takes them to a hub.

The place is ConfigMap `status-newest` (docs/decisions/0111). What cannot be read is reported in its place.
"""

from __future__ import annotations

from typing import Any

from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from runup.advice.control import recommend_input
from runup.fleet.decide import newest_status
from runup.preflight.decide.cluster_run import CONFIG_MAP, FIELD_MANAGER, NAMESPACE
from runup.process.error_texts import failure_text
from runup.updatestatus.control import live_status


def report_status(client: SyncClient) -> tuple[str, ...]:
    """Writes the cluster's status and advice, and returns why a half of them could not be read.

    Raises InputError without the ConfigMap.
    """
    observed = client.now()
    halves: dict[str, Any] = {}
    for read, problem in ((_update_status, "status_problem"), (_advice, "advice_problem")):
        try:
            halves |= read(client)
        except Exception as error:
            text = failure_text(error)
            if text is None:
                raise
            halves[problem] = text
    status = newest_status.NewestStatus(format=newest_status.FORMAT, observed_time=observed, **halves)
    patch = newest_status.with_status(status)
    try:
        client.send(calls.merge_patch(CONFIG_MAP, newest_status.NAME, patch, NAMESPACE, field_manager=FIELD_MANAGER))
    except NotFound as error:
        where = f"ConfigMap {NAMESPACE}/{newest_status.NAME}"
        raise InputError(f"{where}: {error}; the add-on of `runup fleet addon` creates it") from error
    return tuple(filter(None, (status.status_problem, status.advice_problem)))


def _update_status(client: SyncClient) -> dict[str, Any]:
    reading = live_status.read(client, client.now)
    return {
        "update_status": reading.obj,
        "notes": reading.notes,
        "doubt": reading.doubt,
        "worker_pools_before_master": reading.worker_pools_before_master,
    }


def _advice(client: SyncClient) -> dict[str, Any]:
    # Who accepted which risk is in the operator's ConfigMaps, which the account may not read.
    advice = recommend_input.read_cluster(client, with_records=False)
    prechecks = (
        newest_status.Precheck(
            name=check.name,
            type=check.condition.type,
            status=check.condition.status,
            reason=check.condition.reason,
            message=check.condition.message,
        )
        for check in advice.checks
    )
    return {
        "cluster_version": newest_status.for_advice(advice.cluster),
        "prechecks": tuple(prechecks),
        "precheck_problem": advice.problem,
    }
