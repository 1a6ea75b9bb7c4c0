"""Adapts the manifests of a release's own workloads to this machine: addresses, update service, leases.

The change is part of the release that the sandbox builds: the operator that applies the release leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubekit.lang import yaml as kyaml
from runup.sandbox.scenario.folder import ClusterSpec

JSON = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
# The node of the sandbox's own workloads in a cluster that was made from a dump.
OWN_NODE = "runup-sandbox"
# Duration, renew deadline and retry period of the lease, in seconds. Shorter than in a cluster, because a killed
# operator does not release its lease and the next one waits for its end; long enough that a busy machine does not lose
# it: processes that share two cores with twenty others stand still for seconds.
_LEASE = "--lease=20,15,0.5"


def fit_files(files: Mapping[str, bytes], cluster: ClusterSpec, update_service: str) -> dict[str, bytes]:
    """Returns the files of a release, with adapted Deployments of its own workloads."""
    return {
        name: _fit_file(data, cluster, update_service) if _is_deployment_file(name) else data
        for name, data in files.items()
    }


def _is_deployment_file(name: str) -> bool:
    return name.startswith("manifests/") and name.endswith("_deployment.yaml")


def _fit_file(data: bytes, cluster: ClusterSpec, update_service: str) -> bytes:
    """Returns a file of manifests in which the Deployments of runup's own components fit this machine."""
    objects = [obj for obj in kyaml.load_all(data) if obj]
    for obj in objects:
        if obj["kind"] == "Deployment" and (fit := _FIT_BY_DEPLOYMENT.get(obj["metadata"]["name"])):
            fit(obj, cluster, update_service)
    return kyaml.dump_all(objects).encode()


def _fit_operator(deployment: JSON, cluster: ClusterSpec, update_service: str) -> None:
    """Sets the update service, a free port, and a lease for which a restart need not wait."""
    gates = (f"--open-gates={','.join(cluster.operator_gates)}",) if cluster.operator_gates else ()
    # An imported cluster is shown as it was: no manifests of a release are applied to it.
    # The images of scenarios have no programs that a Pod could copy with.
    applying = ("--record-only",) if cluster.imported else ("--release-source=registry",)
    served = ("--listen=127.0.0.1:0", f"--update-service={update_service}", _LEASE)
    own_arguments = (*served, *applying, *gates, *cluster.operator_args)
    # No operator signs serving certificates here, and there is no monitoring unless the scenario names one.
    _set_arguments(deployment, cluster, own_arguments, without=("--listen=", "--serving-", "--prometheus-"))


def _fit_update_status(deployment: JSON, cluster: ClusterSpec, _update_service: str) -> None:
    """Removes alerts and metrics, which the sandbox does not have, and sets the dump's time as now."""
    now = (f"--mock-now={cluster.now}",) if cluster.now else ()
    _set_arguments(deployment, cluster, (_LEASE, *now), without=("--alerts-", "--listen=", "--serving-"))


def _set_arguments(
    deployment: JSON, cluster: ClusterSpec, own_arguments: Iterable[str], *, without: tuple[str, ...]
) -> None:
    """Sets the container's arguments: `own_arguments` at the end, without those that begin with a text in `without`."""
    pod = deployment["spec"]["template"]["spec"]
    if cluster.imported:
        pod["nodeSelector"] = {HOSTNAME: OWN_NODE}
    container = pod["containers"][0]
    without = (*without, "--health-listen=")
    container["args"] = [*(arg for arg in container.get("args") or () if not arg.startswith(without)), *own_arguments]
    # Every pod has this machine's ports: two sandboxes would share the one that is probed.
    container.pop("livenessProbe", None)


_FIT_BY_DEPLOYMENT: dict[str, Callable[[JSON, ClusterSpec, str], None]] = {
    "cluster-version-operator": _fit_operator,
    "update-status-controller": _fit_update_status,
}
