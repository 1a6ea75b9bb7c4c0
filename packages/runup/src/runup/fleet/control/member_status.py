"""Reads the update status of one cluster of a fleet, in a worker process; no module of checks is loaded for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubekit.kube.clock import SystemClock
from kubekit.lang.gotext import to_ns
from kubekit.lang.text import one_line
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.decide.newest_status import BadStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runup.fleet.decide.members import Member
    from runup.process.connection import Connection
    from runup.updatestatus.control.status_reading import StatusReading


def read_status(member: Member, connection: Connection) -> StatusReading:
    """Returns the update status of a dump or a live cluster, or the one that has travelled. Raises KubeError, Terminal.

    Raises BadStatus if the cluster could not read its own.
    """
    if (status := member.status) is not None:
        from runup.updatestatus.control.status_reading import StatusReading

        if status.update_status is None:
            raise BadStatus(f"its status could not be read there: {status.status_problem or 'it does not say why'}")
        return StatusReading(
            obj=status.update_status,
            now_ns=to_ns(status.observed_time),
            notes=tuple(one_line(note.strip()) for note in status.notes),
            worker_pools_before_master=status.worker_pools_before_master,
            doubt=one_line(status.doubt),
        )
    if member.dump:
        from runup.updatestatus.control import status_files

        return status_files.dump(member.dump, SystemClock().now(), None)
    from runup.updatestatus.control import live_status

    with connection_to(member, connection).client("upgrade-status") as client:
        return live_status.read(client, client.now, whole=False)


def read_hosted_statuses(member: Member, connection: Connection) -> Sequence[StatusReading]:
    """Returns the update status of each hosted cluster of a member; none if it is no management cluster.

    Nothing is read of a member whose status has travelled to a hub.
    """
    from runup.updatestatus.control import hosted_objects, live_status

    if member.status is not None:
        return ()
    try:
        if member.dump:
            return hosted_objects.read_dump(member.dump, "", None)
        with connection_to(member, connection).client("upgrade-status") as client:
            return hosted_objects.read(client, client.now, "", live_status.TOLERATED)
    except hosted_objects.NoHostedClusters:
        return ()
