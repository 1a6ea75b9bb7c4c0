"""Collects what the components of a cluster without a ClusterVersion are given: flags, feature gates, plug-ins.

Who writes them is asked first: ConfigMaps of kubeadm, from which it writes static pods and kubelets' configuration at
each update, and the arguments of k3s and RKE2, which each node has in an annotation. All else in a static pod are then
these programs' own defaults, which change with their version. Where nobody of them is found, the static pods' commands
count (Talos, what is made by hand). Services show no static pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.meta_v1 import Object
from kubekit.api.pod_parts import CommandPod
from kubekit.lang.yaml_errors import YamlError
from runup.checks.decide.removal_tables import table
from runup.checks.writing import Resource, Slim, Snapshot, Unreadable, full_name, resource_of, slim_metadata
from runup.rules.distributions import distribution_of

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "etcd")
FLAG, GATE, PLUGIN, FIELD = "Flag", "Feature gate", "Admission plug-in", "Field"
CONTROLLER = "Controller"
_CONTROLLERS_FLAG = "controllers"
_PLUGIN_FLAGS = ("enable-admission-plugins", "disable-admission-plugins", "admission-control")
_FLAGS_OF_EVERY_VERSION = ("feature-gates", "enable-admission-plugins", "disable-admission-plugins", _CONTROLLERS_FLAG)
_GATES = "featureGates"
_KUBEADM_MAP, _KUBELET_MAP, _PROXY_MAP = "kubeadm-config", "kubelet-config", "kube-proxy"
# Who writes what: https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/.
_EDIT = "Take it out with `kubectl edit configmap -n kube-system {}`"
_KUBEADM_FIX = f"{_EDIT.format(_KUBEADM_MAP)}, before `kubeadm upgrade apply` writes the static pods from it."
_KUBELET_FIX = f"{_EDIT.format(_KUBELET_MAP)}, then run `kubeadm upgrade node phase kubelet-config` on each node and "
_KUBELET_FIX += "restart its kubelet."
_PROXY_FIX = f"{_EDIT.format(_PROXY_MAP)}, then `kubectl rollout restart daemonset -n kube-system kube-proxy`."
_STATIC_FIXES = {"Talos": "Take it out on each node of the control plane: `talosctl --nodes NODE edit mc`."}
_STATIC_FIX = "Take it out where the static pod is written, such as /etc/kubernetes/manifests on its node."
# kind runs kubeadm once, and updates no cluster (https://kind.sigs.k8s.io/docs/user/configuration/).
_KIND_FIX = "Leave it out of the configuration of the new cluster: `kind create cluster --name NEW --config FILE`."
# Of each ConfigMap the key that has YAML, how a setting is taken out, and the paths of settings with their components.
_CONFIG_MAP_PARTS: Mapping[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    # The parts of kubeadm's ClusterConfiguration (kubeadm.k8s.io) with the arguments of components.
    _KUBEADM_MAP: (
        "ClusterConfiguration",
        _KUBEADM_FIX,
        (
            ("apiServer.extraArgs", "kube-apiserver"),
            ("controllerManager.extraArgs", "kube-controller-manager"),
            ("scheduler.extraArgs", "kube-scheduler"),
            ("etcd.local.extraArgs", "etcd"),
        ),
    ),
    _KUBELET_MAP: ("kubelet", _KUBELET_FIX, ((_GATES, "kubelet"),)),
    _PROXY_MAP: ("config.conf", _PROXY_FIX, ((_GATES, "kube-proxy"),)),
}
# The annotation of a node with the arguments of its server or agent, and where these are configured
# (https://docs.k3s.io/installation/configuration, https://docs.rke2.io/install/configuration).
_NODE_ARGUMENTS = {
    "k3s.io/node-args": "/etc/rancher/k3s/config.yaml",
    "rke2.io/node-args": "/etc/rancher/rke2/config.yaml",
}
# The texts that Go parses as a boolean (strconv.ParseBool); locks ignore other texts.
SAME = {"true": ("true", "t", "1", ""), "false": ("false", "f", "0", "")}
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
_NODE_FLAGS = {f"--{component}-arg": component for component in COMPONENTS} | {
    "--kube-controller-arg": "kube-controller-manager",
    "--kube-cloud-controller-manager-arg": "cloud-controller-manager",
}


# kubeadm, RKE2 and Talos give their static pods this label.
STATIC_PODS = Slim(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    namespaced=True,
    type=CommandPod,
    keep=lambda pod: msgspec.structs.replace(pod, metadata=slim_metadata(pod)),
    namespace="kube-system",
    label_selector="tier=control-plane",
)
CONFIG_MAPS = Slim(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    namespaced=True,
    type=ConfigMap,
    # With its data if it is one of kubeadm's.
    keep=lambda config_map: ConfigMap(
        metadata=slim_metadata(config_map),
        data=config_map.data if config_map.metadata.name in _CONFIG_MAP_PARTS else {},
    ),
    namespace="kube-system",
)
READS: tuple[Resource, ...] = (STATIC_PODS, CONFIG_MAPS, resource_of(Node))


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A flag, gate, plug-in, controller or field that a component is given; `value` is the text of what has one.

    `holder` is the object that says so, `place` where in it; `fix` says how it is taken out.
    """

    setting: str
    name: str
    value: str
    component: str
    holder: Object
    place: str
    fix: str

    @property
    def kind(self) -> Resource:
        """The kind of the holder as it is read."""
        return _kind_of(self.holder)


