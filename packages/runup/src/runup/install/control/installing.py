"""Installs and uninstalls a component: its objects, its certificate, the first ClusterVersion, and what remained.

Before that it observes the cluster (API groups, owners of objects, what is installed); afterwards it waits until the
objects are healthy, by the rules by which the operator evaluates those of a release. On a cluster without a source of
certificates it creates an authority and a certificate for the component's Service.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import runup
from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import api_errors, calls
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from runup.api.owned_v1 import OwnedWorkload
from runup.api.update_policy_v1alpha1 import FINALIZER, UpdateRun
from runup.applying.decide import health, progress
from runup.applying.decide.task import Task
from runup.install.control.sets import Done, InstallError, ObjectSets, OnDone, Outcome
from runup.install.decide import component_objects as serving_certificates
from runup.install.decide.component import OPERATOR, UPDATE_POLICY, Certificates, Component, Options, Platform
from runup.install.decide.inventory import PART_OF, Inventory, inventory_of, set_id, without_those_of_others
from runup.install.decide.objects import Objects, definition, identity_of
from runup.install.decide.refusals import CLUSTER_VERSION, OPERATOR_PLACE, VALIDATIONS, Cluster, Workload, refusals
from runup.packaged_files import packaged_files
from runup.release.decide.manifest import Identity, Manifest


def manifests(component: Component, platform: Platform) -> dict[str, bytes]:
    """Returns the files of `component` by name; its definitions where the platform lacks them. Raises InstallError."""
    package = Path(runup.__file__).parent
    files = {file.name: file.read_bytes() for file in packaged_files(f"deploy/{component.folder}", "*.yaml")}
    missing = [] if files else [f"deploy/{component.folder}"]
    definitions = component.definitions if platform is Platform.KUBERNETES else ()
    for name in definitions:
        file = package / "sandbox" / "crds" / name
        if file.is_file():
            files[name] = file.read_bytes()
    missing += [name for name in definitions if name not in files]
    if missing:
        raise InstallError(f"this installation of runup lacks {', '.join(missing)}: install it again")
    return files


JSON = dict[str, Any]
DEPLOYMENT = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
SLICE = Resource(group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices", namespaced=True)


def server(client: SyncClient, sets: ObjectSets) -> Cluster:
    """Returns the server's version, API groups and ports. Raises KubeError."""
    version = codec.decode(dict[str, Any], client.send(calls.get_path("/version")))
    # Managed clusters call a minor version `29+`.
    numbers = [int("".join(filter(str.isdigit, str(version.get(key, "")))) or 0) for key in ("major", "minor")]
    # The usual ports, if the endpoints may not be read.
    ports: set[int] = set()
    with suppress(api_errors.KubeError, codec.DecodeError):
        selector = "kubernetes.io/service-name=kubernetes"
        for endpoint_slice in client.listing_raw(SLICE, "default", label_selector=selector).items:
            ports |= {int(port["port"]) for port in endpoint_slice.get("ports") or () if port.get("port")}
    return Cluster(
        version=(numbers[0], numbers[1]),
        groups=frozenset(sets.kinds.groups),
        api_ports=tuple(sorted(ports | {443, 6443})),
    )


def state(client: SyncClient, sets: ObjectSets, component: Component, objects: Objects, cluster: Cluster) -> Cluster:
    """Returns `cluster` with the owners of the objects of `component`, and where it is installed. Raises KubeError."""
    shared = [identity_of(obj) for obj in objects if definition(obj) or obj["kind"] == "Namespace"]
    read = (CLUSTER_VERSION, VALIDATIONS, OPERATOR_PLACE)
    shared += [identity for identity in read if identity not in shared]
    workloads, reads = _workloads(client, component)
    return Cluster(
        version=cluster.version,
        groups=cluster.groups,
        owners=sets.owners(shared),
        workloads=workloads,
        installed=sets.installed(component.name),
        api_ports=cluster.api_ports,
        user_reads_workloads=reads,
    )


def _workloads(client: SyncClient, component: Component) -> tuple[tuple[Workload, ...], bool]:
    """Returns the Deployments with the component's name, and whether they may be listed at all."""
    try:
        listed = client.listing_raw(DEPLOYMENT).complete("Deployment")
    except api_errors.Forbidden:
        if component == OPERATOR:
            return (), False
        raise
    workloads = []
    for item in listed:
        metadata, spec = item["metadata"], item["spec"]
        if metadata["name"] == component.deployment:
            workload = Workload(
                namespace=metadata["namespace"],
                name=metadata["name"],
                image=str(spec["template"]["spec"]["containers"][0].get("image", "")),
                replicas=int(spec.get("replicas", 1)),
                part_of=(metadata.get("labels") or {}).get(PART_OF, ""),
            )
            workloads.append(workload)
    return tuple(workloads), True


