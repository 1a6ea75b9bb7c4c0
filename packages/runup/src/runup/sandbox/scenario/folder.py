"""Reads a scenario: a folder of YAML that says which cluster to set up and which releases exist.

    NAME/scenario.yaml            what it is, the cluster's version, gates and channel, the releases, the update graph
    NAME/cluster/*.yaml           objects, as `kubectl get -o yaml` would show them
    NAME/releases/VERSION/        what differs in that release: manifests/, release-manifests/, preflight-checks/

`base: common` puts another folder underneath: objects of the same identity are merged (the scenario wins), the rest is
taken over. Unknown keys are refused, so that a typing mistake does not become a cluster that lacks something.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from kubekit.api.meta_v1 import Wire
from kubekit.lang import version as versions
from kubekit.lang import yaml as kyaml
from kubesandbox.sandbox_error import SandboxError
from runup.api.config_v1 import ConditionalUpdateRisk
from runup.dump.completeness import CompleteKinds
from runup.dump.documents import JSON, identity, objects_under
from runup.packaged_files import packaged_files
from runup.process.names import OPERATOR_NAMESPACE

BUNDLED = Path(__file__).parent / "bundled"
DEFAULT = "skip-level"
FILE = "scenario.yaml"


class ScenarioError(SandboxError):
    """The scenario cannot be used as it is written."""


class _Input(Wire, frozen=True, forbid_unknown_fields=True):
    """Base of the types of a scenario file, which refuse unknown keys as mistakes."""


class ReleaseSpec(_Input, frozen=True, kw_only=True):
    """A release image. `entry` names a script in `NAME/entries/` that replaces the operator.

    `folder` holds its own files, by default `releases/VERSION`; `like` puts another release's folder underneath.
    `components` gives the behaviour of components that do not work normally (`sandbox.component.behaviour`). `images`
    are more of its image-references: a name, and a script of `NAME/entries/` that the image runs.
    """

    version: str
    kubernetes: str = ""
    entry: str = ""
    folder: str = ""
    like: str = ""
    signed: bool = True
    channels: tuple[str, ...] = ()
    url: str = ""
    components: dict[str, str] = {}
    # The kernel version of its nodes, as its driver toolkit states it; empty: it has no driver toolkit.
    kernel: str = ""
    images: dict[str, str] = {}


class ModuleImage(_Input, frozen=True):
    """An image in the sandbox's registry that has kernel modules in a folder."""

    tag: str
    folder: str
    modules: tuple[str, ...]


class ConditionalEdge(_Input, frozen=True):
    """An update that the update service offers with risks."""

    from_: str = msgspec.field(name="from")
    to: str
    risks: tuple[ConditionalUpdateRisk, ...]


class Graph(_Input, frozen=True):
    """The graph of the update service; an edge is [from, to]."""

    edges: tuple[tuple[str, str], ...] = ()
    conditional_edges: tuple[ConditionalEdge, ...] = ()


class ClusterSpec(_Input, frozen=True, kw_only=True):
    """The cluster: its version, its feature set (empty: the default one), the gates that are open, its channel."""

    version: str
    kubernetes: str = ""
    feature_set: str = ""
    gates: tuple[str, ...] = ()
    disabled_gates: tuple[str, ...] = ()
    channel: str = ""
    architecture: str = "amd64"
    profile: str = "self-managed-high-availability"
    namespace: str = OPERATOR_NAMESPACE
    # "operator": the managing operator of the current release runs; "none": the cluster has only its objects.
    operator: Literal["operator", "none"] = "operator"
    # The pull spec by which the ClusterVersion of a dump knows the release that it runs.
    image: str = ""
    # The time at which the cluster's clock starts: a dump's own. Empty: the machine's.
    now: str = ""
    # Gates that are open for the managing operator alone; the cluster's FeatureGate stays as it is.
    operator_gates: tuple[str, ...] = ()
    # Whether the objects are records of another cluster: no controller touches them, nothing of them runs.
    imported: bool = False
    # Whether the cluster has been at its version for a while, or must be installed by the operator.
    installed: bool = True
    # Flags that the managing operator is started with besides those of its release.
    operator_args: tuple[str, ...] = ()


