"""Installs and uninstalls a component: its objects, its certificate, the first ClusterVersion, and what remained."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kubekit.api.scheme import Resource
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from runup.install.control import observing, serving_authority
from runup.install.control.sets import Done, InstallError, ObjectSets, Outcome, Told
from runup.install.decide import serving_certificates
from runup.install.decide.component import OPERATOR, Certificates, Component, Options, Platform
from runup.install.decide.inventory import Inventory, inventory_of, set_id, without_those_of_others
from runup.install.decide.objects import Objects
from runup.install.decide.refusals import Cluster, refusals
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
CLUSTER_VERSION = Resource("config.openshift.io", "v1", "ClusterVersion", "clusterversions", namespaced=False)
_RBAC = "rbac.authorization.k8s.io"
# What the operator makes for a preflight's own account, and removes with the preflight.
_OF_PREFLIGHTS = "cluster-version-operator-preflight"


class Manner(msgspec.Struct, frozen=True):
    """Choices for an installation."""

    take_over: bool = False
    force: bool = False
    dry_run: bool = False


def install(
    client: SyncClient,
    sets: ObjectSets,
    clock: Clock,
    component: Component,
    objects: Objects,
    options: Options,
    observed_cluster: Cluster,
    manner: Manner,
    tell: Told,
) -> Objects:
    """Applies `objects`, and returns those that were applied. Raises InstallError and KubeError."""
    cluster = observing.state(client, sets, component, objects, observed_cluster)
    if why := refusals(cluster, component, options, take_over=manner.take_over):
        raise InstallError("\n".join(why))
    data = {"version": sets.tool_version, "image": options.image, "platform": options.platform.value}
    set_of_ours = set_id(component.name, options.namespace)
    applied, remaining_objects = without_those_of_others(objects, cluster.owners, set_of_ours)
    for identity in remaining_objects:
        tell(Done(identity, Outcome.LEFT))
    applied = _with_certificate(sets, clock, component, applied, options)
    inventory = inventory_of(component.name, options.namespace, applied, data)
    sets.apply_set(applied, inventory, tell, force=manner.force, dry_run=manner.dry_run)
    if component == OPERATOR and options.platform is Platform.KUBERNETES:
        sets.create(first_cluster_version(), tell, dry_run=manner.dry_run)
    return applied


def first_cluster_version() -> JSON:
    """Returns the ClusterVersion that a cluster without one starts with: a name of its own, and no channel."""
    return {
        "apiVersion": CLUSTER_VERSION.api_version,
        "kind": CLUSTER_VERSION.kind,
        "metadata": {"name": "version"},
        "spec": {"clusterID": str(uuid.uuid4())},
    }


def uninstall(
    sets: ObjectSets, component: Component, namespace: str | None, tell: Told, *, definitions: bool, dry_run: bool
) -> None:
    """Removes `component`, its definitions only if they are asked for. Raises InstallError and KubeError."""
    inventory = _installed(sets, component, namespace, definitions=definitions)

    def left_behind() -> Iterable[Identity]:
        return _left_by_preflights(sets) if component == OPERATOR else ()

    sets.remove_set(inventory, tell, definitions=definitions, dry_run=dry_run, besides=left_behind)


def _installed(sets: ObjectSets, component: Component, namespace: str | None, *, definitions: bool) -> Inventory:
    """Returns the one inventory that the flags mean. Raises InstallError if there is none, or more than one."""
    installed = sets.installed(component.name)
    chosen_inventories = [inventory for inventory in installed if namespace in (None, inventory.namespace)]
    namespaces_text = ", ".join(sorted(inventory.namespace for inventory in installed))
    if len(chosen_inventories) > 1:
        # Whoever may write ConfigMaps in a namespace can make it look like another place.
        raise InstallError(f"{component.name} is installed in namespaces {namespaces_text}: name one with --namespace")
    if chosen_inventories:
        return chosen_inventories[0]
    if namespaces_text:
        raise InstallError(f"{component.name} is not installed in namespace {namespace}; it is in {namespaces_text}")
    inventory = _of_definitions(component, namespace or component.namespace)
    if definitions and any(True for _ in sets.members(inventory)):
        return inventory
    raise InstallError(
        f"{component.name} is not installed by `runup install`: no namespace has a ConfigMap {inventory.name}"
    )


def _of_definitions(component: Component, namespace: str) -> Inventory:
    """Returns the set whose definitions an earlier uninstallation may have left; its parent is gone."""
    empty = inventory_of(component.name, namespace, (), {})
    return msgspec.structs.replace(empty, kinds=frozenset({("apiextensions.k8s.io", "CustomResourceDefinition")}))


def _left_by_preflights(sets: ObjectSets) -> Iterator[Identity]:
    for kind in ("ClusterRoleBinding", "ClusterRole", "RoleBinding", "Role"):
        yield from sets.named(_RBAC, kind, _OF_PREFLIGHTS)


def _with_certificate(
    sets: ObjectSets, clock: Clock, component: Component, objects: Objects, options: Options
) -> Objects:
    """Returns `objects` with a certificate of our own and who trusts it, where the cluster makes none."""
    if options.certificates is not Certificates.OWN or not serving_certificates.has_service(objects):
        return objects
    name, hosts = serving_certificates.secret_name(component), serving_certificates.hosts(component, options.namespace)
    stored_secret = sets.read(Identity("", "Secret", options.namespace, name))
    if stored_secret is None or not serving_authority.is_still_valid(stored_secret, hosts, clock.now()):
        stored_secret = serving_authority.serving_secret(name, options.namespace, hosts, clock.now())
    secret = {**stored_secret, "metadata": {"name": name, "namespace": options.namespace}}
    first = next(index for index, obj in enumerate(objects) if obj["kind"] == "ServiceAccount")
    return (
        *serving_certificates.with_authority(objects[:first], serving_authority.authority_of(stored_secret)),
        secret,
        *objects[first:],
    )