VALID_FOR = timedelta(days=3650)
# An installation that finds less than this left makes another one.
RENEWED_BEFORE = timedelta(days=365)
# The clocks of nodes differ.
_SKEW = timedelta(hours=1)


def serving_secret(name: str, namespace: str, hosts: Sequence[str], now: datetime) -> JSON:
    """Returns a Secret with `ca.crt`, `tls.crt` and `tls.key` for `hosts`. The authority's key is not kept."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"runup {namespace}")])
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    # A common name has 64 characters at most; the names that count are the alternative ones.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    certificate = (
        _builder(subject, issuer, key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    data = {"ca.crt": _pem(authority), "tls.crt": _pem(certificate), "tls.key": private}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {file: base64.b64encode(content).decode() for file, content in data.items()},
    }


def is_still_valid(secret: JSON | None, hosts: Sequence[str], now: datetime) -> bool:
    """Returns whether the certificate in `secret` is for `hosts` and lasts for another year."""
    if secret is None:
        return False
    try:
        certificate = x509.load_pem_x509_certificate(_content(secret, "tls.crt"))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        x509.load_pem_x509_certificate(authority_of(secret))
    except (KeyError, ValueError, x509.ExtensionNotFound):
        return False
    lasts = certificate.not_valid_after_utc - now > RENEWED_BEFORE
    return lasts and set(hosts) <= set(names.get_values_for_type(x509.DNSName))


def authority_of(secret: JSON) -> bytes:
    """Returns the authority in `secret`, in PEM. Raises KeyError and ValueError."""
    return _content(secret, "ca.crt")


def _content(secret: JSON, file: str) -> bytes:
    return base64.b64decode(secret["data"][file], validate=True)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    """Returns a builder of a certificate that is valid from now on for `VALID_FOR`."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + VALID_FOR)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


POD = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
POLL_S = 1.0


def wait(client: SyncClient, sets: ObjectSets, clock: Clock, objects: Objects, *, timeout_s: float) -> None:
    """Waits until each workload and definition of `objects` is healthy.

    Raises InstallError, which says what is waited for, after `timeout_s`; and KubeError.
    """
    deadline = clock.monotonic() + timeout_s
    tasks = [Task(Manifest.of("", identity_of(obj), obj), index, len(objects)) for index, obj in enumerate(objects, 1)]
    waiting = [task for task in tasks if task.kind in health.KINDS]
    while waiting:
        problems = {task: problem for task in waiting if (problem := _why_unhealthy(sets, task))}
        if not problems:
            return
        if clock.monotonic() >= deadline:
            first, problem = next(iter(problems.items()))
            lines = [f"after {timeout_s:g} s: {problem}"]
            if first.kind == health.DEPLOYMENT:
                labels = first.manifest.object["spec"]["selector"]["matchLabels"]
                selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
                pods = client.listing_raw(POD, first.identity.namespace, label_selector=selector).items
                lines += [f"pod {pod['metadata']['name']}: {why}" for pod in pods if (why := _reason_of_pod(pod))]
            raise InstallError("\n".join(lines))
        waiting = list(problems)
        clock.pause(POLL_S)


def _why_unhealthy(sets: ObjectSets, task: Task) -> str:
    """Returns what a workload of the set still waits for, empty if nothing."""
    stored_object = sets.read(task.identity)
    owned = codec.convert(OwnedWorkload, stored_object) if stored_object is not None else None
    problem = health.problem_of(task, owned, progress.ApplyReason.UPDATING) or health.unfinished_rollout(task, owned)
    if problem is not None:
        return problem.message
    if task.kind == health.DEPLOYMENT and owned is not None and owned.status is not None:
        # A release continues while a pod starts; who types --wait wants it ready.
        available = find(owned.status.conditions, "Available")
        if available is None or available.status != "True":
            return f"waiting on {task.identity}, which is not available"
    return ""


def _reason_of_pod(pod: JSON) -> str:
    """Returns why a pod is not ready, by its containers' states or its conditions."""
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            if reason := (state or {}).get("reason"):
                ended = (container.get("lastState") or {}).get("terminated") or {}
                lines = str(ended.get("message", "")).strip().splitlines()
                last_line = f": {lines[-1]}" if lines else ""
                return f"{reason}: {state.get('message', '')}".rstrip(": ") + (
                    f"; it ended with code {ended.get('exitCode', 'unknown')}{last_line}" if ended else ""
                )
    unmet = [
        condition
        for condition in status.get("conditions") or ()
        if condition.get("status") == "False" and condition.get("message")
    ]
    return f"{unmet[0].get('reason', '')}: {unmet[0]['message']}" if unmet else str(status.get("phase", ""))


