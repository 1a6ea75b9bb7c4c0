"""Builds a scenario's releases as signed images in a layout, and the graph that the update service serves.

Files that every release has (the operator's manifests, the CustomResourceDefinitions, the key that verifies others)
come from here; a release's own files are in the scenario's folder. The same input gives the same digest. Manifests of
the release's own workloads are adapted to this machine (addresses, update service, leases): because the change is part
of the release, the operator that applies it leaves it as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.api import codec
from kubekit.lang import yaml as kyaml
from kubekit.lang.version import Version
from kubekit.oci import images
from kubekit.oci.signatures import SigningKey, generate_key
from kubesandbox.node.pod_volumes import write_atomically
from kubesandbox.sandbox_error import SandboxError
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide import rights_file_of_release
from runup.release.control.image_build import THIN_OPERATOR, BuiltImage, build_image, build_release, layer_of
from runup.report import documentation
from runup.sandbox import crds
from runup.sandbox.scenario import kernelmodules, scenario_components
from runup.sandbox.scenario.folder import ClusterSpec, ReleaseSpec, Scenario, deployment_files

JSON = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
# The node of the sandbox's own workloads in a cluster that was made from a dump.
OWN_NODE = "runup-sandbox"
# Duration, renew deadline and retry period of the lease, in seconds. Shorter than in a cluster, because a killed
# operator does not release its lease and the next one waits for its end; long enough that a busy machine does not lose
# it: processes that share two cores with twenty others stop for seconds.
_LEASE = "--lease=20,15,0.5"


def fit_files(files: Mapping[str, bytes], cluster: ClusterSpec, update_service: str) -> dict[str, bytes]:
    """Returns the files of a release, in which the Deployments of runup's own components fit this machine."""
    fitted = dict(files)
    for name, data in files.items():
        if name.startswith("manifests/") and name.endswith("_deployment.yaml"):
            objects = [obj for obj in kyaml.load_all(data) if obj]
            for obj in objects:
                if obj["kind"] == "Deployment" and (fit := _FIT_BY_DEPLOYMENT.get(obj["metadata"]["name"])):
                    fit(obj, cluster, update_service)
            fitted[name] = kyaml.dump_all(objects).encode()
    return fitted


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


REPOSITORY = "runup/release"
GATE = "ClusterUpdatePreflight"
FOLDERS = ("manifests", "release-manifests", "preflight-checks")
VERIFIER = "manifests/0000_90_cluster-version-operator_03_release-verification.configmap.yaml"


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was built: `image` is its pull spec by digest."""

    spec: ReleaseSpec
    image: str
    built: BuiltImage

    @property
    def version(self) -> str:
        """The release's version."""
        return self.spec.version


def build(scenario: Scenario, data: Path, *, registry: str, update_service: str = "") -> tuple[Release, ...]:
    """Builds and signs the scenario's releases into `data/registry`; `registry` is host:port. Raises SandboxError.

    The registry also serves the documentation of their risks, so that no link of a sandbox is dead. `update_service` is
    the URL that the operator of each release gets.
    """
    key, layout = signing_key(data), data / "registry"
    # The trusted keys, and the stores that have signatures.
    annotations = {"release.openshift.io/verification-config-map": "", **scenario_components.INCLUDED}
    verification = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "release-verification",
            "namespace": "openshift-config-managed",
            "annotations": annotations,
        },
        "data": {
            "verifier-public-key-sandbox": key.public.decode(),
            "store-sandbox": f"http://{registry}/signatures",
        },
    }
    kernelmodules.build(layout, scenario)
    edges = [*scenario.graph.edges, *((edge.from_, edge.to) for edge in scenario.graph.conditional_edges)]
    releases = []
    for spec in scenario.releases:
        files = payload(scenario, spec) | {VERIFIER: json.dumps(verification, indent=2).encode()}
        references = {}
        for name, entry in sorted(spec.images.items()):
            # A thin image: the node's Python runs its script.
            program = f"usr/bin/{name}"
            layer = layer_of({program: _read_entry(scenario, spec, entry)}, frozenset({program}))
            config = images.Execution(entrypoint=(f"/{program}",), labels={images.THIN_LABEL: "thin"})
            built = build_image(layout, [layer], tag=f"{name}-{spec.version}", config=config)
            references[name] = built.pullspec(f"{registry}/runup/{name}")
        references |= kernelmodules.references(layout, spec, registry)
        if scenario.components:
            built = scenario_components.build(layout, spec.version)
            image = built.pullspec(f"{registry}/{scenario_components.REPOSITORY}")
            files |= scenario_components.manifests(spec, image, scenario.cluster.feature_set)
            references |= scenario_components.references(image)
        built = build_release(
            layout,
            version=spec.version,
            files=fit_files(files, scenario.cluster, update_service),
            image_references=references,
            previous=[source for source, target in edges if target == spec.version],
            metadata=_release_metadata(spec) | {documentation.KEY: f"http://{registry}/docs"},
            operator=_read_entry(scenario, spec, spec.entry) if spec.entry else THIN_OPERATOR,
        )
        release = Release(spec, built.pullspec(f"{registry}/{REPOSITORY}"), built)
        if spec.signed:
            file = (data / "signatures") / release.built.digest.replace(":", "=") / "signature-1"
            if not file.is_file():
                write_atomically(file, key.sign(release.built.digest, release.image))
        releases.append(release)
    return tuple(releases)


