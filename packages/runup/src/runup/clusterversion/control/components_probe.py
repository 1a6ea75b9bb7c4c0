"""Asks which of runup's components are installed: their Deployments, versions, and what their accounts may do."""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls, reviews
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from runup.clusterversion.decide.prerequisite_facts import Installed
from runup.install.decide.component import COMPONENTS, KERNEL_MODULES, OPERATOR, UPDATE_STATUS, Component
from runup.install.decide.inventory import PART_OF, name_of, set_id

_VERSIONS = Resource("config.openshift.io", "v1", "ClusterVersion", "clusterversions", namespaced=False)
_STATUSES = Resource("update.openshift.io", "v1alpha1", "UpdateStatus", "updatestatuses", namespaced=False)
_MODULES = Resource("kmm.sigs.x-k8s.io", "v1beta1", "Module", "modules", namespaced=True)
_VALIDATIONS = Resource("kmm.sigs.x-k8s.io", "v1beta2", "PreflightValidation", "preflightvalidations", namespaced=False)
_NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
# The rights (verb, resource, subresource) without which a component cannot do its work at all.
RIGHTS: dict[str, tuple[tuple[str, Resource, str], ...]] = {
    OPERATOR.name: (("watch", _VERSIONS, ""), ("patch", _VERSIONS, "status")),
    UPDATE_STATUS.name: (("watch", _NODES, ""), ("update", _STATUSES, "status")),
    KERNEL_MODULES.name: (("watch", _MODULES, ""), ("patch", _VALIDATIONS, "status")),
}


def installed(client: SyncClient) -> tuple[Installed, ...]:
    """Returns the components whose Deployments are in the cluster, in any namespace. Raises KubeError, DecodeError."""
    return tuple(
        _read_installed(client, component, deployment)
        for component in COMPONENTS.values()
        for deployment in client.send(
            calls.list_page(Deployment, field_selector=f"metadata.name={component.deployment}")
        ).items
    )


def _read_installed(client: SyncClient, component: Component, deployment: Deployment) -> Installed:
    """Returns a Deployment of the component as found, with the version that its inventory names."""
    namespace = deployment.metadata.namespace
    has_own_label = deployment.metadata.labels.get(PART_OF) == set_id(component.name, namespace)
    version, version_error = _installed_version(client, component, namespace) if has_own_label else ("", "")
    lacking, rights_error = _lacking_rights(client, component, deployment) if has_own_label else ((), "")
    status = deployment.status
    available = find(status.conditions, "Available")
    failure = find(status.conditions, "ReplicaFailure")
    condition = failure if failure is not None and failure.status == "True" else available
    return Installed(
        component=component.name,
        namespace=namespace,
        deployment=deployment.metadata.name,
        image=next((container.image for container in deployment.spec.template.spec.containers), ""),
        by_install=has_own_label,
        version=version,
        version_error=version_error,
        wanted=deployment.spec.replicas,
        ready=status.available_replicas,
        rolled_out=status.observed_generation >= deployment.metadata.generation
        and status.updated_replicas >= deployment.spec.replicas,
        why=condition.message if condition is not None and (condition is failure or condition.status != "True") else "",
        lacking=lacking,
        rights_error=rights_error,
    )


def _installed_version(client: SyncClient, component: Component, namespace: str) -> tuple[str, str]:
    """Returns the version in the component's inventory, and why it could not be read."""
    try:
        inventory = client.send(calls.get(ConfigMap, name_of(component.name), namespace))
    except KubeError as error:
        return "", str(error)
    return inventory.data.get("version", ""), ""


def _lacking_rights(client: SyncClient, component: Component, deployment: Deployment) -> tuple[tuple[str, ...], str]:
    """Returns the rights that the component's account lacks, and why that could not be determined, if so."""
    account = deployment.spec.template.spec.service_account_name or "default"
    user = f"system:serviceaccount:{deployment.metadata.namespace}:{account}"
    lacking = []
    try:
        for verb, resource, subresource in RIGHTS[component.name]:
            if not client.send(reviews.may_they(user, verb, resource, subresource=subresource)).allowed:
                resource_name = f"{resource.plural}{f'.{resource.group}' if resource.group else ''}"
                lacking.append(f"{verb} {resource_name}{f'/{subresource}' if subresource else ''}")
    except KubeError as error:
        return (), str(error)
    return tuple(lacking), ""
