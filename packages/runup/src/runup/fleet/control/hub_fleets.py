"""Reads FleetUpdates and the objects of a hub, and changes FleetUpdates for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, Forbidden, NotFound, message_of
from kubekit.kube.client_sync import SyncClient
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.fleet.decide.hub_update.engine_objects import FLEET_UPDATE, PLACEMENT, REPLICA_SET
from runup.fleet.decide.hub_update.hub_view import no_lease, unconfirmed
from runup.fleet.decide.hub_update.observation import HubInputs
from runup.process.lease_age import LeaseRecord
from runup.rollout.control import policy_objects

JSON = dict[str, Any]
# Of the controller of FleetUpdates, in their namespace.
LEASE = "fleet-controller"
FLEETS = resource_of(FleetUpdate)
DECISIONS = Resource(
    group="cluster.open-cluster-management.io",
    version="v1beta1",
    kind="PlacementDecision",
    plural="placementdecisions",
    namespaced=True,
)
MANAGERS = Resource(
    group="operator.open-cluster-management.io",
    version="v1",
    kind="ClusterManager",
    plural="clustermanagers",
    namespaced=False,
)
MANAGER = "cluster-manager"
PLACEMENT_LABEL = "cluster.open-cluster-management.io/placement"
_LEASES = Resource(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", namespaced=True)
_ATTEMPTS = 10


def read_hub(client: SyncClient, namespace: str) -> HubInputs:
    """Reads what the controller decides on. Raises KubeError or DecodeError."""
    fleets = tuple(client.list_all(FleetUpdate, namespace)[0])
    return read_hub_of(client, namespace, fleets) if fleets else HubInputs(now=client.now())


def read_hub_of(client: SyncClient, namespace: str, fleets: tuple[FleetUpdate, ...]) -> HubInputs:
    """Reads what these FleetUpdates are decided on, also before they exist. Raises KubeError or DecodeError."""
    sets, serves_sets = _list(client, REPLICA_SET, namespace, FLEET_UPDATE)
    return HubInputs(
        now=client.now(),
        fleets=fleets,
        sets=sets,
        manager=_manager(client),
        serves_sets=serves_sets,
        approvals=policy_objects.approvals(client),
        calendars=_calendars(client),
        **_clusters(client, namespace, FLEET_UPDATE),
    )


def read_clusters(client: SyncClient, fleet: FleetUpdate) -> HubInputs:
    """Reads the clusters of one FleetUpdate and their runs. Raises KubeError or DecodeError."""
    selector = f"{FLEET_UPDATE}={fleet.metadata.uid}"
    read = _clusters(client, fleet.metadata.namespace, selector)
    return HubInputs(now=client.now(), fleets=(fleet,), **read)


def _clusters(client: SyncClient, namespace: str, works: str) -> dict[str, Any]:
    """Returns the clusters of a hub, those that its Placements choose, and the selected works; pages of 500 objects."""
    placements, _ = _list(client, PLACEMENT, namespace)
    decisions: dict[str, tuple[str, ...]] = {}
    for each in _list(client, DECISIONS, namespace)[0]:
        name = (each["metadata"].get("labels") or {}).get(PLACEMENT_LABEL, "")
        chosen = (each.get("status") or {}).get("decisions") or ()
        decisions[name] = (*decisions.get(name, ()), *(str(one.get("clusterName")) for one in chosen))
    return {
        "clusters": client.list_all(ManagedCluster)[0],
        "placements": {each["metadata"]["name"]: each for each in placements},
        "decisions": decisions,
        "works": client.list_all(ManifestWork, label_selector=works)[0],
    }


def _list(client: SyncClient, resource: Resource, namespace: str, label_selector: str = "") -> tuple[list[JSON], bool]:
    """Returns all objects, and whether the kind is served. Raises KubeError."""
    try:
        return client.listing_raw(resource, namespace, label_selector=label_selector).items, True
    except NotFound:
        return [], False


def _manager(client: SyncClient) -> JSON | None:
    try:
        return client.send(calls.get_raw(MANAGERS, MANAGER))
    except NotFound:
        return None


def _calendars(client: SyncClient) -> Any:
    """Returns the calendars; none on a hub that does not serve them, where a stage that names one does not begin."""
    try:
        return policy_objects.calendars(client)
    except InputError:
        return ()


def read_fleet(client: SyncClient, namespace: str, name: str) -> FleetUpdate:
    """Returns a FleetUpdate. Raises InputError if it does not exist, KubeError or DecodeError."""
    try:
        return client.send(calls.get(FleetUpdate, name, namespace))
    except NotFound as error:
        try:
            names = [each.metadata.name for each in client.list_all(FleetUpdate, namespace)[0]]
        except NotFound:
            way_out = "`runup install fleet-update` installs the kind on a hub"
            raise InputError(f"the hub does not serve FleetUpdates: {way_out}") from error
        there = f"it has {', '.join(sorted(names))}" if names else "it has no FleetUpdates"
        raise InputError(f"namespace {namespace} of the hub has no FleetUpdate {name}: {there}") from error


def why_unconfirmed(client: SyncClient, namespace: str) -> str:
    """Returns why nobody is known to keep the status of FleetUpdates up to date; empty if the controller does."""
    place = f"{namespace}/{LEASE}"
    try:
        record = codec.convert(LeaseRecord, client.send(calls.get_raw(_LEASES, LEASE, namespace)))
    except NotFound:
        return no_lease(place)
    except Forbidden as error:
        return f"could not determine whether the controller runs: {message_of(error)}"
    except codec.DecodeError as error:
        return f"could not determine whether the controller runs: Lease {place}: {error}"
    return unconfirmed(record, client.now(), place)


def change(
    client: SyncClient, namespace: str, name: str, patch_of: Callable[[FleetUpdate], Mapping[str, Any]]
) -> FleetUpdate:
    """Patches a FleetUpdate by what `patch_of` returns for it, and returns it as it was read.

    The patch is conditional on the version that `patch_of` saw; the controller writes the status meanwhile, so a
    conflict is tried again. Raises what `patch_of` raises, Conflict after ten attempts, or another KubeError.
    """
    for attempt in range(_ATTEMPTS):
        fleet = read_fleet(client, namespace, name)
        patch = dict(patch_of(fleet))
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": fleet.metadata.resource_version}
        try:
            client.send(calls.merge_patch(FLEETS, name, patch, namespace, field_manager="runup"))
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        return fleet
    raise AssertionError