def payload(scenario: Scenario, spec: ReleaseSpec) -> dict[str, bytes]:
    """Returns the files of a release by path in the image; the scenario's files replace those of all releases."""
    files = {f"manifests/{file.name}": file.read_bytes() for file in (*operator_manifests(), *operand_manifests())}
    definitions = crds.definition_files(generally_available=preflight_is_available(scenario, spec))
    files |= {f"manifests/{file.name}": file.read_bytes() for file in definitions}
    for layer in scenario.folders:
        names = ["release", *(f"releases/{v}" for v in (spec.like, spec.version) if v), spec.folder]
        for folder in (layer / name for name in names if name):
            files |= {
                str(file.relative_to(folder)): file.read_bytes()
                for name in FOLDERS
                for file in sorted((folder / name).rglob("*"))
                if file.is_file()
            }
    return rights_file_of_release.with_rights_file(files, own_rights())


def preflight_is_available(scenario: Scenario, spec: ReleaseSpec) -> bool:
    """Reports whether the preflight is in the release's default feature set: from 5.0 on, or if a scenario opens the
    gate.

    An imported cluster of 4.y is such a scenario: it must be preflighted, whatever its own release knew.
    """
    cluster = scenario.cluster
    opened = GATE in cluster.operator_gates or (GATE in cluster.gates and not cluster.feature_set)
    return Version(spec.version).major > 4 or opened


def operator_manifests() -> list[Path]:
    """Returns the managing operator's own manifests: packaged with runup, or in the source tree's deploy/manifests."""
    return deployment_files("manifests")


def operand_manifests() -> list[Path]:
    """Returns the update status controller's manifests, which a cluster gets with the capability UpdateStatus."""
    return deployment_files("update-status")


def graph(scenario: Scenario, releases: Sequence[Release]) -> JSON:
    """Returns the update graph of `releases`, as Cincinnati serves it (docs/reference/upstream.md 7.3)."""
    index = {release.version: number for number, release in enumerate(releases)}
    conditional: dict[str, JSON] = {}
    for edge in scenario.graph.conditional_edges if releases else ():
        risks = [codec.to_dict(risk) for risk in edge.risks]
        key = json.dumps(risks, sort_keys=True)
        group = conditional.setdefault(key, {"edges": [], "risks": risks})
        group["edges"].append({"from": edge.from_, "to": edge.to})
    return {
        "version": 1,
        "nodes": [
            {
                "version": release.version,
                "payload": release.image,
                "metadata": {
                    key: value
                    for key, value in _release_metadata(release.spec).items()
                    if key != "io.openshift.build.versions"
                },
            }
            for release in releases
        ],
        "edges": [[index[source], index[target]] for source, target in scenario.graph.edges if releases],
        "conditionalEdges": list(conditional.values()),
    }


def signing_key(data: Path) -> SigningKey:
    """Returns the key that signs this sandbox's releases; creates it at the first start."""
    file = data / "signing.key"
    if file.is_file():
        return SigningKey(file.read_bytes())
    key = generate_key("runup sandbox releases <releases@sandbox.invalid>")
    write_atomically(file, key.secret, mode=0o600)
    return key


def _read_entry(scenario: Scenario, spec: ReleaseSpec, name: str) -> bytes:
    for layer in reversed(scenario.folders):
        if (layer / "entries" / name).is_file():
            return (layer / "entries" / name).read_bytes()
    raise SandboxError(f"release {spec.version}: there is no entries/{name}", reason="BadScenario")


def _release_metadata(spec: ReleaseSpec) -> JSON:
    """Returns the metadata of a release: its URL, channels and Kubernetes version."""
    metadata: JSON = {"url": spec.url or f"https://docs.runup.example/releases/{spec.version}"}
    if spec.channels:
        metadata["io.openshift.upgrades.graph.release.channels"] = ",".join(spec.channels)
    if spec.kubernetes:
        metadata["io.openshift.build.versions"] = f"kubernetes={spec.kubernetes}"
    return metadata