class Workloads(_Input, frozen=True):
    """The state of pods whose image is not one of the sandbox's releases: `ready` at once, or `pending` for ever.

    Pods that have a status (those of a dump) always keep it.
    """

    other_images: Literal["ready", "pending"] = "ready"


class NodeRollout(_Input, frozen=True, kw_only=True):
    """An update of the nodes of a cluster without a ClusterVersion, which begins when the sandbox starts.

    `by` is who updates: kubeadm and the system-upgrade-controller (`plan`) drain each node and give its kubelet another
    version, a service (`service`) replaces the nodes of its group. `pause_s` is the time for each step.
    """

    by: Literal["kubeadm", "service", "plan"]
    to: str
    pause_s: float = 4.0


class _ScenarioFile(_Input, frozen=True, kw_only=True):
    title: str
    cluster: ClusterSpec
    releases: tuple[ReleaseSpec, ...] = ()
    summary: str = ""
    base: str = ""
    graph: Graph = Graph()
    workloads: Workloads = Workloads()
    values: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    components: bool = False
    kernel_modules: tuple[ModuleImage, ...] = ()
    rollout: NodeRollout | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario as read: `objects` in the order of their creation, `folders` from base to top."""

    name: str
    title: str
    summary: str
    cluster: ClusterSpec
    releases: tuple[ReleaseSpec, ...]
    graph: Graph
    workloads: Workloads
    folders: tuple[Path, ...]
    objects: tuple[JSON, ...] = field(repr=False, default=())
    # Of an imported cluster: which kinds the records are known to hold in full, or in part.
    collected: CompleteKinds = field(default_factory=CompleteKinds)
    notes: tuple[str, ...] = ()
    # Whether its releases bring the operators of the common cluster's components.
    components: bool = False
    # Images with kernel modules; with any there is a builder, and the definitions of Module and its validations.
    kernel_modules: tuple[ModuleImage, ...] = ()
    # With it the cluster has no ClusterVersion and no releases, and its version is that of Kubernetes.
    rollout: NodeRollout | None = None

    def release(self, version: str) -> ReleaseSpec:
        """Returns the release of this version; raises KeyError."""
        for release in self.releases:
            if release.version == version:
                return release
        raise KeyError(version)


def names() -> list[str]:
    """Returns the names of the bundled scenarios, the default first."""
    scenario_names = sorted(
        folder.name for folder in BUNDLED.iterdir() if (folder / FILE).is_file() and not folder.name.startswith(".")
    )
    scenario_names.sort(key=lambda name: name != DEFAULT)
    return [name for name in scenario_names if name != "common"]


def find(name: str) -> Path:
    """Returns the folder of a bundled scenario, or of one at a path; raises ScenarioError listing the bundled ones."""
    if (BUNDLED / name / FILE).is_file() and "/" not in name and name != "common":
        return BUNDLED / name
    path = Path(name).expanduser()
    if name and (path / FILE).is_file():
        return path
    choice = f"choose one of {', '.join(names())}, or give the path of a folder with a {FILE}"
    raise ScenarioError(f"there is no scenario {name!r}; {choice}", reason="UnknownScenario")


def absolute(name: str) -> str:
    """Returns `name` for a process with another working directory: a folder that is no bundled scenario is absolute."""
    path = Path(name).expanduser()
    is_bundled = "/" not in name and (BUNDLED / name / FILE).is_file()
    return str(path.absolute()) if not is_bundled and (path / FILE).is_file() else name


def load(folder: Path) -> Scenario:
    """Reads a scenario's folder; raises ScenarioError naming the file and what is wrong with it."""
    file = folder / FILE
    try:
        content = msgspec.convert(kyaml.load(file.read_bytes()), _ScenarioFile)
    except (msgspec.ValidationError, ValueError, OSError) as error:
        raise ScenarioError(f"{file}: {error}", reason="BadScenario") from error
    folders: tuple[Path, ...] = (folder,)
    if content.base:
        base = folder.parent / content.base if (folder.parent / content.base).is_dir() else BUNDLED / content.base
        if not base.is_dir():
            raise ScenarioError(f"{file}: there is no base folder {content.base!r}", reason="BadScenario")
        folders = (base, folder)
    cluster = content.cluster
    running = next((release for release in content.releases if release.version == cluster.version), None)
    kubernetes = cluster.kubernetes or (running.kubernetes if running else "")
    values = {
        "version": cluster.version,
        "kubernetes": kubernetes,
        "channel": cluster.channel,
        "namespace": cluster.namespace,
        **content.values,
    }
    layers = [objects_under(layer / "cluster", values=values) for layer in folders]
    scenario = Scenario(
        name=folder.name,
        title=content.title,
        summary=content.summary.strip(),
        cluster=content.cluster,
        releases=content.releases,
        graph=content.graph,
        workloads=content.workloads,
        folders=folders,
        objects=tuple(merge_layers(layers)),
        notes=content.notes,
        components=content.components,
        kernel_modules=content.kernel_modules,
        rollout=content.rollout,
    )
    _check(scenario, file)
    return scenario