class Malformed(msgspec.Struct, frozen=True):
    """An object with settings that cannot be parsed; `why` says which part and why, `fix` where to look."""

    holder: Object
    why: str
    fix: str

    @property
    def kind(self) -> Resource:
        """The kind of the holder as it is read."""
        return _kind_of(self.holder)


def _kind_of(holder: Object) -> Resource:
    if isinstance(holder, Node):
        return resource_of(Node)
    return CONFIG_MAPS if isinstance(holder, ConfigMap) else STATIC_PODS


def all_given(snapshot: Snapshot) -> Iterator[Given | Malformed]:
    """Yields the settings of the components, including malformed ones. Raises Unreadable at the end."""
    nodes = snapshot.all(Node)
    written_by_nodes = [node for node in nodes if any(key in node.metadata.annotations for key in _NODE_ARGUMENTS)]
    for node in written_by_nodes:
        yield from _settings_of_node(node)
    pods = sorted(snapshot.listed(STATIC_PODS), key=full_name)
    if written_by_nodes or not pods:
        return
    distribution = distribution_of(nodes).name
    config_maps: dict[str, ConfigMap] = {}
    lacking: Unreadable | None = None
    try:
        config_maps = {each.metadata.name: each for each in snapshot.listed(CONFIG_MAPS)}
    except Unreadable as error:
        lacking = error
    if _KUBEADM_MAP not in config_maps:
        fix = _STATIC_FIXES.get(distribution, _STATIC_FIX)
        for pod in pods:
            for container in pod.spec.containers:
                # kubeadm itself adds flags to etcd's static pod, which nobody configured.
                if container.name not in COMPONENTS or container.name == "etcd":
                    continue
                for name, value in _flags_of_arguments((*container.command, *container.args)):
                    yield from _settings(container.name, name, value=value, holder=pod, place="command", fix=fix)
    if lacking is not None:
        raise lacking
    for name in _CONFIG_MAP_PARTS:
        if name in config_maps:
            yield from _settings_of_config_map(config_maps[name], by_kind=distribution == "kind")


def settings_of_kubelets(snapshot: Snapshot) -> Iterator[Given]:
    """Yields what kubelets are given by an object: kubeadm's ConfigMap, or the arguments of k3s and RKE2.

    A ConfigMap that cannot be read is left out.
    """
    for node in snapshot.all(Node):
        yield from (each for each in _settings_of_node(node) if isinstance(each, Given) and each.component == "kubelet")
    try:
        config_maps = [each for each in snapshot.listed(CONFIG_MAPS) if each.metadata.name == _KUBELET_MAP]
    except Unreadable:
        return
    for config_map in config_maps:
        yield from (each for each in _settings_of_config_map(config_map, by_kind=False) if isinstance(each, Given))


def is_gate_set(snapshot: Snapshot, component: str, gate: str, target: int, *, to: str) -> bool:
    """Returns whether every kubelet, or every kube-apiserver, is given the gate with the value `to`.

    A gate that Kubernetes 1.`target` locks or does not have cannot be set. What cannot be read sets no gate.
    """
    if any(gate in names for _, row in table("locked-gates").until(target) for names in row.values()) or any(
        gate in row for _, row in table("removed-gates").until(target)
    ):
        return False
    try:
        nodes = list(snapshot.all(Node))
        given = list(settings_of_kubelets(snapshot) if component == "kubelet" else all_given(snapshot))
        pods = [] if component == "kubelet" else snapshot.listed(STATIC_PODS)
    except Unreadable:
        return False
    # The last of several values counts.
    values = {
        (each.kind, full_name(each.holder)): each.value in SAME[to]
        for each in given
        if isinstance(each, Given) and (each.setting, each.name, each.component) == (GATE, gate, component)
    }
    if any(kind == CONFIG_MAPS for kind, _ in values):
        return all(values.values())
    if component != "kubelet":
        nodes = [node for node in nodes if _CONTROL_PLANE_LABEL in node.metadata.labels]
        servers = [pod for pod in pods if any(container.name == component for container in pod.spec.containers)]
        if servers and all(values.get((STATIC_PODS, full_name(pod))) for pod in servers):
            return True
    return bool(nodes) and all(values.get((resource_of(Node), full_name(node))) for node in nodes)


