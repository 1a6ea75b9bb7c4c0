"""Collects all facts that `check_prerequisites` needs, installed components included.

It changes nothing: the one patch is a dry run.

Every query has a short time limit of its own and yields a fact or the reason why it is missing.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import urlsplit

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap, Node, Pod
from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Deployment, Lease, PodDisruptionBudget
from kubekit.http import addresses, single_request
from kubekit.http.proxies import Egress
from kubekit.kube import calls, reviews, transport
from kubekit.kube.api_errors import BadRequest, Conflict, Invalid, KubeError, NotFound, message_of
from kubekit.kube.client_sync import SyncClient
from kubekit.oci.access import is_loopback
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.platform_v1 import CertificateSigningRequest
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.api.update_v1alpha1 import UpdateStatus
from runup.clusterversion.decide.check_prerequisites import Facts, Installed, Right
from runup.install.decide.component import COMPONENTS, KERNEL_MODULES, OPERATOR, UPDATE_POLICY, UPDATE_STATUS, Component
from runup.install.decide.inventory import PART_OF, name_of, set_id
from runup.process import clusterversion_client as clusters
from runup.process.connection import Connection

LIMIT_S = 5.0
_STORES_NAMESPACE = "openshift-config-managed"
_VERIFICATION = "release.openshift.io/verification-config-map"
# Rights that the commands use: verb, kind, purpose, and whether preflights and updates are impossible without it.
_RIGHTS: tuple[tuple[str, type[Object], str, bool], ...] = (
    ("get", ClusterVersion, "every command", True),
    ("patch", ClusterVersion, "asking for preflights and updates, accepting risks", True),
    ("watch", ClusterVersion, "--wait", True),
    ("get", ConfigMap, "remedies and past preflights", False),
    ("get", Lease, "the state of preflights", False),
    ("list", ClusterOperator, "`upgrade status`", False),
    ("list", MachineConfigPool, "`upgrade status`", False),
    ("list", Node, "`upgrade status`", False),
    ("list", Pod, "`upgrade status`", False),
    ("list", CertificateSigningRequest, "`upgrade status`", False),
)
T = TypeVar("T")


def collect_facts(connection: Connection) -> Facts:
    """Returns all facts. Raises ConfigError if no cluster is named."""
    config = connection.config()
    with SyncClient(config, timeouts=transport.Timeouts(LIMIT_S, LIMIT_S)) as client:
        return _Asker(client).facts(config.server)


class _Asker:
    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self._errors: dict[str, str] = {}

    def facts(self, server: str) -> Facts:
        """Returns the facts, as far as the server answers; what it refused is among the errors."""
        version = self._ask("server", lambda: self._client.send(calls.get_path("/version")))
        if version is None:
            return Facts(server=server, errors=self._errors)
        kubernetes = str(codec.decode(dict, version).get("gitVersion", "of an unknown version"))
        cluster = self._ask("ClusterVersion", self._cluster_version)
        if cluster is None and "ClusterVersion" not in self._errors:
            allowed = {right: self._is_allowed(right, kind) for right, kind in plain_rights()}
            components = self._ask("components", lambda: installed(self._client))
            return Facts(
                server=server,
                kubernetes=kubernetes,
                rights=allowed,
                errors=self._errors,
                is_plain=True,
                components=components,
            )
        gates = self._ask("FeatureGate", lambda: self._client.send(calls.get(FeatureGate, "cluster")))
        allowed = {right: self._is_allowed(right, kind) for right, kind in rights()}
        if cluster is None:
            return Facts(server=server, kubernetes=kubernetes, gates=gates, rights=allowed, errors=self._errors)
        stores = self._signature_stores(cluster)
        releases = (cluster.status.desired, *cluster.status.listed_updates())
        hosts = dict.fromkeys(release.image.partition("/")[0] for release in releases if "/" in release.image)
        # The API version check, which every registry answers.
        registries = (f"{'http' if is_loopback(host) else 'https'}://{host}/v2/" for host in hosts)
        return Facts(
            server=server,
            kubernetes=kubernetes,
            cluster=cluster,
            gates=gates,
            mode=self._probe_mode(cluster),
            rights=allowed,
            stores=stores,
            reached=_try_urls((*registries, *stores)),
            components=self._ask("components", lambda: installed(self._client)),
            errors=self._errors,
        )

    def _ask(self, name: str, question: Callable[[], T]) -> T | None:
        """Returns the answer to `question`, or None after an error, which is kept under `name`."""
        try:
            return question()
        except (KubeError, codec.DecodeError) as error:
            self._errors[name] = message_of(error)
            return None

    def _cluster_version(self) -> ClusterVersion | None:
        try:
            return self._client.send(calls.get(ClusterVersion, clusters.NAME))
        except NotFound:
            return None

    def _is_allowed(self, right: Right, kind: type[Object]) -> bool | None:
        """Returns whether the caller has the right, as the server reviews it; None if that is not known."""
        # Only ConfigMaps are read from one namespace, the operator's: all other rights are needed cluster-wide.
        namespace = clusters.namespace() if kind is ConfigMap else ""
        review = self._ask(
            right.resource, lambda: self._client.send(reviews.may_i(right.verb, resource_of(kind), namespace))
        )
        return None if review is None else review.allowed

    def _probe_mode(self, cluster: ClusterVersion) -> str | None:
        """Requests a preflight of the running version as a dry run; returns "" if it would be stored with its mode."""
        desired = {"mode": "Preflight", "version": cluster.status.desired.version or "0.0.1"}
        body = {"spec": {"desiredUpdate": desired}}
        try:
            answer = clusters.patch(self._client, body, dry_run=True, strict=True)
        except (BadRequest, Invalid, Conflict) as error:
            return message_of(error)
        except KubeError as error:
            self._errors["mode"] = message_of(error)
            return None
        # A server that ignores strict validation drops the field without an error.
        desired_update = answer.spec.desired_update
        return "" if desired_update is not None and desired_update.mode else "it drops the field"

    def _signature_stores(self, cluster: ClusterVersion) -> tuple[str, ...]:
        """Returns the URLs of the signature stores: those of ClusterVersion, else those of the ConfigMaps."""
        if cluster.spec.signature_stores:
            return tuple(store.url for store in cluster.spec.signature_stores)
        config_maps = self._ask("stores", lambda: self._client.send(calls.list_page(ConfigMap, _STORES_NAMESPACE)))
        return tuple(
            url
            for config_map in (config_maps.items if config_maps else ())
            if _VERIFICATION in config_map.metadata.annotations
            for name, url in config_map.data.items()
            if name.startswith("store-")
        )


def rights() -> Iterator[tuple[Right, type[Object]]]:
    """Yields the rights that the commands need, as listed in `docs/explanation/security.md`, each with its kind."""
    for verb, kind, why, needed in _RIGHTS:
        resource = resource_of(kind)
        yield Right(verb, f"{resource.plural}.{resource.group}".rstrip("."), why, needed), kind


def plain_rights() -> Iterator[tuple[Right, type[Object]]]:
    """Yields rights of a cluster without a ClusterVersion; every other one that lacks is named by its checks."""
    for kind in (Node, Pod, PodDisruptionBudget, CustomResourceDefinition):
        resource = resource_of(kind)
        yield Right("list", f"{resource.plural}.{resource.group}".rstrip("."), "`preflight run`", needed=False), kind


def _try_urls(urls: tuple[str, ...]) -> dict[str, str]:
    """Returns "" for each URL that answered at all, else the error; asked at once, none for longer than LIMIT_S."""
    if not urls:
        return {}
    with ThreadPoolExecutor(max_workers=min(8, len(urls))) as pool:
        return dict(zip(urls, pool.map(_try_url, urls), strict=True))


def _try_url(url: str) -> str:
    """Returns "" if the URL answers within LIMIT_S seconds, whatever its status, else the error."""
    try:
        parts, egress = urlsplit(url), Egress()
        proxy = egress.proxy_for(parts)
        tls = parts.scheme == "https" or (proxy is not None and proxy.scheme == "https")
        single_request.send_once(
            "HEAD",
            parts,
            {},
            context=egress.context() if tls else None,
            deadline=addresses.Deadline.after(LIMIT_S, LIMIT_S),
            proxy=proxy,
        ).close()
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not trusted here ({error.verify_message})"
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


_VERSIONS, _NODES = resource_of(ClusterVersion), resource_of(Node)
_RUNS = resource_of(UpdateRun)
_STATUSES, _MODULES, _VALIDATIONS = resource_of(UpdateStatus), resource_of(Module), resource_of(PreflightValidation)
# The rights (verb, resource, subresource) without which a component cannot do its work at all.
RIGHTS: dict[str, tuple[tuple[str, Resource, str], ...]] = {
    OPERATOR.name: (("watch", _VERSIONS, ""), ("patch", _VERSIONS, "status")),
    UPDATE_STATUS.name: (("watch", _NODES, ""), ("update", _STATUSES, "status")),
    KERNEL_MODULES.name: (("watch", _MODULES, ""), ("patch", _VALIDATIONS, "status")),
    UPDATE_POLICY.name: (("list", _RUNS, ""), ("patch", _RUNS, "status")),
}


def installed(client: SyncClient) -> tuple[Installed, ...]:
    """Returns the components whose Deployments are in the cluster, in any namespace. Raises KubeError, DecodeError."""
    components = []
    for component in COMPONENTS.values():
        page = client.send(calls.list_page(Deployment, field_selector=f"metadata.name={component.deployment}"))
        components += [_read_installed(client, component, deployment) for deployment in page.items]
    return tuple(components)


def _read_installed(client: SyncClient, component: Component, deployment: Deployment) -> Installed:
    """Returns a Deployment of the component as found, with the version that its inventory names."""
    namespace = deployment.metadata.namespace
    has_own_label = deployment.metadata.labels.get(PART_OF) == set_id(component.name, namespace)
    version = version_error = rights_error = ""
    lacking: tuple[str, ...] = ()
    if has_own_label:
        try:
            inventory = client.send(calls.get(ConfigMap, name_of(component.name), namespace))
            version = inventory.data.get("version", "")
        except KubeError as error:
            version_error = str(error)
        lacking, rights_error = _lacking_rights(client, component, deployment)
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