def deployment_files(name: str) -> list[Path]:
    """Returns the manifests of that folder of deploy/, in a checkout or an installed package. Raises SandboxError."""
    if manifest_files := packaged_files(f"deploy/{name}", "*.yaml"):
        return manifest_files
    raise SandboxError(f"the manifests of deploy/{name} are missing from this installation", reason="ManifestsMissing")


def merge_layers(layers: list[list[JSON]]) -> list[JSON]:
    """Returns the objects of all layers; a later one is merged into its namesake (RFC 7386), `$delete: true` removes
    it.
    """
    objects: dict[tuple[str, str, str, str], JSON] = {}
    for layer in layers:
        for obj in layer:
            key = identity(obj)
            if obj.get("$delete"):
                objects.pop(key, None)
            else:
                objects[key] = merge(objects[key], obj) if key in objects else obj
    return list(objects.values())


def merge(below: Any, above: Any) -> Any:
    """Merges `above` into `below` as a JSON merge patch (RFC 7386): null removes, lists are replaced."""
    if not isinstance(above, dict) or not isinstance(below, dict):
        return above
    result = dict(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _check(scenario: Scenario, file: Path) -> None:
    """Raises ScenarioError if a named version is not a release, a version is listed twice, or parts do not match."""
    release_versions = [release.version for release in scenario.releases]
    edges = [version for edge in scenario.graph.edges for version in edge]
    edges += [version for edge in scenario.graph.conditional_edges for version in (edge.from_, edge.to)]
    twice = [version for version in sorted(set(release_versions)) if release_versions.count(version) > 1]
    problems = [f"{version} is listed twice" for version in twice]
    problems += [f"{each!r} is not a semantic version" for each in release_versions if versions.parse(each) is None]
    problems += [
        f"the graph names {version}, which is not one of the scenario's releases"
        for version in edges
        if version not in release_versions
    ]
    problems += [
        f"{release.version} says how components behave, and its releases have no components (components: true)"
        for release in scenario.releases
        if release.components and not scenario.components
    ]
    if scenario.rollout is not None and scenario.releases:
        problems.append("a cluster whose nodes are rolled out (rollout) has no releases")
    elif scenario.rollout is None and scenario.cluster.version not in release_versions:
        problems.append(f"the cluster runs {scenario.cluster.version}, which is not one of the scenario's releases")
    if problems:
        raise ScenarioError(f"{file}: {'; '.join(problems)}", reason="BadScenario")