CLUSTER_VERSIONS = Resource(
    group="config.openshift.io", version="v1", kind="ClusterVersion", plural="clusterversions", namespaced=False
)
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
    *,
    component: Component,
    objects: Objects,
    options: Options,
    observed_cluster: Cluster,
    manner: Manner,
    on_done: OnDone,
) -> Objects:
    """Applies `objects`, and returns those that were applied. Raises InstallError and KubeError."""
    cluster = state(client, sets, component=component, objects=objects, cluster=observed_cluster)
    if why := refusals(cluster, component, options, take_over=manner.take_over):
        raise InstallError("\n".join(why))
    data = {"version": sets.tool_version, "image": options.image, "platform": options.platform.value}
    set_of_ours = set_id(component.name, options.namespace)
    applied, remaining_objects = without_those_of_others(objects, cluster.owners, set_of_ours)
    for identity in remaining_objects:
        on_done(Done(identity, Outcome.LEFT))
    applied = _with_certificate(sets, clock, component=component, objects=applied, options=options)
    inventory = inventory_of(component.name, options.namespace, applied, data)
    sets.apply_set(applied, inventory, on_done, force=manner.force, dry_run=manner.dry_run)
    if component == OPERATOR and options.platform is Platform.KUBERNETES:
        sets.create(first_cluster_version(), on_done, dry_run=manner.dry_run)
    return applied


def first_cluster_version() -> JSON:
    """Returns the ClusterVersion that a cluster without one starts with: a separate name, and no channel."""
    return {
        "apiVersion": CLUSTER_VERSIONS.api_version,
        "kind": CLUSTER_VERSIONS.kind,
        "metadata": {"name": "version"},
        "spec": {"clusterID": str(uuid.uuid4())},
    }


def uninstall(
    sets: ObjectSets, component: Component, namespace: str | None, on_done: OnDone, *, definitions: bool, dry_run: bool
) -> None:
    """Removes `component`, its definitions only if they are asked for. Raises InstallError and KubeError."""
    inventory = _installed(sets, component, namespace, definitions=definitions)

    def left_behind() -> Iterable[Identity]:
        kinds = ("ClusterRoleBinding", "ClusterRole", "RoleBinding", "Role") if component == OPERATOR else ()
        for kind in kinds:
            yield from sets.named(_RBAC, kind, _OF_PREFLIGHTS)

    def release() -> None:
        if component == UPDATE_POLICY and definitions:
            sets.remove_finalizer(resource_of(UpdateRun), FINALIZER)

    sets.remove_set(inventory, on_done, definitions=definitions, dry_run=dry_run, besides=left_behind, release=release)


def _installed(sets: ObjectSets, component: Component, namespace: str | None, *, definitions: bool) -> Inventory:
    """Returns the one inventory that the flags mean. Raises InstallError for none, or more than one."""
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
    empty = inventory_of(component.name, (namespace or component.namespace), (), {})
    inventory = msgspec.structs.replace(empty, kinds=frozenset({("apiextensions.k8s.io", "CustomResourceDefinition")}))
    if definitions and any(True for _ in sets.members(inventory)):
        return inventory
    raise InstallError(
        f"{component.name} is not installed by `runup install`: no namespace has a ConfigMap {inventory.name}"
    )


def _with_certificate(
    sets: ObjectSets, clock: Clock, component: Component, objects: Objects, options: Options
) -> Objects:
    """Returns `objects` with a certificate of this project and who trusts it, where the cluster makes none."""
    if options.certificates is not Certificates.OWN or not serving_certificates.has_service(objects):
        return objects
    name, hosts = serving_certificates.secret_name(component), serving_certificates.hosts(component, options.namespace)
    stored_secret = sets.read(Identity("", "Secret", options.namespace, name))
    if stored_secret is None or not is_still_valid(stored_secret, hosts, clock.now()):
        stored_secret = serving_secret(name, options.namespace, hosts, clock.now())
    secret = {**stored_secret, "metadata": {"name": name, "namespace": options.namespace}}
    first = next(index for index, obj in enumerate(objects) if obj["kind"] == "ServiceAccount")
    return (
        *serving_certificates.with_authority(objects[:first], authority_of(stored_secret)),
        secret,
        *objects[first:],
    )