def _settings_of_config_map(config_map: ConfigMap, *, by_kind: bool) -> Iterator[Given | Malformed]:
    """Yields the settings in a ConfigMap of kubeadm, or that it is malformed."""
    key, fix, parts = _CONFIG_MAP_PARTS[config_map.metadata.name]
    fix = _KIND_FIX if by_kind else fix
    look = f"See `kubectl get configmap -n kube-system {config_map.metadata.name} -o yaml`."
    # Imported here: few clusters have such a ConfigMap, and every preflight loads this module.
    from kubekit.lang import yaml as kyaml

    try:
        content = kyaml.load(config_map.data.get(key, ""))
    except YamlError as error:
        yield Malformed(config_map, f"{key} of ConfigMap {full_name(config_map)} is not YAML: {error}", look)
        return
    if not isinstance(content, dict):
        yield Malformed(config_map, f"ConfigMap {full_name(config_map)} has no mapping in {key}", look)
        return
    yield from settings_in(content, parts, holder=config_map, key=key, fix=fix)
    if config_map.metadata.name != _KUBEADM_MAP:
        yield from fields_in(content, parts[0][1], holder=config_map, key=key, fix=fix)


def settings_in(
    content: Mapping[str, Any], parts: Iterable[tuple[str, str]], *, holder: Object, key: str, fix: str
) -> Iterator[Given]:
    """Yields the settings at the paths of a configuration, each with its component; `key` names the configuration."""
    for path, component in parts:
        values: Any = content
        for step in path.split("."):
            values = values.get(step) if isinstance(values, dict) else None
        # From kubeadm.k8s.io/v1beta4 on it is a list of names and values, so that a name may occur more than once.
        if isinstance(values, list):
            pairs = [(str(each.get("name")), each.get("value")) for each in values if isinstance(each, dict)]
        else:
            pairs = list(values.items()) if isinstance(values, dict) else []
        place = f"{path} of {key}"
        for name, value in pairs:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if path != _GATES:
                yield from _settings(component, name, value=text, holder=holder, place=place, fix=fix)
                continue
            yield Given(setting=GATE, name=name, value=text, component=component, holder=holder, place=place, fix=fix)


def fields_in(content: Mapping[str, Any], component: str, *, holder: Object, key: str, fix: str) -> Iterator[Given]:
    """Yields the single values at the top of a component's configuration."""
    fix = fix.replace("Take it out", "Change it", 1)
    for name, value in content.items():
        if isinstance(value, (str, int, bool)):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield Given(
                setting=FIELD, name=str(name), value=text, component=component, holder=holder, place=key, fix=fix
            )


def _settings_of_node(node: Node) -> Iterator[Given | Malformed]:
    """Yields the settings that k3s or RKE2 passes to the components of the node.

    An example of its arguments: `--kube-apiserver-arg feature-gates=A=true`.
    """
    name = node.metadata.name
    for annotation, file in _NODE_ARGUMENTS.items():
        try:
            arguments = msgspec.json.decode(node.metadata.annotations.get(annotation, "[]"), type=list[str])
        # UnicodeEncodeError: half of a surrogate pair, as a dump can have it escaped.
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            why = f"annotation {annotation} of Node {name} is no list of words: {error}"
            yield Malformed(node, why, f"See `kubectl get node {name} -o yaml`.")
            continue
        fix = f"Take it out of {file} or the service's arguments on {name}, and restart the service."
        place = f"annotation {annotation}"
        for option, value in _flags_of_arguments(arguments):
            if component := _NODE_FLAGS.get(f"--{option}"):
                flag, _, of_flag = value.partition("=")
                yield from _settings(component, flag, value=of_flag, holder=node, place=place, fix=fix)


def _flags_of_arguments(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the flags among arguments with their values, which follow `=` or are the next argument."""
    waiting = ""
    for argument in arguments:
        if argument.startswith("--"):
            if waiting:
                yield waiting, ""
            name, has_value, value = argument[2:].partition("=")
            if has_value:
                yield name, value
            waiting = "" if has_value else name
        elif waiting:
            yield waiting, argument
            waiting = ""
    if waiting:
        yield waiting, ""


def _settings(component: str, flag: str, value: str, holder: Object, place: str, fix: str) -> Iterator[Given]:
    """Yields a flag, or the gates, plug-ins or controllers that its value names; etcd has different gates."""
    # The components take a flag with underscores, too (component-base, cli/flag).
    flag = flag.lstrip("-").replace("_", "-")
    parts = [part.strip() for part in value.split(",") if part.strip()]
    settings: list[tuple[str, str, str]] = []
    if flag == "feature-gates" and component != "etcd":
        gates = (part.partition("=") for part in parts)
        settings += [(GATE, gate.strip(), state.strip().lower()) for gate, _, state in gates]
    if flag == _CONTROLLERS_FLAG and component == "kube-controller-manager":
        # `*` means all that are on by default; `-` before a name disables it (controller-manager, options/generic.go).
        settings += [(CONTROLLER, name, "") for part in parts if (name := part.removeprefix("-")) != "*"]
    if flag in _PLUGIN_FLAGS:
        settings += [(PLUGIN, part, "") for part in parts]
    # Every version has these flags: findings are about the names in a flag's value, not about the flag.
    if flag not in _FLAGS_OF_EVERY_VERSION:
        settings.append((FLAG, flag, value))
    for setting, name, text in settings:
        yield Given(setting=setting, name=name, value=text, component=component, holder=holder, place=place, fix=fix)
